#!/usr/bin/env python3
"""apply against a tree that is not what it seems, and against its own sudden end.

    apply_hostile.py TOOL INJECT [PART OF A NAME]        prints TAP

Each race is run twice: against apply, which never leaves the tree, and against a copy by paths that
looks before it writes, which does; otherwise the race would prove nothing. BAWN_TEST_EVERY=1 interrupts
at every system call, not only at some.
"""

import contextlib
import ctypes
import errno
import json
import os
import pathlib
import random
import shutil
import signal
import stat
import subprocess
import time

from apply import EXPECTED, TREE, change_everything, expect_tree
from layer import INJECT, TOOL, Applied, Work, cage, leftovers, look

case, of_users, Skip = cage.case, cage.of_users, cage.Skip
cage.CASES.clear()  # those of apply.py are run there

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2
RENAMEAT2 = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
SECONDS = 3
POINTS = 40  # where a call is interrupted, for each user


def exchange(a, b):
    return LIBC.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE) == 0


@contextlib.contextmanager
def swapping(a, b, pause):
    """Another process lets two names change places, all the time; with `pause` it rests now and then."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        a, b = os.fsencode(a), os.fsencode(b)
        while True:
            for _ in range(50):
                exchange(a, b)
            if pause:
                time.sleep(random.random() / 500)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextlib.contextmanager
def resting(child):
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    try:
        yield
    finally:
        os.kill(child, signal.SIGCONT)


def canary(place):
    """A folder outside the tree that has what the run would change."""
    outside = place.make("outside")
    for n in range(20):
        place.write(f"outside/f{n}", f"outside {n}\n")
        place.write(f"outside/gone{n}", f"outside {n}\n")
    place.make("outside/folder", 0o750)
    return outside


def state(top):
    return {path: (what, os.lstat(os.path.join(os.fsencode(top), path)).st_mtime_ns)
            for path, what in look(top).items()}


# --- planted links ---

@case
def links_in_the_project_lead_nowhere(place):
    """As a parent, as a target, in the place of a folder, over several folders; absolute and relative."""
    outside = canary(place)
    work = Work(place, {"a/f0": "old\n", "b/c/f1": "old\n", "f2": "old\n", "d/gone3": "old\n", "folder/x": "x\n",
                        "e/f5": "old\n", "new-in/x": "x\n"})
    for path in ("a/f0", "b/c/f1", "f2", "e/f5"):
        work.write(path, "new\n")
    work.write("new-in/f7", "new\n")
    work.write("new-in/made/f8", "new\n")
    work.delete("d/gone3")
    work.write("folder", None, 0o777)
    work.scan()
    for path, target in (("a", outside), ("b", "../outside"), ("d", outside), ("new-in", outside)):
        shutil.rmtree(work.tree / path)
        (work.tree / path).symlink_to(target)
    for path, target in (("f2", outside / "f2"), ("folder", outside / "folder")):
        shutil.rmtree(work.tree / path) if (work.tree / path).is_dir() else (work.tree / path).unlink()
        (work.tree / path).symlink_to(target)
    (work.tree / "e/f5").unlink()
    (work.tree / "e/f5").symlink_to("../../outside/f5")
    os.makedirs(outside / "c")
    (outside / "c/f1").write_text("outside\n")
    for path in (outside / "c", outside / "c/f1", *work.tree.rglob("*")):
        os.chown(path, place.uid, place.uid, follow_symlinks=False)
    before, tree = state(outside), look(work.tree)
    applied = work.apply()
    assert applied.counts["applied"] == 0 and applied.counts["conflict"] >= 6, applied.text
    assert state(outside) == before and look(work.tree) == tree, applied.text
    applied = work.apply("--force")
    assert state(outside) == before, applied.text
    assert (work.tree / "f2").read_text() == (work.tree / "e/f5").read_text() == "new\n"
    assert not (work.tree / "f2").is_symlink() and not (work.tree / "e/f5").is_symlink()
    assert not leftovers(work.tree, work.run, outside)


@case
def links_of_the_layer_are_data(place):
    """Also one in the place of a file, of a folder, and behind a folder's name."""
    secret = place.write("secret", "secret\n", 0o600)
    work = Work(place, {"x/file": "old\n"})
    work.write("x/file", "new\n")
    work.write("link", pathlib.Path(secret))
    work.scan()
    shutil.rmtree(work.layer / "x")
    os.makedirs(place.home / "elsewhere")
    (place.home / "elsewhere/file").write_text("new\n")
    (work.layer / "x").symlink_to(place.home / "elsewhere")
    applied = work.apply()
    applied.expect(applied=1, failed=1)
    assert (work.tree / "x/file").read_text() == "old\n" and os.readlink(work.tree / "link") == str(secret)


