#!/usr/bin/env python3
"""Cards of bawn's, read and verified by programs that are not: A2A's library, jose, another canonical JSON.

    card.py BUILD BAWN BREAKABLE [word...]        prints TAP

Each case is run by root and by a user.
"""

import base64
import copy
import hashlib
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
BUILD = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cage"))
import npm  # noqa: E402
import records  # noqa: E402
import place as place_module  # noqa: E402
from place import case, expect  # noqa: E402

NODE = None
LEGACY = "x-scitex-agent-container"


def public_key(place):
    return place.state / "bawn/keys/signing.pub"


def judge(place, cards):
    """What the peers say of each."""
    done = NODE.run("card.mjs", public_key(place), input="".join(json.dumps(card) + "\n" for card in cards))
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cards), f"{len(answers)} answers to {len(cards)} cards"
    return answers


def card_of(place, *args):
    done = expect(place.run("card", *args), 0)
    assert done.stdout.count("\n") == 1, "it is one line where nobody looks"
    return json.loads(done.stdout)


def params(card):
    (extension,) = card["capabilities"]["extensions"]
    assert extension["uri"] == "urn:bawn:isolation:v1" and "required" not in extension
    return extension["params"]


def run_of(place, *options):
    """The id of a new run, and the file of its record."""
    before = set(place.state.glob("bawn/runs/*"))
    expect(place.sh("echo a >b", *options), 0)
    (folder,) = set(place.state.glob("bawn/runs/*")) - before
    return folder.name, folder / "record.intoto.jsonl"


def predicate(file):
    return records.read(file)


def check_good(place, *cards):
    for card, answer in zip(cards, judge(place, cards)):
        assert answer == {"sdk": "good", "jose": "good", "isKept": True, "isCanonical": True}, (answer, card)


def leaves(value, path=()):
    """Where something stands: members, entries, and the maps and lists they are in."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield from leaves(inner, (*path, name))


def changed(value):
    """The same, with another meaning."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return value[:-1] + ["other", "another"] if isinstance(value, list) else {**value, "other": True}


def tampered(card):
    """Every card that differs in one place of the isolation block: changed there, or without it."""
    for path in leaves(params(card)):
        for is_gone in (False, True):
            other = copy.deepcopy(card)
            inner = params(other)
            for name in path[:-1]:
                inner = inner[name]
            if is_gone:
                del inner[path[-1]]
            else:
                inner[path[-1]] = changed(inner[path[-1]])
            yield path, other


# --- of a spec ---

@case
def a_card_of_a_spec_is_read_and_verified_by_others(place):
    card = card_of(place)
    check_good(place, card)
    (signature,) = card["signatures"]
    head = signature["protected"]
    assert "=" not in head + signature["signature"]
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", public_key(place), "-outform", "DER"],
                         capture_output=True, check=True).stdout
    assert json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))) == {
        "alg": "EdDSA", "kid": hashlib.sha256(der).hexdigest(), "typ": "JOSE"}
    isolation = params(card)
    assert isolation["level"] == "hardened" and isolation["basis"] == "declared"
    assert not {"observed", "run", "differs"} & set(isolation) and "passed" not in isolation["preflight"]


@case
def every_member_is_written_down(place):
    text = (npm.HERE.parent.parent / "docs/format-card.md").read_text(encoding="utf-8")
    run, _ = run_of(place)
    for card in (card_of(place, *place.spec("project: {mode: writable}\n")), card_of(place, run)):
        for name in (*params(card), *card[LEGACY]["isolation"]):
            assert f"`{name}`" in text, f"docs/format-card.md does not say what {name} is"


@case
def every_change_of_the_block_is_caught(place):
    run, _ = run_of(place, "--time", "1m")
    for card in (card_of(place, "--fakeroot", "--network", "allowlist", "--allow", "a.example:443"),
                 card_of(place, run)):
        paths, cards = zip(*tampered(card))
        assert len(cards) > 80
        for path, answer in zip(paths, judge(place, cards)):
            assert answer["sdk"] != "good" and answer["jose"] != "good", path


@case
def the_block_of_older_readers_is_outside_the_signature(place):
    card = card_of(place)
    block = card[LEGACY]["isolation"]
    assert set(block) == {"level", "containall", "cleanenv", "writable_tmpfs", "home_canonical", "fakeroot",
                          "preflight_passed", "preflight_allowed", "binds_count", "binds_writable_count"}
    other = copy.deepcopy(card)
    other[LEGACY]["isolation"]["level"] = "custom"
    without = {name: value for name, value in card.items() if name != LEGACY}
    check_good(place, other, without)


