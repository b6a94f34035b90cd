#!/usr/bin/env python3
"""Envelopes of bawn's, verified by programs that are not: openssl as README.md says it, and @sigstore/verify.

    envelope.py BUILD MAKE_ENVELOPE BAWN        prints TAP

They are of two kinds: small ones of a payload that is hard to quote, in which every byte is changed once, and a run's
record. Whatever one of them takes for signed is what was signed: no changed byte, no missing one.
"""

import base64
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import npm  # noqa: E402

BUILD, MAKE, BAWN = map(os.path.abspath, sys.argv[1:4])
README = npm.HERE.parent.parent / "README.md"
TYPE = "application/vnd.in-toto+json"
STATEMENT = json.dumps({
    "_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "effects", "digest": {"sha256": "0" * 64}}],
    "predicateType": "urn:bawn:record:v1", "predicate": {"name": "é\n\"quoted\"", "payload": "\"payload\":\"AAAA\""},
}, ensure_ascii=False).encode()
CASES = []


def case(function):
    CASES.append(function)
    return function


def flipped(content):
    """With one bit changed, a different one in each byte."""
    return [content[:i] + bytes([byte ^ (1 << i % 8)]) + content[i + 1:] for i, byte in enumerate(content)]


def cut(content):
    return [content[:n] for n in range(len(content))]


def longer(content):
    return [content + b"\0", b"\0" + content, content + b" ", content * 2]


def changed(content):
    return flipped(content) + cut(content) + longer(content)


class Envelope:
    """One of bawn's, the key's public half, and both verifiers' opinion of others that are like it."""

    def __init__(self, top, line, state, node):
        self.top, self.line, self.node = top, line, node
        (top / "bawn.pub").write_bytes((state / "keys/signing.pub").read_bytes())
        self.object = json.loads(line)
        self.payload = base64.b64decode(self.object["payload"], validate=True)
        self.signature = base64.b64decode(self.object["signatures"][0]["sig"], validate=True)

    def but(self, payload=None, signature=None, kind=TYPE):
        """The line with another payload, signature or type."""
        return json.dumps({**self.object, "payloadType": kind,
                           "payload": encode(self.payload if payload is None else payload),
                           "signatures": [{**self.object["signatures"][0],
                                           "sig": encode(self.signature if signature is None else signature)}]},
                          separators=(",", ":")) + "\n"

    def by_script(self, line):
        """Does README.md's script take it? What it printed says so, and its status."""
        (self.top / "record.intoto.jsonl").write_text(line, encoding="utf-8")
        done = subprocess.run(["sh", "-c", script()], cwd=self.top, capture_output=True, text=True, check=False)
        said = "Signature Verified Successfully" in done.stdout
        assert said == (done.returncode == 0), f"status {done.returncode}, and printed {done.stdout!r}"
        return said

    def by_openssl(self, payload, signature):
        """The script's last line alone."""
        (self.top / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(payload), payload))
        (self.top / "signature").write_bytes(signature)
        return subprocess.run(["sh", "-c", script().splitlines()[-1]], cwd=self.top, capture_output=True,
                              check=False).returncode == 0

    def by_sigstore(self, lines):
        """The answer for each line."""
        done = self.node.run("envelope.mjs", self.top / "bawn.pub", input="".join(lines))
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(lines), f"{len(answers)} answers to {len(lines)} lines"
        return answers


def made(top, node, payload=STATEMENT):
    """Of a payload of ours."""
    state = top / "state"
    state.mkdir(mode=0o700, exist_ok=True)
    line = subprocess.run([MAKE, state], input=payload, capture_output=True, check=True).stdout.decode()
    x = Envelope(top, line, state, node)
    assert x.payload == payload
    return x


