#!/usr/bin/env python3
"""What a run says in its log and in that of all runs, and that nobody can spoil either.

    run.py BAWN BREAKABLE        prints TAP

net.py has the events of a network, tests/unit/log_test.c what is done to single lines.
"""

import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import events
from events import in_both, last, of_type, runs, state
from place import BAWN, BREAKABLE, SLOW, case, expect, in_mount_namespace, main

# What other suites show: of a network net.py, of denied calls tests/cage, of hooks tests/hook, of workers
# tests/worker, of pruning prune.py.
ELSEWHERE = {"net_allowed", "net_denied", "net_failed", "name_denied", "published", "decisions_untold",
             "network_closed", "syscall_denied", "syscalls_untold", "write_denied", "sandbox_read_blocked",
             "sandbox_write_blocked", "blocked_untold", "lease_lost", "result_refused", "preflight", "pruned"}
# Of runs in sessions.
MEMBERS_ELSEWHERE = {("run_start", "cage"), ("run_start", "worker"), ("run_start", "lease"), ("run_start", "image_tree"),
                     ("inspected", "warm"), ("inspected", "terminal"), ("inspected", "overlay")}


# --- one run ---

@case
def a_run_is_told_from_its_start_to_its_end(p):
    expect(p.sh("echo hello; exit 3"), 3)
    told = last(p)
    kinds = [event["type"] for event in told]
    assert kinds == ["run_start", "inspected", "run_end"], kinds
    start, end = told[0], told[-1]
    assert start["version"] == 2 and told[1]["preflight_passed"] is True
    assert start["project"] == str(p.project) and start["uid"] == p.uid and start["command"] == "sh", start
    assert (end["outcome"], end["status"], end["used"]["printed"]) == ("exited", 3, 6), end
    record = p.record()
    assert record["effects"]["sha256"] == end["effects"] and record["plan_sha256"] == start["plan_sha256"]
    assert record["log"] == {"events": len(told), "last": p_hash(p)}, record["log"]
    assert len({event["run"] for event in told}) == 1 and {event["session"] for event in told} == {None}
    assert [event["time"] for event in told] == sorted(event["time"] for event in told)
    began, ended = state(p)[-2:]
    assert (began["type"], began["project"], began["network"]) == ("run_start", str(p.project), "none"), began
    assert (ended["type"], ended["outcome"], ended["status"]) == ("run_end", "exited", 3), ended
    folder = max(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
    assert ended["record_sha256"] == hashlib.sha256((folder / "record.intoto.jsonl").read_bytes()).hexdigest()


def p_hash(p):
    """The digest of the last line of the last run's log, by sha256sum."""
    path = max(p.state.glob("bawn/runs/*/events.jsonl"), key=lambda path: path.stat().st_ctime_ns)
    line = path.read_bytes().splitlines()[-1]
    return subprocess.run(["sha256sum"], input=line, capture_output=True, check=True).stdout.decode().split()[0]


@case
def guarantees_are_those_of_the_record(p):
    expect(p.sh("true", "--network", "host"), 0)
    (told,) = of_type(last(p), "inspected")
    told, record = told["guarantees"], p.record()["guarantees"]
    names = [name for need in ("must", "may") for group in told[need].values() for name in group]
    assert sorted(names) == sorted(record) and "net.none" not in names and len(names) > 10
    assert "fs.root" in told["must"]["outside"] and "landlock" in told["must"]["inside"], told
    assert record["fs.root"]["holds"] and record["ids"]["seen"] == told["seen"]["ids"], record["ids"]
    assert told["declared"]["fs.project"] == record["fs.project"]["declared"] == "captured"


@case
def what_is_missing_is_told(p):
    done = p.run("run", "--", "true", groups=(4321,)) if p.uid else \
        p.run("run", "--", "true", program=BREAKABLE, env={"BAWN_TEST_BREAK": "limits"})
    expect(done, 0)
    told = last(p)
    (seen,) = of_type(told, "inspected")
    missing = list(seen["guarantees"]["may"]["missing"])
    assert missing == p.record()["degraded"] and ("groups" if p.uid else "limits.memory") in missing, missing
    assert all(seen["guarantees"]["seen"][name] for name in missing), seen
    assert state(p)[-1]["degraded"] == missing, state(p)[-1]


# There is one listener in a line of filters, and this one has it.
LISTENING = """#!{python}
import ctypes, os, sys
NO_NEW_PRIVS, SET_MODE_FILTER, NEW_LISTENER, SECCOMP, ALLOW = 38, 1, 8, {number}, 0x7fff0000
class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]
class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(Filter))]
libc = ctypes.CDLL(None)
program = Program(1, ctypes.pointer(Filter(6, 0, 0, ALLOW)))
libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
os.set_inheritable(libc.syscall(SECCOMP, SET_MODE_FILTER, NEW_LISTENER, ctypes.byref(program)), True)
os.execv("{bawn}", ["bawn", *sys.argv[1:]])
"""


@case
def parts_that_were_left_out_are_told(p):
    number = {"x86_64": 317, "aarch64": 277}[os.uname().machine]
    text = LISTENING.format(python=sys.executable, number=number, bawn=BAWN)
    expect(p.run("run", "--", "true", program=p.write("listening", text, 0o755)), 0)
    told = [event for event in of_type(last(p), "degraded") if "op" in event]
    assert len(told) == p.record()["skipped_count"] == 1 and "listener" in told[0]["text"], told


@case
def a_failed_preflight_is_told_and_so_is_the_refusal(p):
    expect(p.run("run", "--", "true", program=BREAKABLE, env={"BAWN_TEST_BREAK": "home,look"}), 125)
    told = last(p)
    assert [event["type"] for event in told[-2:]] == ["inspected", "refused"], told[-2:]
    assert told[-2]["preflight_passed"] is False and told[-2]["preflight_by"] == "init", told[-2]
    assert told[-1]["kind"] == "refused", told[-1]
    assert "the preflight in the cage failed" in told[-1]["error"] and not of_type(told, "run_end")
    expect(p.run("run", "--", "/no/such/program"), 127)
    assert last(p)[-1]["kind"] == "not_found", last(p)[-1]


@case
def a_limit_that_was_reached_is_told(p):
    expect(p.sh("head -c 1025 /dev/zero", "--output", "1K"), 0)
    told = last(p)
    hit = told[-2]
    assert (hit["type"], hit["limit"], hit["declared"], hit["times"]) == ("limit_hit", "limits.output", "1K", 1), hit
    assert [event for event in p.record()["events"] if event["type"] == "limit_hit"] == \
        [{key: value for key, value in hit.items() if key in ("type", "limit", "declared", "times", "text")}]


@case
def signals_and_errors_are_told(p):
    expect(p.sh("kill -9 $$"), 137)
    end = last(p)[-1]
    assert (end["outcome"], end["signal"], "status" in end) == ("signaled", 9, False), end
    process = p.start("run", "--", "sh", "-c", "echo started; sleep 60")
    assert process.stdout.readline() == b"started\n"
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    os.kill(int(children[0]), signal.SIGKILL)
    process.communicate(timeout=20 * SLOW)
    end = last(p)[-1]
    assert end["outcome"] == "broken" and "ended from outside" in end["error"], end


# --- what becomes of it ---

@case
def what_is_held_back_is_told_and_so_are_apply_and_discard(p):
    expect(p.sh("mkdir -p .git/hooks; echo x >plain; for i in $(seq 70); do echo x >.git/hooks/h$i; done"), 0)
    told = last(p)
    held = of_type(told, "write_held")
    assert [event["type"] for event in told[-66:]] == ["write_held"] * 65 + ["run_end"]
    assert held[-1]["more"] == 70 - 64 and {event["path"] for event in held[:-1]} <= \
        {f".git/hooks/h{i}" for i in range(1, 71)}, held[-1]
    assert held[0]["change"] == "added" and "git" in held[0]["text"], held[0]
    before = p.record()["log"]
    p.run("apply")
    apply = last(p)[-1]
    assert (apply["type"], apply["done"], apply["held"], apply["conflicts"], apply["failed"]) == \
        ("apply", 1, 70, 0, 0), apply
    expect(p.run("apply", "--dry-run"), 1)
    assert last(p)[-1] == apply, "what was not done is not told"
    expect(p.run("discard"), 0)
    assert last(p)[-1]["type"] == "discard" and p.record()["log"] == before, "the record is of the run"


@case
def an_apply_that_fails_is_told(p):
    expect(p.sh("echo x >a; echo y >b"), 0)
    p.write("project/a", "meanwhile")
    expect(p.run("apply"), 1)
    assert (last(p)[-1]["done"], last(p)[-1]["conflicts"]) == (1, 1), last(p)[-1]
    expect(p.sh("mkdir sub; for i in 1 2 3; do head -c 300000 /dev/zero | tr '\\0' x >sub/$i; done"), 0)
    limit = (200000, resource.RLIM_INFINITY)
    expect(p.run("apply", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)), 1, "File too large")
    assert (last(p)[-1]["done"], last(p)[-1]["failed"]) == (0, 3), last(p)[-1]
    small = f"mount -t tmpfs -o size=100k,uid={p.uid} none {p.project}; cd {p.project}"
    expect(in_mount_namespace(p, small, "apply"), 125, "No space left on device")
    assert "No space left on device" in last(p)[-1]["error"], last(p)[-1]


