#!/usr/bin/env python3
"""Sessions whose commands share one cage (session.background), as root and as a user.

    background.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

What is shared is shown beside a session in which it is not; what holds a command is taken out of one
command, in a cage that stands, and is missed from outside.
"""

import contextlib
import http.server
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402
import records  # noqa: E402

case, expect, expect_refusal, BREAKABLE = cage.case, cage.expect, cage.expect_refusal, cage.BREAKABLE
BACKGROUND = "session:\n  background: true\n"
MANY = 12
PROCESSES = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done"
MEMORY = """
import ctypes, sys
c = ctypes.CDLL(None, use_errno=True)
c.shmat.restype = ctypes.c_void_p
at = c.shmat(c.shmget(4242, 4096, 0o1600 if len(sys.argv) > 1 else 0o600), None, 0)
if len(sys.argv) > 1:
    ctypes.memmove(at, sys.argv[1].encode() + bytes(1), len(sys.argv[1]) + 1)
else:
    print(ctypes.string_at(at).decode() if at != 2**64 - 1 else "none")
"""
SERVER = """
import http.server, socket
abstract = socket.socket(socket.AF_UNIX)
abstract.bind(b"\\0bawn-test")
abstract.listen()
http.server.HTTPServer(("127.0.0.1", 8765), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
VISIT = """
import socket
for family, address in (socket.AF_INET, ("127.0.0.1", 8765)), (socket.AF_UNIX, b"\\0bawn-test"):
    try:
        socket.socket(family).connect(address)
        print("reached")
    except OSError as e:
        print(type(e).__name__)
