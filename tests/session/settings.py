#!/usr/bin/env python3
"""Settings of a service, by its environment: what a session is created with, and what is refused.

    settings.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402

case, expect = cage.case, cage.expect


def create(place, *options, **settings):
    return place.run("session", "create", *options, env={f"BAWN_SANDBOX_{name}": value
                                                         for name, value in settings.items()})


def spec_of(place, *options, **settings):
    id_ = expect(create(place, *options, **settings), 0).stdout.strip()
    env = {"BAWN_SANDBOX_ROOT": settings["ROOT"]} if "ROOT" in settings else {}
    return json.loads(expect(place.run("session", "show", id_, "--json", env=env), 0).stdout)["spec"]


def nothing_is_made(place):
    assert json.loads(expect(place.run("session", "list", "--json"), 0).stdout)["sessions"] == []


@case
def a_session_is_what_the_settings_say(place):
    usual = spec_of(place)
    assert (usual["engine"], usual["session.ttl"], usual["network.mode"]) == ("auto", 3600000, "none")
    root = place.home / "elsewhere"
    place.make(root, 0o700)
    spec = spec_of(place, MODE="native", TTL_SECONDS="90", NETWORK="allowlist", ROOT=str(root))
    assert (spec["engine"], spec["session.ttl"], spec["network.mode"]) == ("native", 90000, "allowlist")
    assert len([path for path in root.iterdir() if len(path.name) == 32]) == 1, "it is not in that root"
    # Limits are what the option of the same meaning makes them, whether they can be held here or not.
    for option, value, setting in ((("-m", "300M"), "300", "MEMORY_LIMIT_MB"), (("--cpus", "1.5"), "1.5", "CPU_LIMIT")):
        by_option, by_setting = create(place, *option), create(place, **{setting: value})
        assert by_option.returncode == by_setting.returncode, (by_option, by_setting)
        if by_setting.returncode == 0:
            shown = [json.loads(place.run("session", "show", done.stdout.strip(), "--json").stdout)["spec"]
                     for done in (by_option, by_setting)]
            assert shown[0] == shown[1] != usual, setting


@case
def an_option_wins_against_a_setting(place):
    spec = spec_of(place, "--ttl", "5m", "--engine", "native", "--network", "none", TTL_SECONDS="90", MODE="bwrap",
                   NETWORK="host")
    assert (spec["engine"], spec["session.ttl"], spec["network.mode"]) == ("native", 300000, "none")


@case
def an_engine_is_chosen_and_rolled_back_by_one_word(place):
    expect(create(place, MODE="bwrap"), 125, "bwrap")
    nothing_is_made(place)
    assert spec_of(place, MODE="native")["engine"] == "native"


@case
def policies_hold_for_settings(place):
    place.write(".config/bawn/policy.yaml", "version: 1\nenvironment: prod\n", 0o600)
    done = create(place, MODE="logical")
    assert done.returncode != 0 and "BAWN_SANDBOX_MODE: error: " in done.stderr, done
    nothing_is_made(place)


@case
def what_is_wrong_is_told_and_nothing_is_made(place):
    for name, value in (("TTL_SECONDS", "1h"), ("TTL_SECONDS", "0"), ("MODE", "chroot"), ("NETWORK", "off"),
                        ("CPU_LIMIT", "-1"), ("MEMORY_LIMIT_MB", "2G"), ("NETWROK", "none")):
        done = expect(create(place, **{name: value}), 2, "BAWN_SANDBOX_" + name)
        assert done.stderr.startswith("bawn: ") and len(re.findall("^(?!hint: )", done.stderr.rstrip("\n"), re.M)) == 1, done
    nothing_is_made(place)


@case
def a_run_does_not_read_them(place):
    env = {"BAWN_SANDBOX_NETWORK": "host", "BAWN_SANDBOX_MODE": "logical", "BAWN_SANDBOX_NETWROK": "x"}
    cage.output(place.run("run", "--", "echo", "hello", env=env), "hello\n")


if __name__ == "__main__":
    cage.main()