# --- races ---

def naive_copy(work):
    """By paths, as cp or a careful script would: looks whether there is a link, then writes."""
    for path in sorted(work.layer.rglob("*")):
        target = work.tree / path.relative_to(work.layer)
        with contextlib.suppress(OSError):
            if target.is_symlink() or target.parent.is_symlink():
                continue
            if stat.S_ISCHR(path.lstat().st_mode):
                os.unlink(target)
            elif path.is_file():
                with open(target, "wb") as out:
                    out.write(path.read_bytes())


def race(place, prepare, again, copy):
    """(the canary is as it was, how often something was applied), after some seconds of swapping."""
    outside = canary(place)
    work, a, b = prepare(place, outside)
    before, seen = state(outside), 0
    is_naive = copy is naive_copy
    end = time.monotonic() + (10 if is_naive else 1) * SECONDS * cage.SLOW
    with swapping(a, b, pause=not is_naive) as swapper:
        while time.monotonic() < end and (not is_naive or state(outside) == before):
            seen += copy(work) or 0
            with resting(swapper):
                again(work)
    return state(outside) == before and not leftovers(outside), seen


def apply_once(work):
    applied = work.apply()
    assert applied.status == 0, applied.error
    assert applied.counts["failed"] == 0, applied.text
    return applied.counts["applied"]


def files_in_a_swapped_folder(place, outside):
    work = Work(place, {f"a/b/f{n}": "old\n" for n in range(20)} | {f"a/b/gone{n}": "old\n" for n in range(20)})
    for n in range(20):
        work.write(f"a/b/f{n}", "new\n")
        work.write(f"a/b/new{n}", "new\n")
        work.delete(f"a/b/gone{n}")
    work.write("a/b/folder", None, 0o777)
    work.scan()
    (work.tree / "a/swap").symlink_to(outside)
    os.chown(work.tree / "a/swap", place.uid, place.uid, follow_symlinks=False)
    return work, work.tree / "a/b", work.tree / "a/swap"


def restore_folder(work):
    """The folder as it was before, under whichever name it has just now; its files have other inodes."""
    name = "swap" if (work.tree / "a/b").is_symlink() else "b"
    for n in range(20):
        work.put(work.tree, f"a/{name}/f{n}", "old\n")
        work.put(work.tree, f"a/{name}/gone{n}", "old\n")
        (work.tree / f"a/{name}/new{n}").unlink(missing_ok=True)


def files_that_are_swapped(place, outside):
    work = Work(place, {"f0": "old\n"})
    work.write("f0", "new\n")
    work.scan()
    (work.tree / "swap").symlink_to(outside / "f0")
    os.chown(work.tree / "swap", place.uid, place.uid, follow_symlinks=False)
    return work, work.tree / "f0", work.tree / "swap"


def restore_file(work):
    """One of the two a file, and the other one a link, whatever was replaced."""
    for name in ("f0", "swap"):
        (work.tree / name).unlink(missing_ok=True)
    work.put(work.tree, "f0", "old\n")
    work.put(work.tree, "swap", work.place.home / "outside/f0")


@case
def a_parent_that_is_swapped_leads_nowhere(place):
    is_unharmed, applied = race(place, files_in_a_swapped_folder, restore_folder, apply_once)
    assert is_unharmed, "something outside the tree was changed"
    assert applied > 0, "nothing was ever applied, so nothing was shown"


