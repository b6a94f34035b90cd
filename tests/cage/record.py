#!/usr/bin/env python3
"""Records: when they are signed and what they say, bawn record, and what killed keepers leave.

    record.py BAWN BREAKABLE        prints TAP

Whether a signature is good is the matter of tests/verify and tests/peers.
"""

import hashlib
import io
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time

sys.dont_write_bytecode = True
import records  # noqa: E402
from records import chain  # noqa: E402
from place import BAWN, BREAKABLE, Skip, case, descendants, expect, expect_refusal, main, reap, wait_until  # noqa: E402


def folders(p):
    return sorted((p.state / "bawn/runs").iterdir())


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def kill_in_the_middle(p, *args):
    """A run whose keeper is killed while its command runs."""
    keeper = p.start("run", *args, "--", "sh", "-c", "echo ready; sleep 30")
    assert keeper.stdout.readline() == b"ready\n"
    keeper.kill()
    keeper.communicate(timeout=20)
    wait_until(lambda: reap() or not descendants(), 5, "the end of the cage")


@case
def the_record_binds_spec_plan_log_and_effects(p):
    expect(p.sh("echo text >new"), 0)
    (folder,) = folders(p)
    record, (statement, provenance) = records.read(folder), records.statements(folder / records.FILE)
    assert record["spec_sha256"] == sha256(records.part(folder, "spec"))
    assert record["plan_sha256"] == sha256(records.part(folder, "plan"))
    assert record["effects"]["file_sha256"] == sha256(folder / "effects.json")
    effects = json.loads((folder / "effects.json").read_bytes())["digest"]
    assert record["effects"]["sha256"] == effects
    events, last = chain(folder / "events.jsonl")
    assert record["log"] == {"events": len(events), "last": last}
    assert statement["_type"] == provenance["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == provenance["subject"] == [{"name": "effects", "digest": {"sha256": effects}}]
    assert statement["predicateType"] == "urn:bawn:record:v2"
    assert provenance["predicateType"] == "https://slsa.dev/provenance/v1"
    made = provenance["predicate"]
    assert made["buildDefinition"]["externalParameters"]["spec"]["sha256"] == record["spec_sha256"]
    assert made["runDetails"]["metadata"]["invocationId"] == record["run"] == folder.name
    assert record["in_chain"] and record["session"] is None and record["image"] == {"name": "host", "sha256": None}
    assert not list(p.state.glob("bawn/unsigned/*"))


@case
def what_a_run_used_is_on_record(p):
    expect(p.sh("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; echo 1234567; head -c 1000 /dev/zero >file"), 0)
    used = p.record()["used"]
    assert used["printed"] == 8 and used["written"] == 1000, used
    assert used["cpu_us"] > 0, used


PRINTS = "printf 'one\\r\\n'; printf two >&2"


def printed(text):
    return {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}


@case
def what_is_printed_is_on_record_by_digest(p):
    out, err = printed(b"one\r\n"), printed(b"two")
    expect(p.sh(PRINTS), 0)
    assert p.record()["output"] == {"together": False, "stdout": out, "stderr": err}, p.record()["output"]
    expect(p.sh(PRINTS, stderr=subprocess.DEVNULL), 0)
    assert p.record()["output"] == {"together": False, "stdout": out}, p.record()["output"]
    with open(p.write("both", ""), "wb") as file:
        expect(p.sh(PRINTS, stdout=file, stderr=file), 0)
    assert p.record()["output"] == {"together": True, "stdout": printed(b"one\r\ntwo")}, p.record()["output"]
    expect(p.sh(PRINTS.replace("\\r", ""), "-t"), 0)
    assert p.record()["output"] == {"together": False, "stdout": out, "stderr": err}, "a terminal ends lines so"
    expect(p.run("run", *p.spec("record: { output: no }\n"), "--", "sh", "-c", PRINTS), 0)
    assert "output" not in p.record()


@case
def what_is_printed_is_kept_beside_the_record(p):
    keep = p.spec("record: { output: keep }\n")
    expect(p.run("run", *keep, "--", "sh", "-c", PRINTS), 0)
    folder, output = folders(p)[-1], p.record()["output"]
    assert (folder / "stdout").read_bytes() == b"one\r\n" and (folder / "stderr").read_bytes() == b"two"
    assert output["stdout"]["kept"] == 5 and output["stdout"]["kept_sha256"] == output["stdout"]["sha256"], output
    told = expect(p.run("verify", folder.name), 0).stdout
    assert "stdout      yes" in told and "stderr      yes" in told, told
    (folder / "stderr").write_bytes(b"too")
    assert "stderr      no" in expect(p.run("verify", folder.name), 1).stdout
    with open(os.devnull, "wb") as null:
        zeros = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=null)
        expect(p.run("run", *keep, "--", "head", "-c", "17000000", "/dev/zero", stdout=zeros.stdin), 0)
        zeros.communicate()
    folder, output = folders(p)[-1], p.record()["output"]["stdout"]
    assert output == {**printed(bytes(17000000)), "kept": 16 << 20,
                      "kept_sha256": hashlib.sha256(bytes(16 << 20)).hexdigest()}, output
    assert (folder / "stdout").stat().st_size == 16 << 20
    expect(p.run("verify", folder.name), 0)