"""


class Session:
    def __init__(self, place, spec=BACKGROUND):
        self.place = place
        self.id = expect(place.run("session", "create", *place.spec(spec)), 0).stdout.strip()

    def exec(self, *words, options=(), **more):
        return self.place.run("session", "exec", self.id, *options, "--", *words, **more)

    def sh(self, script, *options, **more):
        return self.exec("sh", "-c", script, options=options, **more)

    def start(self, script, *options, **more):
        return self.place.start("session", "exec", self.id, *options, "--", "sh", "-c", script, **more)

    def python(self, text, *words, **more):
        return self.exec("python3", "-c", text, *words, **more)

    def broken(self, script, *mechanisms, options=(), **more):
        """With a program that leaves something out, in this one command only."""
        return self.sh(script, *options, program=BREAKABLE, env={"BAWN_TEST_BREAK": ",".join(mechanisms)}, **more)

    def processes(self):
        return expect(self.sh(PROCESSES), 0).stdout

    def serve(self):
        """A server, and processes of whoever goes on printing."""
        expect(self.exec("sh", "-c", 'python3 -c "$0" & (while :; do echo noise; sleep 0.05; done) & '
                         "sleep 1000 & echo started", SERVER), 0, "started")

    def keeper(self):
        """The process that keeps the cage."""
        named = []
        for pid in cage.descendants():
            with contextlib.suppress(OSError):  # others end meanwhile
                if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"bawn: cage of a session"):
                    named.append(pid)
        assert len(named) == 1, named
        return named[0]

    def stop(self):
        return self.place.run("session", "stop", self.id)


@contextlib.contextmanager
def session(place, spec=BACKGROUND, others=0):
    one = Session(place, spec)
    try:
        yield one
    finally:
        expect(one.stop(), 0)
    if not others:
        settle()


def settle():
    """What was told to end is gone."""
    def is_gone():
        cage.reap()
        return not cage.descendants()
    cage.wait_until(is_gone, 10, "all that ran has ended")


# --- what is shared ---

@case
def what_a_command_leaves_is_there_for_the_next(place):
    with session(place) as one:
        one.serve()
        expect(one.python(MEMORY, "a word"), 0)
        expect(one.python(VISIT), 0)
        cage.wait_until(lambda: one.python(VISIT).stdout == "reached\nreached\n", 10, "the server answers")
        cage.output(one.python(MEMORY), "a word\n")
        assert "sleep 1000" in one.processes()
        expect(one.sh("echo kept >/tmp/file; echo kept >~/file"), 0)
        cage.output(one.sh("cat /tmp/file ~/file"), "kept\nkept\n")


@case
def without_it_nothing_is_left_for_the_next(place):
    with session(place, "") as one:
        one.serve()
        expect(one.python(MEMORY, "a word"), 0)
        cage.output(one.python(VISIT), "ConnectionRefusedError\nConnectionRefusedError\n")
        cage.output(one.python(MEMORY), "none\n")
        assert "sleep 1000" not in one.processes()
        settle()


@case
def who_goes_on_printing_is_not_ended_for_it(place):
    with session(place) as one:
        expect(one.sh("(while :; do echo noise; echo more >&2; date +%N >/tmp/new; mv /tmp/new /tmp/alive; "
                      "sleep 0.02; done) & sleep 0.2"), 0)
        first = one.sh("cat /tmp/alive").stdout
        time.sleep(0.3)
        second = one.sh("cat /tmp/alive").stdout
        time.sleep(0.3)
        assert first and len({first, second, one.sh("cat /tmp/alive").stdout}) == 3
        # Far more than a pipe holds.
        expect(one.sh("(sleep 0.2; head -c 4000000 /dev/zero; echo whole >/tmp/printed) &"), 0)
        cage.wait_until(lambda: one.sh("cat /tmp/printed").stdout == "whole\n", 10, "all of it is printed")


@case
def commands_may_end_each_other(place):
    with session(place) as one:
        expect(one.sh("sleep 1000 & echo $! >/tmp/pid"), 0)
        expect(one.sh("kill $(cat /tmp/pid)"), 0)
        assert "sleep 1000" not in one.processes()


@case
def many_at_once_are_in_one_cage(place):
    with session(place) as one:
        running = [one.start(f"echo {i} >/tmp/{i}; until [ $(ls /tmp | wc -l) = {MANY} ]; do sleep 0.01; done; exit {i}")
                   for i in range(MANY)]
        for i, process in enumerate(running):
            out, err = process.communicate(timeout=30 * cage.SLOW)
            assert process.returncode == i, (i, process.returncode, out, err)
        assert one.keeper()
        expect(one.stop(), 0)
        settle()
        cages = [record["cage"] for record in place.records()]
        assert len(cages) == MANY + 1 and len(set(cages)) == 2, cages


# --- how a command ends ---

@case
def status_and_signals_are_the_commands(place):
    with session(place) as one:
        assert one.sh("exit 7").returncode == 7
        assert one.sh("kill -KILL $$").returncode == 137
        expect(one.exec("no-such-command"), 127, "no-such-command")
        process = one.start("trap 'echo heard; exit 3' TERM; echo ready; while :; do sleep 0.01; done")
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.read() == b"heard\n" and process.wait() == 3
        cage.output(one.sh("cat; echo end", stdin=b"a line\n"), "a line\nend\n")


@case
def a_time_limit_ends_the_commands_own(place):
    with session(place) as one:
        done = one.sh("setsid sleep 1001 & sleep 1002; sleep 1003", "--time", "300ms")
        expect(done, 124, "limits.time")
        left = one.processes()
        assert "sleep 1002" not in left and "sleep 1003" not in left, left
        # Who left the group is a process of the session's by then.
        assert "sleep 1001" in left, left
        assert place.record()["cage"]


@case
def what_is_printed_is_limited_for_each(place):
    with session(place, BACKGROUND + "limits:\n  output: 1000\n") as one:
        for _ in range(2):
            done = one.sh("head -c 5000 /dev/zero | tr '\\0' x")
            assert len(done.stdout) == 1000, len(done.stdout)


@case
def a_command_ends_with_its_keeper_and_the_others_go_on(place):
    with session(place) as one:
        expect(one.sh("sleep 1000 &"), 0)
        process = one.start("sleep 1001 & echo ready; sleep 1002")
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        process.wait()
        cage.wait_until(lambda: "sh -c sleep 1001" not in one.processes(), 5, "the command has ended")
        assert "sleep 1000" in one.processes()


@case
def a_terminal_is_the_cages(place):
    with session(place) as one:
        expect(one.sh("true"), 0)
        done = one.sh("tty; ls /dev/pts | wc -l; ps -o tty= -p $$ 2>/dev/null; exit 4", "-t")
        assert done.returncode == 4 and re.match(r"/dev/pts/\d+\r\n2\r\n", done.stdout), done
        assert place.record()["terminal"] is True


# --- the end of a session ---

@case
def all_of_it_ends_when_the_session_is_stopped(place):
    before = cage.Before()
    with session(place) as one:
        one.serve()
        expect(one.sh("trap '' TERM HUP; setsid sh -c 'trap \"\" TERM; exec sleep 1001' & sleep 0.1"), 0)
        keeper = one.keeper()
        workspace = place.state / "bawn" / "sessions" / one.id / "w" / "1"
        expect(one.stop(), 0)
        settle()
        assert not (workspace / "cage").exists()
        before.check()
        left = one.processes()
        assert "sleep" not in left, left  # in another cage
        assert one.keeper() != keeper


@case
def where_nothing_is_captured_it_ends_too(place):
    with session(place, BACKGROUND + "project:\n  mode: writable\n") as one:
        expect(one.sh("echo written >file; sleep 1000 & echo $!"), 0)
        assert (place.project / "file").read_text() == "written\n"
        assert "sleep 1000" in one.processes()
        expect(one.stop(), 0)
        settle()


@case
def rm_ends_it_too(place):
    one = Session(place)
    one.serve()
    expect(place.run("session", "rm", one.id), 0)
    settle()
    assert not (place.state / "bawn" / "sessions" / one.id).exists()


@case
def when_its_keeper_is_killed_all_of_it_ends(place):
    with session(place) as one:
        one.serve()
        process = one.start("echo ready; sleep 1002")
        assert process.stdout.readline() == b"ready\n"
        os.kill(one.keeper(), signal.SIGKILL)
        _, err = process.communicate(timeout=20)
        assert process.returncode == 137 and b"its session was stopped" in err, (process.returncode, err)
        settle()
        outcomes = [(bool(record["cage"]), record["outcome"]) for record in place.records()]
        assert (True, "broken") in outcomes, outcomes
        cage.output(one.python(VISIT), "ConnectionRefusedError\nConnectionRefusedError\n")


@case
def a_running_command_is_asked_to_end_when_the_session_is_stopped(place):
    with session(place) as one:
        process = one.start("trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
        assert process.stdout.readline() == b"ready\n"
        expect(one.stop(), 0)
        out, _ = process.communicate(timeout=20)
        assert out == b"asked\n" and process.returncode == 5, (out, process.returncode)


# --- what keeps sessions apart ---

@case
def two_sessions_reach_nothing_of_each_other(place):
    with session(place) as one, session(place, others=1) as other:
        one.serve()
        expect(one.python(MEMORY, "a word"), 0)
        cage.wait_until(lambda: one.python(VISIT).stdout == "reached\nreached\n", 10, "the server answers")
        expect(one.sh("echo secret >/tmp/file; echo secret >/dev/shm/file; echo secret >~/file"), 0)
        cage.output(other.python(VISIT), "ConnectionRefusedError\nConnectionRefusedError\n")
        cage.output(other.python(MEMORY), "none\n")
        assert "sleep 1000" not in other.processes()
        assert "secret" not in other.sh("cat /tmp/file /dev/shm/file ~/file").stdout
        spaces = "for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done"
        mine, again, theirs = one.sh(spaces).stdout, one.sh(spaces).stdout, other.sh(spaces).stdout
        assert mine == again and len(mine.split()) == 7
        assert not set(mine.split()) & set(theirs.split()), (mine, theirs)


# --- what holds a command ---

STATUS = "grep -E '^(Cap|NoNewPrivs|Seccomp|Groups|Uid|Gid)' /proc/self/status"
LEFT_OUT = [  # what, the guarantee that misses it
    ("join:pid", "proc"), ("join:net", "net.none"), ("join:ipc", "ipc"), ("join:uts", "uts"),
    ("join:cgroup", "cgroup"), ("drop:capabilities", "ids"), ("syscalls", "syscalls"), ("landlock", "landlock"), ("session", "tty"), ("descriptors", "tty"),
]


@case
def a_command_has_no_more_than_one_with_a_cage_of_its_own(place):
    with session(place) as one, session(place, "", others=1) as other:
        wanted = expect(other.sh(STATUS), 0).stdout
        cage.output(one.sh(STATUS), wanted)
        assert all(line.split()[1] == "0" * 16 for line in wanted.splitlines() if line.startswith("Cap")), wanted
        cage.output(one.sh("for p in /proc/[0-9]*; do grep -h ^CapEff $p/status; done | sort -u"),
                    "CapEff:\t0000000000000000\n")
        cage.output(one.sh("ls /proc/self/fd | wc -l"), "4\n")  # and the folder itself


@case
def what_one_command_lacks_is_missed_from_outside(place):
    with session(place) as one:
        expect(one.sh("true"), 0)
        for mechanism, guarantee in LEFT_OUT:
            with open("/dev/null", "rb") as more:
                done = one.broken("echo it ran", mechanism, pass_fds=(more.fileno(),))
            try:
                expect_refusal(done, f"'{guarantee}'")
            except AssertionError as e:
                raise AssertionError(f"{mechanism}: {e}") from None
        # Without the mounts there is not even the place for its rules.
        expect_refusal(one.broken("echo it ran", "join:mount"))
        expect_refusal(one.broken("echo it ran", "join:mount", "landlock"))
        # Who may still gain privileges may not confine itself.
        expect_refusal(one.broken("echo it ran", "drop:new-privileges"))
        expect(one.sh("true"), 0)


@case
def what_is_missed_would_be_a_way_out(place):
    with session(place) as one:
        expect(one.sh("true"), 0)
        cages = expect(one.sh("readlink /proc/self/ns/net"), 0).stdout
        hosts = os.readlink("/proc/self/ns/net")
        assert hosts not in cages
        cage.output(one.broken("readlink /proc/self/ns/net", "join:net", "look"), hosts + "\n")
        done = expect(one.broken("grep ^CapBnd /proc/self/status", "drop:capabilities", "look"), 0)
        assert int(done.stdout.split()[1], 16), done.stdout


# Looks into every process of the cage that it can, for a word of the operator's.
SPY = """
import os, time
end = time.time() + float(os.sys.argv[1])
while time.time() < end:
    for name in os.listdir("/proc"):
        if not name.isdigit() or name == str(os.getpid()):
            continue
        try:
            if b"BAWN_TEST_SECRET" in open(f"/proc/{name}/environ", "rb").read():
                print("seen")
                raise SystemExit
        except OSError:
            pass
