#!/usr/bin/env python3
"""A writable project: what runs on the host later stays as it is, and the rest works as ever.

    protect.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

The attacks on a path are tried in one run by a script in the cage, which tells each one's result. The same
script runs without the protection too: an attack that fails there as well would prove nothing.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import records  # noqa: E402
from place import (BREAKABLE, SLOW, Skip, case, expect, expect_refusal, descendants, in_mount_namespace, main, of_users,  # noqa: E402
                   output, reap, wait_until)
import accounts  # noqa: E402

FOLDERS = (".claude", ".codex", ".gemini", ".idea", ".opencode", ".vscode", ".git/hooks")
FILES = (".bash_profile", ".bashrc", ".envrc", ".gitmodules", ".mcp.json", ".profile", ".zshrc", "bawn.yaml",
         ".git/commondir", ".git/config", ".git/config.worktree", ".git/info/attributes")

# Runs in the cage: argv is a JSON list of paths. Each attack has a name of its own and a result. What works is put
# right again, so that the next one finds what it needs.
ATTACKS = r"""
import ctypes, json, os, shutil, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
results = []
shutil.copytree(".", "/tmp/before", symlinks=True, ignore=lambda at, names: [
    name for name in names if not os.path.isfile(os.path.join(at, name)) and not os.path.isdir(os.path.join(at, name))])

def put_right():
    for entry in os.scandir("."):
        if entry.name != "scratch":
            shutil.rmtree(entry) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)
    shutil.copytree("/tmp/before", ".", symlinks=True, dirs_exist_ok=True)

def attack(name, path, call):
    try:
        call()
    except OSError as e:
        results.append((name, path, e.strerror))
    else:
        results.append((name, path, "done"))
        put_right()

def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def exchange(a, b):
    check(libc.syscall(316, -100, a.encode(), -100, b.encode(), 2))

def put(path, flags):
    fd = os.open(path, flags, 0o755)
    os.write(fd, b"evil\n")
    os.close(fd)

def through_a_link(path, other):
    os.link(path, other)
    put(other, os.O_WRONLY)

def temporary(path, folder):
    fd = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o755)
    os.write(fd, b"evil\n")
    check(libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, path.encode(), 0x400))

def from_its_folder(path):
    at = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY)
    fd = os.open(os.path.basename(path), os.O_WRONLY | os.O_APPEND, dir_fd=at)
    os.write(fd, b"evil\n")

def fresh(kind):
    global count
    count += 1
    name = f"scratch/{kind}{count}"
    os.mkdir(name) if kind == "folder" else put(name, os.O_CREAT | os.O_WRONLY)
    return name

