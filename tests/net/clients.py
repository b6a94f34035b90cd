#!/usr/bin/env python3
"""Programs that people use, in cages with network: allowlist, and without any proxy variable.

    clients.py BAWN BREAKABLE        prints TAP

Every client is a pair: the same command reaches its server when that is allowed, and when it is not fails soon,
with words that say so, while nothing at all reaches the internet.
"""

import hashlib
import pathlib
import re
import typing

import servers
import world
from internet import RESOLVER, RESOLVER6
from servers import BLOB, HTTP2_PORT, TEXT
from world import BUNDLE, WEB, WEB6, allow
from place import case, main

WORLD = None
ANOTHER = "four.example.org"  # what is allowed where the client's own destination is not
ASK = "curl -sS -w '%{http_code}' "
PYTHON = "/usr/bin/python3"
NODE = ("-e", f"NODE_EXTRA_CA_CERTS={BUNDLE}")  # node may have been built with authorities of its own
NO_NAME = ("Could not resolve host|unable to resolve host|Name or service not known|No address associated|ENOTFOUND|"
           "UnknownHostException")


class Client(typing.NamedTuple):
    """A command that reaches {host}, and how one sees that it did, or why it did not."""
    name: str
    command: str
    prints: str
    host: str = "www.example.org"
    port: str = "443"
    options: tuple = ()
    says: str = NO_NAME


SEEN = '"sni": "www.example.org"'
FETCH_BY_NODE = """
fetch('https://{host}/').then(r => r.text()).then(t => process.stdout.write(t),
	e => {{ console.error(e.cause || e); process.exitCode = 1; }});
"""
FETCH_BY_PYTHON = """
import urllib.request
print(urllib.request.urlopen('https://{host}/').read().decode())
"""
SPEAK_BY_PYTHON = """
import socket, ssl
sock = ssl.create_default_context().wrap_socket(socket.create_connection(('{host}', 443)), server_hostname='{host}')
sock.sendall(b'GET / HTTP/1.0\\r\\nHost: {host}\\r\\n\\r\\n')
print(sock.makefile().read())
"""
# What was sent before one side was closed comes back after it.
HALF_CLOSE = """
import socket
sock = socket.create_connection(('{host}', 7))
sent = b'0123456789' * 10000
sock.sendall(sent)
sock.shutdown(socket.SHUT_WR)
assert sock.makefile('rb').read() == sent
print('all came back')
"""
CLIENTS = [
    Client("curl", "curl -sS https://{host}/", SEEN),
    Client("curl_by_ipv6", "curl -6 -sS https://{host}/", SEEN),
    Client("curl_without_tls", "curl -sS http://{host}/one http://{host}/two", '"path": "/two"', port="80"),
    Client("curl_to_another_port", "curl -sS https://{host}:8443/", SEEN, port="8443/tls"),
    Client("curl_over_http2", f"curl -sS https://{{host}}:{HTTP2_PORT}/one https://{{host}}:{HTTP2_PORT}/two",
           '"version":"2.0","host":"h2.example.org:8444","path":"/two","sni":"h2.example.org"',
           "h2.example.org", f"{HTTP2_PORT}/tls"),
    Client("curl_for_much", "curl -sS https://{host}/blob >/tmp/blob && sha256sum </tmp/blob",
           hashlib.sha256(BLOB).hexdigest(), "blob.example.org"),
    Client("curl_for_much_without_tls", "curl -sS http://{host}/blob >/tmp/blob && sha256sum </tmp/blob",
           hashlib.sha256(BLOB).hexdigest(), "blob.example.org", "80"),
    Client("curl_with_much", "head -c 4000000 /dev/zero | curl -sS --data-binary @- https://{host}/",
           '"length": 4000000'),
    Client("curl_with_much_without_tls", "head -c 4000000 /dev/zero | curl -sS --data-binary @- http://{host}/",
           '"length": 4000000', port="80"),
    Client("wget", "wget -O- https://{host}/", SEEN),
    Client("wget_without_tls", "wget -O- http://{host}/", '"host": "www.example.org"', port="80"),
    Client("git", "cd /tmp && git clone -q https://{host}/repo.git && cat repo/hello", TEXT,
           "git.example.org"),
    # By itself npm tries three times, whatever the cause, and waits a minute in between.
    Client("npm", "mkdir /tmp/n && cd /tmp/n && npm install --fetch-retries 0 --no-audit --no-fund "
                  "--registry https://{host} hello && node -p 'require(\"hello\")'", TEXT,
           "registry.example.org", options=NODE),
    Client("pip", f"{PYTHON} -m pip install --disable-pip-version-check --retries 1 --target /tmp/p "
                  f"--index-url https://{{host}}/simple/ hello && "
                  f"PYTHONPATH=/tmp/p {PYTHON} -c 'import hello; print(hello.TEXT)'", TEXT, "pypi.example.org"),
    Client("node_fetch", f'node -e "{FETCH_BY_NODE}"', SEEN, options=NODE),
    Client("python_urllib", f'{PYTHON} -c "{FETCH_BY_PYTHON}"', SEEN),
    Client("python_ssl", f'{PYTHON} -c "{SPEAK_BY_PYTHON}"', SEEN),
    Client("java", f"java -XX:TieredStopAtLevel=1 /work/Client.java https://{{host}}:{HTTP2_PORT}/", "HTTP_2 {",
           "h2.example.org", f"{HTTP2_PORT}/tls"),
    # It offers HTTP/2 in every such request.
    Client("java_without_tls", "java -XX:TieredStopAtLevel=1 /work/Client.java http://{host}/", "HTTP_1_1 {",
           port="80"),
    Client("openssl", "openssl s_client -verify_return_error -connect {host}:443 </dev/null 2>&1",
           "Verify return code: 0 (ok)"),
    Client("a_server_that_speaks_first", "bash -c 'exec 3<>/dev/tcp/{host}/22 && head -n 1 <&3'", "SSH-2.0-canary-",
           port="22"),
    Client("half_a_connection", f'{PYTHON} -c "{HALF_CLOSE}"', "all came back", port="7"),
    Client("getent", "getent ahosts {host}", "STREAM", says="denied"),
]