print("nothing")
"""


def spy_on(one, *left_out):
    """What a process of the cage sees of commands that come in meanwhile."""
    # A Landlock domain of its own would hold it too: this is about a kernel without.
    env = {"BAWN_TEST_BREAK": "landlock,look"}
    secret = {"BAWN_TEST_SECRET": "1", "BAWN_TEST_BREAK": ",".join(left_out)}
    result = []
    spy = threading.Thread(target=lambda: result.append(one.python(SPY, "8", program=BREAKABLE, env=env)))
    spy.start()
    while spy.is_alive():
        expect(one.sh("true", program=BREAKABLE, env=secret), 0)
    return result[0]


@case
def what_comes_in_is_not_looked_into_by_what_is_there(place):
    with session(place) as one:
        expect(one.sh("true"), 0)
        cage.output(spy_on(one), "nothing\n")
        cage.output(spy_on(one, "join:hide", "landlock", "look"), "seen\n")


def mounts_of(one):
    """Runs a command with the mounts of the cage, as only the host's root can."""
    children = pathlib.Path(f"/proc/{one.keeper()}/task/{one.keeper()}/children").read_text(encoding="utf-8")
    own = os.readlink("/proc/self/ns/mnt")
    first = next(pid for pid in children.split() if os.readlink(f"/proc/{pid}/ns/mnt") != own)
    return lambda *words: subprocess.run(["nsenter", f"--mount=/proc/{first}/ns/mnt", *words], check=True)


