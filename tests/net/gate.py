#!/usr/bin/env python3
"""What a cage with network: allowlist finds: names, ports, networks, the host's services, and its own.

    gate.py BAWN BREAKABLE        prints TAP
"""

import socket
import threading

import world
from caged import events, run, say, spec, start
from world import HOST, HOST6, WEB
from place import case, expect, expect_refusal, main

WORLD = None
DIG = "dig +time=5 +tries=1"


def dig(p, allow, *questions):
    """The answers of dig, one for each line of options."""
    script = "".join(f"{DIG} {question}; echo '==='\n" for question in questions)
    done = WORLD.bawn(p, script, *spec(p, allow))
    assert done.status == 0, done.out + done.err
    return done.out.split("===\n")[:-1], done.record


def status_of(answer):
    return answer.split("status: ")[1].split(",")[0]


# --- names ---

@case
def every_type_is_answered_by_both_ways(p):
    WORLD.take()
    for way in ("+notcp", "+tcp"):
        questions = [f"{way} www.example.org {kind}" for kind in ("A", "AAAA", "HTTPS", "SVCB", "TXT", "ANY", "MX")]
        answers, _ = dig(p, ["www.example.org:443"], *questions)
        assert [status_of(answer) for answer in answers] == ["NOERROR"] * 7, answers
        counts = ["ANSWER: 1" in answer for answer in answers]
        assert counts == [True, True, False, False, False, False, False], answers
        assert "\tA\t198.18." in answers[0] and "\tAAAA\tfd62:6177:6e67:" in answers[1], answers[:2]
    assert WORLD.take() == []


@case
def a_name_has_one_address_to_the_end(p):
    answers, _ = dig(p, ["www.example.org:443", "*.wild.example.org:80"], *["+short www.example.org"] * 2,
                     "+short one.wild.example.org", "+short two.wild.example.org", "+short one.wild.example.org")
    assert answers[0] == answers[1] and answers[2] == answers[4], answers
    assert len({*answers}) == 3, answers


@case
def the_case_of_a_question_is_kept(p):
    answers, _ = dig(p, ["www.example.org:443"], "WwW.eXample.ORG", "wwW.example.org.", "dENied.example.org")
    assert ";WwW.eXample.ORG." in answers[0] and "\nWwW.eXample.ORG." in answers[0], answers[0]
    assert [status_of(answer) for answer in answers] == ["NOERROR", "NOERROR", "NXDOMAIN"]
    assert ";dENied.example.org." in answers[2], answers[2]


@case
def what_is_denied_says_why(p):
    """Where the asker understands it (RFC 8914); dig knows the code by its number or by its name."""
    answers, record = dig(p, ["www.example.org:443"], "other.example.org", "+noedns other.example.org",
                          "+tcp 'a b.example.org'", "example.org", "www.example.org.example.org")
    assert {status_of(answer) for answer in answers} == {"NXDOMAIN"}, answers
    why = "bawn: other.example.org is not in network.allow"
    assert "EDE: " in answers[0] and why in answers[0], answers[0]
    assert "EDE: " not in answers[1], answers[1]
    assert "is not the name of a host" in answers[2], answers[2]
    seen = events(record)
    assert seen["name_denied", "other.example.org", None, "name"]["times"] == 2, seen
    assert ("name_denied", "a\\032b.example.org", None, "odd_name") in seen, seen
    assert ("name_denied", "example.org", None, "name") in seen, seen


@case
def localhost_is_the_cage(p):
    answers, record = dig(p, [], "+short localhost A", "+short localhost AAAA", "+short x.localhost A",
                          "+tcp +short LOCALHOST A", "localhost TXT")
    assert answers[:4] == ["127.0.0.1\n", "::1\n", "127.0.0.1\n", "127.0.0.1\n"], answers
    assert status_of(answers[4]) == "NOERROR", answers[4]
    assert not events(record), record["events"]


