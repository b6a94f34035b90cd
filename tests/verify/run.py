#!/usr/bin/env python3
"""bawn verify on the records of real runs: what is true, what was changed, what is missing, whose key.

    run.py BAWN FLIP        prints TAP; FLIP is flip.c
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import BREAKABLE, case, descendants, expect, main, reap, wait_until  # noqa: E402
from records import bring, part, statements  # noqa: E402
from verifying import FILE, copied, foreign_key, found, results, run, sign, verify  # noqa: E402

FLIP = BREAKABLE  # the second program

CHECKED = {"signature", "provenance", "events", "effects", "spec", "plan", "guarantees", "degraded", "in_chain",
           "outcome"}


# --- what is true ---

@case
def a_real_run_is_good(p):
    folder = run(p)
    done = expect(verify(p, folder.name), 0, f"# run {folder.name}, begun ", "by your key ", "exited with 0",
                  "good; not checked: image")
    assert done.stderr == "" and "\nnot " not in done.stdout
    rows, said = found(p, folder.name)
    assert {name for name, (result, _) in rows.items() if result == "yes"} == CHECKED, rows
    assert rows["image"][0] == "not there" and said["run"] == folder.name and said["policy_sha256"] is None
    assert verify(p, folder.name, "-q").stdout == ""


@case
def it_is_found_by_name_file_folder_and_pipe(p):
    folder = run(p)
    for word in (folder.name[:8], folder.name, folder, folder / FILE, f"{folder}/"):
        assert results(p, word)["events"] == "yes", word
    os.symlink(folder / FILE, p.home / "link")
    assert results(p, p.home / "link")["events"] == "not there"
    piped = results(p, "-", stdin=(folder / FILE).read_bytes())
    assert piped["signature"] == "yes" and piped["effects"] == piped["spec"] == piped["events"] == "not there"
    # As a shell's <(…) has it; who writes takes his time.
    pipe = p.home / "pipe"
    os.mkfifo(pipe)
    p.own(pipe)
    expect(verify(p, pipe), 1, "it is empty")
    writer = subprocess.Popen(["sh", "-c", 'exec 3<>"$1"; sleep 0.3; cat "$0" >&3', folder / FILE, pipe])
    time.sleep(0.1)
    done = verify(p, pipe)
    writer.wait()
    expect(done, 0, "signature")


@case
def a_run_without_changes_is_good(p):
    folder = run(p, "true")
    assert not (folder / "effects.json").exists()
    rows, _ = found(p, folder.name)
    assert rows["effects"] == ("yes", "none: the run did nothing to the project")


@case
def a_failed_command_is_no_failed_record(p):
    expect(p.sh("exit 3"), 3)
    (folder,) = (p.state / "bawn/runs").iterdir()
    rows, _ = found(p, folder.name)
    assert rows["outcome"] == ("yes", "exited with 3")


@case
def what_comes_after_the_record_is_said(p):
    folder = run(p)
    count = len((folder / "events.jsonl").read_bytes().splitlines())
    expect(p.run("apply"), 0)
    assert results(p, folder.name)["events"] == "yes"
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    assert lines[:count] and results(p, folder.name)["effects"] == "yes"
    if len(lines) > count:
        assert found(p, folder.name)[0]["events.later"][0] == "not asked"


# --- what was changed ---

@case
def every_flipped_byte_is_noticed(p):
    folder = run(p, "echo text >new; mkdir sub; echo more >sub/other; ln -s new link")
    bring(p, folder)
    done = expect(p.run(p.state / "bawn", folder, program=FLIP), 0)
    scores = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(scores) == {"envelope", "cut", "spec.json", "plan.json", "effects.json", "events.jsonl"}
    size = (folder / FILE).stat().st_size
    assert scores["envelope"]["tried"] == 3 * size and scores["cut"]["tried"] == size - 1
    assert scores["spec.json"]["tried"] > 3 * min(3000, (folder / "spec.json").stat().st_size) / 2
    assert not any(row["missed"] for row in scores.values()), scores


@case
def each_line_of_events_is_covered(p):
    folder = copied(p, run(p))
    whole = (folder / "events.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for i, line in enumerate(lines):
        for changed in (lines[:i] + lines[i + 1:], lines[:i] + [line] + lines[i:],
                        lines[:i] + [line.replace(b'"time":"2', b'"time":"3')] + lines[i + 1:]):
            (folder / "events.jsonl").write_bytes(b"".join(changed))
            assert results(p, folder)["events"] == "no", (i, changed)
    # A piece of a line is what a power cut leaves; an event of the run itself comes before its record.
    (folder / "events.jsonl").write_bytes(whole + b'{"seq":')
    assert results(p, folder)["events"] == "yes"
    last = hashlib.sha256(lines[-1][:-1]).hexdigest()
    for kind, run_id, result in (("apply", p.record()["run"], "yes"), ("net_allowed", p.record()["run"], "no"),
                                 ("apply", "20200101-000000-00000000", "no")):
        more = json.dumps({"seq": len(lines), "time": "2026-01-01T00:00:00.000000Z", "type": kind, "run": run_id,
                           "session": None, "prev": last}, separators=(",", ":"))
        (folder / "events.jsonl").write_bytes(whole + more.encode() + b"\n")
        assert results(p, folder)["events"] == result, (kind, run_id)


@case
def envelopes_and_files_of_two_runs_do_not_mix(p):
    one, other = copied(p, run(p, "echo one >a"), "one"), copied(p, run(p, "echo two >b"), "other")
    record, _ = (one / FILE).read_bytes().splitlines(keepends=True)
    _, provenance = (other / FILE).read_bytes().splitlines(keepends=True)
    mixed = results(p, "-", stdin=record + provenance)
    assert mixed["signature"] == "yes" and mixed["provenance"] == "no"
    alone = results(p, "-", stdin=record)
    assert alone["provenance"] == "not there"
    expect(verify(p, "-", stdin=provenance), 1, "it holds no record of a run")
    expect(verify(p, "-", stdin=record + record), 1, "it holds two records")
    expect(verify(p, "-", stdin=record + provenance + provenance), 1, "it holds two provenances")
    for name, property in (("events.jsonl", "events"), ("effects.json", "effects")):
        kept = (one / name).read_bytes()
        shutil.copy(other / name, one / name)
        assert results(p, one)[property] == "no", name
        (one / name).write_bytes(kept)
    assert "no" not in results(p, one).values()


@case
def what_is_no_record_is_told(p):
    folder = run(p)
    whole = (folder / FILE).read_bytes()
    for content, part in ((b"", "it is empty"), (b"\n", "line 1"), (b"{}\n", "line 1"), (b"x" * 1000, "no end"),
                          (whole[:-1], "no end"), (whole + b"{}\n", "line 3"), (b"\0" * 100 + b"\n", "line 1"),
                          (whole * 2, "two records"), (whole * 9, "more than 16 lines"),
                          (whole.replace(b"vnd.in-toto", b"vnd.in-tata"), "of the type")):
        done = expect(verify(p, "-", stdin=content), 1, part)
        assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done
        said = json.loads(verify(p, "-", "--json", stdin=content).stdout)
        assert said["good"] is False and part in said["error"]
    expect(verify(p, "-", stdin=b"\n" * 20000000), 1, "File too large")
    expect(verify(p, p.home / "missing"), 1, "No such file")
    expect(verify(p, p.home), 1, "No such file")
    expect(verify(p, "20200101-000000-00000000"), 1, "there is no run")
    expect(verify(p, "/dev/null"), 1, "it is empty")
    os.mkfifo(p.home / "pipe")
    os.chown(p.home / "pipe", p.uid, p.uid)
    expect(verify(p, p.home / "pipe"), 1, "it is empty")


@case
def what_lies_beside_it_is_not_followed(p):
    folder = copied(p, run(p))
    secret = p.write("secret", "x")
    for name, property in (("spec.json", "spec"), ("events.jsonl", "events"), ("effects.json", "effects")):
        (folder / name).unlink()
        os.symlink(secret, folder / name)
        assert results(p, folder)[property] == "no", name
        (folder / name).unlink()
        os.mkfifo(folder / name)
        os.chown(folder / name, p.uid, p.uid)
        assert results(p, folder)[property] == "no", name


@case
def what_is_missing_is_said_and_not_good(p):
    folder = copied(p, run(p))
    for name, property in (("spec.json", "spec"), ("plan.json", "plan"), ("events.jsonl", "events"),
                           ("effects.json", "effects")):
        (folder / name).unlink()
        rows, _ = found(p, folder)
        assert rows[property][0] == "not there" and name in rows[property][1], rows
    expect(verify(p, folder), 0, "not checked: ", "effects, spec, plan")


@case
def a_run_that_goes_on_has_no_record(p):
    process = p.start("run", "--", "sh", "-c", "echo ready; read line")
    assert process.stdout.readline() == b"ready\n"
    (folder,) = (p.state / "bawn/runs").iterdir()
    expect(verify(p, folder.name), 1, "it is still running")
    process.communicate(b"\n", timeout=20)
    expect(verify(p, folder.name), 0)


@case
def runs_that_did_not_end_well_have_true_records(p):
    expect(p.run("run", "--", "no-such-command"), 127)
    (folder,) = (p.state / "bawn/runs").iterdir()
    rows, _ = found(p, folder.name)
    assert rows["outcome"][0] == "yes" and rows["outcome"][1].startswith("refused: "), rows
    keeper = p.start("run", "--", "sh", "-c", "echo ready; sleep 30")
    assert keeper.stdout.readline() == b"ready\n"
    keeper.kill()
    keeper.communicate(timeout=20)
    wait_until(lambda: reap() or not descendants(), 5, "the end of the cage")
    (killed,) = set((p.state / "bawn/runs").iterdir()) - {folder}
    run(p)  # signs what the killed one could not
    rows, _ = found(p, killed.name)
    assert rows["signature"][0] == rows["events"][0] == "yes" and rows["outcome"][1].startswith("interrupted"), rows
    assert rows["effects"] == ("not there", "what became of the project is not in the record"), rows


@case
def an_overlay_is_hashed_again(p):
    spec = p.spec("root: {overlay: ~/overlay, overlay_size: 16M}\n")
    first = run(p, "echo one >/opt/file", *spec)
    rows, _ = found(p, first.name)
    assert rows["overlay"][0] == "yes", rows
    kept = p.home / "overlay/tree/opt/file"
    kept.write_text("two\n")
    assert results(p, first.name)["overlay"] == "no"
    assert results(p, first.name, "--quick")["overlay"] == "not asked"
    kept.write_text("one\n")
    second = run(p, "echo two >/opt/file", *spec)
    rows, _ = found(p, second.name)
    assert rows["overlay"][0] == "yes", rows
    rows, _ = found(p, first.name)
    assert rows["overlay"][0] == "not there" and "another run" in rows["overlay"][1], rows
    shutil.rmtree(p.home / "overlay")
    assert results(p, second.name)["overlay"] == "not there"


# --- whose key ---

@case
def only_keys_that_count_count(p):
    folder, own, foreign = run(p), p.state / "bawn/keys/signing.pub", foreign_key(p)
    copy = copied(p, folder)
    expect(verify(p, folder.name, "--key", own), 0, f"by the key in '{own}'")
    expect(verify(p, folder.name, "--key", foreign, "--key", own), 0, f"by the key in '{own}'")
    done = expect(verify(p, folder.name, "--key", foreign), 1, "none of the given keys",
                  "not good: nothing else was checked, because no key that counts signed it")
    assert "exited" not in done.stdout and "events" not in done.stdout
    # Another operator knows the key or nothing.
    elsewhere = {"XDG_STATE_HOME": str(p.home / "elsewhere")}
    done = expect(verify(p, copy, env=elsewhere), 1, "none of your keys", f"hint: get the signer's public key (there: bawn key show --pem >FILE), then: bawn verify --key FILE {copy}")
    assert "without a signature" not in done.stdout
    expect(verify(p, copy, "--key", own, env=elsewhere), 0)


@case
def a_foreign_signature_under_our_name_is_refused(p):
    folder, foreign = run(p), foreign_key(p)
    ours, theirs = p.state / "bawn/keys/signing.pem", p.home / "foreign.pem"
    payloads = statements(folder / FILE)
    rows, _ = found(p, "-", stdin=sign(p, payloads, theirs, name=ours))
    assert list(rows) == ["signature"] and rows["signature"][0] == "no" and "was changed" in rows["signature"][1], rows
    # Its twins: a signature of ours, and theirs under their own name.
    assert results(p, "-", stdin=sign(p, payloads, ours))["signature"] == "yes"
    assert results(p, "-", "--key", foreign, stdin=sign(p, payloads, theirs))["signature"] == "yes"


@case
def one_key_speaks_for_a_file(p):
    folder, foreign = run(p), foreign_key(p)
    own = p.state / "bawn/keys/signing.pub"
    record, provenance = statements(folder / FILE)
    ours, theirs = sign(p, [record, provenance]).splitlines(keepends=True), None
    record["predicate"]["level"] = "custom"
    theirs = sign(p, [record, provenance], p.home / "foreign.pem").splitlines(keepends=True)
    # Both keys count, and the policy wants ours: what it is asked about must be what ours signed.
    demand = p.write("policy.yaml", f"version: 1\nkeys: {own}\n")
    for lines in ([theirs[0], ours[1]], [ours[1], theirs[0]], [ours[0], theirs[1]]):
        rows, _ = found(p, "-", "--key", foreign, "--policy", demand, stdin=b"".join(lines))
        assert list(rows) == ["signature"] and rows["signature"][0] == "no" and "another key" in rows["signature"][1], rows
    rows, _ = found(p, "-", "--key", foreign, "--policy", demand, stdin=b"".join(theirs))
    assert rows["signature"][0] == "yes" and rows["policy.keys"][0] == "no", rows
    rows, _ = found(p, "-", "--key", foreign, "--policy", demand, stdin=b"".join(ours))
    assert rows["signature"][0] == rows["policy.keys"][0] == "yes", rows


@case
def a_former_key_is_still_ours(p):
    folder = run(p)
    expect(p.run("key", "init", "--new"), 0)
    expect(verify(p, folder.name), 0, "by your key ")
    shutil.rmtree(p.state / "bawn/keys/former")
    expect(verify(p, folder.name), 1, "none of your keys")


@case
def files_that_are_no_keys_are_told(p):
    folder = run(p)
    foreign_key(p)
    long = "-----BEGIN PUBLIC KEY-----\n" + "A" * 100000 + "\n-----END PUBLIC KEY-----\n"
    subprocess.run(["openssl", "genpkey", "-algorithm", "rsa", "-out", p.home / "rsa.pem"], check=True,
                   capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", p.home / "rsa.pem", "-pubout", "-out", p.home / "rsa.pub"], check=True)
    p.own(p.home / "rsa.pub")
    for path in (p.home / "missing", p.home, p.write("empty", ""), p.write("text", "no key\n"), p.write("long", long),
                 p.home / "foreign.pem", p.home / "rsa.pub", folder / FILE, "/dev/null"):
        done = expect(verify(p, folder.name, "--key", path), 1, f"the key '{path}'")
        assert done.stdout == "" and len(done.stderr.splitlines()) == 1, done


# --- two runs ---

def same(p, *args):
    done = verify(p, "--same", *args, "--json")
    said = json.loads(done.stdout)
    assert said["same"] == (done.returncode == 0), done
    return said["same"], [(x["name"], x["result"], x["text"]) for x in said["properties"]]


@case
def the_same_run_twice_is_the_same(p):
    one, other = run(p, "echo text >new"), run(p, "echo text >new")
    is_same, rows = same(p, one.name, other.name)
    words = {name: result for name, result, _ in rows}
    assert is_same and words["spec"] == words["plan"] == words["image"] == words["effects"] == "yes", rows
    assert words["filter"] == words["outcome"] == "yes" and words["project"] == "unknown", rows
    expect(verify(p, "--same", one, other), 0, "the same\n")


@case
def other_effects_are_named(p):
    script = "for i in $(seq 30); do echo WORD >f$i; done; echo same >same; touch WORD"
    one, other = run(p, script.replace("WORD", "one")), run(p, script.replace("WORD", "two"))
    is_same, rows = same(p, one.name, other.name)
    texts = [text for name, _, text in rows if name == "effect"]
    assert not is_same and len(texts) == 21 and texts[-1] == "… and 12 more", texts
    assert "'f1' is another" in texts and "'same' is another" not in texts, texts
    spec = {name: result for name, result, _ in rows}
    assert spec["spec"] == "no" and spec["effects"] == "no"  # the command is part of the spec
    one, other = run(p, "touch a"), run(p, "touch b")
    texts = {text for name, _, text in same(p, one, other)[1] if name == "effect"}
    assert texts == {"'a' only in the first run", "'b' only in the second run"}, texts
    (one / "effects.json").unlink()
    assert "would say which" in dict((n, t) for n, _, t in same(p, one, other)[1])["effect"]


@case
def what_is_unknown_or_unsigned_is_not_the_same(p):
    one = run(p, "true", "--read-only")
    is_same, rows = same(p, one, one)
    assert not is_same and ("effects", "unknown") in [row[:2] for row in rows], rows
    two = run(p, "true")
    assert same(p, two, two)[0]
    broken = (two / FILE).read_bytes().replace(b'"sig":"', b'"sig":"A', 1)
    (p.home / "broken").write_bytes(broken)
    p.own(p.home / "broken")
    assert verify(p, "--same", two, p.home / "broken").returncode == 1
    expect(verify(p, "--same", two), 2, "say which two records")
    expect(verify(p, "--same", two, two, "--attest"), 2, "together with")


# --- how it is asked ---

@case
def wrong_use_is_told(p):
    folder = run(p)
    expect(verify(p), 0, f"# run {folder.name}")  # the newest
    assert json.loads(expect(verify(p, "--json"), 0).stdout)["run"] == folder.name
    expect(verify(p, env={"XDG_STATE_HOME": str(p.home / "empty")}), 1, "there is no run yet")
    expect(verify(p, "a", "b"), 2, "say which record")
    expect(verify(p, folder, "--attest", "--json"), 2, "--attest")
    expect(verify(p, folder, "--polcy", "x"), 2, "did you mean --policy?")
    (p.state / "bawn").chmod(0o777)
    expect(verify(p, folder.name), 1, "is not yours, or others can write to it")


main()
