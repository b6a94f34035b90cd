#!/usr/bin/env python3
"""What becomes of a connection through the gate: its bytes, its end, its requests, and what a client hears.

    flow.py BAWN BREAKABLE        prints TAP
"""

import hashlib
import json
import pathlib
import sys

import world
from caged import events, run, spec
from odd import PORTS
from place import SLOW, case, main, of_root, wait_until

WORLD = None
LOG = None
NAME = "www.example.org"
ODD = [f"{NAME}:{port}" for name, port in PORTS.items() if name != "web"]
WEB = [f"{NAME}:{PORTS['web']}/http"]
MUCH = 32 << 20


def arrived(manner):
    """What the odd servers of this manner have seen."""
    return [line.split(" ", 1)[1] for line in LOG.read_text().splitlines() if line.startswith(manner + " ")]


def ports():
    return "".join(f"{name.upper()} = {port}\n" for name, port in PORTS.items()) + f"NAME = {NAME!r}\n"


def caged(p, program, allow=None, **more):
    return run(WORLD, p, ports() + program, spec(p, ODD + WEB if allow is None else allow), **more)


def printed(p, program, allow=None):
    return caged(p, program, allow).out.splitlines()


def shown(size, of=b"x"):
    return f"{size} {hashlib.sha256(of * size).hexdigest()}"


# --- ends ---

@case
def who_has_said_all_still_listens(p):
    lines = printed(p, """
with connect(NAME, SUM) as sock:
    sock.sendall(b"x" * 300000)
    sock.shutdown(socket.SHUT_WR)
    print(read(sock).decode())
with connect(NAME, SUM) as sock:
    sock.shutdown(socket.SHUT_WR)
    print(read(sock).decode())
""")
    assert lines == [shown(300000), shown(0)], lines


@case
def who_hears_the_end_may_go_on_speaking(p):
    LOG.write_text("")
    done = caged(p, """
with connect(NAME, FIRST) as sock:
    print(read(sock).decode())
    for _ in range(10):
        sock.sendall(b"x" * 30000)
        time.sleep(0.01)
""")
    assert done.out == "all I have to say\n", done.out
    assert arrived("first") == [shown(300000)], arrived("first")
    event = events(done.record)["net_allowed", NAME, PORTS["first"], "allowed"]
    assert (event["times"], event["bytes_out"], event["bytes_in"]) == (1, 300000, 17), event


@case
def a_reset_is_passed_on_as_one(p):
    LOG.write_text("")
    lines = printed(p, """
with connect(NAME, RESET) as sock:
    sock.sendall(b"x")
    try:
        print(sock.recv(1))
    except ConnectionResetError:
        print("reset")
sock = connect(NAME, HELD)
sock.recv(2)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
sock.close()
sock = connect(NAME, HELD)
sock.recv(2)
sock.close()
time.sleep(0.5)
""")
    assert lines == ["reset"], lines
    wait_until(lambda: len(arrived("held")) == 2, 10, "both are over")
    assert set(arrived("held")) == {"reset", shown(0)}, arrived("held")


@case
def a_reset_after_the_end_is_passed_on_too(p):
    lines = printed(p, """
with connect(NAME, BREAK) as sock:
    print(read(sock))
    sock.setblocking(False)
    for _ in range(100):
        time.sleep(0.05)
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            print("reset")
            break
""")
    assert lines == ["b'so far'", "reset"], lines


@case
def what_was_sent_arrives_although_the_cage_ends(p):
    for size in (1, 1000, 2000000):
        LOG.write_text("")
        done = caged(p, f"""
sock = connect(NAME, SUM)
sock.sendall(b"x" * {size})
os._exit(0)
""")
        wait_until(lambda: arrived("sum"), 10, "it is over")
        assert arrived("sum") == [shown(size)], (size, arrived("sum"))
        event = events(done.record)["net_allowed", NAME, PORTS["sum"], "allowed"]
        assert event["bytes_out"] == size, event


@case
def a_request_of_who_is_gone_arrives(p):
    """Requests are read before they pass, and the name has still to be found."""
    WORLD.take()
    caged(p, """
sock = connect(NAME, 80)
sock.sendall(b"GET /last HTTP/1.1\\r\\nHost: www.example.org\\r\\n\\r\\n")
os._exit(0)
""", [f"{NAME}:80"])
    seen = []
    wait_until(lambda: seen.extend(WORLD.take("http")) or seen, 10, "it is over")
    assert [row["path"] for row in seen] == ["/last"], seen


# --- much, and many ---

