"""The internet of the tests: one process, in a network namespace of its own, that is every server there.

On each of ADDRESSES the same services answer, public or not:

  53       names, by UDP and TCP, from a zone that can be changed while it runs
  80       HTTP, 443 the same over TLS: files, what a server of the test's answers, or what was seen of the request, as JSON
  7        echo, by TCP and UDP
  22       speaks first: a line with the canary, and then echo

8080, 8443 and 2222 are more ports of HTTP, TLS and the greeting. Everything that arrives is written down: what
is not in the list did not come.

A zone is {name: entry}; the name may begin with "*.". An entry is a dict, where all is optional:

  A, AAAA     lists of addresses
  CNAME       a name; what it leads to is in the answer too, if it is in the zone
  ttl         in seconds; 60 if not said
  rcode       the answer is that error
  silent      there is no answer
  truncated   by UDP there is only the advice to come by TCP
  turns       a list of entries, one for each query of the same type; the last one stays

A name that is not in the zone does not exist.
"""

import http.client
import http.server
import json
import os
import pathlib
import secrets
import selectors
import socket
import socketserver
import ssl
import struct
import subprocess
import threading

RESOLVER = "45.33.32.53"
RESOLVER6 = "2600:3c01::53"
PUBLIC = ("93.184.216.34", "93.184.216.35", "45.33.32.156", RESOLVER, "2606:2800:220:1::34", "2606:2800:220:1::35",
          RESOLVER6)
METADATA = "169.254.169.254"
RESERVED = ("10.9.8.7", "172.16.8.7", "192.168.8.7", "100.64.8.7", METADATA, "100.100.100.200", "168.63.129.16",
            "198.18.8.7", "240.0.8.7", "fd00:9::7", "fd00:ec2::254", "64:ff9b::a09:807", "2002:a09:807::7")
ADDRESSES = (*PUBLIC, *RESERVED)

A, CNAME, AAAA = 1, 5, 28
TYPES = {A: "A", CNAME: "CNAME", AAAA: "AAAA", 12: "PTR", 15: "MX", 16: "TXT", 65: "HTTPS"}
NXDOMAIN, NOTIMP = 3, 4
NAMES_PORT, ECHO_PORT = 53, 7
HTTP_PORTS, TLS_PORTS, GREETING_PORTS = (80, 8080), (443, 8443), (22, 2222)


class Log:
    """What arrived, in order."""

    def __init__(self):
        self.lock, self.rows = threading.Lock(), []

    def add(self, service, **row):
        with self.lock:
            self.rows.append({"service": service, **row})

    def take(self):
        with self.lock:
            rows, self.rows = self.rows, []
        return rows


# --- names ---

class Names:
    def __init__(self, log):
        self.log, self.zone, self.turns = log, {}, {}

    def find(self, name, kind):
        """The entry for this query; None if there is no such name."""
        labels = name.split(".")
        candidates = [name] + ["*." + ".".join(labels[i:]) for i in range(1, len(labels))]
        key = next((candidate for candidate in candidates if candidate in self.zone), None)
        if key is None:
            return None
        entry = self.zone[key]
        if "turns" in entry:
            turn = self.turns.get((name, kind), 0)
            self.turns[name, kind] = turn + 1
            entry = entry["turns"][min(turn, len(entry["turns"]) - 1)]
        return entry

    def collect(self, name, kind, answers, depth=0):
        """Appends what the zone says to `answers`; the entry that decided, or None."""
        entry = self.find(name, kind)
        if entry is None:
            return None
        ttl = entry.get("ttl", 60)
        if "CNAME" in entry:
            answers.append((name, CNAME, ttl, pack_name(entry["CNAME"])))
            if depth < 10:
                return self.collect(entry["CNAME"].lower(), kind, answers, depth + 1) or entry
        family = {A: socket.AF_INET, AAAA: socket.AF_INET6}.get(kind)
        for address in entry.get(TYPES.get(kind), []) if family else []:
            answers.append((name, kind, ttl, socket.inet_pton(family, address)))
        return entry

    def answer(self, query, by, to):
        """The bytes of the answer, or None."""
        try:
            name, kind, end = read_question(query)
        except (IndexError, struct.error):
            self.log.add("names", by=by, to=to, name=None, type=None)
            return None
        self.log.add("names", by=by, to=to, name=name, type=TYPES.get(kind, str(kind)))
        answers = []
        entry = self.collect(name.lower(), kind, answers)
        if entry is not None and entry.get("silent"):
            return None
        rcode = NXDOMAIN if entry is None and not answers else entry.get("rcode", 0) if entry else 0
        is_truncated = by == "udp" and entry is not None and entry.get("truncated", False)
        if is_truncated or rcode:
            answers = []
        flags = 0x8180 | (0x0200 if is_truncated else 0) | rcode
        head = query[:2] + struct.pack("!HHHHH", flags, 1, len(answers), 0, 0) + query[12:end]
        return head + b"".join(pack_name(owner) + struct.pack("!HHIH", type_, 1, ttl, len(value)) + value
                               for owner, type_, ttl, value in answers)