@case
def a_relaxed_run_is_signed_and_outside_the_chain(p):
    expect(p.run("run", *p.spec("relaxed: true\n"), "--", "true"), 0)
    record = p.record()
    assert record["in_chain"] is False and record["level"] == "custom", record
    assert "outside the chain" in expect(p.run("record", "show"), 0).stdout


@case
def a_refused_run_is_signed_too(p):
    expect(p.run("run", "--", "no-such-command"), 127)
    record = p.record()
    assert record["outcome"] == "refused" and "no-such-command" in record["error"], record
    (folder,) = folders(p)
    events, last = chain(folder / "events.jsonl")
    assert events[-1]["type"] == "refused" and record["log"]["last"] == last
    subject, = records.statements(folder / records.FILE)[0]["subject"]
    assert subject == {"name": "events.jsonl", "digest": {"sha256": sha256(folder / "events.jsonl")}}


@case
def a_refusal_without_a_plan_is_an_event(p):
    expect(p.run("run", *p.spec("nonsense: 1\n"), "--", "true"), 125, "unknown key 'nonsense'")
    events, _ = chain(p.state / "bawn/log/events.jsonl")
    assert [event["type"] for event in events] == ["refused"], events


@case
def a_key_that_a_run_makes_is_an_event(p):
    expect(p.sh("true"), 0)
    expect(p.sh("true"), 0)
    events, _ = chain(p.state / "bawn/log/events.jsonl")
    made = [event for event in events if event["type"] == "key_made"]
    assert len(made) == 1 and made[0]["key"] == json.loads(p.run("key", "show", "--json").stdout)["id"], made
    signed = [json.loads(line)["signatures"][0]["keyid"] for folder in folders(p)
              for line in (folder / records.FILE).read_bytes().splitlines()]
    assert len(signed) == 4 and set(signed) == {made[0]["key"]}, signed


@case
def without_a_usable_key_nothing_runs(p):
    expect(p.sh("true"), 0)
    key = p.state / "bawn/keys/signing.pem"
    key.chmod(0o644)
    expect_refusal(p.sh("echo ran"), "signing.pem")
    key.chmod(0o600)
    key.write_bytes(b"-----BEGIN PRIVATE KEY-----\n")
    expect_refusal(p.sh("echo ran"), "signing.pem")
    key.unlink()
    os.mkfifo(key, 0o600)
    os.chown(key, p.uid, p.uid)
    expect_refusal(p.sh("echo ran"), "signing.pem")


