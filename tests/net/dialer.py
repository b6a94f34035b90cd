#!/usr/bin/env python3
"""The caller by itself: the tests are the gate. Names and servers are those of world.py.

    caller.py BAWN BREAKABLE        prints TAP
"""

import array
import contextlib
import ctypes
import fcntl
import ipaddress
import os
import pathlib
import resource
import select
import signal
import socket
import struct
import sys
import time

import world
from world import HOST, IN_HOSTS, OTHER, OTHER6, SILENT, SILENT6, WEB, WEB6
import accounts
from place import BAWN, SLOW, case, main, of_root

WORLD = None
NOBODY = 2130706433
CHANNEL, RULES, VAULT = 4, 5, 7  # gate.h
READY = 0xFFFFFFFF
ALLOWED, DENIED, FAILED = 0, 1, 2
WIRE_REASONS = ("ALLOWED NAME PORT ADDRESS NO_NETWORK ODD_NAME MANY_NAMES UDP NOT_TLS NO_SNI OTHER_SNI NOT_HTTP NO_HOST "
                "OTHER_HOST BAD_HTTP URGENT SILENT MANY RESERVED OWN_ADDRESS UNKNOWN_NAME RESOLVER UNREACHABLE NO_SECRET NO_VAULT "
                "UNTRUSTED NO_TLS BAD_ANSWER ECHO").split()
F_ADD_SEALS, SEALS = 1033, 2 | 4 | 8


# --- messages, as in wire_gate.h ---

class Rule(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 256), ("address", ctypes.c_uint8 * 16), ("prefix", ctypes.c_uint8),
                ("protocol", ctypes.c_uint8), ("is_wildcard", ctypes.c_bool), ("is_host", ctypes.c_bool),
                ("is_vault", ctypes.c_bool), ("port", ctypes.c_uint16)]


class Publish(ctypes.Structure):
    _fields_ = [("address", ctypes.c_char * 48), ("host_port", ctypes.c_uint16), ("cage_port", ctypes.c_uint16)]


class Secret(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 64), ("host", ctypes.c_char * 256), ("port", ctypes.c_uint16)]


class Rules(ctypes.Structure):
    _fields_ = [("rule_count", ctypes.c_uint32), ("publish_count", ctypes.c_uint32),
                ("secret_count", ctypes.c_uint32), ("uid", ctypes.c_uint32), ("gid", ctypes.c_uint32),
                ("is_landlocked", ctypes.c_bool), ("publish", Publish * 64), ("secrets", Secret * 32)]


class Call(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("port", ctypes.c_uint16), ("has_address", ctypes.c_uint8),
                ("address", ctypes.c_uint8 * 16), ("name", ctypes.c_char * 256)]


class Called(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("kind", ctypes.c_uint8), ("reason", ctypes.c_uint8),
                ("other", ctypes.c_char * 256)]


def pack(address):
    """16 bytes, and how many bits stand before an IPv4 address."""
    address = ipaddress.ip_address(address)
    return (bytes(10) + b"\xff\xff" + address.packed, 96) if address.version == 4 else (address.packed, 0)


def rule(name, port):
    """As the keeper would make it of an entry: a name, *.name, a network, bawn-host."""
    if "/" in name:
        network = ipaddress.ip_network(name)
        address, before = pack(network.network_address)
        return Rule(b"", (ctypes.c_uint8 * 16)(*address), before + network.prefixlen, 2, False, False, False, port)
    return Rule(name.removeprefix("*.").encode(), prefix=0, protocol=2, is_wildcard=name.startswith("*."),
                is_host=name == "bawn-host", port=port)


# The rules begin where the head ends without what fills it up.
HEAD_SIZE = Rules.secrets.offset + Rules.secrets.size


