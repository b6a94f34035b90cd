"""A host and an internet for tests, in namespaces that vanish with them; nothing leaves the machine.

    the internet ── link ── the host
    internet.py             the suite, and every bawn that it runs

enter() splits the process in two: the parent becomes the internet, the child returns in "the host", which has
one public address, a way out to all of the internet's, a resolver there, and an authority that programs trust.
The parent ends with the child, and with its status.
"""

import atexit
import ctypes
import hashlib
import json
import os
import pathlib
import secrets
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cage"))
import records  # noqa: E402
from internet import Internet, METADATA, RESOLVER, address_commands, run_ip  # noqa: E402
from place import FILES, SLOW, decode  # noqa: E402

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
PR_SET_PDEATHSIG = 1
HOST, HOST6 = "11.0.0.2", "2a00:11::2"
GATEWAY, GATEWAY6 = "11.0.0.1", "2a00:11::1"
WEB, WEB6 = "93.184.216.34", "2606:2800:220:1::34"
OTHER, OTHER6 = "93.184.216.35", "2606:2800:220:1::35"
SILENT, SILENT6 = "45.33.32.200", "2600:3c01::200"  # what is sent there is lost
IN_HOSTS = "in-hosts.example.org"  # only the host's /etc/hosts has it
PATIENCE = 60  # seconds that nothing takes, however busy the machine
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

# What every suite finds; names below example.net are free for what a test makes up.
ZONE = {
    "www.example.org": {"A": [WEB], "AAAA": [WEB6]},
    "example.org": {"A": [WEB], "AAAA": [WEB6]},
    "four.example.org": {"A": [WEB]},
    "six.example.org": {"AAAA": [WEB6]},
    "other.example.org": {"A": [OTHER], "AAAA": [OTHER6]},
    "alias.example.org": {"CNAME": "www.example.org"},
    "*.wild.example.org": {"A": [WEB], "AAAA": [WEB6]},
    "private.example.org": {"A": ["10.9.8.7"], "AAAA": ["fd00:9::7"]},
    "metadata.example.org": {"A": [METADATA], "AAAA": ["fd00:ec2::254"]},
    "host.example.org": {"A": [HOST], "AAAA": [HOST6]},
    "loopback.example.org": {"A": ["127.0.0.1"], "AAAA": ["::1"]},
}


class Done(typing.NamedTuple):
    status: int
    out: str
    err: str
    record: dict