@case
def a_key_that_only_looks_like_one_leaves_the_run_to_be_signed_later(p):
    """It is read once, when there is something to be signed."""
    expect(p.sh("true"), 0)
    before, key = folders(p), p.state / "bawn/keys/signing.pem"
    good = key.read_bytes()
    key.write_bytes(b"x" * len(good))
    done = expect(p.sh("echo ran; echo kept >file"), 125, "cannot sign the run's record", "signing.pem")
    assert done.stdout == "ran\n", done
    (folder,) = set(folders(p)) - set(before)
    assert not (folder / records.FILE).exists() and (folder / "layer/upper/file").read_text() == "kept\n"
    assert chain(p.state / "bawn/log/events.jsonl")[0][-1]["type"] == "run_end"
    key.write_bytes(good)
    expect(p.run("record", "list"), 0)
    assert records.read(folder)["outcome"] == "interrupted"
    assert [event["type"] for event in chain(folder / "events.jsonl")[0]][-2:] == ["run_end", "interrupted"]


@case
def the_next_bawn_signs_what_a_killed_keeper_left(p):
    for sign in (("run", "--", "true"), ("record", "list")):
        kill_in_the_middle(p)
        (draft,) = p.state.glob("bawn/unsigned/*")
        folder = p.state / "bawn/runs" / draft.name
        assert not (folder / records.FILE).exists()
        expect(p.run(*sign), 0)
        record = records.read(folder)
        assert record["outcome"] == "interrupted" and record["preflight_passed"], record
        assert record["guarantees"]["fs.root"]["holds"] and record["guarantees"]["fs.root"]["vantage"] == "outside"
        events, last = chain(folder / "events.jsonl")
        assert events[-1]["type"] == "interrupted" and record["log"] == {"events": len(events), "last": last}
        assert not draft.exists()


@case
def a_run_that_cannot_be_signed_is_named_and_keeps_no_other_from_it(p):
    for _ in range(3):
        kill_in_the_middle(p)
    draft = next((p.state / "bawn/unsigned").iterdir())  # which is looked at first
    log = p.state / "bawn/runs" / draft.name / "events.jsonl"
    kept = log.read_bytes()
    log.write_bytes(b"no event\n")
    done = expect(p.run("record", "list"), 0)
    assert done.stderr.count("cannot sign") == 1 and draft.name in done.stderr, done.stderr
    assert list((p.state / "bawn/unsigned").iterdir()) == [draft]
    log.write_bytes(kept)
    expect(p.run("record", "list"), 0)
    assert not list((p.state / "bawn/unsigned").iterdir())


@case
def what_cannot_be_signed_yet_waits_and_is_not_told_again_and_again(p):
    kill_in_the_middle(p)
    (folder,) = folders(p)
    before = (folder / "events.jsonl").read_bytes()
    keys = p.state / "bawn/keys"
    for spoil, mend in ((lambda: (keys / "signing.pem").chmod(0o644), lambda: (keys / "signing.pem").chmod(0o600)),
                        (lambda: keys.rename(p.home / "keys"), lambda: (p.home / "keys").rename(keys))):
        spoil()
        for _ in range(2):
            done = expect(p.run("record", "list"), 0)
            assert f"cannot sign the record of run {folder.name}, which was interrupted: " in done.stderr, done
        assert (folder / "events.jsonl").read_bytes() == before
        mend()
    expect(p.run("record", "list"), 0)
    assert records.read(folder)["outcome"] == "interrupted"
    assert [event["type"] for event in chain(folder / "events.jsonl")[0]].count("interrupted") == 1


@case
def without_a_log_nothing_runs_and_that_is_said_once(p):
    expect(p.sh("true"), 0)
    log = p.state / "bawn/log/events.jsonl"
    log.write_bytes(b"no event\n")
    expect_refusal(p.sh("echo ran"), "cannot write to the log of all runs")
    assert records.read(max(folders(p), key=lambda path: path.stat().st_mtime_ns))["outcome"] == "refused"
    log.unlink()
    expect(p.sh("true"), 0)


