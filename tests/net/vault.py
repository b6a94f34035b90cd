#!/usr/bin/env python3
"""Secrets: keys that only the process between the cage and a host knows, and what a cage can do with them.

    vault.py BAWN BREAKABLE        prints TAP
"""

import hashlib
import json
import os
import pathlib
import signal
import subprocess

import world
from caged import children, events, run, say, start
from keyed import BIG
from world import WEB, WEB6
from place import BAWN, FILES, case, expect, expect_refusal, main, wait_until

WORLD = None
HOST, PORT = "api.example.net", 8445
BAD = {"expired": 8446, "wrong": 8447, "stranger": 8448}
KEY = "sk-test-5f0c2d4e8b7a49d1-with-a-tail"
DIGEST = hashlib.sha256(KEY.encode()).hexdigest()
ENV = {"API_KEY": KEY}


# --- servers ---

def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def certify(name, folder, ca, days, subject):
    """A certificate for a name, by an authority; its files as keyed.py wants them."""
    key, asked, made, names = (folder / f"{name}.{kind}" for kind in ("key", "csr", "pem", "cnf"))
    names.write_text(f"subjectAltName=DNS:{subject}\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key]
    openssl("req", "-new", *curve, "-subj", "/CN=server", "-out", asked)
    openssl("x509", "-req", "-in", asked, "-CA", f"{ca}.pem", "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", days,
            "-extfile", names, "-out", made)
    return f"{BAD[name]}:{made}:{key}"


def begin():
    """Servers with a good certificate and with bad ones."""
    WORLD.zone({f"{name}.example.net": {"A": [WEB], "AAAA": [WEB6]} for name in ("api", *BAD)})
    good = WORLD.certificate(HOST)
    folder, ca = WORLD.folder / "vault", WORLD.folder / "keys/ca"
    folder.mkdir()
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", 3, "-subj",
            "/CN=nobody knows it", "-keyout", folder / "other.key", "-out", folder / "other.pem")
    said = WORLD.spawn("python3", pathlib.Path(__file__).with_name("keyed.py"), f"{PORT}:{good[0]}:{good[1]}",
                       certify("expired", folder, ca, -1, "expired.example.net"),
                       certify("wrong", folder, ca, 3, "another.example.net"),
                       certify("stranger", folder, folder / "other", 3, "stranger.example.net"))
    assert said == "ready\n", said


# --- specs and programs ---

def secret(name="api", host=f"{HOST}:{PORT}", header="x-key", source="env:API_KEY", **more):
    return {"name": name, "host": host, "header": header, "from": source, **more}


def spec(p, *secrets, allow=(), more=""):
    return p.spec(f"network: {{ mode: allowlist, allow: {json.dumps(list(allow))} }}\n"
                  f"secrets: {json.dumps(secrets or [secret()])}\n{more}")


# In a cage: one connection, and requests on it.
CLIENT = """
import http.client, json, hashlib
def client():
    return http.client.HTTPConnection("bawn-host", timeout=30)
def get(path, method="GET", body=None, headers={}, on=None, chunked=False):
    on = on or client()
    on.request(method, path, body, headers, encode_chunked=chunked)
    answer = on.getresponse()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
def seen(path="/api/x", **more):
    status, _, body = get(path, **more)
    assert status == 200, (status, body)
    return json.loads(body)
"""


def ask(p, program, *secrets, env=None, **more):
    """What a program in a cage printed, and the record."""
    done = run(WORLD, p, CLIENT + program, spec(p, *secrets, **more), env={**ENV, **(env or {})})
    assert KEY not in done.out + done.err + json.dumps(done.record), "the key is in the open"
    return done.out.splitlines(), done.record


# --- requests ---