def given(p, *destinations):
    """The permission, by options for root and in a spec for others: both mean the same."""
    if p.uid == 0:
        return allow(*destinations)
    lines = "".join(f"    - \"{destination}\"\n" for destination in destinations)
    return p.spec(f"network:\n  mode: allowlist\n  allow:\n{lines}")


def run(p, script, *destinations, options=()):
    """In a cage with these destinations; beside the result, what reached the internet."""
    WORLD.take()
    done = WORLD.bawn(p, script, *given(p, *destinations), *options)
    return done, WORLD.take()


def told(done):
    return f"exit {done.status}:\n{done.out}{done.err}"


def events(done):
    return [(event["type"], event["name"], event.get("port"), event["reason"])
            for event in done.record["events"] if event["type"].startswith(("net_", "name_"))]


def try_client(p, client):
    p.write("project/Client.java", pathlib.Path(__file__).with_name("Client.java").read_bytes())
    command, port = client.command.format(host=client.host), int(client.port.partition("/")[0])
    done, _ = run(p, command, f"{client.host}:{client.port}", options=client.options)
    assert done.status == 0 and client.prints in done.out, told(done)
    if client.name != "getent":
        assert ("net_allowed", client.host, port, "allowed") in events(done), done.record["events"]
    done, arrived = run(p, command, f"{ANOTHER}:443", options=client.options)
    assert done.status not in (0, 124, 125) and client.prints not in done.out, told(done)
    assert re.search(client.says, done.out + done.err), told(done)
    assert f"bawn: network: denied {client.host}" in done.err, told(done)
    assert arrived == [], arrived
    assert ("name_denied", client.host, None, "name") in events(done), done.record["events"]


def add_case(client):
    def function(p):
        try_client(p, client)
    function.__name__ = f"{client.name}_reaches_what_is_allowed"
    case(function)


for row in CLIENTS:
    add_case(row)