@case
def one_connection_takes_many_questions(p):
    """Also when they come at once, or in pieces."""
    lines = say(WORLD, p, """
def question(number, name):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b"."))
    body = struct.pack("!HHHHHH", number, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!HH", 1, 1)
    return struct.pack("!H", len(body)) + body
sock = connect("198.18.0.1", 53)
stream = sock.makefile("rb")
def answer():
    body = stream.read(struct.unpack("!H", stream.read(2))[0])
    number, flags, _, count = struct.unpack("!HHHH", body[:8])
    return number, flags & 15, count
names = ["www.example.org", "denied.example.org", "localhost"]
sock.sendall(b"".join(question(i, names[i % 3]) for i in range(30)))
print([answer() for _ in range(30)] == [(i, [0, 3, 0][i % 3], [1, 0, 1][i % 3]) for i in range(30)])
for byte in question(77, names[0]):
    sock.sendall(bytes([byte]))
    time.sleep(0.001)
print(answer())
""", spec(p, ["www.example.org:443"]))
    assert lines == ["True", "(77, 0, 1)"], lines


@case
def any_address_is_a_name_server(p):
    """Programs that have one of their own are answered all the same, from where they asked."""
    WORLD.take()
    answers, _ = dig(p, ["www.example.org:443"], "@8.8.8.8 www.example.org", "@2620:fe::fe +tcp www.example.org",
                     "@8.8.8.8 denied.example.org")
    assert [status_of(answer) for answer in answers] == ["NOERROR", "NOERROR", "NXDOMAIN"], answers
    assert "SERVER: 8.8.8.8#53" in answers[0], answers[0]
    assert WORLD.take() == []


@case
def a_wildcard_stands_for_all_depths_below_it(p):
    allow = ["*.wild.example.org:80", "exact.wild.example.org:8080/http", "*.deep.wild.example.org:8080/http"]
    lines = say(WORLD, p, """
for host, port in (("a.wild.example.org", 80), ("a.b.c.wild.example.org", 80), ("exact.wild.example.org", 80),
                   ("exact.wild.example.org", 8080), ("x.deep.wild.example.org", 8080), ("deep.wild.example.org", 8080),
                   ("a.wild.example.org", 8080), ("wild.example.org", 80), ("xwild.example.org", 80)):
    answer = ask(host, f"GET / HTTP/1.1\\nHost: {host}\\nConnection: close\\n\\n", port)
    print(answer.split()[1] if " " in answer else answer)
""", spec(p, allow))
    assert lines[:2] == ["200", "200"] and lines[3:5] == ["200", "200"], lines
    assert lines[2] == "200", "the wildcard's own port for a name that is declared itself"
    assert lines[5:7] == ["403", "403"] and lines[7:] == ["gaierror", "gaierror"], lines


ASK_MANY = """
sock = connect("198.18.0.1", 53)
stream = sock.makefile("rb")
def code(name):
    labels = b"".join(bytes([len(label)]) + label for label in name.encode().split(b"."))
    body = struct.pack("!HHHHHH", 1, 0x100, 1, 0, 0, 0) + labels + b"\\0" + struct.pack("!HH", 1, 1)
    sock.sendall(struct.pack("!H", len(body)) + body)
    return stream.read(struct.unpack("!H", stream.read(2))[0])[3] & 15
codes = [code(f"n{i}.wild.example.org") for i in range(COUNT)]
print(codes.count(0), codes.count(3), code("n0.wild.example.org"))
"""


@case
def a_run_has_4096_names(p):
    done = run(WORLD, p, "COUNT = 4200\n" + ASK_MANY, spec(p, ["www.example.org:443", "*.wild.example.org:80"]))
    assert done.out == "4096 104 0\n", done.out
    assert ("name_denied", "n4199.wild.example.org", None, "many_names") in events(done.record)


def of_type(record, kind):
    return [event for event in record["events"] if event["type"] == kind]


