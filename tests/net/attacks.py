#!/usr/bin/env python3
"""Attacks on a cage with network: allowlist, in pairs: each must fail in it, and work when it is let.

    attacks.py BAWN BREAKABLE [--all] [WORD…]        prints TAP

Most are rows of attack_rows.py, carried out in the cage by attacker.py. What left the host is read from its only link
to the internet: of an attack that is refused no packet does, unless the row says that what is allowed is a part of it.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import socketserver
import subprocess
import sys
import threading

import world
import records
from attack_rows import (ALLOW, HOST_PORT, NAME, ROWS, Broken, Declared, Instead, Nowhere, Opened, Outcome)
from world import HOST, WEB, WEB6
from place import BREAKABLE, SLOW, case, decode, descendants, expect, main, of_users, wait_until

WORLD = WIRE = None
PYTHON = "/usr/bin/python3"
REFUSED, UNTRIED = 1, 2
ETH_P_ALL, ETH_P_IP, ETH_P_IPV6, PACKET_OUTGOING = 3, 0x0800, 0x86DD, 4
ICMP, TCP, ICMPV6 = 1, 6, 58
SYN, ACK = 2, 16


# --- the link to the internet ---

class Wire:
    """Everything that leaves the host, but for what it says to its neighbour, and later packets of connections."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self.sock.bind(("world", ETH_P_ALL))
        self.sock.setblocking(False)

    @staticmethod
    def read(content, kind):
        """(protocol, to) of a packet that begins something."""
        if kind == ETH_P_IP:
            protocol, to, rest = content[9], socket.inet_ntoa(content[16:20]), content[4 * (content[0] & 15):]
        elif kind == ETH_P_IPV6:
            protocol, to, rest = content[6], socket.inet_ntop(socket.AF_INET6, content[24:40]), content[40:]
        else:
            return None
        is_error = (protocol, rest[:1]) in ((ICMP, b"\3"), (ICMPV6, b"\1"))
        is_about_neighbours = protocol == 0 or protocol == ICMPV6 and 130 <= rest[0] <= 143
        is_later = protocol == TCP and rest[13] & (SYN | ACK) != SYN
        return None if is_error or is_about_neighbours or is_later else (protocol, to)

    def take(self):
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                content, about = self.sock.recvfrom(65536)
                packet = self.read(content, about[1]) if about[2] == PACKET_OUTGOING else None
                found += [packet] if packet else []
        return found


class HostServer(socketserver.ThreadingTCPServer):
    """On a port of all addresses of the host: greets with the canary, and says whose it is."""
    address_family = socket.AF_INET6
    allow_reuse_address = daemon_threads = True

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def finish_request(self, request, client_address):
        request.sendall(b"SSH-2.0-of-the-host-" + WORLD.canary.encode() + b"\r\n")


def open_host():
    """The host, with servers and rights that an attack could use."""
    pathlib.Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 2147483647", encoding="ascii")
    for port in (HOST_PORT, HOST_PORT + 1):
        threading.Thread(target=HostServer(("::", port), None).serve_forever, daemon=True).start()


# --- cages ---

def given(p, *destinations, more=""):
    """The permission, by options for root and in a spec for others: both mean the same."""
    if p.uid == 0 and destinations and not more:
        return world.allow(*destinations)
    lines = "".join(f"\n    - \"{destination}\"" for destination in destinations)
    return p.spec(f"network:\n  mode: allowlist\n  allow:{lines or ' []'}\n{more}")


def command(*attack):
    return shlex.join([PYTHON, "/work/attacker.py", *map(str, attack)])


def bring(p):
    p.write("project/attacker.py", pathlib.Path(__file__).with_name("attacker.py").read_bytes())


def run(p, script, *options, **more):
    """A script in a cage, and all that came of it."""
    bring(p)
    WORLD.take()
    WIRE.take()
    done = WORLD.bawn(p, script, *options, **more)
    arrived = WORLD.take()
    return Outcome(done, arrived, WIRE.take())


def told(outcome):
    done = outcome.done
    return f"exit {done.status}: {done.out}{done.err}arrived {outcome.arrived}, left {outcome.left}"


