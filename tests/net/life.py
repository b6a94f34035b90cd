#!/usr/bin/env python3
"""What a run with a gate tells, how it ends, and what it goes together with.

    life.py BAWN BREAKABLE        prints TAP
"""

import json
import os
import pathlib
import pty
import shlex
import signal
import subprocess
import time

import world
import records
from caged import children, events, run, spec, start
from place import BAWN, FILES, SLOW, case, descendants, expect, main, of_root, reap, wait_until

WORLD = None
NAME = "www.example.org"
FETCH = "curl -sS -o /dev/null -w '%{http_code}\\n' http://www.example.org/"
ALLOW = [f"{NAME}:80"]


def fetched(done, more=""):
    assert done.returncode == 0 and done.stdout.replace("\r", "") == "200\n" + more, done


# --- events ---

@case
def decisions_are_told_while_it_runs(p):
    read, write = os.pipe()
    process = start(p, """
for said in ("www.example.org", "denied.example.org", "www.example.org"):
    sys.stdin.readline()
    print(ask("www.example.org", f"GET / HTTP/1.1\\nHost: {said}\\nConnection: close\\n\\n").split()[1], flush=True)
sys.stdin.readline()
""", ["--status-fd", write, *spec(p, ALLOW)], pass_fds=[write])
    os.close(write)
    lines, told = open(read, encoding="utf-8"), []

    def step(kind, reason):
        """One more request, and what is told of it before the next."""
        process.stdin.write(b"\n")
        process.stdin.flush()
        while True:
            told.append(json.loads(lines.readline()))
            if (told[-1]["event"], told[-1].get("reason")) == (kind, reason):
                return told[-1]
    with lines:
        first = step("net_allowed", "allowed")
        assert (first["name"], first["port"], first["times"], first["protocol"]) == (NAME, 80, 1, "http"), first
        assert told[0]["event"] == "started" and first["run"] == told[0]["run"], told
        second = step("net_denied", "other_host")
        assert second["other"] == "denied.example.org" and "request names" in second["text"], second
        process.communicate(b"\n\n", timeout=30)
        told += [json.loads(line) for line in lines]
    assert [told[-1]["event"], told[-1]["status"]] == ["exited", 0], told
    last = [event for event in told if event["event"] == "net_allowed"][-1]
    assert last["times"] == 2 and last["bytes_out"] > 0 and last["bytes_in"] > 0, last


@case
def bytes_are_counted_each_way(p):
    done = run(WORLD, p, """
sock = connect("www.example.org", 7)
sock.sendall(b"x" * 5000)
sock.shutdown(socket.SHUT_WR)
assert len(read(sock)) == 5000
connect("www.example.org", 22).recv(100)
print(len(ask("www.example.org", "GET / HTTP/1.0\\nHost: www.example.org\\n\\n")))
""", spec(p, [f"{NAME}:7", f"{NAME}:22", f"{NAME}:80"]))
    seen = events(done.record)
    assert [seen["net_allowed", NAME, 7, "allowed"][key] for key in ("bytes_out", "bytes_in")] == [5000, 5000], seen
    greeting = seen["net_allowed", NAME, 22, "allowed"]
    assert (greeting["bytes_out"], greeting["bytes_in"]) == (0, len(f"SSH-2.0-{WORLD.canary}\r\n")), greeting
    web = seen["net_allowed", NAME, 80, "allowed"]
    assert (web["bytes_out"], web["bytes_in"]) == (len(f"GET / HTTP/1.0\r\nHost: {NAME}\r\n\r\n"), int(done.out)), web
    assert {event["address"] for event in seen.values()} == {world.WEB6}, seen