@case
def what_is_denied_leaves_room_for_what_is_allowed(p):
    script = "COUNT = 700\n" + ASK_MANY + """
near = connect("www.example.org", 80)
near.sendall(b"GET / HTTP/1.0\\r\\nHost: www.example.org\\r\\n\\r\\n")
print(read(near)[:5].decode())
"""
    done = run(WORLD, p, script, spec(p, ["www.example.org:80"]))
    assert done.out == "0 700 3\nHTTP/\n", done.out
    assert len(of_type(done.record, "name_denied")) == 128
    (rest,) = [event["times"] for event in done.record["events"] if event["type"] == "decisions_untold"]
    assert rest == 700 - 128, rest
    (passed,) = of_type(done.record, "net_allowed")
    assert passed["name"] == "www.example.org" and passed["bytes_out"] == 41, passed


@case
def more_names_than_can_be_told_are_counted_with_their_bytes(p):
    WORLD.zone({f"n{i}.wild.example.org": {"A": [WEB]} for i in range(250)})
    script = """
for i in range(250):
    near = connect(f"n{i}.wild.example.org", 22)
    near.sendall(b"x" * 10)
    near.shutdown(socket.SHUT_WR)
    read(near)
print("done")
"""
    done = run(WORLD, p, script, spec(p, ["*.wild.example.org:22"]))
    assert done.out == "done\n", done.out + done.err
    passed = of_type(done.record, "net_allowed")
    assert len(passed) == 192 and passed[-1]["name"] == "(others)", passed[-1]
    assert sum(event["times"] for event in passed) == 250
    assert sum(event["bytes_out"] for event in passed) == 2500


# --- ports ---

OWN_SERVER = """
with socket.create_server((HOST, PORT), family=socket.AF_INET6 if ":" in HOST else socket.AF_INET) as server:
    near = connect(HOST, PORT)
    far, _ = server.accept()
    far.sendall(b"own")
    far.close()
    print(read(near).decode())
"""


def own_server(host, port):
    return f"HOST, PORT = {host!r}, {port}\n" + OWN_SERVER


@case
def a_declared_port_is_still_the_cages(p):
    lines = say(WORLD, p, own_server("127.0.0.1", 8080) + own_server("::1", 8080) + own_server("127.0.0.1", 2222)
                + "print(attempt('127.0.0.1', 8080))\nprint(attempt('::1', 8080))\n"
                + "print(connect('www.example.org', 2222).recv(8).decode())\n",
                spec(p, ["www.example.org:8080/http", "www.example.org:2222"]))
    assert lines == ["own", "own", "own", "ConnectionRefusedError", "ConnectionRefusedError", "SSH-2.0-"], lines


@case
def a_port_of_many_is_the_gates(p):
    """Of what cannot be counted, it listens at every address."""
    lines = say(WORLD, p, """
for port in (8080, 2222):
    try:
        socket.create_server(("127.0.0.1", port))
        print("taken")
    except OSError as error:
        print(os.strerror(error.errno))
""", spec(p, ["*.example.org:8080/http", "10.0.0.0/8:2222"]))
    assert lines == ["Address already in use"] * 2, lines


@case
def low_ports_are_the_gates(p):
    """Nobody in a cage may take one, declared or not; at 80 and 443 one hears why not."""
    done = run(WORLD, p, """
for port in (22, 80, 443, 1023):
    try:
        socket.create_server(("127.0.0.1", port))
        print("taken")
    except PermissionError:
        print("refused")
print(attempt("127.0.0.1", 80), attempt("www.example.org", 21), attempt("93.184.216.34", 22), sep="\\n")
print(connect("www.example.org", 22).recv(8).decode())
print(ask("93.184.216.34", "GET / HTTP/1.1\\nHost: x\\n\\n").split()[1])
""", spec(p, ["www.example.org:22"]))
    assert done.out.splitlines() == ["refused"] * 4 + ["ConnectionResetError", "ConnectionRefusedError",
                                                       "ConnectionResetError", "SSH-2.0-", "403"], done.out
    seen = events(done.record)
    for wanted in (("net_denied", "www.example.org", 21, "port"), ("net_denied", WEB, 22, "address"),
                   ("net_denied", WEB, 80, "address"), ("net_allowed", "www.example.org", 22, "allowed")):
        assert wanted in seen, (wanted, seen.keys())


