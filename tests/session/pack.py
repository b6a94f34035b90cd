#!/usr/bin/env python3
"""Workspaces as bytes, and back: nothing is lost, and nothing comes out of bytes that are somebody else's.

    pack.py PACKING PACKING [PART OF A NAME]        prints TAP

Pieces are also written here, by hand, after docs/format-workspace.md.
"""

import contextlib
import errno
import hashlib
import os
import pathlib
import random
import socket
import stat
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402

case, of_root, of_users, expect, Skip = cage.case, cage.of_root, cage.of_users, cage.expect, cage.Skip
PACKING = cage.BAWN  # what prepare() copies
ID = "%032x" % 0x1234567890abcdef1234567890abcdef
MOST = 256 << 20


class Root:
    """A sessions' root with one workspace, and another to unpack into."""

    def __init__(self, place):
        self.place = place
        self.here, self.there = place.make("here", 0o700), place.make("there", 0o700)
        self.piece = place.home / "piece"
        self.top = place.make(self.here / ID / "w" / "1", 0o700)
        for path in (self.here / ID, self.here / ID / "w"):
            path.chmod(0o700)
        for name in ("home", "tmp", "layer", "layer/upper", "layer/work"):
            place.make(self.top / name)
        place.write(self.top / "lock", "")

    def own(self):
        subprocess.run(["chown", "-hR", f"{self.place.uid}:{self.place.uid}", self.here], check=True)

    def pack(self, root=None, number=1, piece=None, **more):
        return self.place.run(root or self.here, "pack", ID, number, piece or self.piece, program=PACKING, cwd="/",
                              **more)

    def unpack(self, content=None, number=1, **more):
        if content is not None:
            self.place.write(self.piece, content, 0o600)
        return self.place.run(self.there, "unpack", ID, number, self.piece, program=PACKING, cwd="/", **more)

    def out(self, number=1):
        return self.there / ID / "w" / str(number)

    def made(self):
        """All that is in the other root."""
        return sorted(str(path.relative_to(self.there)) for path in self.there.rglob("*"))


def describe(path):
    """What is kept of a tree; of files also where they come from does not matter."""
    found = {}
    for item in [path, *sorted(path.rglob("*"))]:
        st = item.lstat()
        kind, mode = stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode)
        row = [stat.filemode(kind)[0], st.st_mtime_ns]
        if kind in (stat.S_IFREG, stat.S_IFDIR):
            row += [mode, {name: os.getxattr(item, name) for name in os.listxattr(item)}]
        if kind == stat.S_IFREG:
            with open(item, "rb") as file:
                row += [st.st_size, hashlib.file_digest(file, "sha256").hexdigest()]
        if kind == stat.S_IFLNK:
            row += [os.readlink(item)]
        if kind == stat.S_IFCHR:
            row += [st.st_rdev]
        found[os.fsencode(item.relative_to(path))] = row
    return found


def fill(root):
    """One of each kind, some of them not easy to read."""
    upper, home = root.top / "layer" / "upper", root.top / "home"
    (upper / "file").write_bytes(b"content")
    (upper / "file").chmod(0o741)
    os.setxattr(upper / "file", "user.colour", b"red\0")
    os.setxattr(upper / "file", "user.a", b"")
    (upper / "opaque").mkdir()
    os.setxattr(upper / "opaque", "user.overlay.opaque", b"y")
    os.mknod(upper / "gone", stat.S_IFCHR, 0)
    os.symlink("/etc/passwd", upper / "out")
    os.symlink("..", upper / "up")
    os.symlink(b"\xff" * 4000, upper / "long")
    (upper / "set-group").mkdir()
    (upper / "set-group").chmod(0o2775)
    (upper / "sticky").mkdir()
    (upper / "sticky").chmod(0o1777)
    with open(upper / "holes", "wb") as file:
        file.truncate(1 << 26)
        for at in (0, 5000, 1 << 20, (1 << 26) - 3):
            file.seek(at)
            file.write(b"xyz")
    (home / "empty").write_bytes(b"")
    (home / "zeros").write_bytes(bytes(100_000))
    (home / "large").write_bytes(random.Random(1).randbytes(3_000_001))
    with open(os.fsencode(home) + b"/odd\n\xff name", "wb") as file:
        file.write(b"odd")
    os.link(home / "large", home / "twice")
    (home / "closed").write_bytes(b"nobody may read this")
    (home / "locked" / "inner").mkdir(parents=True)
    (home / "locked" / "inner" / "file").write_bytes(b"deep")
    (home / "entered").mkdir()
    (home / "entered" / "file").write_bytes(b"x")
    os.utime(upper / "file", ns=(1, 1_000_000_007))
    os.utime(home / "empty", ns=(-5_000_000_000, -5_000_000_001))
    os.utime(upper / "out", ns=(3, 3), follow_symlinks=False)
    os.utime(upper / "gone", ns=(4, 4))
    os.symlink(root.place.project, root.top / "project")
    os.symlink(root.place.project / ".git", root.top / "git")
    (root.top / "protect").write_bytes(b".env\0Makefile\0")
    root.own()
    # chown takes set-id bits away, and permissions the way in.
    (upper / "set-group").chmod(0o2775)
    for path, mode in ((home / "closed", 0), (home / "locked" / "inner", 0o300), (home / "locked", 0),
                       (home / "entered", 0o600)):
        path.chmod(mode)
    os.utime(home, ns=(7, 7))