BOTH_WAYS = """
sent, got = hashlib.sha256(), hashlib.sha256()
block = os.urandom(1 << 20)
sock = connect(NAME, 7)
def send():
    for i in range(MUCH >> 20):
        piece = bytes([i]) + block[1:]
        sent.update(piece)
        sock.sendall(piece)
    sock.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send)
sender.start()
size = 0
while piece := sock.recv(1 << 18):
    got.update(piece)
    size += len(piece)
sender.join()
print(size, sent.digest() == got.digest())
"""


@case
def much_goes_both_ways_at_once(p):
    done = caged(p, f"MUCH = {MUCH}\n" + BOTH_WAYS, [f"{NAME}:7"])
    assert done.out == f"{MUCH} True\n", done.out
    event = events(done.record)["net_allowed", NAME, 7, "allowed"]
    assert (event["bytes_out"], event["bytes_in"]) == (MUCH, MUCH), event


@case
def who_does_not_listen_keeps_nobody_waiting(p):
    """Neither a server that does not read nor clients that do not: all arrives when they do."""
    lines = printed(p, f"""
late = [connect(NAME, LATE) for _ in range(20)]
for sock in late:
    sock.setblocking(False)
sent = 0
try:
    while sent < {MUCH}:
        sent += late[0].send(b"x" * 65536)
except BlockingIOError:
    pass
print("it is held up" if sent < {MUCH} else "nothing holds it up")
deaf = [connect(NAME, 7) for _ in range(5)]
for sock in deaf:
    sock.setblocking(False)
    try:
        while True:
            sock.send(b"y" * 65536)
    except BlockingIOError:
        pass
worst = 0
for i in range(50):
    start = time.monotonic()
    with connect(NAME, SUM) as sock:
        sock.sendall(b"z")
        sock.shutdown(socket.SHUT_WR)
        read(sock)
    worst = max(worst, time.monotonic() - start)
print("others are served" if worst < {1.5 * SLOW} else f"others waited for {{worst}} s")
late[0].setblocking(True)
late[0].settimeout(30)
late[0].sendall(b"x" * (1000000 - sent % 1000000))
late[0].shutdown(socket.SHUT_WR)
size, digest = read(late[0]).decode().split()
print(digest == hashlib.sha256(b"x" * int(size)).hexdigest(), int(size) % 1000000)
""", [*ODD, f"{NAME}:7"])
    assert lines == ["it is held up", "others are served", "True 0"], lines


@case
def five_hundred_connections_at_once(p):
    done = caged(p, """
socks = [connect(NAME, 7) for _ in range(500)]
for i, sock in enumerate(socks):
    sock.sendall(b"%d" % i * 100)
print(sum(len(sock.recv(1000)) > 0 for sock in socks))
for i, sock in enumerate(socks):
    sock.shutdown(socket.SHUT_WR)
print(sum(read(sock) == b"" for sock in socks))
""", [f"{NAME}:7"])
    assert done.out == "500\n500\n", done.out
    event = events(done.record)["net_allowed", NAME, 7, "allowed"]
    assert event["times"] == 500 and event["bytes_out"] == event["bytes_in"], event


@case
def one_too_many_is_reset_and_told(p):
    done = caged(p, """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000))
socks, count = [], 0
for i in range(1100):
    try:
        sock = connect(NAME, 7)
        socks.append(sock)
        sock.sendall(b"x")
        count += sock.recv(1) == b"x"
    except ConnectionResetError:
        pass
print(count)
for sock in socks:
    sock.close()
time.sleep(0.5)
print(connect(NAME, 7).send(b"x"))
""", [f"{NAME}:7"])
    assert done.out == "1024\n1\n", done.out
    seen = events(done.record)
    assert seen["net_allowed", NAME, 7, "allowed"]["times"] == 1025, seen
    assert seen["net_denied", NAME, 7, "many"]["times"] == 76, seen


# --- HTTP ---

WEB_CLIENT = """
import json
sock = connect(NAME, WEB)
stream = sock.makefile("rb")
def send(text, body=b""):
    sock.sendall(text.replace("\\n", "\\r\\n").encode() + body)
def answer():
    status = stream.readline().split()[1].decode()
    size = 0
    while line := stream.readline().strip():
        if line.lower().startswith(b"content-length:"):
            size = int(line.split()[1])
    body = stream.read(size)
    return status, json.loads(body) if body[:1] == b"{" else body.decode()
HEAD = f" HTTP/1.1\\nHost: {NAME}:{WEB}\\n"
"""


def web(p, program):
    return printed(p, WEB_CLIENT + program, WEB)


@case
def a_connection_takes_many_requests(p):
    lines = web(p, """
for i in range(20):
    send(f"POST /{i}" + HEAD + "Content-Length: 3\\n\\n", b"%03d" % i)
    print(answer()[1]["body"])
send("".join(f"GET /{i}" + HEAD + "\\n" for i in range(20)))
print([answer()[1]["path"] for i in range(20)] == [f"/{i}" for i in range(20)])
""")
    assert lines == [f"{i:03}" for i in range(20)] + ["True"], lines


