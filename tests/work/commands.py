#!/usr/bin/env python3
"""bawn diff, apply and discard as a person uses them, as root and as a user.

    commands.py BAWN BREAKABLE [WORD…]        prints TAP; with words, only cases that have them all in the name

Most runs are made by hand (runs.py), so that what is in a layer is exactly what a case wants.
"""

import errno
import fcntl
import json
import os
import pathlib
import pty
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage"), str(HERE)]
import place as cages  # noqa: E402
import trees  # noqa: E402
from runs import GIT, Run, as_git_sees, entries  # noqa: E402
from place import case, expect  # noqa: E402

EVIL = "x\x1b]52;c;cm0=\x07\x1b[2J"  # would write to the clipboard and clear the screen


def bawn(place, *args, **more):
    """To its end; both outputs, which may be any bytes."""
    process = subprocess.run(place.words(args), cwd=more.pop("cwd", place.project),
                             env=place.environ(more.pop("env", None)), stdin=subprocess.DEVNULL,
                             capture_output=True, timeout=60 * cages.SLOW, check=False)
    done = subprocess.CompletedProcess(args, process.returncode, cages.decode(process.stdout),
                                       cages.decode(process.stderr))
    done.bytes = process.stdout
    return done


def seconds_of(place, *args):
    """Of a processor: others may use the machine meanwhile."""
    process = subprocess.Popen(place.words(args), cwd=place.project, env=place.environ(None),
                               stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def patch_of(place, *args, **more):
    """What diff prints into a pipe."""
    return expect(bawn(place, "diff", *args, **more), 0).bytes


def on_terminal(place, *args, env=None, columns=80):
    """What a terminal is sent by bawn, errors included, and the status."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, 0x5414, bytes([24, 0, columns & 255, columns >> 8, 0, 0, 0, 0]))  # TIOCSWINSZ
    os.fchown(theirs, place.uid, place.uid)
    environ = {"PAGER": "cat", "TERM": "xterm", **(env or {})}
    process = subprocess.Popen(place.words(args), cwd=place.project, env=place.environ(environ),
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        said += piece
    os.close(ours)
    return process.wait(timeout=20), said


def git(folder, *args, stdin=b"", check=True):
    done = subprocess.run(["git", *args], cwd=folder, input=stdin, capture_output=True, check=False,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **GIT})
    assert not check or done.returncode == 0, f"git {args}: {done.stderr.decode(errors='replace')}"
    return done


def applies(place, patch, wanted=None, tools=("git", "patch")):
    """The patch does to a copy of the project what it should, with each of the tools."""
    for tool in tools:
        copy = place.top / f"copy-{tool}"
        shutil.copytree(place.project, copy, symlinks=True)
        if tool == "git":
            git(copy, "apply", "--check", "--whitespace=nowarn", "-", stdin=patch)
            git(copy, "apply", "--whitespace=nowarn", "-", stdin=patch)
        else:
            done = subprocess.run(["patch", "-p1", "--batch", "--no-backup-if-mismatch"], cwd=copy, input=patch,
                                  capture_output=True, check=False)
            assert done.returncode == 0, f"patch: {done.stdout.decode(errors='replace')}"
        have, want = as_git_sees(copy), as_git_sees(wanted)
        assert have == want, f"{tool} makes another tree: {sorted(set(have.items()) ^ set(want.items()))[:4]}"
        shutil.rmtree(copy)


def turns_folders(have, wanted):
    """A folder takes the place of something else, or the reverse: patch(1) removes files last, and cannot do that."""
    have, wanted = entries(have), entries(wanted)
    return any((have[path][0] == "d") != (wanted[path][0] == "d") for path in have.keys() & wanted.keys())


def fill(place):
    """A project with something in it."""
    place.write("project/src/main.c", "int main(void)\n{\n\treturn 0;\n}\n")
    place.write("project/src/old.c", "gone\nsoon\n")
    place.write("project/README", "one\ntwo\nthree\n")
    place.write("project/run.sh", "#!/bin/sh\n", 0o755)


def changed(place, number=1):
    """A run that changed, added and deleted something there."""
    run = Run(place, number)
    run.write("README", "one\n2\nthree\n")
    run.write("src/new.c", "new\n")
    run.delete("src/old.c")
    return run


# --- diff ---

@case
def a_diff_is_taken_by_git_and_patch(p):
    fill(p)
    run = changed(p)
    run.write("run.sh", "#!/bin/sh\n", 0o644)
    run.write("empty", "")
    run.write("with blanks", "no end")
    run.link("link", "src/new.c")
    patch = patch_of(p)
    wanted = p.top / "wanted"
    shutil.copytree(p.project, wanted, symlinks=True)
    (wanted / "README").write_text("one\n2\nthree\n")
    (wanted / "src/new.c").write_text("new\n")
    (wanted / "src/old.c").unlink()
    (wanted / "run.sh").chmod(0o644)
    (wanted / "empty").write_text("")
    (wanted / "with blanks").write_text("no end")
    (wanted / "link").symlink_to("src/new.c")
    applies(p, patch, wanted)
    for line in (b"diff --git a/README b/README", b"--- a/README", b"+++ b/README", b"-two", b"+2", b"new file mode 120000",
                 b"deleted file mode 100644", b"old mode 100755", b"new mode 100644", b'+++ "b/with blanks"'):
        assert line in patch.split(b"\n"), f"{line} is not in:\n{patch.decode()}"


@case
def diffs_of_random_trees_are_taken_by_git_and_patch(p):
    everything = b""
    for seed in range(12):
        chance = random.Random(seed)
        shutil.rmtree(p.project)
        p.project.mkdir()
        trees.grow(chance, p.project)
        wanted = p.top / f"wanted-{seed}"
        shutil.copytree(p.project, wanted, symlinks=True)
        trees.alter(chance, wanted)
        for path in [p.project, *p.project.rglob("*")]:
            os.chown(path, p.uid, p.uid, follow_symlinks=False)
        Run(p, seed).become(wanted)
        patch = patch_of(p)
        everything += patch
        try:
            applies(p, patch, wanted, tools=("git",) if turns_folders(p.project, wanted) else ("git", "patch"))
        except AssertionError as e:
            raise AssertionError(f"seed {seed}: {e}") from None
    for kind in (b"rename from ", b"old mode 100", b"new file mode 120000", b"deleted file mode 120000", b"old mode 120000",
                 b"\\ No newline", b"index e69de29..", b'--- "a/', b"# new folder"):
        assert kind in everything, f"no diff had {kind}"


@case
def binary_files_are_told_apart_from_the_patch(p):
    fill(p)
    p.write("project/image", b"\0\1\2" * 40)
    run = changed(p)
    run.write("image", b"\0\1\3" * 50)
    run.write("added", b"\0")
    patch = patch_of(p)
    text = patch.decode()
    assert "# Binary files a/image and b/image differ\n#   before: 120 bytes" in text, text
    assert re.search(r"#   after:  150 bytes, sha256 [0-9a-f]{64}\n", text), text
    assert "# Binary files /dev/null and b/added differ\n" in text, text
    wanted = p.top / "wanted"
    shutil.copytree(p.project, wanted)
    (wanted / "README").write_text("one\n2\nthree\n")
    (wanted / "src/new.c").write_text("new\n")
    (wanted / "src/old.c").unlink()
    applies(p, patch, wanted)


@case
def what_is_too_large_is_told_by_its_size(p):
    fill(p)
    run = Run(p)
    run.write("large", b"a line of text\n" * 700000)
    run.write("small", "s\n")
    text = patch_of(p).decode()
    assert "# large is too large to show\n#   after:  10500000 bytes, sha256 " in text, text[:500]
    assert "+s" in text and len(text) < 1000


@case
def what_git_has_no_word_for_is_a_comment(p):
    fill(p)
    p.write("project/kept/file", "x\n")
    run = Run(p)
    run.folder_at("nothing in it")
    run.write("README", "one\ntwo\nthree\n", 0o600)
    os.mkfifo(run.layer / "pipe")
    run.own(run.layer / "pipe")
    run.write("src/main.c", "int main(void)\n{\n\treturn 0;\n}\n")
    os.setxattr(run.layer / "src/main.c", "user.note", b"1")
    text = patch_of(p).decode()
    for line in ("# new folder nothing in it", "# README has mode 0600, was 0644",
                 "# pipe is a device, a socket or a pipe, and is never applied",
                 "# attribute user.note is new on src/main.c"):
        assert line in text.splitlines(), f"{line!r} is not in:\n{text}"
    assert "diff --git" not in text, text


@case
def what_runs_on_the_host_comes_first_and_is_set_apart(p):
    fill(p)
    git(p.project, "init", "-q")
    for path in p.project.rglob("*"):
        p.own(path)
    run = changed(p)
    run.write(".git/hooks/pre-commit", "#!/bin/sh\nevil\n", 0o755)
    text = patch_of(p).decode()
    lines = text.splitlines()
    assert lines[1].startswith("# These run on the host without being called"), text
    assert re.match(r"# runs on the host: \.git/hooks/pre-commit \(.+\)", lines[2]), text
    # It is told as a comment: git would refuse the whole patch, and patch would put it there.
    assert lines[3] == "# diff --git a/.git/hooks/pre-commit b/.git/hooks/pre-commit", text
    assert text.index("\n# +evil") < text.index("# Everything else.") < text.index("\ndiff --git a/README")
    wanted = p.top / "wanted"
    shutil.copytree(p.project, wanted)
    (wanted / "README").write_text("one\n2\nthree\n")
    (wanted / "src/new.c").write_text("new\n")
    (wanted / "src/old.c").unlink()
    applies(p, patch_of(p), wanted)


@case
def what_git_keeps_for_itself_is_summed_up(p):
    fill(p)
    git(p.project, "init", "-q", "-b", "main")
    git(p.project, "add", ".")
    git(p.project, "commit", "-qm", "one")
    wanted = p.top / "wanted"
    shutil.copytree(p.project, wanted, symlinks=True)
    before = git(wanted, "rev-parse", "HEAD").stdout.decode()[:10]
    (wanted / "README").write_text("changed\n")
    git(wanted, "commit", "-qam", "two")
    git(wanted, "branch", "other")
    after = git(wanted, "rev-parse", "HEAD").stdout.decode()[:10]
    for path in p.project.rglob("*"):
        p.own(path)
    Run(p).become(wanted)
    text = patch_of(p).decode()
    assert f"# git: .git/refs/heads/main {before}..{after}\n" in text, text
    assert f"# git: .git/refs/heads/other (new)..{after}\n" in text, text
    assert re.search(r"# git: \.git: objects added: [0-9]+\n", text), text
    assert re.search(r"# git: \.git: .*\bindex\b", text), text
    assert "diff --git a/.git" not in text and "Binary" not in text, text
    assert "diff --git a/.git/refs/heads/main" in patch_of(p, ".git/refs").decode()
    stat_text = expect(bawn(p, "diff", "--stat"), 0).stdout
    assert re.search(r"^ \.git +\| [0-9]+ of git's own$", stat_text, re.M), stat_text


@case
def a_diff_with_nothing_to_show_says_so(p):
    for _ in range(2):
        done = expect(bawn(p, "diff"), 0, f"no changes of a run are waiting in '{p.project.resolve()}'")
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
        assert json.loads(bawn(p, "diff", "--json").stdout) is not None
        (p.state / "bawn/runs").mkdir(parents=True, exist_ok=True)
        for folder in (p.state / "bawn", p.state / "bawn/runs"):
            os.chown(folder, p.uid, p.uid)
    assert bawn(p, "diff", "-q").stderr == ""
    assert expect(bawn(p, "apply"), 0).stdout == ""
    assert expect(bawn(p, "discard"), 0).stdout == ""


@case
def which_run_is_meant(p):
    fill(p)
    first, second = Run(p, 1), Run(p, 0x10)
    first.write("one", "1\n")
    second.write("two", "2\n")
    names = lambda *args, **more: expect(bawn(p, "diff", "--name-only", *args, **more), 0).stdout.split()
    assert names() == ["two"]
    assert names(first.id) == names("--run", first.id) == names(first.id[:-1]) == ["one"]
    assert names(cwd=p.project / "src") == ["two"]
    expect(bawn(p, "diff", first.id[:10]), 1, "begins the names of 2 runs")
    expect(bawn(p, "diff", "20200101-000000-00000000"), 1, "there is no run '20200101-000000-00000000'")
    expect(bawn(p, "diff", "--run", "main"), 1, "there is no run 'main'")
    expect(bawn(p, "diff", cwd=p.home), 0, "no changes of a run are waiting")
    # A run in a folder of the project is nearer to whoever stands in it.
    inner = Run(p, 3, p.project / "src")
    inner.write("three", "3\n")
    assert names(cwd=p.project / "src") == ["three"] and names() == ["two"]
    # What has been dropped is not the newest any more.
    expect(bawn(p, "discard", "--yes"), 0)
    assert names() == ["one"]
    assert names(second.id) == ["two"], "what it did stays known"
    expect(bawn(p, "diff", second.id), 1, "applied or discarded")


@case
def words_and_options_may_stand_in_any_order(p):
    fill(p)
    run = changed(p)
    for args in (["--name-only", run.id, "README"], [run.id, "--name-only", "README"], ["README", "--name-only"],
                 ["--name-only", "--", "README"]):
        assert expect(bawn(p, "diff", *args), 0).stdout == "README\n", args
    run.write("--stat", "x")
    os.unlink(run.folder / "effects.json")
    assert expect(bawn(p, "diff", "--name-only", "--", "--stat"), 0).stdout == "--stat\n"
    # After -- everything is a path, also what looks like a run.
    expect(bawn(p, "diff", "--", run.id), 1, f"did not change '{run.id}'")


@case
def paths_are_those_of_the_current_folder(p):
    fill(p)
    changed(p)
    names = lambda *args, **more: expect(bawn(p, "diff", "--name-only", *args, **more), 0).stdout.split()
    everything = ["README", "src/new.c", "src/old.c"]
    assert names("src") == names("src/") == names("./src/../src//") == everything[1:]
    assert names(p.project.resolve() / "README") == ["README"]
    assert names(".") == names("..", cwd=p.project / "src") == everything
    assert names("old.c", "../README", cwd=p.project / "src") == ["README", "src/old.c"]
    expect(bawn(p, "diff", "../elsewhere"), 2, "'../elsewhere' is not in the project")
    expect(bawn(p, "diff", "/etc/passwd"), 2, "'/etc/passwd' is not in the project")
    expect(bawn(p, "diff", ""), 2, "an empty path names nothing")
    done = expect(bawn(p, "diff", "src/main.c", "README"), 1, "did not change 'src/main.c'")
    assert done.stdout == ""
    expect(bawn(p, "diff", "sr"), 1, "did not change 'sr'")


@case
def the_other_forms_of_a_diff(p):
    fill(p)
    run = changed(p)
    run.write("bin", b"\0" * 9)
    run.write("tab\tnew\nline", "x\n")
    assert expect(bawn(p, "diff", "--name-only"), 0).stdout == 'README\nbin\nsrc/new.c\nsrc/old.c\n"tab\\tnew\\nline"\n'
    assert bawn(p, "diff", "--name-only", "-z").bytes == b"README\0bin\0src/new.c\0src/old.c\0tab\tnew\nline\0"
    found = json.loads(expect(bawn(p, "diff", "--json"), 0).stdout)
    assert isinstance(found, dict) and "README" in json.dumps(found)
    assert "README" not in bawn(p, "diff", "--json", "src").stdout
    expect(bawn(p, "diff", "--json", "--stat"), 2, "cannot print two forms")
    expect(bawn(p, "diff", "-z"), 2, "--name-only")
    expect(bawn(p, "diff", "--stta"), 2, "did you mean --stat?")


@case
def a_stat_looks_like_gits(p):
    fill(p)
    run = changed(p)
    run.write("bin", b"\0" * 9)
    run.write("tool", "x\ny\n", 0o755)
    done = expect(bawn(p, "diff", "--stat"), 0)
    rows = done.stdout.splitlines()
    assert re.fullmatch(r" README +\|  ?2 \+-", rows[0]), done.stdout
    assert re.fullmatch(r" bin \(new\) +\| Bin 0 -> 9 bytes", rows[1]), done.stdout
    assert re.fullmatch(r" src/new\.c \(new\) +\|  ?1 \+", rows[2]), done.stdout
    assert re.fullmatch(r" src/old\.c \(gone\) +\| .*", rows[3]), done.stdout
    assert re.fullmatch(r" tool \(new \+x\) +\|  ?2 \+\+", rows[4]), done.stdout
    assert re.fullmatch(r" 5 files changed, 4 insertions\(\+\), .*", rows[5]), done.stdout
    assert len({row.index("|") for row in rows[:5]}) == 1, "the columns are not straight"
    run.write("wide", "w\n" * 3000)
    run.write("deep/" + "n" * 150, "x\n")
    os.unlink(run.folder / "effects.json")
    rows = expect(bawn(p, "diff", "--stat"), 0).stdout.splitlines()
    assert max(map(len, rows)) <= 80 and max(map(len, rows)) > 70, rows


@case
def a_stat_reads_no_file_but_the_effects(p):
    fill(p)
    run = changed(p)
    first = expect(bawn(p, "diff", "--stat"), 0).stdout
    shutil.rmtree(run.layer)
    run.layer.mkdir()
    run.own(run.layer)
    for path in (p.project / "README", p.project / "src/old.c"):
        path.unlink()
    assert expect(bawn(p, "diff", "--stat"), 0).stdout == first


@case
def ten_thousand_changes_are_summed_up_at_once(p):
    run = Run(p)
    for i in range(100):
        folder = run.layer / f"folder-{i:02}"
        folder.mkdir()
        for j in range(100):
            (folder / f"file-{j:02}.txt").write_text(f"{i}\n{j}\n")
    if p.uid:
        subprocess.run(["chown", "-R", f"{p.uid}:{p.uid}", run.layer], check=True)
    expect(bawn(p, "diff", "--stat"), 0, " 10000 files changed, 20000 insertions(+)")
    best = min(seconds_of(p, "diff", "--stat") for _ in range(9))
    print(f"# diff --stat of 10000 files: {best * 1000:.0f} ms")
    assert best < 0.1 * cages.SLOW, f"{best} s"


# --- the terminal ---

def escapes(said):
    return set(re.findall(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|.)", said))


@case
def nothing_a_stranger_wrote_commands_the_terminal(p):
    fill(p)
    p.write("project/README", f"one\n{EVIL}\n")
    run = Run(p)
    run.write("README", f"one\n\ttab {EVIL}\x9b31m\u202e\n")
    run.write(f"{EVIL}/{EVIL}", f"{EVIL}\r\n")
    run.link("link", EVIL)
    run.write(".git/refs/heads/x", EVIL)
    run.write(".git/hooks/" + EVIL, EVIL)
    os.setxattr(run.layer / "README", "user." + EVIL, b"")
    for args in ([], ["--stat"], ["--name-only"], ["--name-only", "-z"], ["README"]):
        status, said = on_terminal(p, "diff", *args, env={"NO_COLOR": "1"})
        assert status == 0, said
        assert b"\x1b" not in said and b"\x07" not in said and b"\x9b31" not in said, (args, said)
        assert "\u202e".encode() not in said, (args, said)
        status, said = on_terminal(p, "diff", *args)
        assert escapes(said) <= {b"\x1b[m", b"\x1b[1m", b"\x1b[36m", b"\x1b[32m", b"\x1b[31m", b"\x1b[33m",
                                 b"\x1b[1;31m"}, (args, escapes(said))
        assert b"\x07" not in said
    assert b"+\ttab x\\x1b]52;" in on_terminal(p, "diff", "README", env={"NO_COLOR": "1"})[1]
    # Into a pipe go the bytes as they are, or the patch could not be applied.
    assert EVIL.encode() in patch_of(p, "README")
    assert b"\x1b" not in expect(bawn(p, "diff", "--color", "always", "--name-only"), 0).bytes
    done = expect(bawn(p, "diff", "--color", "always"), 0)
    assert b"\x1b[32m" in done.bytes and b"\x1b]" not in done.bytes


@case
def what_apply_and_discard_say_is_harmless_too(p):
    fill(p)
    run = Run(p)
    run.write(".git/hooks/" + EVIL, EVIL)
    run.write(EVIL, EVIL)
    for args in (["apply", "-n"], ["apply"], ["discard", "--yes"], ["diff", EVIL], ["apply", run.id, EVIL + "2"]):
        _, said = on_terminal(p, *args, env={"NO_COLOR": "1"})
        assert b"\x1b]" not in said and b"\x07" not in said and b"\x1b[2J" not in said, (args, said)


@case
def a_terminal_gets_a_pager(p):
    fill(p)
    changed(p)
    status, said = on_terminal(p, "diff", env={"PAGER": "sed -e s/^/PAGED:/"})
    assert status == 0 and said.count(b"PAGED:") > 5, said
    for pager in ("", "cat", "/nonexistent/pager --option", " "):
        status, said = on_terminal(p, "diff", env={"PAGER": pager})
        assert status == 0 and b"+++ b/README" in said, (pager, said)
    # One that reads nothing is somebody who has seen enough.
    status, said = on_terminal(p, "diff", env={"PAGER": "true"})
    assert status == 0 and b"bawn:" not in said, said
    status, said = on_terminal(p, "diff", "--json", env={"PAGER": "sed -e s/^/PAGED:/"})
    assert b"PAGED" not in said
    done = bawn(p, "diff", env={"PAGER": "sed -e s/^/PAGED:/"})
    assert "PAGED" not in done.stdout, "a pipe is no terminal"


@case
def a_reader_that_has_seen_enough_is_no_failure(p):
    run = Run(p)
    run.write("long", "line\n" * 400000)
    read, write = os.pipe()
    process = subprocess.Popen(p.words(["diff"]), cwd=p.project, env=p.environ(None), stdout=write,
                               stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 10)
    os.close(read)
    assert process.communicate(timeout=20)[1] == b"" and process.returncode == 0


# --- states of a run ---

def keep_as_before(run):
    """What texts were, in a file for each, as bawn once kept it."""
    text = (run.folder / "base/contents").read_bytes()
    table = len(text) - 17 - 43 * int(text[-17:-1], 16)
    (run.folder / "base/contents").unlink()
    for line in text[table:-17].splitlines():
        index, at, size = (int(word, 16) for word in line.split())
        (run.folder / f"base/{index}").write_bytes(text[at:at + size])
        run.own(run.folder / f"base/{index}")


@case
def what_changed_on_the_host_since_is_shown_against_what_it_was(p):
    fill(p)
    run = changed(p)
    expect(bawn(p, "diff", "--stat"), 0)
    time.sleep(0.01)
    p.write("project/README", "one\ntwo\nthree\nfour\n")
    text = patch_of(p, "README").decode()
    assert "# README has changed on the host since: this is against what it was" in text, text
    assert "-two" in text and "+2" in text and "four" not in text, text
    keep_as_before(run)
    assert patch_of(p, "README").decode() == text
    (run.folder / "base/0").write_text("damaged")
    assert "diff --git" not in patch_of(p, "README").decode()
    shutil.rmtree(run.folder / "base")
    text = patch_of(p, "README").decode()
    assert "# README has changed on the host since, and what it was is not kept" in text, text
    assert "diff --git" not in text, text


@case
def a_run_that_goes_on_is_shown_and_left_alone(p):
    fill(p)
    run = changed(p)
    lock = os.open(run.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        text = patch_of(p).decode()
        assert text.startswith(f"# run {run.id}: it is still going on"), text
        assert "+2" in text
        expect(bawn(p, "diff", "--stat"), 0, "still going on", "3 files changed")
        before = cages.picture(run.folder)
        for command in (["apply"], ["apply", "-n"], ["discard"], ["discard", run.id]):
            expect(bawn(p, *command), 1, f"run {run.id}: it is still running")
        expect(bawn(p, "discard", "--all"), 0, f"run {run.id}: it is still running")
        assert cages.picture(run.folder) == before, "something was written"
    finally:
        os.close(lock)
    assert not patch_of(p).startswith(f"# run {run.id}: it is still going on".encode())


@case
def a_layer_of_many_folders_goes_with_all_of_them(p):
    """Several threads remove it, whatever modes its folders have and however deep they are."""
    fill(p)
    for top in ("", "only/one/"):
        run = Run(p, 2 if top else 1)
        for i in range(40):
            run.write(f"{top}f{i}/x", "x\n")
            run.write(f"{top}f{i}/in/it", "x\n")
            run.link(f"{top}f{i}/link", "/etc")
            (run.layer / f"{top}f{i}/in").chmod(0o500 if i % 2 else 0)
        deep = run.layer / f"{top}f3"
        for _ in range(300):
            deep = deep / "d"
            deep.mkdir()
            run.own(deep)
        if not top:
            run.write("beside", "x\n")
        expect(bawn(p, "discard", "--yes"), 0, "discarded")
        assert not list(run.folder.glob("layer*")) and not (run.folder / "base").exists()
    assert os.path.isdir("/etc")


@case
def two_commands_on_one_run_exclude_each_other(p):
    fill(p)
    run = changed(p)
    expect(bawn(p, "diff", "--stat"), 0)
    lock = os.open(run.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        expect(bawn(p, "diff"), 0, "+2")
        for command in ("apply", "discard"):
            expect(bawn(p, command), 1, f"run {run.id}: another bawn is working on it")
    finally:
        os.close(lock)
    assert run.is_kept()


@case
def an_interrupted_run_is_found_out_about_once(p):
    fill(p)
    run = changed(p)
    (run.folder / "base").mkdir()
    (run.folder / "base/7").write_text("half of a scan")
    (run.folder / "effects.json.new").write_text("half")
    for path in (run.folder / "base", run.folder / "base/7", run.folder / "effects.json.new"):
        run.own(path)
    assert patch_of(p).decode().startswith(f"# run {run.id}: it was interrupted")
    found = (run.folder / "effects.json").read_bytes()
    assert (run.folder / "effects.json").stat().st_uid == p.uid
    assert not (run.folder / "base/7").exists()
    assert patch_of(p).decode().startswith(f"# run {run.id}\n")
    assert (run.folder / "effects.json").read_bytes() == found


@case
def paths_that_the_operator_protects_stay_protected(p):
    fill(p)
    run = changed(p)
    (run.folder / "protect").write_bytes(b"deploy\0README\0")
    run.own(run.folder / "protect")
    assert "# runs on the host: README (the operator protects it)" in patch_of(p).decode()
    expect(bawn(p, "apply"), 1, "README: held back")


@case
def what_is_not_the_operators_is_refused(p):
    fill(p)
    run = changed(p)
    (run.folder).chmod(0o770)
    expect(bawn(p, "diff"), 125, f"cannot use run {run.id}")
    run.folder.chmod(0o700)
    (p.state / "bawn").chmod(0o777)
    expect(bawn(p, "diff"), 125, "cannot use '")
    (p.state / "bawn").chmod(0o700)
    (run.folder / "effects.json").write_text("{")
    run.own(run.folder / "effects.json")
    expect(bawn(p, "diff"), 125, f"cannot use effects.json of run {run.id}")
    expect(bawn(p, "apply"), 125, f"cannot use effects.json of run {run.id}")
    expect(bawn(p, "discard"), 0, "discarded")
    env = {"HOME": "", "XDG_STATE_HOME": ""}
    if p.uid:
        expect(bawn(p, "diff", env=env), 125, "HOME and XDG_STATE_HOME are not set")


# --- apply ---

@case
def apply_makes_the_project_what_the_run_made_of_it(p):
    for seed in range(4):
        chance = random.Random(1000 + seed)
        shutil.rmtree(p.project)
        p.project.mkdir()
        trees.grow(chance, p.project, binaries=True)
        wanted = p.top / f"wanted-{seed}"
        shutil.copytree(p.project, wanted, symlinks=True)
        trees.alter(chance, wanted, binaries=True)
        for path in [p.project, *p.project.rglob("*")]:
            os.chown(path, p.uid, p.uid, follow_symlinks=False)
        run = Run(p, seed).become(wanted)
        expect(bawn(p, "apply"), 0, f"run {run.id} has no changes left to apply")
        have, want = entries(p.project), entries(wanted)
        assert have == want, f"seed {seed}: {sorted(set(have.items()) ^ set(want.items()))[:4]}"
        assert not run.is_kept() and (run.folder / "effects.json").exists()
        assert not (run.folder / "layer").exists() and not (run.folder / "base").exists()
        expect(bawn(p, "apply", run.id), 1, "applied or discarded")


@case
def apply_takes_the_paths_that_are_named(p):
    fill(p)
    run = changed(p)
    done = expect(bawn(p, "apply", "README"), 0)
    assert done.stdout == "1 applied; 2 left: bawn diff, bawn apply or bawn discard\n", done.stdout
    assert (p.project / "README").read_text() == "one\n2\nthree\n"
    assert (p.project / "src/old.c").exists() and run.is_kept()
    # What is there already is not shown as if it were still to come.
    text = patch_of(p).decode()
    assert "+2" not in text and "# on the host already, and not shown: 1\n" in text and "+new" in text, text
    expect(bawn(p, "apply", "nothing"), 1, "did not change 'nothing'")
    expect(bawn(p, "apply", "new.c", "old.c", cwd=p.project / "src"), 0, "2 applied", f"run {run.id} has no changes left to apply")
    assert not (p.project / "src/old.c").exists() and not run.is_kept()


@cages.of_users
@case
def what_cannot_be_compared_with_the_host_is_said(p):
    fill(p)
    changed(p)
    assert "found out" not in patch_of(p).decode()
    (p.project / "README").write_text("one\n2\nthree\n")
    (p.project / "README").chmod(0)
    text = patch_of(p).decode()
    assert "found out, and it is shown: 1, as README: " in text and "Permission denied" in text, text


@case
def what_is_there_and_cannot_be_found_out_is_said(p):
    names = [f"d{n:02}" for n in range(40)]
    for name in names:
        p.write(f"project/{name}/file", "old\n")
    run = Run(p)
    for name in names:
        run.write(f"{name}/file", "new\n")
    said = set()
    for limit in range(8, 24):  # some of them are enough for all but this
        done = subprocess.run(["prlimit", f"--nofile={limit}:{limit}", *p.words(["diff"])], cwd=p.project,
                              env=p.environ(None), capture_output=True, text=True, check=False)
        said |= {line for line in done.stdout.splitlines() if done.stdout.count("+new") == 40 and "found out" in line}
    assert said
    for line in said:
        assert line.startswith("# what is on the host already could not be found out, and is shown: "), line
        assert line.endswith(os.strerror(errno.EMFILE)), line
    p.project.rename(p.home / "elsewhere")
    text = patch_of(p, "--run", run.id, cwd=p.home).decode()
    assert "found out, and is shown: cannot open " in text and os.strerror(errno.ENOENT) in text, text


@case
def apply_says_what_it_would_do(p):
    fill(p)
    run = changed(p)
    before = cages.picture(p.project)
    done = expect(bawn(p, "apply", "-n"), 0, "would be: 3 applied")
    assert "left to apply" not in done.stdout
    found = json.loads(expect(bawn(p, "apply", "--dry-run", "--json"), 0).stdout)
    assert found["dry_run"] and found["counts"]["applied"] == 3 and not found["finished"]
    assert cages.picture(p.project) == before and run.is_kept()


@case
def a_dry_run_of_many_renames_takes_as_long_as_they_are_many(p):
    used = []
    for count in (2000, 16000):
        run = Run(p, count)
        p.write(f"project/old-{count}/0", "same\n")
        run.write("new/0", "same\n")
        for folder in (p.project / f"old-{count}", run.layer / "new"):
            for n in range(1, count):
                os.link(folder / "0", folder / str(n))
        run.delete(f"old-{count}")
        expect(bawn(p, "diff", "--name-only", "--run", run.id), 0)  # finds them
        expect(bawn(p, "apply", "-n", "--run", run.id), 0, f"would be: {count} applied")
        used.append(min(seconds_of(p, "apply", "-n", "--run", run.id) for _ in range(2)))
    assert used[1] < 20 * max(used[0], 0.02), used


@case
def a_dry_run_foretells_what_apply_does(p):
    verdicts = set()
    for seed in range(10):
        chance = random.Random(2000 + seed)
        shutil.rmtree(p.project)
        p.project.mkdir()
        trees.grow(chance, p.project, binaries=True)
        wanted = p.top / f"wanted-{seed}"
        shutil.copytree(p.project, wanted, symlinks=True)
        trees.alter(chance, wanted, binaries=True)
        for path in [p.project, *p.project.rglob("*")]:
            os.chown(path, p.uid, p.uid, follow_symlinks=False)
        run = Run(p, seed).become(wanted)
        run.write(".envrc", "x\n")
        expect(bawn(p, "diff", "--stat"), 0)
        time.sleep(0.01)
        # The host goes on meanwhile; folders stay, because one that is not empty is only found when it is removed.
        for path in sorted(p.project.rglob("*"), key=os.fsencode):
            if path.is_file() and not path.is_symlink() and chance.random() < 0.3:
                path.write_bytes(b"more\n" + path.read_bytes())
        options = ([], ["--merge"], ["--merge", "--all"], ["--force"], ["--all"])[seed % 5]
        foretold = json.loads(bawn(p, "apply", "--json", "-n", *options).stdout)
        done = json.loads(bawn(p, "apply", "--json", *options).stdout)
        told = [sorted((x.get("path", x.get("path_hex")), x["verdict"]) for x in found["effects"]) for found in (foretold, done)]
        assert foretold["counts"] == done["counts"] and told[0] == told[1], f"seed {seed} {options}: {foretold} {done}"
        verdicts |= {name for name, count in done["counts"].items() if count}
        bawn(p, "discard", run.id)
    assert verdicts >= {"applied", "merged", "conflict", "held_back"}, verdicts


@case
def an_apply_that_is_stopped_can_go_on(p):
    run = Run(p)
    for i in range(60):
        folder = run.layer / f"folder-{i:02}"
        folder.mkdir()
        for j in range(100):
            (folder / f"file-{j:02}.txt").write_text(f"{i}\n{j}\n")
    if p.uid:
        subprocess.run(["chown", "-R", f"{p.uid}:{p.uid}", run.layer], check=True)
    expect(bawn(p, "diff", "--stat"), 0)
    process = p.start("apply")
    cages.wait_until(lambda: any(p.project.rglob("*-*")), 10, "the first file")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 1 and b"hint: apply the rest: bawn apply" in err, (out, err)
    assert run.is_kept() and not list(p.project.rglob(".bawn-*"))
    done = expect(bawn(p, "apply"), 0, f"run {run.id} has no changes left to apply")
    # Folders that come with what is in them are not counted.
    assert sum(map(int, re.findall(r"(\d+) (?:applied|there)", done.stdout))) == 6000, done.stdout
    assert len(list(p.project.rglob("*.txt"))) == 6000


@case
def apply_leaves_what_changed_on_the_host_unless_told_otherwise(p):
    fill(p)
    run = changed(p)
    expect(bawn(p, "diff", "--stat"), 0)
    time.sleep(0.01)
    p.write("project/README", "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    done = expect(bawn(p, "apply"), 1, "README: in conflict", "2 applied, 1 in conflict", "--merge", "--force")
    assert (p.project / "README").read_text() == "one\ntwo\nthree\nfour\nfive\nsix\nseven\n", done
    assert run.is_kept()
    expect(bawn(p, "apply", "--merge", "--force"), 2, "cannot use --merge and --force together")
    expect(bawn(p, "apply", "--force"), 0, f"run {run.id} has no changes left to apply")
    assert (p.project / "README").read_text() == "one\n2\nthree\n"


@case
def apply_merges_with_what_changed_on_the_host(p):
    lines = [f"line {i}\n" for i in range(30)]
    p.write("project/text", "".join(lines))
    run = Run(p)
    run.write("text", "".join(["first\n", *lines[1:]]))
    expect(bawn(p, "diff", "--stat"), 0)
    time.sleep(0.01)
    p.write("project/text", "".join([*lines[:-1], "last\n"]))
    expect(bawn(p, "apply", "--merge"), 0, "text: merged")
    assert (p.project / "text").read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
    assert not run.is_kept()


@case
def what_was_merged_is_not_taken_back(p):
    lines = [f"line {i}\n" for i in range(30)]
    for name in ("merged", "other"):
        p.write(f"project/{name}", "".join(lines))
    run = Run(p)
    for name in ("merged", "other"):
        run.write(name, "".join(["first\n", *lines[1:]]))
    expect(bawn(p, "diff", "--stat"), 0)
    time.sleep(0.01)
    p.write("project/merged", "".join([*lines[:-1], "last\n"]))
    p.write("project/other", "".join(["1st\n", *lines[1:]]))
    done = expect(bawn(p, "apply", "--merge"), 1, "merged: merged", "other: in conflict", "hint: edit other by hand",
                  f"bawn apply --force {run.id}", f"bawn discard {run.id}")
    assert "bawn apply --merge" not in done.stderr, "what did not help is not advised again"
    expect(bawn(p, "apply", "--force"), 0, "1 applied, 1 there already")
    assert (p.project / "merged").read_text() == "".join(["first\n", *lines[1:-1], "last\n"])
    assert (p.project / "other").read_text() == "".join(["first\n", *lines[1:]])
    assert not run.is_kept()


@case
def apply_holds_back_what_runs_on_the_host(p):
    fill(p)
    git(p.project, "init", "-q")
    for path in p.project.rglob("*"):
        p.own(path)
    run = changed(p)
    run.write(".git/hooks/pre-commit", "#!/bin/sh\n", 0o755)
    done = expect(bawn(p, "apply"), 1, ".git/hooks/pre-commit: held back", "3 applied, 1 held back", "--all")
    assert not (p.project / ".git/hooks/pre-commit").exists() and run.is_kept(), done
    expect(bawn(p, "apply", "."), 1, "held back")
    expect(bawn(p, "apply", ".git/hooks/pre-commit"), 0, f"run {run.id} has no changes left to apply")
    assert (p.project / ".git/hooks/pre-commit").exists()
    other = Run(p, 2)
    other.write(".git/hooks/post-commit", "#!/bin/sh\n", 0o755)
    expect(bawn(p, "apply", "--all"), 0, "1 applied")
    assert (p.project / ".git/hooks/post-commit").exists() and not other.is_kept()


@case
def apply_tells_programs_what_it_did(p):
    fill(p)
    run = changed(p)
    run.write(".envrc", "evil\n")
    found = json.loads(expect(bawn(p, "apply", "--json"), 1).stdout)
    assert found["run"] == run.id and found["project"] == str(p.project.resolve())
    assert found["counts"]["applied"] == 3 and found["counts"]["held_back"] == 1 and not found["finished"]
    assert [(x["path"], x["verdict"]) for x in found["effects"]] == [(".envrc", "held_back")]
    found = json.loads(expect(bawn(p, "apply", "--json", "--all"), 0).stdout)
    assert found["finished"] and found["counts"]["there"] == 3
    found = json.loads(expect(bawn(p, "apply", "--json"), 0).stdout)
    assert found["run"] is None and found["effects"] == []


@case
def apply_without_the_project_says_so(p):
    fill(p)
    elsewhere = p.make("elsewhere")
    run = Run(p, 1, elsewhere)
    run.write("x", "x\n")
    expect(bawn(p, "diff", "--stat", run.id), 0)
    shutil.rmtree(elsewhere)
    expect(bawn(p, "apply", run.id), 125, f"cannot open '{elsewhere}'")
    assert run.is_kept()
    expect(bawn(p, "discard", run.id), 0, "discarded")
    assert not run.is_kept()


# --- discard ---

@case
def discard_counts_what_was_not_applied(p):
    fill(p)
    run = changed(p)
    expect(bawn(p, "apply", run.id, "README"), 0, f"1 applied; 2 left: bawn diff {run.id}, bawn apply {run.id} or")
    expect(bawn(p, "discard"), 0, f"discarded what run {run.id} wrote: 2 files; 1 stays in the project, as applied\n")
    assert (p.project / "README").read_text() == "one\n2\nthree\n"


@case
def discard_drops_what_a_run_wrote_and_nothing_else(p):
    fill(p)
    first, second, third = changed(p, 1), changed(p, 2), changed(p, 3)
    before = cages.picture(p.project)
    expect(bawn(p, "discard", "--yes"), 0, f"discarded what run {third.id} wrote: 3 files")
    assert first.is_kept() and second.is_kept() and not (third.folder / "layer").exists()
    assert (third.folder / "effects.json").exists() and not (third.folder / "base").exists()
    expect(bawn(p, "discard", "src"), 2, "cannot discard single files: 'src' is neither", "hint: ", "bawn apply PATH")
    expect(bawn(p, "discard", second.id, "src"), 2, "cannot discard single files: 'src' is neither", "hint: ", "bawn apply PATH")
    expect(bawn(p, "discard", "--all", second.id), 2, "takes no")
    assert first.is_kept() and second.is_kept()
    found = json.loads(expect(bawn(p, "discard", "--json", second.id), 0).stdout)
    assert found == {"version": 1, "discarded": [{"run": second.id, "files": 3}]}
    expect(bawn(p, "discard", second.id), 0, "nothing that run")
    other = Run(p, 4, p.make("other"))
    fourth = changed(p, 5)
    expect(bawn(p, "discard", "--all"), 0, first.id, fourth.id)
    assert not first.is_kept() and not fourth.is_kept() and other.is_kept()
    expect(bawn(p, "discard", "--all"), 0, "no changes of a run are waiting")
    assert cages.picture(p.project) == before


@case
def discard_removes_what_nobody_may_enter(p):
    fill(p)
    run = changed(p)
    run.folder_at("closed/inner")
    run.write("closed/inner/file", "x")
    for path in (run.layer / "closed/inner", run.layer / "closed", run.layer.parent / "work"):
        path.chmod(0)
    expect(bawn(p, "discard"), 0, "discarded")
    assert not (run.folder / "layer").exists() and not list(run.folder.glob("layer*"))


@case
def a_discard_that_was_interrupted_is_finished(p):
    fill(p)
    run = changed(p)
    expect(bawn(p, "diff", "--stat"), 0)
    os.rename(run.folder / "layer", run.folder / "layer.gone")
    expect(bawn(p, "diff"), 0, "no changes of a run are waiting")
    expect(bawn(p, "diff", run.id), 1, "applied or discarded")
    expect(bawn(p, "discard", "--all"), 0)
    assert not list(run.folder.glob("layer*")) and not (run.folder / "base").exists()


# --- real runs ---

CHANGE = "echo more >>README; echo new >src/new.c; rm src/old.c"


@case
def a_run_ends_with_what_it_changed_and_what_to_type(p):
    fill(p)
    done = expect(p.sh(CHANGE), 0)
    assert done.stderr == ("bawn: files: 1 changed, 1 added, 1 deleted; see: bawn diff, then: bawn apply or bawn discard\n"), done
    wanted = p.top / "wanted"
    shutil.copytree(p.project, wanted)
    subprocess.run(["sh", "-c", CHANGE], cwd=wanted, check=True)
    applies(p, patch_of(p), wanted)
    expect(bawn(p, "apply"), 0, "3 applied")
    assert entries(p.project) == entries(wanted)
    assert expect(p.sh("cat README"), 0).stderr == "", "nothing changed, nothing is said"
    assert p.run("run", "-q", "--", "sh", "-c", "echo >>README").stderr == ""
    expect(bawn(p, "discard"), 0, "1 file")
    done = expect(p.sh("mkdir .vscode; echo {} >.vscode/tasks.json"), 0, "1 of them runs on the host by itself")
    expect(bawn(p, "apply"), 1, ".vscode/tasks.json: held back")
    # From elsewhere it has to be named.
    done = expect(p.run("run", "--project", p.project, "--", "sh", "-c", "echo x >x", cwd=p.home), 0, "files: 1 added")
    command = re.search(r"see: bawn (diff \S+),", done.stderr).group(1).split()
    assert "+x" in expect(bawn(p, *command, cwd=p.home), 0).stdout


def pending(p):
    folder = p.state / "bawn/pending"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else None


@case
def runs_with_changes_are_noted_until_these_are_applied_or_discarded(p):
    fill(p)
    expect(p.sh("true", "-q"), 0)
    assert pending(p) is None, "a run without changes notes nothing"
    expect(p.sh("echo one >one", "-q"), 0)
    first, = pending(p)
    assert (p.state / "bawn/pending" / first).resolve() == p.state / "bawn/runs" / first
    expect(p.sh("echo two >two", "-q"), 0)
    assert len(pending(p)) == 2 and pending(p)[0] == first
    expect(bawn(p, "apply", "--run", first), 0)
    assert first not in pending(p) and len(pending(p)) == 1
    expect(bawn(p, "discard"), 0)
    assert pending(p) == []
    # Whose keeper is killed is found before it is signed, and after.
    process = p.start("run", "--", "sh", "-c", "echo three >three; echo there; read x")
    assert process.stdout.readline() == b"there\n"
    process.kill()
    process.communicate(timeout=20)
    assert pending(p) == [] and "three" in expect(bawn(p, "diff", "--name-only"), 0).stdout
    expect(p.sh("true", "-q"), 0)
    assert len(pending(p)) == 1 and "three" in expect(bawn(p, "diff", "--name-only"), 0).stdout
    # The folder decides, not the link.
    (p.state / "bawn/pending/20200102-030405-0a0b0c0d").symlink_to("/etc")
    shutil.rmtree(p.state / "bawn/runs" / pending(p)[1] / "layer")
    expect(bawn(p, "diff"), 0, "no changes of a run are waiting")
    assert pending(p) == []


@case
def a_run_is_looked_at_while_it_goes_on(p):
    fill(p)
    process = p.start("run", "--", "sh", "-c", CHANGE + "; echo there; read x")
    assert process.stdout.readline() == b"there\n"
    assert "it is still going on" in expect(bawn(p, "diff"), 0, "+more").stdout
    expect(bawn(p, "apply"), 1, "it is still running")
    expect(bawn(p, "discard"), 1, "it is still running")
    process.communicate(b"\n", timeout=20)
    assert process.returncode == 0
    assert "going on" not in expect(bawn(p, "diff"), 0, "+more").stdout


@case
def what_a_killed_run_wrote_is_not_lost(p):
    fill(p)
    process = p.start("run", "--", "sh", "-c", CHANGE + "; echo there; sleep 60")
    assert process.stdout.readline() == b"there\n"
    process.kill()
    process.communicate(timeout=20)
    cages.wait_until(lambda: "still going on" not in bawn(p, "diff").stdout, 10, "the end of the run")
    expect(bawn(p, "diff"), 0, "+more", "+new", "-gone")
    expect(bawn(p, "apply"), 0, "3 applied")
    assert (p.project / "README").read_text().endswith("more\n") and not (p.project / "src/old.c").exists()


if __name__ == "__main__":
    cages.main()
