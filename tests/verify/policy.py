#!/usr/bin/env python3
"""A verifier's own demands: each met and not met, what is wrong with a policy, and results that are attested.

    policy.py BAWN FLIP        prints TAP
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import case, expect, main  # noqa: E402
from records import part  # noqa: E402
from verifying import FILE, foreign_key, found, key_id, run, verify  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHER = "0" * 64
KEYS = ("level", "in_chain", "network", "guarantees", "outside", "degraded", "preflight", "outcome", "status", "keys",
        "spec", "plan", "image", "engine", "bawn", "max_age", "checked")


def judge(p, folder, text):
    """What is said of a policy's demands, by key."""
    path = p.write("policy.yaml", "version: 1\n" + text)
    rows, said = found(p, folder, "--policy", path)
    assert said["policy_sha256"], said
    return {name.removeprefix("policy."): row for name, row in rows.items() if name.startswith("policy.")}, said["good"]


@case
def each_demand_is_met_and_not_met(p):
    folder = run(p)
    record = p.record()
    key, foreign = key_id(p.state / "bawn/keys/signing.pem"), key_id(foreign_key(p).with_suffix(".pem"))
    pairs = {
        "level": ("hardened", "custom"),
        "network": ("none", "[allowlist, host]"),
        "guarantees": ("[fs.root, net.none]", "[fs.root, net.allowlist]"),
        "outside": ("[fs.root, env]", "[landlock]"),
        "preflight": ("true", None),
        "outcome": ("[exited, signaled]", "timed_out"),
        "status": ("[0, 3]", "7"),
        "keys": (f"[{foreign}, {key}]", foreign),
        "spec": (record["spec_sha256"], OTHER),
        "plan": (f"[{OTHER}, {record['plan_sha256']}]", f"['{OTHER}']"),
        "image": ("host", "dir:/srv/image"),
        "engine": (record["engine"], "gvisor"),
        "bawn": (record["bawn"], "9.9.9"),
        "max_age": ("1h", "1ms"),
        "checked": ("[events, effects, spec, plan, provenance]", "[events, image]"),
    }
    for name, (met, unmet) in pairs.items():
        rows, is_good = judge(p, folder, f"{name}: {met}\n")
        assert is_good and set(rows) == {name} and rows[name][0] == "yes", (name, rows)
        if unmet is None:
            continue
        if name == "max_age":
            time.sleep(1.1)
        rows, is_good = judge(p, folder, f"{name}: {unmet}\n")
        assert not is_good and rows[name][0] == "no", (name, rows)
    # What a run was told to keep can be required, and is missed where it was not.
    kept = run(p, "echo out; echo err >&2", "--digest-project", *p.spec("record: { output: keep }\n"))
    for name in ("project", "stdout", "stderr"):
        rows, is_good = judge(p, kept, f"checked: [{name}]\n")
        assert is_good and rows["checked"][0] == "yes", (name, rows)
        rows, is_good = judge(p, folder, f"checked: [{name}]\n")
        assert not is_good and rows["checked"][0] == "no", (name, rows)
    rows, is_good = judge(p, folder, "".join(f"{name}: {met}\n" for name, (met, _) in pairs.items()))
    assert is_good and len(rows) == len(pairs), rows
    assert set(pairs) | {"in_chain", "degraded"} == set(KEYS)


@case
def what_may_be_missing(p):
    folder = run(p)
    names = p.record()["guarantees"]
    missing = sorted(name for name in names if not names[name]["holds"])
    rows, is_good = judge(p, folder, f"degraded: [{', '.join(missing or ['groups'])}]\n")
    assert is_good and rows["degraded"][0] == "yes", rows
    rows, is_good = judge(p, folder, "degraded: none\n")
    assert is_good == (not missing) and rows["degraded"][0] == ("no" if missing else "yes"), (missing, rows)


@case
def a_relaxed_run_is_outside_the_chain(p):
    folder = run(p, "true", "--relaxed")
    expect(verify(p, folder), 1, "in_chain ", "nothing should be built on it")
    rows, is_good = judge(p, folder, "in_chain: true\n")
    assert not is_good
    path = p.write("policy.yaml", "version: 1\nin_chain: false\n")
    expect(verify(p, folder, "--policy", path), 0, "which the policy does not mind")
    expect(verify(p, folder, "--attest"), 1, "cannot attest the record")
    done = expect(verify(p, folder, "--policy", path, "--attest"), 0)
    body = json.loads(base64.b64decode(json.loads(done.stdout)["payload"]))
    assert not {"BAWN_IN_CHAIN", "BAWN_HARDENED"} & set(body["predicate"]["properties"]), body


@case
def keys_of_a_policy_lie_where_it_does(p):
    folder = run(p)
    own = (p.state / "bawn/keys/signing.pub").read_text()
    p.make("demands")
    p.write("demands/own.pub", own)
    foreign = foreign_key(p)
    p.write("demands/other.pub", foreign.read_text())
    text = "version: 1\nkeys: {}\n"
    path = p.write("demands/policy.yaml", text.format("own.pub"))
    elsewhere = {"XDG_STATE_HOME": str(p.home / "elsewhere")}
    expect(verify(p, folder, "--policy", path, env=elsewhere), 0, "policy.keys", "demands/own.pub'")
    expect(verify(p, folder, "--policy", "../demands/policy.yaml", env=elsewhere), 0)
    p.write("demands/policy.yaml", text.format("[other.pub]"))
    expect(verify(p, folder, "--policy", path), 1, "none of the given keys")
    p.write("demands/policy.yaml", text.format("missing.pub"))
    expect(verify(p, folder, "--policy", path), 1, "demands/missing.pub': No such file")


