"""A suite's own part of the machine, so that suites can run beside each other and still tell what they left.

Only root can take one. Without it, what others do on the machine meanwhile is seen too.
"""

import atexit
import ctypes
import os
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "limits"))
import groups  # noqa: E402

CLONE_NEWNS = 0x20000
MS_REC, MS_PRIVATE = 0x4000, 0x40000

_libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(_libc, name)(*args) < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def own_mounts():
    """What others mount from now on is not seen here, nor the other way round."""
    if os.geteuid() == 0:
        call("unshare", CLONE_NEWNS)
        call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)


def own_shared_memory():
    """In mounts of our own, an empty /dev/shm: databases keep files in the other."""
    if os.geteuid() == 0:
        call("mount", b"tmpfs", b"/dev/shm", b"tmpfs", 0, b"mode=1777")


def own_cgroups():
    """Enters a cgroup of each tree that bawn uses, until this process ends; returns it, or None.

    Runs make their cgroups below it and sweep what dead ones left there; others do not.
    """
    if os.geteuid() != 0:
        return None
    trees = groups.read_trees()
    try:
        group = groups.Group(0)
    except groups.NoGroups:
        return None
    homes = {trees[name if name in trees else ""] for name in groups.CONTROLLERS}
    for door in group.doors:
        door.write_text("0", encoding="ascii")

    def leave():
        for home in homes:
            (home.mount / home.path / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        group.remove()

    atexit.register(leave)
    return group
