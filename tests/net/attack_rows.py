"""The attacks on a cage with network: allowlist, by the ids of the escape suite; attacks.py carries them out.

A row's attack is refused in a cage that allows what `allow` says, and gets through in its pair: a cage that allows
this too, or in which the protection is taken out.
"""

import dataclasses
import pathlib
import sys
import typing

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "escape"))
from internet import METADATA, RESOLVER, RESOLVER6  # noqa: E402
from pair import Broken, Nowhere, Opened, broken, opened  # noqa: E402,F401
from world import GATEWAY, GATEWAY6, HOST as OWN, HOST6 as OWN6, OTHER, OTHER6, WEB, WEB6  # noqa: E402

NAME = "www.example.org"
ALLOW = (f"{NAME}:443", f"{NAME}:80", f"{NAME}:22", f"{NAME}:2222")
HOST = opened("--network", "host")
UNFILTERED = broken("syscalls", options=("--network", "host"))
HOST_PORT = 2222  # where the host greets, on all of its addresses
TCP, UDP = 6, 17


@dataclasses.dataclass(frozen=True)
class Declared:
    """The same cage, with more destinations."""
    more: tuple

    def __str__(self):
        return "with " + " ".join(self.more)


@dataclasses.dataclass(frozen=True)
class Instead:
    """The same cage, with other destinations."""
    allow: tuple

    def __str__(self):
        return "allowing " + " ".join(self.allow)


def declared(*more):
    return Declared(more)