@case
def a_request_gets_the_key_and_loses_the_agents(p):
    lines, record = ask(p, """
print(json.dumps(seen("/api/v1/x?y=1#z", headers={"X-Key": "mine", "Authorization": "mine", "x_key": "mine",
    "X-Api-Key": "mine", "Proxy-Authorization": "mine", "Proxy-Thing": "mine", "Accept-Encoding": "gzip",
    "Connection": "keep-alive, X-Gone", "X-Gone": "mine", "Keep-Alive": "mine", "TE": "mine", "X-Kept": "yes",
    "X-Goog-Api-Key": "mine"})))
print(json.dumps(seen("http://bawn-host/api")))
print(json.dumps(seen("/api?a")))
""")
    first, second, third = map(json.loads, lines)
    assert first["line"] == ["GET", "/v1/x?y=1#z", "HTTP/1.1"], first
    assert second["line"][1] == "/" and third["line"][1] == "/?a", (second, third)
    assert sorted(first["fields"]) == [["X-Kept", "yes"], ["accept-encoding", "identity"],
                                       ["host", f"{HOST}:{PORT}"], ["x-key", DIGEST]], first
    seen = events(record)["net_allowed", HOST, PORT, "allowed"]
    assert seen["secret"] == "api" and seen["times"] == 3 and seen["bytes_in"] > 500, seen


@case
def a_key_may_be_in_a_file_and_have_a_scheme(p):
    p.write("key", KEY + "\n", mode=0o600)
    lines, _ = ask(p, "print(json.dumps(seen('/two/', headers={'Authorization': 'Bearer mine'})))",
                   secret(), secret("two", header="Authorization", scheme="Bearer", source="file:~/key"))
    wanted = hashlib.sha256(f"Bearer {KEY}".encode()).hexdigest()
    assert ["authorization", wanted] in json.loads(lines[0])["fields"], lines


@case
def a_connection_is_kept_and_bodies_pass_whole(p):
    lines, _ = ask(p, """
on, big = client(), os.urandom(1 << 20) * 10
one, two = seen(on=on), seen(on=on)
print(one["peer"] == two["peer"], seen("/two/x", on=on)["peer"] != one["peer"])
got = seen(on=on, method="POST", body=big)
print(got["size"] == len(big), got["sha256"] == hashlib.sha256(big).hexdigest())
got = seen(on=on, method="POST", body=iter([big[:7], big[7:100000]]), chunked=True,
           headers={"Transfer-Encoding": "chunked"})
print(got["size"], got["sha256"] == hashlib.sha256(big[:100000]).hexdigest())
print(get("/api/x", method="HEAD", on=on)[1]["content-length"], get("/api/empty", on=on)[0])
got = get("/api/big", on=on)[2]
print(len(got), hashlib.sha256(got).hexdigest() == hashlib.sha256(b"0123456789abcdef" * (len(got) // 16)).hexdigest())
print(get("/api/until-close")[2], get("/api/closing")[2], attempt("bawn-host", 80, b"GET /api/hint HTTP/1.1\\r\\n"
      b"Host: bawn-host\\r\\nConnection: close\\r\\n\\r\\n").count("HTTP/1.1 "))
""", secret(), secret("two"))
    assert lines == ["True True", "True True", "100000 True", "1234 204", f"{BIG} True",
                     "b'until the end\\n' b'the last\\n' 2"], lines


@case
def what_is_expected_is_waited_for(p):
    done = WORLD.bawn(p, "head -c 300000 /dev/zero | curl -sS --expect100-timeout 60 -H 'Expect: 100-continue' "
                         "--data-binary @- http://bawn-host/api/x", *spec(p), env=ENV)
    assert json.loads(done.out)["size"] == 300000, done


@case
def events_come_when_they_are_sent(p):
    lines, _ = ask(p, """
on = client()
on.request("GET", "/api/events")
answer = on.getresponse()
late = [time.time() - float(line.split()[2]) for line in answer if line.strip()]
print(len(late), max(late) < 0.09, answer.getheader("content-type"), seen(on=on)["line"][1])
""")
    assert lines == ["5 True text/event-stream /x"], lines