def events(done, kind):
    return [event for event in done.record["events"] if event["type"] == kind]


# --- rows ---

def options_of(p, row, pair):
    """The words and the variables that make the cage of a row, or of its pair."""
    if pair is None:
        return given(p, *row.allow), {}
    if isinstance(pair, Declared):
        return given(p, *row.allow, *pair.more), {}
    if isinstance(pair, Instead):
        return given(p, *pair.allow), {}
    if isinstance(pair, Broken):
        variables = {"BAWN_TEST_BREAK": ",".join((*pair.names, "look"))}
        return pair.options, {"program": BREAKABLE, "env": variables}
    assert isinstance(pair, Opened), pair
    return pair.options, {}


def attempt(p, row, pair=None):
    WORLD.zone({"turning.example.net": None, "lead.example.net": None, **row.zone})
    options, more = options_of(p, row, pair)
    outcome = run(p, command(*row.attack), *options, **more)
    assert outcome.done.status in (0, REFUSED, UNTRIED), told(outcome)
    return outcome


def try_row(p, row):
    outcome = attempt(p, row)
    assert not row.proof(outcome), f"it got through: {told(outcome)}"
    assert row.leaves or not outcome.left, f"something left the host: {told(outcome)}"
    if isinstance(row.pair, Nowhere):
        return
    outcome = attempt(p, row, row.pair)
    if outcome.done.status == UNTRIED:
        print(f"# pair not shown: this kernel has no such sockets: {outcome.done.out.strip()}")
        return
    assert row.proof(outcome), f"the pair does not show it ({row.pair}): {told(outcome)}"


# Each row in turn as root's cage or as a user's; with --all each as both, which takes twice as long.
IS_WHOLE = "--all" in sys.argv
sys.argv = [word for word in sys.argv if word != "--all"]


def add_case(row, is_of_root):
    def function(p):
        try_row(p, row)
    function.__name__ = f"{row.id}_" + "_".join(re.findall(r"[\w.:]+", row.name))
    if not IS_WHOLE:
        function.is_for = lambda uid: (uid == 0) == is_of_root or os.geteuid() != 0
    case(function)


for _number, _row in enumerate(ROWS):
    add_case(_row, _number % 2 == 0)


# --- T306: what bawn itself lets others know ---

@case
def T306_bawn_asks_for_no_name_that_nobody_uses(p):
    spec = given(p, "leak.example.org:443", "*.wild.example.org:443", more="  host_ports: [80]\n")
    WIRE.take()
    for words in (("check", *spec), ("plan", *spec), ("doctor",), ("run", *spec, "--", "true"), ("log",)):
        done = p.run(*words)
        assert done.returncode == 0, done
    assert WIRE.take() == [] and WORLD.take() == []
    outcome = run(p, command("tls", NAME, 443, NAME), *given(p, *ALLOW))
    assert outcome.left and [row for row in outcome.arrived if row["service"] == "names"], told(outcome)


# --- names and hellos that are good, however they come ---

@case
def T310_a_good_hello_passes_however_it_is_cut(p):
    for cut in ("whole", "bytes", "records"):
        outcome = run(p, command("tls", NAME, 443, NAME.upper(), cut), *given(p, *ALLOW))
        assert outcome.done.status == 0, told(outcome)


@case
def T310_an_encrypted_hello_counts_as_its_outer_name(p):
    """What is inside nobody can read; docs/threat-model.md says so."""
    outcome = run(p, command("tls", NAME, 443, NAME, "ech"), *given(p, *ALLOW))
    assert [row for row in outcome.arrived if row["service"] == "tls"], told(outcome)


# --- T312: other sessions, and the gate's own processes ---

def pids_of(*names):
    """The processes below us with such an argv[0]."""
    found = {}
    for pid in descendants():
        with contextlib.suppress(OSError):
            name = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
            if name in names:
                found[name] = pid
    return found