@case
def a_key_that_is_gone_when_the_run_ends_is_said(p):
    keeper = p.start("run", "--", "sh", "-c", "echo ready; read line")
    assert keeper.stdout.readline() == b"ready\n"
    (p.state / "bawn/keys").rename(p.home / "keys")
    _, said = keeper.communicate(b"\n", timeout=20)
    assert keeper.returncode == 125 and b"there is no signing key" in said, said
    (folder,) = folders(p)
    assert not (folder / records.FILE).exists()
    (p.home / "keys").rename(p.state / "bawn/keys")
    expect(p.run("record", "list"), 0)
    assert records.read(folder)["outcome"] == "interrupted"
    assert [event["type"] for event in chain(folder / "events.jsonl")[0]][-2:] == ["run_end", "interrupted"]


@case
def a_run_that_goes_on_is_signed_by_nobody_else(p):
    keeper = p.start("run", "--", "sh", "-c", "echo ready; read line")
    assert keeper.stdout.readline() == b"ready\n"
    shown = expect(p.run("record", "list"), 0).stdout
    assert "goes on" in shown, shown
    (folder,) = folders(p)
    assert not (folder / records.FILE).exists()
    keeper.communicate(b"\n", timeout=20)
    assert records.read(folder)["outcome"] == "exited"