@case
def a_log_that_cannot_be_written_hinders_no_apply(p):
    expect(p.sh("echo x >a"), 0)
    log = p.state / "bawn/log"
    shutil.rmtree(log)
    log.write_text("no folder")
    done = expect(p.run("apply"), 0, "is not in its log: cannot write to the log of all runs")
    assert len(done.stderr.splitlines()) == 1 and (p.project / "a").exists()
    assert runs(p)[0][-1]["type"] == "apply", "the run's own has it"


# --- the chains ---

def check_by_shell(path):
    with open(path, "rb") as file:
        return subprocess.run(["sh", "-c", events.checker()], stdin=file, capture_output=True, check=False, text=True)


@case
def the_loop_of_the_document_finds_every_change(p):
    for _ in range(2):
        expect(p.sh("true"), 0)
    for path in (p.state / "bawn/log/events.jsonl", *p.state.glob("bawn/runs/*/events.jsonl")):
        whole = path.read_bytes()
        done = check_by_shell(path)
        assert done.returncode == 0 and done.stdout.startswith("whole, and its last hash is "), done
        lines = whole.splitlines(keepends=True)
        for what in (lines[:1] + lines[2:], lines[:1] + [lines[2], lines[1]] + lines[3:], lines[1:],
                     lines[:1] + [lines[1]] + lines[1:], lines[:1] + [lines[1].replace(b"run", b"RUN")] + lines[2:]):
            path.write_bytes(b"".join(what))
            assert what != lines and check_by_shell(path).returncode == 1
        path.write_bytes(whole)