@case
def a_declared_network_is_reached_by_address(p):
    WORLD.take()
    done = run(WORLD, p, """
print(connect("10.9.8.7", 22).recv(8).decode())
for host in ("10.9.8.7", "10.9.8.7:80", "10.1.1.1", "www.example.org"):
    print(ask("10.9.8.7", f"GET / HTTP/1.1\\nHost: {host}\\nConnection: close\\n\\n").split()[1])
for name in (None, "www.example.org"):
    context = ssl._create_unverified_context()
    print(context.wrap_socket(connect("10.9.8.7", 443), server_hostname=name).version()[:3])
print(ask("10.9.8.7", "GET / HTTP/1.1\\nHost: 10.9.8.7\\n\\n", 443).split()[1])
print(connect("fd00:9::7", 22).recv(8).decode())
print(attempt("172.16.8.7", 22), attempt("10.9.8.7", 8080), attempt("fd00:ec2::254", 22))
print(ask("10.9.8.8", "GET / HTTP/1.1\\nHost: 10.9.8.8\\n\\n").split()[1])
""", spec(p, ["10.0.0.0/8:22", "10.0.0.0/8:80/http", "10.0.0.0/8:443/tls", "[fd00:9::/32]:22"]))
    assert done.out.splitlines() == ["SSH-2.0-", "200", "200", "403", "403", "TLS", "TLS", "403", "SSH-2.0-",
                                     "ConnectionResetError ConnectionRefusedError ConnectionResetError",
                                     "502"], done.out
    seen = events(done.record)
    assert ("net_failed", "10.9.8.8", 80, "unreachable") in seen, seen.keys()
    assert ("net_denied", "10.9.8.7", 443, "not_tls") in seen, seen.keys()
    arrived = {(row["address"], row["port"]) for row in WORLD.take("tcp")}
    assert arrived == {("10.9.8.7", 22), ("10.9.8.7", 80), ("10.9.8.7", 443), ("fd00:9::7", 22)}, arrived


# --- the host's services ---

class Served:
    """A server of the host's that says who it is."""

    def __init__(self, address, port, word):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.server = socket.create_server((address, port), family=family)
        self.word, self.count = word, 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            self.count += 1
            sock.sendall(self.word.encode())
            sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@case
def host_ports_are_reached_by_name(p):
    with Served("127.0.0.1", 7001, "four"), Served("::1", 7002, "six"), Served("127.0.0.1", 7003, "no") as other:
        done = run(WORLD, p, """
for port in (7001, 7002, 7003, 7004):
    print(attempt("bawn-host", port))
for family in (socket.AF_INET, socket.AF_INET6):
    print(attempt("bawn-host", 7001, b"", family), attempt("bawn-host", 7002, b"", family))
print(attempt("127.0.0.1", 7001), attempt("127.0.0.1", 7003), attempt("%s", 7003), attempt("%s", 7003))
print(attempt("127.0.0.1", 80), attempt("x.bawn-host", 7001))
""" % (HOST, HOST6), spec(p, host_ports=[7001, 7002, 7004]))
        assert done.out.splitlines() == ["four", "six", "ConnectionRefusedError", "ConnectionResetError", "four six",
                                         "four six", " ".join(["ConnectionRefusedError"] * 4),
                                         "ConnectionResetError gaierror"], done.out
        assert other.count == 0
    seen = events(done.record)
    assert ("net_allowed", "bawn-host", 7001, "allowed") in seen, seen.keys()
    assert ("net_failed", "bawn-host", 7004, "unreachable") in seen, seen.keys()
    assert ("net_denied", "bawn-host", 7003, "port") in seen, seen.keys()