@case
def a_keeper_killed_at_any_moment_leaves_a_log_that_is_a_beginning_and_no_half_record(p):
    chance, began = random.Random(p.uid), time.monotonic()
    expect(p.run("run", "--", "true"), 0)
    whole = time.monotonic() - began  # on a machine that may be busy
    # A busy machine is slower or faster than it was: then more of them, until some are killed before and some after.
    for count in range(300):
        keeper = p.start("run", "--", "true")
        time.sleep(chance.uniform(0, 1.2 * whole * (1 + count // 60)))
        keeper.send_signal(signal.SIGKILL)
        keeper.communicate(timeout=20)
        is_signed = {(folder / records.FILE).exists() for folder in folders(p)[1:] if (folder / "events.jsonl").exists()}
        if count >= 29 and is_signed == {True, False}:
            break
    wait_until(lambda: reap() or not descendants(), 5, "the end of the cages")
    signed = {folder for folder in folders(p) if (folder / records.FILE).exists()}
    for folder in folders(p):
        if (folder / "events.jsonl").exists():
            chain(folder / "events.jsonl")
    expect(p.run("record", "list", "-n", "0"), 0)
    outcomes = {folder: records.read(folder)["outcome"] for folder in folders(p) if (folder / records.FILE).exists()}
    assert set(outcomes.values()) == {"interrupted", "exited"}, "killed before and after"
    assert all(outcome == "interrupted" for folder, outcome in outcomes.items() if folder not in signed), outcomes
    for folder in outcomes:
        events, last = chain(folder / "events.jsonl")
        assert records.read(folder)["log"] == {"events": len(events), "last": last}
    chain(p.state / "bawn/log/events.jsonl")
    assert not list(p.state.glob("bawn/unsigned/*")), "what began was signed"


@case
def with_sync_a_run_that_began_is_on_the_disk_before_its_command_runs(p):
    strace, said = shutil.which("strace"), p.home / "said"
    if not strace:
        raise Skip("there is no strace")
    calls = "trace=write,fsync,fdatasync,syncfs,renameat,linkat,sendmsg"
    synced = {}
    for options in ((), ("--sync",)):
        expect(p.run("-e", calls, "-o", said, BAWN, "run", *options, "--", "true", program=strace), 0)
        lines = said.read_text().splitlines()
        (record,) = [i for i, line in enumerate(lines) if f'"{records.FILE}")' in line and "renameat" in line]
        noted = max(i for i, line in enumerate(lines) if '"unsigned/' in line and "linkat(" in line)
        synced[options] = [[line.split("(")[0] for line in part if "sync" in line.split("(")[0]]
                           for part in (lines[noted:record], lines[record:])]
    assert not any("syncfs" in part for part in synced[()]), synced
    before, after = synced[("--sync",)]
    assert before.count("syncfs") == 2 and before[0] == "fdatasync" and "fsync" in after, synced


@case
def many_runs_at_once_begin_in_a_state_that_is_new(p):
    for _ in range(4):
        for name in ("runs", "log", "unsigned", "plans", "specs", "layers"):
            shutil.rmtree(p.state / "bawn" / name, ignore_errors=True)
        many = [p.start("run", "--", "true") for _ in range(8)]
        for keeper in many:
            _, said = keeper.communicate(timeout=60)
            assert keeper.returncode == 0, said
        assert len(folders(p)) == 8 and all(records.read(folder)["outcome"] == "exited" for folder in folders(p))
        expect(p.run("verify", folders(p)[-1].name), 0)


@case
def a_spec_and_a_plan_are_written_once_and_never_believed(p):
    expect(p.sh("true"), 0)
    (folder,) = folders(p)
    parts = [records.part(folder, name) for name in ("spec", "plan")]
    before = [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in parts]
    assert all(sha256(path) == path.name.removesuffix(".json") and path.stat().st_mode & 0o777 == 0o600 for path in parts)
    expect(p.sh("true"), 0)
    assert before == [(path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns) for path in parts], "once"

    def cut(path, content):
        path.write_bytes(content[:-1])

    def flip(path, content):
        path.write_bytes(content[:-1] + b"X")

    def empty(path, _):
        path.write_bytes(b"")

    def remove(path, _):
        path.unlink()

    def link(path, content):
        (p.home / "other").write_bytes(content)
        path.unlink()
        path.symlink_to(p.home / "other")

    def pipe(path, _):
        path.unlink()
        os.mkfifo(path)

    def open_to_all(path, content):
        path.write_bytes(content)
        path.chmod(0o666)

    def of_another(path, content):
        path.write_bytes(content)
        os.chown(path, 54321, 54321)

    for spoil in (cut, flip, empty, remove, link, pipe, open_to_all) + ((of_another,) if os.geteuid() == 0 else ()):
        for path, (content, *_) in zip(parts, before):
            spoil(path, content)
        if spoil in (cut, flip, empty):
            assert "not that of the record" in expect(p.run("verify", folder.name), 1).stdout
            assert "command" not in expect(p.run("record", "show", folder.name), 0).stdout, "its plan is not believed"
            expect(p.run("card", folder.name), 1)
        if spoil is remove:
            assert "plan        not there" in expect(p.run("verify", folder.name), 0).stdout
        expect(p.sh("true"), 0)
        assert [path.read_bytes() for path in parts] == [content for content, *_ in before], spoil
        assert all(path.is_file() and not path.is_symlink() and path.stat().st_uid == p.uid and
                   path.stat().st_mode & 0o777 == 0o600 for path in parts), spoil
        expect(p.run("verify", folder.name), 0)
    assert not [path for name in ("specs", "plans") for path in (p.state / "bawn" / name).glob("*.new")]


def spares(p):
    """What is another's cannot be taken, and stays where it is."""
    folder = p.state / "bawn/layers"
    return sorted(path for path in folder.iterdir() if path.lstat().st_uid == p.uid) if folder.exists() else []


@case
def a_layer_that_nobody_wrote_to_is_handed_on(p):
    expect(p.sh("ls -A; touch -c .; cat nothing 2>/dev/null; true"), 0)
    (spare,) = spares(p)
    inode = (spare / "upper").stat().st_ino
    expect(p.sh("echo one >a; rm a"), 0)
    assert [(path / "upper").stat().st_ino for path in spares(p)] == [inode], "the same one"
    assert not list((p.state / "bawn/runs").glob("*/layer"))
    p.project.chmod(0o750)
    assert expect(p.sh("stat -c %a . && echo two >b"), 0).stdout == "750\n"
    assert not spares(p), "one that was written to is nobody else's"
    (layer,) = (p.state / "bawn/runs").glob("*/layer")
    assert (layer / "upper").stat().st_ino == inode and (layer / "upper/b").read_text() == "two\n"
    began = time.time()
    p.project.chmod(0o755)
    expect(p.sh("true"), 0)
    (spare,) = spares(p)
    os.utime(spare / "upper", (1, 1))
    mode, changed = expect(p.sh("stat -c '%a %Y' ."), 0).stdout.split()
    assert mode == "755" and int(changed) >= int(began), "times of now"
    many = [p.start("run", "--", "sh", "-c", "ls -A; read line") for _ in range(7)]
    for keeper in many:
        assert keeper.communicate(b"\n", timeout=60)[0] == b"", "nothing of another"
    assert 1 <= len(spares(p)) <= 4


@case
def a_spare_layer_that_somebody_was_in_is_made_anew(p):
    def file_in(name):
        return lambda spare: p.write(spare / name / "planted", "x")

    def attribute(name, key):
        return lambda spare: os.setxattr(spare / name, key, b"x")

    def mode(name):
        return lambda spare: (spare / name).chmod(0o777)

    def file_instead(spare):
        shutil.rmtree(spare)
        spare.write_text("x")

    def link_instead(spare):
        away = p.home / "away"
        if not away.exists():
            spare.rename(away)
        else:
            shutil.rmtree(spare)
        spare.symlink_to(away)

    def untried(spare):
        os.removexattr(spare / "work", "user.bawn")

    def of_another(spare):
        for path in (spare, spare / "upper", spare / "work"):
            os.chown(path, 54321, 54321)

    ways = [file_in("upper"), file_in("work"), file_in("."), attribute("upper", "user.overlay.opaque"),
            attribute("upper", "user.mine"), attribute("work", "user.mine"), mode("upper"), mode("work"), mode("."),
            lambda spare: (spare / "upper").rmdir(), lambda spare: p.write(spare / "work/work2/x", "x"),
            file_instead, link_instead, untried] + ([of_another] if os.geteuid() == 0 else [])
    expect(p.sh("true"), 0)
    for number, spoil in enumerate(ways):
        (spare,) = spares(p)
        spoil(spare)
        assert expect(p.sh("ls -A; stat -c %a ."), 0).stdout == f"{p.project.stat().st_mode & 0o777:o}\n", number
        (spare,) = spares(p)
        assert spare.is_dir() and not spare.is_symlink() and spare.stat().st_uid == p.uid, number
        assert sorted(path.name for path in spare.iterdir()) == ["upper", "work"], number
        assert not list((spare / "upper").iterdir()) and os.listxattr(spare / "work") == ["user.bawn"], number
        assert expect(p.run("diff"), 0).stdout == "", "nothing of it is an effect"
    # The twin: who does not look takes it.
    p.write(spare / "upper/planted", "x")
    done = p.run("run", "--", "ls", "-A", program=BREAKABLE, env={"BAWN_TEST_BREAK": "spare"})
    assert done.stdout == "planted\n", done


@case
def a_draft_of_an_earlier_bawn_is_signed_as_it_is(p):
    expect(p.sh("true"), 0)
    (whole,) = folders(p)
    kill_in_the_middle(p)
    (draft,) = p.state.glob("bawn/unsigned/*")
    folder = p.state / "bawn/runs" / draft.name
    drafts = []
    for statement in records.first_version(whole):
        text = json.dumps(statement["predicate"], separators=(",", ":")).replace(whole.name, folder.name)
        drafts.append(json.loads(text))
    record, provenance = drafts
    for member in ("log", "effects", "status"):
        record.pop(member, None)
    del provenance["runDetails"]["byproducts"]
    record = {"version": 1, **record, "outcome": "interrupted"}
    draft.unlink()
    p.write(draft, "".join(json.dumps(x, separators=(",", ":")) + "\n" for x in (record, provenance)), mode=0o600)
    expect(p.run("record", "list"), 0)
    statement = records.statements(folder / records.FILE)[0]
    assert statement["predicateType"] == "urn:bawn:record:v1" and statement["predicate"]["run"] == folder.name
    assert statement["predicate"]["outcome"] == "interrupted" and not draft.exists(), statement
    assert "signature   yes" in expect(p.run("verify", folder.name), 0).stdout


@case
def a_torn_log_is_signed_up_to_its_last_whole_line(p):
    kill_in_the_middle(p)
    (folder,) = folders(p)
    whole, _ = chain(folder / "events.jsonl")
    with open(folder / "events.jsonl", "ab") as file:
        file.write(b'{"seq":99,"time":"20')
    expect(p.run("record", "list"), 0)
    events, last = chain(folder / "events.jsonl")
    assert events[:len(whole)] == whole and [event["type"] for event in events[len(whole):]] == ["interrupted"]
    assert records.read(folder)["log"]["last"] == last


@case
def records_are_listed_newest_first(p):
    expect(p.sh("echo 1 >a; exit 3"), 3)
    expect(p.sh("kill -9 $$"), 137)
    first, second = folders(p)
    lines = expect(p.run("record", "list"), 0).stdout.splitlines()
    assert [line.split()[0] for line in lines] == [second.name, first.name]
    assert "signal 9" in lines[0] and "exit 3" in lines[1] and "+1" in lines[1] and str(p.project) in lines[1], lines
    (line,) = expect(p.run("record", "list", "-n", "1"), 0).stdout.splitlines()
    assert line == lines[0]
    assert "sh -c 'kill -9 $$'" in lines[0] and re.search(r" \d+ms ", lines[0]), lines
    listed = json.loads(expect(p.run("record", "list", "--json"), 0).stdout)
    assert listed["version"] == 1 and listed["records"][0]["command"] == "sh -c 'kill -9 $$'", listed
    listed = listed["records"]
    assert [(x["outcome"], x.get("status"), x["state"]) for x in listed] == [
        ("signaled", None, "signed"), ("exited", 3, "signed")], listed


@case
def runs_within_a_second_are_in_the_order_in_which_they_began(p):
    began = []
    for number in range(6):
        expect(p.sh(f"echo {number} >a"), 0)
        (name,) = {folder.name for folder in folders(p)} - set(began)
        began.append(name)
    listed = [line.split()[0] for line in expect(p.run("record", "list"), 0).stdout.splitlines()]
    assert listed == began[::-1] == sorted(began)[::-1], (listed, began)
    assert began[-1] in expect(p.run("record", "show"), 0).stdout
    assert "+5" in expect(p.run("diff"), 0).stdout
    assert json.loads(expect(p.run("log", "--json"), 0).stdout)["run"] == began[-1]


def listed(p, *options):
    return [line.split()[0] for line in expect(p.run("record", "list", *options), 0).stdout.splitlines()]


@case
def the_newest_are_found_by_the_end_of_the_log_and_without_one_by_their_folders(p):
    log = p.state / "bawn/log"
    for _ in range(5):
        expect(p.run("run", "-q", "--read-only", "--", "true"), 0)
        if len(folders(p)) in (2, 4):
            number = json.loads((log / "events.jsonl").read_bytes().splitlines()[-1])["seq"] + 1
            (log / "events.jsonl").rename(log / f"events-{number}.jsonl")
    ids = [folder.name for folder in folders(p)][::-1]
    assert [listed(p, "-n", str(most)) for most in range(1, 6)] == [ids[:most] for most in range(1, 6)]
    assert listed(p) == listed(p, "-n", "0") == ids
    # What the log says of a run that is gone, and what is no line, is passed over.
    shutil.rmtree(folders(p)[4])
    with (log / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"run_start","run":"../../../../etc/passwd"}\n' + b"\0" * 70000 + b"\n" + b'"type":"run_start","run":"2026')
    assert listed(p, "-n", "2") == ids[1:3]
    assert ids[1] in expect(p.run("record", "show"), 0).stdout
    shutil.rmtree(log)
    assert listed(p, "-n", "2") == ids[1:3] and ids[1] in expect(p.run("record", "show"), 0).stdout


@case
def a_record_is_shown_and_exported(p):
    expect(p.sh("echo 1 >a"), 0)
    (folder,) = folders(p)
    shown = expect(p.run("record", "show"), 0).stdout
    assert folder.name in shown and "exit 0" in shown and "changes   +1 ~0 -0" in shown, shown
    assert "command   sh -c 'echo 1 >a'" in shown and "seen from outside" not in shown, shown
    assert re.search(r"guarantees: (\d+) of \d+ hold; --all shows them", shown), shown
    assert "seen from outside" in expect(p.run("record", "show", "--all"), 0).stdout
    expect(p.run("record", "export", "--json"), 2, "takes no --json")
    assert json.loads(expect(p.run("record", "show", folder.name, "--json"), 0).stdout) == \
        records.statements(folder / records.FILE)[0]["predicate"]
    path = p.home / "run.tar"
    expect(p.run("record", "export", "-o", path), 0)
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as tar:
        names = {member.name: tar.extractfile(member).read() for member in tar}
    assert names == {**{f"{folder.name}/{name}": (folder / name).read_bytes() for name in (*records.FILES, "effects.json")},
                     **{f"{folder.name}/{name}.json": records.part(folder, name).read_bytes() for name in ("spec", "plan")}}
    expect(p.run("record", "export", "-o", path), 125, "File exists")
    assert os.stat(path).st_mode & 0o777 == 0o600
    expect(p.run("verify", path), 0, "signature   yes")
    expect(p.run("verify", "-", stdin=path.read_bytes()), 0, "effects     yes")
    whole, before = path.read_bytes(), set(pathlib.Path("/tmp").glob("bawn-record-*"))
    for wrong, why in ((whole.replace(b"/spec.json", b"/../x.json"), "no record"), (whole[:1024], "end is missing")):
        path.write_bytes(wrong)
        assert expect(p.run("verify", path), 1).stderr.count("bawn:") == 1, why
    # Suites beside this one verify records too, and theirs are gone in a moment.
    new = set(pathlib.Path("/tmp").glob("bawn-record-*")) - before
    wait_until(lambda: not any(folder.exists() for folder in new), 10, "what was unpacked is removed")


@case
def wrong_use_is_explained(p):
    expect(p.run("record"), 2, "list, show or export")
    expect(p.run("record", "burn"), 2, "not burn")
    for _ in ("no state", "a state without runs"):
        expect(p.run("record", "list"), 0, "no run yet")
        assert json.loads(expect(p.run("record", "list", "--json"), 0).stdout) == {"version": 1, "records": []}
        expect(p.run("record", "show"), 1, "no run yet")
        p.run("key", "init")
    expect(p.run("record", "show", "-n", "1"), 2, "-n is for record list")
    expect(p.run("record", "list", "-o", "x"), 2, "-o is for record export")
    expect(p.run("record", "show", "20260102-030405-0a0b0c0d"), 1, "there is no run")
    expect(p.sh("true"), 0)
    expect(p.run("record", "list", "-n", "x"), 2, "takes a number")
    (folder,) = folders(p)
    (folder / records.FILE).write_bytes(b"{}\n")
    expect(p.run("record", "show"), 125, f"cannot use the record of run {folder.name}")
    expect(p.run("record", "list"), 125, f"cannot use the record of run {folder.name}")


if __name__ == "__main__":
    main()
