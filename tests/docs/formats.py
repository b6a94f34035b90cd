#!/usr/bin/env python3
"""Configuration is YAML everywhere: docs/formats.md names every reader, and no other syntax is accepted.

    formats.py BAWN [PART OF A NAME]        prints TAP
"""

import json
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (TOP / "docs/formats.md").read_text(encoding="utf-8")

# Opening one of these is reading that format; the readers themselves are not users of it.
OPENS = {"YAML": (r"\byaml_read\(", {"src/spec/yaml.c"}), "JSON": (r"\bjson_read_init\(", {"src/base/json_read.c"})}
SECTIONS = {"YAML": "Configuration, by people: YAML", "JSON": "bawn's own data: JSON"}
READS = r"\b(?:file_read_(?:path|all|text|small|up_to)|fopen|fgets|getline|getdelim|fscanf)\("

# What is linked. None of them reads configuration but libfyaml; one more would have to be explained here.
LINKED = {"libcares", "libfyaml", "libpcre2-8", "libseccomp", "libsodium", "sqlite3", "openssl", "libpq", "threads"}

# The same two settings, in what is not YAML. JSON itself is: it has to be accepted.
OTHERS = {
    "TOML": "version = 1\nname = \"x\"\n\n[limits]\nmemory = \"1G\"\n",
    "INI": "[bawn]\nversion=1\n; a comment\nname=x\n",
    "JSON with comments": "{\n  // a comment\n  \"version\": 1,\n  \"name\": \"x\"\n}\n",
    "JSON with single quotes and bare words": "{version: 1, 'name': x, limits: {memory: 0x10,}} /* end */\n",
    "XML": "<?xml version=\"1.0\"?>\n<bawn version=\"1\"/>\n",
}

CASES = []


def case(function):
    CASES.append(function)
    return function


def sources():
    for path in sorted((TOP / "src").rglob("*.c")):
        text = path.read_text(encoding="utf-8")
        yield str(path.relative_to(TOP)), re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def section(title):
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert found, f"docs/formats.md has no section '{title}'"
    return found[1]


def module_of(name):
    """As the order of modules has it."""
    spec = importlib.util.spec_from_file_location("check_project", TOP / "tools/check-project.py")
    rules = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rules)
    return rules.module_of(name.removeprefix("src/"))


def differences(named, used, what):
    return "".join(f"{what}: {name} is not in docs/formats.md\n" for name in sorted(used - named)) + \
        "".join(f"{what}: docs/formats.md names {name}, which does not do that\n" for name in sorted(named - used))


@case
def every_file_that_opens_a_reader_is_in_the_page(_):
    wrong = ""
    for what, (pattern, itself) in OPENS.items():
        used = {name for name, text in sources() if re.search(pattern, text)} - itself
        named = set(re.findall(r"`(src/[\w/]+\.c)`", section(SECTIONS[what]))) - itself
        wrong += differences(named, used, what)
    assert not wrong, wrong


@case
def every_module_that_reads_files_is_in_the_page(_):
    used = {"src/" + module_of(name) for name, text in sources() if re.search(READS, text)} - {"src/base"}
    named = set(re.findall(r"^\| `(src/[\w/]+)` \|", section("Who reads files"), re.M))
    wrong = differences(named, used, "files")
    assert not wrong, wrong


@case
def no_other_parser_is_linked_or_written(_):
    linked = set()
    for path in [TOP / "meson.build", *(TOP / "src").rglob("meson.build")]:
        linked |= set(re.findall(r"(?<!declare_)dependency\('([^']+)'", path.read_text(encoding="utf-8")))
    assert linked == LINKED, linked ^ LINKED
    # Whoever uses libfyaml itself reads past the limits of yaml.c.
    past = {name for name, text in sources() if re.search(r"\bfy_\w+\(", text)} - {"src/spec/yaml.c"}
    assert not past, past


class Place:
    """A home with nothing in it."""

    def __init__(self, bawn, folder):
        self.bawn, self.folder = bawn, folder
        self.config = folder / "config"
        (self.config / "bawn/agents").mkdir(parents=True)
        (folder / "project").mkdir()
        self.policy = self.config / "bawn/policy.yaml"

    def write(self, path, text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def run(self, *words):
        env = {"HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.config), "PATH": os.environ["PATH"],
               "XDG_STATE_HOME": str(self.folder / "state")}
        return subprocess.run([self.bawn, *map(str, words)], cwd=self.folder / "project", env=env, timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def read_spec(place, text):
    return place.run("check", "-f", place.write(place.folder / "spec.yaml", text))


def read_policy(place, text):
    place.write(place.policy, text)
    done = place.run("check")
    place.policy.unlink()
    return done


def read_profile(place, text):
    place.write(place.config / "bawn/agents/own.yaml", text)
    return place.run("agent", "show", "own")


def read_demands(place, text):
    return place.run("verify", place.write(place.folder / "record", "{}"), "--policy",
                     place.write(place.folder / "demands.yaml", text))


def read_host(place, text):
    return place.run("plan", "--host", place.write(place.folder / "host.json", text), "--", "true")


def read_syscalls(place, text):
    return place.run("run", "--syscalls", place.write(place.folder / "calls.json", text), "--", "true")


READERS = {"spec": read_spec, "policy": read_policy, "agent profile": read_profile, "verify policy": read_demands,
           "host facts": read_host, "system call profile": read_syscalls}


def make_refusal(what, read, syntax, text):
    def one(place):
        done = read(place, text)
        assert done.returncode in (1, 2, 125), (done.returncode, done.stdout, done.stderr)
        # A sentence about the file, and not a complaint about something else.
        assert re.search(r"\.(?:yaml|json):(?:\d+:\d+:)? \S+ .+", done.stderr), done.stderr
    one.__name__ = f"{what} as {syntax} is refused with a sentence".replace(" ", "_")
    return one


for reader_name, reader in READERS.items():
    for syntax_name, written in OTHERS.items():
        case(make_refusal(reader_name, reader, syntax_name, written))


@case
def json_is_yaml(place):
    done = read_spec(place, json.dumps({"version": 1, "name": "x", "limits": {"memory": "1G"}}))
    assert done.returncode == 0, done.stderr
    done = read_policy(place, json.dumps({"version": 1, "defaults": {"limits": {"memory": "1G"}}}))
    assert done.returncode == 0, done.stderr


@case
def a_file_of_another_name_is_not_looked_for(place):
    for name in ("bawn.toml", "bawn.json", "bawn.ini", "bawn.yml", ".bawnrc"):
        place.write(place.folder / "project" / name, "this is nothing\n")
    for name in ("policy.toml", "policy.json", "policy.ini", "config"):
        place.write(place.config / "bawn" / name, "this is nothing\n")
    done = place.run("check")
    assert done.returncode == 0 and "nothing" not in done.stderr, (done.returncode, done.stderr)


def main():
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    chosen = [one for one in CASES if wanted in one.__name__]
    print(f"1..{len(chosen)}")
    failed = 0
    for number, one in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                one(Place(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder)))
                problem = ""
            except (AssertionError, subprocess.TimeoutExpired) as wrong:
                problem = str(wrong) or "wrong"
        failed += bool(problem)
        print("".join(f"# {line}\n" for line in problem.splitlines()), end="")
        print(f"{'not ok' if problem else 'ok'} {number} - {one.__name__}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