@contextlib.contextmanager
def running(p, script, *options):
    """A cage that has printed its first line; it ends when its input does."""
    bring(p)
    path = p.top / "running.json"
    process = p.start("run", "--record", path, *options, "--", "sh", "-c", f"{script}; echo ready; read end; {script}")
    try:
        process.lines = []
        while not process.lines or process.lines[-1] != b"ready\n":
            process.lines.append(process.stdout.readline())
            assert process.lines[-1], decode(process.stderr.read())
        yield process
    finally:
        out, err = process.communicate(b"\n", timeout=60 * SLOW)
        process.said, process.told = decode(out), decode(err)
        process.record = records.read(path) if path.exists() else None


@case
def T312_one_session_does_not_reach_the_gate_of_another(p):
    first = command("resolve", NAME)
    with running(p, first, *given(p, f"{NAME}:443", f"{NAME}:22")) as other:
        address = re.search(r"through: (\S+)", decode(b"".join(other.lines))).group(1)
        for attack in (("tcp", address, 22), ("tls", address, 443, NAME), ("ask", address, 1, NAME)):
            outcome = run(p, command(*attack), *given(p, "other.example.org:443"))
            assert outcome.done.status == REFUSED and not outcome.left, told(outcome)
            # Its own gate leads there, once it is allowed and its own name server has said so.
            script = f"{first} && {command(*attack)}"
            outcome = run(p, script, *given(p, f"{NAME}:443", f"{NAME}:22"))
            assert outcome.done.status == 0, told(outcome)


@case
def T312_gate_and_caller_cannot_be_seen_signalled_or_traced(p):
    with running(p, "true", *given(p, *ALLOW)) as other:
        pids = pids_of("bawn-gate", "bawn-dialer")
        assert len(pids) == 2, pids
        attack = ("signal_processes", *pids.values())
        outcome = run(p, command(*attack), *given(p, *ALLOW))
        assert outcome.done.status == REFUSED, told(outcome)
        done = p.run(p.project / "attacker.py", *attack, program=PYTHON)
        assert done.returncode == 0 and f"signal {attack[1]}" in done.stdout, done
    assert other.returncode == 0, other.told


@case
def T312_the_gate_has_no_abstract_socket(p):
    outcome = run(p, command("abstract"), *given(p, *ALLOW))
    assert outcome.done.status == REFUSED, told(outcome)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("\0bawn-attacks")
        outcome = run(p, command("abstract"), "--network", "host")
        assert "bawn-attacks" in outcome.done.out, told(outcome)


# --- T304: the host's services ---

@case
def T304_bawn_host_leads_to_declared_ports_only(p):
    more = f"  host_ports: [{HOST_PORT}]\n"
    for allowed in ((), ALLOW):
        for port, status in ((HOST_PORT, 0), (HOST_PORT + 1, REFUSED)):
            outcome = run(p, command("tcp", "bawn-host", port, "of-the-host"), *given(p, *allowed, more=more))
            assert outcome.done.status == status and not outcome.left, told(outcome)
        for address in ("127.0.0.1", "::1", HOST):
            outcome = run(p, command("tcp", address, HOST_PORT), *given(p, *allowed, more=more))
            assert outcome.done.status == REFUSED, told(outcome)
    outcome = run(p, command("tcp", "bawn-host", HOST_PORT), *given(p, *ALLOW))
    assert outcome.done.status == REFUSED, told(outcome)


# --- T313, T315 ---

@case
def T313_a_spec_cannot_allow_everything(p):
    for word in ("*", "*:443", "*.com", "*.com:443", "", ":443", "*.*.example.org:443", "0.0.0.0/0:443", "[::]/0:443",
                 "www.*.org:443", ".:443", f"{NAME}:0", f"{NAME}:*", "127.0.0.1%lo:80", "2130706433:80", "0x7f.1:80"):
        spec = p.spec(f"network:\n  mode: allowlist\n  allow: [\"{word}\"]\n")
        expect(p.run("run", *spec, "--", "true"), 125, "error: ")
        expect(p.run("run", "--allow", word, "--", "true"), 125, "error: ")
    expect(p.run("run", "--allow", "*.example.com:443", "--", "true"), 0)


