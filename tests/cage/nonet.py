#!/usr/bin/env python3
"""Runs without a network: names fail at once, and what was tried is told.

    nonet.py BAWN BREAKABLE        prints TAP
"""

import json
import os
import pathlib
import re
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import BREAKABLE, SLOW, case, descendants, expect, main  # noqa: E402

NAME = "a.name.example"
NO_NAME, AGAIN = -2, -3  # getaddrinfo: EAI_NONAME, EAI_AGAIN

LOOK_UP = f"""
import socket
try:
    socket.getaddrinfo("{NAME}", 443)
except OSError as e:
    print(e.errno)
"""

# As musl asks: a socket that is not connected hears of no error, and waits for an answer.
ASK = """
import socket, struct
question = b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0" + b"\\x01b\\x07example\\0" + struct.pack(">HH", 28, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.sendto(question, ("127.0.0.1", 53))
try:
    answer = s.recv(512)
    print(answer[:2] == question[:2], answer[2] >> 7, answer[3] & 15)
except TimeoutError:
    print("silence")
"""

CONNECT = """
import errno, socket
for family, where in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(family, kind).connect((where, 443))
        except OSError as e:
            print(errno.errorcode[e.errno])
"""

FLOOD = """
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("127.0.0.1", 53))
s.settimeout(30)
for i in range(700):
    name = b"n%d" % i
    s.send(b"\\0\\0\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0" + bytes([len(name)]) + name + b"\\0" + struct.pack(">HH", 1, 1))
    s.recv(512)
for bad in (b"", b"\\0" * 11, b"\\0" * 12, b"\\xff" * 512, b"\\0\\0\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\xc0\\x0c\\0\\1\\0\\1", b"x" * 4000):
    s.send(bad)
print("done")
"""


def python(p, script, *options, **more):
    return p.run("run", *options, "--", "/usr/bin/python3", "-c", script, **more)


def tried(record):
    """Names and, as "", addresses: how often each."""
    return {event["name"]: event["times"] for event in record["events"] if event.get("reason") == "no_network"}


@case
def names_fail_at_once_and_for_good(p):
    began = time.monotonic()
    assert expect(python(p, LOOK_UP), 0).stdout == f"{NO_NAME}\n"
    assert tried(p.record()) == {NAME: 2}, p.record()["events"]  # IPv4 and IPv6
    assert expect(python(p, ASK), 0).stdout == "True 1 3\n"
    assert tried(p.record()) == {"b.example": 1}
    assert time.monotonic() - began < 5 * SLOW  # the patience of a resolver that gets no answer


@case
def without_an_answer_they_are_a_temporary_failure(p):
    # The twin: that is what makes programs wait and try again.
    broken = {"program": BREAKABLE, "env": {"BAWN_TEST_BREAK": "names"}}
    assert expect(python(p, LOOK_UP, **broken), 0).stdout == f"{AGAIN}\n"
    assert expect(python(p, ASK, **broken), 0).stdout == "silence\n"
    assert tried(p.record()) == {}


# Asks for a name, waits for a line, and asks for another one.
ASK_TWICE = LOOK_UP.replace("import socket", "import socket, sys") + "sys.stdout.flush()\nsys.stdin.readline()" + LOOK_UP


def reader():
    """The process that reads the questions: (pid, mode of seccomp, how many descriptors)."""
    pids = [pid for pid, said in descendants().items() if said.startswith("(bawn-reader)")]
    assert len(pids) == 1, descendants()
    proc = pathlib.Path("/proc", str(pids[0]))
    mode = re.search(r"^Seccomp:\s+(\d)", (proc / "status").read_text(), re.MULTILINE)
    return pids[0], int(mode[1]), len(os.listdir(proc / "fd"))


def ask_twice(p, look, **more):
    process = p.start("run", "-q", "--", "/usr/bin/python3", "-c", ASK_TWICE, **more)
    assert process.stdout.readline() == f"{NO_NAME}\n".encode()
    look(reader())
    out, err = process.communicate(b"\n", timeout=60 * SLOW)
    assert process.returncode == 0 and err == b"", (process.returncode, err)
    return out.decode()


