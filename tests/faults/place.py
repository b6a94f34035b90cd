"""What the suites of faults share: a place to run bawn at, and what a run may have left behind.

Others may use the machine meanwhile, other suites among them. What is ours is known by descent: this process adopts
every orphan below it, so whatever a run leaves running is a descendant, in whichever namespace it is. Mounts,
/dev/shm and cgroups are this process's own, and so what is new there is ours. Mount namespaces without a process and files in
shared folders could be anybody's: ours stay, and those of others, who leave nothing either, do not.
"""

import ctypes
import fcntl
import glob
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402
import machine  # noqa: E402

# In the state, of runs that were.
KEPT = ("runs", "keys", "log", "unsigned", "plans", "specs", "layers", "pending", "pending.new", "pruned")
USER = 12347  # an id that owns nothing here
KINDS = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
GROUP = None  # the cgroup that everything is started in, where we may make one


def users():
    return [0, USER] if os.geteuid() == 0 else [os.geteuid()]


def name_of(uid):
    return "root" if uid == 0 else "a user"


def stand_apart():
    """Before anything is started: what it leaves can be told from what others do."""
    global GROUP
    adopt_orphans()
    machine.own_mounts()
    machine.own_shared_memory()
    GROUP = machine.own_cgroups()


def adopt_orphans():
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Under nohup, or in a shell's background, what is started would ignore them too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def as_user(uid):
    """Keywords for subprocess: the same process as another user."""
    if os.geteuid() != 0 or uid == 0:
        return {}
    return {"user": uid, "group": uid, "extra_groups": accounts.group_list(uid)}


class Tools:
    """Copies of what is run, where every user may read them; gone afterwards."""

    def __init__(self, *files):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-faults-"))
        for file in files:
            shutil.copy(file, self.top)
        self.canary = self.top / "canary"
        self.canary.write_text("of the host\n", encoding="utf-8")
        self.top.chmod(0o755)

    def __getattr__(self, name):
        return str(self.top / name)

    def done(self):
        shutil.rmtree(self.top)


class Place:
    """A home, a project and a state folder of a person's own, gone afterwards."""

    def __init__(self, uid, *programs):
        self.uid = uid
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-faults-"))
        self.home, self.state, self.temp = self.top / "home", self.top / "state", self.top / "tmp"
        self.project = self.home / "project"
        for path in (self.home, self.project, self.state, self.temp):
            path.mkdir()
        for program in programs:
            shutil.copy(program, self.project)
        for path in (self.top, self.home, self.project, self.state, self.temp):
            os.chown(path, uid, uid)
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TMPDIR": str(self.temp),
                    "XDG_STATE_HOME": str(self.state), "BAWN_CANARY": "of the host"}
        self.files = self.list_files()

    def start(self, command, **more):
        return subprocess.Popen([str(word) for word in command], cwd=self.project, env=self.env,
                                stdin=subprocess.DEVNULL, **as_user(self.uid), **more)

    def list_files(self):
        """Everything but what is kept of runs, and the key that signs that."""
        found = set()
        for folder, folders, names in os.walk(self.top):
            if folder == str(self.state / "bawn"):
                folders[:] = [name for name in folders if name not in KEPT]
            found.update(os.path.join(folder, name) for name in folders + names)
        return found - {str(self.state / "bawn")}

    def left_files(self):
        """New files; and old ones that are gone."""
        return sorted(self.list_files() ^ self.files)

    def runs(self):
        try:
            return {path.name: path for path in (self.state / "bawn/runs").iterdir()}
        except FileNotFoundError:
            return {}

    def forget_runs(self):
        for name in ("runs", "log", "unsigned"):
            shutil.rmtree(self.state / "bawn" / name, ignore_errors=True)

    def done(self):
        shutil.rmtree(self.top)


def namespaces_here():
    return [os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS]


def processes():
    """{pid: (parent, state, name)} of everything that is here."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                    text = f.read()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            found[int(entry)] = (int(rest[1]), rest[0], name)
    return found


def descendants():
    """{pid: (parent, state, name)} of what descends from this process; zombies too."""
    everything, children = processes(), {}
    for pid, (parent, _, _) in everything.items():
        children.setdefault(parent, []).append(pid)
    found, todo = {}, [os.getpid()]
    while todo:
        for pid in children.get(todo.pop(), []):
            found[pid] = everything[pid]
            todo.append(pid)
    return found


def reap():
    """Buries adopted children; only where nobody waits for children of its own."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def held_namespaces():
    """({namespace: a pid in it} of ours, those of others) over all processes we may look at."""
    ours, others, mine = {}, set(), set(descendants()) | {os.getpid()}
    for pid in processes():
        for kind in KINDS:
            try:
                space = os.readlink(f"/proc/{pid}/ns/{kind}")
            except OSError:
                continue
            if pid in mine:
                ours[space] = pid
            else:
                others.add(space)
    return ours, others


