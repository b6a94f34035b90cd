#!/usr/bin/env python3
"""Writes to protected paths, where they are watched: refused by the kernel as ever, and told.

    writes.py BAWN BREAKABLE        prints TAP
"""

import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import BREAKABLE, SLOW, TOOL, case, descendants, expect, main, wait_until  # noqa: E402

WATCH = "audit: {watch_protected: true}\n"

# Each write is tried in a way of its own; all are refused, and the folder is where it is for the relative ones.
WRITES = r"""
import os
def attempt(name, call):
    try:
        call()
        print(name, "done")
    except OSError as e:
        print(name, "refused" if e.errno in (1, 13, 16, 30) else e)
def put(path, **more):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o755, **more))
attempt("absolute", lambda: put(os.getcwd() + "/.git/hooks/absolute"))
attempt("messy", lambda: put("src/..//./.git/hooks/../hooks/messy"))
attempt("truncate", lambda: os.truncate(".git/config", 0))
attempt("move", lambda: os.rename(".envrc", "moved"))
attempt("over", lambda: os.rename("src/file", ".bashrc"))
attempt("away", lambda: os.rename(".git", "elsewhere"))
attempt("mode", lambda: os.chmod(".git/config", 0o777))
attempt("link", lambda: os.symlink("/tmp", ".git/hooks/link"))
folder = os.open(".git", os.O_PATH | os.O_DIRECTORY)
attempt("descriptor", lambda: put("hooks/descriptor", dir_fd=folder))
attempt("remove", lambda: os.unlink("config", dir_fd=folder))
os.chdir(".git/hooks")
attempt("relative", lambda: put("relative"))
attempt("up", lambda: os.mkdir("../../.vscode/up"))
"""
TOLD = [(".git/hooks/absolute", "openat"), (".git/hooks/messy", "openat"), (".git/config", "truncate"),
        (".envrc", "rename"), (".bashrc", "rename"), (".git", "rename"), (".git/config", "chmod"),
        (".git/hooks/link", "symlink"), (".git/hooks/descriptor", "openat"), (".git/config", "unlinkat"),
        (".git/hooks/relative", "openat"), (".vscode/up", "mkdir")]

# What a build does: files are made, moved, linked, opened again, removed.
BUILD = r"""
import os
os.mkdir("out")
for i in range(500):
    with open(f"out/{i}.tmp", "w") as file:
        file.write("x")
    os.rename(f"out/{i}.tmp", f"out/{i}")
    with open(f"out/{i}", "a") as file:
        file.write("y")
    os.chmod(f"out/{i}", 0o755)
print(sum(open(f"out/{i}").read() == "xy" for i in range(500)))
"""


def project(p):
    for path in (".git/hooks/sample", ".git/config", ".envrc", ".bashrc", "src/file"):
        p.write(f"project/{path}", "text\n")
    (p.project / ".git").chmod(0o755)


def snapshot(p):
    return {path: path.read_bytes() for path in sorted(p.project.rglob("*")) if path.is_file()}


def python(p, script, *options, **more):
    return p.run("run", "--write", *options, "--", "python3", "-c", script, **more)


def told(record):
    return [event for event in record["events"] if event["type"] == "write_denied"]


def expect_refused(said):
    words = [line.split(" ", 1) for line in said.stdout.splitlines()]
    assert len(words) == len(TOLD) and all(word == "refused" for _, word in words), said.stdout


@case
def writes_are_refused_as_ever_and_told(p):
    project(p)
    before = snapshot(p)
    said = expect(python(p, WRITES, *p.spec(WATCH)), 0)
    expect_refused(said)
    assert snapshot(p) == before
    record = p.record()
    rows = told(record)
    assert [(row["path"], row["call"]) for row in rows] == TOLD, rows
    for row in rows:
        assert row["program"].startswith("python3") and row["pid"] > 1 and row["times"] == 1, row
        assert "error" not in row and "arguments" not in row
        assert row["text"] == f"a write to '{row['path']}' by {row['program']} was refused ({row['call']}): " \
            "it is protected", row
    assert not [note for note in record["skipped"] if note["op"] == "tell"]
    assert record["guarantees"]["fs.protect"]["holds"] and record["guarantees"]["syscalls"]["holds"]


@case
def without_the_option_they_are_refused_and_not_told(p):
    # The twin: the wall does not depend on it.
    project(p)
    before = snapshot(p)
    said = expect(python(p, WRITES), 0)
    expect_refused(said)
    assert snapshot(p) == before and not told(p.record()) and "denied" not in said.stderr