@case
def a_cage_sees_neither_file_and_writes_to_neither(p):
    expect(p.sh("true"), 0)
    path = p.state / "bawn/log/events.jsonl"
    run = next(p.state.glob("bawn/runs/*/events.jsonl"))
    before = path.read_bytes(), run.read_bytes()
    done = p.sh(f"for f in {path} {run}; do cat $f; echo no >>$f; done; find / -name events.jsonl 2>/dev/null; true")
    assert done.stdout == "", done
    assert path.read_bytes().startswith(before[0]) and run.read_bytes() == before[1]
    state(p)
    # Where somebody shows it the state, nothing runs.
    done = p.sh("true", "-v", f"{p.state}:/state:rw")
    assert done.returncode != 0, done
    for file in (path, run):
        assert file.stat().st_mode & 0o7777 == 0o600 and file.parent.stat().st_mode & 0o7777 == 0o700
        assert file.stat().st_uid == p.uid


@case
def many_runs_at_once_make_one_chain(p):
    started = [p.start("run", "--", "sh", "-c", "echo x >f; exit 7") for _ in range(8)]
    for process in started:
        process.communicate(b"", timeout=60 * SLOW)
        assert process.returncode == 7
    told = state(p)
    assert len(of_type(told, "run_start")) == len(of_type(told, "run_end")) == 8
    for events_of_one in runs(p):
        run = events_of_one[0]["run"]
        assert in_both(events_of_one) == in_both(event for event in told if event["run"] == run)
        assert [event["type"] for event in told if event["run"] == run][-1] == "run_end"
    assert check_by_shell(p.state / "bawn/log/events.jsonl").returncode == 0


