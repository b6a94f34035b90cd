"""Runs the suites in a guest and tells the host about it; the first process there, as root.

Reads /bawn/jobs.json and writes lines of JSON to the second serial port: what each job prints, and
how it ended. Before that it makes the cgroups and the user that systemd and a login would have made:
the suites meet the tree that they meet on people's machines.
"""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import traceback
import tty

UID = 1000
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = "+cpu +memory +pids"
MANAGER = CGROUPS / f"user.slice/user-{UID}.slice/user@{UID}.service"  # what systemd delegates to a user
LEAVES = {"root": CGROUPS / "system.slice/tests.service", "user": MANAGER / "app.slice/tests.scope"}
POWER_OFF = 0x4321FEDC


def make_cgroups():
    """Controllers reach down to the leaves; only those hold processes; the user owns his part."""
    for leaf in (CGROUPS / "init.scope", *LEAVES.values()):
        leaf.mkdir(parents=True)
    (CGROUPS / "init.scope/cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    for leaf in LEAVES.values():
        for folder in reversed(leaf.parents):
            if folder == CGROUPS or CGROUPS in folder.parents:
                (folder / "cgroup.subtree_control").write_text(CONTROLLERS, encoding="ascii")
    for folder in (MANAGER, MANAGER / "app.slice", LEAVES["user"]):
        for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
            os.chown(folder / name, UID, UID)


def make_user():
    for folder in (f"/home/{UID}", f"/run/user/{UID}"):
        os.makedirs(folder)
        os.chmod(folder, 0o700)
        os.chown(folder, UID, UID)


def environment(who):
    names = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
             "CC": "/bawn/cc", "HOME": "/root", "PYTHONUNBUFFERED": "1", "BAWN_TEST_SLOW": "5"}
    return names if who == "root" else {**names, "HOME": f"/home/{UID}", "XDG_RUNTIME_DIR": f"/run/user/{UID}"}


def become(who):
    def change():
        (LEAVES[who] / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        if who == "user":
            os.setgroups([UID])  # as a login has it
            os.setresgid(UID, UID, UID)
            os.setresuid(UID, UID, UID)
    return change


def run(job, tell):
    began = time.monotonic()
    with subprocess.Popen(job["command"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, cwd="/tmp", env=environment(job["who"]),
                          preexec_fn=become(job["who"]), start_new_session=True) as process:
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
        signal.alarm(job["seconds"])
        for line in process.stdout:
            tell(job=job["name"], line=line.decode("utf-8", "replace").rstrip("\n"))
        status = process.wait()
        signal.alarm(0)
    tell(job=job["name"], status=status, seconds=round(time.monotonic() - began, 1))


def main():
    with open("/dev/ttyS1", "w", encoding="utf-8") as port:
        tty.setraw(port.fileno())

        def tell(**what):
            print(json.dumps(what), file=port, flush=True)

        tell(booted=os.uname().release)
        make_cgroups()
        make_user()
        for job in json.loads(pathlib.Path("/bawn/jobs.json").read_bytes()):
            run(job, tell)


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # the end of the first process would be a panic, and hide the reason
        traceback.print_exc()
    sys.stderr.flush()
    ctypes.CDLL(None).reboot(ctypes.c_int(POWER_OFF))