@case
def chunks_pass_as_they_are(p):
    lines = web(p, """
send("POST /chunks" + HEAD + "Transfer-Encoding: chunked\\n\\n")
digest = hashlib.sha256()
for i in range(1, 200):
    piece = os.urandom(i * 37)
    digest.update(piece)
    sock.sendall(b"%x;note=%d\\r\\n" % (len(piece), i) + piece + b"\\r\\n")
sock.sendall(b"0\\r\\nX-After: 1\\r\\n\\r\\n")
print(answer()[1]["sum"] == digest.hexdigest())
send("GET /after" + HEAD + "\\n")
print(answer()[1]["path"])
""")
    assert lines == ["True", "/after"], lines


@case
def who_waits_for_a_100_gets_it(p):
    lines = web(p, """
send("POST /wait" + HEAD + "Content-Length: 5\\nExpect: 100-continue\\n\\n")
print(answer()[0])
sock.sendall(b"hello")
print(answer()[1]["body"])
""")
    assert lines == ["100", "hello"], lines


@case
def an_offer_of_http2_is_not_seen_by_the_server(p):
    lines = web(p, """
OFFER = "Connection: Upgrade, HTTP2-Settings\\nHTTP2-Settings: AAMAAABk\\nUpgrade: h2c\\n"
for _ in range(2):
    send("GET /" + HEAD + OFFER + "\\n")
    fields = answer()[1]["fields"]
    print("upgrade" in fields, "http2-settings" in fields, fields.get("xxxxxxx"), fields.get("connection"))
""")
    assert lines == ["False False h2c Upgrade, HTTP2-Settings"] * 2, lines


ASK = 'send("GET %s" + HEAD + "Connection: Upgrade\\nUpgrade: websocket\\n\\n")\n'


@case
def a_websocket_begins_where_the_server_agrees(p):
    lines = web(p, ASK % "/socket" + """
sock.sendall(b"at once")
print(answer()[0])
print(stream.read(7))
sock.sendall(bytes(range(256)) * 1000)
print(stream.read(256000) == bytes(range(256)) * 1000)
sock.shutdown(socket.SHUT_WR)
print(stream.read())
""")
    assert lines == ["101", "b'at once'", "True", "b''"], lines


@case
def a_websocket_that_is_refused_is_none(p):
    lines = web(p, ASK % "/other" + """
print(answer()[0])
send("GET /next" + HEAD + "\\n")
print(answer()[1]["path"])
send("GET /next HTTP/1.1\\nHost: other.example.org\\n\\n")
try:
    print(stream.read())
except ConnectionResetError:
    print("reset")
""")
    assert lines == ["200", "/next", "reset"], lines


# --- what a client hears ---

@case
def every_refusal_of_http_has_its_sentence(p):
    plain = "GET / HTTP/1.1\nHost: {}\n"
    rows = ((NAME, plain.format("other.example.org"), 403,
             "www.example.org:80 was connected to, and the request names 'other.example.org'", "other_host"),
            (NAME, "GET / HTTP/1.1\n", 403, "the request names no host", "no_host"),
            (NAME, plain.format(NAME) + "Content-Length: 1\nContent-Length: 1\n", 403,
             "it has two Content-Length fields", "bad_http"),
            (NAME, "PRI * HTTP/2.0\n", 403, "its version is neither", "bad_http"),
            (NAME, plain.format(NAME) + "Upgrade: h2c, websocket\n", 403,
             "an upgrade to something other than websocket", "bad_http"),
            ("private.example.org", plain, 403, "leads to fd00:9::7", "reserved"),
            ("host.example.org", plain, 403, "which is this machine", "own_address"),
            ("93.184.216.34", plain, 403, "an address is reached by the name", "address"),
            ("nowhere.example.org", plain, 502, "nowhere.example.org is allowed, but its name could not be looked up",
             "unknown_name"),
            ("broken.example.net", plain, 502, "was not found: ", "resolver"),
            ("gone.example.net", plain, 502, "No route to host", "unreachable"))
    WORLD.zone({"broken.example.net": {"rcode": 2}, "gone.example.net": {"A": ["8.8.8.8"]}})
    done = caged(p, f"""
import json
print(json.dumps([ask(host, said.format(host) + "\\n") for host, said, *_ in {rows!r}]))
""", ["*.example.org:80", "*.example.net:80"])
    seen = events(done.record)
    for (host, said, status, words, reason), answer in zip(rows, json.loads(done.out)):
        assert answer.startswith(f"HTTP/1.1 {status} ") and words in answer.splitlines()[-1], (said, answer)
        # A name that led nowhere has no port that was tried.
        where = host if reason == "unknown_name" else f"{host}:80"
        assert answer.splitlines()[-1].startswith(f"bawn: {where} "), answer
        kind = "net_failed" if status == 502 else "net_denied"
        assert (kind, host, 80, reason) in seen, (kind, host, reason, seen.keys())


