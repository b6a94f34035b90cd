"""A hostile program, run in cages by attacks.py. The last line says what came of it.

    attacker.py ATTACK ARGUMENT…

Exits with 0 when it got through, 1 when it was refused, 2 when this kernel cannot even try. Texts among the arguments
are written as Python's literals, so that any byte can be in them.
"""

import ctypes
import errno
import os
import socket
import struct
import sys
import time

MPTCP, SCTP, DCCP, UDPLITE = 262, 132, 33, 136
SOCK_DCCP, PACKET_IP = 6, 0x0800
MSG_FASTOPEN, TCP_FASTOPEN_CONNECT = 0x20000000, 30
PTRACE_ATTACH, PTRACE_DETACH = 16, 17
ECH = 0xFE0D
UNKNOWN = (errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT, errno.ENOPROTOOPT)
SECONDS = 3
QUIET = 0.3  # after which nothing more is coming
OF_THE_GATE = (b"HTTP/1.1 403", b"HTTP/1.1 502")
CANARY = b"canary-"


class Untried(Exception):
    """There is no such thing here."""


def text(word):
    return word.encode("latin-1").decode("unicode_escape").encode("latin-1")


def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def make(*what):
    try:
        sock = socket.socket(*what)
    except OSError as error:
        if error.errno in UNKNOWN:
            raise Untried(str(error)) from None
        raise
    sock.settimeout(SECONDS)
    return sock


def read_until(sock, mark):
    """What came until there is the mark, the end, or patience ends."""
    got = b""
    try:
        while mark is None or mark not in got:
            piece = sock.recv(65536)
            if not piece:
                break
            got += piece
    except TimeoutError:
        pass
    return got


def greeting(sock, mark=CANARY):
    got = read_until(sock, mark)
    return got.decode("latin-1").strip() if mark in got else None


# --- all kinds of sockets ---

def tcp(address, port, mark=CANARY.decode()):
    """A server that speaks first, by address or name."""
    return greeting(socket.create_connection((address, int(port)), SECONDS), mark.encode())


def tcp_twice(name, port):
    """A name that may lead elsewhere the second time: to the host, which says so."""
    for _ in range(2):
        try:
            if came := tcp(name, port, "of-the-host"):
                return came
        except OSError:
            pass
    return None


def tcp_pinned(name, port):
    """The same with an address that is remembered."""
    return tcp_twice(socket.getaddrinfo(name, port)[0][4][0], port)


def mptcp(address, port):
    sock = make(family(address), socket.SOCK_STREAM, MPTCP)
    sock.connect((address, int(port)))
    return greeting(sock)


def fastopen_by_message(address, port):
    sock = make(family(address), socket.SOCK_STREAM)
    sock.setblocking(True)
    sock.sendto(b"x", MSG_FASTOPEN, (address, int(port)))
    sock.settimeout(SECONDS)
    return greeting(sock)


def fastopen_by_connect(address, port):
    sock = make(family(address), socket.SOCK_STREAM)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
    sock.connect((address, int(port)))
    sock.sendall(b"x")
    return greeting(sock)


def udp(address, port):
    """An echo. Who is connected hears at once that nobody is there."""
    sock = make(family(address), socket.SOCK_DGRAM)
    sock.connect((address, int(port)))
    sock.send(b"ping")
    return sock.recv(9).decode()


def send(kind, address):
    """Only sends: whether it arrives is seen outside."""
    is_v6 = ":" in address
    if kind == "ping":
        echo = struct.pack("!BBHHH", 128 if is_v6 else 8, 0, 0, 0, 1) + b"secret"
        sock = make(family(address), socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6 if is_v6 else socket.IPPROTO_ICMP)
        sock.sendto(echo, (address, 0))
    elif kind == "raw":
        make(family(address), socket.SOCK_RAW, 253).sendto(b"secret", (address, 0))
    elif kind == "packet":
        sock = make(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(PACKET_IP))
        link = next((name for _, name in socket.if_nameindex() if name != "lo"), "lo")
        head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 26, 0, 0, 64, 253, 0, bytes(4), socket.inet_aton(address))
        sock.sendto(head + b"secret", (link, PACKET_IP))
    elif kind == "udplite":
        make(family(address), socket.SOCK_DGRAM, UDPLITE).sendto(b"secret", (address, 7))
    else:
        sock = make(family(address), SOCK_DCCP if kind == "dccp" else socket.SOCK_STREAM,
                    DCCP if kind == "dccp" else SCTP)
        sock.connect((address, 22))
    return "it was sent"


# --- names ---

def pack(name):
    labels = [label for label in name.split(b".") if label]
    return b"".join(bytes([min(len(label), 63)]) + label for label in labels) + b"\0"


def query(name, kind):
    return struct.pack("!HHHHHH", 7, 0x0100, 1, 0, 0, 0) + name + struct.pack("!HH", kind, 1)


def read_answer(answer):
    code, count = answer[3] & 15, struct.unpack_from("!H", answer, 6)[0]
    return f"{count} answers" if code == 0 and count else None


def ask(server, kind, name, by="udp"):
    """Through is an answer with an address in it, or whatever was asked for."""
    question = query(pack(text(name)), int(kind))
    if by == "udp":
        sock = make(family(server), socket.SOCK_DGRAM)
        sock.connect((server, 53))
        sock.send(question)
        return read_answer(sock.recv(4096))
    sock = socket.create_connection((server, 53), SECONDS)
    sock.sendall(struct.pack("!H", len(question)) + question)
    answer = sock.makefile("rb").read(2 + 12)
    return read_answer(answer[2:]) if len(answer) == 14 else None


