#!/usr/bin/env python3
"""bawn log: what it shows of logs, good ones and hostile ones, made by hand.

    log.py BAWN        prints TAP
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import run  # noqa: E402
import accounts  # noqa: E402
from chain import ZERO, chain, event  # noqa: E402
from run import case, expect  # noqa: E402

run.CASES.clear()  # those are another suite's

RUN = "20260102-030405-0a0b0c0d"
OTHER = "20260103-000000-0a0b0c0d"
SESSION = "0123456789abcdef" * 2
END = event("run_end", 9, RUN, outcome="exited", status=0)


def folder_of(p, *names):
    """A folder below the state, as bawn makes it."""
    path = p.top / "state/bawn"
    path.mkdir(parents=True, exist_ok=True)
    for name in ("", *names):
        path = path / name
        path.mkdir(exist_ok=True)
        path.chmod(0o700)
        os.chown(path, p.uid, p.uid)
    os.chown(p.top / "state", p.uid, p.uid)
    return path


def put(p, path, content):
    path.write_bytes(content)
    os.chown(path, p.uid, p.uid)
    return path


def keep(p, *events, name=RUN):
    """A run with these events."""
    folder = folder_of(p, "runs", name)
    put(p, folder / "events.jsonl", chain(events)[0])
    return folder


def keeper_state(p, *events):
    return put(p, folder_of(p, "log") / "events.jsonl", chain(events)[0])


def environment(p):
    return {"XDG_STATE_HOME": str(p.top / "state")}


def log(p, *args):
    return p.run("log", *args, env=environment(p))


@contextlib.contextmanager
def locked(folder):
    """As the keeper has it while a run goes on."""
    fd = os.open(folder, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(fd)


class Follower:
    """A bawn log that is still running."""

    def __init__(self, p, *args, out=subprocess.PIPE):
        command = [*accounts.login(p.uid), run.BAWN, "log", *args]
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            command, cwd=p.project, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,
            env={"HOME": str(p.home), "PATH": os.environ["PATH"], **environment(p)})
        self.seen = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait()
        for pipe in (self.child.stdout, self.child.stderr):
            if pipe:
                pipe.close()

    def wait_for(self, text, seconds=10):
        """Until it is shown."""
        until = time.monotonic() + seconds
        while text.encode() not in self.seen:
            left = until - time.monotonic()
            ready = select.select([self.child.stdout], [], [], max(left, 0))[0]
            assert ready, f"{text!r} is not in {self.seen!r}"
            more = os.read(self.child.stdout.fileno(), 65536)
            assert more, f"it ended: {self.seen!r} {self.child.stderr.read()!r}"
            self.seen += more

    def stays_silent(self, seconds=0.5):
        return not select.select([self.child.stdout], [], [], seconds)[0]

    def end(self, seconds=10):
        """Status, and all that it said."""
        out, error = self.child.communicate(timeout=seconds)
        self.seen += out or b""
        return self.child.returncode, self.seen.decode(), error.decode()


def net(type, name, port=None, reason="name", **more):
    members = {"name": name, **({"port": port, "protocol": "tcp"} if port else {}), "reason": reason, "times": 1,
               "text": f"{name} is {type[4:]}", **more}
    return event(type, 1, RUN, **members)


def denied(name, port=None, reason="name", **more):
    return net("net_denied" if port else "name_denied", name, port, reason, **{"text": f"{name} is denied", **more})


ALLOWED = net("net_allowed", "pip.test", 443, "allowed", address="192.0.2.7", bytes_out=10, bytes_in=2000, times=2,
              text="pip.test:443 is allowed")
LIMIT = event("limit_hit", 2, RUN, limit="limits.memory", declared="64M", times=1, text="the cage ran out of memory")


def lines(done):
    return done.stdout.splitlines()


def types(done):
    """Of what is shown, and not said about it."""
    return [line.split()[1] for line in lines(done) if line.startswith("2026")]


def last_lines(p, *events):
    """What is suggested."""
    keep(p, *events, END)
    done = expect(log(p, "--denials", RUN), 0)
    return [line for line in lines(done) if line.startswith(("to allow", "the port of a denied", "there are more"))]


# --- what is shown ---


@case
def events_are_shown_one_a_line(p):
    keep(p, event("run_start", 0, RUN, command="npm", project="/p", level="hardened", engine="native"), LIMIT,
         denied("github.com", 22, "port", times=3), ALLOWED, event("network_closed", 2, RUN, text="the gate ended"), END)
    done = expect(log(p), 0)
    assert done.stderr == ""
    assert lines(done) == [
        f"# run {RUN}",
        "2026-01-02T03:00:00.000Z  run_start         npm in /p: hardened, engine native",
        "2026-01-02T03:00:02.000Z  limit_hit         the cage ran out of memory",
        "2026-01-02T03:00:01.000Z  net_denied        github.com is denied (3 times)",
        "2026-01-02T03:00:01.000Z  net_allowed       pip.test:443 is allowed (192.0.2.7, 10 bytes out, 2000 in, 2 times)",
        "2026-01-02T03:00:02.000Z  network_closed    the gate ended",
        "2026-01-02T03:00:09.000Z  run_end           exited with status 0"], done.stdout


@case
def guarantees_that_hold_are_one_line_for_people(p):
    def said(name, holds, number):
        return event("guarantee", number, RUN, name=name, need="must", holds=holds, vantage="outside", seen="x")
    keep(p, event("run_start", 0, RUN), said("fs.root", True, 1), said("limits.memory", False, 2),
         event("degraded", 3, RUN, name="limits.memory", text="a limit"), said("env", True, 4), END)
    shown = lines(log(p))[1:]
    assert [line.split()[1] for line in shown] == ["run_start", "guarantee", "degraded", "guarantee", "run_end"], shown
    assert "limits.memory does not hold: x (outside)" in shown[1] and "2 of 3 hold" in shown[3], shown
    # Each by itself where it is asked for, and for programs.
    assert [line.split()[2] for line in lines(log(p, "--type", "guarantee"))[1:]] == ["fs.root", "limits.memory", "env"]
    assert len(json.loads(log(p, "--json").stdout)["events"]) == 6
    # One that nobody looked at has no reason to show.
    keep(p, event("run_start", 0, RUN), event("guarantee", 1, RUN, name="env", holds=False, vantage="none", seen=""), END)
    assert lines(log(p))[2].endswith("env does not hold"), lines(log(p))


@case
def what_is_said_again_is_shown_once(p):
    """The last of a row, where it stands; two rows are two, and so are two runs."""
    keep(p, denied("a.example", 1), denied("b.example", 1), denied("a.example", 1, times=2),
         denied("a.example", 2), denied("a.example", 1, times=9), END)
    shown = lines(expect(log(p), 0))
    assert [line.split("  ")[-1] for line in shown[1:-1]] == \
        ["b.example is denied", "a.example is denied", "a.example is denied (9 times)"], shown
    assert len(json.loads(log(p, "--json").stdout)["events"]) == 4
    assert len(lines(log(p, "--format", "jsonl"))) == 6, "a stream has them all"
    both = [{**denied("a.example", 1, times=times), "run": name} for times in (1, 2) for name in (RUN, OTHER)]
    keeper_state(p, *both)
    assert len(lines(log(p, "--all"))) == 2


@case
def denials_are_what_was_denied_and_end_with_the_line_to_add(p):
    keep(p, LIMIT, denied("github.com", 22, "port", times=3), ALLOWED, denied("evil.example"),
         {**denied("slow.example", 443, "unreachable"), "type": "net_failed"},
         event("syscall_denied", 2, RUN, call="mount", text="mount was refused"), END)
    done = expect(log(p, "--denials"), 0)
    shown = lines(done)
    assert types(done) == ["net_denied", "name_denied", "syscall_denied"], shown
    assert "slow.example" not in done.stdout and "memory" not in done.stdout
    assert shown[4:] == [
        "the port of a denied name is not known: 443 is a guess",
        "to allow these for one run: --allow github.com:22 --allow evil.example:443",
        'to allow these, add to network.allow: "github.com:22", "evil.example:443"'], shown


@case
def what_is_suggested_is_taken_by_a_spec(p):
    entries = last_lines(p, denied("github.com", 22, "port"), denied("192.0.2.1", 5432, "address"),
                         denied("2001:db8::1", 443, "address"), denied("a_b-c.xn--p1ai"))[-1].split(": ", 1)[1]
    assert entries == '"github.com:22", "192.0.2.1:5432", "[2001:db8::1]:443", "a_b-c.xn--p1ai:443"', entries
    p.spec(f"version: 1\nnetwork: {{ mode: allowlist, allow: [{entries}] }}\n")
    expect(p.run("check", "--trust"), 0)


@case
def each_is_suggested_once(p):
    assert last_lines(p, denied("a.example", 80), denied("a.example", 80, "port")) == [
        "to allow these for one run: --allow a.example:80",
        'to allow these, add to network.allow: "a.example:80"']


@case
def options_survive_a_shell(p):
    assert "--allow '[2001:db8::1]:443'" in last_lines(p, denied("2001:db8::1", 443, "address"))[0]


@case
def reserved_addresses_are_suggested_themselves(p):
    assert last_lines(p, denied("inner.example", 5432, "reserved", other="10.0.0.1 (private)"))[-1] == \
        'to allow these, add to network.allow: "10.0.0.1:5432"'


@case
def ports_of_the_host_are_suggested_as_such(p):
    shown = last_lines(p, denied("bawn-host", 22, "port"))
    assert shown == last_lines(p, denied("me.example", 22, "own_address")), shown
    assert "22" in last_lines(p, denied("bawn-host", 22, "port"))[-1]


@case
def the_hosts_own_services_are_its_ports(p):
    assert last_lines(p, denied("me.example", 7878, "own_address", other="192.0.2.9")) == [
        "to allow these for one run: --host-port 7878",
        "to allow these, which are reached as bawn-host, add to network.host_ports: 7878"]


@case
def nothing_is_suggested_where_no_entry_helps(p):
    reasons = ("odd_name", "many_names", "udp", "not_tls", "no_sni", "other_sni", "not_http", "no_host",
               "other_host", "bad_http", "silent", "many", "", "of_tomorrow")
    assert last_lines(p, *(denied("a.example", 443, reason, other="b.example") for reason in reasons)) == []
    assert len(lines(log(p, "--denials"))) == 1 + len(reasons)


@case
def no_entry_is_suggested_that_is_none(p):
    """The cage chooses its names: none becomes a second entry, a wildcard, an option or a command."""
    names = ('x", "*.evil.example', "*.evil.example", "*", "a b", "a\nb", "$(id)", "`id`", "a;id", "'", "-x", "",
             "a.example/16", "x" * 300, "[::1]", "\x1b[31m", "é.example", "10.0.0.0/8", "0x7f.1", "a..b")
    assert last_lines(p, *(denied(name, 443, "name") for name in names)) == []


@case
def many_names_are_cut_off(p):
    suggested = last_lines(p, *(denied(f"n{i}.example") for i in range(500)))
    assert suggested[1] == "there are more than these 64", suggested
    assert suggested[-1].count('"') == 128


# --- for programs ---


@case
def json_is_one_object_with_the_events_as_they_are(p):
    events = [LIMIT, denied("github.com", 22, "port"), {**ALLOWED, "of_tomorrow": [{"a": 1.5e3}, None]}, END]
    folder = keep(p, *events)
    wanted = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    done = json.loads(expect(log(p, "--json"), 0).stdout)
    assert done == {"version": 1, "run": RUN, "outcome": "exited", "going_on": False, "events": wanted,
                    "chain": "whole"}, done
    done = json.loads(expect(log(p, "--json", "--denials"), 0).stdout)
    assert done["events"] == wanted[1:2] and done["allow"] == ["github.com:22"] and done["host_ports"] == []
    assert json.loads(log(p, "--format", "json").stdout)["events"] == wanted
    keeper_state(p, *events)
    done = json.loads(expect(log(p, "--json", "--all"), 0).stdout)
    assert done["run"] is None and done["events"] == wanted


@case
def lines_of_json_are_those_of_the_file(p):
    folder = keep(p, LIMIT, denied("a.example", 1), denied("a.example", 1, times=2), END)
    content = (folder / "events.jsonl").read_text()
    assert expect(log(p, "--format", "jsonl"), 0).stdout == content
    assert expect(log(p, "--format", "jsonl", "-n", "2"), 0).stdout.splitlines() == content.splitlines()[2:]
    for form in ("cloudevents", "ocsf"):
        assert len(lines(expect(log(p, "--format", form), 0))) == 4
    expect(log(p, "--format", "xml"), 2, "text, json, jsonl, cloudevents or ocsf")
    expect(log(p, "--format", "ocsf", "--json"), 2, "choose one")


@case
def ids_of_exports_mean_one_event(p):
    keep(p, LIMIT, END)
    keeper_state(p, LIMIT, END)
    mine = [json.loads(line)["id"] for line in lines(log(p, "--format", "cloudevents"))]
    all_of_them = [json.loads(line)["id"] for line in lines(log(p, "--format", "cloudevents", "--all"))]
    assert mine == [f"{RUN}/0", f"{RUN}/1"] and all_of_them == ["log/0", "log/1"], (mine, all_of_them)
    shown = [json.loads(line)["metadata"]["uid"] for line in lines(log(p, "--format", "ocsf"))]
    assert shown == mine, shown


@case
def escape_sequences_are_harmless(p):
    text = "\x1b]52;c;aGk=\x07\x9b2J‮\x7f\r\nfake: line \U000e0041"
    events = [denied("a.example", 22, text=text), event(f"x{text}", 1, text, text, text=""),
              {**LIMIT, "time": text, f"k{text}": text}, END]
    folder = folder_of(p, "runs", RUN)
    put(p, folder / "events.jsonl", chain(events, ensure_ascii=False)[0])
    put(p, folder_of(p, "log") / "events.jsonl", chain(events, ensure_ascii=False)[0])
    forms = ((), ("--json",), *(("--format", form) for form in ("jsonl", "cloudevents", "ocsf")))
    for args in ((), ("--denials",), ("--color", "always"), ("--all",)):
        for form in forms:
            done = log(p, *args, *form)
            assert done.returncode == 0, (args, form, done)
            said = done.stdout + done.stderr
            for ink in ("\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[m"):
                said = said.replace(ink, "") if "--color" in args else said
            for bad in ("\x1b", "\x07", "\x9b", "‮", "\x7f", "\r", "\nfake", "\U000e0041"):
                assert bad not in said, (args, form, bad, said)
    assert json.loads(log(p, "--json").stdout)["events"][0]["text"] == text


@case
def sentences_of_any_bytes_are_read(p):
    """A path is any bytes, and what bawn writes of it bawn reads."""
    keep(p, event("write_denied", 1, RUN, path="\udcff", text="a write to '\udcff' was refused"), END)
    expect(log(p), 0, r"a write to '\xff' was refused")
    assert json.loads(log(p, "--format", "jsonl", "-n2").stdout.splitlines()[0])["path"] == "\udcff"


# --- filters ---


@case
def types_are_chosen_by_name(p):
    keep(p, LIMIT, denied("a.example", 22), denied("b.example"), ALLOWED, END)
    assert types(expect(log(p, "--type", "net_denied", "-t", "limit_hit"), 0)) == ["limit_hit", "net_denied"]
    assert types(expect(log(p, "--type", "net_allowed", "--denials"), 0, "has no denial")) == []
    expect(log(p, "--type", "net_deneid"), 2, "there is no type 'net_deneid'", "did you mean net_denied?")
    expect(log(p, "--type", "\x1b"), 2, r"'\x1b'")


@case
def since_is_a_time_or_how_long_ago(p):
    keep(p, *(event("degraded", number * 60, RUN, text=f"number {number}") for number in range(5)), END)
    for since, wanted in (("2026-01-02T03:03:00Z", 2), ("2026-01-02 03:03", 2),
                          ("2026-01-02T03:03:00.000001Z", 1), ("2026-01-02", 6), ("3000d", 6), ("1h", 0)):
        shown = [kind for kind in types(expect(log(p, "--since", since), 0)) if kind == "degraded"]
        assert len(shown) == min(wanted, 5), (since, shown)
    for since in ("yesterday", "2026-02-30", "", "-1h", "1h ago"):
        expect(log(p, "--since", since), 2, "--since takes a time")
    keep(p, {**LIMIT, "time": "of tomorrow"}, END)
    expect(log(p, "--since", "2026-01-03"), 0, "of tomorrow")


@case
def the_last_lines_are_those_that_are_shown(p):
    keep(p, denied("a.example", 1), denied("b.example", 1), LIMIT, denied("a.example", 1, times=2), END)
    assert types(expect(log(p, "-n", "2"), 0)) == ["net_denied", "run_end"]
    assert types(expect(log(p, "-n2", "--denials"), 0)) == ["net_denied", "net_denied"]
    assert types(expect(log(p, "--lines=3"), 0)) == ["limit_hit", "net_denied", "run_end"]
    assert types(expect(log(p, "-n", "100"), 0)) == ["net_denied", "limit_hit", "net_denied", "run_end"]
    assert types(expect(log(p, "-n", "0"), 0)) == []
    expect(log(p, "-n", "-1"), 2, "--lines takes a number")
    expect(log(p, "-n", "ten"), 2, "--lines takes a number")


@case
def all_runs_are_shown_with_their_names(p):
    events = [{**LIMIT, "run": RUN}, {**LIMIT, "run": OTHER, "session": SESSION}, event("key_made", 3, key="abc")]
    keep(p, END)
    keeper_state(p, *events)
    assert [line.split()[1] for line in lines(expect(log(p, "--all"), 0))] == [RUN, OTHER, "-"]
    assert len(types(expect(log(p, "--all", RUN), 0))) == 1
    assert len(types(expect(log(p, "--all", RUN[:10]), 0))) == 1, "as everywhere, the beginning is enough"
    assert types(expect(log(p, "-a", OTHER), 0)) == ["limit_hit"], "one whose folder is gone"
    assert [line.split()[1] for line in lines(expect(log(p, "--session", SESSION), 0))] == [OTHER]
    expect(log(p, "--session", SESSION[::-1]), 0, "nothing of the kind is in the log of all runs")


@case
def a_session_is_found_by_its_name_or_the_beginning_of_its_id(p):
    web, other = (expect(p.run("session", "create", *name, env=environment(p)), 0).stdout.strip() for name in (("--name", "web"), ()))

    def told(word):
        events = json.loads(expect(log(p, "--session", word, "--json"), 0).stdout)["events"]
        return [(event["session"], event["type"]) for event in events]

    for word, wanted in ((web, web), (web[:8], web), ("web", web), (other[:8], other)):
        assert told(word) == [(wanted, "session_created")], told(word)
    for word in ("nosuch", "0" * 7, "no such"):
        expect(log(p, "--session", word), 1, f"cannot find session '{word}'", "hint: bawn session list")
    expect(p.run("session", "rm", "web", env=environment(p)), 0)
    assert told(web)[1:] == [(web, "session_removed")], "by its whole id also one that was removed"


# --- files ---


def rotate(p, counts):
    """A log in several files, with so many events each; the last grows still."""
    folder, seq, prev, number = folder_of(p, "log"), 0, ZERO, 0
    for place, count in enumerate(counts):
        events = [event("degraded", 0, RUN, text=f"number {number + i}") for i in range(count)]
        number += count
        content, seq, prev = chain(events, seq, prev)
        put(p, folder / ("events.jsonl" if place == len(counts) - 1 else f"events-{seq}.jsonl"), content)
    return folder, seq, prev


def numbers(done):
    return [int(line.split()[-1]) for line in lines(done) if "number" in line]


@case
def renamed_files_are_read_in_order(p):
    folder, _, _ = rotate(p, (9, 90, 2))
    put(p, folder / "events-5.jsonl.bak", b"x")
    put(p, folder / "events-007.jsonl", b"x")
    done = expect(log(p, "--all"), 0)
    assert numbers(done) == list(range(101)) and done.stderr == "", done
    (folder / "events-9.jsonl").unlink()
    done = expect(log(p, "--all"), 0, "begins with line 9: those before are in files that are not here")
    assert numbers(done) == list(range(9, 101))
    rotate(p, (9, 90, 2))
    (folder / "events-99.jsonl").unlink()
    done = expect(log(p, "--all"), 1, "the log of all runs is broken: line 9 of the log has another number")
    assert numbers(done) == [*range(9), 99, 100]


@case
def a_torn_end_is_no_event_and_no_failure(p):
    folder = keep(p, LIMIT, END)
    path = folder / "events.jsonl"
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) - 70, whole.index(b"\n") + 2):
        path.write_bytes(whole[:size])
        done = expect(log(p), 0, "ends with a piece of a line")
        assert types(done) == ["limit_hit"], done
        assert json.loads(log(p, "--json").stdout)["chain"] == "torn"
        expect(log(p, "--format", "ocsf"), 0, "ends with a piece of a line")
        with locked(folder):
            assert "piece" not in log(p).stderr, "it may be one that is being written"


@case
def a_broken_chain_is_said_and_all_of_it_shown(p):
    events = [event("degraded", 0, RUN, text=f"number {i}") for i in range(5)]
    path = keep(p, *events, END) / "events.jsonl"
    good = path.read_bytes().splitlines(keepends=True)
    for content, why, wanted in (
            ([*good[:2], good[2].replace(b"number 2", b"number 9"), *good[3:]], "line 3", [0, 1, 9, 3, 4]),
            ([*good[:2], *good[3:]], "another number", [0, 1, 3, 4]),
            ([good[0], good[2], good[1], *good[3:]], "another number", [0, 2, 1, 3, 4]),
            (good[1:], "another number", [1, 2, 3, 4]),
            ([*good[:2], b"garbage\n", *good[2:]], "not written as an event", [0, 1, 2, 3, 4]),
            ([*good[:2], b"x" * 300000 + b"\n", *good[2:]], "too long", [0, 1, 2, 3, 4]),
            ([*good[:2], b"\n", b"\n", *good[2:]], "not written as an event", [0, 1, 2, 3, 4])):
        path.write_bytes(b"".join(content))
        done = expect(log(p), 1, f"the log of run {RUN} is broken", why)
        assert numbers(done) == wanted, (done, wanted)
        done = expect(log(p, "--format", "ocsf"), 1, "is broken", why)
        assert len(lines(done)) == len(wanted) + 1, done
        shown = json.loads(expect(log(p, "--json"), 1, "is broken", why).stdout)
        assert shown["chain"] == "broken" and len(shown["events"]) == len(wanted) + 1
    path.write_bytes(b"garbage \x1b[31m\n" + b"".join(good))
    assert r"garbage \x1b[31m" in expect(log(p), 1).stdout, "what cannot be read is shown too"
    path.write_bytes(b"\n" * 50)
    assert expect(log(p), 1, "in more places than these").stderr.count("\n") < 25


@case
def lines_that_are_no_events_are_said_to_be_none(p):
    """Somebody made a chain of them; they are shown, and nothing is made of them."""
    def chained(*middles):
        out, prev = b"", ZERO
        for seq, middle in enumerate(middles):
            text = b'{"seq":%d,%s"prev":"%s"}' % (seq, middle, prev.encode())
            out, prev = out + text + b"\n", hashlib.sha256(text).hexdigest()
        return out

    good = b'"type":"degraded","text":"here",'
    folder = folder_of(p, "runs", RUN)
    for bad, why in ((b"", "a type"), (b'"type":1,', "a type"), (b'"type":"x\xff",', "UTF-8"), (b"junk,", "a text"),
                     (b'"type":"x",' + b'"a":' + b"[" * 100 + b"]" * 100 + b",", "fewer levels"),
                     (b'"type":"x",' + b"".join(b'"%d":0,' % i for i in range(100)), "fewer members"),
                     (b'"type":"x","a":01,', "")):
        put(p, folder / "events.jsonl", chained(good, bad, good))
        done = expect(log(p), 1, "line 1 of the log", "cannot be used: it is not an event: expected " + why)
        assert done.stdout.count("here") == 2 and len(lines(done)) == 4, done
        shown = json.loads(expect(log(p, "--json"), 1).stdout)
        assert len(shown["events"]) == 2
        assert len(lines(expect(log(p, "--format", "ocsf"), 1))) == 2


@case
def large_logs_are_shown(p):
    many = 8000
    keep(p, *(denied(f"n{i % 100}.example", 22, times=i) for i in range(many)),
         event("degraded", 1, RUN, text="\x1b" * 5000), END)
    began = time.monotonic()
    done = expect(log(p), 0)
    assert len(lines(done)) == 103, len(lines(done))
    assert time.monotonic() - began < 20
    assert len(lines(expect(log(p, "--format", "ocsf"), 0))) == many + 2


@case
def a_log_that_is_no_file_is_not_waited_for(p):
    folder = folder_of(p, "runs", RUN)
    path = folder / "events.jsonl"
    os.mkfifo(path)
    os.chown(path, p.uid, p.uid)
    expect(log(p), 125, "cannot read events.jsonl", "not a plain file")
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert "root:" not in expect(log(p), 125, "cannot read events.jsonl").stderr
    path.unlink()
    path.mkdir()
    expect(log(p), 125, "not a plain file")
    path.rmdir()
    expect(log(p), 1, f"run {RUN} has no log")
    with locked(folder):
        expect(log(p), 0, "is still going on")


# --- which run ---


@case
def the_newest_is_meant(p):
    keep(p, denied("new.example", 1), END, name=OTHER)
    keep(p, denied("old.example", 1), END)
    expect(log(p), 0, OTHER, "new.example")
    expect(log(p, RUN), 0, "old.example")
    expect(log(p, RUN[:8]), 0, "old.example")
    expect(log(p, "202601"), 1, "there is no run '202601'")
    expect(log(p, "20260104"), 1, "there is no run '20260104'")
    expect(log(p, "../../x"), 1, "there is no run")
    expect(log(p, RUN, OTHER), 2, "log shows one run")


@case
def the_newest_is_whichever_began_last(p):
    """Its name and who was written to last say nothing about it."""
    names = RUN, RUN[:-1] + "0"
    for first, second in (names, names[::-1]):
        for name, host, began in ((first, "a.example", "000000001"), (second, "b.example", "000000002")):
            begun = event("run_start", 0, name, began=f"2026-01-02T03:00:00.{began}Z")
            folder = keep(p, begun, denied(host, 1), END, name=name)
            os.utime(folder, (2000, 2000) if name == first else (1000, 1000))
        expect(log(p), 0, "b.example")


@case
def where_nothing_is_that_is_said(p):
    expect(log(p), 0, "there is no run yet")
    expect(log(p, "--all"), 0, "there is no log yet")
    assert json.loads(log(p, "--json").stdout)["events"] == []
    assert json.loads(log(p, "--json", "--all").stdout)["events"] == []
    assert expect(log(p, "-f"), 0, "there is no run yet").stdout == ""
    keep(p, LIMIT, END)
    done = expect(log(p, "--denials"), 0, f"the log of run {RUN} has no denial")
    assert done.stdout == ""
    assert log(p, "--denials", "-q").stderr == ""
    assert expect(log(p, "--denials", "--json"), 0).stderr == ""


@case
def a_run_without_an_end_is_said_to_have_none(p):
    """Who has the lock tells one that goes on from one that was interrupted."""
    folder = keep(p, LIMIT)
    with locked(folder):
        expect(log(p), 0, "is still going on", "ran out of memory")
        shown = json.loads(log(p, "--json").stdout)
        assert shown["going_on"] is True and shown["outcome"] is None
    expect(log(p), 0, "was interrupted", "ran out of memory")
    shown = json.loads(log(p, "--json").stdout)
    assert shown["going_on"] is False and shown["outcome"] is None
    keep(p, LIMIT, event("interrupted", 9, RUN, text="the keeper died"))
    assert json.loads(log(p, "--json").stdout)["outcome"] == "interrupted"
    keep(p, event("refused", 9, RUN, error="no", kind="refused"))
    assert json.loads(log(p, "--json").stdout)["outcome"] == "refused"


# --- as it happens ---


def add(path, text):
    with open(path, "ab") as file:
        file.write(text)


@case
def a_run_is_followed_to_its_end(p):
    folder = keep(p, LIMIT)
    path = folder / "events.jsonl"
    all_of_it = chain([LIMIT, denied("a.example", 1), denied("a.example", 1, times=2), END])[0].splitlines(keepends=True)
    with locked(folder), Follower(p, "-f") as seen:
        seen.wait_for("out of memory")
        add(path, all_of_it[1])
        seen.wait_for("a.example is denied\n", 2)
        add(path, all_of_it[2][:50])
        assert seen.stays_silent(), "half a line is waited for"
        add(path, all_of_it[2][50:])
        seen.wait_for("(2 times)\n", 2)
        add(path, all_of_it[3])
        seen.wait_for("exited with status 0\n", 2)
        assert seen.stays_silent() and seen.child.poll() is None, "the keeper is still there"
    with locked(folder), Follower(p, "-f", "--format", "jsonl", "-n", "1") as seen:
        seen.wait_for("run_end")
        assert seen.seen == all_of_it[3], seen.seen
    with locked(folder):
        seen = Follower(p, "--follow", "--denials")
        seen.wait_for("(2 times)")
    with seen:
        status, out, error = seen.end()
    assert status == 0 and error == "" and out.endswith('add to network.allow: "a.example:1"\n'), (status, out, error)


@case
def a_run_that_has_ended_is_not_waited_for(p):
    keep(p, LIMIT, END)
    done = expect(log(p, "-f"), 0)
    assert types(done) == ["limit_hit", "run_end"] and done.stderr == "", done
    path = p.top / "state/bawn/runs" / RUN / "events.jsonl"
    add(path, b'{"seq":')
    expect(log(p, "-f"), 0, "ends with a piece of a line")
    add(path, b"\n")
    expect(log(p, "-f"), 1, "is broken")
    expect(log(p, "-f", "--json"), 2, "--format jsonl")


@case
def all_runs_are_followed_across_files(p):
    folder, seq, prev = rotate(p, (9, 20))
    with Follower(p, "--all", "-f") as seen:
        seen.wait_for("number 28")
        assert seen.seen.count(b"number") == 10, seen.seen
        for number in range(100, 103):
            content, seq, prev = chain([event("degraded", 0, RUN, text=f"number {number}")], seq, prev)
            add(folder / "events.jsonl", content)
            content, seq, prev = chain([event("degraded", 0, RUN, text=f"last {number}")], seq, prev)
            # What comes just before the name changes is not lost.
            add(folder / "events.jsonl", content)
            (folder / "events.jsonl").rename(folder / f"events-{seq}.jsonl")
            content, seq, prev = chain([event("degraded", 0, RUN, text=f"first {number}")], seq, prev)
            put(p, folder / "events.jsonl", content)
            if number != 101:  # two files at once, between two looks
                seen.wait_for(f"first {number}", 3)
        shown = [line.split()[-2:] for line in seen.seen.decode().splitlines()[10:]]
        assert shown == [[word, str(n)] for n in range(100, 103) for word in ("number", "last", "first")], shown
        assert seen.child.poll() is None
        seen.child.send_signal(signal.SIGINT)
        status, _, error = seen.end()
        assert status == -signal.SIGINT and error == "", (status, error)


@case
def who_reads_no_more_ends_it(p):
    folder = keep(p, LIMIT)
    with locked(folder), Follower(p, "-f") as seen:
        seen.wait_for("out of memory")
        seen.child.stdout.close()
        seen.child.stdout = None
        assert seen.child.wait(timeout=5) == 0
        assert seen.child.stderr.read() == b""


@case
def a_terminal_is_told_whole_lines(p):
    folder = keep(p, denied("a.example", 22, text="\x1b[2J\x9b1m is denied"))
    top, bottom = pty.openpty()
    with locked(folder), Follower(p, "-f", out=bottom) as seen:
        os.close(bottom)
        shown = b""
        while b"is denied" not in shown:
            assert select.select([top], [], [], 10)[0], shown
            shown += os.read(top, 4096)
        assert rb"\x1b[2J" in shown and b"\x1b[2J" not in shown and b"\x9b" not in shown, shown
        seen.child.send_signal(signal.SIGINT)
        assert seen.child.wait(timeout=5) == -signal.SIGINT
    os.close(top)


if __name__ == "__main__":
    run.main()
