#!/usr/bin/env python3
"""The project's own rules, those that no compiler knows.

    tools/check-project.py [ROOT]

  modules    a module includes only what stands to its left in MODULES, and docs/architecture.md has that order
  size       no C file is longer than MAX_LINES
  coverage   docs/coverage.yaml has every requirement, and every test it names exists
  promises   every table row of docs/promises.md names a test that exists, or says pending
  errors     the sentence of an error begins with "cannot", and advice is in its hint, not behind a semicolon
  links      relative links in Markdown lead somewhere
  names      files of the code that Markdown or a comment names exist
  texts      no path of the machine it was written on; no tab where YAML wants spaces

Prints file:line: what is wrong; the status is 1 when anything is.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

# From left to right; modules of one set do not know each other.
MODULES = [
    {"base"}, {"proof/log", "proof/sign"}, {"wire"}, {"term"}, {"cage/init"}, {"spec"}, {"cgroup"}, {"host"}, {"plan"},
    {"seccomp"}, {"cage", "change", "gate", "proof/record", "session/store"},
    {"check", "proof/verify", "proof/card", "session/folder", "session/metrics", "agent/tool"},
    {"keeper", "vault", "agent/profile"}, {"client", "toolchain"}, {"run"}, {"result"},
    {"session/worker"}, {"agent/mcp", "agent/hook"}, {"cli"},
]
# The cage runs finished plans: the parser must not even be linked into it.
NEVER = {("cage", "spec")}
PLACE = {name: place for place, names in enumerate(MODULES) for name in names}


def module_of(path):
    """The module that a path below src is in: the longest that it begins with; None: it is in none."""
    parts = path.split("/")[:-1]
    return next(("/".join(parts[:n]) for n in range(len(parts), 0, -1) if "/".join(parts[:n]) in PLACE), None)


# Requirements are numbered from 01 in each family.
REQUIREMENTS = [f"{family}-{number:02}"
                for family, last in (("S", 22), ("W", 13), ("C", 14), ("A", 13), ("B", 6), ("P", 14))
                for number in range(1, last + 1)]

MAX_LINES = 800
ONE_TABLE = {"src/spec/spec_table.c"}  # all keys, one row each: it is read by the row

# What these say is a reason: who calls them puts "cannot VERB 'OBJECT'" or a place in a file before it. What the
# tools say is for a model.
REASONS = ("src/agent/profile/", "src/base/", "src/proof/card/", "src/client/", "src/seccomp/", "src/agent/mcp/",
           "src/proof/sign/sign.c", "src/spec/", "src/agent/tool/", "src/proof/verify/",
           "src/cgroup/cgroup_bus.c", "src/cgroup/cgroup_place.c", "src/result/result_archive.c", "src/result/result_card.c",
           "src/run/run_resident.c", "src/keeper/start/keeper_copy.c", "src/keeper/start/keeper_ids.c", "src/proof/log/log_event.c", "src/proof/log/log_read.c",
           "src/proof/record/record_read.c", "src/proof/record/record_read_values.c", "src/session/folder/session_folder.c")
SENTENCE = re.compile(r'\berr_(?:set|sys)\(\s*[^";]*?((?:"(?:[^"\\\n]|\\.)*"\s*)+)')

# Folders the project is developed in, and checkouts in somebody's home: true on one machine only.
LOCAL_PATH = re.compile(
    rb"/work/(?:main|shared)\b|\.\./shared\b|/(?:home|Users)/[\w.-]+/(?:[\w.-]+/)*bawn/(?:src|build)\b")


class Project:
    def __init__(self, root):
        self.root = root
        self.files = self.list_files()
        self.errors = []

    def list_files(self):
        """What git keeps or would keep; without git, everything but build folders."""
        git = subprocess.run(
            ["git", "-C", self.root, "ls-files", "-coz", "--exclude-standard", "--", "."],
            capture_output=True, check=False)
        if git.returncode == 0 and git.stdout:
            names = {os.fsdecode(name) for name in git.stdout.split(b"\0") if name}
        else:
            names = {str(path.relative_to(self.root)) for path in self.root.rglob("*")}
        return sorted(name for name in names if (self.root / name).is_file()
                      and not re.match(r"(\.git|build|build-[^/]*)/", name))

    def select(self, pattern):
        return [name for name in self.files if re.search(pattern, name)]

    def lines(self, name):
        text = (self.root / name).read_text(encoding="utf-8", errors="replace")
        return enumerate(text.split("\n"), 1)

    def error(self, name, line, message):
        self.errors.append(f"{name}:{line}: {message}")

    def test_problem(self, test):
        """What is wrong with the name of a test, tests/FILE or tests/FILE::CASE; None if nothing."""
        path, _, case = test.partition("::")
        if not path.startswith("tests/") or ".." in path.split("/"):
            return f"'{test}' is not the name of a test: write tests/FILE or tests/FILE::CASE"
        if not (self.root / path).is_file():
            return f"there is no test '{path}'"
        if case and case.encode() not in (self.root / path).read_bytes():
            return f"'{path}' has no case '{case}'"
        if "::" in test and not case:
            return f"'{test}' names no case after '::'"
        return None


def check_modules(project):
    for name in project.select(r"^src/[^/]+/.*\.[ch]$"):
        module = module_of(name.removeprefix("src/"))
        if not module:
            project.error(name, 1, "its module has no place in tools/check-project.py")
            continue
        for number, line in project.lines(name):
            include = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if not include:
                continue
            quote, header = include.groups()
            other = module_of(header) if "/" in header else module
            if not other:
                if quote == '"':
                    project.error(name, number, f"'{header}' is in no module")
            elif (module, other) in NEVER or (other != module and PLACE[other] >= PLACE[module]):
                project.error(name, number, f"module '{module}' may not include '{other}'")


def check_order(project):
    """docs/architecture.md tells the order of the modules as MODULES has it: a → b · c → d."""
    name = "docs/architecture.md"
    if name not in project.files:
        return
    text = (project.root / name).read_text(encoding="utf-8")
    told = [set(part.split(" · ")) for line in re.findall(r"^    (.+ → .+(?:\n    .+)*)", text, re.M)
            for part in re.sub(r"\s+", " ", line).split(" → ")]
    if told != MODULES:
        project.error(name, 1, "the order of the modules is not that of MODULES in tools/check-project.py")


def check_size(project):
    for name in project.select(r"\.[ch]$"):
        count = (project.root / name).read_bytes().count(b"\n")
        if count > MAX_LINES and name not in ONE_TABLE:
            project.error(name, count, f"{count} lines; {MAX_LINES} are the limit: make it two files")


def split_tests(text):
    """The items of a list as YAML writes it on one line: plain, 'single' or "double"."""
    items = re.findall(r'"([^"]*)"|\'([^\']*)\'|([^,\[\]\s][^,\[\]]*)', text)
    return [double or single or plain.strip() for double, single, plain in items]


def check_coverage(project):
    name = "docs/coverage.yaml"
    if name not in project.files:
        project.error(name, 1, "is missing")
        return
    seen, last, pending = {}, 1, ""
    for number, line in project.lines(name):
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        # A list may run on over several lines; what counts is the line that opens it.
        line, pending = f"{pending} {line}".strip(), ""
        if not line:
            continue
        if "[" in line and not line.endswith("]"):
            pending = line
            continue
        last = number
        entry = re.fullmatch(r"([A-Z]-\d\d): +(?:(pending)|\[(.+)\])", line)
        if not entry:
            project.error(name, number, f"write 'ID: pending' or 'ID: [test, test]', not '{line}'")
            continue
        requirement, _, tests = entry.groups()
        if requirement not in REQUIREMENTS:
            project.error(name, number, f"there is no requirement {requirement}")
        if requirement in seen:
            project.error(name, number, f"{requirement} stands already on line {seen[requirement]}")
        seen[requirement] = number
        for test in split_tests(tests or ""):
            problem = project.test_problem(test)
            if problem:
                project.error(name, number, f"{requirement}: {problem}")
    if pending:
        project.error(name, last, f"a list is not closed: '{pending[:60]}'")
    missing = [requirement for requirement in REQUIREMENTS if requirement not in seen]
    if missing:
        project.error(name, last, f"missing: {', '.join(missing)}")


def check_promises(project):
    name = "docs/promises.md"
    if name not in project.files:
        project.error(name, 1, "is missing")
        return
    lines = list(project.lines(name))
    is_rule = [bool(re.fullmatch(r"\s*\|?[\s:|-]*-[\s:|-]*\|?\s*", line)) for _, line in lines]
    for i, (number, line) in enumerate(lines):
        is_head = i + 1 < len(lines) and is_rule[i + 1]
        if not line.lstrip().startswith("|") or is_rule[i] or is_head:
            continue
        # In backquotes a case may have spaces; outside them a name ends with the word.
        tests = re.findall(r"`(tests/[^`]+)`", line)
        tests += re.findall(r"(?<![\w/`(])tests/[^\s|`,;)]+", re.sub(r"`[^`]*`", "", line))
        if not tests and not re.search(r"\bpending\b", line):
            project.error(name, number, "a promise names the test that keeps it, or says pending")
        for test in tests:
            problem = project.test_problem(test)
            if problem:
                project.error(name, number, problem)


def check_errors(project):
    for name in project.select(r"^src/.*\.c$"):
        if name.startswith(REASONS):
            continue
        text = (project.root / name).read_text(encoding="utf-8")
        for found in SENTENCE.finditer(text):
            said = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1]))
            line = text.count("\n", 0, found.start()) + 1
            if not said.startswith(("cannot ", "%")):
                project.error(name, line, f"an error begins with 'cannot': {said!r}")
            if "; " in said:
                project.error(name, line, f"advice belongs into err_hint(): {said!r}")


def check_links(project):
    for name in project.select(r"\.md$"):
        folder, is_code = (project.root / name).parent, False
        for number, line in project.lines(name):
            if re.match(r"\s*(```|~~~)", line):
                is_code = not is_code
            if is_code:
                continue
            line = re.sub(r"`[^`]*`", "", line)
            links = re.findall(r"\]\(\s*<?([^)\s>]+)", line)
            links += re.findall(r"^\s*\[[^\]]+\]:\s*<?([^\s>]+)", line)
            for link in links:
                path = link.split("#")[0]
                if not path or re.match(r"[a-z][a-z0-9+.-]*:", link):
                    continue
                if path.startswith("/") or not (folder / path).exists():
                    project.error(name, number, f"the link '{link}' leads nowhere")


def check_names(project):
    """A file that was renamed or merged must not live on in words."""
    known = {name.rsplit("/", 1)[-1] for name in project.files}
    for name in project.select(r"(^|/)meson\.build$"):  # what a build makes
        known |= set(re.findall(r"\b\w+\.[ch]\b", (project.root / name).read_text(encoding="utf-8")))
    for name in project.select(r"^(docs/.*|[A-Z]+)\.md$|^src/.*\.[ch]$"):
        for number, line in project.lines(name):
            if re.match(r"\s*#\s*include", line):
                continue
            if name.endswith(".md"):
                paths = re.findall(r"`(src/[\w/.-]+\.[ch])(?::\d+)?`", line)
                gone = [path for path in paths if path not in project.files and "NAME" not in path]
            else:
                gone = [file for file in re.findall(r"\b[a-z]+_[a-z0-9_]+\.[ch]\b", line) if file not in known]
            for file in gone:
                project.error(name, number, f"there is no file '{file}'")


def check_texts(project):
    for name in project.files:
        content = (project.root / name).read_bytes()
        for found in LOCAL_PATH.finditer(content):
            line = content.count(b"\n", 0, found.start()) + 1
            project.error(name, line, f"'{found.group().decode()}' is a path of one machine")
    # Below tests/ there is YAML that is wrong on purpose.
    for name in project.select(r"^(?!tests/).*\.ya?ml$"):
        for number, line in project.lines(name):
            if re.match(r"\s*\t", line):
                project.error(name, number, "a tab in the indentation")


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    project = Project(root)
    for check in (check_modules, check_order, check_size, check_coverage, check_promises, check_errors,
                  check_links, check_names, check_texts):
        check(project)
    for error in project.errors:
        print(error)
    if project.errors:
        sys.exit(1)
    print(f"project: {len(project.files)} files follow the rules")


if __name__ == "__main__":
    main()