def recorded(x):
    """The envelopes of a run's record, in its order."""
    project = x.top / "project"
    project.mkdir()
    environ = {"PATH": os.environ["PATH"], "HOME": str(x.top), "XDG_STATE_HOME": str(x.top / "states")}
    done = subprocess.run([BAWN, "run", "--", "sh", "-c", "echo é >\"$(printf 'a\\tb')\""], cwd=project, env=environ,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = (x.top / "states/bawn/runs").glob("*/record.intoto.jsonl")
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [Envelope(x.top, line, x.top / "states/bawn", x.node) for line in lines]


def encode(content):
    return base64.b64encode(content).decode()


def script():
    """The one of README.md that verifies."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)
    found = [block for block in blocks if "openssl pkeyutl" in block]
    assert len(found) == 1, f"README.md has {len(found)} scripts that verify"
    return found[0]


@case
def the_readme_verifies_in_five_lines(x):
    assert len(script().splitlines()) == 5
    assert x.by_script(x.line)
    assert (x.top / "payload").read_bytes() == x.payload


@case
def sigstore_verifies_it(x):
    assert x.by_sigstore([x.line, x.but()]) == ["good", "good"]


@case
def it_is_one_line_of_json_with_a_key_that_openssl_names_alike(x):
    assert x.line.endswith("}\n") and x.line.count("\n") == 1
    assert list(x.object) == ["payloadType", "payload", "signatures"] and x.object["payloadType"] == TYPE
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", "bawn.pub", "-outform", "DER"], cwd=x.top,
                         capture_output=True, check=True).stdout
    name = subprocess.run(["sha256sum"], input=der, capture_output=True, check=True).stdout.split()[0].decode()
    assert x.object["signatures"][0]["keyid"] == name


@case
def openssl_reads_the_private_key_and_signs_alike(x):
    """Ed25519 has one signature for a key and a text."""
    (x.top / "signed").write_bytes(b"DSSEv1 %d %s %d %s" % (len(TYPE), TYPE.encode(), len(x.payload), x.payload))
    done = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", "state/keys/signing.pem", "-rawin", "-in", "signed"],
                          cwd=x.top, capture_output=True, check=True)
    assert done.stdout == x.signature


@case
def openssl_catches_every_change(x):
    bad = [(payload, x.signature) for payload in changed(x.payload)[::3]]
    bad += [(x.payload, signature) for signature in changed(x.signature)]
    assert x.by_openssl(x.payload, x.signature)
    for payload, signature in bad:
        assert not x.by_openssl(payload, signature), (payload, signature)


@case
def the_readme_catches_changes(x):
    bad = [x.but(payload=payload) for payload in changed(x.payload)[::29]]
    bad += [x.but(signature=signature) for signature in changed(x.signature)[::11]]
    bad += ["\n", "{}\n", x.line[:len(x.line) // 2], x.but(payload=b""), x.but(signature=b"")]
    assert x.by_script(x.but())
    for line in bad:
        assert not x.by_script(line), line


@case
def sigstore_catches_every_change(x):
    bad = [x.but(payload=payload) for payload in changed(x.payload)]
    bad += [x.but(signature=signature) for signature in changed(x.signature)]
    bad += [x.but(kind=kind) for kind in ("", TYPE + " ", TYPE.upper(), "application/json")]
    answers = x.by_sigstore([x.but(), *bad])
    assert answers[0] == "good"
    taken = [line for line, answer in zip(bad, answers[1:]) if answer == "good"]
    assert not taken, taken[:3]


@case
def another_key_is_another(x):
    subprocess.run("openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out bawn.pub", shell=True, cwd=x.top,
                   check=True)
    assert not x.by_script(x.line)
    assert x.by_sigstore([x.line]) != ["good"]


@case
def a_large_payload_verifies(x):
    large = made(x.top, x.node, b"{" + b" " * 3_000_001 + b"}")
    assert large.by_script(large.line)
    assert large.by_sigstore([large.line]) == ["good"]


@case
def a_record_verifies(x):
    envelopes = recorded(x)
    types = [json.loads(e.payload)["predicateType"] for e in envelopes]
    assert types == ["urn:bawn:record:v2", "https://slsa.dev/provenance/v1"], types
    assert x.by_sigstore([e.line for e in envelopes]) == ["good", "good"]
    for e in envelopes:
        assert e.by_script(e.line)
    # As it is: the script takes the first line.
    assert envelopes[0].by_script("".join(e.line for e in envelopes))
    assert (x.top / "payload").read_bytes() == envelopes[0].payload


@case
def a_changed_record_is_caught(x):
    for e in recorded(x):
        bad = [e.but(payload=payload) for payload in changed(e.payload)[::97]]
        bad += [e.but(signature=signature) for signature in changed(e.signature)]
        answers = e.by_sigstore([e.but(), *bad])
        assert answers[0] == "good" and "good" not in answers[1:]
        assert not [line for line in bad[::40] if e.by_script(line)]
        # What an editor would rather have had.
        relaxed = e.payload.replace(b'"hardened"', b'"custom"').replace(b'"outcome":"exited"', b'"outcome":"signaled"')
        relaxed = relaxed.replace(b'"startedOn":"2', b'"startedOn":"1')
        assert relaxed != e.payload and not e.by_script(e.but(payload=relaxed))


def main():
    try:
        node = npm.Node(BUILD)
    except npm.Missing as reason:
        print(f"1..0 # SKIP {reason}")
        return
    print(f"1..{len(CASES)}")
    for number, function in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory(prefix="bawn-peers-") as top:
            try:
                function(made(pathlib.Path(top), node))
                print(f"ok {number} - {function.__name__}")
            except Exception as problem:  # pylint: disable=broad-exception-caught
                print(f"not ok {number} - {function.__name__}")
                print("".join(f"# {line}\n" for line in f"{type(problem).__name__}: {problem}"[:2000].splitlines()), end="")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