def make_rules(allow, seals=SEALS, secrets=()):
    rules = [rule(name, port) for name, port in allow]
    if secrets:
        rules.append(Rule(b"bawn-host", protocol=1, is_vault=True, port=80))
    head = Rules(len(rules), 0, len(secrets), NOBODY, NOBODY, True)
    for place, (host, port) in enumerate(secrets):
        head.secrets[place] = Secret(b"s", host.encode(), port)
    memory = os.memfd_create("rules", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    content = bytes(head)[:HEAD_SIZE] + b"".join(map(bytes, rules))
    os.write(memory, content.ljust(ctypes.sizeof(Rules) + len(rules) * ctypes.sizeof(Rule), b"\0"))
    fcntl.fcntl(memory, F_ADD_SEALS, seals)
    return memory


# --- a caller ---

class Answer:
    def __init__(self, called, fd):
        self.id, self.kind, self.other = called.id, called.kind, called.other.decode()
        self.reason = WIRE_REASONS[called.reason]
        self.sock = socket.socket(fileno=fd) if fd is not None else None

    def __repr__(self):
        return f"{self.kind} {self.reason} '{self.other}'{' with a socket' if self.sock else ''}"


class Caller:
    def __init__(self, uid, *allow, seals=SEALS, pair=None, secrets=()):
        self.sock, theirs = pair or socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.vault, vaults = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        memory = make_rules(allow, seals, secrets)
        self.next, self.status = 0, None
        self.pid = os.fork()
        if not self.pid:
            be_caller(uid, theirs.fileno(), memory, vaults.fileno())
        theirs.close()
        vaults.close()
        os.close(memory)
        self.ready = self.receive()
        assert self.ready.id == READY, self.ready

    def send(self, name=None, port=80, address=None, number=None):
        message = Call(id=self.next if number is None else number, port=port, has_address=address is not None)
        if address:
            message.address[:] = pack(address)[0]
        else:
            message.name = name.encode()
        self.next += 1
        self.sock.sendall(bytes(message))
        return message.id

    def ask_as_vault(self, secret):
        """The vault has a channel of its own, and can say nothing on it but which of the secrets."""
        self.vault.sendall(struct.pack("II", 7, secret))
        answer = self.receive(sock=self.vault)
        assert answer.id == 7, answer.id
        return answer

    def receive(self, seconds=20, sock=None):
        sock = sock or self.sock
        ready, _, _ = select.select([sock], [], [], seconds * SLOW)
        assert ready, f"no answer within {seconds} s"
        content, control, _, _ = sock.recvmsg(1024, socket.CMSG_SPACE(4))
        assert len(content) == ctypes.sizeof(Called), f"{len(content)} bytes"
        fds = array.array("i")
        for _, _, piece in control:
            fds.frombytes(piece)
        return Answer(Called.from_buffer_copy(content), fds[0] if fds else None)

    def ask(self, *args, **more):
        number = self.send(*args, **more)
        answer = self.receive()
        assert answer.id == number, f"{answer.id}, not {number}"
        return answer

    def wait(self):
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.status


def be_caller(uid, channel, memory, vault):
    """The child: what the keeper would do."""
    try:
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (channel, memory, vault)]
        for fd, number in zip(high, (CHANNEL, RULES, VAULT)):
            os.dup2(fd, number)
        if uid:
            accounts.become(uid)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execve(BAWN, ["bawn-dialer"], {"PATH": "/nowhere"})
    finally:
        os._exit(127)


@contextlib.contextmanager
def caller(place, *allow, **more):
    """One that is ready, and ends well when its channel does."""
    one = Caller(place.uid, *allow, **more)
    try:
        assert (one.ready.kind, one.ready.other) == (ALLOWED, ""), one.ready
        yield one
    finally:
        one.sock.close()
        status = one.wait()
    assert status == 0, f"it ended with {status}"


def reached(answer, address, port=80):
    """The socket leads where it should."""
    assert (answer.kind, answer.reason, answer.other) == (ALLOWED, "ALLOWED", address), answer
    with answer.sock as sock:
        assert sock.getpeername()[:2] == (address, port), sock.getpeername()
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        sock.setblocking(True)
        sock.settimeout(10)
        sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert sock.recv(12).startswith(b"HTTP/1."), "another server"


def refused(answer, reason, other=""):
    assert (answer.kind, answer.reason, answer.other, answer.sock) == (DENIED, reason, other, None), answer


def failed(answer, reason, other=""):
    assert (answer.kind, answer.reason, answer.sock) == (FAILED, reason, None), answer
    assert answer.other == other, answer


def public(*names):
    return [(name, 80) for name in names]


# --- names ---

@case
def names_are_found_in_both_families(p):
    WORLD.zone({"refusing.example.net": {"AAAA": ["2606:2800:220:1::99"], "A": [WEB]},
                "dead.example.net": {"AAAA": [SILENT6], "A": [WEB]},
                "dead4.example.net": {"AAAA": [WEB6], "A": [SILENT]}})
    with caller(p, *public("four.example.org", "six.example.org", "www.example.org", "*.example.net")) as c:
        reached(c.ask("four.example.org"), WEB)
        reached(c.ask("six.example.org"), WEB6)
        reached(c.ask("www.example.org"), WEB6)
        reached(c.ask("refusing.example.net"), WEB)
        reached(c.ask("dead4.example.net"), WEB6)
        start = time.monotonic()
        reached(c.ask("dead.example.net"), WEB)
        assert 0.2 < time.monotonic() - start < 5 * SLOW


