#!/usr/bin/env python3
"""Runs the command lines of README.md, docs/*.md and the man pages' EXAMPLES as somebody new to bawn would.

    lines.py BAWN GEN_DOCS [PART OF A NAME]        prints TAP

Each page has an account made by useradd, entered by su, with a fresh home. Its blocks are run in one shell, from the
first to the last:

    ```console          "$ " begins a command; what follows is what it prints, by both streams
    ```sh               a script; must end with status 0
    <!-- file: NAME --> before any other block: the block is written to this file
    <!-- status: N -->  before a console block: its last command ends with N (otherwise 0)
    <!-- not run: … --> before a block: why it cannot be run here; these are counted

In what is printed, a line of "…" stands for any lines and "…" within a line for any text; ids of runs and sessions are
any ids. A command with nothing below it may print anything. The word RUN in a command is the newest run's id. What a
page takes for granted (a project, an agent in PATH) is made by stage/PAGE.sh, which its shell reads first; the man
pages have that of the README.
"""

import contextlib
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
PATIENCE = 200  # seconds that no page takes
MOST_NOT_RUN = 16
MARK = "@@ lines.py"
STAGES = {"manual": "README"}
IDS = re.compile(r"\b(\d{8}-\d{6}-)?[0-9a-f]{8}\b")
LANGUAGES = ("console", "sh", "yaml", "json", "toml", "python", "text", "c")


@dataclasses.dataclass
class Line:
    """One command, and what is shown below it (None: nothing is)."""
    place: str
    command: str
    shown: list = None
    status: int = 0


def read_console(place, number, lines, status):
    """The commands of a console block; only the last may have another status than 0."""
    found = []
    for offset, line in enumerate(lines):
        if line.startswith("$ "):
            found.append(Line(f"{place}:{number + offset}", line[2:]))
        elif found and found[-1].shown is None and found[-1].command.endswith("\\"):
            found[-1].command += "\n" + line
        elif found:
            found[-1].shown = (found[-1].shown or []) + [line.rstrip()]
        else:
            raise ValueError(f"{place}:{number}: a console block begins with '$ '")
    found[-1].status = status
    return found


def read_page(path):
    """(what is to be run, why other blocks are not)"""
    place, lines, skipped, notes = path.name, [], [], {}
    text, fence = path.read_text(encoding="utf-8").splitlines(), None
    for number, line in enumerate(text, 1):
        note = re.fullmatch(r"<!-- (file|status|not run): (.*?) ?-->", line)
        if fence is None and note:
            notes[note[1]] = note[2]
        elif fence is None and line.startswith("```"):
            fence, block, start = line[3:].strip(), [], number + 1
            if fence not in LANGUAGES:
                raise ValueError(f"{place}:{number}: a block needs one of: {', '.join(LANGUAGES)}")
        elif fence is None and re.match(r"    +(\$ |bawn )", line):
            raise ValueError(f"{place}:{number}: a command is in a block of its own: ```console")
        elif fence is not None and line == "```":
            if "not run" in notes:
                skipped.append(f"{place}:{start}: {notes['not run']}")
            elif "file" in notes:
                name = re.sub(r"^'~/", "~/'", shlex.quote(notes["file"]))
                lines.append(Line(f"{place}:{start}", f"cat >{name} <<'END OF FILE'\n" + "\n".join(block) +
                                  "\nEND OF FILE", []))
            elif fence == "sh":
                lines.append(Line(f"{place}:{start}", "(\nset -e\n" + "\n".join(block) + "\n)"))
            elif fence == "console":
                lines += read_console(place, start, block, int(notes.get("status", 0)))
            fence, notes = None, {}
        elif fence is not None:
            block.append(line)
        elif line.strip():
            notes = {}
    return lines, skipped


def matches(shown, printed):
    """Is what was printed what the page shows?"""
    pattern = ""
    for line in shown:
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += r"[^\n]*".join(re.escape(part) for part in IDS.sub("ID", line).split("…")) + r" *\n"
    text = "".join(line.rstrip() + "\n" for line in IDS.sub("ID", printed).splitlines())
    return re.fullmatch(pattern, text) is not None