@case
def what_is_wrong_with_a_policy_is_told_with_its_place(p):
    folder = run(p)
    for text, where, *parts in (
            ("version: 1\nlevl: hardened\n", "2:1", "unknown key 'levl'", "did you mean 'level'?"),
            ("version: 1\nlevel: hardend\n", "2:8", "did you mean 'hardened'?"),
            ("version: 1\nguarantees: [fs.root, fs.rot]\n", "2:23", "did you mean 'fs.root'?"),
            ("level: hardened\n", "1:1", "'version' is missing"),
            ("version: 2\n", "1:10", "version 1"),
            ("version: 1\nstatus: [0, many]\n", "2:13", "an exit status"),
            ("version: 1\nspec: abc\n", "2:7", "SHA-256"),
            ("version: 1\nmax_age: soon\n", "2:10", "a duration"),
            ("version: 1\nmax_age: [1d]\n", "2:10", "one value"),
            ("version: 1\nlevel: []\n", "2:8", "an empty list"),
            ("version: 1\nlevel: {a: b}\n", "2:8", "a map"),
            ("version: 1\nlevel:\n", "2:1", "expected"),
            ("version: 1\nin_chain: yes\n", "2:11", "in_chain"),
            ("version: 1\npreflight: false\n", "2:12", "preflight"),
            ("version: 1\nlevel: &a hardened\n", "2:9", "anchors"),
            ("- version\n", "1:1", "")):
        path = p.write("policy.yaml", text)
        done = expect(verify(p, folder, "--policy", path), 1, f"policy.yaml:{where}", *parts)
        assert done.stdout == "", done
        said = json.loads(verify(p, folder, "--policy", path, "--json").stdout)
        assert said["good"] is False and said["diagnostics"], said
    expect(verify(p, folder, "--policy", p.home / "missing"), 1, "cannot read the policy")
    expect(verify(p, folder, "--policy", p.write("large", "#" * 300000)), 1, "cannot read the policy")
    for path, part in ((p.home / "missing", "cannot read the policy"),
                       (p.write("keys.yaml", "version: 1\nkeys: none.pub\n"), "none.pub")):
        said = json.loads(expect(verify(p, folder, "--policy", path, "--json"), 1).stdout)
        assert said["good"] is False and part in said["error"], said
    said = json.loads(expect(verify(p, folder, "--key", p.home / "missing", "--json"), 1).stdout)
    assert said["good"] is False and "cannot read the key" in said["error"], said


@case
def the_example_is_a_policy_and_all_of_it_is_in_the_manual(p):
    folder = run(p)
    path = p.write("policy.yaml", (ROOT / "examples/verify-policy.yaml").read_text())
    done = expect(verify(p, folder, "--policy", path), 0)
    assert "unknown key" not in done.stderr and "policy.level" in done.stdout, done
    manual, example = (ROOT / "docs/verify.md").read_text(), path.read_text()
    for key in KEYS:
        assert f"`{key}`" in manual and f"{key}: " in example, key


# --- results for others ---

@case
def a_result_is_attested_by_the_verifiers_key(p):
    folder = run(p)
    path = p.write("policy.yaml", "version: 1\nlevel: hardened\n")
    done = expect(verify(p, folder, "--policy", path, "--attest"), 0)
    envelope = json.loads(done.stdout)
    body = base64.b64decode(envelope["payload"])
    (p.home / "pae").write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(body), body))
    (p.home / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", p.state / "bawn/keys/signing.pub", "-rawin",
                    "-in", p.home / "pae", "-sigfile", p.home / "sig"], check=True, capture_output=True)
    statement = json.loads(body)
    digest = lambda path: hashlib.sha256(path.read_bytes()).hexdigest()
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/svr/v0.2"
    assert statement["subject"][0] == {"name": FILE, "digest": {"sha256": digest(folder / FILE)}}
    assert [x["name"] for x in statement["subject"]] == [FILE, "effects"]
    result = statement["predicate"]
    assert result["verifier"]["policies"] == [{"name": str(path), "digest": {"sha256": digest(path)}}]
    assert result["timeCreated"].endswith("Z")
    names = set(result["properties"])
    assert {"BAWN_SIGNATURE", "BAWN_PROVENANCE", "BAWN_EVENTS", "BAWN_EFFECTS", "BAWN_SPEC", "BAWN_PLAN",
            "BAWN_GUARANTEES", "BAWN_IN_CHAIN", "BAWN_HARDENED", "BAWN_NETWORK_NONE", "BAWN_POLICY"} <= names, names
    assert "BAWN_IMAGE" not in names and "BAWN_OVERLAY" not in names  # were not checked
    part(folder, "spec").unlink()
    done = expect(verify(p, folder, "--attest"), 0)
    names = json.loads(base64.b64decode(json.loads(done.stdout)["payload"]))["predicate"]["properties"]
    assert "BAWN_SPEC" not in names and "BAWN_POLICY" not in names and "BAWN_PLAN" in names, names


@case
def nothing_is_attested_of_what_is_not_good(p):
    folder = run(p)
    plan = part(folder, "plan")
    plan.write_text("{}")
    done = expect(verify(p, folder, "--attest"), 1, "plan: ", "cannot attest the record")
    assert done.stdout == ""
    path = p.write("policy.yaml", "version: 1\nlevel: custom\n")
    plan.unlink()
    done = expect(verify(p, folder, "--policy", path, "--attest"), 1, "policy.level: ")
    assert done.stdout == ""
    own = p.write("own.pub", (p.state / "bawn/keys/signing.pub").read_text())
    done = expect(verify(p, folder, "--key", own, "--attest", env={"XDG_STATE_HOME": str(p.home / "elsewhere")}), 1,
                  "bawn key init")
    assert done.stdout == ""


main()
