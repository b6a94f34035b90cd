#!/usr/bin/env python3
"""bawn tool: each tool on real trees, on trees made to harm it, and in cages.

    run.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import fcntl
import json
import os
import pathlib
import socket
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import BAWN, case, expect, main, of_users  # noqa: E402

INSIDE = "/run/bawn/bawn"


def tool(p, name, status=0, **arguments):
    """A tool, not in a cage; what it printed."""
    done = p.run("tool", name, stdin=json.dumps(arguments).encode())
    expect(done, status)
    if status:
        assert done.stdout == "", f"an error comes with output: {done.stdout!r}"
        assert done.stderr.startswith("bawn: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stdout if status == 0 else done.stderr


def grep(p, pattern, status=0, **arguments):
    return tool(p, "grep", status, pattern=pattern,
                **{key.replace("_", "-", 1) if key in ("_i", "_n", "_A", "_B", "_C") else key: value
                   for key, value in arguments.items()})


def same(got, wanted):
    assert got == wanted, f"got {got!r}, not {wanted!r}"


def has(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


# --- read ---

@case
def read_numbers_lines(p):
    p.write("project/a", "one\ntwo\nthree\n")
    same(tool(p, "read", path="a"), "     1\tone\n     2\ttwo\n     3\tthree\n")
    same(tool(p, "read", file_path=str(p.project / "a"), offset=2, limit=1),
         "     2\ttwo\n\n(these are lines 2 to 2, and there are more: go on with offset 3)\n")
    has(tool(p, "read", 1, path="a", offset=9), "from line 9 on: it has 3 lines")
    p.write("project/empty", "")
    same(tool(p, "read", path="empty"), "(the file is empty)\n")


@case
def read_is_bounded(p):
    p.write("project/long", "x\n" * 5000)
    has(tool(p, "read", path="long"), "  2000\tx\n\n(these are lines 1 to 2000", "offset 2001")
    p.write("project/wide", "y" * 1000000 + "\nz\n")
    out = tool(p, "read", path="wide")
    has(out, "(cut: this line has 1000000 bytes)\n     2\tz\n")
    assert len(out) < 2200
    p.write("project/large", ("w" * 1500 + "\n") * 3000)
    out = tool(p, "read", path="large", limit=3000)
    assert len(out) < 1 << 20
    has(out, "and there are more")


@case
def read_refuses_what_is_no_text(p):
    p.write("project/binary", b"a\0b")
    p.write("project/latin", b"a\n\xe4\n")
    has(tool(p, "read", 1, path="binary"), "'binary': it is binary, not text")
    has(tool(p, "read", 1, path="latin"), "another encoding than UTF-8")
    has(tool(p, "read", 1, path="."), "it is a folder; the tool glob lists what is in it")
    has(tool(p, "read", 1, path="none"), "'none': there is no such file or folder")
    has(tool(p, "read", 1, path="binary/x"), "something on the way to it is a file")
    with open(p.project / "huge", "wb") as file:
        file.truncate(1 << 40)
    has(tool(p, "read", 1, path="huge"), "binary")
    has(tool(p, "edit", 1, path="huge", old_string="a", new_string="b"), "larger than 64 MiB")


# --- write and edit ---

@case
def write_makes_folders_and_keeps_modes(p):
    same(tool(p, "write", path="new/deep/a", content="é\n"), "created 'new/deep/a' (3 bytes)\n")
    path = p.project / "new/deep/a"
    same(path.read_text(encoding="utf-8"), "é\n")
    path.chmod(0o754)
    before = path.stat().st_ino
    same(tool(p, "write", path=str(path), content="x"), f"replaced '{path}' (1 byte)\n")
    same((path.read_text(), path.stat().st_mode & 0o7777), ("x", 0o754))
    assert path.stat().st_ino != before, "it was written in place"
    same(os.listdir(path.parent), ["a"])
    has(tool(p, "write", 1, path="new", content=""), "it is a folder")
    has(tool(p, "write", 1, path="folder/", content=""), "it is a folder")
    assert not (p.project / "folder").exists()
    has(tool(p, "write", 1, path="new/deep/a/b", content=""), "something on the way to it is a file")


@case
def write_goes_through_links(p):
    target = p.write("project/target", "old and longer")
    os.symlink("target", p.project / "link")
    os.symlink("later", p.project / "dangling")
    os.link(target, p.project / "second")
    tool(p, "write", path="link", content="new")
    assert (p.project / "link").is_symlink()
    same((target.read_text(), (p.project / "second").read_text()), ("new", "new"))
    has(tool(p, "write", path="dangling", content="made"), "created")
    same((p.project / "later").read_text(), "made")
    assert (p.project / "dangling").is_symlink()


@case
@of_users  # root may write to every folder
def write_in_place_where_the_folder_is_closed(p):
    path = p.write("project/closed/a", "old and longer")
    path.parent.chmod(0o555)
    has(tool(p, "write", path="closed/a", content="new"), "replaced")
    same(path.read_text(), "new")
    has(tool(p, "write", 1, path="closed/b", content="new"), "it is not allowed")
    path.parent.chmod(0o755)


@case
@of_users  # root may write to every file
def what_is_not_writable_is_left_as_it_is(p):
    path = p.write("project/a", "old", 0o444)
    said = "cannot {} 'a': nobody may write to it, by its mode 0444; if it is meant to change, chmod u+w comes first\n"
    has(tool(p, "write", 1, path="a", content="new"), said.format("write"))
    has(tool(p, "edit", 1, path="a", old_string="old", new_string="new"), said.format("edit"))
    same((path.read_text(), os.listdir(p.project)), ("old", ["a"]))
    path.chmod(0o466)
    has(tool(p, "write", 1, path="a", content="new"), "'a': it is not allowed")
    path.chmod(0o644)
    tool(p, "edit", path="a", old_string="old", new_string="new")
    same(path.read_text(), "new")


@case
def edit_is_exact(p):
    path = p.write("project/a", "one two\ntwo\n", 0o600)
    has(tool(p, "edit", 1, path="a", old_string="two", new_string="2"),
        "cannot edit 'a': old_string is in it 2 times, at lines 1, 2; make it longer")
    has(tool(p, "edit", 1, path="a", old_string="three", new_string="2"), "old_string is not in it")
    same(path.read_text(), "one two\ntwo\n")
    same(tool(p, "edit", path="a", old_string="one two", new_string="1\n2"), "edited 'a' in 1 place, at line 1\n")
    same(tool(p, "edit", path="a", old_string="two", new_string="zwei"), "edited 'a' in 1 place, at line 3\n")
    same(tool(p, "edit", path="a", old_string="\n", new_string=";", replace_all=True),
         "edited 'a' in 3 places, at lines 1, 2, 3\n")
    same((path.read_text(), path.stat().st_mode & 0o777), ("1;2;zwei;", 0o600))
    has(tool(p, "edit", 1, path="none", old_string="a", new_string="b"), "there is no such file")


@case
def edits_beside_each_other_lose_nothing(p):
    path = p.write("project/a", "".join(f"line {i}\n" for i in range(24)))
    started = [p.start("tool", "edit") for _ in range(24)]
    for i, process in enumerate(started):
        process.stdin.write(json.dumps({"path": "a", "old_string": f"line {i}\n", "new_string": f"changed {i}\n"}).encode())
    for process in started:
        process.stdin.close()
    for process in started:
        same((process.wait(timeout=60), process.stderr.read()), (0, b""))
    same(path.read_text(), "".join(f"changed {i}\n" for i in range(24)))


@case
def a_lock_is_not_waited_for_without_end(p):
    path = p.write("project/a", "old")
    folder = os.open(p.project, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    began = time.monotonic()
    started = [p.start("tool", name) for name in ("edit", "write")]
    for process in started:
        process.stdin.write(json.dumps({"path": "a", "old_string": "old", "new_string": "new"} if process is started[0]
                                       else {"path": "a", "content": "new"}).encode())
        process.stdin.close()
    for process in started:
        same(process.wait(timeout=60), 1)
        has(process.stderr.read().decode(), "'a': something in this cage has kept its folder locked for 5 seconds")
    assert time.monotonic() - began > 4 and path.read_text() == "old"
    os.close(folder)
    tool(p, "edit", path="a", old_string="old", new_string="new")
    same(path.read_text(), "new")


# --- glob and grep ---

def tree(p):
    for index, name in enumerate(("a.c", "b.h", "d/c.c", "d/e/f.c", ".hidden.c", ".git/x.c", "d/.git/y.c")):
        path = p.write(f"project/{name}", f"int {path_word(name)};\nshared\n")
        os.utime(path, (1000 + index, 1000 + index))


NO_GIT = "({} named .git {} left out; a path with .git in it looks there)\n"


def path_word(name):
    return "".join(c if c.isalnum() else "_" for c in name)


@case
def glob_lists_newest_first(p):
    tree(p)
    same(tool(p, "glob", pattern="**/*.c"), ".hidden.c\nd/e/f.c\nd/c.c\na.c\n" + NO_GIT.format("2 folders", "were"))
    os.utime(p.project / "d/c.c", ns=(0, 10**19))  # in the year 2286
    os.utime(p.project / "d/e/f.c", ns=(0, 10**19 + 1))
    if os.stat(p.project / "d/c.c").st_mtime_ns == 10**19:  # not every file system has that year
        same(tool(p, "glob", pattern="d/**/*.c").splitlines()[:2], ["d/e/f.c", "d/c.c"])
        same(tool(p, "glob", pattern="**/[ac].c").splitlines()[:2], ["d/c.c", "a.c"])
    same(tool(p, "glob", pattern="*.{c,h}"), ".hidden.c\nb.h\na.c\n")
    same(tool(p, "glob", pattern="*.c", path="d"), "d/c.c\n")
    same(tool(p, "glob", pattern=f"{p.project}/d/**/*.c"), f"{p.project}/d/e/f.c\n{p.project}/d/c.c\n"
         + NO_GIT.format("1 folder", "was"))
    has(tool(p, "glob", pattern="*"), "d/\n", "a.c\n")
    has(tool(p, "glob", pattern="f.c"), "(nothing matches in this folder; **/")
    has(tool(p, "glob", 2, pattern="../*"), "'..'")
    has(tool(p, "glob", 1, pattern="*", path="a.c"), "it is not a folder")
    has(tool(p, "glob", 1, pattern="*", path="none"), "there is no such file or folder")
    for index in range(1100):
        os.close(os.open(p.project / f"many-{index}", os.O_CREAT))
    out = tool(p, "glob", pattern="many-*")
    same(out.count("\n"), 1001)
    has(out, "(these are the newest 1000 of 1100)\n")


@case
def git_is_left_out_until_it_is_named(p):
    tree(p)
    for pattern, wanted in ((".git/*", ".git/x.c\n"), ("**/.git/**", "d/.git/y.c\n.git/x.c\n"),
                            ("{d/.git/*,a.c}", "d/.git/y.c\na.c\n"), (f"{p.project}/.git/*", f"{p.project}/.git/x.c\n"),
                            ("*.c", ".hidden.c\na.c\n"), (".git", ".git/\n")):
        same(tool(p, "glob", pattern=pattern), wanted)
    has(tool(p, "glob", pattern="*"), "\n.git/\n")
    same(tool(p, "glob", pattern="*", path="d/.git"), "d/.git/y.c\n")
    same(tool(p, "glob", pattern="**/*.none"), "(nothing matches)\n" + NO_GIT.format("2 folders", "were"))
    same(grep(p, "int _git"), "(nothing matches)\n" + NO_GIT.format("2 folders", "were"))
    same(grep(p, "int _git", path=".git"), ".git/x.c\n")
    same(grep(p, "int .*_git", glob="**/.git/*"), ".git/x.c\nd/.git/y.c\n")


@case
def grep_finds_lines(p):
    tree(p)
    one, two = NO_GIT.format("1 folder", "was"), NO_GIT.format("2 folders", "were")
    same(grep(p, "shared", glob="*.h"), "b.h\n" + two)
    same(grep(p, r"int \w+_c;", glob="d/**"), "d/c.c\nd/e/f.c\n" + two)
    same(grep(p, "INT A", output_mode="content", _i=True), "a.c:1:int a_c;\n" + two)
    same(grep(p, "int a", output_mode="content", _n=False, _A=1), "a.c:int a_c;\na.c-shared\n" + two)
    same(grep(p, "shared", output_mode="count", path="d"), "d/c.c:1\nd/e/f.c:1\n" + one)
    same(grep(p, "shared", path="a.c", output_mode="content", _C=1), "a.c-1-int a_c;\na.c:2:shared\n")
    same(grep(p, "shared", head_limit=1), ".hidden.c\n(there is more: head_limit was reached)\n")
    same(grep(p, "no such thing"), "(nothing matches)\n" + two)
    has(grep(p, "a(b", 2), "cannot use the pattern 'a(b': missing closing parenthesis")
    has(grep(p, "x", 1, path="none"), "cannot search 'none': there is no such file or folder")
    p.write("project/lines", "shared\n" * 200000)
    out = grep(p, "shared", output_mode="content")
    assert len(out) <= (1 << 20) + 200
    has(out, "cut at 1 MiB")


@case
def expressions_cannot_take_all_memory(p):
    p.write("project/a", "a" * 3000 + "\n")
    grep(p, "(" * 100 + "a" + ")" * 100)
    has(grep(p, "(" * 1000, 2), "too deeply nested")
    done = p.run("tool", "grep", stdin=json.dumps({"pattern": "((a{1,255}){1,255}){1,255}"}).encode())
    expect(done, 2, "cannot use the pattern", "too large")


@case
def what_takes_too_long_is_not_called_no_match(p):
    # Each a that is added doubles the ways there are.
    p.write("project/large", "a" * 60 + "b\n")
    p.write("project/small", "a" * 13 + "\n")
    for mode in ("files_with_matches", "content", "count"):
        done = p.run("tool", "grep", stdin=json.dumps({"pattern": "^(a|aa)+$", "output_mode": mode}).encode())
        expect(done, 0, "small")
        has(done.stdout, "(1 file not searched to the end: this pattern takes too long there)\n")
        assert "large" not in done.stdout, done.stdout


# --- trees made to harm ---

def hostile(p):
    """Pipes, sockets, devices, links in circles and out, names that are no text, folders without end."""
    tree(p)
    os.mkfifo(p.project / "pipe")
    if p.uid == 0:
        os.mknod(p.project / "zero", 0o20666, os.makedev(1, 5))
    os.symlink("/dev/zero", p.project / "to-zero")
    os.symlink("pipe", p.project / "to-pipe")
    os.symlink("circle", p.project / "circle")
    os.symlink(".", p.project / "again")
    os.symlink("..", p.project / "d/up")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(p.project / "socket"))
    p.write(os.fsdecode(b"project/new\nline"), "shared\n")
    p.write(os.fsdecode(b"project/\xff\x1b[31m"), "shared \xff\n".encode("latin-1"))
    with open(p.project / "huge", "wb") as file:
        file.write(b"shared\n" * 10)
        file.truncate(1 << 40)
    at = os.open(p.project, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("deep", dir_fd=at)
        below = os.open("deep", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


@case
def hostile_trees_harm_nothing(p):
    hostile(p)
    has(tool(p, "glob", pattern="**"), "again\n", "circle\n", "pipe\n", "new\\x0aline\n", "\\xff\\x1b[31m\n",
        "(1 folder could not be looked into)\n")
    out = tool(p, "glob", pattern="**/a.c")
    same(out, "a.c\n" + NO_GIT.format("2 folders", "were") + "(1 folder could not be looked into)\n")
    out = grep(p, "shared", output_mode="content")
    has(out, "new\\x0aline:1:shared\n", "\\xff\\x1b[31m:1:shared �\n", "(1 file larger than 64 MiB: not searched)")
    assert "again/" not in out and "up/" not in out and ".git/" not in out, out
    for name in ("pipe", "to-pipe"):
        has(tool(p, "read", 1, path=name), "it is a pipe, not a file")
        has(tool(p, "write", 1, path=name, content="x"), "it is a pipe, not a file")
        has(tool(p, "edit", 1, path=name, old_string="x", new_string="y"), "it is a pipe, not a file")
        has(grep(p, "x", 1, path=name), "it is a pipe, not a file")
    has(tool(p, "read", 1, path="to-zero"), "it is a device, not a file")
    has(tool(p, "write", 1, path="to-zero", content="x"), "it is a device, not a file")
    has(tool(p, "read", 1, path="socket"), "it is a socket, not a file")
    has(tool(p, "read", 1, path="circle"), "its links lead in a circle")
    has(tool(p, "write", 1, path="circle", content="x"), "its links lead in a circle")
    has(tool(p, "read", 2, path="x" * 5000), "path of read is longer than 4095 bytes")


@case
def arguments_are_held_to_their_form(p):
    for text, status, said in ((b"", 2, "not one JSON object"), (b"[]", 2, "not one JSON object"),
                               (b'{"path":"a\xff"}', 2, "path of read has to be"),
                               (b'{"pth":"a"}', 2, "did you mean path?"),
                               (b"[" * 100000, 2, "not one JSON object"),
                               (b'{"path":"' + b"x" * (17 << 20) + b'"}', 2, "larger than 16 MiB")):
        done = p.run("tool", "read", stdin=text[:1 << 25])
        expect(done, status, said)
        same(done.stderr.count("\n"), 1)
    expect(p.run("tool", "raed"), 2, "did you mean read?")
    same(json.loads(p.run("tool", "glob", "--json", stdin=b'{"pattern":"*"}').stdout),
         {"version": 1, "text": "(nothing matches in this folder; **/ before the pattern looks below it too)\n"})


# --- in cages: what lies outside is out of reach, and in reach where a bind declares it ---

def in_cage(p, name, *options, keys="", **arguments):
    return p.run("run", *p.spec("tools: true\n" + keys), *options, "--", INSIDE, "tool", name,
                 stdin=json.dumps(arguments).encode())


def pair(p, name, wanted, mode, **arguments):
    """The same call on something outside: refused, then with a bind that declares it."""
    outside = p.make("outside")
    p.write("outside/secret", "the secret\n")
    path = str(outside if name in ("glob", "grep") else outside / "secret")
    refused = in_cage(p, name, path=path, **arguments)
    # Of its own /tmp a cage knows only that there is no such thing in it.
    expect(refused, 1, f"'{path}': there is no such file or folder in this cage")
    same(refused.stdout, "")
    same((outside / "secret").read_text(), "the secret\n")
    expect(in_cage(p, name, "-v", f"{outside}:{outside}{mode}", path=path, **arguments), 0, wanted)
    return outside / "secret"


@case
def cage_keeps_read_in(p):
    pair(p, "read", "1\tthe secret\n", "")


@case
def cage_keeps_write_in(p):
    # Where there is nothing of the host, a folder of that name is the cage's own, and gone with it.
    outside = p.make("outside")
    secret = p.write("outside/secret", "the secret\n")
    in_cage(p, "write", path=str(secret), content="changed")
    same(secret.read_text(), "the secret\n")
    expect(in_cage(p, "write", "-v", f"{outside}:{outside}", path=str(secret), content="changed"), 1, "cannot write")
    same(secret.read_text(), "the secret\n")
    expect(in_cage(p, "write", "-v", f"{outside}:{outside}:rw", path=str(secret), content="changed"), 0, "replaced")
    same(secret.read_text(), "changed")


@case
def cage_keeps_edit_in(p):
    secret = pair(p, "edit", "in 1 place", ":rw", old_string="secret", new_string="change")
    same(secret.read_text(), "the change\n")


@case
def cage_keeps_glob_in(p):
    pair(p, "glob", "/outside/secret\n", "", pattern="*")


@case
def cage_keeps_grep_in(p):
    pair(p, "grep", "/outside/secret\n", "", pattern="the")


@case
def cage_keeps_links_in(p):
    p.make("outside")
    p.write("outside/secret", "the secret\n")
    os.symlink(p.home / "outside/secret", p.project / "link")
    os.symlink("/home/somebody/secret", p.project / "other")
    expect(in_cage(p, "read", path="link"), 1, "it is a link that leads to nothing in this cage")
    expect(in_cage(p, "read", path="other"), 1, "it leads to '/home/somebody/secret', and that is not in this cage")
    expect(in_cage(p, "read", "-v", f"{p.home}/outside:{p.home}/outside", path="link"), 0, "the secret")


@case
def cage_protects_hooks(p):
    p.write("project/.git/config", "")
    p.make("project/.git/hooks")
    p.write("project/.git/HEAD", "ref: refs/heads/main\n")
    hook = {"path": ".git/hooks/pre-commit", "content": "x"}
    writable = "project: {mode: writable}\n"
    expect(in_cage(p, "write", keys=writable, path="src/new", content="x"), 0, "created 'src/new' (1 byte)")
    expect(in_cage(p, "write", keys=writable, **hook), 1,
           "cannot write '.git/hooks/pre-commit': it is protected in this cage")
    assert not (p.project / hook["path"]).exists()
    # Where the project is a layer, what is in it is looked at before it is applied.
    expect(in_cage(p, "write", **hook), 0, "created")
    assert not (p.project / hook["path"]).exists()


@case
def refusals_are_explained_without_a_description_too(p):
    words = ("run", "-v", f"{BAWN}:/opt/bawn", "--", "/opt/bawn", "tool", "read")
    done = p.run(*words, stdin=b'{"path":"/root/.ssh/id"}')
    expect(done, 1, "cannot read '/root/.ssh/id': there is no such file or folder\n")
    expect(in_cage(p, "read", path="/root/.ssh/id"), 1,
           "cannot read '/root/.ssh/id': it is not in this cage, which has /work (writable), /home/agent (writable), ")
    expect(in_cage(p, "read", path="/etc/shadow"), 1, "'/etc/shadow': there is no such file or folder in this cage")
    expect(in_cage(p, "write", path="/usr/x", content=""), 1, "it is read-only in this cage; writable are /work, ")


if __name__ == "__main__":
    main()
