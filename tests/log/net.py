#!/usr/bin/env python3
"""What a gate decides, in the log: at once when it is new, and at the end with its last numbers.

    net.py BAWN BREAKABLE        prints TAP
"""

import os
import pathlib
import signal
import socket
import sys
import time

import events
from events import last, of_type, state

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "net"))
import world  # noqa: E402
from caged import children, run, spec, start  # noqa: E402
from place import SLOW, case, main, wait_until  # noqa: E402

WORLD = None
NAME = "www.example.org"
TYPES = ("net_allowed", "net_denied", "net_failed", "name_denied", "published", "decisions_untold", "network_closed")
# Of requests by bawn-host: tests/net/vault.py
MEMBERS_ELSEWHERE = {(kind, "secret") for kind in ("net_allowed", "net_denied", "net_failed")}


def decisions(told):
    """What was decided, in the order in which it was said: the last of a row has its final numbers."""
    rows = {}
    for event in told:
        if event["type"] in TYPES:
            key = tuple(event.get(name) for name in ("type", "name", "port", "protocol", "reason", "other", "address"))
            rows.setdefault(key, []).append(event)
    return rows


def bare(event):
    return {key: value for key, value in events.same(event).items() if key not in ("time", "run", "session")}


def check_against_record(told, record):
    final = [bare(row[-1]) for row in decisions(told).values()]
    wanted = [event for event in record["events"] if event["type"] in TYPES]
    assert sorted(final, key=str) == sorted(wanted, key=str), "the log ends with what the record has"


@case
def each_decision_is_told_at_once_and_again_with_its_last_numbers(p):
    process = start(p, """
print(ask("www.example.org", "GET / HTTP/1.0\\nHost: www.example.org\\n\\n")[:4], flush=True)
sys.stdin.readline()
print(ask("www.example.org", "GET / HTTP/1.0\\nHost: www.example.org\\n\\n")[:4])
print(ask("www.example.org", "GET / HTTP/1.0\\nHost: other.example.org\\n\\n")[:4])
print(attempt("denied.example.org", 80), attempt("www.example.org", 81), attempt("www.example.org", 9))
""", spec(p, [f"{NAME}:80", f"{NAME}:9"]))
    assert process.stdout.readline() == b"HTTP\n"
    wait_until(lambda: of_type(state(p, is_torn=True), "net_allowed"), 10, "it is told while the run goes on")
    first = of_type(state(p), "net_allowed")
    assert (first[0]["name"], first[0]["port"], first[0]["times"]) == (NAME, 80, 1), first
    process.communicate(b"\n", timeout=30 * SLOW)
    assert process.returncode == 0
    told = last(p)
    rows = decisions(told)
    again = next(row for key, row in rows.items() if key[:3] == ("net_allowed", NAME, 80))
    assert [event["times"] for event in again] == [1, 2] and again[-1]["bytes_in"] > 0, again
    assert all(len(row) <= 2 for row in rows.values()), rows
    kinds = {key[0] for key in rows}
    assert kinds == {"net_allowed", "net_denied", "net_failed", "name_denied"}, kinds
    # The last numbers come before the end, which comes last.
    assert told[-1]["type"] == "run_end" and told.index(again[-1]) > told.index(again[0])
    check_against_record(told, p.record())


@case
def ports_that_lead_in_are_told(p):
    process = start(p, """
server = socket.create_server(("127.0.0.1", 7000))
print("ready", flush=True)
held, _ = server.accept()
held.sendall(b"hello")
held.close()
""", spec(p, publish=["7100:7000"]))
    assert process.stdout.readline() == b"ready\n"
    with socket.create_connection(("127.0.0.1", 7100), timeout=20 * SLOW) as sock:
        assert sock.recv(5) == b"hello"
    process.communicate(timeout=30 * SLOW)
    told = last(p)
    published = of_type(told, "published")
    assert published[-1]["port"] == 7100 and published[-1]["bytes_in"] + published[-1]["bytes_out"] == 5, published
    check_against_record(told, p.record())


@case
def what_a_cage_does_often_is_counted(p):
    """As many names as it likes: the log has some of them, and the number of the others."""
    start_at = time.monotonic()
    run(WORLD, p, """
for i in range(1500):
    try:
        socket.getaddrinfo(f"n{i}.example.com", 80)
    except OSError:
        pass
""", spec(p, [f"{NAME}:80"]))
    told = last(p)
    names, untold = of_type(told, "name_denied"), of_type(told, "decisions_untold")
    assert len({event["name"] for event in names}) < 600 and len(names) < 1200, len(names)
    assert len(untold) == 1 and untold[0]["times"] > 300, untold
    assert time.monotonic() - start_at < 60 * SLOW
    check_against_record(told, p.record())


@case
def a_network_that_closes_is_told_when_it_does(p):
    process = start(p, """
print(connect("www.example.org", 22).recv(100).decode()[:8], flush=True)
sys.stdin.readline()
""", spec(p, [f"{NAME}:22"]))
    assert process.stdout.readline() == b"SSH-2.0-\n"
    os.kill(children(process.pid)["bawn-gate"], signal.SIGKILL)
    wait_until(lambda: of_type(state(p, is_torn=True), "network_closed"), 10, "it is told while the run goes on")
    process.communicate(b"\n", timeout=30 * SLOW)
    told = last(p)
    assert [event["text"] for event in of_type(told, "network_closed")] == \
        ["cannot connect any more: the gate has ended"], told[-3:]
    check_against_record(told, p.record())


@case
def every_documented_type_was_seen_with_its_members(p):
    missing = {(kind, member) for kind in TYPES for member in events.TYPES[kind] - events.SEEN[p.uid][kind]}
    missing -= MEMBERS_ELSEWHERE
    assert not missing and set(TYPES) <= set(events.SEEN[p.uid]), f"never seen: {sorted(missing)}"


if __name__ == "__main__":
    WORLD = world.enter()
    main()