@case
def many_at_once(p):
    lines, record = ask(p, """
results = []
def work(i):
    results.append(seen(f"/api/{i}")["line"][1] == f"/{i}")
threads = [threading.Thread(target=work, args=[i]) for i in range(64)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(len(results), all(results))
""")
    assert lines == ["64 True"], lines
    assert events(record)["net_allowed", HOST, PORT, "allowed"]["times"] == 64


# --- what is refused ---

@case
def other_names_and_other_ways_are_refused(p):
    lines, record = ask(p, f"""
for path in ("/other/x", "/API/x", "/ap%69/x", "/../api", "/", "//api/x"):
    status, _, body = get(path)
    print(status, body.decode().strip())
print(attempt("{HOST}", {PORT}), attempt("{HOST}", 443))
print(get("/api/x", headers={{"Host": "{HOST}"}})[0])
""")
    assert lines[0] == "404 bawn: bawn-host:80 has no secret that is called 'other'", lines
    assert all(line.startswith("404 ") for line in lines[1:6]), lines
    assert lines[6:] == ["gaierror gaierror", "400"], lines
    seen = [(event["type"], event["name"], event["reason"], event.get("other")) for event in record["events"]
            if event["type"] in ("net_denied", "name_denied")]
    assert ("net_denied", "bawn-host", "no_secret", "ap%69") in seen, seen
    assert ("net_denied", "bawn-host", "other_host", HOST) in seen, seen
    assert ("name_denied", HOST, "name", None) in seen, seen


@case
def a_later_request_that_is_refused_is_told_why(p):
    lines, _ = ask(p, r"""
on = client()
print(seen(on=on)["line"][1], get("/other/x", on=on)[2].decode().strip())
both = attempt("bawn-host", 80, b"GET /api/big HTTP/1.1\r\nHost: bawn-host\r\n\r\n"
               b"GET /other/x HTTP/1.1\r\nHost: bawn-host\r\n\r\n")
print(len(both) > %d, "HTTP/1.1 404" in both[-1000:])
""" % BIG)
    assert lines == ["/x bawn: bawn-host:80 has no secret that is called 'other'", "True True"], lines


@case
def requests_that_can_be_read_in_two_ways_are_refused(p):
    lines, record = ask(p, r"""
for text in (
    "POST /api/x HTTP/1.1\nHost: bawn-host\nContent-Length: 5\nTransfer-Encoding: chunked\n\n0\n\n",
    "POST /api/x HTTP/1.1\nHost: bawn-host\nContent-Length: 5\nContent-Length: 6\n\n12345",
    "POST /api/x HTTP/1.1\nHost: bawn-host\nTransfer-Encoding: gzip, chunked\n\n0\n\n",
    "POST /api/x HTTP/1.1\nHost: bawn-host\nTransfer-Encoding: chunked\n\nzz\n\n",
    "POST /api/x HTTP/1.1\nHost: bawn-host\nTransfer-Encoding: chunked\n\n0\nX-Key: mine\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nX-Key : mine\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nA: b\n X-Key: mine\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nHost: other\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nConnection: host\n\n",
    "GET /api/x\tHTTP/1.1\nHost: bawn-host\n\n",
    "GET /api/\x01x HTTP/1.1\nHost: bawn-host\n\n",
    "GET /api/x HTTP/1.0\nHost: bawn-host\n\n",
    "GET /api/x HTTP/1.1\n\n",
    "GET http://other/api/x HTTP/1.1\nHost: bawn-host\n\n",
    "CONNECT bawn-host:80 HTTP/1.1\nHost: bawn-host\n\n",
    "TRACE /api/x HTTP/1.1\nHost: bawn-host\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nUpgrade: websocket\nConnection: upgrade\n\n",
    "PRI * HTTP/2.0\n\nSM\n\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\n" + "A: b\n" * 300 + "\n",
    "GET /api/x HTTP/1.1\nHost: bawn-host\nA: " + "b" * 20000,
):
    print(ask("bawn-host", text).partition("\n")[0])
print(attempt("bawn-host", 80, b"GET /api/x HTTP/1.1\nHost: bawn-host\n\n").partition("\r\n")[0])
print(attempt("bawn-host", 80, b"GET /api/a HTTP/1.1\r\nHost: bawn-host\r\n\r\nGET /api/b HTTP/1.1\r\nHost: bawn-host\r\n"
              b"Connection: close\r\n\r\n").count("HTTP/1.1 200"))
""")
    assert len(lines) == 22 and all(line.strip() == "HTTP/1.1 400 Bad Request" for line in lines[:21]), lines
    assert lines[21] == "2", lines
    assert ("net_denied", "bawn-host", 80, "bad_http") in events(record), record["events"]