@case
def text_of_any_language_has_one_form(place):
    allowed = [f"~/{name}" for name in ("é", "😀", "\ufb33", "a\\b", '"', "/".join("xyz"))]
    card = card_of(place, *place.spec(f"preflight_allow: {json.dumps(allowed, ensure_ascii=False)}\n"))
    assert sorted(params(card)["preflight"]["allowed"]) == sorted(allowed)
    check_good(place, card)


@case
def what_opens_the_wall_makes_it_custom_and_is_named(place):
    pairs = [
        ("fakeroot: true", "fakeroot", True),
        ("relaxed: true", "relaxed", True),
        ("network: {mode: host}", "network.mode", "host"),
        ("project: {mode: writable}", "project.mode", "writable"),
        ("preflight_allow: [~/.gitconfig]", "preflight_allow", ["~/.gitconfig"]),
        ("allow_degraded: [ipc]", "allow_degraded", ["ipc"]),
    ]
    plain = params(card_of(place))
    assert plain["level"] == "hardened" and "differs" not in plain and "allowed" not in plain["preflight"]
    for text, key, value in pairs:
        options = place.spec(text + "\n")
        card = card_of(place, *options)
        block = params(card)
        assert block["level"] == card[LEGACY]["isolation"]["level"] == "custom", text
        assert block["differs"] == [{"key": key, "value": value}], block["differs"]
        planned = json.loads(expect(place.run("plan", "--json", *options), 0).stdout)
        assert planned["level"] == "custom" and key in planned["level_reasons"]
        assert planned["spec_sha256"] == block["specDigest"]["sha256"]
        digest = expect(place.run("plan", "--digest", *options), 0).stdout.strip()
        assert digest == block["planDigest"]["sha256"]
    # A limit that nobody declared is no part of the wall: to do without it opens nothing.
    assert params(card_of(place, *place.spec("allow_degraded: [limits.memory]\n")))["level"] == "hardened"