@case
def everybody_hears_of_it(p):
    project(p)
    read, write = os.pipe()
    said = expect(p.sh("cd .git; echo evil >hooks/pre-commit; echo evil >>hooks/pre-commit; true", "--write",
                       "--status-fd", str(write), *p.spec(WATCH), pass_fds=(write,)), 0)
    os.close(write)
    with open(read, "rb") as lines:
        events = [json.loads(line) for line in lines]
    seen = [(event["path"], event["times"]) for event in events if event["event"] == "write_denied"]
    assert seen == [(".git/hooks/pre-commit", 1), (".git/hooks/pre-commit", 2)], events
    lines = [line for line in said.stderr.splitlines() if "denied" in line]
    assert len(lines) == 1 and "writes: denied to .git/hooks/pre-commit (by sh); why: bawn log --denials" in lines[0]
    shown = expect(p.run("log", "--denials"), 0, "a write to '.git/hooks/pre-commit' by sh was refused")
    assert "(2 times)" in shown.stdout, shown.stdout
    ocsf = expect(p.run("log", "--denials", "--format", "ocsf"), 0).stdout
    assert '"path":".git/hooks/pre-commit"' in ocsf.replace(": ", ":"), ocsf


@case
def other_writes_work_and_are_not_told(p):
    project(p)
    began = time.monotonic()
    said = expect(python(p, BUILD, *p.spec(WATCH)), 0)
    assert said.stdout == "500\n" and len(list((p.project / "out").iterdir())) == 500
    assert not told(p.record()) and "denied" not in said.stderr
    assert time.monotonic() - began < 10 * SLOW
    script = "cat .git/config && echo x >.git/index && rm .git/index && mkdir -p a/b .git/hooks && rmdir a/b a"
    said = expect(p.sh(script, "--write", *p.spec(WATCH)), 0)
    assert said.stdout == "text\n" and not told(p.record())


@case
def startup_commands_are_watched_too_and_by_every_profile(p):
    project(p)
    spec = p.spec(WATCH + 'syscalls: strict\nstartup_commands: ["echo x >made; (echo evil >.git/hooks/a) || true"]\n')
    expect(p.sh("echo evil >.envrc; cat made", "--write", *spec), 0, "x")
    assert [row["path"] for row in told(p.record())] == [".git/hooks/a", ".envrc"], told(p.record())


@case
def what_cannot_be_read_goes_on(p):
    # A path that is none: the kernel's answer, not ours.
    project(p)
    script = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True)\n"
              "print(libc.truncate(ctypes.c_void_p(1), 0), ctypes.get_errno())\n"
              "print(libc.truncate(b'x' * 5000, 0), ctypes.get_errno())\n"
              "print(libc.unlinkat(999, b'x', 0), ctypes.get_errno())\n")
    said = expect(python(p, script, *p.spec(WATCH)), 0)
    assert said.stdout == "-1 14\n-1 36\n-1 9\n", said.stdout
    assert not told(p.record())


@case
def what_the_filter_refuses_stays_refused(p):
    project(p)
    plain = expect(p.tool("refused", options=("--write",)), 0)
    before = [(event["call"], event["times"]) for event in p.record()["events"] if event["type"] == "syscall_denied"]
    said = expect(p.tool("refused", options=("--write", *p.spec(WATCH))), 0)
    after = [(event["call"], event["times"]) for event in p.record()["events"] if event["type"] == "syscall_denied"]
    assert "mount EPERM" in said.stdout and said.stdout == plain.stdout, said.stdout
    assert before == after and ("chmod", 2) in after, after


@case
def a_captured_project_has_nothing_to_watch(p):
    project(p)
    expect(p.sh("echo evil >.git/hooks/pre-commit; echo x >file", *p.spec(WATCH)), 0)
    record = p.record()
    assert not told(record) and not [note for note in record["skipped"] if note["op"] == "tell"]


@case
def many_paths_leave_room_for_others(p):
    project(p)
    script = "i=0; while [ $i -lt 200 ]; do true >.git/hooks/$i; i=$((i+1)); done 2>/dev/null; /tool refused"
    expect(p.sh(script, "--write", "-v", f"{TOOL}:/tool", *p.spec(WATCH)), 0)
    events = p.record()["events"]
    assert len(told(p.record())) == 64
    assert [event["times"] for event in events if event["type"] == "syscalls_untold"] == [136], events
    assert "mount" in [event.get("call") for event in events]


@case
def a_keeper_that_hears_no_more_ends_the_run(p):
    # Otherwise no file could be written, for no reason that anybody is told.
    project(p)
    began = time.monotonic()
    said = python(p, "open('file', 'w'); print('RAN ON')\nimport time; time.sleep(60)", *p.spec(WATCH),
                  program=BREAKABLE, env={"BAWN_TEST_BREAK": "listener"})
    assert said.returncode == 137 and "RAN ON" not in said.stdout and "Errno" not in said.stderr, said
    assert "audit.watch_protected" in said.stderr and time.monotonic() - began < 10 * SLOW, said.stderr


@case
def who_writes_ends_with_the_keeper(p):
    project(p)
    script = "import os\nprint('begun', flush=True)\nwhile True: os.close(os.open('file', os.O_WRONLY | os.O_CREAT))"
    process = p.start("run", "--write", *p.spec(WATCH), "--", "python3", "-c", script)
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    process.wait()
    wait_until(lambda: not descendants(), 5, "all end")
    process.communicate()


if __name__ == "__main__":
    main()
