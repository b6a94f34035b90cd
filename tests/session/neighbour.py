"""What is done in the cages of two sessions by apart.py: one keeps things, the other tries to get at them.

    neighbour.py be END PORT               makes everything it can, says so in a line of JSON, and waits
    neighbour.py try END PORT PID PATH…    tries to reach each, and says in JSON what came of it

END is a word that only these two have in common; PID is the first one's on the host. It may be tried without
what should stop it, and harms nothing then.
"""

import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import os
import platform
import select
import socket
import struct
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.shmat.restype = ctypes.c_void_p
IPC_CREAT, IPC_NOWAIT = 0o1000, 0o4000
ADD_KEY, KEYCTL = {"x86_64": (248, 250)}.get(platform.machine(), (217, 219))
SESSION_KEYRING, KEY_SEARCH, KEY_READ = -3, 10, 11
PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
SECRET = b"apart-secret-"


def check(result, *bad):
    """What a call of the C library returned, or its error."""
    if result in (bad or (-1,)):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def key_of(end):
    return int(end, 16) & 0x7fffffff


# --- things, and how to get at them ---

def make_abstract(end, _):
    greet(socket.AF_UNIX, "\0apart-" + end, end)


def try_abstract(a):
    return ask(socket.AF_UNIX, "\0apart-" + a.end)


def make_loopback(end, port):
    greet(socket.AF_INET, ("127.0.0.1", port), end)


def try_loopback(a):
    return ask(socket.AF_INET, ("127.0.0.1", a.port))


def greet(family, name, end):
    server = socket.socket(family)
    if family == socket.AF_INET:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(name)
    server.listen()

    def serve():
        while True:
            client, _ = server.accept()
            with client, contextlib.suppress(OSError):
                client.sendall(SECRET + end.encode())

    threading.Thread(target=serve, daemon=True).start()


def ask(family, name):
    with socket.socket(family) as client:
        client.settimeout(3)
        client.connect(name)
        return client.recv(100)


def make_memory(end, _):
    at = check(LIBC.shmat(check(LIBC.shmget(key_of(end), 4096, IPC_CREAT | 0o666)), None, 0), 2**64 - 1)
    ctypes.memmove(at, SECRET + end.encode() + bytes(1), len(SECRET + end.encode()) + 1)


def try_memory(a):
    return ctypes.string_at(check(LIBC.shmat(check(LIBC.shmget(key_of(a.end), 0, 0)), None, 0), 2**64 - 1))


def make_semaphore(end, _):
    check(LIBC.semget(key_of(end), 1, IPC_CREAT | 0o666))


def try_semaphore(a):
    return a.secret if check(LIBC.semget(key_of(a.end), 0, 0)) >= 0 else b""


def make_message(end, _):
    text = SECRET + end.encode()
    check(LIBC.msgsnd(check(LIBC.msgget(key_of(end), IPC_CREAT | 0o666)), struct.pack("l", 1) + text, len(text), 0))


def try_message(a):
    text = ctypes.create_string_buffer(200)
    check(LIBC.msgrcv(check(LIBC.msgget(key_of(a.end), 0)), text, 100, ctypes.c_long(0), IPC_NOWAIT))
    return text.raw[8:]


def make_queue(end, _):
    queue = check(LIBC.mq_open(f"/apart-{end}".encode(), os.O_RDWR | os.O_CREAT, 0o666, None))
    check(LIBC.mq_send(queue, SECRET + end.encode(), len(SECRET + end.encode()), 0))


def try_queue(a):
    queue = check(LIBC.mq_open(f"/apart-{a.end}".encode(), os.O_RDWR | os.O_NONBLOCK))
    text = ctypes.create_string_buffer(65536)
    check(LIBC.mq_receive(queue, text, 65536, None))
    return text.value


def make_shared_file(end, _):
    with open("/dev/shm/apart-" + end, "wb") as out:
        out.write(SECRET + end.encode())


def try_shared_file(a):
    return read("/dev/shm/apart-" + a.end)


def make_key(end, _):
    text = SECRET + end.encode()
    check(LIBC.syscall(ADD_KEY, b"user", b"apart-" + end.encode(), text, len(text), SESSION_KEYRING))


def try_key(a):
    key = check(LIBC.syscall(KEYCTL, KEY_SEARCH, SESSION_KEYRING, b"user", b"apart-" + a.end.encode(), 0))
    text = ctypes.create_string_buffer(200)
    check(LIBC.syscall(KEYCTL, KEY_READ, key, text, 100))
    return text.value


def make_files(end, _):
    for path in ("/work/secret", "/home/agent/secret", "/tmp/secret"):
        with open(path, "wb") as out:
            out.write(SECRET + end.encode())


def read(path):
    with open(path, "rb") as file:
        return file.read(200)


def try_signal(a):
    os.kill(a.pid, 0)
    return a.secret


def try_trace(a):
    check(LIBC.ptrace(PTRACE_SEIZE, a.pid, None, None))
    LIBC.ptrace(PTRACE_DETACH, a.pid, None, None)
    return a.secret


def try_sight(a):
    """By its command line, whoever it is here."""
    own = {str(os.getpid()), str(os.getppid())}
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.split("/")[2] not in own and b"\0be\0" + a.end.encode() in read(path):
                return a.secret
    raise OSError(errno.ESRCH, "no process")


