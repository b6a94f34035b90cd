"""What the suites of bawn verify share: runs and their folders, what is said of them, signatures by openssl."""

import base64
import hashlib
import json
import shutil
import subprocess

import records
from place import expect

FILE = "record.intoto.jsonl"


def run(p, script="echo text >new", *options):
    """A run, and its folder."""
    expect(p.sh(script, *options), 0)
    return max((p.state / "bawn/runs").iterdir(), key=lambda path: path.stat().st_ctime_ns)


def verify(p, *args, **more):
    return p.run("verify", *args, **more)


def found(p, *args, **more):
    """The properties, by name: result and text."""
    done = verify(p, *args, "--json", **more)
    said = json.loads(done.stdout)
    assert said["good"] == (done.returncode == 0), done
    return {x["name"]: (x["result"], x["text"]) for x in said.get("properties", [])}, said


def results(p, *args, **more):
    return {name: result for name, (result, _) in found(p, *args, **more)[0].items()}


def copied(p, folder, name="copy"):
    """What belongs to a record, in another place."""
    to = p.home / name
    to.mkdir()
    for name in ("spec", "plan"):
        shutil.copy(records.part(folder, name), to / f"{name}.json")
        p.own(to / f"{name}.json")
    for file in (FILE, "events.jsonl", "effects.json"):
        if (folder / file).exists():
            shutil.copy(folder / file, to / file)
            p.own(to / file)
    p.own(to)
    return to


def foreign_key(p, name="foreign"):
    """The public half of a key that is not the operator's."""
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", p.home / f"{name}.pem"], check=True)
    subprocess.run(["openssl", "pkey", "-in", p.home / f"{name}.pem", "-pubout", "-out", p.home / f"{name}.pub"],
                   check=True)
    for end in ("pem", "pub"):
        p.own(p.home / f"{name}.{end}")
    return p.home / f"{name}.pub"



def key_id(pem):
    der = subprocess.run(["openssl", "pkey", "-in", pem, "-pubout", "-outform", "DER"], capture_output=True, check=True)
    return hashlib.sha256(der.stdout).hexdigest()


def sign(p, payloads, pem=None, name=None):
    """Statements as a file of envelopes, signed by one key, by default the operator's, and naming another if wanted."""
    pem = pem or p.state / "bawn/keys/signing.pem"
    lines = []
    for payload in payloads:
        body = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
        pae = p.top / "pae"
        pae.write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(body), body))
        signature = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", pem, "-rawin", "-in", pae],
                                   capture_output=True, check=True).stdout
        lines.append(json.dumps({"payload": base64.b64encode(body).decode(),
                                 "payloadType": "application/vnd.in-toto+json",
                                 "signatures": [{"keyid": key_id(name or pem),
                                                 "sig": base64.b64encode(signature).decode()}]}))
    return "".join(line + "\n" for line in lines).encode()
