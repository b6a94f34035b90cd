#!/usr/bin/env python3
"""The preflight: its text and the cage's init agree, and a run whose preflight does not pass ends.

    preflight.py BAWN BREAKABLE INIT        prints TAP
"""

import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

from files import image_spec, make_image
import accounts
from place import BREAKABLE, CASES, FILES, case, expect, main, of_root, output

SCRIPT = (pathlib.Path(__file__).resolve().parents[2] / "data/preflight.sh").read_text(encoding="utf-8")
INIT = sys.argv.pop(3)
CASES.clear()  # those of files.py

USER, ROOT = "Uid:\t1000\t1000\t1000\t1000\n", "Uid:\t0\t0\t0\t0\n"
KERNELS = "         0       1000          1\n"  # as the kernel writes a map
HOME = "/home/agent"
# uid_map, status, HOME, and the code of the preflight; None: there is none.
WORLDS = [
    *((text, ROOT, HOME, code) for text, code in (
        (KERNELS, 0), ("0 1000 1\n", 0), ("0\t1000\t1\n", 0), ("1000 4294967294 1\n", 0), ("0 10 1\n", 0), ("0 1\n", 0),
        ("0 1000 1\n1 1001 1\n", 0), ("0 1000 1\n1 2000 1", 0), ("0 1000 1\n1 0 1", 0),
        ("         0          0 4294967295\n", 11), ("1000 0 1\n", 11), ("0 0 1\n", 11), ("0 00 1\n", 11),
        ("0 01 1\n", 11), ("0 -1 1\n", 11), ("0 +1 1\n", 11), ("0 1x 1\n", 11), ("0 0x1 1\n", 11), ("0 x 1\n", 11),
        ("0\n", 11), ("1000\n", 11), ("\n", 11), ("", 11), (None, 11), ("0 1000 1", 11), ("0 1000 1\n1 0 1\n", 11),
        ("1 0 1\n0 1000 1\n", 11), ("0 1000 1\n\n", 11), ("0 1000 1\n0\n", 11))),
    *(("0 0 1\n", text, HOME, code) for text, code in (
        (USER, 0), ("Uid: 1000 1000\n", 0), ("Name:\tx\n" + USER + "Gid:\t0\n", 0), (" Uid:\t1\t1\n", 0),
        ("Name:\tUid: 0 0\n" + USER, 0), (USER + ROOT, 0), ("Uid:\t10\t20\t0\t0\n", 0),
        ("Uid:\t0\t1000\t1000\t1000\n", 11), ("Uid:\t1000\t0\t1000\t1000\n", 11), ("Uid:\t1000\n", 11), ("Uid:\n", 11),
        ("Uid:\t01\t1\n", 11), ("Uid:\t1\t1x\n", 11), ("Uid:1000\t1000\n", 11), ("uid:\t1000\t1000\n", 11),
        ("Uid\t1000\t1000\n", 11), ("XUid:\t1\t1\n", 11), (USER[:-1], 11), (ROOT + USER, 11), ("", 11), (None, 11))),
    *((KERNELS, USER, home, 12) for home in (
        None, "", "/", "/root", "/home", "/home/agen", "/home/agents", "/home/agent/", "//home/agent", "/home/agent/.",
        " /home/agent", "/home/agent ", "/home/agent\n", "/HOME/AGENT", "HOME=/home/agent")),
    ("0 0 1\n", ROOT, "/", 11),
    ("0 0 1\n", USER, "/", 12),
]
# A /proc that has nothing but these two files.
WORLD = """mount -t tmpfs world /proc && mkdir /proc/self || exit 99
[ "$1" = none ] || printf %s "${1#.}" >/proc/self/uid_map
[ "$2" = none ] || printf %s "${2#.}" >/proc/self/status
shift 2
exec "$@"
"""


def in_world(p, world, *command, fds=(), **more):
    """Starts a command in a world, as root of a user namespace; its descriptors from 3 on are copies of `fds`."""
    def prepare():
        for i, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in fds]):
            os.dup2(fd, 3 + i)
        if os.geteuid() == 0:
            accounts.become(p.uid)

    files = ["none" if text is None else "." + text for text in world[:2]]
    # COMMAND=1: there is no command
    home = [] if world[2] is None else [f"HOME={world[2]}"]
    return subprocess.Popen(
        ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", WORLD, "sh", *files,
         "/usr/bin/env", "-i", "COMMAND=1", *home, *command], cwd="/", preexec_fn=prepare, close_fds=False, **more)


