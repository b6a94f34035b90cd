#!/usr/bin/env python3
"""Secrets: keys that only the process between the cage and a host knows, and what a cage can do with them.

    vault.py BAWN BREAKABLE        prints TAP
"""

import json
import pathlib
import subprocess

import world
from caged import run, say
from world import WEB, WEB6
from place import case, expect, expect_refusal, main

WORLD = None
HOST, PORT = "api.example.net", 8445
KEY = "sk-test-5f0c2d4e8b7a49d1-with-a-tail"


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


def begin():
    """Servers with a good certificate and with bad ones."""
    names = ("api", "expired", "stranger", "wrong")
    WORLD.zone({f"{name}.example.net": {"A": [WEB], "AAAA": [WEB6]} for name in names})
    good = WORLD.certificate(HOST)
    server = pathlib.Path(__file__).with_name("keyed.py")
    said = WORLD.spawn("python3", server, f"{PORT}:{good[0]}:{good[1]}")
    assert said == "ready\n", said


def secret(name="api", host=f"{HOST}:{PORT}", header="x-key", source="env:API_KEY", **more):
    return {"name": name, "host": host, "header": header, "from": source, **more}


def spec(p, *secrets, more=""):
    return p.spec("network: { mode: allowlist }\nsecrets: " + json.dumps(secrets or [secret()]) + "\n" + more)


@case
def a_request_gets_the_key(p):
    out = WORLD.bawn(p, "curl -sS http://bawn-host/api/v1/x?y=1", *spec(p), env={"API_KEY": KEY})
    print("#", out.status, out.out, out.err)
    print("#", [e for e in (out.record or {}).get("events", []) if "net" in e["type"]])


if __name__ == "__main__":
    WORLD = world.enter()
    begin()
    main()
