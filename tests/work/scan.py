#!/usr/bin/env python3
"""What a scan finds in a real overlay is the difference of the tree before and after, found by other means.

    scan.py SCAN [SEEDS [FIRST SEED]]        prints TAP; as root, and as a user

Each seed makes a tree and a row of random operations on it, which run in an overlay as a cage has it: in a
user namespace of their own, with `userxattr`. Two pictures of the whole tree, one of the tree below and one of
the overlay, say what must be found.
"""

import collections
import errno
import hashlib
import json
import os
import pathlib
import pickle
import random
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402

USER = 12345  # an id that owns nothing here
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable  # that a user may run
NAMES = [b"a", b"b", b"c", b"dir", b"file.txt", b".git", b"config", b"hooks", b"with space", b"new\nline",
         b"\x1b[31mred", b"\xff\xfe", b"\xc3\xa9", b"long" * 63, b"-rf", b"*", b"..x", b"...", b"HEAD", b"objects"]
TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


# --- pictures ---

def attributes(path):
    try:
        names = os.listxattr(path, follow_symlinks=False)
        return {name: hashlib.sha256(os.getxattr(path, name, follow_symlinks=False)).hexdigest()
                for name in names if name.startswith("user.") and not name.startswith("user.overlay.")}
    except OSError as e:
        assert e.errno in (errno.ENOTSUP, errno.EPERM), path
        return {}


def state(path):
    """As an effect has it: type, mode, size, hash; and the attributes."""
    st = os.lstat(path)
    kind, size, content = TYPES.get(stat.S_IFMT(st.st_mode), "special"), None, None
    if kind == "file":
        content = pathlib.Path(os.fsdecode(path)).read_bytes()
    elif kind == "link":
        content = os.readlink(path)
    if content is not None:
        size = len(content)
        content = hashlib.sha256(content).hexdigest()
    has = attributes(path) if kind in ("file", "folder") else {}
    return (kind, stat.S_IMODE(st.st_mode), size, content), has, stat.S_IFMT(st.st_mode)


def picture(top):
    found = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, os.fsencode(top))] = state(path)
    return found


def difference(old, new):
    """{path: (before, after, attributes that differ)}"""
    found = {}
    for path in old.keys() | new.keys():
        before, after = old.get(path), new.get(path)
        if before == after:
            continue
        had, has = before[1] if before else {}, after[1] if after else {}
        if before and after and before[0][0] != after[0][0]:
            had = {}  # of something else
        changed = {}
        for name in had.keys() | has.keys() if after else ():
            if had.get(name) != has.get(name):
                change = "added" if name not in had else "deleted" if name not in has else "changed"
                changed[name] = (change, has.get(name))
        found[path] = (before and before[0], after and after[0], changed)
    return found


# --- random trees and operations ---