@case
def a_full_disk_leaves_whole_lines(p):
    """On a small file system, filled to another degree each time."""
    statuses, complaints = set(), set()
    script = f"""mount -t tmpfs -o size=128k,mode=700,uid={p.uid},gid={p.uid} none {p.state}
mkdir {p.top}/out 2>/dev/null || true"""
    for left in range(4, 124, 4):
        fill = f"{script}\nhead -c {(128 - left) << 10} /dev/zero >{p.state}/fill || true"
        # What is in there is gone with the namespace.
        words = ["unshare", "-m", "sh", "-ec", f'{fill}\nstatus=0; "$@" || status=$?; rm {p.state}/fill\n'
                 f"cp -r {p.state}/. {p.top}/out; exit $status", "sh", *p.words(("run", "--", "echo", "RAN"))]
        done = subprocess.run(words, cwd=p.project, env=p.environ(None), capture_output=True, check=False, text=True,
                              timeout=20 * SLOW, stdin=subprocess.DEVNULL)
        assert done.returncode in (0, 125) and (done.returncode == 0) == (done.stderr == ""), (left, done)
        assert done.returncode or "RAN" in done.stdout
        for path in p.top.glob("out/bawn/**/events.jsonl"):
            told = events.read(path)
            assert done.returncode or told[-1]["type"] == "run_end", (left, told[-1])
        statuses.add((done.returncode, "RAN" in done.stdout))
        complaints |= {line for line in done.stderr.splitlines() if "log" in line or "events" in line}
        shutil.rmtree(p.top / "out")
    assert statuses == {(0, True), (125, True), (125, False)}, statuses
    assert any("No space left on device" in line for line in complaints), complaints


@case
def a_killed_keeper_leaves_the_beginning_of_a_chain(p):
    chance, lengths = random.Random(), set()
    for _ in range(20):
        process = p.start("run", "--", "sh", "-c", "echo x >f; sleep 0.01")
        time.sleep(chance.uniform(0, 0.06))
        process.kill()
        process.communicate()
        path = p.state / "bawn/log/events.jsonl"
        lengths.add(len(events.read(path, is_torn=True)) if path.exists() else 0)
    for told in runs(p, is_torn=True):
        # One that was killed before its first event has that of who came by next.
        assert not told or told[0]["type"] in ("run_start", "interrupted"), told[0]
    expect(p.sh("true"), 0)
    events.note(p)
    told = state(p)
    assert told[-1]["type"] in ("run_end", "signed", "interrupted") and len(lengths) > 2, (lengths, told[-1])
    # One that was killed between the two files has said more in its own.
    for one in runs(p):
        both = in_both(event for event in told if one and event["run"] == one[0]["run"])
        assert [event for event in in_both(one) if event in both] == both
    interrupted = {event["run"] for event in of_type(told, "interrupted")}
    unfinished = {one[0]["run"] for one in runs(p)
                  if one and not {event["type"] for event in one} & {"run_end", "refused"}}
    assert unfinished <= interrupted, unfinished - interrupted


# --- the document ---

@case
def every_documented_type_was_seen_with_its_members(p):
    p.run("key", "init")
    p.run("key", "init", "--force")
    expect(p.run("session", "create", "--name", "web"), 0)
    expect(p.run("session", "rm", "web"), 0)
    expect(p.sh("true"), 0)
    expect(p.run("run", "--again", last(p)[0]["run"]), 0)
    last(p)
    expect(p.run("run", "--digest-project", *p.spec("name: one\nrelaxed: true\n"), "--", "true"), 0)
    last(p)
    p.write(".config/bawn/policy.yaml", f"version: 1\nself_governance: {p.project}\n", 0o600)
    expect(p.sh("true"), 0)
    last(p)
    seen = events.SEEN[p.uid]
    missing = {kind: members - seen[kind] for kind, members in events.TYPES.items() if kind not in ELSEWHERE}
    assert set(missing) <= set(seen), set(missing) - set(seen)
    missing = {(kind, member) for kind, members in missing.items() for member in members} - MEMBERS_ELSEWHERE
    assert not missing, f"never seen: {sorted(missing)}"


if __name__ == "__main__":
    main()