class World:
    """The internet, as seen by the suite in the host."""

    def __init__(self, folder, canary, stream):
        self.folder, self.canary, self.stream = pathlib.Path(folder), canary, stream

    def ask(self, what, **more):
        self.stream.write(json.dumps({"do": what, **more}).encode() + b"\n")
        self.stream.flush()
        answer = json.loads(self.stream.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def zone(self, entries):
        """Changes names; see internet.py."""
        self.ask("zone", entries=entries)

    def take(self, service=None):
        """What arrived since the last time, as rows; see internet.py."""
        return [row for row in self.ask("take") if service in (None, row["service"])]

    def queries(self):
        """The names that were asked for since the last time; forgets the rest."""
        return [row["name"] for row in self.take("names")]

    def spawn(self, *command):
        return self.ask("spawn", command=[str(word) for word in command])

    def certificate(self, name):
        return self.ask("certificate", name=name)

    def files(self, host):
        """A folder that is what the HTTP and TLS servers have for this host."""
        path = self.folder / "files" / host
        path.mkdir(exist_ok=True)
        return path

    def bawn(self, place, script, *options, **more):
        """A shell script in a cage of the place's person."""
        path = place.top / records.FILE
        process = place.start("run", "--record", path, *options, "--", "sh", "-c", script, **more)
        try:
            out, err = process.communicate(b"", timeout=PATIENCE * SLOW)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
            raise AssertionError(f"hung: {script}\n{decode(out)}{decode(err)}") from None
        record = records.read(path) if path.exists() else None
        path.unlink(missing_ok=True)
        return Done(process.returncode, decode(out), decode(err), record)

    def host(self, place, script, **more):
        """The same without a cage."""
        return place.run("-c", script, program="sh", **more)


def allow(*destinations):
    return [word for destination in destinations for word in ("--allow", destination)]


# --- how it is made ---

def call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def java_store(certificate):
    """A store of trusted certificates as Java reads it, with a single one: the format "JKS"."""
    def text(word):
        return struct.pack("!H", len(word)) + word.encode()
    der = ssl.PEM_cert_to_DER_cert(certificate)
    content = struct.pack("!III", 0xFEEDFEED, 2, 1) + struct.pack("!I", 2) + text("tests")
    content += struct.pack("!Q", int(time.time() * 1000)) + text("X.509") + struct.pack("!I", len(der)) + der
    salt = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"
    return content + hashlib.sha1(salt + content).digest()


def write_files(folder):
    """What is the host's own in /etc: {path there: path here}."""
    certificate = (folder / "keys/ca.pem").read_text()
    certs, etc = folder / "certs", folder / "etc"
    (certs / "java").mkdir(parents=True)
    etc.mkdir()
    (certs / "ca-certificates.crt").write_text(certificate)
    (certs / "java/cacerts").write_bytes(java_store(certificate))
    name = subprocess.run(["openssl", "x509", "-noout", "-hash", "-in", folder / "keys/ca.pem"], check=True,
                          capture_output=True, text=True).stdout.strip()
    (certs / f"{name}.0").write_text(certificate)
    (etc / "resolv.conf").write_text(f"nameserver {RESOLVER}\noptions timeout:1 attempts:2\n")
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n{HOST} the-host\n{OTHER} {IN_HOSTS}\n")
    (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    return {"/etc/ssl/certs": certs, **{f"/etc/{path.name}": path for path in etc.iterdir()}}


def become_host(folder):
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for there, path in write_files(folder).items():
        subprocess.run(["mount", "--bind", path, there], check=True)
    # A link's other end was made here by the internet.
    run_ip("link set lo up", "link set world addrgenmode none up", f"address add {HOST}/24 dev world",
           f"address add {HOST6}/64 dev world nodad", f"route add default via {GATEWAY}",
           f"route add default via {GATEWAY6}")


def become_internet(internet, host):
    run_ip(f"link add world type veth peer name world netns {host}", "link set world addrgenmode none",
           f"address add {GATEWAY}/24 dev world", f"address add {GATEWAY6}/64 dev world nodad",
           *address_commands("world"))
    # An address that nobody has is told from one that says nothing.
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        pathlib.Path("/proc/sys/net", name).write_text("1", encoding="ascii")
    run_ip(f"route add blackhole {SILENT}", f"route add blackhole {SILENT6}",
           "route add unreachable 0.0.0.0/0", "route add unreachable ::/0")
    internet.do_zone(ZONE)
    internet.start()


def serve(internet, host, sock):
    """Until the host has ended; its status."""
    stream, end = sock.makefile("rwb"), os.pidfd_open(host)
    while True:
        ready, _, _ = select.select([sock, end], [], [])
        if sock in ready and not internet.serve(stream):
            break
        if end in ready:
            break
    return os.waitstatus_to_exitcode(os.waitpid(host, 0)[1])


def be_internet(folder, canary, host, sock):
    """The parent's life; the status of the child."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(host, number))
    internet = None
    try:
        call("unshare", CLONE_NEWNET)
        internet = Internet(folder, canary)
        assert sock.recv(1) == b"h", "the host did not begin"
        become_internet(internet, host)
        sock.sendall(b"i")
        return serve(internet, host, sock)
    finally:
        if internet:
            internet.done()
        shutil.rmtree(folder)


def enter():
    """Returns the World, in the host; the caller's first deed, before there are threads."""
    atexit.register(shutil.rmtree, FILES, ignore_errors=True)  # where a suite does not begin
    if os.geteuid() != 0:
        print("1..0 # SKIP only root can make a network of its own here")
        sys.exit(0)
    folder, canary = pathlib.Path(tempfile.mkdtemp(prefix="bawn-net-")), "canary-" + secrets.token_hex(8)
    folder.chmod(0o755)
    ours, theirs = socket.socketpair()
    parent, host = os.getpid(), os.fork()
    if host:
        theirs.close()
        try:
            status = be_internet(folder, canary, host, ours)
        except BaseException as error:  # whatever it is, there is no world
            print(f"Bail out! there is no internet: {type(error).__name__}: {error}", flush=True)
            status = 1
        os._exit(status if status >= 0 else 128 - status)  # the child flushed and cleaned up
    ours.close()
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    call("unshare", CLONE_NEWNS | CLONE_NEWNET)
    theirs.sendall(b"h")
    if theirs.recv(1) != b"i":
        sys.exit(1)  # the internet says why
    become_host(folder)
    return World(folder, canary, theirs.makefile("rwb"))
