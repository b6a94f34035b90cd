#!/usr/bin/env python3
"""The hosts of secrets in the tests: HTTP/1.1 over TLS, by hand, so that every byte is as it is meant.

    keyed.py PORT:CERTIFICATE:KEY …

What it does follows from the path; see the functions. Prints "ready" when it listens.
"""

import hashlib
import json
import socket
import ssl
import sys
import threading
import time

BIG = 64 << 20


def read_head(stream):
    """First line, fields as a list of pairs; None at the end."""
    line = stream.readline()
    if not line:
        return None
    fields = []
    while (field := stream.readline()) not in (b"\r\n", b""):
        name, _, value = field.decode("latin-1").partition(":")
        fields.append((name.strip(), value.strip()))
    return line.decode("latin-1").split(), fields


def read_body(stream, fields):
    """Its size and digest."""
    found, digest, size = {name.lower(): value for name, value in fields}, hashlib.sha256(), 0

    def take(left):
        nonlocal size
        while left:
            piece = stream.read(min(left, 1 << 16))
            assert piece, "the body ends early"
            digest.update(piece)
            size += len(piece)
            left -= len(piece)
    if found.get("transfer-encoding") == "chunked":
        while count := int(stream.readline(), 16):
            take(count)
            stream.readline()
        while stream.readline() not in (b"\r\n", b""):
            pass
    else:
        take(int(found.get("content-length", 0)))
    return size, digest.hexdigest()


def answer(sock, body, *fields, status="200 OK"):
    head = "".join(f"{field}\r\n" for field in fields)
    sock.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body)


def chunk(sock, text):
    sock.sendall(f"{len(text):x}\r\n".encode() + text + b"\r\n")


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n"


def hidden(name, value):
    """A key comes back as a digest: as it is, it would not pass."""
    is_key = name.lower() in ("x-key", "authorization")
    return [name, hashlib.sha256(value.encode()).hexdigest() if is_key else value]


def seen(sock, line, fields, stream):
    size, digest = read_body(stream, fields)
    fields = [hidden(*field) for field in fields]
    answer(sock, json.dumps({"line": line, "fields": fields, "size": size, "sha256": digest,
                             "port": sock.getsockname()[1], "peer": sock.getpeername()[1]}).encode(),
           "Content-Type: application/json")


def events(sock, *_):
    """A stream of events, one each tenth of a second, with when it was sent."""
    sock.sendall(CHUNKED + b"Content-Type: text/event-stream\r\n\r\n")
    for i in range(5):
        chunk(sock, f"data: {i} {time.time()}\n\n".encode())
        time.sleep(0.1)
    sock.sendall(b"0\r\nX-Sum: 5\r\n\r\n")


def big(sock, *_):
    sock.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {BIG}\r\n\r\n".encode())
    for _ in range(BIG >> 16):
        sock.sendall(b"0123456789abcdef" * (1 << 12))


def key_of(fields):
    return next(value for name, value in fields if name in ("x-key", "authorization")).removeprefix("Bearer ").encode()


def echo(sock, _, fields, __):
    answer(sock, b'{"you sent": "' + key_of(fields) + b'"}')


def echo_in_pieces(sock, _, fields, __):
    """One byte each, with a false start before."""
    key = key_of(fields)
    sock.sendall(CHUNKED + b"\r\n")
    for byte in b"before " + key[:-1] + b"! then " + key + b" after":
        chunk(sock, bytes([byte]))
    sock.sendall(b"0\r\n\r\n")


def almost(sock, _, fields, __):
    """Nearly the key, which has to arrive."""
    key = key_of(fields)
    body = b"|" + key[:-1] + b"|" + key[:-1] + b"?" + key[:4]
    sock.sendall(CHUNKED + b"\r\n")
    for at in range(0, len(body), 7):
        chunk(sock, body[at:at + 7])
    sock.sendall(b"0\r\n\r\n")


def mirror(sock, _, fields, stream):
    """What was sent, in pieces of 32 bytes."""
    body = stream.read(int(dict(fields)["Content-Length"]))
    sock.sendall(CHUNKED + b"\r\n")
    for at in range(0, len(body), 32):
        chunk(sock, body[at:at + 32])
    sock.sendall(b"0\r\n\r\n")


def echo_in_header(sock, _, fields, __):
    answer(sock, b"fine\n", "X-Debug: you sent " + key_of(fields).decode() + " to me")


def until_close(sock, *_):
    sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end\n")
    return False


def closing(sock, *_):
    answer(sock, b"the last\n", "Connection: close")
    return False


def cut(sock, *_):
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
    return False


def two_lengths(sock, *_):
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    return False


def nonsense(sock, *_):
    sock.sendall(b"SSH-2.0-what\r\n\r\n")
    return False


def nothing(*_):
    return False


def early(sock, *_):
    """An answer before the body was read."""
    answer(sock, b"too large\n", status="413 Too Large")
    time.sleep(0.2)
    return False


def early_and_busy(sock, *_):
    """The same, a while later; and it goes on without reading it."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    time.sleep(0.5)
    answer(sock, b"too large\n", status="413 Too Large")
    time.sleep(1.5)
    return False


def empty(sock, *_):
    sock.sendall(b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n")


def hint(sock, line, fields, stream):
    sock.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    seen(sock, line, fields, stream)


GONE = threading.Event()


def gone(sock, *_):
    """At work for as long as somebody waits for it."""
    GONE.clear()
    sock.settimeout(20)
    if sock.recv(1) == b"":
        GONE.set()
    return False


def was_gone(sock, *_):
    answer(sock, b"yes" if GONE.is_set() else b"no")


PATHS = {"/events": events, "/big": big, "/echo": echo, "/pieces": echo_in_pieces, "/almost": almost,
         "/mirror": mirror, "/header": echo_in_header, "/until-close": until_close, "/closing": closing, "/cut": cut,
         "/two-lengths": two_lengths, "/nonsense": nonsense, "/nothing": nothing, "/early": early,
         "/early-and-busy": early_and_busy, "/empty": empty,
         "/hint": hint, "/gone": gone, "/was-gone": was_gone}


def serve(sock, context):
    try:
        with context.wrap_socket(sock, server_side=True) as tls, tls.makefile("rb") as stream:
            while (head := read_head(stream)) is not None:
                line, fields = head
                if "100-continue" in (value for name, value in fields if name.lower() == "expect"):
                    tls.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                if line[0] == "HEAD":
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n")
                    continue
                if PATHS.get(line[1].partition("?")[0], seen)(tls, line, fields, stream) is False:
                    tls.unwrap()
                    return
    except OSError:
        pass  # that a client went away, or did not like the certificate, is its own affair


def listen(port, certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["h2", "http/1.1"])
    listener = socket.create_server(("::", int(port)), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
    while True:
        sock, _ = listener.accept()
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=[sock, context], daemon=True).start()


def main():
    threads = [threading.Thread(target=listen, args=word.split(":"), daemon=True) for word in sys.argv[1:]]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    print("ready", flush=True)
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