count = 0
os.mkdir("scratch")
for path in json.loads(sys.argv[1]):
    folder = os.path.dirname(path) or "."
    is_folder = os.path.isdir(path)
    attack("create", path, lambda: put(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    attack("write", path, lambda: put(path, os.O_WRONLY | os.O_CREAT))
    attack("truncate by opening", path, lambda: put(path, os.O_WRONLY | os.O_TRUNC))
    attack("truncate", path, lambda: os.truncate(path, 0))
    attack("write from its folder", path, lambda: from_its_folder(path))
    attack("write by the root's other name", path,
           lambda: put("/proc/self/root" + os.path.abspath(path), os.O_WRONLY))
    attack("write into it", path, lambda: put(path + "/evil", os.O_WRONLY | os.O_CREAT))
    attack("make a folder in it", path, lambda: os.mkdir(path + "/folder"))
    attack("mode", path, lambda: os.chmod(path, 0o777))
    attack("times", path, lambda: os.utime(path, (1, 1)))
    attack("attribute", path, lambda: os.setxattr(path, "user.evil", b"1"))
    attack("link and write", path, lambda: through_a_link(path, f"scratch/link{len(results)}"))
    attack("link over it", path, lambda: os.link(fresh("file"), path))
    attack("symlink", path, lambda: os.symlink("/tmp/evil", path))
    attack("temporary file", path, lambda: temporary(path, folder))
    attack("pipe", path, lambda: os.mkfifo(path))
    attack("socket", path, lambda: socket.socket(socket.AF_UNIX).bind(path))
    attack("folder", path, lambda: os.mkdir(path))
    attack("move over it", path, lambda: os.rename(fresh("folder" if is_folder else "file"), path))
    attack("move a folder over it", path, lambda: os.rename(fresh("folder"), path))
    attack("exchange", path, lambda: exchange(fresh("file"), path))
    attack("exchange with a folder", path, lambda: exchange(path, fresh("folder")))
    attack("move away", path, lambda: os.rename(path, f"scratch/moved{len(results)}"))
    attack("remove", path, lambda: os.unlink(path))
    attack("remove the folder", path, lambda: os.rmdir(path))
    while folder != ".":
        attack("exchange what leads there", folder, lambda: exchange(folder, fresh("folder")))
        attack("move what leads there", folder, lambda: os.rename(folder, f"scratch/moved{len(results)}"))
        attack("move something there", folder, lambda: os.rename(fresh("folder"), folder))
        attack("remove what leads there", folder, lambda: os.rmdir(folder))
        folder = os.path.dirname(folder) or "."
print(json.dumps(results))
"""


# --- the project ---

def as_owner(p, *words, cwd=None, status=0):
    """A command on the host, as the project's owner."""
    env = {"HOME": str(p.home), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run([*accounts.login(p.uid), *words], cwd=cwd or p.project, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done
    return done.stdout


def repository(p):
    as_owner(p, "git", "init", "-q", "-b", "main", ".")
    as_owner(p, "git", "config", "user.name", "Somebody")
    as_owner(p, "git", "config", "user.email", "somebody@example.org")
    p.write("project/code", "code\n")
    p.write("project/src/deep/file", "file\n")
    as_owner(p, "git", "add", "-A")
    as_owner(p, "git", "commit", "-qm", "first")


def fill(p, paths):
    """Makes those of the paths that are missing."""
    for path in paths:
        if not (p.project / path).exists():
            name = f"{path}/file" if path in FOLDERS else path
            text = {".git/commondir": ".\n", "bawn.yaml": "version: 1\n"}
            p.write(f"project/{name}", text.get(path, ""))


def snapshot(top, leave_out=("scratch",)):
    """Everything that can be told of the files below a folder, with their inodes, attributes and times."""
    found = {}
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if os.path.relpath(os.path.join(folder, name), top) not in leave_out]
        for name in [".", *folders, *files]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            found[os.path.relpath(path, top)] = (
                st.st_ino, st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_size, st.st_mtime_ns, st.st_ctime_ns,
                sorted((key, os.getxattr(path, key, follow_symlinks=False))
                       for key in os.listxattr(path, follow_symlinks=False)))
    return found


def of_paths(shot, paths):
    return {path: about for path, about in shot.items()
            if any(path == one or path.startswith(one + "/") for one in paths)}


def attack(p, paths, *options, **more):
    done = expect(p.run("run", *options, "--", "python3", "-c", ATTACKS, json.dumps(paths), **more), 0)
    return [tuple(row) for row in json.loads(done.stdout)]


def expect_held(p, paths, *options):
    """All attacks on the paths fail, and the host's are what they were: there, or not."""
    before = snapshot(p.project)
    for name, path, result in attack(p, paths, "--write", *options):
        assert result != "done", f"{name}: {path}"
    after = snapshot(p.project)
    assert of_paths(after, paths) == of_paths(before, paths)
    # The attacks made a folder, and so changed the one that it is in.
    assert {k: v for k, v in after.items() if k != "."} == {k: v for k, v in before.items() if k != "."}
    assert before["."][:4] == after["."][:4] and before["."][8] == after["."][8]
    row = p.record()["guarantees"]["fs.protect"]
    assert row["holds"] and row["vantage"] == "outside" and "paths, held by" in row["seen"], row
    shutil.rmtree(p.project / "scratch")


# --- attacks ---

@case
def what_is_there_cannot_be_changed(p):
    repository(p)
    fill(p, FILES + FOLDERS)
    expect_held(p, FILES + FOLDERS)


@case
def what_is_missing_cannot_be_made(p):
    repository(p)
    shutil.rmtree(p.project / ".git/hooks")
    (p.project / ".git/info/exclude").unlink()
    expect_held(p, FILES + FOLDERS)


@case
def without_the_protection_every_attack_works(p):
    paths = [".envrc", ".vscode", ".git/info/attributes", ".git/hooks", ".mcp.json"]
    p.write("project/.git/hooks/one", "")
    p.make("project/.git/info")
    p.make("project/.vscode")
    p.write("project/.envrc", "")
    rows = attack(p, paths, "--write", program=BREAKABLE, env={"BAWN_TEST_BREAK": "protect,look"})
    done = {name for name, _, result in rows if result == "done"}
    # Not each on everything: what is missing cannot be removed. But each somewhere.
    assert done == {name for name, _, _ in rows}, {name for name, _, _ in rows} - done


@case
def it_holds_in_the_projects_own_place(p):
    repository(p)
    fill(p, (".git/config", ".vscode", ".envrc"))
    expect_held(p, (".git/config", ".git/hooks", ".vscode", ".envrc", ".mcp.json"),
                *p.spec("project: {cage: project}\n"))


@case
def it_holds_for_a_made_up_root(p):
    repository(p)
    fill(p, (".vscode", ".envrc"))
    expect_held(p, (".git/config", ".git/hooks", ".vscode", ".envrc", ".mcp.json"), "--fakeroot")


@case
def a_git_that_is_a_file_is_held(p):
    main_one = p.make("main")
    repository(p)
    as_owner(p, "git", "worktree", "add", "-q", str(main_one / "linked"))
    shutil.rmtree(p.project / "src")
    linked = main_one / "linked"
    before = (linked / ".git").read_text()
    script = "echo evil >.git; rm .git; mv .git x; ln .git y; mkdir .git/hooks; git init . 2>&1; echo x >new; cat .git"
    done = expect(p.sh(script, "--write", "--project", str(linked)), 0)
    assert done.stdout.endswith(before) and (linked / ".git").read_text() == before
    assert (linked / "new").exists() and not (linked / "x").exists()


@case
def a_repository_that_a_git_file_names_is_held_where_it_is(p):
    repository(p)
    for text in ("gitdir: ./deep/bare\n", f"gitdir: {p.project}/deep/bare\n"):
        (p.project / "deep").mkdir()
        (p.project / ".git").rename(p.project / "deep/bare")
        p.write("project/.git", text)
        p.own(p.project / "deep")
        expect_held(p, ["deep/bare/config", "deep/bare/hooks", "deep/bare/commondir", ".git"])
        (p.project / ".git").unlink()
        (p.project / "deep/bare").rename(p.project / ".git")
        (p.project / "deep").rmdir()
    p.write("project/other/.git", "")
    shutil.rmtree(p.project / ".git")
    p.write("project/.git", "gitdir: missing\n")
    expect(p.sh("true", "--write"), 125, "cannot use '.git' of the project: it leads to 'missing'", "allow_degraded")
    p.write("project/.git", "gitdir: /nowhere/at/all\n")
    expect_held(p, [".git"])


@case
def hooks_are_held_where_git_takes_them_from(p):
    repository(p)
    as_owner(p, "git", "config", "core.hooksPath", ".husky/_")
    expect_held(p, [".husky/_", ".husky"])
    p.write("project/.husky/_/pre-commit", "theirs\n")
    expect_held(p, [".husky/_"])
    git = "git -c user.name=Somebody -c user.email=somebody@example.org"
    expect(p.sh(f"echo more >>code; echo more >.husky/other; git add -A; {git} commit -qm more", "--write"), 0)
    spec = p.spec("project: {mode: writable, write_allowlist: [$PROJECT/.husky/**]}\n")
    assert p.sh("echo evil >.husky/_/pre-commit", *spec).returncode == 2
    spec = p.spec("project: {mode: writable, write_allowlist: [$PROJECT/.husky/_/**]}\n")
    assert p.sh("echo evil >.husky/_/pre-commit", *spec).returncode == 2
    assert (p.project / ".husky/_/pre-commit").read_text() == "theirs\n"


@case
def no_repository_can_be_made(p):
    p.write("project/code", "")
    before = snapshot(p.project)
    expect(p.sh("git init . || mkdir .git/hooks || rmdir .git || mv .git x || git clone . .git", "--write"), 128)
    expect(p.sh("git status", "--write"), 128, "not a git repository")
    assert snapshot(p.project) == before


@case
def more_paths_can_be_protected(p):
    p.write("project/deploy/keys/one", "key\n")
    p.write("project/deploy/notes", "")
    spec = p.spec("project: {mode: writable, protect: [deploy/keys, later/or/never, Makefile]}\n")
    before = snapshot(p.project)
    rows = [row for path in (["deploy/keys", "later/or/never", "later", "Makefile"],)
            for row in attack(p, path, *spec)]
    bad = [row for row in rows if row[2] == "done"]
    assert not bad, bad
    shutil.rmtree(p.project / "scratch")
    after = snapshot(p.project)
    assert of_paths(after, ["deploy"]) == of_paths(before, ["deploy"]) and set(before) == set(after)
    expect(p.sh("echo x >>deploy/notes && mkdir deploy/new", *spec), 0)
    # All of a folder is more than some of it.
    spec = p.spec("project: {mode: writable, protect: [.git, deploy]}\n")
    repository(p)
    assert p.sh("echo x >.git/HEAD", *spec).returncode and p.sh("echo x >deploy/notes", *spec).returncode


@case
def protected_paths_are_held_in_parts_too(p):
    repository(p)
    p.write("project/deploy/keys", "key\n")
    paths = [".git/config", ".git/hooks", ".git/info/attributes"]
    for lists in ("write_allowlist: [$PROJECT/.git/**]", "write_allowlist: [$PROJECT/.git/**, $PROJECT/src/deep/**]",
                  "read_allowlist: [$PROJECT/.git/**, $PROJECT/src/**]",
                  "read_allowlist: [$PROJECT/.git/**, $PROJECT/.git/config, $PROJECT/src/**]",
                  "write_allowlist: [$PROJECT/**, $PROJECT/.git/**], read_allowlist: [$PROJECT/**, $PROJECT/.git/**]"):
        spec = p.spec("project: {mode: writable, protect: [deploy/keys], " + lists + "}\n")
        before = of_paths(snapshot(p.project), paths)
        script = ("echo evil >.git/config; rm -rf .git/hooks; echo evil >.git/hooks/evil; echo evil >.git/info/attributes; "
                  "mv .git/info .git/other; mkdir .git/info; mv .git g; echo x >.envrc; echo mine >.git/mine; cat .git/mine")
        output(p.sh(script, *spec), "mine\n")
        assert of_paths(snapshot(p.project), paths) == before, lists
        (p.project / ".git/mine").unlink()
    # Where nothing protected can be written, it is the project itself.
    spec = p.spec("project: {mode: writable, write_allowlist: [$PROJECT/src/**]}\n")
    output(p.sh("echo new >src/new; echo evil >>.git/config; grep -c ' /work/src .* overlay ' /proc/self/mountinfo; "
                "mv src/deep src/other && cat src/new", *spec), "0\nnew\n")
    assert p.record()["guarantees"]["fs.protect"]["holds"]
    # And a part of something protected is for reading.
    p.write("project/.vscode/settings.json", "{}\n")
    spec = p.spec("project: {mode: writable, read_allowlist: [$PROJECT/.vscode/settings.json, $PROJECT/src/**]}\n")
    output(p.sh("echo evil >.vscode/settings.json; cat .vscode/settings.json; echo x >src/more", *spec), "{}\n")
    spec = p.spec("project: {mode: writable, write_allowlist: [$PROJECT/.vscode/**]}\n")
    expect(p.sh("true", *spec), 125, "$PROJECT/.vscode/** is protected in mode writable")


# --- the host goes on ---

def in_turns(p, script, steps, **more):
    """Runs a script that prints a line and waits for one; `steps` are done on the host in between."""
    process = p.start("run", "--write", "--", "sh", "-c", script, **more)
    try:
        for step in steps:
            line = process.stdout.readline()
            assert line == b"ready\n", line + process.stderr.read()
            step()
            process.stdin.write(b"go\n")
            process.stdin.flush()
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(script, process.returncode, out.decode(), err.decode())


def replace(p, path, text):
    """As editors and git do."""
    draft = p.write(f"project/{path}.new", text)
    draft.rename(p.project / path)


@case
def what_the_host_replaces_stays_protected(p):
    repository(p)
    fill(p, [".envrc", ".vscode"])

    def change():
        replace(p, ".git/config", "theirs\n")
        replace(p, ".envrc", "theirs\n")
        replace(p, ".mcp.json", "theirs\n")
        shutil.rmtree(p.project / ".vscode")
        (p.project / ".git/hooks").rename(p.project / ".git/hooks.old")

    script = ("echo ready; read go; for f in .git/config .envrc .mcp.json; do echo evil >>$f; rm $f; mv $f x; done; "
              "mkdir .vscode .git/hooks; echo evil >.vscode/evil; echo evil >.git/hooks/evil; "
              "mv .vscode x; mv .git/hooks x; echo mine >new")
    expect(in_turns(p, script, [change]), 0)
    for path in (".git/config", ".envrc", ".mcp.json"):
        assert (p.project / path).read_text() == "theirs\n"
    assert not (p.project / ".vscode").exists() and not (p.project / ".git/hooks").exists()
    assert (p.project / "new").read_text() == "mine\n"


@case
def what_the_host_changes_is_seen(p):
    repository(p)

    def change():
        replace(p, "code", "theirs\n")
        replace(p, "src/deep/file", "theirs\n")
        p.write("project/src/new", "new\n")
        p.write("project/existing", "changed\n")
        shutil.rmtree(p.project / "gone")

    p.make("project/gone")
    p.write("project/existing", "old\n")
    look = "cat code src/deep/file existing src/new 2>/dev/null; ls -d gone 2>/dev/null"
    script = f"{look}; echo ready; read go; sleep {SLOW}; {look}; echo mine >>code; echo mine >src/new"
    process_env = {"BAWN_TEST_BREAK": "refresh,look"}
    for env, is_seen in ((None, True), (process_env, False)):
        p.make("project/gone")
        replace(p, "code", "code\n")
        replace(p, "src/deep/file", "file\n")
        replace(p, "existing", "old\n")
        (p.project / "src/new").unlink(missing_ok=True)
        process = p.start("run", "--write", "--", "sh", "-c", script, env=env,
                          program=BREAKABLE)
        lines = []
        while b"ready\n" not in lines:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        assert lines == [b"code\n", b"file\n", b"old\n", b"gone\n", b"ready\n"], lines
        change()
        out, _ = process.communicate(b"go\n", timeout=20)
        seen = out == b"theirs\ntheirs\nchanged\nnew\n"
        assert seen == is_seen, out
        if is_seen:
            assert (p.project / "code").read_text() == "theirs\nmine\n"
            assert (p.project / "src/new").read_text() == "mine\n"


# --- nothing is left ---

@case
def nothing_is_left_on_the_host(p):
    repository(p)
    before = snapshot(p.home)
    expect(p.sh("cat code .envrc .vscode/x; ls -laR . >/dev/null", "--write"), 0)
    assert snapshot(p.home) == before
    script = ("mkdir -p a/b made && echo x >a/b/c && mv a/b made/ && mv made/b/c . && ln c d && ln -s c e && "
              "mkdir made/empty && rm -r src && mkdir src && mv c made/ && cp -r made other && touch other/.wh..wh..opq")
    expect(p.sh(script, "--write"), 0)
    after = snapshot(p.home)
    new = {"a", "made", "made/b", "made/c", "made/empty", "other", "other/b", "other/c", "other/empty",
           "other/.wh..wh..opq", "d", "e", "src"}
    found = {path.removeprefix("project/") for path in after.keys() - before.keys()}
    assert {path for path in found if not path.endswith("/.")} == new - {"src"}, found
    for path, about in after.items():
        assert not about[8] and about[2:4] == (p.uid, p.uid), (path, about)
    runs = list((p.state / "bawn/runs").iterdir())
    assert runs and all({entry.name for entry in run.iterdir()} == records.FILES for run in runs), runs


@case
def a_killed_keeper_leaves_nothing(p):
    repository(p)
    before = snapshot(p.project)
    process = p.start("run", "--write", "--", "sh", "-c", "echo ready; sleep 60")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    wait_until(lambda: reap() or not descendants(), 5, "the end of the cage")
    assert snapshot(p.project) == before
    run, = (p.state / "bawn/runs").iterdir()
    assert {entry.name for entry in run.iterdir()} == records.FILES - {records.FILE}


@case
def two_runs_at_once_share_the_project(p):
    repository(p)
    first = p.start("run", "--write", "--", "sh", "-c", "echo ready; read go; cat mine; echo evil >.envrc")
    assert first.stdout.readline() == b"ready\n"
    expect(p.sh("echo mine >mine; echo evil >.envrc; git status --short", "--write"), 0, "?? mine")
    out, _ = first.communicate(b"go\n", timeout=20)
    assert out == b"mine\n" and not (p.project / ".envrc").exists()


# --- work goes on ---

@case
def git_works(p):
    repository(p)
    git = "git -c user.name=Somebody -c user.email=somebody@example.org"
    script = f"""set -e
        test -z "$(git status --porcelain)"
        echo more >>code; mkdir new; echo new >new/file
        git add -A; {git} commit -qm second
        git checkout -q -b topic HEAD~1; echo topic >topic; git add topic; {git} commit -qm topic
        {git} rebase -q main; git checkout -q main; {git} merge -q topic
        git mv src/deep src/other; {git} commit -qm moved
        echo draft >>code; {git} stash -q; git stash list | grep -q WIP; git stash pop -q; git checkout -q code
        git worktree add -q scratch/tree topic; git -C scratch/tree status --short; git worktree list | wc -l
        git worktree remove scratch/tree; rmdir scratch
        git tag -a -m tag v1 2>/dev/null || {git} tag -a -m tag v1
        git gc -q; git fsck --no-dangling 2>&1; git log --oneline | wc -l; git status --porcelain; git clean -nd"""
    done = expect(p.sh(script, "--write"), 0)
    assert done.stdout == "2\n4\nWould remove .claude/\nWould remove .codex/\nWould remove .gemini/\nWould remove .idea/\n" \
        "Would remove .opencode/\nWould remove .vscode/\n", done
    assert as_owner(p, "git", "status", "--porcelain") == "" and as_owner(p, "git", "fsck", "--no-dangling") == ""
    assert len(as_owner(p, "git", "log", "--oneline").splitlines()) == 4
    expect(p.sh("git config core.fsmonitor ./evil", "--write"), 4)
    assert "fsmonitor" not in (p.project / ".git/config").read_text()


@case
def files_are_made_and_moved_as_ever(p):
    p.write("project/src/file", "text\n")
    script = r"""
import ctypes, errno, fcntl, mmap, os, socket
os.makedirs("src/a/b"); os.rename("src/a/b", "src/c"); os.rename("src/c", "src/a/c"); os.rename("src/file", "top")
os.link("top", "src/twin"); assert os.stat("top").st_nlink == 2 and os.stat("top").st_ino == os.stat("src/twin").st_ino
os.symlink("top", "src/link"); os.mkfifo("src/pipe")
try: fd = os.open("src", os.O_TMPFILE | os.O_RDWR)
except OSError as e: assert e.errno == errno.EOPNOTSUPP; open("src/made", "w").write("made")  # overlays of old kernels
else:
    os.write(fd, b"made")
    assert ctypes.CDLL(None).linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"src/made", 0x400) == 0
with open("top", "r+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)
    with mmap.mmap(file.fileno(), 4) as memory: memory[:4] = b"TEXT"
with open("sparse", "wb") as file: file.truncate(1 << 30)
os.setxattr("top", "user.mine", b"1"); os.chmod("top", 0o640); os.utime("top", (5, 5))
server = socket.socket(socket.AF_UNIX); server.bind("src/socket"); server.listen()
socket.socket(socket.AF_UNIX).connect("src/socket")
name = "\udcff\n x" * 20; open(name, "w").close(); os.rename(name, "src/" + name)
deep = "d/" * 200; os.makedirs(deep); open(deep + "f", "w").close()
try: os.rename("src/a", "moved")
except OSError as e: print(e.strerror)
"""
    done = expect(p.run("run", "--write", "--", "python3", "-c", script), 0)
    assert done.stdout == "Invalid cross-device link\n", done  # a folder, to the project's top: see promises.md
    top = p.project / "top"
    assert top.read_text() == "TEXT\n" and top.stat().st_mode & 0o777 == 0o640 and top.stat().st_mtime == 5
    assert os.getxattr(top, "user.mine") == b"1" and os.path.samefile(top, p.project / "src/twin")
    assert (p.project / "src/made").read_text() == "made" and (p.project / "sparse").stat().st_size == 1 << 30
    assert os.readlink(p.project / "src/link") == "top"
    expect(p.sh("mv src/a moved && ls -d moved/c && rm -r d && mv moved src/back", "--write"), 0)
    assert (p.project / "src/back/c").is_dir()


@case
def what_stands_for_missing_names_is_no_file(p):
    repository(p)
    output(p.sh("git status --porcelain; git add -A && git status --porcelain; git ls-files; "
                "for f in .envrc .mcp.json .gitmodules; do test -f $f && echo $f; cat $f; done; "
                "ls -A .claude .vscode; cat .git/info/attributes .git/config.worktree", "--write"),
           "code\nsrc/deep/file\n.claude:\n\n.vscode:\n")


# --- what cannot be held ---

@case
def what_cannot_be_held_is_refused(p):
    p.write("project/file", "text\n")
    p.write("dotfiles", "theirs\n")
    links = {".envrc": ("file", "missing", "../missing", "chain", str(p.project / "file"), ".")}
    os.symlink("../dotfiles", p.project / "chain")
    before = snapshot(p.project)
    for name, targets in links.items():
        for target in targets:
            os.symlink(target, p.project / name)
            expect_refusal(p.sh("echo ran", "--write"), f"cannot protect '{name}' of the project: it is a link to '{target}'",
                           "allow_degraded: [fs.protect]")
            (p.project / name).unlink()
    # One that leads out of the project is held itself.
    os.symlink("../dotfiles", p.project / ".envrc")
    expect(p.sh("rm .envrc; ln -sf file .envrc; mv file .envrc; echo evil >.envrc", "--write"), 2)
    assert os.readlink(p.project / ".envrc") == "../dotfiles" and (p.home / "dotfiles").read_text() == "theirs\n"
    (p.project / ".envrc").unlink()
    os.link(p.project / "file", p.project / ".mcp.json")
    expect_refusal(p.sh("echo ran", "--write"), "cannot protect '.mcp.json' of the project: it has another name")
    (p.project / ".mcp.json").unlink()
    done = expect(p.sh("echo ran", "--write", env={"XDG_STATE_HOME": str(p.project / "src")}), 125)
    assert "would show bawn's own state" in done.stderr and done.stdout == "", done
    shutil.rmtree(p.project / "src")
    assert snapshot(p.project).keys() == before.keys()


@case
def a_bind_is_no_way_around(p):
    parent = p.make("project/deep/project")
    p.write("project/deep/project/.envrc", "theirs\n")
    p.write("project/deep/project/src/file", "")
    for source in (p.project, parent, parent / ".envrc"):
        done = p.sh("echo ran", "--write", "--project", str(parent), "-v", f"{source}:/data:rw")
        expect(done, 125, "could be written through the bind of")
    expect(p.sh("echo x >/data/new", "--write", "--project", str(parent), "-v", f"{parent}/src:/data:rw"), 0)
    for target in ("/work/.envrc", "/work/.vscode", "/work/.git"):
        p.make("project/deep/project/.git")
        source = parent / ".envrc" if target.endswith("rc") else parent / "src"
        expect_refusal(p.sh("echo ran", "--write", "--project", str(parent), "-v", f"{source}:{target}"),
                       f"at '{target}': that path is protected, or leads to")
    expect(p.sh("cat /data/.envrc", "--write", "--project", str(parent), "-v", f"{parent}:/data:ro"), 0, "theirs")


@contextlib.contextmanager
def state_elsewhere(p):
    """The variables of a state on another file system than the project's."""
    with tempfile.TemporaryDirectory(prefix="bawn-cage-", dir="/dev/shm") as other:
        os.chown(other, p.uid, p.uid)
        if os.stat(other).st_dev == p.project.stat().st_dev:
            raise Skip("there is one file system for all")
        yield {"XDG_STATE_HOME": other}


def left_beside(p):
    """Folders for the work of layers that were left where bawn may make them."""
    places = (p.project.parent, p.home, pathlib.Path("/var/tmp"), pathlib.Path("/tmp"))
    return sorted({path for place in places for path in place.glob(".bawn-hold-*")})


@case
def the_state_can_be_on_another_file_system(p):
    p.write("project/.envrc", "theirs\n")
    with state_elsewhere(p) as env:
        done = expect(p.sh("echo mine >new; echo mine >.envrc; mkdir .vscode; cat .envrc", "--write", env=env), 0)
        assert done.stdout == "theirs\n" and (p.project / "new").read_text() == "mine\n", done
        assert not (p.project / ".vscode").exists() and left_beside(p) == []
        # The twin: the same command, and nobody holds it.
        expect(p.sh("mkdir .vscode; echo mine >.envrc", "--write", program=BREAKABLE,
                    env={**env, "BAWN_TEST_BREAK": "protect,look"}), 0)
        assert (p.project / ".envrc").read_text() == "mine\n"


@case
def the_next_run_removes_what_was_left_beside_the_project(p):
    with state_elsewhere(p) as env:
        # What the kernel makes, and what a keeper that lives has locked.
        for name in ("hold-killed", "hold-locked"):
            p.make(p.project.parent / f".bawn-{name}/work", mode=0)
            p.own(p.project.parent / f".bawn-{name}")
        lock = os.open(p.project.parent / ".bawn-hold-locked", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        expect(p.sh("true", "--write", env=env), 0)
        assert [path.name for path in left_beside(p)] == [".bawn-hold-locked"], left_beside(p)
        os.close(lock)
        for wait in range(24):
            child = p.start("run", "--write", "--", "true", env=env)
            time.sleep(0.003 * wait)
            for pid in sorted(descendants()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            child.communicate(timeout=20)
        expect(p.sh("true", "--write", env=env), 0)
        assert left_beside(p) == []


@case
def without_a_place_on_the_same_mount_it_is_a_missing_guarantee(p):
    """A file system that is the project's alone has no place beside it."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    mount = f"mount -t tmpfs -o uid={p.uid},gid={p.uid} tmpfs {p.project}; mkdir -m 777 {p.project}/inner; cd {p.project}"
    words = ("--", "sh", "-c", "echo mine >.envrc; cat .envrc")
    expect_refusal(in_mount_namespace(p, mount, "run", "--write", *words), "is all of its mount",
                   "hint: choose a folder in it as the project")
    done = expect(in_mount_namespace(p, mount, "run", "--write", "--allow-degraded", "fs.protect", *words), 0,
                  "going on without", "mine")
    assert len(done.stderr.splitlines()) == 1
    assert p.record()["guarantees"]["fs.protect"]["holds"] is False
    # A folder of another user's is no place either, and a folder of yours is.
    inner = f"{mount}; chown {p.uid} inner; cd inner"
    expect_refusal(in_mount_namespace(p, f"{inner}; chmod 777 ..", "run", "--write", *words), "set XDG_STATE_HOME to one")
    done = in_mount_namespace(p, f"{inner}; chmod 755 ..", "run", "--write", *words)
    expect(done, 1, "Permission denied")
    assert "mine" not in done.stdout, done


@case
@of_users
def a_file_system_that_is_no_layer_is_refused(p):
    """An overlay is one that the kernel does not take as upper layer."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    for name in ("lower", "upper", "work"):
        p.make(name)
    mount = f"mount -t overlay -o lowerdir={p.home}/lower,upperdir={p.home}/upper,workdir={p.home}/work none {p.home}/project"
    state = f"mkdir -m 777 {p.home}/project/state; export XDG_STATE_HOME={p.home}/project/state"
    done = in_mount_namespace(p, f"{mount}; mkdir -m 777 -p {p.home}/project/p; {state}", "run", "--write", "--project",
                              p.project / "p", "--", "sh", "-c", "echo ran")
    expect_refusal(done, "does not work as a layer", "allow_degraded: [fs.protect]")
    done = in_mount_namespace(p, f"{mount}; rm -rf {p.home}/project/state; {state}", "run", "--write", "--project", p.project / "p",
                              "--allow-degraded", "fs.protect", "--", "sh", "-c", "echo mine >.envrc; cat .envrc")
    expect(done, 0, "going on without", "mine")


@case
def what_is_mounted_below_is_refused(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    p.make("project/inner")
    p.make("other")
    done = in_mount_namespace(p, f"mount --bind {p.home}/other {p.project}/inner", "run", "--write", "--", "sh", "-c", "echo ran")
    expect_refusal(done, "is mounted below it")


if __name__ == "__main__":
    main()