class Actor:
    def __init__(self, top, seed):
        self.top, self.random = os.fsencode(top), random.Random(seed)

    def paths(self):
        return sorted(os.path.join(folder, name) for folder, folders, files in os.walk(self.top)
                      for name in folders + files)

    def any(self, wanted=lambda path: True):
        return self.random.choice([path for path in self.paths() if wanted(path)])

    def file(self):
        return self.any(lambda path: stat.S_ISREG(os.lstat(path).st_mode))

    def folder(self):
        folders = [path for path in self.paths() if stat.S_ISDIR(os.lstat(path).st_mode)]
        return self.random.choice([self.top, self.top, *folders])

    def new(self):
        return os.path.join(self.folder(), self.random.choice(NAMES))

    def content(self):
        size = self.random.choice([0, 1, 10, 1000, 5000])
        letters = self.random.choice([b"ab\n", b"xyz\n", bytes(range(256))])
        return bytes(self.random.choice(letters) for _ in range(size))

    # Each does one thing, or fails because it cannot be done.

    def create(self):
        with open(self.new(), "xb") as file:
            file.write(self.content())

    def overwrite(self):
        with open(self.file(), "wb") as file:
            file.write(self.content())

    def append(self):
        with open(self.file(), "ab") as file:
            file.write(self.content())

    def write_the_same(self):
        path = self.file()
        content = pathlib.Path(os.fsdecode(path)).read_bytes()
        with open(path, "wb") as file:
            file.write(content)

    def touch(self):
        os.utime(self.any(), follow_symlinks=False)

    def truncate(self):
        path = self.file()
        os.truncate(path, self.random.choice([0, os.path.getsize(path), 100000]))

    def rename(self):
        # mv copies a folder of the tree below, which an overlay like ours does not rename.
        subprocess.run(["mv", "-T", "--", self.any(), self.new()], stderr=subprocess.DEVNULL, check=False)

    def rename_over(self):
        os.rename(self.file(), self.file())

    def unlink(self):
        os.unlink(self.any(lambda path: not os.path.isdir(path) or os.path.islink(path)))

    def rmdir(self):
        os.rmdir(self.any(os.path.isdir))

    def remove_tree(self):
        shutil.rmtree(self.any(os.path.isdir))

    def mkdir(self):
        os.mkdir(self.new())

    def make_again(self):
        """A folder that is deleted and made again, with some of it."""
        path = self.any(os.path.isdir)
        kept = [name for name in sorted(os.listdir(path)) if self.random.random() < 0.3]
        contents = {name: pathlib.Path(os.fsdecode(os.path.join(path, name))).read_bytes() for name in kept
                    if os.path.isfile(os.path.join(path, name)) and not os.path.islink(os.path.join(path, name))}
        shutil.rmtree(path)
        os.mkdir(path)
        for name, content in contents.items():
            with open(os.path.join(path, name), "wb") as file:
                file.write(content)

    def symlink(self):
        os.symlink(self.random.choice([b"a", b"..", b"/etc/passwd", b"no where", self.random.choice(NAMES)]),
                   self.new())

    def retarget(self):
        path = self.any(os.path.islink)
        os.unlink(path)
        os.symlink(b"elsewhere", path)

    def chmod(self):
        path = self.any(lambda path: not os.path.islink(path))
        os.chmod(path, self.random.choice([0, 0o600, 0o644, 0o755, 0o777, 0o4755, 0o2755, 0o1777, 0o200, 0o111]))

    def file_to_folder(self):
        path = self.file()
        os.unlink(path)
        os.mkdir(path)
        with open(os.path.join(path, self.random.choice(NAMES)), "wb") as file:
            file.write(self.content())

    def folder_to_file(self):
        path = self.any(os.path.isdir)
        shutil.rmtree(path)
        with open(path, "wb") as file:
            file.write(self.content())

    def folder_to_link(self):
        path = self.any(os.path.isdir)
        shutil.rmtree(path)
        os.symlink(b"/", path)

    def link(self):
        os.link(self.file(), self.new())

    def write_through_link(self):
        path = self.new()
        os.link(self.file(), path)
        with open(path, "ab") as file:
            file.write(b"both\n")

    def set_attribute(self):
        name = self.random.choice(["user.a", "user.b", "user.overlay", "user.overlayx"])
        os.setxattr(self.any(lambda path: not os.path.islink(path)), name, self.content()[:500])

    def remove_attribute(self):
        path = self.any(lambda path: attributes(path))
        os.removexattr(path, self.random.choice(sorted(attributes(path))))

    def forge(self):
        """What an overlay would obey, if it were its own."""
        name, value = self.random.choice([("opaque", b"y"), ("redirect", b"/a"), ("metacopy", b""),
                                          ("whiteout", b""), ("opaque", b"x")])
        os.setxattr(self.any(), "user.overlay." + name, value)

    def whiteout(self):
        os.mknod(self.new(), stat.S_IFCHR | 0o600, 0)

    def mkfifo(self):
        os.mkfifo(self.new())

    def bind_socket(self):
        os.chdir(self.folder())
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(self.random.choice([b"a", b"b", b"socket"]))

    def sparse(self):
        with open(self.new(), "xb") as file:
            file.seek(self.random.choice([100000, 20 << 20]))
            file.write(b"end")

    GROW = (create, create, create, create, mkdir, mkdir, symlink, link, set_attribute, mkfifo)
    ALL = (create, create, overwrite, append, write_the_same, touch, truncate, rename, rename, rename, rename_over,
           unlink, unlink, rmdir, remove_tree, mkdir, make_again, make_again, symlink, retarget, chmod, chmod,
           file_to_folder, folder_to_file, folder_to_link, link, write_through_link, set_attribute, set_attribute,
           remove_attribute, forge, whiteout, mkfifo, bind_socket, sparse)

    def act(self, actions, count):
        for _ in range(count):
            try:
                self.random.choice(actions)(self)
            except (OSError, IndexError):
                pass  # there is nothing to do it with, or it is forbidden


# --- in the namespace ---

def inside(top, seeds):
    for seed in seeds:
        place = pathlib.Path(top, str(seed))
        layers = f"lowerdir={place}/below,upperdir={place}/layer,workdir={place}/work,userxattr"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, place / "merged"], check=True)
        actor = Actor(place / "merged", seed * 7919 + 1)
        actor.act(Actor.ALL, actor.random.choice([1, 5, 20, 100]))
        os.chdir("/")
        (place / "picture").write_bytes(pickle.dumps(picture(place / "merged")))
        subprocess.run(["cp", "-aT", place / "merged", place / "copy"], check=True)
        subprocess.run(["umount", place / "merged"], check=True)


