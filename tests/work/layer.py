"""A tree, a layer over it made by hand, and what apply_tool makes of them."""

import os
import pathlib
import re
import stat
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402

COARSE = 5  # CLOCK_REALTIME_COARSE: the clock of file times
TOOL, INJECT = cage.BAWN, cage.BREAKABLE  # what prepare() copies: the suite's two arguments
VERDICTS = ("applied", "merged", "there", "conflict", "held", "not-taken", "failed")


def tick():
    """Until times of files are later than they were."""
    before = time.clock_gettime_ns(COARSE)
    while time.clock_gettime_ns(COARSE) == before:
        time.sleep(0.001)


class Applied:
    """What apply_tool said."""

    def __init__(self, done):
        self.status, self.text, self.error = done.returncode, done.stdout, done.stderr
        *lines, last = done.stdout.splitlines() or [""]
        self.counts = {name: int(count) for name, count in re.findall(r"(\S+)=(\d+)", last)}
        self.words = {}
        for line in lines:
            verdict, rest = line.split(" ", 1)
            path, _, why = rest.partition(": ")
            self.words[path] = (verdict, why)

    def expect(self, **counts):
        """These counts, and none of any other verdict."""
        counts = {name.replace("_", "-"): count for name, count in counts.items()}
        assert self.status == 0, f"exit {self.status}:\n{self.text}{self.error}"
        for name in (*VERDICTS, "interrupted", "stopped"):
            assert self.counts[name] == counts.get(name, 0), f"{name}, wanted {counts}:\n{self.text}"
        return self

    def expect_word(self, path, verdict, part=""):
        said = self.words.get(path)
        assert said and said[0] == verdict and part in said[1], f"of {path}: {said}\n{self.text}"
        return self


class Work:
    """Made after its tree is; `layer` and `tree` are written to by path, as a cage and a host do."""

    def __init__(self, place, tree=None):
        self.place = place
        self.tree, self.layer = place.make("tree"), place.make("layer")
        self.run = place.make("run", 0o700)
        for path, content in (tree or {}).items():
            self.put(self.tree, path, content)
        self.begin()

    def begin(self):
        """What the tree is like now is what the run began with."""
        self.began = time.clock_gettime_ns(time.CLOCK_REALTIME)
        while time.clock_gettime_ns(COARSE) <= self.began:
            time.sleep(0.0005)

    def put(self, top, path, content=b"", mode=None):
        """Bytes or text are a file, None is a folder, a Path is a link."""
        target = os.path.join(os.fsencode(top), path if isinstance(path, bytes) else path.encode())
        parent = os.path.dirname(target)
        if not os.path.isdir(parent):
            self.put(top, os.path.relpath(parent, os.fsencode(top)), None)
        if content is None:
            if not os.path.isdir(target):
                os.mkdir(target)
        elif isinstance(content, pathlib.Path):
            os.symlink(content, target)
        else:
            with open(target, "wb") as file:
                file.write(content if isinstance(content, bytes) else content.encode())
        os.chown(target, self.place.uid, self.place.uid, follow_symlinks=False)
        if mode is not None:
            os.chmod(target, mode)
        elif not isinstance(content, pathlib.Path):
            os.chmod(target, 0o755 if content is None else 0o644)
        return pathlib.Path(os.fsdecode(target))

    def write(self, path, content=b"", mode=None):
        """Into the layer; folders that the tree has as it has them."""
        parts = path.split(b"/" if isinstance(path, bytes) else "/")[:-1]
        for n in range(1, len(parts) + 1):
            folder = (b"/" if isinstance(path, bytes) else "/").join(parts[:n])
            below = os.path.join(os.fsencode(self.tree), folder if isinstance(folder, bytes) else folder.encode())
            here = os.path.join(os.fsencode(self.layer), folder if isinstance(folder, bytes) else folder.encode())
            if not os.path.lexists(here):
                is_there = os.path.isdir(below) and not os.path.islink(below)
                self.put(self.layer, folder, None, stat.S_IMODE(os.stat(below).st_mode) if is_there else 0o755)
        return self.put(self.layer, path, content, mode)

    def delete(self, path):
        """As an overlay does: a whiteout."""
        target = self.write(path)
        target.unlink()
        os.mknod(target, stat.S_IFCHR, os.makedev(0, 0))
        os.chown(target, self.place.uid, self.place.uid)

    def replace(self, path):
        """A folder of the layer's alone: nothing of the tree's is seen through it."""
        folder = self.write(path, None)
        os.setxattr(folder, "user.overlay.opaque", b"y")
        return folder

    def tool(self, *args, **more):
        return self.place.run(*args, program=TOOL, cwd=self.place.home, **more)

    def scan(self, *held):
        done = self.tool("scan", self.began, self.layer, self.tree, self.run, *held)
        assert done.returncode == 0, done.stderr
        tick()
        tick()
        return self

    def words(self, *options, paths=()):
        return ["apply", *options, self.layer, self.tree, self.run, *paths]

    def apply(self, *options, paths=(), **more):
        return Applied(self.tool(*self.words(*options, paths=paths), **more))

    def look(self, top=None):
        return look(top or self.tree)


def look(top):
    """{path: what is there} of everything below a folder, as far as apply is to keep it."""
    found = {}
    top = os.fsencode(top)
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            mode = f"{stat.S_IMODE(st.st_mode):o}"
            if stat.S_ISLNK(st.st_mode):
                what = ("link", os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                what = ("folder", mode)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    what = ("file", mode, file.read())
            else:
                what = ("special", mode)
            found[os.path.relpath(path, top)] = what
    return found


def leftovers(*tops):
    """Names that are ours, or locks of git's."""
    found = []
    for top in tops:
        for folder, folders, files in os.walk(top):
            found += [os.path.join(folder, name) for name in folders + files
                      if ".bawn-" in name or name.endswith(".lock") or name == "apply.journal"]
    return found