@case
def the_address_is_said_and_a_wrong_one_refused(place):
    card = card_of(place, "--url", "https://agents.example/a2a")
    assert card["supportedInterfaces"] == [
        {"url": "https://agents.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
    expect(place.run("card", "--url", "agents.example"), 2, "cannot use --url")


@case
def unsigned_means_without_a_key(place):
    card = card_of(place, "--unsigned")
    assert "signatures" not in card and not public_key(place).exists()


@case
def a_spec_that_cannot_be_planned_has_no_card(place):
    done = expect(place.run("card", *place.spec("nonsense: 1\n")), 1, "nonsense")
    assert done.stdout == ""


# --- of a run ---

@case
def a_card_of_a_run_says_what_its_record_says(place):
    run, file = run_of(place)
    card, record = card_of(place, run), predicate(file)
    check_good(place, card)
    block = params(card)
    assert block["basis"] == "observed" and block["run"]["id"] == run == record["run"]
    assert block["run"]["record"]["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert block["run"]["record"]["key"] == json.loads(file.read_text().splitlines()[0])["signatures"][0]["keyid"]
    assert block["run"]["effects"]["sha256"] == record["effects"]["sha256"]
    assert block["specDigest"]["sha256"] == record["spec_sha256"]
    assert block["planDigest"]["sha256"] == record["plan_sha256"]
    assert block["preflight"] == {"sha256": record["preflight_sha256"], "passed": True}
    assert block["level"] == record["level"] and block["engine"] == record["engine"]
    missing = [name for name, seen in record["guarantees"].items() if seen["need"] == "may" and not seen["holds"]]
    assert block.get("degraded", []) == missing and set(record["degraded"]) <= set(missing)
    assert block["observed"] == {name: {"holds": seen["holds"], "vantage": seen["vantage"]}
                                 for name, seen in record["guarantees"].items() if seen["vantage"] != "none"}
    assert block["run"]["inChain"] is record["in_chain"] is True
    assert card[LEGACY]["isolation"]["preflight_passed"] == ["uid-nonzero", "home-canonical"]


@case
def a_relaxed_run_is_outside_the_chain(place):
    run, _ = run_of(place, "--relaxed")
    block = params(card_of(place, run))
    assert block["run"]["inChain"] is False and block["differs"] == [{"key": "relaxed", "value": True}]


@case
def a_run_is_not_planned_again(place):
    run, _ = run_of(place)
    expect(place.run("card", run, "--fakeroot"), 2, "cannot use --fakeroot")
    expect(place.run("card", run, run), 2, "one run")
    expect(place.run("card", "20250101-000000-00000000"), 1, "there is no run")


@case
def a_record_that_was_changed_has_no_card(place):
    run, file = run_of(place)
    whole, spec = file.read_bytes(), records.part(file.parent, "spec")
    for content in (b"", whole[:100], whole.replace(b'"payload":"e', b'"payload":"f', 1),
                    whole.replace(b'"sig":"', b'"sig":"A', 1)):
        file.write_bytes(content)
        done = place.run("card", run)
        assert done.returncode in (1, 125) and done.stdout == "" and done.stderr.count("\n") == 1, done
    file.write_bytes(whole)
    card_of(place, run)
    form = spec.read_bytes()
    assert b'"fakeroot":true' not in form
    for content in (b"", form[:50], form.replace(b'"fakeroot":false', b'"fakeroot":true')):
        spec.write_bytes(content)
        done = expect(place.run("card", run), 1)
        assert done.stdout == "" and done.stderr.count("\n") == 1, done


# --- bawn's own verdict ---

def verify(place, card, *args):
    """The status, and the results by property."""
    path = place.write("card.json", json.dumps(card))
    done = place.run("verify", "--json", "--card", path, *args)
    said = json.loads(done.stdout)
    assert said["good"] == (done.returncode == 0), done
    return done.returncode, {row["name"]: row["result"] for row in said["properties"]}


@case
def verify_takes_a_card_alone_and_with_its_record(place):
    run, file = run_of(place)
    card = card_of(place, run)
    assert verify(place, card) == (0, {"card.signature": "yes", "card.older": "yes"})
    for word in (run, file):
        status, rows = verify(place, card, word)
        assert status == 0 and rows["signature"] == "yes"
        assert {name for name in rows if name.startswith("card.")} == {
            f"card.{name}" for name in ("signature", "older", "record", "level", "digests", "run", "guarantees",
                                        "preflight", "mechanisms")}
    declared = card_of(place, "--", "sh", "-c", "echo a >b")
    status, rows = verify(place, declared, run)
    assert status == 0 and rows["card.record"] == "not there" and rows["card.digests"] == "yes", rows


@case
def the_card_of_another_run_or_spec_is_noticed(place):
    first, _ = run_of(place)
    second, _ = run_of(place)
    status, rows = verify(place, card_of(place, first), second)
    assert status == 1 and rows["card.record"] == rows["card.run"] == "no" and rows["card.level"] == "yes", rows
    status, rows = verify(place, card_of(place, "--fakeroot"), first)
    assert status == 1 and rows["card.level"] == "no" and rows["card.digests"] == "no", rows


@case
def verify_catches_every_change_too(place):
    run, _ = run_of(place)
    card = card_of(place, run)
    for path, other in tampered(card):
        status, rows = verify(place, other)
        assert status == 1 and rows["card.signature"] == "no", path
    for name in card[LEGACY]["isolation"]:
        if name not in ("containall", "writable_tmpfs", "preflight_passed"):
            other = copy.deepcopy(card)
            block = other[LEGACY]["isolation"]
            block[name] = changed(block[name])
            assert verify(place, other) == (1, {"card.signature": "yes", "card.older": "no"}), name
    unsigned = card_of(place, run, "--unsigned")
    assert verify(place, unsigned)[1]["card.signature"] == "no"


@case
def whose_key_counts_is_said(place):
    card = card_of(place)
    other = place.home / "other.pub"
    subprocess.run(f"openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out {other} && chmod 644 {other}",
                   shell=True, check=True)
    assert verify(place, card, "--key", public_key(place))[0] == 0
    assert verify(place, card, "--key", other) == (1, {"card.signature": "no", "card.older": "yes"})
    # A key that was replaced still counts as one's own.
    expect(place.run("key", "init", "--new"), 0)
    assert verify(place, card)[0] == 0


@case
def what_is_no_card_is_told_in_a_sentence(place):
    for content in (b"", b"{}", b"[1]", b"\xff", b"{" * 100, b'{"a":1.5}', b" " * 2_000_000):
        path = place.write("card.json", content)
        done = expect(place.run("verify", "--card", path), 1, "card")
        assert done.stdout == "" and done.stderr.count("\n") == 1, done
    expect(place.run("verify", "--card", place.home / "none"), 1, "cannot read the card")
    expect(place.run("verify", "--card", path, "--quick"), 2, "no record is named")


def main():
    global NODE  # pylint: disable=global-statement
    try:
        NODE = npm.Node(BUILD)
    except npm.Missing as reason:
        print(f"1..0 # SKIP {reason}")
        return
    place_module.main()


if __name__ == "__main__":
    main()
