"""A place of our own in the trees of cgroups, given to a user, gone afterwards.

With version 1 it is a folder in the tree of each controller, with version 2 one folder that hands its
controllers down, and one in it for processes. Runs that are started in it make their own folders there and
nowhere else, so that nobody else's runs are seen or swept, and what is left is known.
"""

import collections
import contextlib
import itertools
import os
import pathlib
import signal
import time

CONTROLLERS = ("memory", "cpu", "pids")
# Whatever runs wild in a test stays within this.
BOUNDS = {"pids.max": "2500", "memory.limit_in_bytes": "2G", "memory.max": "2G"}
NUMBERS = itertools.count()

Tree = collections.namedtuple("Tree", "mount path")  # where it is mounted, and our own place below


class NoGroups(Exception):
    """Why there can be none here."""


def read_trees():
    """The trees of each controller of version 1, and that of version 2 as ''."""
    own, found = {}, {}
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    for line in pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        root, mount = fields.split(" ")[3:5]
        names = options.split(",") if kind == "cgroup" else [""] if kind == "cgroup2" else []
        for name in names:
            inside = own.get(name, "/..")
            if name not in found and inside.startswith(root) and not inside.startswith("/.."):
                found[name] = Tree(pathlib.Path(mount), inside[len(root.rstrip("/")):].strip("/"))
    return found


def read_words(path):
    try:
        return set(path.read_text(encoding="ascii").split())
    except OSError:
        return set()


class Group:
    def __init__(self, uid):
        self.uid = uid
        self.name = f"bawn-test-{os.getpid()}-{next(NUMBERS)}"
        self.parents = {}  # by controller: where runs make their folders
        self.doors = []  # who writes 0 to all of them is inside
        self.made = []
        trees = read_trees()
        missing = [name for name in CONTROLLERS if name not in trees]
        try:
            for name in CONTROLLERS:
                if name in trees:
                    self.make_v1(name, trees[name])
            if missing:
                self.make_v2(missing, trees.get(""))
        except OSError as e:
            self.remove()
            raise NoGroups(f"no cgroup could be made: {e}") from None

    @property
    def version(self):
        return 2 if any(door.name == "cgroup.procs" for door in self.doors) else 1

    def make(self, folder):
        folder.mkdir()
        self.made.append(folder)
        for name, text in BOUNDS.items():
            if (folder / name).exists():
                (folder / name).write_text(text, encoding="ascii")
        for name in (".", "tasks", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
            if (folder / name).exists():
                os.chown(folder / name, self.uid, self.uid)

    def make_v1(self, controller, tree):
        folder = tree.mount / tree.path / self.name
        if not folder.exists():  # two controllers may be in one tree
            self.make(folder)
            self.doors.append(folder / "tasks")
        self.parents[controller] = folder

    def make_v2(self, controllers, tree):
        if not tree:
            raise NoGroups("there are no cgroups")
        level = tree.mount / tree.path
        while not set(controllers) <= read_words(level / "cgroup.subtree_control") or not os.access(level, os.W_OK):
            if level == tree.mount:
                raise NoGroups("no cgroup above hands down " + ", ".join(controllers))
            level = level.parent
        folder = level / self.name
        self.make(folder)
        (folder / "cgroup.subtree_control").write_text(" ".join("+" + name for name in controllers), encoding="ascii")
        self.make(folder / "in")
        self.doors.append(folder / "in/cgroup.procs")
        self.parents.update(dict.fromkeys(controllers, folder))

    # --- using it ---

    def enter(self):
        """Words before a command that start it in here."""
        script = "".join(f"echo 0 >'{door}'; " for door in self.doors)
        return ["sh", "-ec", script + 'exec "$@"', "sh"]

    def runs(self):
        """The folders of runs in it."""
        found = set()
        for parent in self.parents.values():
            with contextlib.suppress(FileNotFoundError):
                found |= {path for path in parent.iterdir() if path.is_dir() and path.name != "in"}
        return found

    def processes(self):
        """What runs anywhere in it."""
        found = set()
        for folder in self.made:
            for below, _, _ in os.walk(folder):  # which does not mind that some vanish meanwhile
                found |= {int(pid) for pid in read_words(pathlib.Path(below, "cgroup.procs"))}
        return found

    def remove(self):
        """Ends what is in it and takes it away."""
        end = time.monotonic() + 3
        while self.processes() and time.monotonic() < end:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
        for folder in reversed(self.made):
            for below, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(below)
            while True:
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.01)
        self.made = []