@case
def a_parent_that_is_swapped_leads_a_copy_by_paths_out(place):
    is_unharmed, _ = race(place, files_in_a_swapped_folder, restore_folder, naive_copy)
    assert not is_unharmed, "the race is never won: it shows nothing"


@case
def a_target_that_is_swapped_leads_nowhere(place):
    is_unharmed, applied = race(place, files_that_are_swapped, restore_file, apply_once)
    assert is_unharmed, "something outside the tree was changed"
    assert applied > 0, "nothing was ever applied, so nothing was shown"


@case
def a_target_that_is_swapped_leads_a_copy_by_paths_out(place):
    is_unharmed, _ = race(place, files_that_are_swapped, restore_file, naive_copy)
    assert not is_unharmed, "the race is never won: it shows nothing"


@case
def a_file_that_appears_meanwhile_is_not_overwritten(place):
    """Somebody makes the same names, in the middle of it: whoever is first keeps it whole."""
    work = Work(place)
    for n in range(300):
        work.write(f"f{n}", f"run {n}\n")
    work.scan()
    for _ in range(5):
        process = place.start(*work.words(), program=TOOL, cwd=place.home)
        made = []
        for n in reversed(range(300)):
            with contextlib.suppress(FileExistsError):
                fd = os.open(work.tree / f"f{n}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                os.write(fd, b"host\n")
                os.close(fd)
                made.append(n)
        process.communicate(timeout=60)
        for n in range(300):
            wanted = "host\n" if n in made else f"run {n}\n"
            assert (work.tree / f"f{n}").read_text() == wanted, n
            (work.tree / f"f{n}").unlink()
        assert not leftovers(work.tree, work.run)


# --- interrupted ---

def inject(work, *options):
    """apply under the injector: its report, and what it printed."""
    read, write = os.pipe()
    words = [*options, "--report", write, "--", TOOL, *work.words()]
    process = work.place.start(*words, program=INJECT, cwd=work.place.home, pass_fds=(write,))
    os.close(write)
    out, err = process.communicate(timeout=60 * cage.SLOW)
    with open(read, "rb") as report:
        return json.loads(report.read() or b"{}"), out.decode(), err.decode()


def count_calls(place):
    work = change_everything(place)
    report, _, _ = inject(work, "--log", "--process", "k")
    calls = report["processes"][0]["calls"]
    clear(place)
    return calls


def clear(place):
    for name in ("tree", "layer", "run"):
        subprocess.run(["chmod", "-R", "u+rwx", place.home / name], check=True)
        shutil.rmtree(place.home / name)


def points(calls):
    if os.environ.get("BAWN_TEST_EVERY"):
        return range(1, calls + 1)
    step = max(1, calls // POINTS)
    return range(1 + os.getpid() % step, calls + 1, step)


def is_whole(work):
    """Every file is what it was or what it will be, and nothing else is there but temporary files."""
    before = {path: what if isinstance(what, pathlib.Path) else what.encode() for path, what in TREE.items()}
    for path, what in work.look().items():
        path = os.fsdecode(path)
        if "/.bawn-" in f"/{path}":
            continue
        if what[0] == "file":
            options = [before.get(path)] + ([EXPECTED[path][2]] if EXPECTED.get(path, [""])[0] == "file" else [])
            assert what[2] in options, f"{path} is {what[2][:40]}"
        elif what[0] == "link":
            options = [os.fsencode(str(before.get(path))), EXPECTED.get(path, [None, None])[1]]
            assert what[1] in options, f"{path} leads to {what[1]}"


@case
def killed_anywhere_the_next_call_finishes(place):
    calls = count_calls(place)
    interrupted = 0
    for call in points(calls):
        work = change_everything(place)
        report, _, _ = inject(work, "--process", "k", "--call", call, "--kill")
        assert report["signal"] == signal.SIGKILL or call > calls - 20, (call, report)  # one call more or less
        is_whole(work)
        if call % 2:
            done = work.tool("clean", work.tree, work.run)
            assert done.returncode == 0, done.stderr
            assert not leftovers(work.tree, work.run), (call, leftovers(work.tree, work.run))
            is_whole(work)
        applied = work.apply()
        assert applied.status == 0, (call, applied.text)
        assert not applied.counts["conflict"] and not applied.counts["failed"], (call, applied.text)
        interrupted += applied.counts["interrupted"]
        expect_tree(work, EXPECTED)
        clear(place)
    assert interrupted > 2, "it was never interrupted after it began"


@case
def whatever_call_fails_every_file_is_whole(place):
    """No space, no rights, a broken disk: what is not applied is what it was, and nothing is left over."""
    calls = count_calls(place)
    for n, call in enumerate(points(calls)):
        work = change_everything(place)
        error = (28, 5, 13, 12, 1)[n % 5]
        _, out, err = inject(work, "--process", "k", "--call", call, "--error", error)
        is_whole(work)
        left = [path for path in leftovers(work.tree) if "unlink" not in err]
        applied = work.apply()
        assert applied.status == 0, (call, error, applied.error)
        assert len(left) <= 1, (call, error, left, out, err)  # the removal of one may itself have failed
        assert not applied.counts["failed"], (call, error, applied.text)
        expect_tree(work, EXPECTED)
        clear(place)


@case
def a_file_system_that_cannot_exchange_names(place):
    """Nor rename without replacing: then by links, and a type changes in two steps."""
    work = change_everything(place)
    report, out, _ = inject(work, "--process", "k", "--call", 1, "--number", RENAMEAT2, "--error", errno.EINVAL,
                            "--times", 0)
    assert report["hits"] > 10, report
    assert "conflict=0" in out and "failed=0" in out, out
    expect_tree(work, EXPECTED)


@case
def few_descriptors_are_enough(place):
    work = Work(place)
    for n in range(300):
        work.write(f"d{n}/e/f", f"{n}\n")
    work.scan()
    script = 'ulimit -n 48; exec "$@"'
    applied = Applied(place.run("-c", script, "sh", TOOL, *work.words(), program="sh", cwd=place.home))
    applied.expect(applied=900)
    assert work.look() == look(work.layer)


@case
def stopped_it_finishes_the_file_and_cleans_up(place):
    for stop in (1, 2, 5, 10, 20, 30, 50):
        work = change_everything(place)
        applied = work.apply("--stop", stop)
        assert applied.status == 0 and applied.counts["stopped"] == 1, applied.text
        assert not leftovers(work.tree, work.run)
        is_whole(work)
        applied = work.apply()
        assert applied.counts["interrupted"] == 0 and not applied.counts["conflict"], applied.text
        expect_tree(work, EXPECTED)
        clear(place)


@case
def a_forged_journal_removes_nothing_but_ours(place):
    """Whatever it says: only files of our own naming, and only below the tree."""
    outside = place.write("outside/.bawn-test-0", "x\n")
    work = Work(place, {"precious": "p\n", ".git/index": "i\n", ".git/index.lock": "git's\n", "dir/x": "x\n",
                        ".bawn-other-1": "another run's\n"})
    (work.tree / "link").symlink_to(place.home / "outside")
    entries = [(b"precious", b""), (b"../outside/.bawn-test-0", b""), (b"link/.bawn-test-0", b""),
               (b".git/.bawn-test-0", b"index.lock"), (b".bawn-other-1", b""), (b"/etc/passwd", b""),
               (b"dir/.bawn-test-1", b"../precious"), (b".bawn-test-2", b"")]
    (work.tree / ".bawn-test-2").write_text("ours\n")
    journal = work.run / "apply.journal"
    journal.write_bytes(b"".join(path + b"\0" + lock + b"\0" for path, lock in entries) + b"cut off")
    for path in (journal, *work.tree.rglob("*")):
        os.chown(path, place.uid, place.uid, follow_symlinks=False)
    done = work.tool("clean", work.tree, work.run)
    assert outside.exists(), "a file outside the tree was removed"
    wanted = {"precious", ".git", ".git/index", ".git/index.lock", "dir", "dir/x", ".bawn-other-1", "link"}
    assert {os.fsdecode(path) for path in work.look()} - {".bawn-test-2"} == wanted
    assert done.returncode == 1 or not (work.tree / ".bawn-test-2").exists()


if __name__ == "__main__":
    cage.main()