@case
def aliases_are_followed_and_judged_by_their_end(p):
    WORLD.zone({"inward.example.net": {"CNAME": "private.example.org"}})
    with caller(p, *public("alias.example.org", "inward.example.net")) as c:
        reached(c.ask("alias.example.org"), WEB6)
        refused(c.ask("inward.example.net"), "RESERVED", "fd00:9::7 (private)")


@case
def names_that_are_not_found_say_why(p):
    WORLD.zone({"empty.example.net": {}, "broken.example.net": {"rcode": 2}})
    with caller(p, *public("*.example.net")) as c:
        failed(c.ask("nowhere.example.net"), "UNKNOWN_NAME")
        failed(c.ask("empty.example.net"), "UNKNOWN_NAME")
        failed(c.ask("broken.example.net"), "RESOLVER", "the name servers of this machine failed")


@case
def long_answers_come_by_tcp(p):
    WORLD.zone({"long.example.net": {"truncated": True, "A": [WEB]}})
    with caller(p, *public("long.example.net")) as c:
        WORLD.take()
        reached(c.ask("long.example.net"), WEB)
        assert "tcp" in [row["by"] for row in WORLD.take("names")]


@case
def a_silent_resolver_is_told(p):
    WORLD.zone({"silent.example.net": {"silent": True}})
    with caller(p, *public("silent.example.net", "four.example.org")) as c:
        start, number = time.monotonic(), c.send("silent.example.net")
        reached(c.ask("four.example.org"), WEB)  # others do not wait
        answer = c.receive()
        assert answer.id == number and 2 < time.monotonic() - start < 16 * SLOW
        failed(answer, "RESOLVER", "the name servers of this machine did not answer")


@case
def the_hosts_file_counts(p):
    with caller(p, *public(IN_HOSTS)) as c:
        WORLD.take()
        reached(c.ask(IN_HOSTS), OTHER)
        reached(c.ask(IN_HOSTS), OTHER)
        assert WORLD.queries() == []


@case
def names_are_remembered_as_long_as_they_say(p):
    WORLD.zone({"kept.example.net": {"A": [WEB], "ttl": 60}, "short.example.net": {"A": [WEB], "ttl": 1},
                "never.example.net": {"A": [WEB], "ttl": 0},
                "by-alias.example.net": {"CNAME": "kept.example.net", "ttl": 0}})
    with caller(p, *public("*.example.net")) as c:
        def queries(name):
            WORLD.take()
            reached(c.ask(name), WEB)
            return len(WORLD.queries())
        assert [queries("kept.example.net"), queries("kept.example.net")] == [2, 0]
        assert [queries("never.example.net"), queries("never.example.net")] == [2, 2]
        assert [queries("by-alias.example.net"), queries("by-alias.example.net")] == [2, 2]
        assert [queries("short.example.net"), queries("short.example.net")] == [2, 0]
        time.sleep(1.1)
        assert queries("short.example.net") == 2


# --- addresses ---

@case
def reserved_addresses_are_refused_unless_declared(p):
    WORLD.zone({"mixed.example.net": {"A": ["10.9.8.7", WEB, "127.0.0.1"]}})
    names = public("private.example.org", "metadata.example.org", "loopback.example.org", "mixed.example.net")
    with caller(p, *names) as c:
        WORLD.take()
        refused(c.ask("private.example.org"), "RESERVED", "fd00:9::7 (private)")
        refused(c.ask("metadata.example.org"), "RESERVED", "fd00:ec2::254 (metadata service)")
        refused(c.ask("loopback.example.org"), "OWN_ADDRESS", "::1 (loopback)")
        assert WORLD.take("tcp") == []
        reached(c.ask("mixed.example.net"), WEB)
        assert [row["address"] for row in WORLD.take("tcp")] == [WEB]
    with caller(p, *names, ("10.0.0.0/8", 80), ("fd00:ec2::254/128", 8080)) as c:
        reached(c.ask("private.example.org"), "10.9.8.7")
        refused(c.ask("metadata.example.org"), "RESERVED", "fd00:ec2::254 (metadata service)")


