#!/usr/bin/env python3
"""The preflight: what its script looks at, and that a run ends where it is not content.

    preflight.py BAWN BREAKABLE        prints TAP
"""

import os
import pathlib
import subprocess

from files import image_spec, make_image
import accounts
from place import BREAKABLE, CASES, case, expect, main, of_root

SCRIPT = (pathlib.Path(__file__).resolve().parents[2] / "data/preflight.sh").read_text(encoding="utf-8")
CASES.clear()  # those of files.py


def run_script(p, *before, home="/home/agent"):
    """The status of the script, outside of any cage."""
    return subprocess.run([*before, "/bin/sh", "-c", SCRIPT], env={"HOME": home}, check=False, cwd="/",
                          preexec_fn=(lambda: accounts.become(p.uid)) if os.geteuid() == 0 else None).returncode


@case
def root_of_the_host_is_11(p):
    assert run_script(p) == (0 if p.uid else 11)


@case
def root_inside_that_is_somebody_outside_passes(p):
    assert run_script(p, "unshare", "--user", "--map-root-user") == (0 if p.uid else 11)


@case
def another_home_is_12(p):
    before = ("unshare", "--user", "--map-root-user") if p.uid else accounts.login(12345)
    for home in ("/", "/root", "", "/home/agent/"):
        assert run_script(p, *before, home=home) == 12, home
    assert run_script(p, *before) == 0


def broken_run(p, names, *args):
    env = dict(BAWN_TEST_BREAK=names + ",look")
    return p.run("run", *args, program=BREAKABLE, env=env)


@case
@of_root
def a_cage_whose_root_is_the_hosts_ends_before_the_command(p):
    said = expect(broken_run(p, "ids", "--fakeroot", "--", "echo", "RAN"), 125,
                  "root in the cage would be root outside (status 11)")
    assert "RAN" not in said.stdout
    expect(broken_run(p, "none", "--fakeroot", "--", "echo", "RAN"), 0, "RAN")


@case
def a_cage_with_another_home_ends_before_the_startup_commands(p):
    spec = p.spec('startup_commands: ["echo STARTED"]\n')
    said = expect(broken_run(p, "home", *spec, "--", "echo", "RAN"), 125, "the home is not the cage's own (status 12)")
    assert "RAN" not in said.stdout and "STARTED" not in said.stdout
    assert p.record()["preflight_passed"] is False
    expect(p.run("run", *p.spec('startup_commands: ["exit 3"]\n'), "--", "echo", "RAN"), 125, "status 3")
    assert p.record()["preflight_passed"] is True  # what failed is another thing


@case
def an_image_without_a_shell_is_judged_the_same(p):
    image = make_image(p)
    said = expect(broken_run(p, "home", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/hostname"), 125,
                  "the home is not the cage's own (status 12)")
    assert "bawn" not in said.stdout
    expect(broken_run(p, "none", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/hostname"), 0, "bawn")
    assert p.record()["preflight_by"] == "bawn"
    expect(p.sh("true"), 0)
    assert p.record()["preflight_by"] == "shell"


if __name__ == "__main__":
    main()