def resolve(*names):
    found = []
    for name in names:
        try:
            found.append(socket.getaddrinfo(name, 443)[0][4][0])
        except (OSError, UnicodeError):
            pass
    return " ".join(found) or None


# --- TLS ---

def in_records(hello, size):
    """The same message in records of a few bytes."""
    body = hello[5:]
    return [hello[:3] + struct.pack("!H", len(body[i:i + size])) + body[i:i + size]
            for i in range(0, len(body), size)]


def with_ech(hello):
    """With one more extension: an encrypted hello, which nobody can read."""
    inner = os.urandom(200)
    more = struct.pack("!HH", ECH, 10 + 32 + len(inner)) + struct.pack("!BHHBH", 0, 1, 1, 7, 32) + os.urandom(32) + \
        struct.pack("!H", len(inner)) + inner
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + struct.unpack_from("!H", hello, at)[0]
    at += 1 + hello[at]
    size = struct.unpack_from("!H", hello, at)[0] + len(more)
    handshake = hello[5:at] + struct.pack("!H", size) + hello[at + 2:] + more
    handshake = handshake[:1] + struct.pack("!I", len(handshake) - 4)[1:] + handshake[4:]
    return hello[:3] + struct.pack("!H", len(handshake)) + handshake


CUTS = {
    "whole": lambda hello: [hello],
    "bytes": lambda hello: [bytes([byte]) for byte in hello],
    "records": lambda hello: in_records(hello, 7),
    "ech": lambda hello: [with_ech(hello)],
}


def tls(host, port, name, cut="whole"):
    """Asks for a page by TLS, with this name in a hello that is cut as said; - is no name."""
    import ssl  # pylint: disable=import-outside-toplevel  # takes longer than most attacks
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    arrived, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(arrived, sent, server_hostname=None if name == "-" else name)
    sock = socket.create_connection((host, int(port)), SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def go_on(step, pieces):
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                result = None
            for piece in pieces(sent.read()):
                sock.sendall(piece)
            pieces = CUTS["whole"]
            if result is not None:
                return result
            piece = sock.recv(65536)
            if not piece:
                raise ConnectionResetError("it was closed")
            arrived.write(piece)
    go_on(lambda: client.do_handshake() or True, CUTS[cut])
    go_on(lambda: client.write(f"GET /attack HTTP/1.0\r\nHost: {host}\r\n\r\n".encode()), CUTS["whole"])
    reply = go_on(lambda: client.read(65536), CUTS["whole"])
    return "a page" if b" 200 " in reply else None


# --- HTTP, and whatever else is said first ---

def say(host, port, *pieces):
    """Sends the pieces one after the other, and through is an answer that the gate did not write."""
    sock = socket.create_connection((host, int(port)), SECONDS)
    for number, piece in enumerate(pieces):
        if number:
            time.sleep(0.05)
        sock.sendall(text(piece))
    reply = sock.recv(65536)
    sock.settimeout(QUIET)
    reply += read_until(sock, None)
    return reply[:60].decode("latin-1") if reply and not reply.startswith(OF_THE_GATE) else None


# --- many ---

def flood(count, *then):
    """Opens so many connections, each of which says one byte and no more. Then a good one has to get through."""
    held = []
    for _ in range(int(count)):
        try:
            sock = socket.create_connection((then[0], int(then[1])), SECONDS)
            sock.sendall(b"\x16")
            held.append(sock)
        except OSError:
            pass
    start = time.monotonic()
    while time.monotonic() - start < 20:
        try:
            if tls(*then):
                return f"{len(held)} were taken; after {time.monotonic() - start:.0f} s another was served"
        except OSError:
            time.sleep(0.3)
    return None


def flood_names(count, server, name):
    """Many questions at once, and then one that has to be answered."""
    sock = make(family(server), socket.SOCK_DGRAM)
    for number in range(int(count)):
        try:
            sock.sendto(query(pack(b"n%d.denied.example.net" % number), 1), (server, 53))
        except OSError:
            pass
    askers = []
    for _ in range(200):
        askers.append(socket.create_connection((server, 53), SECONDS))
    return ask(server, 1, name)


# --- the gate's processes ---

def content(path):
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""  # it is gone


def signal_processes(*pids):
    """Those, and whatever is to be seen here."""
    libc = ctypes.CDLL(None, use_errno=True)
    seen = [name for name in os.listdir("/proc") if name.isdigit() and b"bawn-" in content(f"/proc/{name}/cmdline")]
    for pid in map(int, pids):
        try:
            os.kill(pid, 0)
            seen.append(f"signal {pid}")
        except OSError:
            pass
        if libc.ptrace(PTRACE_ATTACH, pid, None, None) == 0:
            os.waitpid(pid, 0x40000000)
            libc.ptrace(PTRACE_DETACH, pid, None, None)
            seen.append(f"trace {pid}")
    return " ".join(seen) or None


def abstract():
    """A unix socket that has a name and no file."""
    last = [line.split()[-1] for line in content("/proc/net/unix").splitlines()]
    return next((word.decode("latin-1") for word in last if word.startswith(b"@")), None)


def try_it(words):
    try:
        came = globals()[words[0]](*words[1:])
    except Untried as error:
        return 2, f"untried: {error}"
    except (OSError, UnicodeError) as error:
        return 1, f"refused: {error}"
    return (0, f"through: {came}") if came else (1, "refused: nothing came")


if __name__ == "__main__":
    status, sentence = try_it(sys.argv[1:])
    print(sentence, flush=True)
    sys.exit(status)
