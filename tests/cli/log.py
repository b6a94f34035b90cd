#!/usr/bin/env python3
"""bawn log: what it shows of records, good ones and hostile ones, made by hand.

    log.py BAWN        prints TAP
"""

import fcntl
import json
import os
import sys

sys.dont_write_bytecode = True
import run  # noqa: E402
from run import case, expect  # noqa: E402

run.CASES.clear()  # those are another suite's

RUN = "20260102-030405-0a0b0c0d"
OTHER = "20260103-000000-0a0b0c0d"


def keep(p, record, name=RUN):
    """A run with this record: bytes, or an object."""
    folder = p.top / "state/bawn/runs" / name
    folder.mkdir(parents=True, mode=0o700)
    for path in (folder, *list(folder.parents)[:3]):
        path.chmod(0o700)
        os.chown(path, p.uid, p.uid)
    if record is not None:
        path = folder / "record.json"
        path.write_bytes(record if isinstance(record, bytes) else json.dumps(record).encode())
        os.chown(path, p.uid, p.uid)
    return folder


def log(p, *args):
    return p.run("log", *args, env={"XDG_STATE_HOME": str(p.top / "state")})


def of(*events, **more):
    return {"version": 1, "run": RUN, "outcome": "exited", "status": 0, **more, "events": list(events)}


def denied(name, port=None, reason="name", **more):
    kind = {"type": "net_denied", "port": port, "protocol": "tcp"} if port else {"type": "name_denied"}
    return {**kind, "name": name, "reason": reason, "times": 1, "text": f"{name} is denied", **more}


ALLOWED = {"type": "net_allowed", "name": "pypi.org", "port": 443, "protocol": "tls", "reason": "allowed",
           "address": "192.0.2.7", "times": 2, "bytes_out": 10, "bytes_in": 2000, "text": "pypi.org:443 is allowed"}
LIMIT = {"type": "limit_hit", "limit": "limits.memory", "declared": "64M", "times": 1,
         "text": "the cage ran out of memory"}


def lines(done):
    return done.stdout.splitlines()


def last_lines(p, *events):
    """What is suggested."""
    if not (p.top / "state").exists():
        keep(p, of(*events))
    done = expect(log(p, "--denials", RUN), 0)
    return [line for line in lines(done) if line.startswith(("to allow", "of a name", "there are more"))]


@case
def events_are_shown_one_a_line(p):
    keep(p, of(LIMIT, denied("github.com", 22, "port", times=3), ALLOWED,
               {"type": "network_closed", "text": "the gate ended"}))
    done = expect(log(p), 0)
    assert done.stderr == ""
    assert lines(done) == [
        f"# run {RUN}",
        "limit_hit        once        the cage ran out of memory",
        "net_denied       3    times  github.com is denied",
        "net_allowed      2    times  pypi.org:443 is allowed (192.0.2.7; 10 bytes out, 2000 in)",
        "network_closed               the gate ended"], done.stdout