@case
def names_are_answered_here(p):
    """And for what is not allowed nobody outside is asked."""
    script = ("for t in A AAAA HTTPS MX; do for way in notcp tcp; do for host in www.example.org WWW.Example.ORG. "
              "denied.example.org; do echo $host $t $(dig +$way +time=2 +tries=1 $host $t | "
              "grep -oE 'status: [A-Z]+|IN[[:space:]]+(A|AAAA)[[:space:]]+[0-9a-f:.]+$'); done; done; done")
    done, arrived = run(p, script, "www.example.org:443")
    lines = done.out.splitlines()
    assert done.status == 0 and len(lines) == 24, told(done)
    for line in lines:
        host, kind, _, status, *rest = line.split()
        if host.startswith("denied"):
            assert status in ("NXDOMAIN", "REFUSED") and not rest, line
        elif kind in ("A", "AAAA"):
            assert status == "NOERROR" and len(rest) == 3 and rest[2] not in (WEB, WEB6), line
        else:
            assert len(rest) == 0, line
    assert arrived == [], arrived


@case
def every_name_server_is_the_cages_own(p):
    """Whoever is asked answers the same, and that is no denial."""
    for way in ("notcp", "tcp"):
        for server in (RESOLVER, RESOLVER6):
            script = f"dig +short +{way} +time=2 +tries=1 @{server} www.example.org A"
            done, arrived = run(p, script, "www.example.org:443")
            assert done.out.startswith("198.1") and arrived == [], (told(done), arrived)
            assert events(done) == [] and "denied" not in done.err, done.record["events"]
    script = f"{PYTHON} -c \"import socket; socket.socket(2, 2).sendto(b'x', ('{WEB}', 7))\""
    done, arrived = run(p, script, "www.example.org:443")
    assert ("net_denied", WEB, 7, "udp") in events(done) and arrived == [], (done.record["events"], arrived)


@case
def there_is_no_proxy_variable(p):
    done, _ = run(p, "env | grep -ic proxy", "www.example.org:443")
    assert done.out == "0\n", told(done)


@case
def an_alias_and_a_wildcard_lead_there(p):
    for host, entry in (("alias.example.org", "alias.example.org"), ("a.b.wild.example.org", "*.wild.example.org")):
        done, _ = run(p, f"curl -sS https://{host}/", f"{entry}:443")
        assert done.status == 0 and f'"sni": "{host}"' in done.out, told(done)
    done, arrived = run(p, "curl -sS https://wild.example.org/", "*.wild.example.org:443")
    assert done.status == 6 and arrived == [], told(done)


@case
def another_port_is_not_open(p):
    for command in ("curl -sS https://www.example.org:8443/", "bash -c 'head -n 1 </dev/tcp/www.example.org/22'"):
        done, arrived = run(p, command, "www.example.org:443")
        assert done.status not in (0, 124, 125) and arrived == [], (told(done), arrived)
    done, arrived = run(p, ASK + "http://www.example.org/", "www.example.org:443")
    assert "\n403" in done.out and "www.example.org:80 is not in network.allow" in done.out, told(done)
    assert arrived == [], arrived


@case
def an_address_is_not_a_name(p):
    ports = [f"www.example.org:{port}" for port in (443, 80, 22)]
    for command in (f"curl -sSk https://{WEB}/", f"curl -sSk https://[{WEB6}]/", f"curl -sSk https://{WEB}:8443/",
                    f"bash -c 'head -n 1 </dev/tcp/{WEB}/22'"):
        done, arrived = run(p, command, *ports)
        assert done.status not in (0, 124, 125) and arrived == [], (told(done), arrived)
    for address in (WEB, f"[{WEB6}]"):
        done, arrived = run(p, ASK + f"http://{address}/", *ports)
        assert "\n403" in done.out and f"{address}:80 is not in network.allow" in done.out, told(done)
        assert arrived == [], arrived


@case
def a_client_that_says_another_name_is_told_why(p):
    done, arrived = run(p, ASK + "-H 'Host: other.example.org' http://www.example.org/", "www.example.org:80")
    assert "\n403" in done.out and "the request names 'other.example.org'" in done.out, told(done)
    assert [row for row in arrived if row["service"] == "http"] == [], arrived
    done, arrived = run(p, "curl -sS --connect-to other.example.org:443:www.example.org:443 https://other.example.org/",
                        "www.example.org:443")
    assert done.status == 35 and "unrecognized name" in done.err, told(done)
    assert [row for row in arrived if row["service"] == "tls"] == [], arrived


if __name__ == "__main__":
    WORLD = world.enter()
    servers.add_all(WORLD)
    main()