def try_roots(a):
    """By the root and the current folder of every process that is not in this cage."""
    last = OSError(errno.ESRCH, "no process")
    for path in glob.glob("/proc/[0-9]*"):
        for name in ("root/work/secret", "cwd/secret", "root/tmp/secret"):
            try:
                if a.secret in read(f"{path}/{name}"):
                    return a.secret
            except OSError as e:
                last = e
    raise last


def try_door(a):
    for path in a.paths:
        if path.endswith("/door"):
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.connect(path)
                return a.secret
    raise OSError(errno.EINVAL, "no door was named")


def try_paths(a):
    last = OSError(errno.EINVAL, "no path was named")
    for path in a.paths:
        for way in (path, "/proc/self/root" + path, "/proc/1/root" + path, "/proc/self/cwd/../../../../../.." + path):
            try:
                if not path.endswith("/door") and a.secret in read(way):
                    return a.secret
            except OSError as e:
                last = e
    raise last


def try_groups(_):
    names = os.listdir("/sys/fs/cgroup")
    if not names:
        raise OSError(errno.ENOENT, "nothing is there")
    return b"groups"


MAKE = {"abstract": make_abstract, "loopback": make_loopback, "memory": make_memory, "semaphore": make_semaphore,
        "message": make_message, "queue": make_queue, "shared_file": make_shared_file, "key": make_key,
        "files": make_files}
TRY = {"abstract": try_abstract, "loopback": try_loopback, "memory": try_memory, "semaphore": try_semaphore,
       "message": try_message, "queue": try_queue, "shared_file": try_shared_file, "key": try_key,
       "signal": try_signal, "trace": try_trace, "sight": try_sight, "roots": try_roots, "door": try_door,
       "paths": try_paths, "groups": try_groups}


def be(end, port):
    made = {}
    for name, make in MAKE.items():
        try:
            make(end, int(port))
            made[name] = "made"
        except OSError as e:
            made[name] = errno.errorcode.get(e.errno, "?")
    os.chdir("/work")
    print(json.dumps(made), flush=True)
    sys.stdin.read()
    # What a wall that was taken out let onto the host.
    LIBC.shmctl(LIBC.shmget(key_of(end), 0, 0), 0, None)
    LIBC.semctl(LIBC.semget(key_of(end), 0, 0), 0, 0)
    LIBC.msgctl(LIBC.msgget(key_of(end), 0), 0, None)
    LIBC.mq_unlink(f"/apart-{end}".encode())


class Aim:
    def __init__(self, end, port, pid, *paths):
        self.end, self.port, self.pid, self.paths = end, int(port), int(pid), paths
        self.secret = SECRET + end.encode()


def attempt(*words):
    aim, found = Aim(*words), {}
    for name, function in TRY.items():
        try:
            got = function(aim)
            found[name] = "worked" if aim.secret in got or got == b"groups" else f"got {got[:60]!r}"
        except OSError as e:
            found[name] = errno.errorcode.get(e.errno, type(e).__name__)
    print(json.dumps(found))


# --- what a shared file carries ---

def lock(*paths):
    """Has a lock on each, until the end of the input."""
    files = [open(path, "rb") for path in paths]  # pylint: disable=consider-using-with
    for file in files:
        fcntl.flock(file, fcntl.LOCK_EX)
    print("locked", flush=True)
    sys.stdin.read()


def find_locks(*paths):
    for path in paths:
        with open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                print("free")
            except BlockingIOError:
                print("locked")


def watch(*paths):
    """Says what was opened by others while it watched."""
    fd = check(LIBC.inotify_init1(os.O_NONBLOCK))
    names = {check(LIBC.inotify_add_watch(fd, path.encode(), 0x20)): path for path in paths}
    print("watching", flush=True)
    sys.stdin.read()
    seen, until = set(), time.monotonic() + 0.2
    while time.monotonic() < until:
        events = os.read(fd, 4096) if select.select([fd], [], [], 0.05)[0] else b""
        while events:  # each with the length of the name that follows it
            which, size = struct.unpack("i8xI", events[:16])
            seen.add(names[which])
            events = events[16 + size:]
    print(" ".join("seen" if path in seen else "unseen" for path in paths))


# --- what one may use up ---

def exhaust(what):
    """All there is of something, and keeps it."""
    count = 0
    if what == "processes":
        with contextlib.suppress(OSError):
            while count < 5000:
                if os.fork() == 0:
                    time.sleep(99)
                count += 1
    else:
        while count < 5000 and LIBC.inotify_init1(0) >= 0:
            count += 1
    print(count, flush=True)
    sys.stdin.read()


def use(what):
    """A little of it."""
    try:
        if what == "processes":
            for _ in range(20):
                if os.fork() == 0:
                    time.sleep(0.2)
                    os._exit(0)
        else:
            check(LIBC.inotify_init1(0))
        print("fine")
    except OSError as e:
        print(errno.errorcode[e.errno])


if __name__ == "__main__":
    {"be": be, "try": attempt, "lock": lock, "find-locks": find_locks, "watch": watch, "exhaust": exhaust,
     "use": use}[sys.argv[1]](*sys.argv[2:])