@case
def denials_are_what_was_denied_and_end_with_the_line_to_add(p):
    keep(p, of(LIMIT, denied("github.com", 22, "port", times=3), ALLOWED, denied("evil.example"),
               {**denied("slow.example", 443, "unreachable"), "type": "net_failed"}))
    done = expect(log(p, "--denials"), 0)
    shown = lines(done)
    assert [line.split()[0] for line in shown[1:3]] == ["net_denied", "name_denied"], shown
    assert "slow.example" not in done.stdout and "memory" not in done.stdout
    assert shown[3:] == [
        "of a name that was denied nobody knows the port: 443 is a guess",
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
    assert last_lines(p, denied("bawn-host", 22, "port")) == last_lines(p, denied("me.example", 22, "own_address"))
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


@case
def json_has_the_events_as_they_are(p):
    events = [LIMIT, denied("github.com", 22, "port"), {**ALLOWED, "of_tomorrow": [{"a": 1.5e3}, None]}]
    keep(p, of(*events))
    done = json.loads(expect(log(p, "--json"), 0).stdout)
    assert done == {"version": 1, "run": RUN, "outcome": "exited", "going_on": False, "events": events}, done
    done = json.loads(expect(log(p, "--json", "--denials"), 0).stdout)
    assert done["events"] == events[1:2] and done["allow"] == ["github.com:22"] and done["host_ports"] == []


@case
def escape_sequences_are_harmless(p):
    text = "\x1b]52;c;aGk=\x07\x9b2J‮\x7f\r\nfake: line \U000e0041"
    record = json.dumps(of(denied("a.example", 22, text=text), {"type": f"x{text}", "text": ""}), ensure_ascii=False)
    keep(p, record.replace("{", "{\n\t").encode())  # as it could be, and is not
    for args in ((), ("--denials",), ("--color", "always"), ("--json",), ("--json", "--denials")):
        done = expect(log(p, *args), 0)
        said = done.stdout.replace("\x1b[31m", "").replace("\x1b[33m", "").replace("\x1b[1m", "") \
            .replace("\x1b[m", "") if "--color" in args else done.stdout
        for bad in ("\x1b", "\x07", "\x9b", "‮", "\x7f", "\r", "\nfake", "\U000e0041"):
            assert bad not in said, (args, bad, said)
    assert json.loads(log(p, "--json").stdout)["events"][0]["text"] == text


@case
def sentences_of_any_bytes_are_read(p):
    """A path is any bytes, and what bawn writes of it bawn reads."""
    keep(p, of(denied("a.example", 22), error="cannot open '\udcff'"))
    expect(log(p), 0, "a.example")


@case
def what_is_no_record_is_said_to_be_none(p):
    good = json.dumps(of(LIMIT)).encode()
    records = {
        b"": "a map", b"{}": "events", b"[]": "a map", b"null": "a map", b"\0": "a map", b"\xff": "a map",
        good[:-1]: "a comma", good + b"x": "the end", good.replace(b"limits.memory", b"\xff"): "UTF-8",
        b"[" * 100000: "a map", b'{"events":' + b"[" * 100000: "a map",
        json.dumps({"events": []}).encode(): "an outcome",
        json.dumps({"outcome": "exited", "events": {}}).encode(): "a list",
        json.dumps(of("text")).encode(): "a map", json.dumps(of({})).encode(): "a type",
        json.dumps(of({"type": 1})).encode(): "a text", json.dumps(of({"type": "x", "text": []})).encode(): "a text",
        json.dumps(of(denied("a", 65536))).encode(): "a number that can be",
        json.dumps(of({"type": "x", "times": -1})).encode(): "a number that can be",
        json.dumps(of({"type": "x", "times": 1 << 63})).encode(): "an integer",
        json.dumps(of({"type": "x", "times": 1.5})).encode(): "an integer",
    }
    for i, (record, wanted) in enumerate(records.items()):
        name = f"20260102-030405-{i:08x}"
        keep(p, record, name)
        for args in ((), ("--denials",), ("--json",)):
            done = expect(log(p, name, *args), 125, f"cannot use record.json of run {name}", f"expected {wanted}")
            assert done.stdout == "" and done.stderr.count("\n") == 1, done


@case
def huge_records_are_refused_or_shown(p):
    keep(p, b"[" + b" " * (5 << 20), OTHER)
    expect(log(p), 125, "cannot read record.json", "File too large")
    event = json.dumps(denied("a.example", 22)).encode() + b","
    many = (4 << 20) // len(event) - 10
    keep(p, json.dumps(of(LIMIT)).encode().replace(b"[", b"[" + event * many))
    done = expect(log(p, RUN, "--denials"), 0)
    assert len(lines(done)) == many + 3
    keep(p, json.dumps(of({"type": "x" * 2000000, "text": "\x1b" * 300000})).encode(), "20260102-030405-0a0b0c0e")
    expect(log(p, "20260102-030405-0a0b0c0e"), 0)


@case
def a_record_that_is_no_file_is_not_waited_for(p):
    folder = keep(p, None)
    os.mkfifo(folder / "record.json")
    os.chown(folder / "record.json", p.uid, p.uid)
    expect(log(p), 125, "cannot use record.json")
    (folder / "record.json").unlink()
    (folder / "record.json").symlink_to("/etc/passwd")
    assert "root:" not in expect(log(p), 125, "cannot read record.json").stderr


@case
def the_newest_is_meant(p):
    keep(p, of(denied("new.example", 1)), OTHER)
    keep(p, of(denied("old.example", 1)))
    expect(log(p), 0, OTHER, "new.example")
    expect(log(p, RUN), 0, "old.example")
    expect(log(p, RUN[:8]), 0, "old.example")
    expect(log(p, "202601"), 1, "there is no run '202601'")
    expect(log(p, "20260104"), 1, "there is no run '20260104'")
    expect(log(p, "../../x"), 1, "there is no run")
    expect(log(p, RUN, OTHER), 2, "log shows one run")


@case
def within_a_second_the_last_to_be_written_is_the_newest(p):
    first, second = keep(p, of(denied("a.example", 1)), RUN), keep(p, of(denied("b.example", 1)), RUN[:-1] + "0")
    for newer, older, wanted in ((first, second, "a.example"), (second, first, "b.example")):
        os.utime(older, (1000, 1000))
        os.utime(newer, (2000, 2000))
        expect(log(p), 0, wanted)


@case
def where_nothing_is_that_is_said(p):
    expect(log(p), 0, "there is no run yet")
    assert json.loads(log(p, "--json").stdout)["events"] == []
    keep(p, of(LIMIT))
    done = expect(log(p, "--denials"), 0, f"nothing was denied to run {RUN}")
    assert done.stdout == ""
    assert log(p, "--denials", "-q").stderr == ""
    keep(p, of(), OTHER)
    expect(log(p), 0, "nothing is on record")
    assert expect(log(p, "--denials", "--json"), 0).stderr == ""


@case
def a_run_without_an_end_is_said_to_have_none(p):
    """Who has the lock tells one that goes on from one that was interrupted."""
    for number, record in enumerate((of(outcome="interrupted"), None)):
        name = f"20260102-030405-0000000{number}"
        folder = keep(p, record, name)
        fd = os.open(folder, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX)
        expect(log(p, name), 0, "is still going on")
        assert json.loads(log(p, name, "--json").stdout)["going_on"] is True
        os.close(fd)
        expect(log(p, name, "--denials"), 0, "was interrupted")
        shown = json.loads(log(p, name, "--json").stdout)
        assert shown["going_on"] is False and shown["outcome"] == "interrupted"


if __name__ == "__main__":
    run.main()
