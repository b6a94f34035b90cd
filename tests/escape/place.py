"""What a row of the escape suite needs of the host: folders with canaries, servers, processes.

Every run of an attack has a place of its own, which is gone afterwards. What is in it belongs to the user
who starts the cage and is open to everybody, so that no refusal is due to permissions alone.
"""

import contextlib
import fcntl
import os
import pathlib
import secrets
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402

CANARY = "bawn-canary-"
BESIDE = ("-v", "{files}:/opt/escape")  # the probe, in every cage


def own(uid, *paths):
    for path in paths:
        os.chown(path, uid, uid, follow_symlinks=False)


class Place:
    def __init__(self, top, uid):
        self.uid = uid
        self.end = secrets.token_hex(4)[1:]  # seven digits: also a key of System V
        self.text = CANARY + self.end
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="place-", dir=top))
        self.home, self.project = self.top / "home", self.top / "home/project"
        self.secret, self.data = self.top / "secret", self.top / "data"
        self.values = {}
        self.fds = []
        for path in (self.top, self.home, self.project, self.secret, self.data):
            path.mkdir(exist_ok=True)
            path.chmod(0o777 if path in (self.project, self.secret, self.data) else 0o755)
            own(uid, path)
        self.canary = self.write(self.secret / "canary", self.text)
        self.write(self.data / "file", self.text)

    def write(self, path, text="", mode=0o666):
        path = pathlib.Path(path)
        for parent in reversed([p for p in path.parents if not p.exists()]):
            parent.mkdir()
            parent.chmod(0o777)
            own(self.uid, parent)
        path.write_text(text + "\n", encoding="utf-8")
        path.chmod(mode)
        own(self.uid, path)
        return path

    def fill(self, words, **more):
        """Puts what is only known now into the words of a table's row."""
        values = {"end": self.end, "text": self.text, "canary": self.canary, "secret": self.secret,
                  "data": self.data, "home": self.home, "project": self.project, "top": self.top,
                  **self.values, **more}
        return [word.format(**values) if isinstance(word, str) else word for word in words]

    def remove(self):
        shutil.rmtree(self.top, ignore_errors=True)


# --- servers that greet with the canary, and processes to be found ---

@contextlib.contextmanager
def serving(place, *sockets):
    """Answers every connection and every datagram on the sockets with the canary."""
    stop_read, stop_write = os.pipe()
    place.values["heard"] = heard = []

    def serve():
        while True:
            ready, _, _ = select.select([stop_read, *sockets], [], [])
            if stop_read in ready:
                return
            for s in ready:
                answer(s)

    def answer(s):
        heard.append(s)
        with contextlib.suppress(OSError):
            if s.type == socket.SOCK_DGRAM:
                _, sender = s.recvfrom(4096)
                if sender:
                    s.sendto(place.text.encode(), sender)
            else:
                with s.accept()[0] as connection:
                    connection.sendall(place.text.encode())
                    connection.shutdown(socket.SHUT_WR)
                    connection.settimeout(1)
                    connection.recv(64)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        os.write(stop_write, b"x")
        thread.join()
        for s in sockets:
            s.close()
        os.close(stop_read)
        os.close(stop_write)


def unix_socket(place, name, kind=socket.SOCK_STREAM):
    """A listening socket at a path, or an abstract one whose name starts with @."""
    s = socket.socket(socket.AF_UNIX, kind)
    s.bind("\0" + name[1:] if str(name)[0] == "@" else str(name))
    if str(name)[0] != "@":
        os.chmod(name, 0o777)
        own(place.uid, name)
    if kind != socket.SOCK_DGRAM:
        s.listen(8)
    return s


@contextlib.contextmanager
def unix_servers(place):
    """Agents, buses and daemons such as an operator has, in {sockets} and under abstract names."""
    folder = place.top / "s"  # a short name: 107 bytes is all there is
    folder.mkdir()
    folder.chmod(0o777)
    own(place.uid, folder)
    place.values.update(sockets=folder, name="@/tmp/.X11-unix/X" + place.end)
    names = ("agent", "bus", "docker", "tmux", "x11")
    with serving(place, *(unix_socket(place, folder / name) for name in names),
                 unix_socket(place, folder / "log", socket.SOCK_DGRAM),
                 unix_socket(place, place.project / "listener"),
                 unix_socket(place, "@/tmp/.X11-unix/X" + place.end),
                 unix_socket(place, "@log-" + place.end, socket.SOCK_DGRAM),
                 unix_socket(place, "@seq-" + place.end, socket.SOCK_SEQPACKET)):
        yield


def inet_socket(family, kind, address, port=0, protocol=0):
    s = socket.socket(family, kind, protocol)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address == "::" else 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    if kind == socket.SOCK_STREAM:
        s.listen(8)
    return s


def own_address():
    """An address of this machine that others would use; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("203.0.113.1", 9))
        except OSError:
            return None
        return s.getsockname()[0]


@contextlib.contextmanager
def inet_servers(place):
    """The same port by TCP, MPTCP, UDP and UDP-Lite, on every address of the machine."""
    stream = inet_socket(socket.AF_INET6, socket.SOCK_STREAM, "::")
    port = stream.getsockname()[1]
    place.values.update(port=port, address=own_address() or "127.0.0.1")
    more = [inet_socket(socket.AF_INET6, socket.SOCK_DGRAM, "::", port)]
    with contextlib.suppress(OSError):
        more.append(inet_socket(socket.AF_INET6, socket.SOCK_DGRAM, "::", port, 136))
    with serving(place, stream, *more):
        yield


def spare_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def victim(place):
    """A process of the operator's, to be found, killed, or ended by SIGURG."""
    script = "trap 'exit 7' URG; while :; do sleep 0.05; done"
    with subprocess.Popen([*as_user(place.uid), "sh", "-c", script], stdout=subprocess.DEVNULL) as process:
        place.values.update(pid=process.pid, process=process)
        time.sleep(0.05)  # until it has its trap
        try:
            yield
        finally:
            process.kill()


@contextlib.contextmanager
def open_folder(place):
    """Descriptors left open: a folder, and a socket in which another one waits."""
    low = os.open(place.secret, os.O_RDONLY | os.O_DIRECTORY)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    for _ in range(4):
        socket.send_fds(ours, [b"x"], [low])
    # High numbers, which nobody else will use.
    place.fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in (low, theirs.fileno())]
    place.values["fd"] = place.fds[0]
    os.close(low)
    theirs.close()
    try:
        yield
    finally:
        ours.close()
        for fd in place.fds:
            os.close(fd)


@contextlib.contextmanager
def in_shm(place):
    path = pathlib.Path("/dev/shm/bawn-escape-" + place.end)
    place.values["shm"] = place.write(path, place.text)
    try:
        yield
    finally:
        path.unlink()


def as_user(uid, *groups):
    """The words that make a command run as a user, if we are root and it is another."""
    return accounts.login(uid, *groups)