@case
def certificates_have_to_be_good(p):
    folder = WORLD.folder / "vault"
    own = [secret(name, f"{name}.example.net:{port}") for name, port in BAD.items()]
    trusting = secret("trusting", f"stranger.example.net:{BAD['stranger']}", ca=str(folder / "other.pem"))
    doubting = secret("doubting", ca=str(folder / "other.pem"))
    lines, record = ask(p, """
for name in ("expired", "wrong", "stranger", "doubting"):
    status, _, body = get(f"/{name}/x")
    print(status, body.decode().strip())
print(seen("/trusting/x")["line"][1])
""", *own, trusting, doubting)
    reasons = ["certificate has expired", "hostname mismatch", "unable to get local issuer certificate",
               "unable to get local issuer certificate"]
    for line, reason in zip(lines, reasons):
        assert line.startswith("502 bawn: ") and line.endswith(f"has a certificate that is not accepted: {reason}"), lines
    assert lines[4] == "/x", lines
    seen = {event["secret"]: event for event in record["events"] if event.get("reason") == "tls_untrusted"}
    assert seen["expired"]["name"] == "expired.example.net" and len(seen) == 4, seen


@case
def an_address_that_is_not_public_has_to_be_declared(p):
    WORLD.zone({"inner.example.net": {"A": ["10.9.8.7"]}})
    inner = secret("inner", f"inner.example.net:{PORT}")
    lines, record = ask(p, "print(get('/inner/x')[0])", inner)
    assert lines == ["403"], lines
    assert ("net_denied", "inner.example.net", PORT, "reserved") in events(record), record["events"]
    lines, _ = ask(p, "print(get('/inner/x')[2].decode())", inner, allow=[f"10.0.0.0/8:{PORT}"])
    assert "hostname mismatch" in lines[0], lines


@case
def what_cannot_be_reached_says_so(p):
    lines, record = ask(p, "for name in ('a', 'b', 'c'): print(get(f'/{name}/x')[0::2])",
                        secret("a", "no-such.example.net:443"), secret("b", f"{HOST}:9"),
                        secret("c", "www.example.org:80"))
    assert "could not be looked up" in lines[0] and "Connection refused" in lines[1] and "TLS failed" in lines[2], lines
    assert all(line.startswith("(502, ") for line in lines), lines
    assert events(record)["net_failed", HOST, 9, "unreachable"]["secret"] == "b"


# --- answers ---

@case
def a_key_that_comes_back_stays_outside(p):
    lines, record = ask(p, r"""
def raw(path):
    sock, pieces = connect("bawn-host", 80), []
    sock.sendall(f"GET /api/{path} HTTP/1.1\r\nHost: bawn-host\r\nConnection: close\r\n\r\n".encode())
    try:
        while piece := sock.recv(1 << 16):
            pieces.append(piece)
    except ConnectionError:
        pieces.append(b"(broken)")
    return b"".join(pieces).decode()
for path in ("echo", "pieces"):
    chunks = raw(path).partition("\r\n\r\n")[2]
    print("".join(chunks.split("\r\n")[1::2] if path == "pieces" else chunks), chunks.endswith("(broken)"))
body = raw("almost").partition("\r\n\r\n")[2]
print(len([line for line in body.split("\r\n")]) > 3, get("/api/almost")[2].decode().replace("-tai", "-TAI"))
print(get("/api/header")[1]["x-debug"])
""")
    start_of_key = KEY[:-1]
    # What came before it may have arrived; of the key there is at most what was not the whole of it.
    assert lines[0].endswith("True") and KEY[:3] not in lines[0], lines
    assert lines[1].endswith("True") and f"before {start_of_key}! then ".startswith(lines[1].split("(")[0][:40]), lines
    assert lines[2] == f"True |{start_of_key}|{start_of_key}?{KEY[:4]}".replace("-tai", "-TAI"), lines
    assert lines[3] == f"you sent {'*' * len(KEY)} to me", lines
    seen = [event for event in record["events"] if event.get("reason") == "key_echoed"]
    assert {event["other"] for event in seen} == {"a body", "a header"}, seen