def instead(*allow):
    return Instead(allow)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of one run: what the attacker said, what arrived in the internet, what left the host."""
    done: typing.Any
    arrived: list
    left: list


# --- what shows that an attack got through ---

def replied(outcome):
    return outcome.done.status == 0


def asked(outcome):
    """A name server outside has heard of it."""
    return any(row["service"] == "names" for row in outcome.arrived)


def answered(outcome):
    return replied(outcome) or asked(outcome)


def connected(outcome):
    return any(row["service"] == "tcp" for row in outcome.arrived)


def left(protocol):
    return lambda outcome: any(packet[0] == protocol for packet in outcome.left)


def served(outcome):
    """A server got the request that must not arrive."""
    return any("attack" in (row.get("path") or "") for row in outcome.arrived)


@dataclasses.dataclass
class Row:
    id: str
    name: str
    attack: tuple
    pair: typing.Any
    proof: typing.Callable = replied
    allow: tuple = ALLOW
    zone: dict = dataclasses.field(default_factory=dict)
    leaves: bool = False  # something may leave: what is allowed is a part of the attack


ROWS = []


def add(*args, **more):
    ROWS.append(Row(*args, **more))


# --- T301, T302, T303: sockets of every kind ---

for _address in (WEB, OTHER, WEB6, OTHER6):
    _id, _where = ("T302", f"[{_address}]") if ":" in _address else ("T301", _address)
    add(_id, f"TCP to {_address} where the gate listens", ("tcp", _address, "22"), declared(f"{_where}:22"))
    add(_id, f"TCP to {_address} at a port of the cage's", ("tcp", _address, "2222"), declared(f"{_where}:2222"))
    add(_id, f"UDP to {_address}", ("udp", _address, "7"), HOST)
    add(_id, f"ping to {_address}", ("send", "ping", _address), HOST, left(58 if ":" in _address else 1))
add("T301", "HTTP to an address, with the name of a host that is allowed",
    ("say", WEB, "80", f"GET /attack HTTP/1.1\\r\\nHost: {NAME}\\r\\n\\r\\n"), declared(f"{WEB}:80"))
add("T301", "TLS to an address, with the name of a host that is allowed", ("tls", WEB, "443", NAME),
    declared(f"{WEB}:443"))
_RIGHT = Nowhere("nobody in a cage has the right; the escape suite shows what takes it away")
add("T301", "raw packets", ("send", "raw", WEB), _RIGHT, left(253))
add("T302", "raw packets over IPv6", ("send", "raw", WEB6), _RIGHT, left(253))
add("T301", "packets without the kernel's heads", ("send", "packet", WEB), _RIGHT, left(253))
for _address in (WEB, WEB6):
    add("T303", f"MPTCP to {_address}", ("mptcp", _address, "22"), UNFILTERED)
    for _way in ("message", "connect"):
        _where = f"[{_address}]" if ":" in _address else _address
        add("T303", f"fast open by {_way} to {_address}", (f"fastopen_by_{_way}", _address, "22"),
            declared(f"{_where}:22"))
    for _kind, _protocol in (("sctp", 132), ("dccp", 33), ("udplite", 136)):
        add("T303", f"{_kind} to {_address}", ("send", _kind, _address), UNFILTERED, left(_protocol))

# --- T304: addresses that are nobody's business ---

for _address in ("127.0.0.1", "::1", OWN, OWN6, "0.0.0.0", "::", f"::ffff:{OWN}", "::ffff:127.0.0.1"):
    add("T304", f"the host at {_address}", ("tcp", _address, str(HOST_PORT)), HOST)
for _address in (GATEWAY, GATEWAY6, METADATA, "100.100.100.200", "168.63.129.16", "fd00:ec2::254",
                 "fd00:9::7", "64:ff9b::a09:807", "2002:a09:807::7", "10.9.8.7", f"::ffff:{METADATA}"):
    _where = f"[{_address}]" if ":" in _address else _address
    add("T304", f"TCP to {_address}", ("tcp", _address, "22"),
        HOST if _address.startswith("::ffff:") else declared(f"{_where}:22"))
    if not _address.startswith("::ffff:") and _address not in (GATEWAY, GATEWAY6):
        add("T304", f"a name that leads to {_address}", ("tcp", "lead.example.net", "22"), declared(f"{_where}:22"),
            allow=("lead.example.net:22",), leaves=True,
            zone={"lead.example.net": {"AAAA" if ":" in _address else "A": [_address]}})
add("T304", "a name that leads to a mapped address", ("tcp", "lead.example.net", "22"), declared("10.9.8.7:22"),
    allow=("lead.example.net:22",), leaves=True,
    zone={"lead.example.net": {"AAAA": ["::ffff:10.9.8.7"], "A": ["10.9.8.7"]}})
add("T304", "a name that leads to the host", ("tcp", "lead.example.net", str(HOST_PORT)),
    declared(f"{OWN}:{HOST_PORT}"), allow=(f"lead.example.net:{HOST_PORT}",), leaves=True,
    zone={"lead.example.net": {"A": [OWN]}})

# --- T305: names as a way out ---

for _server in (RESOLVER, RESOLVER6, WEB):
    for _by in ("udp", "tcp"):
        add("T305", f"a name asked of {_server} by {_by}", ("ask", _server, "1", "other.example.org", _by), HOST,
            answered)
for _kind, _number in (("TXT", "16"), ("NULL", "10"), ("ANY", "255"), ("HTTPS", "65"), ("MX", "15")):
    add("T305", f"a query of type {_kind}", ("ask", RESOLVER, _number, f"secret.{NAME}"), HOST, asked)
    add("T305", f"a query of type {_kind} for a name that is allowed", ("ask", RESOLVER, _number, NAME), HOST, asked)
add("T305", "a secret in labels", ("ask", RESOLVER, "1", f"c2VjcmV0.{NAME}"), HOST, asked)
add("T305", "a secret in long labels", ("ask", RESOLVER, "1", ".".join(["a" * 63] * 3) + ".example.org"), HOST, asked)
add("T305", "a secret in labels below a wildcard", ("ask", RESOLVER, "1", "c2VjcmV0.wild.example.org"), HOST, asked,
    allow=("*.wild.example.org:443",))
add("T305", "DNS over TLS", ("tcp", RESOLVER, "853"), HOST, left(TCP))
add("T305", "DNS over QUIC", ("udp", RESOLVER, "853"), HOST, left(UDP))
add("T305", "DNS over HTTPS", ("tls", RESOLVER, "443", "dns.example.org"), HOST)

# --- T307, T308: names that change ---

# The loopback itself is reached by no declared network, which has no twin: caller.py has it.
_LOCAL = {"A": [OWN], "ttl": 0}
for _name, _entry in (
        ("this machine after a public address", {"turns": [{"A": [WEB], "ttl": 0}, _LOCAL]}),
        ("this machine beside a public address that is closed", {"A": ["93.184.216.99", OWN], "ttl": 0}),
        ("an alias of a name for this machine", {"CNAME": "host.example.org"})):
    add("T307", _name, ("tcp_twice", "turning.example.net", str(HOST_PORT)), declared(f"{OWN}:{HOST_PORT}"),
        allow=(f"turning.example.net:{HOST_PORT}",), zone={"turning.example.net": _entry}, leaves=True)
add("T308", "an address that was remembered, when its name leads to this machine",
    ("tcp_pinned", "turning.example.net", str(HOST_PORT)), declared(f"{OWN}:{HOST_PORT}"),
    allow=(f"turning.example.net:{HOST_PORT}",), leaves=True,
    zone={"turning.example.net": {"turns": [{"A": [WEB], "ttl": 0}, _LOCAL]}})
add("T307", "a private address beside a public one", ("tcp", "turning.example.net", "22"), declared("10.0.0.0/8:22"),
    lambda outcome: any(row.get("address") == "10.9.8.7" for row in outcome.arrived),
    allow=("turning.example.net:22",), zone={"turning.example.net": {"A": ["10.9.8.7", WEB]}}, leaves=True)
add("T307", "an alias of an internal name", ("tcp", "turning.example.net", "22"),
    declared("10.0.0.0/8:22"), allow=("turning.example.net:22",), leaves=True,
    zone={"turning.example.net": {"CNAME": "private.example.org"}})

# --- T309: names that are none ---

for _name, _word in (("NUL after a good name", f"{NAME}\\0.example.net"), ("NUL before its end", "www.example\\0.org"),
                     ("a control byte", "www\\x01.example.org"), ("a line", "www\\n.example.org"),
                     ("a byte above ASCII", "www\\xff.example.org"), ("a space", "www .example.org"),
                     ("percent", "www%2eexample.org"), ("a zone", f"{NAME}%lo"), ("digits", "2130706433"),
                     ("hex digits", "0x7f000001"), ("an address", "127.0.0.1.example.org"),
                     ("a slash", "www/.example.org"), ("more than 255 bytes", "a." * 130 + NAME),
                     ("an empty name", ""), ("a name below", f"x.{NAME}"), ("the name above", "example.org"),
                     ("the name's end", "ww.example.org"), ("a longer end", "xwww.example.org")):
    add("T309", f"a name: {_name}", ("ask", RESOLVER, "1", _word), HOST, answered)
add("T309", "a name: capitals, and a dot at its end", ("ask", RESOLVER, "1", "OTHER.Example.ORG."),
    declared("other.example.org:443"))

# --- T310: who the hello is for ---

_ANY = instead(f"{NAME}:443/tcp", "other.example.org:443/tcp")
_BOTH = (f"{NAME}:443", "other.example.org:443")
for _cut in ("whole", "bytes", "records"):
    add("T310", f"a hello for a host that is denied, {_cut}", ("tls", NAME, "443", "denied.example.org", _cut), _ANY)
    add("T310", f"a hello for another host that is allowed, {_cut}", ("tls", NAME, "443", "other.example.org", _cut),
        _ANY, allow=_BOTH)
    add("T310", f"a hello without a name, {_cut}", ("tls", NAME, "443", "-", _cut), _ANY)
    add("T310", f"a hello to and for a host that is denied, {_cut}",
        ("tls", "other.example.org", "443", "other.example.org", _cut), declared("other.example.org:443"))
add("T310", "an encrypted hello in one for a host that is denied", ("tls", NAME, "443", "denied.example.org", "ech"),
    _ANY, connected)
add("T310", "plain text where TLS is declared", ("say", NAME, "443", "hello\\r\\n\\r\\n"), _ANY, connected)
add("T310", "a request where TLS is declared",
    ("say", NAME, "443", f"GET /attack HTTP/1.1\\r\\nHost: {NAME}\\r\\n\\r\\n"), _ANY, connected)
add("T310", "TLS where HTTP is declared", ("tls", NAME, "80", NAME), instead(f"{NAME}:80/tcp"), connected)

# --- T311: requests that are read in two ways ---

_GET = "GET /attack HTTP/1.1\\r\\n"
_GOOD, _BAD = f"Host: {NAME}\\r\\n", "Host: other.example.org\\r\\n"
_FIRST = f"GET /first HTTP/1.1\\r\\n{_GOOD}\\r\\n"
_POST = f"POST /first HTTP/1.1\\r\\n{_GOOD}"
_HIDDEN = f"{_GET}{_BAD}\\r\\n"
_REQUESTS = (
    ("another Host", (f"{_GET}{_BAD}\\r\\n",)),
    ("a target of another host", (f"GET http://other.example.org/attack HTTP/1.1\\r\\n{_GOOD}\\r\\n",)),
    ("another Host beside a good target", (f"GET http://{NAME}/attack HTTP/1.1\\r\\n{_BAD}\\r\\n",)),
    ("two Hosts", (f"{_GET}{_GOOD}{_BAD}\\r\\n",)),
    ("no Host", (f"{_GET}Accept: a\\r\\n\\r\\n",)),
    ("a Host with more behind it", (f"{_GET}Host: {NAME}, other.example.org\\r\\n\\r\\n",)),
    ("a Host with a user", (f"{_GET}Host: {NAME}@other.example.org\\r\\n\\r\\n",)),
    ("a Host at another port", (f"{_GET}Host: {NAME}:8080\\r\\n\\r\\n",)),
    ("a folded Host", (f"{_GET}Host: {NAME}\\r\\n other.example.org\\r\\n\\r\\n",)),
    ("a space before the colon", (f"{_GET}{_GOOD}Host : other.example.org\\r\\n\\r\\n",)),
    ("lines that end with LF", (f"GET /attack HTTP/1.1\\nHost: {NAME}\\n\\n",)),
    ("NUL in a field", (f"{_GET}{_GOOD}X: a\\0b\\r\\n\\r\\n",)),
    ("a second request for another host", (f"{_FIRST}{_HIDDEN}",)),
    ("a second request for another host, later", (_FIRST, _HIDDEN)),
    ("a length beside chunks, the length short",
     (f"{_POST}Content-Length: 5\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n{_HIDDEN}",)),
    ("chunks that hide a request from the length",
     (f"{_POST}Transfer-Encoding: chunked\\r\\nContent-Length: 4\\r\\n\\r\\n3e\\r\\n{_HIDDEN}\\r\\n0\\r\\n\\r\\n",)),
    ("two lengths", (f"{_POST}Content-Length: 0\\r\\nContent-Length: 80\\r\\n\\r\\n{_HIDDEN}",)),
    ("a length with a sign", (f"{_POST}Content-Length: +0\\r\\n\\r\\n{_HIDDEN}",)),
    ("a folded length", (f"{_POST}Content-Length:\\r\\n 0\\r\\n\\r\\n{_HIDDEN}",)),
    ("a request behind a websocket that the server does not want",
     (f"GET /first HTTP/1.1\\r\\n{_GOOD}Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n{_HIDDEN}",)),
    ("a request behind an offer of HTTP/2",
     (f"GET /first HTTP/1.1\\r\\n{_GOOD}Connection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\n"
      f"HTTP2-Settings: AAMAAABkAAQAAP__\\r\\n\\r\\n{_HIDDEN}",)),
    ("chunks by another name", (f"{_POST}Transfer-Encoding: xchunked\\r\\n\\r\\n{_HIDDEN}",)),
)
for _name, _pieces in _REQUESTS:
    add("T311", _name, ("say", NAME, "80", *_pieces), instead(f"{NAME}:80/tcp"), served, leaves=True)
for _name, _piece in (("CONNECT", f"CONNECT other.example.org:443 HTTP/1.1\\r\\n{_GOOD}\\r\\n"),
                      ("the preface of HTTP/2", "PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n"),
                      ("SOCKS", "\\x05\\x01\\x00\\r\\n\\r\\n"), ("something else", "SSH-2.0-attack\\r\\n")):
    add("T311", _name, ("say", NAME, "80", _piece), instead(f"{NAME}:80/tcp"), connected)

# --- T313: an allow-list that allows nothing ---

add("T313", "a host, with an empty allow-list", ("tls", NAME, "443", NAME), instead(f"{NAME}:443"), allow=())
add("T313", "a name, with an empty allow-list", ("resolve", NAME, "other.example.org"), instead(f"{NAME}:443"),
    allow=())