@case
def what_the_log_suggests_is_enough(p):
    script = f"{FETCH} && bash -c 'head -c 8 </dev/tcp/{NAME}/22' && curl -sS -f -o /dev/null http://{world.WEB}/"
    options = ["--network", "allowlist"]
    done = p.run("run", *options, "--", "sh", "-c", script)
    assert done.returncode != 0 and f"network: denied {NAME}" in done.stderr, done
    for _ in range(4):  # one obstacle after the other
        shown = expect(p.run("log", "--denials"), 0).stdout
        line = next(line for line in shown.splitlines() if line.startswith("to allow these for one run: "))
        options += shlex.split(line.split(": ", 1)[1])
        if "443 is a guess" in shown:
            options += ["--allow", f"{NAME}:80"]
        done = p.run("run", *options, "--", "sh", "-c", script)
        if done.returncode == 0:
            break
    assert done.stdout == "200\nSSH-2.0-" and done.returncode == 0, (done, options)
    assert "network: denied" not in done.stderr, done
    expect(p.run("log", "--denials"), 0, "has no denial")


# --- ends ---

WAIT = """
held = connect("www.example.org", 22)
print(held.recv(100).decode()[:8], flush=True)
sys.stdin.readline()
try:
    print(held.recv(1))
except ConnectionResetError:
    print("reset")
print(attempt("www.example.org", 22), attempt("198.18.0.2", 22), attempt("93.184.216.34", 22))
"""


@case
def a_gate_that_dies_leaves_the_network_closed(p):
    for name, why in (("bawn-gate", "cannot connect any more: the gate has ended"),
                      ("bawn-dialer", "cannot connect any more: the dialer, which connects for the gate, has ended")):
        process = start(p, WAIT, spec(p, [f"{NAME}:22"]))
        assert process.stdout.readline() == b"SSH-2.0-\n"
        os.kill(children(process.pid)[name], signal.SIGKILL)
        wait_until(lambda: "bawn-gate" not in children(process.pid), 10, "there is no gate")
        WORLD.take()
        out, err = process.communicate(b"\n", timeout=30)
        assert process.returncode == 0, err.decode()
        assert out.decode().splitlines() in ([end, "gaierror ConnectionRefusedError ConnectionRefusedError"]
                                             for end in ("reset", "b''")), (name, out)
        assert f"bawn: the network was closed before the end: {why}" in err.decode(), (name, err)
        record = records.read(p.top / records.FILE)
        closed = events(record)["network_closed", None, None, None]
        assert closed["text"] == why, closed
        assert WORLD.take() == [], "nothing is reached"


@case
def a_gate_that_hangs_is_not_waited_for(p):
    process = start(p, WAIT.partition("try:")[0], spec(p, [f"{NAME}:22"]))
    assert process.stdout.readline() == b"SSH-2.0-\n"
    os.kill(children(process.pid)["bawn-gate"], signal.SIGSTOP)
    began = time.monotonic()
    _, err = process.communicate(b"\n", timeout=30)
    assert process.returncode == 0 and time.monotonic() - began < 8 * SLOW, err.decode()
    assert "cannot count what the gate passed on" in err.decode(), err
    assert ("network_closed", None, None, None) in events(records.read(p.top / records.FILE))


@case
def gate_and_caller_end_with_bawn(p):
    process = start(p, "print('ready', flush=True)\ntime.sleep(60)\n", spec(p, ALLOW))
    assert process.stdout.readline() == b"ready\n"
    assert {"bawn-gate", "bawn-dialer"} <= set(children(process.pid))
    process.kill()
    process.communicate()
    wait_until(lambda: reap() or not descendants(), 10, "all are gone")


@case
def a_run_does_not_wait_for_servers(p):
    """What was begun and not finished when the command ends is over soon after."""
    start_at = time.monotonic()
    run(WORLD, p, f"""
socks = [connect("www.example.org", 22), connect("dead.example.net", 80)]
socks[0].recv(8)
socks[1].sendall(b"GET / HTTP/1.1\\r\\nHost: dead.example.net\\r\\n\\r\\n")
""", spec(p, [f"{NAME}:22", "dead.example.net:80"]))
    assert time.monotonic() - start_at < 6 * SLOW, "it waited"


# --- together with others ---

def sh(p, script, *options, more="", **others):
    return p.run("run", *spec(p, ALLOW, more=more), *options, "--", "sh", "-c", script, **others)