@case
def how_a_guess_comes_back_does_not_say_if_it_is_right(p):
    """A host that sends back what it was sent, and a client that guesses the key from its beginning."""
    lines, _ = ask(p, f"GUESSES = {[KEY[:n] for n in (1, 2, 9, 31)]}" + r"""
def sizes(guess):
    sock, found = connect("bawn-host", 80), []
    body = guess.rjust(32, "\n") + "\n" * 32
    sock.sendall(b"POST /api/mirror HTTP/1.1\r\nHost: bawn-host\r\nConnection: close\r\nContent-Length: 64\r\n\r\n")
    sock.sendall(body.encode())
    rest = read(sock).partition(b"\r\n\r\n")[2]
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        found.append(int(size, 16))
        rest = rest[found[-1] + 2:]
    return found
print(all(sizes(guess) == sizes(guess[:-1] + "~") != sizes(guess[:-1] + "\n") for guess in GUESSES))
""")
    assert lines == ["True"], lines


@case
def answers_that_are_none_are_told_so(p):
    lines, _ = ask(p, r"""
for path in ("two-lengths", "nonsense", "nothing"):
    print(get(f"/api/{path}")[0])
try:
    get("/api/cut")
except (http.client.IncompleteRead, ConnectionError) as error:
    print("cut")
print(get("/api/early", method="POST", body=b"x" * 100)[0])
""")
    assert lines == ["502", "502", "502", "cut", "413"], lines


@case
def an_early_answer_is_not_the_end_of_a_connection(p):
    """The vault has all of a request, and the host answers before it was told all of it. Which sizes those are is the
    kernel's affair, so there are many."""
    lines, _ = ask(p, r"""
after = []
def work(size):
    sock, come = connect("bawn-host", 80), b""
    sock.settimeout(5)
    def send():
        try:
            sock.sendall(b"POST /api/early-and-busy HTTP/1.1\r\nHost: bawn-host\r\nContent-Length: %d\r\n\r\n" % size)
            sock.sendall(bytes(size))
        except OSError:
            pass
    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    while not come.endswith(b"too large\n"):
        come += sock.recv(4096)
    thread.join(0.5)
    if not thread.is_alive():
        sock.sendall(b"GET /api/x HTTP/1.1\r\nHost: bawn-host\r\n\r\n")
        try:
            after.append(sock.recv(4096).partition(b"\r\n")[0].decode())
        except TimeoutError:
            after.append(f"nothing after {size}")
        except ConnectionError:
            after.append("")
threads = [threading.Thread(target=work, args=[size]) for size in range(200000, 1100000, 5000)]
[thread.start() for thread in threads], [thread.join() for thread in threads]
print(sorted(set(after)))
""")
    # The next request is answered; or it is the end, where the vault has not had all of it, or the host had, and went.
    assert "nothing" not in lines[0], lines


# --- the key is nowhere ---

