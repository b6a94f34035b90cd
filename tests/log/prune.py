#!/usr/bin/env python3
"""What is removed of the state, what never is, and the signed line that is left of it.

    prune.py BAWN BREAKABLE        prints TAP
"""

import base64
import hashlib
import json
import os
import pty
import shutil
import signal
import subprocess
import time

import events  # noqa: F401  (says where place is)
from place import BAWN, case, expect, main, wait_until

QUICK = ("-q", "--read-only")


def runs_of(p):
    """Ids of the runs whose folders are there, the oldest first."""
    return sorted(path.name for path in p.state.glob("bawn/runs/*"))


def some_runs(p, count):
    for _ in range(count):
        expect(p.run("run", *QUICK, "--", "true"), 0)
    return runs_of(p)


def prune(p, *options, status=0):
    done = expect(p.run("prune", *options), status)
    return done.stdout + done.stderr


def pruned(p):
    """What the signed lines say, each checked by openssl with the operator's public key."""
    found = []
    for line in (p.state / "bawn/log/events.jsonl").read_bytes().splitlines():
        event = json.loads(line)
        if event["type"] != "pruned":
            continue
        envelope = json.loads(event["signed"])
        payload = base64.b64decode(envelope["payload"])
        signed = b"DSSEv1 %d %s %d %s" % (len(envelope["payloadType"]), envelope["payloadType"].encode(),
                                          len(payload), payload)
        (p.top / "signed").write_bytes(signed)
        (p.top / "signature").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
        subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", p.state / "bawn/keys/signing.pub",
                        "-rawin", "-in", p.top / "signed", "-sigfile", p.top / "signature"],
                       check=True, capture_output=True)
        found.append(json.loads(payload))
    return found


@case
def the_oldest_go_and_leave_their_digests_in_a_signed_line(p):
    ids = some_runs(p, 5)
    digests = {f"{run}/record.intoto.jsonl": hashlib.sha256(
        (p.state / "bawn/runs" / run / "record.intoto.jsonl").read_bytes()).hexdigest() for run in ids[:3]}
    said = prune(p, "--keep-runs", "2", "--yes")
    assert said.startswith("removed 3 runs and 0 files of the log"), said
    assert runs_of(p) == ids[3:]
    statement, = pruned(p)
    assert {x["name"]: x["digest"]["sha256"] for x in statement["subject"]} == digests, statement
    assert statement["predicateType"] == "urn:bawn:pruned:v1"
    assert not (p.state / "bawn/pruned").exists()
    # What is left is as good as before, and the chain is whole.
    expect(p.run("verify", ids[3]), 0)
    assert "broken" not in expect(p.run("log", "--all"), 0).stderr
    assert "3 runs" in expect(p.run("log", "--all"), 0).stdout


@case
def nothing_is_removed_on_a_terminal_before_somebody_says_so(p):
    ids = some_runs(p, 3)
    near, far = pty.openpty()
    os.fchown(far, p.uid, p.uid)
    done = p.run("prune", "--keep-runs", "1", stdout=far, stdin=None)
    os.close(far)
    said = os.read(near, 4096).decode()
    os.close(near)
    assert done.returncode == 0 and "would remove 2 runs" in said and ids[0] in said, said
    assert "hint: bawn prune --yes" in done.stderr, done.stderr
    assert runs_of(p) == ids and pruned(p) == []
    assert "would remove 2 runs" in prune(p, "--keep-runs", "1", "--dry-run") and runs_of(p) == ids
    prune(p, "--keep-runs", "1")
    assert runs_of(p) == ids[2:], "nobody is asked where there is no terminal"


@case
def specs_and_plans_that_no_run_has_any_more_go_too(p):
    parts = lambda: sorted(path.name for kind in ("plans", "specs") for path in p.state.glob(f"bawn/{kind}/*"))  # noqa: E731
    expect(p.run("run", *QUICK, "-m", "1G", "--allow-degraded", "limits.memory", "--", "true"), 0)
    first = parts()
    ids = some_runs(p, 2)
    both = parts()
    assert len(first) == 2 and len(both) == 4
    prune(p, "--keep-runs", "2")
    assert runs_of(p) == ids[1:] and parts() == both, "they are young: a run that begins just now may use them"
    for path in p.state.glob("bawn/*s/*.json"):
        os.utime(path, (time.time() - 100000,) * 2)
    some_runs(p, 1)
    prune(p, "--keep-runs", "2")
    assert parts() == sorted(set(both) - set(first))
    assert expect(p.run("record", "show"), 0) and expect(p.run("verify"), 0)


