#!/usr/bin/env python3
"""The folders of sessions: made, moved, and removed whatever somebody made of them.

    folders.py FOLDERS FOLDERS [PART OF A NAME]        prints TAP

The race is run twice: against the removal by descriptor, which never leaves the folder, and against one
by paths, which does; otherwise the race would prove nothing.
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import random
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402

case, of_root, of_users, expect, Skip = cage.case, cage.of_root, cage.of_users, cage.expect, cage.Skip
FOLDERS = cage.BAWN  # what prepare() copies
IDS = ["%032x" % (number * 0x1234567890abcdef) for number in range(1, 4)]
ONE, OTHER = IDS[:2]

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, RENAME_EXCHANGE = -100, 2
FS_IOC_GETFLAGS, FS_IOC_SETFLAGS = 0x80086601, 0x40086602
IMMUTABLE, APPEND = 0x10, 0x20
RACES = 400


class Root:
    """A sessions' root of a person's, with sessions in it."""

    def __init__(self, place, *ids):
        self.place = place
        self.top = place.make("root", 0o700)
        for id_ in ids:
            expect(self.run("make", id_), 0)

    def run(self, *words, **more):
        return self.place.run(self.top, *words, program=FOLDERS, cwd="/", **more)

    def home(self, id_, number=1):
        return self.top / id_ / "w" / str(number) / "home"

    def put(self, path, content="x", mode=0o644):
        """In the home of the first session, as who is in the cage would."""
        return self.place.write(self.home(ONE) / path, content, mode)

    def names(self):
        return sorted(os.listdir(self.top))

    @contextlib.contextmanager
    def held(self, id_, number=1):
        """While somebody is at work in a workspace."""
        holder = self.place.start(self.top, "hold", id_, number, program=FOLDERS, cwd="/")
        assert holder.stdout.readline() == b"held\n", holder.stderr.read()
        try:
            yield
        finally:
            holder.communicate()


def modes(top):
    return {str(path.relative_to(top)): stat.S_IMODE(path.lstat().st_mode) for path in sorted(top.rglob("*"))}


# --- making ---

@case
def a_folder_is_whole_and_private(place):
    root = Root(place, ONE)
    assert modes(root.top / ONE) == {"spec.json": 0o600, "w": 0o700, "w/1": 0o700, "w/1/home": 0o700,
                                     "w/1/lock": 0o600, "w/1/tmp": 0o1777}
    assert stat.S_IMODE((root.top / ONE).stat().st_mode) == 0o700
    expect(root.run("make", ONE), 1, "File exists")
    assert root.names() == [ONE], "a second one left something, or replaced the first"


@case
def what_is_not_an_id_has_no_folder(place):
    root = Root(place)
    for id_ in ("", ".", "..", "../x", "/etc", "x" * 32, ONE + "0", ONE[:-1], ONE.upper(), ONE[:-1] + "\n"):
        for verb in ("make", "remove"):
            expect(root.run(verb, id_), 1, "Invalid argument")
    assert root.names() == []


@case
def what_was_interrupted_is_known(place):
    """A folder that was not confirmed says so; one that is half made is removed after an hour."""
    root = Root(place, ONE)
    expect(root.run("draft", OTHER), 0)
    for name in (IDS[2] + ".new", IDS[1] + ".new"):
        place.make(root.top / name / "w")
    done = expect(root.run("list"), 0)
    assert sorted(line.split()[0::2] for line in done.stdout.splitlines()) == [[ONE], [OTHER, "new"]], done.stdout
    assert len(root.names()) == 4, "a young one was removed"
    os.utime(root.top / (IDS[2] + ".new"), (0, 0))
    expect(root.run("list"), 0)
    assert root.names() == sorted([ONE, OTHER, IDS[1] + ".new"])


@case
def two_at_once_agree_on_the_root_s_id(place):
    root = Root(place)
    started = [place.start(root.top, "id", program=FOLDERS, cwd="/") for _ in range(16)]
    said = {process.communicate()[0] for process in started}
    assert len(said) == 1 and len(said.pop()) == 33, said
    assert root.names() == ["id"]
    (root.top / "id").write_text("../../etc\n")
    expect(root.run("id"), 1, "cannot read the id of the sessions' root")


@case
def a_root_that_others_may_write_to_is_refused(place):
    root = Root(place, ONE)
    for mode in (0o720, 0o702, 0o777):
        root.top.chmod(mode)
        expect(root.run("remove", ONE), 1, "it is not yours, or others can write to it")
    root.top.chmod(0o700)
    assert root.names() == [ONE]
    expect(place.run("relative", "id", program=FOLDERS, cwd="/"), 1, "is not an absolute path")
    expect(place.run(place.home / "no" / "root", "id", program=FOLDERS), 1, "cannot open the sessions' root")
    assert not (place.home / "no").exists()


@of_root
@case
def a_root_of_somebody_else_s_is_refused(place):
    root = Root(place, ONE)
    os.chown(root.top, cage.USER, cage.USER)
    expect(root.run("remove", ONE), 1, "it is not yours, or others can write to it")
    os.chown(root.top, 0, 0)
    os.chown(root.top / ONE, cage.USER, cage.USER)
    expect(root.run("remove", ONE), 1, "its folder is not yours")
    assert (root.top / ONE / "spec.json").exists()


# --- removing ---

@case
def a_session_is_removed_and_its_neighbour_is_not(place):
    root = Root(place, ONE, OTHER)
    root.put("a/b/c")
    (root.home(ONE) / "neighbour").symlink_to(root.home(OTHER))
    (root.home(ONE) / "all").symlink_to("/")
    os.mkfifo(root.home(ONE) / "pipe")
    place.write(root.home(OTHER) / "kept", "kept")
    before = cage.picture(root.top / OTHER)
    expect(root.run("remove", ONE), 0)
    assert root.names() == [OTHER] and cage.picture(root.top / OTHER) == before
    expect(root.run("remove", ONE), 0)  # there is nothing


def make_deep(top, depth, name="d" * 200):
    """Folders in folders, by descriptor: a path this long nobody can name."""
    at = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, 0o755, dir_fd=at)
        inner = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@case
def a_tree_deeper_than_paths_and_descriptors_is_removed(place):
    root = Root(place, ONE, OTHER)
    for id_ in (ONE, OTHER):
        make_deep(root.home(id_), 2000)
        place.write(root.home(id_) / "moved-0", "in the way")
        subprocess.run(["chown", "-R", f"{place.uid}:{place.uid}", root.top], check=False, capture_output=True)
    expect(root.run("remove", ONE), 0)
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))  # noqa: E731
    expect(root.run("remove", OTHER, preexec_fn=few), 0)
    assert root.names() == []


@case
def folders_that_nobody_may_enter_are_removed(place):
    root = Root(place, ONE)
    for number, mode in enumerate((0o000, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600)):
        root.put(f"{number}/in/file")
        (root.home(ONE) / str(number) / "in").chmod(mode)
        (root.home(ONE) / str(number)).chmod(mode)
    (root.top / ONE / "w" / "1" / "home").chmod(0)
    expect(root.run("remove", ONE), 0)
    assert root.names() == []


def set_marks(path, marks):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        had = struct.unpack("l", fcntl.ioctl(fd, FS_IOC_GETFLAGS, bytes(8)))[0]
        fcntl.ioctl(fd, FS_IOC_SETFLAGS, struct.pack("l", had & ~(IMMUTABLE | APPEND) | marks))
    except OSError as e:
        raise Skip(f"no marks on this file system: {e}") from None
    finally:
        os.close(fd)


@contextlib.contextmanager
def marked(top):
    """Nothing that is immutable outlives the test."""
    try:
        yield
    finally:
        for folder, _, files in os.walk(top):
            for path in (folder, *(os.path.join(folder, name) for name in files)):
                set_marks(path, 0)


@of_root
@case
def what_is_immutable_is_removed(place):
    root = Root(place, ONE)
    with marked(root.top):
        for number, marks in enumerate((IMMUTABLE, APPEND, IMMUTABLE | APPEND)):
            file = root.put(f"{number}/in/file")
            root.put(f"{number}/in/plain")
            for path in (file, file.parent, file.parent.parent):
                set_marks(path, marks)
            try:
                shutil.rmtree(file.parent)
                raise AssertionError("it was not immutable")
            except PermissionError:
                pass
        make_deep(root.home(ONE), 600, "d")
        for depth in (240, 254, 255, 256, 257, 400):
            set_marks(root.home(ONE) / "/".join(["d"] * depth), IMMUTABLE)
        expect(root.run("remove", ONE), 0)
        assert root.names() == []


@of_users
@case
def what_is_somebody_else_s_is_named_and_the_rest_removed(place):
    """Folders of ids that a cage once had, with something in them."""
    if os.geteuid() != 0:
        raise Skip("only root gives a file to somebody else")
    root = Root(place, ONE, OTHER)
    for name in ("a", "b", "c"):
        root.put(f"{name}/foreign/file")
        os.chown(root.home(ONE) / name / "foreign", 1, 1)
        root.put(f"{name}/own")
        os.chown(root.put(f"{name}/theirs"), 1, 1)
    done = expect(root.run("remove", ONE, OTHER), 1, "cannot remove the files of session " + ONE, "/foreign/file",
                  "Permission denied", "and 2 more")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    left = {str(path.relative_to(root.home(ONE))) for path in root.home(ONE).rglob("*")}
    assert left == {f"{name}{rest}" for name in "abc" for rest in ("", "/foreign", "/foreign/file")}, left
    assert OTHER not in root.names(), "a failure stopped the rest"
    for name in ("a", "b", "c"):
        os.chown(root.home(ONE) / name / "foreign", place.uid, place.uid)
    expect(root.run("remove", ONE), 0)
    assert root.names() == []


@of_root
@case
def a_mount_is_not_entered(place):
    root = Root(place, ONE)
    outside = place.write("outside/kept", "kept").parent
    root.put("before/file")
    point, file = place.make(root.home(ONE) / "point"), root.put("file")
    script = f'mount --bind {outside} {point}; mount --bind {outside}/kept {file}; "$@"; e=$?; umount {point} {file}; exit $e'
    words = ["unshare", "-m", "sh", "-c", script, "sh", FOLDERS, root.top, "remove", ONE]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    expect(done, 1, "another file system is mounted there", "and 1 more")
    assert (outside / "kept").read_text() == "kept"
    assert not (root.home(ONE) / "before").exists() and point.exists()
    expect(root.run("remove", ONE), 0)
    assert (outside / "kept").read_text() == "kept" and root.names() == []


@of_root
@case
def a_mount_in_place_of_the_session_is_not_entered(place):
    root = Root(place, ONE, OTHER)
    place.write(root.home(OTHER) / "kept", "kept")
    for point in (root.top / ONE, root.top / ONE / "w", root.top / ONE / "w" / "1"):
        source = root.top / OTHER / point.relative_to(root.top / ONE)
        words = ["unshare", "-m", "sh", "-c", f'mount --bind {source} {point}; "$@"; e=$?; umount {point}; exit $e',
                 "sh", FOLDERS, root.top, "remove", ONE]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        expect(done, 1)
        assert (root.home(OTHER) / "kept").read_text() == "kept", point


@case
def nothing_is_removed_while_somebody_is_at_work(place):
    root = Root(place, ONE)
    root.put("file")
    with root.held(ONE):
        before = cage.picture(root.top)
        done = root.run("remove", ONE)
        assert cage.picture(root.top) == before
        expect(done, 3, "a process is using it")
    expect(root.run("remove", ONE), 0)


@case
def a_link_in_place_of_a_session_is_not_followed(place):
    root = Root(place, ONE, OTHER)
    place.write(root.home(OTHER) / "kept", "kept")
    for path in (root.top / ONE / "w" / "1", root.top / ONE / "w", root.top / ONE):
        target = root.top / OTHER / path.relative_to(root.top / ONE)
        path.rename(place.home / "aside")
        path.symlink_to(target)
        root.run("remove", ONE)
        assert (root.home(OTHER) / "kept").read_text() == "kept", path
        shutil.rmtree(place.home / "aside")
        if path.is_symlink():
            path.unlink()
        if not (root.top / ONE).exists():
            expect(root.run("make", ONE), 0)


@contextlib.contextmanager
def swapping(a, b):
    """Another process lets two names change places, all the time."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        a, b = os.fsencode(a), os.fsencode(b)
        while True:
            for _ in range(50):
                LIBC.renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE)
            time.sleep(random.random() / 2000)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def race(root, verb, races):
    """How many of the races cost the neighbour a file."""
    lost = 0
    kept = root.home(OTHER) / "kept"
    for _ in range(races):
        expect(root.run("make", ONE), 0)
        home = root.home(ONE)
        for number in range(8):
            place_in = root.place.make(home / "a" / str(number))
            root.place.write(place_in / "file", "x")
        (home / "b").symlink_to(root.home(OTHER))
        root.place.write(kept, "kept")
        with swapping(home / "a", home / "b"):
            root.run(verb, ONE)
        lost += not kept.exists()
        expect(root.run("remove", ONE), 0)
    return lost