def pack_name(name):
    labels = [label.encode("latin-1") for label in name.rstrip(".").split(".")]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def read_question(query):
    """Name, type and where the question ends."""
    at, labels = 12, []
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    (kind,) = struct.unpack_from("!H", query, at + 1)
    return ".".join(labels), kind, at + 5


# --- certificates ---

class Authority:
    """An authority of the tests' own, and a certificate for whatever name is asked for."""

    def __init__(self, folder):
        self.folder, self.lock, self.contexts = folder, threading.Lock(), {}
        self.ca = folder / "ca.pem"
        self.openssl("ca", "/CN=The authority of the tests", ["-addext", "basicConstraints=critical,CA:TRUE",
                                                              "-addext", "keyUsage=critical,keyCertSign,cRLSign"])

    def openssl(self, name, subject, options):
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        subprocess.run(["openssl", "req", "-x509", *key, "-days", "30", "-subj", subject, "-keyout",
                        self.folder / f"{name}.key", "-out", self.folder / f"{name}.pem", *options],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def files(self, name):
        """Certificate and key for a name."""
        if not (self.folder / f"{name}.pem").exists():
            self.openssl(name, "/CN=server", ["-addext", f"subjectAltName=DNS:{name}", "-CA", str(self.ca), "-CAkey",
                                              str(self.folder / "ca.key"), "-addext", "basicConstraints=CA:FALSE"])
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")

    def context(self, name):
        with self.lock:
            if name not in self.contexts:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*self.files(name))
                context.set_alpn_protocols(["http/1.1"])
                context.sni_callback = self.choose
                self.contexts[name] = context
            return self.contexts[name]

    def choose(self, sock, name, _):
        sock.asked_for = name
        if name and set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"):
            sock.context = self.context(name.lower())


# --- servers ---