@of_root  # for it takes a while
@case
def a_refusal_is_heard_by_who_is_still_speaking(p):
    WORLD.zone({"silent.example.net": {"silent": True}})
    lines = printed(p, """
body = "x" * 20000000
for host, named in (("silent.example.net",) * 2, (NAME, "other.example.org"), ("93.184.216.34", NAME)):
    said = f"POST / HTTP/1.1\\nHost: {named}\\nContent-Length: {len(body)}\\n\\n{body}"
    print(ask(host, said)[:12])
""", [f"{NAME}:80", "silent.example.net:80"])
    assert lines == ["HTTP/1.1 502", "HTTP/1.1 403", "HTTP/1.1 403"], lines


@case
def every_refusal_of_tls_is_an_alert(p):
    WORLD.zone({"gone.example.net": {"A": ["8.8.8.8"]}})
    rows = (("www.example.org", "other.example.org", "UNRECOGNIZED_NAME", "net_denied", "other_sni"),
            ("www.example.org", None, "ACCESS_DENIED", "net_denied", "no_sni"),
            ("private.example.org", "private.example.org", "ACCESS_DENIED", "net_denied", "reserved"),
            ("93.184.216.34", "www.example.org", "ACCESS_DENIED", "net_denied", "address"),
            ("nowhere.example.org", "nowhere.example.org", "INTERNAL_ERROR", "net_failed", "unknown_name"),
            ("gone.example.net", "gone.example.net", "INTERNAL_ERROR", "net_failed", "unreachable"))
    done = caged(p, f"""
for host, name, *_ in {rows!r}:
    context = ssl._create_unverified_context()
    try:
        context.wrap_socket(connect(host, 443), server_hostname=name)
        print("reached")
    except ssl.SSLError as error:
        print(error.reason)
print(ask("www.example.org", "GET / HTTP/1.1\\nHost: www.example.org\\n\\n", 443).splitlines()[-1])
print(attempt("www.example.org", 443, b"SSH-2.0-x\\r\\n"))
""", ["*.example.org:443", "*.example.net:443"])
    lines, seen = done.out.splitlines(), events(done.record)
    for (host, _, alert, kind, reason), line in zip(rows, lines):
        assert line.endswith(alert), (host, line)
        assert (kind, host, 443, reason) in seen, (host, reason, seen.keys())
    assert lines[-2:] == ["bawn: www.example.org:443 is declared as tls, and something else was spoken",
                          "ConnectionResetError"], lines
    assert seen["net_denied", NAME, 443, "not_tls"]["times"] == 2


@case
def a_plain_connection_that_fails_is_a_reset(p):
    """Without a word of ours in a protocol that the client may not speak; with one if it spoke HTTP."""
    WORLD.zone({"gone.example.net": {"A": ["8.8.8.8"]}})
    lines = printed(p, """
print(attempt("gone.example.net", 22))
print(attempt("gone.example.net", 22, b"SSH-2.0-x\\r\\n"))
print(ask("gone.example.net", "GET / HTTP/1.1\\nHost: x\\n\\n", 22).splitlines()[-1])
""", ["gone.example.net:22"])
    assert lines == ["ConnectionResetError", "ConnectionResetError",
                     "bawn: gone.example.net:22 could not be reached: No route to host"], lines


@case
def who_says_nothing_is_told_so_in_time(p):
    done = caged(p, """
start = time.monotonic()
silent, slow = connect(NAME, 80), connect(NAME, 80)
slow.sendall(b"GET / HTTP/1.1\\r\\nHost: ")
for sock in (silent, slow):
    try:
        print(read(sock).decode().splitlines()[-1:])
    except ConnectionResetError:
        print("reset")
print(9.5 < time.monotonic() - start < 15)
""", [f"{NAME}:80"])
    sentence = f"bawn: {NAME}:80 was connected to, and nothing was said in time"
    assert done.out.splitlines() == ["reset", f"['{sentence}']", "True"], done.out
    assert events(done.record)["net_denied", NAME, 80, "silent"]["times"] == 2


if __name__ == "__main__":
    WORLD = world.enter()
    LOG = WORLD.folder / "odd.log"
    LOG.touch()
    said = WORLD.spawn(sys.executable, pathlib.Path(__file__).with_name("odd.py"), LOG)
    assert said == "ready\n", f"the servers said {said!r}"
    main()