@case
def the_host_itself_is_refused_unless_declared(p):
    with socket.create_server((HOST, 8080)) as server, caller(p, ("host.example.org", 8080)) as c:
        refused(c.ask("host.example.org", 8080), "OWN_ADDRESS", world.HOST6)
        server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            server.accept()
            raise AssertionError("it was connected to")
    with socket.create_server((HOST, 8080)) as server, \
            caller(p, ("host.example.org", 8080), (f"{HOST}/32", 8080)) as c:
        answer = c.ask("host.example.org", 8080)
        assert (answer.kind, answer.other) == (ALLOWED, HOST), answer
        server.accept()[0].close()
        answer.sock.close()


@case
def a_name_means_itself_and_nothing_below_a_search_domain(p):
    WORLD.zone({"nowhere.example.net.corp.example": {"A": [WEB]}, "www.corp.example": {"A": [WEB]}})
    settings = pathlib.Path("/etc/resolv.conf")
    before = settings.read_text(encoding="utf-8")
    settings.write_text(before + "search corp.example\noptions ndots:5\n", encoding="utf-8")
    try:
        with caller(p, *public("nowhere.example.net", "www")) as c:
            WORLD.take()
            failed(c.ask("nowhere.example.net"), "UNKNOWN_NAME")
            failed(c.ask("www"), "UNKNOWN_NAME")
            asked = WORLD.queries()
            assert asked and not [name for name in asked if "corp" in name], asked
    finally:
        settings.write_text(before, encoding="utf-8")


@case
def no_network_stands_for_the_loopback(p):
    wide = (("127.0.0.0/8", 9001), ("::/1", 9001), ("0.0.0.0/1", 9001))
    with socket.create_server(("127.0.0.1", 9001)) as server, \
            caller(p, ("loopback.example.org", 9001), *wide) as c:
        refused(c.ask("loopback.example.org", 9001), "OWN_ADDRESS", "::1 (loopback)")
        for address in ("127.0.0.1", "::1", "0.0.0.0", "::"):
            assert c.ask(address=address, port=9001).reason in ("OWN_ADDRESS", "ADDRESS"), address
        server.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            server.accept()
            raise AssertionError("it was connected to")