class Server(socketserver.ThreadingTCPServer):
    """On one port of all addresses."""
    address_family = socket.AF_INET6
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024

    def __init__(self, port, handler, internet):
        self.internet = internet
        super().__init__(("::", port), handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        super().server_bind()

    def verify_request(self, request, client_address):
        """Runs in the order of arrival."""
        if client_address[0] == "::1":
            self.internet.settled.release()
            return False
        address, port = here(request)
        self.internet.log.add("tcp", address=address, port=port)
        return True

    def handle_error(self, request, client_address):
        pass  # that a client went away is its own affair


def here(sock):
    """The address that a client connected to, and the port."""
    address, port = sock.getsockname()[:2]
    return address.removeprefix("::ffff:"), port


class Web(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    is_tls = False

    def setup(self):
        if self.is_tls:
            address, port = here(self.request)
            try:
                self.request = self.server.internet.authority.context("no-name.invalid").wrap_socket(
                    self.request, server_side=True)
            except OSError as error:
                self.server.internet.log.add("tls", address=address, port=port, sni=None, error=str(error))
                raise
        super().setup()

    def answer(self):
        address, port = here(self.request)
        seen = {"address": address, "port": port, "host": self.headers.get("Host"), "path": self.path,
                "method": self.command, "sni": getattr(self.request, "asked_for", None)}
        self.server.internet.log.add("tls" if self.is_tls else "http", **seen)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if body:
            seen["length"] = len(body)
        status, kind, content = (self.ask_backend(body) or self.find()
                                 or (200, "application/json", json.dumps(seen).encode() + b"\n"))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = answer

    def handle_expect_100(self):
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def ask_backend(self, body):
        """The answer of a server that do_backend named for this host; None for other hosts."""
        port = self.server.internet.backends.get((self.headers.get("Host") or "").partition(":")[0])
        if port is None:
            return None
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request(self.command, self.path, body, dict(self.headers))
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type", "text/plain"), answer.read()

    def find(self):
        """A file that the host of this name has, or that it has none; None for a host without files."""
        host = (self.headers.get("Host") or "").partition(":")[0]
        folder = self.server.internet.folder / "files" / host
        if not host or "/" in host or not folder.is_dir():
            return None
        path = folder / self.path.partition("?")[0].lstrip("/")
        path = path / "index.html" if path.is_dir() else path
        if ".." in path.parts or not path.is_file():
            return 404, "text/plain", b"there is no such file\n"
        kinds = {".html": "text/html", ".json": "application/json"}
        return 200, kinds.get(path.suffix, "application/octet-stream"), path.read_bytes()

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class SecureWeb(Web):
    is_tls = True


class Echo(socketserver.BaseRequestHandler):
    is_first = False

    def handle(self):
        if self.is_first:
            self.request.sendall(b"SSH-2.0-" + self.server.internet.canary.encode() + b"\r\n")
        while True:
            piece = self.request.recv(65536)
            if not piece:
                return
            self.request.sendall(piece)


class Greeting(Echo):
    is_first = True


class NamesByTCP(socketserver.StreamRequestHandler):
    def handle(self):
        address, _ = here(self.request)
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            answer = self.server.internet.names.answer(self.rfile.read(struct.unpack("!H", head)[0]), "tcp", address)
            if answer:
                self.wfile.write(struct.pack("!H", len(answer)) + answer)


def serve_datagrams(internet):
    """Names and echo by UDP. A socket for each address, which the answers come from then."""
    chosen = selectors.DefaultSelector()
    for address in ADDRESSES:
        for port in (NAMES_PORT, ECHO_PORT):
            sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
            sock.bind((address, port))
            chosen.register(sock, selectors.EVENT_READ, (address, port))
    while True:
        for key, _ in chosen.select():
            address, port = key.data
            content, peer = key.fileobj.recvfrom(65536)
            if content == internet.mark:
                internet.settled.release()
                continue
            if port == NAMES_PORT:
                content = internet.names.answer(content, "udp", address)
            else:
                internet.log.add("udp", address=address, port=port)
            if content is not None:
                key.fileobj.sendto(content, peer)


class Internet:
    """All of it; the methods that begin with do_ are what tests can ask for."""

    def __init__(self, folder, canary):
        self.folder, self.canary = pathlib.Path(folder), canary
        (self.folder / "files").mkdir()
        (self.folder / "keys").mkdir()
        self.log, self.processes, self.backends = Log(), [], {}
        self.mark, self.settled, self.ports = secrets.token_bytes(16), threading.Semaphore(0), []
        self.names = Names(self.log)
        self.authority = Authority(self.folder / "keys")

    def start(self):
        handlers = {NAMES_PORT: NamesByTCP, ECHO_PORT: Echo, **dict.fromkeys(HTTP_PORTS, Web),
                    **dict.fromkeys(TLS_PORTS, SecureWeb), **dict.fromkeys(GREETING_PORTS, Greeting)}
        for port, handler in handlers.items():
            Server(port, handler, self)
            self.ports.append(port)
        threading.Thread(target=serve_datagrams, args=[self], daemon=True).start()

    def do_zone(self, entries):
        """Entries that are new or others; None takes a name away."""
        for name, entry in entries.items():
            self.names.zone.pop(name, None)
            if entry is not None:
                self.names.zone[name] = entry
        self.names.turns.clear()

    def do_take(self):
        """All that arrived until now: what we send ourselves is seen after what was sent before."""
        for port in self.ports:
            socket.create_connection(("::1", port)).close()
        for address in ADDRESSES:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as sock:
                for port in (NAMES_PORT, ECHO_PORT):
                    sock.sendto(self.mark, (address, port))
        for _ in range(len(self.ports) + 2 * len(ADDRESSES)):
            assert self.settled.acquire(timeout=10), "a server hangs"
        return self.log.take()

    def do_spawn(self, command):
        """One more server, to the end of the tests. It is ready when it has printed a line, which is returned."""
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.processes.append(process)
        return process.stdout.readline().decode()

    def do_backend(self, host, port):
        """Requests for this host are answered by a server on the internet's own loopback."""
        self.backends[host] = port

    def do_certificate(self, name):
        return self.authority.files(name)

    def done(self):
        for process in self.processes:
            process.kill()
            process.wait()

    def serve(self, stream):
        """Carries out one line of the tests'; false at its end."""
        line = stream.readline()
        if not line:
            return False
        question = json.loads(line)
        try:
            answer = {"result": getattr(self, "do_" + question.pop("do"))(**question)}
        except Exception as error:  # the test that asked is told
            answer = {"error": f"{type(error).__name__}: {error}"}
        stream.write(json.dumps(answer).encode() + b"\n")
        stream.flush()
        return True


def address_commands(link):
    """What ip(8) has to do for an end of a link that has all addresses."""
    lines = ["link set lo up", f"link set {link} up"]
    for address in ADDRESSES:
        lines.append(f"address add {address} dev lo" + (" nodad" if ":" in address else ""))
    return lines


def run_ip(*lines):
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True,
                   env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"})