@case
def the_host_is_not_reached_by_a_name_of_its_own(p):
    with Served(HOST, 7001, "no") as other:
        done = run(WORLD, p, "print(attempt('host.example.org', 7001))", spec(p, ["host.example.org:7001"]))
        assert done.out == "ConnectionResetError\n" and other.count == 0, done.out
        assert ("net_denied", "host.example.org", 7001, "own_address") in events(done.record)


# --- what the cage serves ---

SERVE = """
for address in ADDRESSES:
    server = socket.create_server((address, 3000), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    def serve(server=server, address=address):
        while True:
            sock, _ = server.accept()
            sock.sendall((address + " " + read(sock).decode()).encode())
            sock.close()
    threading.Thread(target=serve, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def visit(address, port, said=b"hello"):
    with socket.create_connection((address, port), 20) as sock:
        sock.sendall(said)
        sock.shutdown(socket.SHUT_WR)
        return sock.makefile().read()


def serving(p, addresses, publish):
    process = start(p, f"ADDRESSES = {addresses}\n" + SERVE, spec(p, publish=publish))
    assert process.stdout.readline() == b"ready\n", process.communicate()
    return process


def finish(p, process, status=0):
    _, err = process.communicate(b"", timeout=30)
    assert process.returncode == status, err.decode()
    return events(p.record())


@case
def a_published_port_leads_to_whatever_listens(p):
    for addresses, word in ((["127.0.0.1"], "127.0.0.1"), (["::1"], "::1"), (["0.0.0.0"], "0.0.0.0"), (["::"], "::")):
        process = serving(p, addresses, ["7100:3000", "[::1]:7101:3000"])
        assert visit("127.0.0.1", 7100) == f"{word} hello"
        assert visit("::1", 7101, b"x" * 100000) == f"{word} " + "x" * 100000
        seen = finish(p, process)
        event = seen["published", "127.0.0.1", 7100, "allowed"]
        assert (event["times"], event["bytes_in"], event["bytes_out"]) == (1, 5, len(word) + 6), event
        assert seen["published", "::1", 7101, "allowed"]["bytes_in"] == 100000, seen


@case
def where_nobody_listens_the_visitor_is_told(p):
    process = serving(p, [], ["7100:3000"])
    try:
        got = visit("127.0.0.1", 7100)
        raise AssertionError(f"somebody said {got!r}")
    except (ConnectionResetError, BrokenPipeError):
        pass
    event = finish(p, process)["published", "127.0.0.1", 7100, "unreachable"]
    assert event["text"].endswith("nobody listens at that port in the cage"), event


@case
def what_is_published_ends_with_the_run(p):
    process = serving(p, ["127.0.0.1"], ["7100:3000"])
    assert visit("127.0.0.1", 7100)
    for address in (HOST, "::1"):
        try:
            visit(address, 7100)
            raise AssertionError(f"it is open at {address}")
        except ConnectionRefusedError:
            pass
    finish(p, process)
    try:
        visit("127.0.0.1", 7100)
        raise AssertionError("it is open")
    except ConnectionRefusedError:
        pass


@case
def a_port_that_is_taken_is_refused_before_anything_runs(p):
    with socket.create_server(("127.0.0.1", 7100)):
        done = p.run("run", *spec(p, publish=["7101:3000", "7100:3000"]), "--", "echo", "RAN")
        expect_refusal(done, "cannot publish port 3000 of the cage at 127.0.0.1:7100", "Address already in use")
    expect(p.run("run", *spec(p, publish=["7101:3000", "7100:3000"]), "--", "echo", "RAN"), 0, "RAN")


@case
def an_address_that_is_not_here_is_refused(p):
    done = p.run("run", *spec(p, publish=[f"{WEB}:7100:3000"]), "--", "echo", "RAN")
    expect_refusal(done, f"at {WEB}:7100", "Cannot assign requested address")


if __name__ == "__main__":
    WORLD = world.enter()
    main()
