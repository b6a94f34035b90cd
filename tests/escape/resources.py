"""Rows of the escape suite that use up what everybody needs: memory, processes, processors, files, patience.

Nothing here takes the machine down when it gets through: at most 300 MB, 2000 processes and a few seconds.
"""

import contextlib
import ctypes
import mmap
import os
import pty
import select
import subprocess
import time

from pair import NO_CAGE, REFUSED, WORKED, Nowhere, Outside, Result, Row, broken, opened
from place import as_user, own, victim

NO_LIMITS = broken("limits")
NO_RIGHT = Nowhere("an ordinary user may not do it outside either")
SMALL = ("-m", "48M", "--disk", "1G")
TINY = ("-m", "24M")
LARGE = opened("-m", "400M", "--disk", "1G")
MB = 1 << 20
CGROUP_FILES = tuple(sorted(os.path.join(folder, "cgroup.procs") for folder, _, files in os.walk("/sys/fs/cgroup")
                            if "cgroup.procs" in files)[:40])


# --- what the host sees ---

def resident(path):
    """How much of a file is in memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    size = path.stat().st_size if path.exists() else 0
    if not size:
        return 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), size) as memory:
        pages = (ctypes.c_ubyte * (size // mmap.PAGESIZE + 1))()
        at = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        if libc.mincore(at, size, pages) < 0:
            raise OSError(ctypes.get_errno(), "mincore")
        count = sum(page & 1 for page in pages) * mmap.PAGESIZE
        return count


@contextlib.contextmanager
def large_file(place):
    """A file of 64 MB that is on the disk and not in memory."""
    path = place.data / "large"
    with open(path, "wb") as file:
        for _ in range(64):
            file.write(os.urandom(4096) * 256)
        file.flush()
        end = time.monotonic() + 20
        while True:  # on a busy machine some pages are still being written
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if resident(path) < 8 * MB:
                break
            assert time.monotonic() < end, "it stays in memory"
            time.sleep(0.05)
    own(place.uid, path)
    yield


def is_in_memory(place):
    size = resident(place.data / "large")
    return f"{size // MB} MB of it are in memory" if size > 44 * MB else None


@contextlib.contextmanager
def users_victim(place):
    """A process of the operator's, once it is that."""
    with victim(place):
        end = time.monotonic() + 5
        while os.stat(f"/proc/{place.values['pid']}").st_uid != place.uid and time.monotonic() < end:
            time.sleep(0.01)
        yield


def is_slower(place):
    nice = os.getpriority(os.PRIO_PROCESS, place.values["pid"])
    return f"the operator's process has priority {nice}" if nice else None


@contextlib.contextmanager
def few_files(place):
    place.write(place.top / "few.yaml", "version: 1\nlimits: {files: 64}")
    yield


def is_on_memory(path):
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=False).stdout
    return kind.strip() in ("tmpfs", "ramfs")


# --- rows that need more than one command ---

def environ(place):
    return {"HOME": str(place.home), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(place.top / "state")}


def output(suite, place, pair):
    """Everything that arrives counts: a probe whose output is cut cannot say anything."""
    row = Row("", "", ("execute", "/usr/bin/head", "-c", "1M", "/dev/zero"), options=("--output", "64K"))
    words, variables = suite.command(row, place, pair)
    done = subprocess.run([*as_user(place.uid), *words], cwd=place.project, env={**environ(place), **variables},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False)
    size = done.stdout.count(b"\0")
    if not size:
        return Result(NO_CAGE, done.stderr.decode("utf-8", "replace"))
    return Result(WORKED if size > 64 << 10 else REFUSED, f"{size >> 10} kB arrived")


def outstay(suite, place, pair):
    """T506: a run that was killed for its time cannot say so."""
    done = suite.run(Row("", "", ("outstay", "6500"), options=("--time", "200ms")), place, pair)
    return Result(REFUSED, done.sentence) if done.sentence.startswith("status 124") else done


def escapes(suite, place, pair):
    """T553: what an operator's terminal is sent."""
    words, variables = suite.command(Row("", "", ("escapes",)), place, pair)
    near, far = pty.openpty()
    own(place.uid, os.ttyname(far))
    seen, end = b"", time.monotonic() + 15
    with subprocess.Popen([*as_user(place.uid), *words], cwd=place.project, env={**environ(place), **variables},
                          stdin=far, stdout=far, stderr=far, start_new_session=True) as process:
        os.close(far)
        with contextlib.suppress(OSError):
            while time.monotonic() < end and select.select([near], [], [], 15)[0]:
                seen += os.read(near, 4096)
        process.kill()
    os.close(near)
    if b"begin" not in seen or b"end" not in seen:
        return Result(NO_CAGE, repr(seen))
    through = [word for word in (b"\x1b]52", b"\x1b[21t", b"\x1bP$q", b"\x05") if word in seen]
    return Result(WORKED if through else REFUSED, repr(seen))