SEARCH = """
found, looked = [], 0
key = ("sk-test-5f0c2d4e8b7a49d1" + "-with-a-tail").encode()
for top in ("/etc", "/home", "/run", "/tmp", "/var", "/work", "/dev", "/root", "/srv"):
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            try:
                if os.path.isfile(path) and key in open(path, "rb").read():
                    found.append(path)
                looked += 1
            except OSError:
                pass
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline", "auxv", "maps"):
        try:
            if key in open(f"/proc/{pid}/{name}", "rb").read():
                found.append(f"{name} of {pid}")
            looked += 1
        except OSError:
            pass
    try:
        areas = [line.split() for line in open(f"/proc/{pid}/maps")]
        with open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for area in areas:
                begin, end = (int(number, 16) for number in area[0].split("-"))
                if "r" in area[1] and pid != str(os.getpid()) and end - begin < 1 << 26:
                    memory.seek(begin)
                    if key in (memory.read(end - begin) or b""):
                        found.append(f"memory of {pid}")
    except (OSError, ValueError, OverflowError):
        pass
print(looked > 50, sorted(set(found)) and "found" or "nothing", any("environ" in one for one in found))
"""


@case
def a_search_in_the_cage_finds_nothing(p):
    lines, _ = ask(p, "seen()\n" + SEARCH)
    assert lines == ["True nothing False"], lines
    # The same search, where the key is passed as it was before there were secrets.
    assert say(WORLD, p, SEARCH, p.spec("env: { pass: [API_KEY] }"), env=ENV) == ["True found True"]