@case
def a_race_leads_the_removal_nowhere(place):
    root = Root(place, OTHER)
    assert race(root, "remove", RACES // 4) == 0


@case
def the_same_race_leads_one_by_paths_astray(place):
    root = Root(place, OTHER)
    for _ in range(RACES // 20):
        if race(root, "by-path", 20):
            return
    raise AssertionError(f"in none of {RACES} races")


# --- moving ---

def whiteout(path):
    os.mknod(path, stat.S_IFCHR, 0)


@case
def a_free_workspace_becomes_the_next_one(place):
    root = Root(place, ONE)
    inode = root.put("file").stat().st_ino
    cage.output(root.run("move", ONE, 1, 5), "moved\n")
    assert os.listdir(root.top / ONE / "w") == ["5"]
    assert (root.home(ONE, 5) / "file").stat().st_ino == inode
    expect(root.run("move", ONE, 5, 5), 1, "File exists")
    expect(root.run("move", OTHER, 1, 2), 1, "is not here")


@case
def one_that_is_held_is_copied(place):
    """With all that an overlay's layer is made of; and its holder goes on in the old one."""
    root = Root(place, ONE)
    upper = place.make(root.top / ONE / "w" / "1" / "layer" / "upper")
    place.make(root.top / ONE / "w" / "1" / "layer" / "work" / "work", 0)
    whiteout(upper / "gone")
    os.lchown(upper / "gone", place.uid, place.uid)
    place.make(upper / "opaque")
    try:
        os.setxattr(upper / "opaque", "user.overlay.opaque", b"y")
    except OSError as e:
        raise Skip(f"no attributes here: {e}") from None
    (root.top / ONE / "w" / "1" / "project").symlink_to(place.project)
    os.lchown(root.top / ONE / "w" / "1" / "project", place.uid, place.uid)
    root.put("file", "as it was")
    with root.held(ONE):
        cage.output(root.run("move", ONE, 1, 2), "copied\n")
        (root.home(ONE) / "file").write_text("later")
        new = root.top / ONE / "w" / "2"
        assert (new / "home" / "file").read_text() == "as it was"
        st = (new / "layer" / "upper" / "gone").lstat()
        assert stat.S_ISCHR(st.st_mode) and st.st_rdev == 0
        assert os.getxattr(new / "layer" / "upper" / "opaque", "user.overlay.opaque") == b"y"
        assert os.readlink(new / "project") == str(place.project)
        # The next one leaves it too, while it is held; and removes it later.
        cage.output(root.run("move", ONE, 2, 3), "moved\n")
        assert sorted(os.listdir(root.top / ONE / "w")) == ["1", "3"]
    cage.output(root.run("move", ONE, 3, 4), "moved\n")
    assert os.listdir(root.top / ONE / "w") == ["4"]


@case
def one_that_was_moved_by_somebody_who_died_is_found(place):
    root = Root(place, ONE)
    root.put("file", "kept")
    cage.output(root.run("move", ONE, 1, 7), "moved\n")  # and the store was never told
    cage.output(root.run("move", ONE, 1, 9), "moved\n")
    assert (root.home(ONE, 9) / "file").read_text() == "kept"
    # Who slept meanwhile finds nothing that is his.
    expect(root.run("move", ONE, 1, 8), 1, "No such file or directory")
    assert os.listdir(root.top / ONE / "w") == ["9"]


@case
def a_copy_that_fails_leaves_nothing(place):
    root = Root(place, ONE)
    make_deep(root.home(ONE), 300, "d")
    subprocess.run(["chown", "-R", f"{place.uid}:{place.uid}", root.top], check=False)
    with root.held(ONE):
        expect(root.run("move", ONE, 1, 2), 1, "cannot copy workspace 1 of session " + ONE, "deeper than 256")
        assert os.listdir(root.top / ONE / "w") == ["1"]


if __name__ == "__main__":
    cage.main()