@case
def a_root_of_pretence_has_the_same_network(p):
    fetched(sh(p, FETCH + "; id -u", "--fakeroot"), "0\n")
    done = sh(p, f"{FETCH.replace(NAME, 'other.example.org')}; ip addr add 1.2.3.4 dev lo; "
              "python3 -c 'import socket; socket.create_server((\"127.0.0.1\", 22))'", "--fakeroot")
    assert done.returncode != 0 and "200" not in done.stdout, done


@case
def a_writable_project_goes_with_it(p):
    fetched(sh(p, f"{FETCH} | tee out", more="project: {mode: writable}\n"))
    assert (p.project / "out").read_text() == "200\n"


@case
def an_engine_is_chosen(p):
    for engine in ("auto", "native"):
        fetched(sh(p, FETCH, more=f"engine: {engine}\n"))


@case
def it_goes_without_a_terminal_and_with_one(p):
    fetched(sh(p, FETCH, "--no-tty"))
    done = sh(p, f"test -t 1 && {FETCH}", "-t")
    fetched(done)
    master, slave = pty.openpty()
    os.fchmod(slave, 0o666)
    os.fchown(slave, p.uid, p.uid)
    try:
        process = p.start("run", *spec(p, ALLOW), "--", "sh", "-c", f"test -t 0 && {FETCH}", stdin=slave, stdout=slave,
                          stderr=slave, start_new_session=True)
        assert process.wait(30) == 0 and b"200" in os.read(master, 4096)
    finally:
        os.close(master)
        os.close(slave)


# --- machines that lack something ---

def with_files(p, count):
    words = p.words(["run", *spec(p, ALLOW), "--", "sh", "-c", FETCH])
    return subprocess.run(["prlimit", f"--nofile={count}:{count}", *words], cwd=p.project, env=p.environ(None),
                          capture_output=True, text=True, check=False, timeout=30 * SLOW, stdin=subprocess.DEVNULL)


@case
def few_descriptors_are_few_connections(p):
    fetched(with_files(p, 200))
    for count in (100, 130):
        done = with_files(p, count)
        assert done.returncode == 125 and done.stdout == "", done
        assert done.stderr == "bawn: cannot start the gate: Too many open files\nhint: raise the limit: ulimit -n\n", done


def without(p, rules, *options):
    """FETCH on a kernel that lacks what the rules name."""
    words = p.words(["run", *options, "--", "sh", "-c", FETCH])
    at = words.index(str(BAWN))
    words[at:at] = [str(FILES / "without"), *rules, "--"]
    done = subprocess.run(words, cwd=p.project, env=p.environ(None), capture_output=True, text=True, check=False,
                          timeout=30 * SLOW, stdin=subprocess.DEVNULL)
    return done


@case
def without_landlock_it_goes_on_where_that_was_said(p):
    engine = "engine: native\n"
    done = without(p, ["landlock:0"], *spec(p, ALLOW, more=engine))
    assert done.returncode == 125 and "landlock" in done.stderr and not done.stdout, done
    fetched(without(p, ["landlock:0"], *spec(p, ALLOW, more=engine + "allow_degraded: [landlock]\n")))


@of_root  # who may look into a process that nobody else may
@case
def a_landlock_that_knows_no_ports_is_enough(p):
    fetched(without(p, ["landlock:3"], *spec(p, ALLOW)))


@case
def without_ipv6_there_is_ipv4(p):
    """As with ipv6.disable=1: no such sockets, here or anywhere."""
    fetched(without(p, ["socket:10=EAFNOSUPPORT"], *spec(p, ALLOW)))


def compile_without():
    source = pathlib.Path(__file__).parent.parent / "kernels/without.c"
    subprocess.run([*os.environ.get("CC", "cc").split(), "-O1", "-D_GNU_SOURCE", "-o", FILES / "without", source],
                   check=True)


if __name__ == "__main__":
    WORLD = world.enter()
    WORLD.zone({"dead.example.net": {"A": [world.SILENT]}})
    compile_without()
    main()