def code_of_text(p, world):
    with in_world(p, world, "/bin/sh", "-c", SCRIPT, stderr=subprocess.DEVNULL) as child:
        return child.wait()


def code_of_init(p, world):
    """The code that it sends to the keeper; it opens the latch only after a 0, and ends with the keeper."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    latch = os.pipe()
    child = in_world(p, world, str(FILES / "init"), fds=(theirs.fileno(), latch[1]))
    os.close(latch[1])
    theirs.close()
    _, code = struct.unpack_from("=Ii", ours.recv(4096) or bytes(8))
    opened = os.read(latch[0], 2)
    ours.close()
    os.close(latch[0])
    assert (child.wait(), len(opened)) == ((137, 1) if code == 0 else (code, 0)), (world, code, opened, child.returncode)
    return code


@case
def text_and_init_agree(p):
    shutil.copy(INIT, FILES / "init")
    (FILES / "init").chmod(0o755)
    for world in WORLDS:
        codes = code_of_text(p, world), code_of_init(p, world)
        assert codes == (world[3], world[3]), (world, codes)


def run_script(p, *before, home=HOME):
    """The status of the text, outside of any cage."""
    return subprocess.run([*before, "/bin/sh", "-c", SCRIPT], env={"HOME": home}, check=False, cwd="/",
                          preexec_fn=(lambda: accounts.become(p.uid)) if os.geteuid() == 0 else None).returncode


@case
def the_text_is_printed_and_judges_this_host(p):
    assert expect(p.run("preflight"), 0).stdout == SCRIPT
    assert run_script(p) == (0 if p.uid else 11)
    assert run_script(p, "unshare", "--user", "--map-root-user") == (0 if p.uid else 11)
    assert run_script(p, *(() if p.uid else accounts.login(12345)), home="/root") == 12


@case
def the_text_passes_in_a_cage(p):
    output(p.sh(SCRIPT), "")
    output(p.sh(SCRIPT, "--fakeroot"), "")
    expect(p.run("run", "-e", "A=1", "--", "sh", "-c", "HOME=/; " + SCRIPT), 12)


def broken_run(p, names, *args):
    env = dict(BAWN_TEST_BREAK=names + ",look")
    return p.run("run", *args, program=BREAKABLE, env=env)


@case
@of_root
def a_cage_whose_root_is_the_hosts_ends_before_the_command(p):
    said = expect(broken_run(p, "ids", "--fakeroot", "--", "echo", "RAN"), 125,
                  "root in the cage would be root outside (status 11)")
    assert "RAN" not in said.stdout
    expect(broken_run(p, "ids,init,preflight", "--fakeroot", "--", "echo", "RAN"), 0, "RAN")
    expect(broken_run(p, "none", "--fakeroot", "--", "echo", "RAN"), 0, "RAN")


@case
def a_cage_with_another_home_ends_before_the_startup_commands(p):
    spec = p.spec('startup_commands: ["echo STARTED"]\n')
    said = expect(broken_run(p, "home", *spec, "--", "echo", "RAN"), 125, "the home is not the cage's own (status 12)")
    assert "RAN" not in said.stdout and "STARTED" not in said.stdout
    record = p.record()
    assert (record["preflight_passed"], record["preflight_by"]) == (False, "init")
    expect(broken_run(p, "home,init", *spec, "--", "echo", "RAN"), 125, "(status 12)")
    expect(broken_run(p, "home,init,preflight", *spec, "--", "sh", "-c", "echo RAN in $HOME"), 0, "RAN in /\n")
    expect(p.run("run", *p.spec('startup_commands: ["exit 3"]\n'), "--", "echo", "RAN"), 125, "status 3")
    assert p.record()["preflight_passed"] is True  # what failed is another thing


@case
def an_image_without_a_shell_is_judged_the_same(p):
    image = make_image(p)
    said = expect(broken_run(p, "home", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/hostname"), 125,
                  "the home is not the cage's own (status 12)")
    assert "bawn" not in said.stdout
    expect(broken_run(p, "none", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/hostname"), 0, "bawn")
    assert p.record()["preflight_by"] == "init"
    expect(p.sh("true"), 0)
    assert p.record()["preflight_by"] == "init"


@case
def a_run_that_ends_before_it_names_nobody(p):
    expect(p.run("run", "--", "true", program=BREAKABLE, env={"BAWN_TEST_BREAK": "namespace:ipc"}), 125)
    record = p.record()
    assert (record["preflight_passed"], record["preflight_by"]) == (False, None)


if __name__ == "__main__":
    main()