@case
def a_search_outside_finds_nothing(p):
    read, write = os.pipe()
    options = spec(p)
    process = start(p, CLIENT + "seen(); print('asked', flush=True); sys.stdin.read(); seen()",
                    [*options, "--status-fd", str(write)], env=ENV, pass_fds=[write], stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    os.close(write)
    assert process.stdout.readline() == b"asked\n"
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert KEY.encode() not in path.read_bytes(), path
        except (FileNotFoundError, ProcessLookupError):
            pass
    for name, pid in children(process.pid).items():
        if name in ("bawn-vault", "bawn-gate", "bawn-dialer"):
            assert pathlib.Path(f"/proc/{pid}/environ").read_bytes() == b"", name
    out, err = process.communicate(b"", timeout=60)
    with os.fdopen(read, "rb") as status:
        said = status.read()
    assert process.returncode == 0 and said, (out, err)
    plan = p.run("plan", "--json", *options, env=ENV)
    log = p.run("log", env=ENV)
    for what, text in {"output": out, "messages": err, "status": said, "plan": plan.stdout.encode(),
                       "log": (log.stdout + log.stderr).encode()}.items():
        assert KEY.encode() not in text, what
        assert text or what in ("output", "messages"), what
    looked = 0
    for path in (path for top in (p.state, p.top) for path in top.rglob("*") if path.is_file()):
        if path.name != "program.py":
            assert KEY.encode() not in path.read_bytes(), path
            looked += 1
    assert looked > 3, looked


@case
def the_vault_is_confined(p):
    process = start(p, CLIENT + "print('here', flush=True); sys.stdin.read()", spec(p), env=ENV,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"here\n"
    pid = children(process.pid)["bawn-vault"]
    status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                  if ":\t" in line)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1" and "0" not in status["Uid"].split(), status
    assert all(int(status[name], 16) == 0 for name in ("CapInh", "CapPrm", "CapEff")), status
    # With the keys, and not with room for more of them than there are.
    assert 0 < int(status["VmLck"].split()[0]) <= 16, status
    files = {os.readlink(path).partition(":")[0] for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
    assert files <= {"/dev/null", "socket", "anon_inode"}, files
    limits = pathlib.Path(f"/proc/{pid}/limits").read_text()
    assert "Max core file size        1                    1" in limits or "core file size        0" in limits, limits
    process.communicate(b"", timeout=60)
    assert process.returncode == 0


@case
def without_the_vault_the_run_goes_on(p):
    process = start(p, CLIENT + """
on = client()
print(seen(on=on)["line"][1], flush=True)
sys.stdin.readline()
try:
    print(get("/api/x", on=on)[0], flush=True)
except ConnectionError:
    print("ended", flush=True)
status, _, body = get("/api/x")
print(status, body.decode().strip(), flush=True)
""", spec(p), env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"/x\n"
    vault = children(process.pid)["bawn-vault"]
    os.kill(vault, signal.SIGKILL)
    wait_until(lambda: "Z" in pathlib.Path(f"/proc/{vault}/stat").read_text().split(")")[1].split()[0], 10, "it ended")
    out, err = process.communicate(b"\n", timeout=60)
    lines = out.decode().splitlines()
    assert lines == ["ended", "502 bawn: bawn-host:80 has lost the process that holds the keys of secrets"], (lines, err)
    assert process.returncode == 0 and b"has lost the process" in err, err


@case
def a_caller_that_does_not_listen_is_not_waited_for(p):
    """Who asks and goes, again and again, fills the way to it, and everything else goes on."""
    process = start(p, CLIENT + """
print(seen()["line"][1], flush=True)
sys.stdin.readline()
for _ in range(8):
    socks = [connect("bawn-host", 80) for _ in range(100)]
    for sock in socks:
        sock.sendall(b"GET /api/x HTTP/1.1\\r\\nHost: bawn-host\\r\\n\\r\\n")
    time.sleep(0.2)
    for sock in socks:
        sock.close()
    time.sleep(0.1)
print(get("/other/x")[0], get("/api/x")[0], flush=True)
sys.stdin.readline()
time.sleep(1)
print(seen()["line"][1], flush=True)
""", spec(p), env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"/x\n"
    caller = children(process.pid)["bawn-dialer"]
    os.kill(caller, signal.SIGSTOP)
    try:
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"404 503\n"
    finally:
        os.kill(caller, signal.SIGCONT)
    out, err = process.communicate(b"\n", timeout=60)
    assert process.returncode == 0 and out == b"/x\n", (out, err)


@case
def who_goes_gives_the_answer_up(p):
    """The host hears of it while it is still at work."""
    lines, _ = ask(p, """
on = client()
on.request("GET", "/api/gone")
time.sleep(0.2)
on.close()
for _ in range(100):
    time.sleep(0.05)
    if get("/api/was-gone")[2] == b"yes":
        break
print(get("/api/was-gone")[2])
""")
    assert lines == ["b'yes'"], lines


@case
def each_run_of_a_session_has_them(p):
    session = expect(p.run("session", "create", *spec(p), env=ENV), 0).stdout.strip()
    for _ in range(2):
        done = p.run("session", "exec", session, "--", "curl", "-sS", "http://bawn-host/api/x", env=ENV)
        assert ["x-key", DIGEST] in json.loads(expect(done, 0).stdout)["fields"], done
    done = p.run("session", "exec", session, "--", "true")
    assert done.returncode and "API_KEY is not set" in done.stderr, done
    expect(p.run("session", "rm", session), 0)


# --- before anything runs ---

@case
def a_key_that_is_not_there_stops_the_run(p):
    marker = p.project / "ran"
    p.write("odd", "two words\n")
    p.write("long", "x" * 9000)
    p.write("longer", "x" * 8192 + "\n" + "x")
    p.write("lines", "x" * 8191 + "\n\n")
    good = (WORLD.folder / "keys/ca.pem").read_text()
    p.write("damaged.pem", good + good.replace("MII", "!!!", 1))
    p.write("cut.pem", good + good[:len(good) // 2])
    p.write("empty", "\n")
    p.write("project/key", KEY)
    (p.home / "link").symlink_to(p.project / "key")
    rows = [(secret(), {}, "the variable API_KEY is not set\nhint: set it"),
            (secret(), {"API_KEY": ""}, "the variable API_KEY is empty"),
            (secret(), {"API_KEY": "a b"}, "has a space, a second line or a character that is not ASCII"),
            (secret(), {"API_KEY": "ké"}, "has a space, a second line or a character that is not ASCII"),
            (secret(source="file:~/none"), {}, "No such file"),
            (secret(source="file:~/odd"), {}, "has a space, a second line"),
            (secret(source="file:~/long"), {}, "is longer than 8192 bytes"),
            (secret(source="file:~/longer"), {}, "is longer than 8192 bytes"),
            (secret(source="file:~/lines"), {}, "is longer than 8192 bytes"),
            (secret(source="file:~/empty"), {}, "is empty"),
            (secret(source="file:~"), {}, "no file"),
            (secret(source="file:~/link"), {}, "which is in the project"),
            (secret(ca="/nonexistent.pem"), ENV, "No such file"),
            (secret(ca="~/odd"), ENV, "there is none in it"),
            (secret(ca="~/damaged.pem"), ENV, "one in it is damaged"),
            (secret(ca="~/cut.pem"), ENV, "one in it is damaged")]
    for one, env, sentence in rows:
        done = p.run("run", *spec(p, one), "--", "touch", "/work/ran", env=env)
        assert done.returncode and sentence in done.stderr, (one, done)
        assert "two words" not in done.stderr and "a b" not in done.stderr, done
    assert not marker.exists()


@case
def a_key_that_the_cage_is_shown_stops_the_run(p):
    """Whatever it is called here and there; and so do certificates that the cage could write."""
    p.write("keys/api", KEY + "\n", mode=0o600)
    (p.home / "keys/ca.pem").write_bytes((WORLD.folder / "keys/ca.pem").read_bytes())
    (p.home / "alias").symlink_to("keys")
    (p.home / "certificates").symlink_to("keys/ca.pem")
    expect(p.run("overlay", "init", f"{p.home}/layer", "--size", "8M"), 0)
    p.write("layer/tree/key", KEY)
    (p.home / "keys/usr.pem").symlink_to(WORLD.folder / "keys/ca.pem")
    key, cage = f"{p.home}/keys/api", f"project: {{ cage: project, read_allowlist: ['{p.home}/keys/**'] }}"
    rows = [(secret(source=f"file:{source}"), more, "where the agent could read it") for source, more in (
                ("~/keys/api", f"binds: ['{p.home}/keys:/srv/k']"), (key, "binds: ['~/keys:/srv/k']"),
                ("~/keys/api", "binds: ['~/alias:/srv/k']"), ("~/alias/api", "binds: ['~/keys:/srv/k']"),
                ("~/alias/api", f"binds: ['{key}:/srv/k']"), ("~/keys/api", cage),
                ("/usr/lib/os-release", ""), ("~/keys/api", f"root: {{ image: 'dir:{p.home}/keys' }}"),
                ("~/layer/tree/key", f"root: {{ image: 'dir:{p.home}/keys', overlay: '{p.home}/layer' }}"))]
    rows += [(secret(ca=ca), f"binds: ['{p.home}/keys:/srv/k:rw']", "where the agent could change them")
             for ca in ("~/keys/ca.pem", "~/certificates", "~/alias/ca.pem", "~/alias/usr.pem")]
    p.write("project/ca.pem", "")
    rows.append((secret(ca=f"{p.project}/ca.pem"), "", "which is in the project, where the agent could change them"))
    for one, more, sentence in rows:
        done = p.run("run", *spec(p, one, more=more), "--", "true", env=ENV)
        assert done.returncode and sentence in done.stderr and KEY not in done.stderr, (one, more, done)
    # To be seen is not to be written.
    lines, _ = ask(p, "print(seen()['line'][1])", secret(ca="~/keys/ca.pem"), more=f"binds: ['{p.home}/keys:/srv/k']")
    assert lines == ["/x"], lines


@case
def without_its_program_there_is_no_run(p):
    alone = p.make("alone")
    (alone / "bawn").write_bytes(BAWN.read_bytes())
    (alone / "bawn").chmod(0o755)
    done = p.run("run", *spec(p), "--", "true", env=ENV, program=alone / "bawn")
    expect_refusal(done, "cannot use secrets: the program bawn-vault")
    assert (FILES / "bawn-vault").exists()


if __name__ == "__main__":
    WORLD = world.enter()
    begin()
    main()
