"""How long it takes to verify the record of a run in which much happened."""

import base64
import hashlib
import json
import os
import pathlib
import subprocess
import tempfile
import time

EVENTS = 10000
ROUNDS = 30
GOAL_MS = 50


def lengthen(folder):
    """Continues a run's log to many events; where it ends then."""
    path = folder / "events.jsonl"
    lines = path.read_bytes().splitlines()
    run = json.loads(lines[0])["run"]
    for seq in range(len(lines), EVENTS):
        lines.append(json.dumps({
            "seq": seq, "time": "2026-01-02T03:04:05.678901Z", "type": "net_denied", "run": run, "session": None,
            "name": f"host-{seq}.example.org", "port": 443, "protocol": "tls", "reason": "name", "times": 1,
            "text": f"host-{seq}.example.org:443 is not in network.allow",
            "prev": hashlib.sha256(lines[-1]).hexdigest()}, separators=(",", ":")).encode())
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return {"events": EVENTS, "last": hashlib.sha256(lines[-1]).hexdigest()}


def sign_again(folder, key, log):
    """The record about that log, signed by openssl."""
    path = folder / "record.intoto.jsonl"
    envelopes = [json.loads(line) for line in path.read_bytes().splitlines()]
    for envelope in envelopes:
        statement = json.loads(base64.b64decode(envelope["payload"]))
        if "log" in statement["predicate"]:
            statement["predicate"]["log"] = log
        body = json.dumps(statement, separators=(",", ":")).encode()
        pae = folder / "pae"
        pae.write_bytes(b"DSSEv1 28 application/vnd.in-toto+json %d %b" % (len(body), body))
        signature = subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", key, "-rawin", "-in", pae],
                                   capture_output=True, check=True).stdout
        envelope["payload"] = base64.b64encode(body).decode()
        envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    path.write_text("".join(json.dumps(envelope) + "\n" for envelope in envelopes))


def median_ms(command, env):
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[ROUNDS // 2]


def show(options):
    print(f"Verifying a record: {EVENTS} events, effects, spec and plan; of that bawn's start", flush=True)
    with tempfile.TemporaryDirectory(prefix="bawn-bench-") as top:
        top = pathlib.Path(top)
        (top / "project").mkdir()
        env = {**os.environ, "XDG_STATE_HOME": str(top)}
        subprocess.run([options.bawn, "run", "-q", "--", "sh", "-c", "echo text >file"], env=env, cwd=top / "project",
                       check=True)
        (folder,) = (top / "bawn/runs").iterdir()
        small = median_ms([options.bawn, "verify", folder], env)
        sign_again(folder, top / "bawn/keys/signing.pem", lengthen(folder))
        size = (folder / "events.jsonl").stat().st_size
        large = median_ms([options.bawn, "verify", folder], env)
        start = median_ms([options.bawn, "version"], env)
    print(f"  {'bawn version':40}{start:8.2f} ms")
    print(f"  {'a run without incidents':40}{small:8.2f} ms")
    verdict = "ok" if large <= GOAL_MS else "missed"
    print(f"  {f'{EVENTS} events, {size / 1e6:.1f} MB':40}{large:8.2f} ms   at most {GOAL_MS} ms: {verdict}")