@case
def what_is_mounted_in_a_cage_that_stands_is_noticed_by_the_next_command(place):
    if os.geteuid() != 0:
        raise cage.Skip("only root can mount")
    with session(place) as one:
        cage.output(one.sh("echo ran"), "ran\n")
        inside = mounts_of(one)
        inside("mount", "-t", "tmpfs", "none", "/tmp")
        done = expect(one.sh("echo ran"), 125, "the mounts are not those that the cage began with", "cannot start the command")
        assert not done.stdout, done
        cage.output(one.broken("echo ran", "look"), "ran\n")
        inside("umount", "/tmp")
        cage.output(one.sh("echo ran"), "ran\n")


# --- narrowing, the network, the record ---

@case
def what_is_shared_cannot_be_narrowed_for_one(place):
    with session(place) as one:
        for option, value, key in ("--network", "none", "network.mode"), ("--memory", "64M", "limits.memory"):
            expect_refusal(one.sh("true", option, value), key, "session.background")
        expect(one.sh("true", "--time", "10s", "--output", "1M"), 0)


@case
def the_network_is_the_sessions(place):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"of the host")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    get = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=5).read().decode())"
    url = f"http://bawn-host:{server.server_port}/"
    spec = BACKGROUND + f"network:\n  mode: allowlist\n  host_ports: [{server.server_port}]\n"
    try:
        with session(place, spec) as one:
            for _ in range(2):
                cage.output(one.python(get, url), "of the host\n")
            assert not [event for event in place.record()["events"] if "host" in event]
    finally:
        server.shutdown()
        server.server_close()


@case
def each_has_a_record_and_names_the_cages(place):
    with session(place) as one:
        expect(one.sh("echo written >file"), 0)
        command = place.record()
        assert command["session"] == one.id and command["outcome"] == "exited", command
        assert command["preflight_passed"] and command["preflight_by"] == "bawn", command
        expect(one.sh("true"), 0)
        assert place.record()["cage"] == command["cage"] != place.record()["run"]
        folder = place.state / "bawn" / "runs" / command["cage"]
        expect(one.stop(), 0)
        settle()
        whole = records.read(folder)
        assert whole["cage"] is None and whole["session"] == one.id and whole["outcome"] == "exited", whole
        expect(place.run("verify", folder / records.FILE), 0)
        assert command["guarantees"].keys() == whole["guarantees"].keys()
        for name, seen in command["guarantees"].items():
            same = whole["guarantees"][name]
            assert (seen["holds"], seen["vantage"]) == (same["holds"], same["vantage"]), (name, seen, same)


if __name__ == "__main__":
    cage.main()