@case
def T315_variables_change_nothing(p):
    names = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    outside = {name: "*" if name == "NO_PROXY" else f"http://{WEB}:80" for name in names}
    outside.update(RES_OPTIONS="ndots:0", LOCALDOMAIN="example.org", HOSTALIASES="/tmp/aliases")
    outcome = run(p, "env | grep -ic proxy; " + command("tls", NAME, 443, NAME), *given(p, *ALLOW), env=outside)
    assert outcome.done.status == 0 and outcome.done.out.startswith("0\n"), told(outcome)
    inside = [word for name, value in outside.items() for word in ("-e", f"{name}={value}")]
    for script in (command("tls", "other.example.org", 443, "other.example.org"), command("tcp", WEB, 22),
                   "curl -sS https://other.example.org/", "env -i curl -sS https://other.example.org/"):
        outcome = run(p, script, *given(p, *ALLOW), *inside)
        assert outcome.done.status not in (0, 125) and not outcome.left, told(outcome)


# --- T314: floods, and the end of the gate ---

def memory_of(pid):
    rows = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmHWM:"))


@case
@of_users
def T314_a_flood_of_connections_is_outlived(p):
    """2000 connections that say one byte: at the end of their time others are served, in little memory."""
    one = command("flood", 500, NAME, 443, NAME)
    script = f"if [ -e /tmp/begun ]; then for i in 1 2 3 4; do {one} & done; wait; " \
             f"{command('tls', NAME, 443, NAME)}; else touch /tmp/begun; fi"
    memory = []
    with running(p, script, *given(p, *ALLOW)) as cage:
        pids = pids_of("bawn-gate", "bawn-dialer")
        watch = threading.Timer(6, lambda: memory.extend(memory_of(pid) for pid in pids.values()))
        watch.start()
    watch.join()
    assert cage.returncode == 0 and cage.said.count("through:") == 5, (cage.said, cage.told)
    taken = sum(int(count) for count in re.findall(r"(\d+) were taken", cage.said))
    assert taken >= 1000, cage.said
    assert len(memory) == 2 and sum(memory) < 48 << 10, memory
    reasons = {event["reason"] for event in cage.record["events"] if event["type"] == "net_denied"}
    assert {"many", "silent"} <= reasons, reasons


@case
def T314_a_flood_of_names_is_outlived(p):
    outcome = run(p, command("flood_names", 20000, "127.0.0.1", NAME), *given(p, *ALLOW))
    assert outcome.done.status == 0 and not outcome.left, told(outcome)
    assert events(outcome.done, "name_denied") and events(outcome.done, "decisions_untold"), "not on record"


@of_users
@case
def T314_few_descriptors_are_a_limit_and_no_hole(p):
    """The gate counts what it may open: it says no to the rest, and serves again."""
    limited = ["prlimit", "--nofile=512:512"]
    attack = f"{command('flood', 300, NAME, 443, NAME)}; {command('tcp', WEB, 22)}"
    bring(p)
    words = p.words(["run", *given(p, *ALLOW), "--", "sh", "-c", attack])
    WIRE.take()
    done = subprocess.run([*limited, *words], cwd=p.project, env=p.environ(None), capture_output=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=60 * SLOW)
    out = decode(done.stdout)
    assert re.fullmatch(r"through: .*\nrefused: .*\n", out), (out, decode(done.stderr))
    assert {to for _, to in WIRE.take()} <= {WEB, WEB6, "45.33.32.53"}


def kill_one(p, victim):
    attacks = [("tls", NAME, 443, NAME), ("tcp", NAME, 22), ("resolve", NAME), ("tcp", WEB, 22), ("udp", WEB, 7)]
    script = "; ".join(command(*attack) for attack in attacks)
    with running(p, script, *given(p, *ALLOW)) as cage:
        before = [line.split(b":")[0] for line in cage.lines]
        assert before == [b"through", b"through", b"through", b"refused", b"refused", b"ready\n"], cage.lines
        os.kill(pids_of(victim)[victim], signal.SIGKILL)
        wait_until(lambda: not pids_of("bawn-gate"), 5, "the network is closed")
        WORLD.take()
        WIRE.take()
    said = [line.split(":")[0] for line in cage.said.splitlines()]
    assert said == ["refused"] * 5 and not WIRE.take() and not WORLD.take(), (cage.said, cage.told)
    assert cage.returncode == 1, (cage.returncode, cage.told)  # the last command's: the run went on to its end
    closed = [event["text"] for event in cage.record["events"] if event["type"] == "network_closed"]
    assert len(closed) == 1 and closed[0] in cage.told, (closed, cage.told)