# --- there and back ---

@case
def nothing_is_lost(place):
    root = Root(place)
    fill(root)
    before = describe(root.top)
    cage.output(root.pack(), "0\n")
    assert describe(root.top) == before, "packing changed something"
    expect(root.unpack(), 0)
    parts = ("git", "home", "layer/upper", "project", "protect")
    for part in parts:
        assert describe(root.out() / part) == describe(root.top / part), part
    assert sorted(os.listdir(root.out())) == ["git", "home", "layer", "lock", "project", "protect", "tmp"]
    assert os.listdir(root.out() / "layer") == ["upper"]
    assert (root.out() / "layer" / "upper" / "holes").stat().st_blocks < 1000, "holes are filled"
    assert (root.out() / "home" / "twice").stat().st_nlink == 1
    assert stat.S_IMODE((root.out() / "tmp").stat().st_mode) == 0o1777 and not os.listdir(root.out() / "tmp")
    for path in (root.there / ID, root.there / ID / "w", root.out()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    assert all(path.lstat().st_uid == place.uid for path in (root.there / ID).rglob("*"))


@case
def the_same_workspace_gives_the_same_bytes(place):
    root = Root(place)
    fill(root)
    expect(root.pack(), 0)
    expect(root.unpack(number=3), 0)
    expect(root.pack(piece=place.home / "again"), 0)
    expect(root.pack(root.there, 3, place.home / "third"), 0)
    assert root.piece.read_bytes() == (place.home / "again").read_bytes()
    assert root.piece.read_bytes() == (place.home / "third").read_bytes()
    # And another one others.
    (root.top / "home" / "empty").write_bytes(b"!")
    expect(root.pack(piece=place.home / "again"), 0)
    assert root.piece.read_bytes() != (place.home / "again").read_bytes()


@case
def what_cannot_be_kept_is_counted(place):
    root = Root(place)
    home = root.top / "home"
    os.mkfifo(home / "pipe")
    os.mkfifo(root.top / "tmp" / "not looked at")
    with socket.socket(socket.AF_UNIX) as door, contextlib.chdir(home):
        door.bind("door")
    (home / "set-id").write_bytes(b"x")
    if os.geteuid() == 0:
        os.mknod(home / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    root.own()
    (home / "set-id").chmod(0o6755)
    cage.output(root.pack(), "3\n" if os.geteuid() == 0 else "2\n")
    expect(root.unpack(), 0)
    assert os.listdir(root.out() / "home") == ["set-id"]
    assert stat.S_IMODE((root.out() / "home" / "set-id").stat().st_mode) == 0o755


OVERLAY = """
mount -t overlay -o userxattr,lowerdir="$1",upperdir="$2/upper",workdir="$2/work" none "$3" || exit 9
cd "$3" && eval "$4"
"""


@case
def an_overlay_goes_on_where_it_was(place):
    """Files and folders that are gone, one that was made anew, one that was renamed."""
    root = Root(place)
    for path in ("kept", "gone", "folder/gone", "folder/kept", "anew/old", "dir/file"):
        place.write(place.project / path, path)
    mount = place.make("mount")
    change = ("rm gone folder/gone; rm -r anew; mkdir anew; echo new >anew/new; echo more >>kept; rm -r dir; "
              "echo file >dir")
    root.own()

    def merged(layer, command):
        done = place.run("-Urm", "sh", "-c", OVERLAY, "sh", place.project, layer, mount, command,
                         program="/usr/bin/unshare", cwd="/")
        if done.returncode == 9:
            raise Skip(f"no overlay can be mounted here: {done.stderr.strip()}")
        return expect(done, 0).stdout

    show = "find . -type f | sort | while read -r f; do echo \"$f: $(cat \"$f\")\"; done"
    wanted = merged(root.top / "layer", f"{change}; {show}")
    assert wanted.split() == "./anew/new: new ./dir: file ./folder/kept: folder/kept ./kept: keptmore".split(), wanted
    cage.output(root.pack(), "0\n")
    expect(root.unpack(), 0)
    place.make(root.out() / "layer" / "work")
    assert merged(root.out() / "layer", show) == wanted
    # Without the marks, what was gone is there again: they are what it hangs on.
    os.unlink(root.out() / "layer" / "upper" / "gone")
    os.removexattr(root.out() / "layer" / "upper" / "anew", "user.overlay.opaque")
    assert "./gone: gone" in merged(root.out() / "layer", show)
    assert "./anew/old: anew/old" in merged(root.out() / "layer", show)


@case
def what_is_too_large_is_refused(place):
    root = Root(place)
    with open(root.top / "home" / "holes", "wb") as file:
        file.truncate(1 << 40)
    with open(root.top / "home" / "large", "wb") as file:
        for _ in range(MOST >> 20):
            file.write(b"x" * (1 << 20))
    root.own()
    done = expect(root.pack(), 3, "take more than 256M")
    assert done.stderr.count("\n") == 1 and not root.piece.exists()
    # A little less is not.
    os.truncate(root.top / "home" / "large", MOST - 1000)
    expect(root.pack(), 0)
    assert MOST - 1000 < root.piece.stat().st_size <= MOST


@case
def folders_that_are_too_deep_are_refused(place):
    root = Root(place)
    path = root.top / "home"
    for _ in range(255):
        path /= "d"
        path.mkdir()
    root.own()
    expect(root.pack(), 0)
    expect(root.unpack(), 0)
    (path / "d").mkdir()
    root.own()
    expect(root.pack(), 1, "cannot save the workspace", "nested deeper than 256")


@case
def what_vanishes_meanwhile_was_never_there(place):
    """A process that was left behind goes on while the workspace is packed."""
    root = Root(place)
    root.own()
    churn = ("i=0; while :; do i=$(((i + 1) % 50)); rm -rf d$i; mkdir -p d$i/e; echo x >d$i/e/f; ln -s f d$i/l; "
             "mv d$i/e d$i/g; rm -rf n; mkdir n; rmdir n; ln -s x n; rm n; echo x >n; done")
    busy = place.start("-c", churn, program="/bin/sh", cwd=root.top / "home")
    try:
        for number in range(1, 25):
            expect(root.pack(), 0)
            expect(root.unpack(number=number), 0)
    finally:
        busy.kill()
        busy.communicate()


# --- by hand ---

def text(value):
    value = os.fsencode(value)
    return struct.pack("<H", len(value)) + value + b"\0"


def head(kind, name, time=(0, 0)):
    return kind + text(name) + struct.pack("<qI", *time)


def inode(mode=0o755, attributes=()):
    return struct.pack("<HH", mode, len(attributes)) + b"".join(
        text(name) + struct.pack("<I", len(value)) + value for name, value in attributes)


def folder(name, *entries, mode=0o755, attributes=()):
    return head(b"d", name) + inode(mode, attributes) + b"".join(entries) + b"e"


def file(name, *parts, size=None, mode=0o644, attributes=()):
    end = max([at + len(content) for at, content in parts], default=0)
    body = b"".join(struct.pack("<QQ", len(content), at) + content for at, content in parts)
    return (head(b"f", name) + inode(mode, attributes) + struct.pack("<Q", end if size is None else size) + body +
            struct.pack("<Q", 0))


def link(name, target):
    return head(b"l", name) + text(target)


def whiteout(name):
    return head(b"w", name)


def framed(entries, magic=b"BAWN-WS\n", version=1, size=None, left_out=0):
    body = magic + struct.pack("<IQQ", version, len(entries) if size is None else size, left_out) + entries
    return body + hashlib.sha256(body).digest()


def piece(*entries):
    return framed(b"".join(entries) + b"e")


GOOD = (folder("git-layer", folder("upper")),
        folder("home", file("a", (0, b"x" * 9), (4096, b"y"), size=9000, attributes=[("user.a", b"1")]),
               link("b", "/etc/passwd"), whiteout("c"), mode=0o700),
        link("project", "/somewhere"))

HOSTILE = {
    "nothing": b"",
    "something else": b"\x1f\x8b" * 100,
    "another magic": framed(b"e", magic=b"BAWN-WX\n"),
    "a later version": framed(b"e", version=2),
    "a length that is too small": framed(b"e", size=0),
    "a length that is too large": framed(b"e", size=(1 << 64) - 1),
    "no end": framed(b""),
    "two ends": framed(b"ee"),
    "a folder without an end": framed(folder("home")[:-1] + b"e"),
    "an unknown kind": piece(head(b"x", "home")),
    "a name that climbs": piece(folder("home", file(".."))),
    "a name that stays": piece(folder("home", folder("."))),
    "a name that is a path": piece(folder("home", file("a/b"))),
    "a name from the root": piece(folder("home", link("/etc/x", "y"))),
    "a name that is empty": piece(folder("home", file(""))),
    "a name with a NUL": piece(folder("home", file("a\0b"))),
    "a name that does not end": piece(folder("home", file("a").replace(b"a\0", b"ab"))),
    "a name that is too long": piece(folder("home", file("n" * 256))),
    "a name twice, of a link and a folder": piece(folder("home", link("a", "/tmp"), folder("a", file("b")))),
    "names out of order": piece(folder("home", file("b"), file("a"))),
    "a target that is empty": piece(folder("home", link("a", ""))),
    "a target with a NUL": piece(folder("home", link("a", "b\0c"))),
    "a target that is too long": piece(folder("home", link("a", "t" * 4096))),
    "something else at the top": piece(file("lock")),
    "a door": piece(link("door", "/run/x")),
    "a home that is a link": piece(link("home", "/home")),
    "a project that is a folder": piece(folder("project")),
    "a layer's work": piece(folder("layer", folder("work"))),
    "a set-id file": piece(folder("home", file("a", mode=0o4755))),
    "a mode of another kind": piece(folder("home", file("a", mode=0o20644))),
    "a time that is none": piece(head(b"l", "project", (0, 1_000_000_000)) + text("x")),
    "a privileged attribute": piece(folder("home", attributes=[("security.capability", b"x")])),
    "an overlay's attribute of root's": piece(folder("home", attributes=[("trusted.overlay.opaque", b"y")])),
    "an attribute without a name": piece(folder("home", attributes=[("user.", b"x")])),
    "an attribute twice": piece(folder("home", attributes=[("user.a", b"x"), ("user.a", b"y")])),
    "an attribute that is too large": piece(folder("home", attributes=[("user.a", bytes(65537))])),
    "more attributes than there are": piece(head(b"d", "home") + struct.pack("<HH", 0o755, 65535) + b"e"),
    "content beyond the file": piece(folder("home", file("a", (5, b"xyz"), size=7))),
    "content far beyond it": piece(folder("home", file("a", ((1 << 64) - 1, b"xyz"), size=7))),
    "content out of order": piece(folder("home", file("a", (8, b"xyz"), (0, b"xyz"), size=20))),
    "content that overlaps": piece(folder("home", file("a", (0, b"xyz"), (2, b"xyz"), size=20))),
    "more content than there is": piece(folder("home", file("a", (0, b"xyz")).replace(
        struct.pack("<QQ", 3, 0), struct.pack("<QQ", 1 << 62, 0)))),
    "a file that is too large": piece(folder("home", file("a", size=1 << 63))),
    "folders that are too deep": framed(head(b"d", "home") + inode() + (head(b"d", "d") + inode()) * 300 +
                                        b"e" * 302),
    "folders that never end": framed(head(b"d", "home") + inode() + (head(b"d", "d") + inode()) * 100_000),
}


@case
def what_is_written_after_the_description_is_read(place):
    root = Root(place)
    expect(root.unpack(piece(*GOOD)), 0)
    home = root.out() / "home"
    assert (home / "a").read_bytes() == b"x" * 9 + bytes(4087) + b"y" + bytes(4903)
    assert os.getxattr(home / "a", "user.a") == b"1" and os.readlink(home / "b") == "/etc/passwd"
    assert stat.S_ISCHR((home / "c").lstat().st_mode) and stat.S_IMODE(home.stat().st_mode) == 0o700
    # What is written here is what is written there.
    expect(root.unpack(piece(*GOOD[:1], folder("home"), *GOOD[2:]), 2), 0)
    expect(root.pack(root.there, 2), 0)
    assert root.piece.read_bytes() == piece(*GOOD[:1], folder("home"), *GOOD[2:])


@case
def hostile_pieces_make_nothing(place):
    root = Root(place)
    for name, content in HOSTILE.items():
        done = root.unpack(content)
        assert done.returncode == 1 and done.stderr.startswith("packing: cannot use the saved workspace: ") and \
            done.stderr.count("\n") == 1, f"{name}: {done}"
        assert root.made() == [], f"{name}: {root.made()}"
    expect(root.unpack(framed(b"e")), 0)  # an empty one is one


@case
def damage_is_noticed(place):
    root = Root(place)
    whole = piece(*GOOD)
    chance = random.Random(2)
    for _ in range(60):
        at = chance.randrange(len(whole))
        expect(root.unpack(whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1:]), 1)
        expect(root.unpack(whole[:at]), 1)
    assert root.made() == []


@case
def whatever_it_says_it_stays_inside(place):
    """Pieces with their parts mixed up, all with a good digest; those that are taken make one folder."""
    root = Root(place)
    around = describe(place.home)
    chance = random.Random(3)
    words = [b"..\0", b"/\0", b"a/b", b"home", b"layer", b"project", b"\0\0\0", b"\xff\xff", b"e", b"d", b"l", b"f"]
    taken = 0
    for number in range(1, 200):
        entries = bytearray(b"".join(GOOD) + b"e")
        for _ in range(chance.randrange(1, 4)):
            at, word = chance.randrange(len(entries)), chance.choice([*words, bytes([chance.randrange(256)])])
            entries[at:at + len(word)] = word
        done = root.unpack(framed(bytes(entries)), number)
        assert done.returncode in (0, 1, 3), done  # 3: a file larger than any here
        taken += done.returncode == 0
    assert 0 < taken < 199, taken
    assert sorted(os.listdir(root.there)) == [ID] and len(os.listdir(root.there / ID / "w")) == taken
    root.piece.unlink()
    subprocess.run(["rm", "-rf", root.there / ID], check=True)
    now = describe(place.home)
    for found in (around, now):
        for name in (b".", b"there"):
            found.pop(name)
    assert now == around


# --- what is there already ---

@case
def one_that_is_there_is_not_replaced(place):
    root = Root(place)
    expect(root.unpack(piece(folder("home", file("a", (0, b"first"))))), 0)
    expect(root.unpack(piece(folder("home"))), 1, "cannot unpack workspace 1 of session " + ID, "File exists")
    assert (root.out() / "home" / "a").read_bytes() == b"first"
    assert os.listdir(root.there / ID / "w") == ["1"]


@case
def what_was_left_half_made_is_removed(place):
    root = Root(place)
    place.write(root.there / ID / "w" / "1.unpacked" / "home" / "old", "x")
    os.chmod(root.there / ID, 0o700)
    expect(root.unpack(piece(*GOOD)), 0)
    assert os.listdir(root.there / ID / "w") == ["1"]
    assert sorted(os.listdir(root.out() / "home")) == ["a", "b", "c"]


@case
def links_in_the_way_are_not_followed(place):
    root = Root(place)
    outside = place.make("outside", 0o700)
    os.symlink(outside, root.there / ID)
    expect(root.unpack(piece(*GOOD)), 1, "cannot open the folder of session")
    os.unlink(root.there / ID)
    place.make(root.there / ID, 0o700)
    os.symlink(outside, root.there / ID / "w")
    expect(root.unpack(piece(*GOOD)), 1, "cannot open the workspaces")
    os.unlink(root.there / ID / "w")
    place.make(root.there / ID / "w", 0o700)
    os.symlink(outside, root.there / ID / "w" / "1.unpacked")
    os.symlink(outside, root.there / ID / "w" / "2")
    expect(root.unpack(piece(*GOOD)), 0)
    expect(root.unpack(piece(*GOOD), 2), 1, "File exists")
    assert os.listdir(outside) == []


@case
def a_disk_that_is_full_leaves_nothing(place):
    root = Root(place)
    content = piece(folder("home", file("a", (0, b"x" * 10)), folder("b", file("c", (0, b"x" * 100_000)))))
    place.write(root.piece, content)
    done = place.run("--fsize=50000", PACKING, root.there, "unpack", ID, 1, root.piece, program="/usr/bin/prlimit",
                     cwd="/")
    expect(done, 3, "cannot make 'home/b/c'", os.strerror(errno.EFBIG))
    assert root.made() == []
    expect(root.unpack(content), 0)


if __name__ == "__main__":
    cage.main()