NS_MNT_GET_INFO, NS_MNT_GET_NEXT, NS_MNT_GET_PREV = 0x8010B70A, 0x8010B70B, 0x8010B70C


def mount_namespace_id(fd):
    info = bytearray(struct.pack("=IIQ", 16, 0, 0))
    fcntl.ioctl(fd, NS_MNT_GET_INFO, info)
    return struct.unpack("=IIQ", info)[2]


def mount_namespaces():
    """The ids of all mount namespaces, also of those without a process; none before Linux 6.12."""
    found = set()
    for direction in (NS_MNT_GET_NEXT, NS_MNT_GET_PREV):
        fd = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        try:
            while True:
                found.add(mount_namespace_id(fd))
                after = fcntl.ioctl(fd, direction, bytearray(16))
                os.close(fd)
                fd = after
        except OSError:
            pass  # the last one, or an old kernel
        finally:
            os.close(fd)
    return found


def mount_namespaces_of_processes():
    found = set()
    for pid in processes():
        try:
            fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            found.add(mount_namespace_id(fd))
        except OSError:
            pass
        finally:
            os.close(fd)
    return found


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return set(f.read().splitlines())


def cgroups():
    """Those below our own; without one, those that are called after bawn: the machine has others, which come and go."""
    if GROUP:
        return {folder for top in GROUP.made for folder, _, _ in os.walk(top)}
    found = set()
    for line in mounts():
        before, after = line.split(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            top = before.split()[4]
            found.update(folder for folder, _, _ in os.walk(top) if "bawn" in folder)
    return found


def shared_files():
    """Where a run might leave something outside its own folders."""
    found = set(glob.glob("/dev/shm/*"))
    for top in ("/tmp", "/var/tmp", "/run", "/run/lock", f"/run/user/{USER}", "/run/user/0"):
        found.update(path for path in glob.glob(f"{top}/*") if "bawn" in path)
    # Folders of tests, such as this one's own, have names that Python or mkdtemp makes; bawn makes none of these.
    return {path for path in found if not re.search("/bawn-[a-z-]+-([a-z0-9_]{8}|[A-Za-z0-9]{6})$", path)}


class Before:
    """The machine as it is now, to be compared with as it is later."""

    LOOKS = {"mount": mounts, "cgroup": cgroups, "file": shared_files}

    def __init__(self):
        self.seen = {name: look() for name, look in self.LOOKS.items()}
        self.spaces = set(held_namespaces()[0])
        self.mount_spaces = mount_namespaces()

    def new(self, kind):
        return [f"{kind} {thing}" for thing in sorted(self.LOOKS[kind]() - self.seen[kind])]

    def look_at_ours(self):
        """What is here and was not, as a list of sentences; nobody else's."""
        left = []
        for pid, (_, state, name) in descendants().items():
            if state != "Z":
                left.append(f"process {pid} ({name})")
        ours, _ = held_namespaces()
        left += [f"namespace {space}" for space in sorted(set(ours) - self.spaces)]
        return left + self.new("mount") + self.new("cgroup")

    def look_at_shared(self):
        """The same of what may be somebody else's."""
        new = mount_namespaces() - self.mount_spaces
        left = [f"mount namespace {number} without a process"
                for number in sorted(new - mount_namespaces_of_processes())]
        return left + self.new("file")

    def clean(self):
        """Removes what has been told of and would be in the way of the next comparison."""
        for folder in sorted(cgroups() - self.seen["cgroup"], reverse=True):
            try:
                os.rmdir(folder)
            except OSError:
                pass

    def left(self, seconds=5.0):
        """What is left after this time at most; of what may be somebody else's, what was there all the time."""
        end, shared = time.monotonic() + seconds, None
        while True:
            ours, now = self.look_at_ours(), self.look_at_shared()
            shared = now if shared is None else [thing for thing in now if thing in shared]
            if not ours + shared or time.monotonic() > end:
                return ours + shared
            time.sleep(0.05)


# Newer than the headers of the oldest system that bawn is built on.
NEWER = {467: "open_tree_attr"}


def system_calls():
    """{number: name}, from the headers that the C library was built for."""
    names = dict(NEWER)
    text = subprocess.run(["cc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text):
        names[int(number)] = name
    return names


class Tap:
    """Prints cases as they come, and the plan at the end."""

    def __init__(self):
        self.count = self.failed = 0

    def case(self, is_good, name, notes=()):
        self.count += 1
        self.failed += not is_good
        print(f"{'ok' if is_good else 'not ok'} {self.count} - {name}")
        for note in notes:
            print("\n".join("# " + line for line in str(note).splitlines()))
        sys.stdout.flush()

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    def end(self):
        print(f"1..{self.count}")
        sys.exit(1 if self.failed else 0)