def ticks(pid):
    """The processor's time that it has had, in hundredths of a second."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@case
def an_idle_connection_keeps_nobody_busy(p):
    with caller(p, *public("www.example.org")) as c:
        held = [c.ask("www.example.org") for _ in range(10)]
        before = ticks(c.pid)
        time.sleep(1)
        assert ticks(c.pid) - before <= 10, ticks(c.pid) - before  # of 100
        for answer in held:
            answer.sock.close()


@case
def a_vault_that_does_not_listen_keeps_nobody_busy(p):
    with caller(p, *public("www.example.org"), secrets=[("four.example.org", 80)]) as c:
        c.vault.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            for sent in range(4096):
                c.vault.sendall(struct.pack("II", sent, 9))
                time.sleep(0 if sent % 64 else 0.01)
        before = ticks(c.pid)
        time.sleep(1)
        assert ticks(c.pid) - before <= 10, ticks(c.pid) - before  # of 100
        reached(c.ask("www.example.org"), WEB6)
        numbers = [c.receive(sock=c.vault).id for _ in range(sent)]
        assert sent > 256 and sorted(numbers) == list(range(sent)), (sent, len(numbers))
        assert c.ask_as_vault(0).kind == ALLOWED


@case
def the_vault_has_its_part_of_the_places_and_can_give_them_back(p):
    WORLD.zone({"silent.example.net": {"A": [SILENT]}})
    with caller(p, *public("www.example.org"), secrets=[("silent.example.net", 80), ("four.example.org", 80)]) as c:
        for number in range(256):
            c.vault.sendall(struct.pack("II", 1000 + number, 0))
        refused(c.ask_as_vault(1), "MANY")
        reached(c.ask("www.example.org"), WEB6)
        c.vault.sendall(struct.pack("II", 1100, 0xFFFFFFFF))
        reached(c.ask_as_vault(1), WEB)
        c.vault.sendall(struct.pack("II", 4711, 0xFFFFFFFF))  # which there is not
        c.vault.sendall(struct.pack("II", 2000, 0))
        refused(c.ask_as_vault(1), "MANY")


@case
def a_name_that_changes_is_judged_again(p):
    WORLD.zone({"turning.example.net": {"turns": [{"A": [WEB], "ttl": 0}, {"A": ["127.0.0.1"], "ttl": 0},
                                                  {"A": [WEB], "ttl": 0}]}})
    with caller(p, *public("turning.example.net")) as c:
        reached(c.ask("turning.example.net"), WEB)
        refused(c.ask("turning.example.net"), "OWN_ADDRESS", "127.0.0.1 (loopback)")
        reached(c.ask("turning.example.net"), WEB)


@case
def declared_addresses_need_no_name(p):
    with caller(p, ("10.0.0.0/8", 80), (f"{WEB6}/128", 80)) as c:
        reached(c.ask(address="10.9.8.7"), "10.9.8.7")
        reached(c.ask(address=WEB6), WEB6)
        for address, port in (("10.9.8.7", 8080), (WEB, 80), ("127.0.0.1", 80), ("::1", 80)):
            refused(c.ask(address=address, port=port), "ADDRESS")


@case
def the_loopback_is_reached_where_it_is_declared(p):
    with socket.create_server(("127.0.0.1", 9001)) as four, \
            socket.create_server(("::1", 9002), family=socket.AF_INET6) as six, \
            caller(p, ("bawn-host", 9001), ("bawn-host", 9002), ("bawn-host", 9003)) as c:
        for server, port, address in ((four, 9001, "127.0.0.1"), (six, 9002, "::1")):
            answer = c.ask("bawn-host", port)
            assert (answer.kind, answer.other) == (ALLOWED, address), answer
            server.accept()[0].close()
            answer.sock.close()
        failed(c.ask("bawn-host", 9003), "UNREACHABLE", "Connection refused")
        refused(c.ask("bawn-host", 80), "PORT")
    with caller(p, *public("www.example.org")) as c:
        refused(c.ask("bawn-host", 9001), "NAME")


@case
def servers_that_are_not_there_are_told(p):
    WORLD.zone({"closed.example.net": {"A": [WEB], "AAAA": [WEB6]}, "gone.example.net": {"A": ["8.8.8.8"]}})
    with caller(p, ("closed.example.net", 81), ("gone.example.net", 80)) as c:
        failed(c.ask("closed.example.net", 81), "UNREACHABLE", "Connection refused")
        failed(c.ask("gone.example.net"), "UNREACHABLE", "No route to host")


@of_root
@case
def servers_that_do_not_answer_have_15_seconds(p):
    WORLD.zone({"dead.example.net": {"AAAA": [SILENT6], "A": [SILENT]}})
    with caller(p, *public("dead.example.net")) as c:
        start = time.monotonic()
        failed(c.ask("dead.example.net"), "UNREACHABLE", "no answer within 15 s")
        assert 14.9 < time.monotonic() - start < 15 + 5 * SLOW


# --- the gate is not believed ---

@case
def the_rules_hold_here_too(p):
    with caller(p, ("www.example.org", 80), ("*.wild.example.org", 80)) as c:
        WORLD.take()
        refused(c.ask("www.example.org", 443), "PORT")
        refused(c.ask("other.example.org"), "NAME")
        refused(c.ask("wild.example.org"), "NAME")
        refused(c.ask("www.example.org", 0), "PORT")
        refused(c.ask("93.184.216.34"), "ODD_NAME")
        assert WORLD.take() == []
        reached(c.ask("a.wild.example.org"), WEB6)


@case
def odd_names_are_refused(p):
    with caller(p, *public("*.example.org")) as c:
        for name in ("", ".", "WWW.example.org", "www..example.org", "www.example.org.", "a b.example.org",
                     "\x01.example.org", "\xff.example.org", "a" * 64 + ".example.org", "a." * 121 + ".example.org"):
            refused(c.ask(name), "ODD_NAME")
        whole = Call(id=7, port=80)
        ctypes.memset(ctypes.addressof(whole) + Call.name.offset, ord("a"), 256)
        c.sock.sendall(bytes(whole))
        refused(c.receive(), "ODD_NAME")
        reached(c.ask("www.example.org"), WEB6)


@case
def nonsense_is_the_end(p):
    for content in (b"x", bytes(ctypes.sizeof(Call) - 1), bytes(ctypes.sizeof(Call) + 1)):
        one = Caller(p.uid, *public("www.example.org"))
        one.sock.sendall(content)
        assert one.wait() == 1
        one.sock.close()


@case
def without_rules_it_does_not_begin(p):
    one = Caller(p.uid, *public("www.example.org"), seals=2)
    assert (one.ready.kind, one.ready.other) == (
        FAILED, "cannot use the rules of the network: they are not in sealed memory"), one.ready
    assert one.wait() == 1
    one.sock.close()


# --- many ---

@case
def a_thousand_calls_at_once(p):
    count = 1000
    with caller(p, *public("*.wild.example.org")) as c:
        wanted = {c.send(f"n{i % 100}.wild.example.org") for i in range(count)}
        answers = [c.receive(60) for _ in range(count)]
        bad = [answer for answer in answers if answer.kind != ALLOWED or not answer.sock]
        assert not bad, f"{len(bad)} of {count}: {bad[0]}"
        assert {answer.id for answer in answers} == wanted
        for answer in answers:
            answer.sock.close()
        rows = pathlib.Path(f"/proc/{c.pid}/status").read_text(encoding="ascii").splitlines()
        memory = next(int(row.split()[1]) for row in rows if row.startswith("VmHWM:"))
        assert memory < 16 << 10, f"{memory} kB"


@case
def a_gate_that_does_not_listen_is_waited_for(p):
    with caller(p, *public("four.example.org")) as c:
        c.sock.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 20000:
                c.send("other.example.org" if sent % 8 else "four.example.org", number=sent)
                sent += 1
                time.sleep(0.0002)
        c.sock.setblocking(True)
        assert 1024 < sent < 20000, sent
        seen = set()
        for _ in range(sent):
            answer = c.receive()
            seen.add(answer.id)
            assert (answer.kind == ALLOWED) == (answer.id % 8 == 0), answer
            if answer.sock:
                answer.sock.close()
        assert seen == set(range(sent))


# --- the wall ---

@case
def it_is_confined(p):
    with caller(p, *public("www.example.org")) as c:
        text = pathlib.Path(f"/proc/{c.pid}/status").read_text(encoding="ascii")
        rows = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        assert (rows["Seccomp"], rows["NoNewPrivs"]) == ("2", "1")
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            assert int(rows[name], 16) == 0, name
        assert set(rows["Uid"].split()) == {str(p.uid or NOBODY)} == set(rows["Gid"].split())
        # A user cannot leave the own group, which a login puts into this list too.
        assert rows["Groups"].split() == ([str(p.uid)] if p.uid else []), rows["Groups"]
        assert p.uid or int(rows["CapBnd"], 16) == 0
        fds = {int(fd): os.readlink(f"/proc/{c.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{c.pid}/fd")}
        assert {fds.pop(0), fds.pop(1), fds.pop(2)} == {"/dev/null"}
        assert fds.pop(CHANNEL).startswith("socket:")
        assert list(fds.values()) == ["anon_inode:[eventpoll]"], fds


@case
def it_ends_with_its_parent(p):
    """Also while its channel stays open, as it does here."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours, theirs = os.pipe()
    parent = os.fork()
    if not parent:
        os.write(theirs, str(Caller(p.uid, *public("www.example.org"), pair=pair).pid).encode())
        time.sleep(60)
    end = os.pidfd_open(int(os.read(ours, 20)))
    assert not select.select([end], [], [], 0.05)[0]
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert select.select([end], [], [], 10)[0], "it lives on"
    for fd in (ours, theirs, end):
        os.close(fd)
    for sock in pair:
        sock.close()


# --- secrets ---

@case
def gate_and_vault_reach_what_is_theirs(p):
    """The hosts of secrets are the vault's, and all others the gate's."""
    with caller(p, *public("www.example.org"),
                secrets=[("other.example.org", 80), ("private.example.org", 80)]) as c:
        reached(c.ask_as_vault(0), OTHER6)
        refused(c.ask_as_vault(1), "RESERVED", "fd00:9::7 (private)")
        refused(c.ask_as_vault(2), "NO_SECRET")
        refused(c.ask_as_vault(0xFFFFFFFE), "NO_SECRET")
        refused(c.ask("other.example.org"), "NAME")
        refused(c.ask("bawn-host", 80), "PORT")
        reached(c.ask("www.example.org"), WEB6)
        c.vault.sendall(b"nonsense that is too long for it")
        assert c.vault.recv(1) == b"", "it is still heard"
        reached(c.ask("www.example.org"), WEB6)


@case
def without_secrets_the_vault_is_not_heard(p):
    with caller(p, *public("www.example.org")) as c:
        assert c.vault.recv(1) == b""
        reached(c.ask("www.example.org"), WEB6)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    WORLD = world.enter()
    main()
