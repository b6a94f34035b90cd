"""What the suites about the gate share: a program of Python's in a cage, and what is said about it afterwards."""

import contextlib
import json
import os
import pathlib

import records

PYTHON = "/usr/bin/python3"

# The beginning of every program in a cage.
PRELUDE = """
import hashlib, os, signal, socket, ssl, struct, sys, threading, time

def connect(host, port, family=0):
    for family, kind, _, _, address in socket.getaddrinfo(host, port, family, socket.SOCK_STREAM):
        sock = socket.socket(family, kind)
        sock.settimeout(30)
        sock.connect(address)
        return sock

def read(sock):
    pieces = []
    while piece := sock.recv(1 << 16):
        pieces.append(piece)
    return b"".join(pieces)

def attempt(host, port, said=b"", family=0):
    'What comes back, or how it ended.'
    try:
        with connect(host, port, family) as sock:
            sock.sendall(said)
            return read(sock).decode("latin-1")
    except OSError as error:
        return type(error).__name__

def ask(host, said, port=80):
    return attempt(host, port, said.replace("\\n", "\\r\\n").encode())
"""


def spec(p, allow=(), host_ports=(), publish=(), more=""):
    """The options of a run with a gate."""
    lists = {"allow": allow, "host_ports": host_ports, "publish": publish}
    lines = "".join(f"  {name}: {json.dumps(list(values))}\n" for name, values in lists.items() if values)
    return p.spec(f"network:\n  mode: allowlist\n{lines}{more}")


def start(p, program, options, **more):
    """A program in a cage, in the background; its record will be at p.top / records.FILE."""
    p.write("project/program.py", PRELUDE + program)
    options = ["--record", p.top / records.FILE, *options]
    return p.start("run", *options, "--", PYTHON, "/work/program.py", **more)


def run(world, p, program, options, status=0, **more):
    """The same to its end, which is good unless said otherwise."""
    p.write("project/program.py", PRELUDE + program)
    done = world.bawn(p, f"{PYTHON} /work/program.py", *options, **more)
    assert done.status == status, f"exit {done.status}:\n{done.out}{done.err}"
    return done


def say(world, p, program, options, **more):
    """What it printed, as lines."""
    return run(world, p, program, options, **more).out.splitlines()


def events(record):
    """{(type, name, port, reason): event}; each is there once."""
    found = {}
    for event in record["events"]:
        key = (event["type"], event.get("name"), event.get("port"), event.get("reason"))
        if event["type"] in ("net_allowed", "net_denied", "net_failed", "name_denied", "published", "network_closed"):
            assert key not in found or event.get("other") or event.get("address"), f"twice: {key}"
            found[key] = event
    return found


def children(pid):
    """{name: pid} of the processes below one, by what they call themselves."""
    found, todo = {}, [pid]
    while todo:
        for task in pathlib.Path(f"/proc/{todo.pop()}/task").glob("*/children"):
            with contextlib.suppress(OSError):  # some end meanwhile
                for child in map(int, task.read_text().split()):
                    words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
                    found[os.fsdecode(words[0])] = child
                    todo.append(child)
    return found
