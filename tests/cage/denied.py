#!/usr/bin/env python3
"""System calls that the filter refuses: refused as ever, and told.

    denied.py BAWN BREAKABLE        prints TAP
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from place import BREAKABLE, FILES, SLOW, TOOL, case, descendants, expect, expect_refusal, main, wait_until  # noqa: E402

ANSWERS = """\
mount EPERM
unshare EPERM
keyctl EPERM
bpf EPERM
ioctl EPERM
chmod EPERM
chmod EPERM
clone3 ENOSYS
openat2 ENOSYS
call ENOSYS
socket EAFNOSUPPORT
setrlimit 0
seccomp EPERM
"""
TOLD = {"mount": 1, "unshare": 1, "keyctl": 1, "bpf": 1, "ioctl": 1, "chmod": 2, "seccomp": 1}


def denied(record):
    return [event for event in record["events"] if event["type"] == "syscall_denied"]


def times(record):
    return {event["call"]: event["times"] for event in denied(record)}


def events(p):
    """What the log of the last run has, as (call, times)."""
    folder = max(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()]
    return [(line["call"], line["times"]) for line in lines if line["type"] == "syscall_denied"]


def not_told(record):
    """Why, where the record says that nothing is told."""
    return [note["why"] for note in record["skipped"] if note["op"] == "tell"]


@case
def calls_are_refused_as_ever_and_told(p):
    said = expect(p.tool("refused"), 0)
    assert said.stdout == ANSWERS, said.stdout
    record = p.record()
    assert times(record) == TOLD, times(record)
    assert events(p) == [(name, 1) for name in TOLD] + [("chmod", 2)], events(p)
    assert not not_told(record)
    for event in denied(record):
        assert event["program"] == "tool" and event["error"] == "EPERM" and event["pid"] > 1, event
        assert f"{event['call']} by tool was refused with EPERM: " in event["text"], event
    typing = [event for event in denied(record) if event["call"] == "ioctl"]
    assert typing[0]["arguments"][1] == "0x5412", typing
    assert record["guarantees"]["syscalls"]["holds"] is True
    assert record["guarantees"]["syscalls"]["vantage"] == "outside"


@case
def without_a_listener_they_are_refused_and_not_told(p):
    # The twin: what is told comes from there, and what is refused does not.
    said = expect(p.tool("refused", program=BREAKABLE, env={"BAWN_TEST_BREAK": "tell"}), 0)
    assert said.stdout == ANSWERS and "denied" not in said.stderr
    assert denied(p.record()) == []


@case
def without_the_filter_nothing_is_refused(p):
    said = expect(p.tool("refused", program=BREAKABLE, env={"BAWN_TEST_BREAK": "syscalls,look"}), 0)
    assert "clone3 EINVAL" in said.stdout and "chmod 0" in said.stdout, said.stdout
    assert denied(p.record()) == []


def without(p, *rules, options=()):
    """The tool in a cage on a kernel that lacks something."""
    wrapper = FILES / "without"
    if not wrapper.exists():
        source = pathlib.Path(__file__).resolve().parents[1] / "kernels/without.c"
        subprocess.run([*os.environ.get("CC", "cc").split(), "-O1", "-D_GNU_SOURCE", "-o", wrapper, source], check=True)
    bawn = p.words(["run", "-v", f"{TOOL}:/tool", *options, "--", "/tool", "refused"])
    done = subprocess.run([wrapper, *rules, "--", *bawn], cwd=p.project, env=p.environ(None), capture_output=True,
                          check=False, timeout=20 * SLOW, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stdout.decode() == ANSWERS, done
    assert denied(p.record()) == []
    return not_told(p.record())


@case
def a_kernel_without_listeners_is_on_record(p):
    assert without(p, "seccomp:3=EINVAL") == ["cannot report what the system-call filter denies: the kernel has no listeners"]


@case
def a_listener_around_bawn_is_on_record(p):
    # The wrapper looks into memory for this rule, and so it is a listener.
    assert without(p, "fsopen:nothing") == [
        "cannot report what the system-call filter denies: a filter around bawn has a listener already"]


@case
def that_writes_are_not_told_is_on_record_too(p):
    watched = ["--write", *p.spec("audit: {watch_protected: true}\n")]
    whys = without(p, "seccomp:3=EINVAL", options=watched)
    assert whys == ["cannot report what the system-call filter denies: the kernel has no listeners"] * 2, whys
    whys = without(p, "fsopen:nothing", options=watched)
    assert whys == ["cannot report what the system-call filter denies: a filter around bawn has a listener already"] * 2, whys


@case
def the_operator_hears_of_it_once(p):
    said = expect(p.tool("refused"), 0)
    lines = [line for line in said.stderr.splitlines() if "denied" in line]
    assert len(lines) == 1 and "mount (by tool), unshare (by tool), keyctl (by tool) and 4 more" in lines[0], lines
    assert lines[0].endswith("bawn log --denials " + p.record()["run"]), lines
    quiet = expect(p.tool("refused", options=("-q",)), 0)
    assert "denied" not in quiet.stderr
    shown = expect(p.run("log", "--denials"), 0, "mount by tool was refused with EPERM: a cage has the tree of files")
    assert "(2 times)" in shown.stdout, shown.stdout


@case
def programs_hear_of_it_on_the_status_descriptor(p):
    read, write = os.pipe()
    expect(p.tool("refused", options=("--status-fd", str(write)), pass_fds=(write,)), 0)
    os.close(write)
    with open(read, "rb") as lines:
        events = [json.loads(line) for line in lines]
    told = [(event["call"], event["times"]) for event in events if event["event"] == "syscall_denied"]
    assert sorted(told) == sorted([(name, 1) for name in TOLD] + [("chmod", 2)]), told
    assert events[0]["event"] == "started" and events[-1]["event"] == "exited", events


@case
def a_flood_is_counted_and_its_output_arrives(p):
    began = time.monotonic()
    process = p.start("run", "-v", f"{TOOL}:/tool", "--", "/tool", "flood", "50000")
    first = process.stdout.readline()
    arrived = time.monotonic() - began
    out, err = process.communicate(timeout=60 * SLOW)
    assert process.returncode == 0 and first == b"begun\n" and out == b"0 wrong\n", (first, out, err)
    assert arrived < 3 * SLOW, arrived
    assert times(p.record()) == {"personality": 100000}, denied(p.record())
    assert b"denied" not in err  # one that programs merely try


@case
def a_keeper_that_sleeps_lets_nothing_through(p):
    process = p.start("run", "-v", f"{TOOL}:/tool", "--", "/tool", "flood", "3000")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    waiting = [pid for pid, said in descendants().items() if said.startswith("(tool)")]
    assert len(waiting) == 3, descendants()
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=20 * SLOW)
    assert process.returncode == 0 and out == b"0 wrong\n", (out, err)
    assert times(p.record()) == {"personality": 6000}


@case
def who_waits_for_an_answer_can_be_killed(p):
    process = p.start("run", "-v", f"{TOOL}:/tool", "--", "/tool", "flood", "100000000")
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.1)
    waiting = sorted(pid for pid, said in descendants().items() if said.startswith("(tool)"))
    for pid in waiting[1:]:  # the first waits for the others
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: sum(said.startswith("(tool)") for said in descendants().values()) <= 1, 5, "they end")
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=20 * SLOW)
    assert out == b"2 wrong\n" and process.returncode == 2, (out, err)


@case
def who_waits_for_an_answer_ends_with_the_keeper(p):
    process = p.start("run", "-v", f"{TOOL}:/tool", "--", "/tool", "flood", "100000000")
    assert process.stdout.readline() == b"begun\n"
    process.kill()
    process.wait()
    wait_until(lambda: not descendants(), 5, "all end")
    process.communicate()


@case
def the_end_of_the_command_ends_who_waits(p):
    began = time.monotonic()
    script = "/tool flood 100000000 >/dev/null & sleep 0.5; echo done"
    said = expect(p.sh(script, "-v", f"{TOOL}:/tool"), 0)
    assert said.stdout == "done\n" and time.monotonic() - began < 5 * SLOW
    assert times(p.record())["personality"] > 100


@case
def the_end_of_its_time_ends_a_flood(p):
    began = time.monotonic()
    expect(p.tool("flood", "100000000", options=p.spec("limits: {time: 1s}\n")), 124)
    assert time.monotonic() - began < 8 * SLOW


@case
def startup_commands_are_told_too(p):
    spec = p.spec('startup_commands: ["/tool refused >/dev/null"]\n')
    expect(p.run("run", "-v", f"{TOOL}:/tool", *spec, "--", "true"), 0)
    assert times(p.record()) == TOLD


@case
def a_profile_from_a_file_tells_what_it_forbids(p):
    profile = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
        {"names": ["personality"], "action": "SCMP_ACT_ERRNO", "errnoRet": 13},
        {"names": ["keyctl"], "action": "SCMP_ACT_ERRNO", "errnoRet": 61},
        {"names": ["umount2"], "action": "SCMP_ACT_LOG"}]}
    p.write("project/profile.json", json.dumps(profile))
    spec = p.spec("syscalls: profile.json\n")
    said = expect(p.tool("refused", options=spec), 0)
    assert "keyctl EPERM" in said.stdout  # the wall's own word is the stricter
    record = p.record()
    assert times(record) == TOLD and not not_told(record), times(record)
    expect(p.tool("flood", "2", options=spec), 2, "2 wrong")
    assert [(event["call"], event["error"], event["times"]) for event in denied(p.record())] == [
        ("personality", "EACCES", 4)]


@case
def a_profile_that_does_not_let_the_cage_speak_does_not_hang(p):
    profile = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["sendmsg"], "action": "SCMP_ACT_ERRNO"}]}
    p.write("project/profile.json", json.dumps(profile))
    began = time.monotonic()
    expect_refusal(p.run("run", *p.spec("syscalls: profile.json\n"), "--", "echo", "RAN"), "the cage ended")
    assert time.monotonic() - began < 5 * SLOW


@case
def a_filter_within_gets_no_call_through(p):
    said = expect(p.tool("ask-nobody"), 0)
    assert said.stdout == "mount ENOSYS\numount2 EPERM\n", said.stdout
    assert times(p.record()) == {"umount2": 1}


@case
def many_names_take_no_room(p):
    said = expect(p.tool("be-many"), 0)
    assert "\x1b" not in said.stderr and said.stdout == "bpf EPERM\n", said.stderr
    rows = denied(p.record())
    keys = [row for row in rows if row["call"] == "keyctl"]
    assert sum(row["times"] for row in keys) == 50 and len(keys) == 5, keys
    assert [row["times"] for row in keys if row["program"] is None] == [46], keys
    assert [row["times"] for row in rows if row["call"] == "bpf"] == [1], rows
    assert "\x1b" not in expect(p.run("log", "--denials"), 0).stdout


if __name__ == "__main__":
    main()