def leave(suite, place, pair):
    """T505: the cgroup's files are known by name, and those of the place can be written outside."""
    files = [str(door) for door in suite.group_of(place.uid).doors]
    return suite.run(Row("", "", ("leave-cgroup", *files, *CGROUP_FILES), options=("-m", "64M"), in_group=True),
                     place, pair)


# --- the rows ---

def memory(what, *probe, options=SMALL, pair=NO_LIMITS):
    """Held by the cage's limit of memory, which counts it in every form."""
    return Row("T502", what, probe, pair, options=options, in_group=True)


MANY = ("--pids-limit", "60")
ROWS = [
    Row("T506", "going on when time is over", (), opened(), who="root", custom=outstay),
    Row("T501", "a fork bomb", ("forks", "300"), NO_LIMITS, options=MANY, in_group=True),
    Row("T501", "a fork bomb, with a larger limit", ("forks", "300"), opened("--pids-limit", "400"), options=MANY,
        in_group=True),
    Row("T501", "a fork bomb without a cgroup", ("forks", "300"), opened("--pids-limit", "400"), options=MANY,
        who="user" if os.geteuid() == 0 else "both"),
    Row("T501", "zombies", ("zombies", "300"), NO_LIMITS, options=MANY, in_group=True),
    Row("T501", "thousands of threads", ("threads", "1500"), NO_LIMITS, options=MANY, in_group=True),
    memory("memory", "heap", "150"),
    memory("memory, with a larger limit", "heap", "150", pair=LARGE),
    memory("memory in many processes", "heaps", "150"),
    memory("memory as files in /tmp", "fill", "/tmp/large", "150"),
    memory("memory as files in /dev/shm", "fill", "/dev/shm/large", "150"),
    memory("memory as a file without a name", "memory-file", "150"),
    memory("System V memory", "segment", "150"),
    memory("memory of the kernel, in pipes", "pipes", "50", options=TINY),
    memory("memory of the kernel, in sockets", "sockets", "80", options=TINY),
    memory("memory of the kernel, in watched events", "watches", "40", options=TINY),
    Row("T502", "locked memory", ("lock", "80"), Outside(), NO_RIGHT),
    *([] if is_on_memory("/tmp") else [Row(
        "T502", "the machine's cache, by reading", ("read-all", "/data/large"),
        opened("-m", "400M", "-v", "{data}:/data"), options=("-m", "24M", "-v", "{data}:/data"), prepare=large_file,
        check=is_in_memory, in_group=True)]),
    Row("T502", "the machine's cache, by writing", ("fill", "/data/large", "64"),
        opened("-m", "400M", "-v", "{data}:/data:rw"), options=("-m", "24M", "-v", "{data}:/data:rw"),
        check=is_in_memory, in_group=True),
    Row("T503", "the disk", ("fill", "/tmp/large", "150"), opened("--disk", "200M"), options=("--disk", "20M")),
    Row("T503", "the disk, by the project", ("fill", "/work/large", "150"), opened("--disk", "200M"),
        options=("--disk", "20M")),
    Row("T503", "files without content", ("inodes", "/tmp", "20000"), opened("--disk", "1G"),
        options=("--disk", "1M")),
    Row("T503", "descriptors", ("many-files", "200"), opened(), options=("--trust", "-f", "{top}/few.yaml"),
        prepare=few_files),
    Row("T503", "a higher limit of descriptors", ("raise", "200"), opened(),
        options=("--trust", "-f", "{top}/few.yaml"), prepare=few_files),
    Row("T504", "processor time", ("busy", "150"), NO_LIMITS, options=("--cpus", "0.02"), in_group=True),
    Row("T504", "a real-time process", ("scheduler",), Outside(), NO_RIGHT),
    Row("T504", "the highest priority for disks", ("io-priority",), Outside(), NO_RIGHT),
    Row("T504", "slowing the operator down", ("slow-down",),
        Nowhere("it would reach every process of the machine's root"), Outside(), prepare=users_victim,
        check=is_slower),
    Row("T505", "leaving its cgroup", (), Outside(), custom=leave),
    Row("T505", "keys", ("keys", "50"), broken("syscalls")),
    # What follows is counted per user, and what a cage takes is the operator's too.
    Row("T505", "POSIX message queues", ("share", "queues", "5"), Outside()),
    Row("T505", "the operator's share of watched folders", ("share", "inotify", "100"), Outside()),
    Row("T505", "the operator's share of timers", ("share", "timers", "10000"), Outside()),
    Row("T207", "signalling a process in other ways", ("signals", "{pid}"), Outside(), prepare=victim),
    Row("T552", "endless output", (), opened(), custom=output),
    Row("T553", "reaching out of the screen", (), opened("--raw"), custom=escapes),
]