def inside_mounts(top):
    """Another file system below: an overlay does not see it, and nothing of it is an effect."""
    place = pathlib.Path(top)
    for name in ("below/on/it", "below/whole/on", "below/gone", "layer/on", "base"):
        (place / name).mkdir(parents=True)
    for name in ("below/on", "below/whole/on", "below/gone"):
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place / name], check=True)
        (place / name / "mounted").write_text("x", encoding="ascii")
    (place / "layer/on/mounted").write_text("y", encoding="ascii")
    for name in ("whole", "gone"):
        os.mknod(place / "layer" / name, stat.S_IFCHR, 0)
    (place / "began").write_text(str(time.time_ns() + 10 ** 9), encoding="ascii")
    effects = decode(scan(place / "tool", os.geteuid(), place, "layer", "-"))["effects"]
    told = [(x["change"], x["path"].decode(), "note" in x) for x in effects]
    assert told == [("deleted", "gone", True), ("added", "on", True), ("added", "on/mounted", True), 
                    ("deleted", "whole", False), ("deleted", "whole/on", True)], told


# --- outside ---

def as_user(uid, words):
    if uid == os.geteuid():
        return words
    return [*accounts.login(uid), *words]


def check_digest(text, place):
    """By the program that docs/effects.md gives to people."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/effects.md").read_text(encoding="utf-8")
    program = page.split("```python\n")[1].split("```")[0]
    (place / "effects.json").write_bytes(text)
    done = subprocess.run([sys.executable, "-c", program, place / "effects.json"], capture_output=True, text=True,
                          check=False)
    assert done.stdout == "the digest is that of the effects\n", f"{place}: {done.stdout}{done.stderr}"


def decode(text):
    """effects.json with names as bytes, and everything there."""
    document = json.loads(text)
    for x in document["effects"]:
        for key in ("path", "from"):
            x[key] = bytes.fromhex(x[key + "_hex"]) if key + "_hex" in x else (
                x[key].encode() if key in x else None)
        x.setdefault("after", {"type": "nothing", "mode": "0000"})
        x.setdefault("before", {"type": "nothing", "mode": "0000"})
        for a in x.setdefault("attributes", []):
            a["name"] = bytes.fromhex(a["name_hex"]) if "name_hex" in a else a["name"].encode()
    return document


def found_state(s, wanted):
    if s["type"] == "nothing":
        return None
    # Of what was deleted only the hashes that were needed are there.
    content = s.get("sha256", wanted[3] if wanted else None)
    return (s["type"], int(s["mode"], 8), s.get("size"), content)


def check_effects(effects, wanted, where):
    """Each effect is one that is wanted, and the other way round."""
    found, renames = {}, []
    for x in effects:
        assert "note" not in x or x["mark"] == "held", f"{where}: {x}"
        assert "moved" not in x, f"{where}: {x}"
        changed = {a["name"].decode(): (a["change"], a.get("sha256")) for a in x["attributes"]}
        old, new = x["from"] or x["path"], x["path"]
        if x["from"]:
            renames.append(x)
            had = wanted.get(old)
            found[old] = (found_state(x["before"], had and had[0]), None, {})
            # Its attributes are told against the old name's; here the new name is new.
            found[new] = (None, found_state(x["after"], None), wanted.get(new, (0, 0, 0))[2])
        else:
            have = wanted.get(new, (None, None, {}))
            found[new] = (found_state(x["before"], have[0]), found_state(x["after"], None), changed)
            words = {(False, True): "added", (True, False): "deleted", (True, True): "changed"}
            assert x["change"] == words[(bool(have[0]), bool(have[1]))], f"{where}: {x}"
    for path in found.keys() | wanted.keys():
        assert found.get(path) == wanted.get(path), \
            f"{where}: {path!r}\n found {found.get(path)}\nwanted {wanted.get(path)}"
    assert [x["path"] for x in effects] == sorted(x["path"] for x in effects), where
    return renames


def check_renames(effects, renames, wanted, where):
    """As many as there can be, and none of what is empty."""
    gone, come = collections.Counter(), collections.Counter()
    for before, after, _ in wanted.values():
        if before and not after and before[0] == "file" and before[2]:
            gone[before[3]] += 1
        if after and not before and after[0] == "file" and after[2]:
            come[after[3]] += 1
    assert len(renames) == sum((gone & come).values()), f"{where}: {len(renames)} renames"
    for x in renames:
        assert x["before"]["sha256"] == x["after"]["sha256"] and x["after"]["size"], f"{where}: {x}"


def scan(tool, uid, place, layer, base, *more):
    words = as_user(uid, [tool, place / layer, place / "below", base,
                          (place / "began").read_text(encoding="ascii"), *more])
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False)
    assert done.returncode == 0, f"{place}: status {done.returncode}: {done.stderr.decode()}"
    return done.stdout


def read_base(folder):
    """What docs/format-base.md says of the file: {index: content}."""
    if not os.listdir(folder):
        return {}
    assert os.listdir(folder) == ["contents"], os.listdir(folder)
    text = (folder / "contents").read_bytes()
    table = len(text) - 17 - 43 * int(text[-17:-1], 16)
    rows = [[int(word, 16) for word in line.split()] for line in text[table:-17].splitlines()]
    assert text.startswith(b"bawn-base-1\n") and text.endswith(b"\n") and len(rows) == int(text[-17:-1], 16)
    assert rows == sorted(rows) and 12 + sum(size for _, _, size in rows) == table, rows
    return {index: text[at:at + size] for index, at, size in rows}


def check_base(document, place):
    kept = read_base(place / "base")
    for index, x in enumerate(document["effects"]):
        if x.get("base"):
            assert hashlib.sha256(kept.pop(index)).hexdigest() == x["before"]["sha256"], x
        else:
            assert x["change"] != "changed" or "lines" not in x or x["before"]["type"] != "file", x
    assert not kept, f"{place}: bases of nothing: {kept}"


def modes(top):
    return {path: os.lstat(path).st_mode for path in pathlib.Path(top).rglob("*")}


def check(tool, uid, place):
    old, new = picture(place / "below"), pickle.loads((place / "picture").read_bytes())
    wanted, layer = difference(old, new), modes(place / "layer")
    text = scan(tool, uid, place, "layer", place / "base")
    document = decode(text)
    renames = check_effects(document["effects"], wanted, place)
    check_renames(document["effects"], renames, wanted, place)
    check_base(document, place)
    check_digest(text, place)
    assert modes(place / "layer") == layer, f"{place}: modes of the layer changed"
    assert picture(place / "below") == old, f"{place}: the tree changed"
    copy = decode(scan(tool, uid, place, "copy", "-", "copy"))
    for x in copy["effects"] + document["effects"]:
        x.pop("base", None)
    assert copy["effects"] == document["effects"] and copy["digest"] == document["digest"], \
        f"{place}: a copy has other effects: {[x for x in copy['effects'] if x not in document['effects']]}"
    return len(wanted)


def prepare(top, uid, seeds):
    for seed in seeds:
        place = top / str(seed)
        for name in ("below", "layer", "work", "merged", "base", "copy"):
            (place / name).mkdir(parents=True)
        actor = Actor(place / "below", seed)
        actor.act(Actor.GROW, actor.random.choice([0, 10, 60, 150]))
    subprocess.run(["chown", "-R", f"{uid}:{uid}", top], check=True)
    for seed in seeds:
        (top / str(seed) / "began").write_text(str(time.time_ns()), encoding="ascii")
    time.sleep(0.02)  # what the run makes is later


def run(tool, uid, seeds):
    top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-scan-", dir="/var/tmp"))
    try:
        prepare(top, uid, seeds)
        top.chmod(0o755)
        shutil.copy(tool, top / "tool")
        shutil.copy(__file__, top / "scan.py")
        shutil.copy(accounts.__file__, top)
        words = as_user(uid, ["unshare", "-Urm", PYTHON, top / "scan.py", "inside", top, *seeds])
        done = subprocess.run([str(word) for word in words], stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return sum(check(top / "tool", uid, top / str(seed)) for seed in seeds) if seeds else 0
    finally:
        shutil.rmtree(top)


def main():
    if sys.argv[1] == "inside":
        seeds = [int(seed) for seed in sys.argv[3:]]
        inside(sys.argv[2], seeds) if seeds else inside_mounts(sys.argv[2])
        return 0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    uids = [0, USER] if os.geteuid() == 0 else [os.geteuid()]
    cases = [(name, seeds, uid) for uid in uids
             for name, seeds in (("random changes", range(first, first + count)), ("mounts below", ()))]
    failed = 0
    print(f"1..{len(cases)}")
    for number, (name, seeds, uid) in enumerate(cases, 1):
        error, effects = None, 0
        try:
            effects = run(sys.argv[1], uid, seeds)
        except AssertionError as e:
            error = str(e)
            failed += 1
        print(f"{'not ok' if error else 'ok'} {number} - {name} as {'root' if uid == 0 else 'a user'}")
        for line in error.splitlines() if error else [f"{effects} effects"] if effects else []:
            print("# " + line)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