@case
def T314_without_the_gate_the_network_is_closed(p):
    kill_one(p, "bawn-gate")


@case
def T314_without_the_caller_the_network_is_closed(p):
    kill_one(p, "bawn-dialer")


def find_child(pid, name):
    """Quickly: a child that became this program."""
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{child}/cmdline").read_bytes().startswith(name.encode() + b"\0"):
                return int(child)
    return None


def kill_early(p, victim):
    """Kills it as soon as it is seen, which mostly is before it stands. True: the run was refused."""
    process = p.start("run", *given(p, *ALLOW), "--", "sh", "-c", "echo started; sleep 0.2")
    child = None
    while not child and process.poll() is None:
        with contextlib.suppress(OSError):
            child = find_child(process.pid, victim)
    with contextlib.suppress(ProcessLookupError):
        if child:
            os.kill(child, signal.SIGKILL)
    out, err = process.communicate(timeout=20 * SLOW)
    if process.returncode == 125:
        assert out == b"" and err.startswith(b"bawn: ") and err.count(b"\n") == 1, (out, err)
        return True
    assert process.returncode == 0 and out == b"started\n" and b"ended" in err, (out, err)
    return False


@case
def T314_a_gate_that_dies_before_the_start_is_a_refusal(p):
    for victim in ("bawn-gate", "bawn-dialer"):
        assert any(kill_early(p, victim) for _ in range(100)), f"{victim} always stood before it was seen"


# --- T316: the other way ---

def knock(address, port):
    try:
        with socket.create_connection((address, port), 2) as sock:
            return sock.recv(100).decode()
    except OSError as error:
        return type(error).__name__


SERVE = "import socket; s = socket.create_server(('0.0.0.0', {port})); print('ready', flush=True)\n" \
        "while True: s.accept()[0].sendall(b'of the cage')"


@contextlib.contextmanager
def serving(p, port, *options):
    process = p.start("run", *options, "--", PYTHON, "-c", SERVE.format(port=port))
    try:
        line = process.stdout.readline()
        assert line == b"ready\n", (line, decode(process.stderr.read()))
        yield
    finally:
        process.terminate()
        process.communicate(timeout=20 * SLOW)


@case
def T316_a_server_in_the_cage_is_reached_where_it_is_published_only(p):
    with serving(p, 9000, *given(p, *ALLOW)):
        assert {knock(address, 9000) for address in ("127.0.0.1", HOST, "::1")} == {"ConnectionRefusedError"}
    with serving(p, 9000, "--network", "host"):
        assert {knock(address, 9000) for address in ("127.0.0.1", HOST)} == {"of the cage"}
    with serving(p, 9000, *given(p, *ALLOW, more="  publish: [\"9001:9000\"]\n")):
        assert knock("127.0.0.1", 9001) == "of the cage"
        for address, port in ((HOST, 9001), ("::1", 9001), ("127.0.0.1", 9000), (HOST, 9000)):
            assert knock(address, port) == "ConnectionRefusedError", (address, port)


# --- T317: what goes to an allowed host ---

@case
def T317_what_goes_to_an_allowed_host_is_counted(p):
    size = 3000000
    script = f"head -c {size} /dev/zero | curl -sS --data-binary @- http://{NAME}/"
    outcome = run(p, script, *given(p, *ALLOW))
    assert f'"length": {size}' in outcome.done.out, told(outcome)
    rows = events(outcome.done, "net_allowed")
    assert [(row["name"], row["port"]) for row in rows] == [(NAME, 80)], rows
    assert size < rows[0]["bytes_out"] < size + 1000 and 0 < rows[0]["bytes_in"] < 1000, rows
    outcome = run(p, "true", *given(p, *ALLOW))
    assert events(outcome.done, "net_allowed") == [], outcome.done.record["events"]


if __name__ == "__main__":
    WORLD = world.enter()
    WIRE = Wire()
    open_host()
    main()
