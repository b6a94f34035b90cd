"""Servers of the internet with manners of their own, one for each port; see PORTS.

    odd.py FILE        prints "ready", and writes down in FILE what arrived
"""

import hashlib
import http.server
import json
import socket
import socketserver
import struct
import sys
import threading
import time

PORTS = {"sum": 9001, "first": 9002, "reset": 9003, "late": 9004, "web": 9005, "held": 9006, "break": 9007}
LATE = 2  # seconds
LOG = None


def log(line):
    with open(LOG, "a", encoding="ascii") as file:
        file.write(line + "\n")


def read(sock):
    """To the end: how much it was, and its sum."""
    digest, size = hashlib.sha256(), 0
    while piece := sock.recv(1 << 16):
        digest.update(piece)
        size += len(piece)
    return f"{size} {digest.hexdigest()}"


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        getattr(self, "serve_" + self.server.manner)(self.request)

    def serve_sum(self, sock):
        """Says nothing before the client has said all; then what that was."""
        seen = read(sock)
        log(f"sum {seen}")
        sock.sendall(seen.encode())

    def serve_first(self, sock):
        """Says all it has to say, and then listens."""
        sock.sendall(b"all I have to say")
        sock.shutdown(socket.SHUT_WR)
        log(f"first {read(sock)}")

    def serve_reset(self, sock):
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def serve_break(self, sock):
        """Says all it has to say, and breaks down."""
        sock.sendall(b"so far")
        sock.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()

    def serve_held(self, sock):
        """Tells how the client ended."""
        try:
            sock.sendall(b"go")
            log(f"held {read(sock)}")
        except ConnectionResetError:
            log("held reset")

    def serve_late(self, sock):
        time.sleep(LATE)
        sock.sendall(read(sock).encode())


class Web(http.server.BaseHTTPRequestHandler):
    """Knows chunks, and websockets to the degree that it echoes afterwards."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def do_GET(self):
        if self.path == "/socket" and self.headers.get("Upgrade") == "websocket":
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            while piece := self.connection.recv(1 << 16):
                self.connection.sendall(piece)
            self.close_connection = True
            return
        body = self.body()
        seen = {"path": self.path, "body": body.decode("latin-1")[:100], "sum": hashlib.sha256(body).hexdigest(),
                "fields": {name.lower(): value for name, value in self.headers.items()}}
        content = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = daemon_threads = True
    request_queue_size = 1024

    def __init__(self, manner):
        self.manner = manner
        super().__init__(("::", PORTS[manner]), Web if manner == "web" else Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


if __name__ == "__main__":
    LOG = sys.argv[1]
    SERVERS = [Server(manner) for manner in PORTS]
    print("ready", flush=True)
    threading.Event().wait()
