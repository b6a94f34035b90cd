#!/usr/bin/env python3
"""Events as bawn log exports them, read by programs that are not ours: the SDK of CloudEvents, and the facts of OCSF.

    events.py BUILD BAWN        prints TAP
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import npm  # noqa: E402
import ocsf  # noqa: E402
from chain import chain, event  # noqa: E402

BUILD, BAWN = sys.argv[1:3]
RUN = "20260102-030405-0a0b0c0d"
CASES = []


def case(function):
    CASES.append(function)
    return function


def net(type, name="pip.test", **more):
    return event(type, 2, RUN, name=name, port=443, protocol="tls", reason="allowed", times=3, **more)


GOOD = [
    event("run_start", 0, RUN, bawn="0.1.0", kernel="6.1.0", engine="native", level="hardened", spec_sha256="a" * 64,
          plan_sha256="b" * 64, image=None, project="/home/someone/project", uid=1000, command="npm", again=None),
    event("preflight", 0, RUN, passed=True, sha256="c" * 64, by="bawn"),
    event("preflight", 0, RUN, passed=False, sha256="c" * 64, by="shell"),
    event("guarantee", 1, RUN, name="fs.root", need="must", declared="yes", holds=True, vantage="outside", seen="/"),
    event("guarantee", 1, RUN, name="net.gate", need="may", declared="yes", holds=False, vantage="inside", seen=""),
    event("degraded", 1, RUN, name="limits.cpu", text="there is no cgroup"),
    event("degraded", 1, RUN, op="mount", text="it was left out"),
    net("net_allowed", address="192.0.2.7", bytes_out=10, bytes_in=2000, text="pip.test:443 is allowed"),
    net("net_allowed", "2001:db8::1", address="2001:db8::1", bytes_out=1 << 50, bytes_in=0, text="allowed"),
    net("net_denied", other="192.168.0.1 (private)", text="pip.test:443 is denied"),
    net("net_denied", "192.0.2.1", text="192.0.2.1:443 is denied"),
    net("net_failed", other="Connection refused", text="pip.test:443 could not be reached"),
    {**net("net_denied", text="a datagram"), "protocol": "udp"},
    event("name_denied", 2, RUN, name="evil.example", reason="name", times=1, text="evil.example is denied"),
    net("published", "127.0.0.1", address="127.0.0.1", bytes_out=1, bytes_in=2, text="leads into the cage"),
    event("decisions_untold", 3, RUN, times=12, text="only the number is known"),
    event("network_closed", 3, RUN, text="the gate ended"),
    event("syscall_denied", 3, RUN, call="mount", number=165, error="EPERM", pid=4711, program="sh",
          arguments=["0x0"] * 6, times=2, text="mount was refused"),
    event("syscalls_untold", 3, RUN, times=12, text="only the number is known"),
    event("write_denied", 3, RUN, path=".git/hooks/pre-commit", call="openat", error="EACCES", pid=4711, program="sh",
          times=1, text="a write was refused"),
    event("sandbox_read_blocked", 3, RUN, path="/root/.ssh/id_rsa", agent="claude", tool="Read", by="hook",
          text="the hook of claude refused Read to read it"),
    event("sandbox_write_blocked", 3, RUN, path="/usr/bin/x", agent="codex", tool="apply_patch", by="hook",
          text="the hook of codex refused apply_patch to write it"),
    event("blocked_untold", 3, RUN, times=12, by="hook", text="only the number is known"),
    *(event("write_held", 3, RUN, path=".envrc", change=change, text="held back")
      for change in ("added", "changed", "deleted", "renamed", "of_tomorrow")),
    event("limit_hit", 3, RUN, limit="limits.memory", declared="2G", times=1, text="the cage ran out of memory"),
    event("refused", 4, RUN, error="there is no such command", kind="refused"),
    event("run_end", 5, RUN, outcome="exited", status=1, error=None, effects="d" * 64, used={"memory": 1, "cpu": 2.5}),
    event("run_end", 5, RUN, outcome="signaled", signal=9, error="killed", effects=None, used={}),
    event("interrupted", 6, RUN, text="the keeper died"),
    event("lease_lost", 6, RUN, "a session", worker="w1", token=7, text="the session was taken by another worker"),
    event("result_refused", 6, RUN, "a session", worker="w1", token=7, text="the result is not kept"),
    event("signed", 6, RUN, record_sha256="e" * 64, key="f" * 64),
    event("apply", 7, RUN, "a session", done=3, conflicts=0, held=1, error=None),
    event("discard", 7, RUN),
    event("session_created", 8, session="ab" * 16, name="web"),
    event("session_removed", 8, session="ab" * 16, name=None, why="expired"),
    event("key_made", 8, key="f" * 64, former=None),
    event("of_tomorrow", 9, RUN, "a session", some=[{"thing": None}, 1.5e3]),
]

# What a cage may name, and what somebody may write who is not bawn.
ODD_TEXTS = ("", " ", "\x1b]52;c;aGk=\x07", "‮evil", "a\nb", "x" * 4000, "\udcff\udc80", "\U000e0041é", '"\\', "null")
ODD = [
    *(net(type, text, address=text, text=text) for type in ("net_allowed", "net_denied") for text in ODD_TEXTS),
    *(event("name_denied", 1, RUN, name=text, reason=text, text=text) for text in ODD_TEXTS),
    *(event("write_denied", 1, RUN, path=text, program=text, pid=1, text=text) for text in (*ODD_TEXTS, "/", "a/")),
    *(event("syscall_denied", 1, RUN, call=text, program=text, text=text) for text in ODD_TEXTS),
    *(event(type, 1, text, text, name=text, text=text) for type in ("guarantee", "run_start", "x\x1b[m\ny", "é")
      for text in ODD_TEXTS),
    *(event(one["type"]) for one in GOOD),  # nothing but the type
    *({**{key: [1] for key in one}, "type": one["type"]} for one in GOOD),  # nothing that fits
    *({**{key: -1 for key in one}, "type": one["type"]} for one in GOOD),
    *({**one, "time": time} for one in GOOD[:2] for time in ("", "yesterday", "2026-02-30T00:00:00Z", 5, None,
                                                             "2026-01-02 03:04", "9999-12-31T23:59:60Z")),
]


def export(form, events):
    """The lines that bawn log writes."""
    with tempfile.TemporaryDirectory() as top:
        folder = pathlib.Path(top) / "bawn/runs" / RUN
        folder.mkdir(parents=True)
        for path in (folder, folder.parent, folder.parent.parent):
            path.chmod(0o700)
        (folder / "events.jsonl").write_bytes(chain(events)[0])
        done = subprocess.run([BAWN, "log", RUN, "--format", form], env={**os.environ, "XDG_STATE_HOME": top},
                              capture_output=True, check=False, timeout=120)
        assert done.returncode == 0 and not done.stderr, done
        for bad in (b"\x1b", b"\x07", b"\x9b", "‮".encode(), "\U000e0041".encode(), b"\\udcff", b"\\udc80"):
            assert bad not in done.stdout, bad
        lines = done.stdout.decode().splitlines()
        assert len(lines) == len(events), (len(lines), len(events))
        return lines


def read(node, lines):
    done = node.run("events.mjs", input="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@case
def the_sdk_of_cloudevents_takes_every_event(node):
    answers = read(node, export("cloudevents", GOOD + ODD))
    assert len(answers) == len(GOOD + ODD)
    for answer, wanted in zip(answers, GOOD + ODD):
        assert "error" not in answer, (answer, wanted)
    for answer, wanted in zip(answers, GOOD):
        assert answer["type"] == f"bawn.{wanted['type']}.v1" and answer.get("subject") == wanted["run"], answer
        assert {key: answer["data"][key] for key in wanted} == wanted and "prev" in answer["data"], answer
        assert answer["datacontenttype"] == "application/json" and answer["time"][:19] == wanted["time"][:19]
    names = {(answer["source"], answer["id"]) for answer in answers}
    assert len(names) == len(answers), "an id means one event"


@case
def the_sdk_of_cloudevents_refuses_what_is_none(node):
    """Otherwise the test above would prove nothing."""
    good = json.loads(export("cloudevents", GOOD[:1])[0])
    changes = [{"specversion": "1"}, {"id": ""}, {"source": ""}, {"source": "not a uri\\"}, {"type": ""},
               {"time": "yesterday"}, {"subject": ""}, {"Bad": "name"}]
    lines = [json.dumps({**good, **change}) for change in changes]
    lines += [json.dumps({key: value for key, value in good.items() if key != name}) for name in ("id", "source", "type")]
    for line, answer in zip(lines, read(node, lines)):
        assert "error" in answer, (line, answer)


@case
def ocsf_knows_every_attribute(_):
    for text, wanted in zip(export("ocsf", GOOD + ODD), GOOD + ODD):
        problems = ocsf.judge(json.loads(text))
        assert not problems, (problems, wanted, text)


@case
def ocsf_says_the_same(_):
    """What was said is there, or under `unmapped`, and nothing twice."""
    shown = [json.loads(text) for text in export("ocsf", GOOD)]
    classes = [one["class_uid"] for one in shown]
    assert set(classes) == {0, 1001, 1003, 1007, 2003, 2004, 3004, 4001, 4003, 6008}, set(classes)
    for one, wanted in zip(shown, GOOD):
        text = json.dumps(one)
        for key, value in wanted.items():
            if isinstance(value, str) and key not in ("time", "change"):
                assert json.dumps(value)[1:-1] in text, (key, value, one)
        assert one["metadata"]["uid"].startswith(RUN) and one["time"] % 1000 == 0
    digests = [one["raw_data_hash"]["value"] for one in shown]
    assert digests[:-1] == [one["unmapped"]["prev"] for one in shown[1:]], "the chain can be followed"
    by_type = {wanted["type"]: one for one, wanted in zip(shown, GOOD)}
    assert by_type["net_denied"]["action_id"] == 2 and by_type["net_allowed"]["action_id"] == 1
    assert by_type["net_denied"]["disposition_id"] == 2 and by_type["net_denied"]["activity_id"] == 5
    assert by_type["name_denied"]["query"] == {"hostname": "evil.example"}
    assert by_type["net_allowed"]["count"] == 3 and by_type["net_allowed"]["dst_endpoint"]["ip"] == "2001:db8::1"
    assert [one["activity_id"] for one in shown if one["metadata"]["event_code"] == "write_held"] == [1, 3, 4, 5, 3]


@case
def the_facts_of_ocsf_refuse_what_is_wrong(_):
    """Otherwise the tests above would prove nothing."""
    for text in export("ocsf", GOOD):
        good = json.loads(text)
        assert not ocsf.judge(good)
        for key in ("class_uid", "category_uid", "activity_id", "severity_id", "time", "type_uid", "metadata"):
            assert ocsf.judge({name: value for name, value in good.items() if name != key}), key
        for change in ({"colour": "red"}, {"severity_id": 55}, {"activity_id": 55}, {"time": "now"}, {"type_uid": 1},
                       {"category_uid": 8}, {"class_uid": 5}, {"device": {"hostname": "a"}}, {"device": {"type_id": 0}},
                       {"unmapped": 5}, {"count": "1"}, {"message": ["a"]}):
            assert ocsf.judge({**good, **change}), change
        for path in (("metadata", "version"), ("metadata", "product"), ("device", "type_id"), ("kernel", "name"),
                     ("file", "type_id"), ("query", "hostname"), ("connection_info", "direction_id")):
            bad = copy.deepcopy(good)
            if path[0] in bad:
                del bad[path[0]][path[1]]
                assert ocsf.judge(bad), path
        without = copy.deepcopy(good)
        without["metadata"]["profiles"] = []
        assert ocsf.judge(without) or "security_control" not in good["metadata"]["profiles"]


def main():
    print(f"1..{len(CASES)}")
    try:
        node, why = npm.Node(BUILD), None
    except npm.Missing as problem:
        node, why = None, str(problem)
    for number, test in enumerate(CASES, 1):
        name = test.__name__
        if node is None and "cloudevents" in name:
            print(f"ok {number} {name} # SKIP {why}")
            continue
        try:
            test(node)
            print(f"ok {number} {name}")
        except AssertionError as problem:
            print(f"not ok {number} {name}")
            print("# " + str(problem)[:2000].replace("\n", "\n# "))


if __name__ == "__main__":
    main()