@case
def who_reads_the_questions_can_only_read_and_write(p):
    def look(seen):
        assert seen[1:] == (1, 1), seen
    assert ask_twice(p, look) == f"{NO_NAME}\n"
    assert tried(p.record()) == {NAME: 4}
    # The twin: without that it is a process like any other.
    def look_at_broken(seen):
        assert seen[1] == 0 and seen[2] > 1, seen
    ask_twice(p, look_at_broken, program=BREAKABLE, env={"BAWN_TEST_BREAK": "reader"})
    # A run that asks for nothing has none.
    process = p.start("run", "--", "sh", "-c", "echo up; read x")
    assert process.stdout.readline() == b"up\n"
    assert not [said for said in descendants().values() if "bawn-reader" in said]
    process.communicate(b"\n", timeout=60 * SLOW)


@case
def the_end_of_the_reader_is_not_that_of_the_run(p):
    """As if a question had broken it: the run goes on, is recorded, and nobody reads more of them."""
    assert ask_twice(p, lambda seen: os.kill(seen[0], signal.SIGKILL)) == f"{AGAIN}\n"
    assert tried(p.record()) == {NAME: 2}
    expect(p.run("verify", p.record()["run"]), 0)


@case
def addresses_are_counted(p):
    said = expect(python(p, CONNECT), 0)
    assert said.stdout == "ENETUNREACH\n" * 4, said.stdout
    assert tried(p.record()) == {"": 4}, p.record()["events"]
    row = [event for event in p.record()["events"] if event["type"] == "net_denied"]
    assert len(row) == 1 and "protocol" not in row[0] and "port" not in row[0], row
    assert row[0]["text"] == "an address cannot be reached: the run has no network"


@case
def what_stays_in_the_cage_is_no_attempt(p):
    said = expect(p.sh("getent ahosts localhost >/dev/null && getent hosts bawn >/dev/null && echo known"), 0)
    assert said.stdout == "known\n" and said.stderr == "", said
    assert tried(p.record()) == {}


@case
def the_operator_hears_of_it(p):
    said = expect(python(p, LOOK_UP), 0)
    run = p.record()["run"]
    assert said.stderr == (f"bawn: network: this run had none: 2 attempts ({NAME}); to allow: --allow {NAME}:PORT; "
                           f"see: bawn log --denials {run}\n"), said.stderr
    assert expect(python(p, LOOK_UP, "-q"), 0).stderr == ""
    shown = expect(p.run("log", "--denials"), 0, f"{NAME} cannot be reached: the run has no network (2 times)")
    assert "this run had no network: 2 attempts\n" in shown.stdout, shown.stdout
    assert f"to allow these for one run: --allow {NAME}:443\n" in shown.stdout, shown.stdout
    assert f'set network.mode to allowlist and add to network.allow: "{NAME}:443"\n' in shown.stdout
    expect(python(p, CONNECT), 0)
    expect(p.run("log", "--denials"), 0, "this run had no network: 4 attempts; to allow a destination: --allow HOST:PORT")


@case
def what_bawn_cannot_see_is_said(p):
    expect(p.sh("true"), 0)
    shown = expect(p.run("log", "--denials"), 0, "has no denial", "not seen: files that are not in the cage",
                   "writes to what is read-only", "names and addresses that a run without a network asks for")
    assert shown.stdout == "" and "nothing was denied" not in shown.stderr, shown
    expect(p.sh("true", "--network", "host"), 0)
    shown = expect(p.run("log", "--denials"), 0, "the network, which is the host's")
    assert "without a network" not in shown.stderr
    expect(p.sh("true", "--allow", "a.example:443"), 0)
    expect(p.run("log", "--denials"), 0, "destinations that are not in network.allow")
    assert json.loads(expect(p.run("log", "--denials", "--json"), 0).stdout)["events"] == []


@case
def a_flood_of_names_takes_no_room(p):
    said = expect(python(p, FLOOD), 0)
    assert said.stdout == "done\n", said
    record = p.record()
    untold = [event["times"] for event in record["events"] if event["type"] == "decisions_untold"]
    assert len(tried(record)) == 511 and untold == [700 - 511], (len(tried(record)), untold)


@case
def package_managers_do_not_try_again(p):
    said = expect(p.sh('echo "$npm_config_fetch_retries $PIP_RETRIES $CARGO_NET_RETRY"'), 0)
    assert said.stdout == "0 0 0\n", said.stdout
    said = expect(p.sh('echo "$npm_config_fetch_retries" "$PIP_RETRIES"', "-e", "PIP_RETRIES=3"), 0)
    assert said.stdout == "0 3\n", said.stdout
    said = expect(p.sh('echo "[$npm_config_fetch_retries]"', "--allow", "a.example:443"), 0)
    assert said.stdout == "[]\n", said.stdout


if __name__ == "__main__":
    main()