class Account:
    """An ordinary account, with bawn in its PATH."""

    def __init__(self, bawn):
        self.name = f"bawn-docs-{os.getpid()}"
        # Not below /tmp: some programs refuse a home there.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bawn-docs-", dir="/var/tmp"))
        self.folder.chmod(0o755)
        self.home = self.folder / "home"
        (self.folder / "bin").mkdir()
        for program in ("bawn", "bawn-vault"):
            shutil.copy(pathlib.Path(bawn).resolve().parent / program, self.folder / "bin")
        self.system("useradd", "--home-dir", self.home, "--shell", "/bin/bash", "-G", "users", self.name)

    @staticmethod
    def system(*words):
        """Another suite may be making an account at this moment: /etc/passwd has one lock."""
        for _ in range(60):
            done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
            if done.returncode == 0 or "lock" not in done.stderr:
                break
            subprocess.run(["sleep", "0.5"], check=True)
        if done.returncode != 0:
            raise RuntimeError(f"{words[0]}: {done.stderr}")

    def shell(self, script):
        """What a shell prints that reads the script after a login."""
        shutil.rmtree(self.home, ignore_errors=True)
        shutil.copytree("/etc/skel", self.home)
        subprocess.run(["chown", "-R", f"{self.name}:", str(self.home)], check=True)
        path = self.folder / "script"
        path.write_text(script, encoding="utf-8")
        # Ports of the pages are not those of other suites.
        words = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec su -l "$0" -c "$1"', self.name,
                 f"PATH={self.folder}/bin:$PATH bash {path}"]
        try:
            return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, errors="replace", timeout=PATIENCE, check=False).stdout
        except subprocess.TimeoutExpired as late:
            return (late.stdout or b"").decode(errors="replace")

    def end(self):
        self.system("userdel", "--force", self.name)
        shutil.rmtree(self.folder)


def script_of(page, lines):
    stage = HERE / "stage" / f"{STAGES.get(page, page)}.sh"
    parts = ["newest() { ls -t --time=ctime ~/.local/state/bawn/runs | head -n 1; }\n",
             stage.read_text(encoding="utf-8") if stage.exists() else "", f"\nprintf '\\n{MARK} staged %d\\n' $?\n"]
    for index, line in enumerate(lines):
        command = re.sub(r"\bRUN\b", "$RUN", line.command)
        before = "RUN=$(newest)\n" if command != line.command else ""
        parts.append(f"{before}eval {shlex.quote(command)} </dev/null 2>&1\nprintf '\\n{MARK} {index} %d\\n' $?\n")
    return "".join(parts)


def results(printed):
    """{command: (what it printed, its status)}; 'staged' is the stage."""
    found, start = {}, 0
    for mark in re.finditer(rf"\n{MARK} (\w+) (\d+)\n", printed):
        found[mark[1]] = printed[start:mark.start()], int(mark[2])
        start = mark.end()
    return found, printed[start:]


def judge(line, result, rest):
    if result is None:
        return f"the shell did not come to its end; it printed:\n{rest}"
    printed, status = result
    if status != line.status:
        return f"its status is {status} and not {line.status}; it printed:\n{printed}"
    if line.shown is not None and not matches(line.shown, printed):
        return "it printed:\n" + printed + "\nand the page shows:\n" + "\n".join(line.shown)
    return ""


def main():
    wanted = sys.argv[3] if len(sys.argv) > 3 else ""
    if os.geteuid() != 0:
        print("1..0 # SKIP only root can make an account")
        return
    count = failed = 0
    skipped = []

    def report(name, problem):
        nonlocal count, failed
        count, failed = count + 1, failed + bool(problem)
        print(f"{'not ok' if problem else 'ok'} {count} - {name}".replace("#", "\\#"))
        print("".join(f"# {text}\n" for text in problem.splitlines()), end="", flush=True)

    account = Account(sys.argv[1])
    with contextlib.ExitStack() as stack:
        stack.callback(account.end)
        manual = account.folder / "manual.md"
        with manual.open("w", encoding="utf-8") as out:
            subprocess.run([sys.argv[2], "examples.md"], stdout=out, check=True)
        for page in [TOP / "README.md", *sorted((TOP / "docs").glob("*.md")), manual]:
            if wanted not in page.name:
                continue
            try:
                lines, reasons = read_page(page)
            except ValueError as problem:
                report(page.name, str(problem))
                continue
            skipped += reasons
            if not lines:
                continue
            found, rest = results(account.shell(script_of(page.stem, lines)))
            staged = found.get("staged", (rest, 1))
            report(f"{page.name}: the stage is set", "" if staged[1] == 0 else staged[0])
            for index, line in enumerate(lines):
                first = line.command.splitlines()[0]
                report(f"{line.place}: {first}", judge(line, found.get(str(index)), rest))
    for reason in skipped:
        print(f"# not run: {reason}")
    report(f"at most {MOST_NOT_RUN} blocks are not run", "" if len(skipped) <= MOST_NOT_RUN else f"{len(skipped)} are not")
    print(f"1..{count}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