@case
def by_age_and_by_size(p):
    ids = some_runs(p, 3)
    one = sum(path.lstat().st_size for path in (p.state / "bawn/runs" / ids[2]).iterdir() if not path.is_symlink())
    prune(p, "--keep-size", str(one + one // 2))
    assert runs_of(p) == ids[2:]
    prune(p, "--keep-age", "1h")
    assert runs_of(p) == ids[2:]
    prune(p, "--keep-age", "1ms")
    assert runs_of(p) == []


@case
def what_nobody_has_reviewed_stays(p):
    expect(p.sh("echo x >made", "-q"), 0)
    ids = some_runs(p, 1)
    said = prune(p, "--keep-runs", "1")
    assert f"run {ids[0]} is above" in said and "neither applied nor discarded" in said, said
    assert ids[0] in runs_of(p)
    expect(p.run("apply", ids[0]), 0)
    prune(p, "--keep-runs", "1")
    assert runs_of(p) == ids[1:] and (p.project / "made").exists()


@case
def what_goes_on_stays(p):
    process = p.start("run", *QUICK, "--", "sleep", "60")
    wait_until(lambda: runs_of(p) and (p.state / "bawn/runs" / runs_of(p)[0] / "events.jsonl").exists(), 10, "the start")
    going, = runs_of(p)
    some_runs(p, 1)
    assert "it goes on" in prune(p, "--keep-runs", "1")
    assert going in runs_of(p)
    process.terminate()
    process.wait(timeout=20)
    prune(p, "--keep-runs", "1")
    assert going not in runs_of(p)


@case
def what_waits_for_its_signature_stays(p):
    process = p.start("run", *QUICK, "--", "sleep", "60")
    wait_until(lambda: any(path.stat().st_size for path in p.state.glob("bawn/runs/*/events.jsonl")), 10, "the start")
    killed, = runs_of(p)
    keeper = [int(line.split()[0]) for line in subprocess.run(
        ["ps", "-e", "-o", "pid=,args="], capture_output=True, text=True, check=True).stdout.splitlines()
        if f"{BAWN} run" in line and "setpriv" not in line and "sleep 60" in line]
    for pid in keeper:
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=20)
    assert "not signed yet" in prune(p, "--keep-age", "1ms")
    some_runs(p, 1)
    assert json.loads(expect(p.run("record", "show", killed, "--json"), 0).stdout)
    prune(p, "--keep-age", "1ms")
    assert runs_of(p) == []


@case
def runs_of_a_session_stay_as_long_as_it_does(p):
    expect(p.run("session", "create", "--name", "web"), 0)
    expect(p.run("session", "exec", "web", "--", "true"), 0)
    expect(p.run("session", "stop", "web"), 0)
    ids = runs_of(p)
    assert "its session is kept" in prune(p, "--keep-age", "1ms")
    assert runs_of(p) == ids
    expect(p.run("session", "rm", "web"), 0)
    prune(p, "--keep-age", "1ms")
    assert runs_of(p) == []


@case
def without_a_signed_line_nothing_is_removed(p):
    ids = some_runs(p, 2)
    key = p.state / "bawn/keys/signing.pem"
    kept = key.read_bytes()
    key.unlink()
    said = prune(p, "--keep-runs", "1", status=125)
    assert "cannot sign what is pruned: there is no signing key" in said and runs_of(p) == ids, said
    p.write(key, kept, 0o600)
    log = p.state / "bawn/log/events.jsonl"
    shutil.move(log, p.top / "kept")
    log.mkdir()
    said = prune(p, "--keep-runs", "1", status=125)
    assert "log of all runs" in said and runs_of(p) == ids, said
    log.rmdir()
    shutil.move(p.top / "kept", log)
    # And with it, they go.
    prune(p, "--keep-runs", "1")
    assert runs_of(p) == ids[1:]


@case
def what_a_power_cut_left_half_removed_is_removed_by_the_next(p):
    some_runs(p, 1)
    left = p.make(p.state / "bawn/pruned/20260102-030405-0a0b0c0d", 0o700)
    p.write(left / "events.jsonl", "{}\n")
    prune(p, "--keep-runs", "5")
    assert not (p.state / "bawn/pruned").exists()


@case
def a_link_in_the_place_of_a_run_is_not_followed(p):
    ids = some_runs(p, 2)
    treasure = p.make("treasure")
    p.write(treasure / "file", "precious")
    link = p.state / "bawn/runs/20200102-030405-0a0b0c0d"
    link.symlink_to(treasure)
    prune(p, "--keep-runs", "1")
    assert (treasure / "file").read_text() == "precious" and runs_of(p)[-1] == ids[1]


@case
def the_policy_says_how_much_is_kept_and_runs_see_to_it(p):
    p.write(".config/bawn/policy.yaml", "version: 1\nkeep_runs: 3\n", 0o600)
    ids = some_runs(p, 6)
    assert len(ids) == 3, ids
    assert sum(len(statement["subject"]) for statement in pruned(p)) == 3
    p.write(".config/bawn/policy.yaml", "version: 1\nkeep_runs: 100\n", 0o600)
    assert len(some_runs(p, 3)) == 6
    p.write(".config/bawn/policy.yaml", "version: 1\nkeep_runs: many\n", 0o600)
    assert "keep_runs" in prune(p, status=125)
    p.write(".config/bawn/policy.yaml", "version: 1\nkeep_runs: 1\n", 0o600)
    expect(p.run("session", "sweep"), 0)
    assert len(runs_of(p)) == 1


def rename_log(p):
    """As if the log had grown too large: what it was so far goes to a file of its own."""
    folder = p.state / "bawn/log"
    number = json.loads((folder / "events.jsonl").read_bytes().splitlines()[-1])["seq"] + 1
    former = folder / f"events-{number}.jsonl"
    (folder / "events.jsonl").rename(former)
    return former


@case
def an_old_file_of_the_log_goes_and_the_chain_still_verifies(p):
    some_runs(p, 1)
    former = rename_log(p)
    some_runs(p, 1)
    digest = hashlib.sha256(former.read_bytes()).hexdigest()
    prune(p, "--keep-age", "1h")
    assert former.exists(), "it is young"
    os.utime(former, (time.time() - 7200,) * 2)
    assert "1 file of the log" in prune(p, "--keep-age", "1h")
    assert not former.exists()
    statement = pruned(p)[-1]
    assert statement["subject"] == [{"name": former.name, "digest": {"sha256": digest}}], statement
    first = json.loads((p.state / "bawn/log/events.jsonl").read_bytes().splitlines()[0])
    assert statement["predicate"]["log"] == {"next": first["seq"], "last": first["prev"]}, statement
    said = expect(p.run("log", "--all"), 0)
    assert "those before were pruned, as a signed line says" in said.stderr, said.stderr


@case
def a_log_whose_beginning_just_vanished_is_not_called_pruned(p):
    some_runs(p, 1)
    former = rename_log(p)
    some_runs(p, 1)
    former.unlink()
    said = expect(p.run("log", "--all"), 0)
    assert "in files that are not here" in said.stderr and "pruned" not in said.stderr, said.stderr
    # Neither is one that somebody else signed: the line is right but for its key.
    former = rename_log(p)
    some_runs(p, 1)
    os.utime(former, (time.time() - 7200,) * 2)
    prune(p, "--keep-age", "1h", "--keep-runs", "100")
    assert "as a signed line says" in p.run("log", "--all").stderr
    shutil.rmtree(p.state / "bawn/keys")
    expect(p.run("key", "init"), 0)
    assert "as a signed line says" not in p.run("log", "--all").stderr


@case
def two_at_one_time_remove_each_once(p):
    ids = some_runs(p, 12)
    both = [p.start("prune", "--keep-runs", "2") for _ in range(2)]
    for process in both:
        process.communicate(timeout=20)
        assert process.returncode == 0
    prune(p, "--keep-runs", "2")
    assert runs_of(p) == ids[10:]
    assert sum(len(statement["subject"]) for statement in pruned(p)) == 10


@case
def wrong_words_are_explained(p):
    for option, value in (("--keep-runs", "-1"), ("--keep-runs", "many"), ("--keep-age", "1x"), ("--keep-size", "much")):
        assert f"cannot use {option} '{value}'" in prune(p, f"{option}={value}", status=2)
    assert "would remove 0 runs" in prune(p, "--dry-run"), "where there is no state there is nothing to remove"


if __name__ == "__main__":
    main()
