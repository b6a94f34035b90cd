#!/usr/bin/env python3
"""Does the world of the tests work? With no cage in it.

    uncaged.py BAWN BREAKABLE        prints TAP
"""

import json
import sys
import time

import world
from internet import RESERVED, RESOLVER6
from world import BUNDLE, IN_HOSTS, OTHER, SILENT, SILENT6, WEB, WEB6
from place import case, expect, main, output

WORLD = None
TIMES = "-sS --max-time 10"


def fetch(p, options):
    """What the server saw of curl."""
    return json.loads(expect(WORLD.host(p, f"curl {TIMES} {options}"), 0).stdout)


@case
def names_are_resolved_and_counted(p):
    WORLD.take()
    for name, wanted in (("www.example.org", {WEB, WEB6}), ("alias.example.org", {WEB, WEB6}),
                         ("x.y.wild.example.org", {WEB, WEB6}), ("six.example.org", {WEB6}), (IN_HOSTS, {OTHER})):
        done = expect(WORLD.host(p, f"getent ahosts {name}"), 0)
        assert {line.split()[0] for line in done.stdout.splitlines()} == wanted, done.stdout
        assert WORLD.queries() == ([] if name == IN_HOSTS else [name, name]), name
    expect(WORLD.host(p, "getent ahosts nowhere.example.org"), 2)
    assert set(WORLD.queries()) == {"nowhere.example.org"}


@case
def names_change_fail_and_come_by_tcp(p):
    def ask(name="new.example.net"):
        return WORLD.host(p, f"getent ahostsv4 {name} | cut -d' ' -f1 | uniq").stdout.split()
    assert ask() == []
    WORLD.zone({"new.example.net": {"turns": [{"A": [WEB]}, {"A": [OTHER]}]}})
    assert [ask(), ask(), ask()] == [[WEB], [OTHER], [OTHER]]
    WORLD.zone({"new.example.net": {"truncated": True, "A": [WEB]}})
    WORLD.take()
    assert ask() == [WEB]
    assert [row["by"] for row in WORLD.take("names")] == ["udp", "tcp"]
    WORLD.zone({"new.example.net": {"silent": True}})
    start = time.monotonic()
    assert ask() == [] and time.monotonic() - start > 1
    WORLD.zone({"new.example.net": {"rcode": 2}})
    assert ask() == []
    WORLD.zone({"new.example.net": None})
    assert ask() == []


@case
def the_web_is_reached_by_name(p):
    for scheme, port in (("http", 80), ("https", 443), ("http", 8080), ("https", 8443)):
        for options, address in (("-4", WEB), ("-6", WEB6)):
            seen = fetch(p, f"{options} {scheme}://www.example.org:{port}/a/path")
            assert (seen["address"], seen["port"], seen["path"]) == (address, port, "/a/path"), seen
            assert seen["host"].partition(":")[0] == "www.example.org", seen
            assert seen["sni"] == ("www.example.org" if scheme == "https" else None), seen


@case
def the_authority_is_trusted_and_needed(p):
    seen = fetch(p, "--resolve wrong.example.org:443:93.184.216.35 https://wrong.example.org/")
    assert (seen["sni"], seen["address"]) == ("wrong.example.org", OTHER), seen
    expect(WORLD.host(p, f"curl {TIMES} --capath /nowhere --cacert /etc/hostname https://www.example.org/"), 77)
    expect(WORLD.host(p, f"curl {TIMES} https://{WEB}/"), 60, "no alternative certificate subject name")


@case
def hosts_have_files(p):
    (WORLD.files("files.example.net") / "sub").mkdir(exist_ok=True)
    (WORLD.files("files.example.net") / "sub/index.html").write_text("found\n")
    options = f"--connect-to ::{WEB}: --cacert {BUNDLE}"
    output(WORLD.host(p, f"curl {TIMES} {options} https://files.example.net/sub/"), "found\n")
    expect(WORLD.host(p, f"curl {TIMES} -f {options} http://files.example.net/other"), 22, "404")


@case
def reserved_addresses_answer_here(p):
    program = ("import socket, sys\n"
               "for address in sys.argv[1:]:\n"
               "    sock = socket.create_connection((address, 22), 10)\n"
               "    print(sock.makefile().readline(), end='')\n"
               "    sock = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET, socket.SOCK_DGRAM)\n"
               "    sock.settimeout(10)\n"
               "    sock.sendto(b'x', (address, 7))\n"
               "    assert sock.recv(9) == b'x'\n")
    places = (WEB, WEB6, RESOLVER6, *RESERVED)
    WORLD.take()
    output(p.run("-c", program, *places, program=sys.executable), f"SSH-2.0-{WORLD.canary}\n" * len(places))
    seen = WORLD.take()
    assert [row["address"] for row in seen if row["service"] == "udp"] == list(places), seen
    assert [(row["address"], row["port"]) for row in seen if row["service"] == "tcp"] == [(a, 22) for a in places], seen


@case
def nothing_else_is_there(p):
    links = expect(WORLD.host(p, "ip -o link | cut -d: -f2 | cut -d@ -f1"), 0).stdout.split()
    assert links == ["lo", "world"], links
    for address in ("8.8.8.8", "[2620:fe::fe]"):
        expect(WORLD.host(p, f"curl {TIMES} http://{address}/"), 7, "Couldn't connect")
    for address in (SILENT, f"[{SILENT6}]"):
        expect(WORLD.host(p, f"curl -sS --max-time 1 http://{address}/"), 28, "timed out")


if __name__ == "__main__":
    WORLD = world.enter()
    main()
