#!/usr/bin/env python3
"""Kernels that lack something: bawn says what and what would help, or runs with all layers.

    run.py BAWN WITHOUT WITNESS [--only TEXT]        prints TAP

One row for each thing taken away. The machine stays as it is: `without` answers bawn's system calls
as a kernel or a container would that does not have them. Never does a command run in a weaker cage,
unless the guarantee that is missing was named beforehand; then the record says that it is missing.
"""

import argparse
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "faults"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cage"))

# pylint: disable=wrong-import-position
import records  # noqa: E402
from place import Before, Place, Tap, Tools, name_of, namespaces_here, reap, stand_apart, users  # noqa: E402


class Refused:
    """The command never runs; each of the words is in what bawn says, and a remedy where one is known."""

    def __init__(self, *words, remedy=True):
        self.words = words + (("→",) if remedy else ())

    def problem(self, done):
        if done.lines:
            return f"the command ran: {done.lines}"
        if done.status != 125:
            return f"status {done.status}, not 125"
        if not done.err.startswith("bawn: "):
            return "it does not begin with 'bawn: '"
        return next((f"it does not say '{word}'" for word in self.words if word not in done.err), None)


class Runs:
    """The command runs and sees all layers but the named ones; the record agrees."""

    def __init__(self, without=(), guarantee=None):
        self.without, self.guarantee = set(without), guarantee

    def problem(self, done):
        missing = {layer for layer, answer in done.lines.items() if answer != "yes"}
        if not done.is_complete:
            return f"the command did not end as it should: status {done.status}"
        if missing != self.without:
            return f"layers missing: {sorted(missing)}, not {sorted(self.without)}"
        if done.status != (1 if missing else 0):
            return f"status {done.status}"
        return self.record_problem(done.record)

    def record_problem(self, record):
        if not record:
            return "there is no record"
        for name, seen in record["guarantees"].items():
            if name == self.guarantee and seen["holds"]:
                return f"the record says that {name} holds"
            if name != self.guarantee and seen["need"] == "must" and not seen["holds"]:
                return f"the record says that {name} does not hold: {seen['seen']}"
        return None


class Either:
    """Whichever the version at hand can do; but one of them."""

    def __init__(self, *expected):
        self.expected = expected

    def problem(self, done):
        problems = [one.problem(done) for one in self.expected]
        return None if None in problems else "; ".join(problems)


def namespace(name, error):
    return [f"{call}:{name}={error}" for call in ("clone3", "clone", "unshare")]


DETACHED = "detached mounts"
FILE_RULES = "file rules by Landlock"
RUNS = Runs()

# What is taken away, how, with which options, and what comes of it.
ROWS = [
    # Nothing that a cage needs: another filter around bawn is no obstacle, and is not counted as its own.
    ("another filter", ["setns"], [], RUNS),
    ("another filter that asks", ["fsopen:nfs"], [], RUNS),

    # Namespaces. Filters that cannot look into clone3 hide it; clone makes the same cage.
    ("clone3", ["clone3"], [], RUNS),
    ("user namespaces", namespace("NEWUSER", "EPERM"), [], Refused("user namespace")),
    ("user namespaces, as containers do it", ["clone3", "clone:NEWUSER=EPERM", "unshare:NEWUSER=EPERM"], [],
     Refused("user namespace")),
    ("user namespaces, used up", namespace("NEWUSER", "ENOSPC"), [],
     Refused("user namespace", "user.max_user_namespaces")),
    ("user namespaces, not in the kernel", namespace("NEWUSER", "EINVAL"), [],
     Refused("user namespace", "newer kernel")),
    ("network namespaces", namespace("NEWNET", "EPERM"), [], Refused("net.none", "a network of its own")),
    ("mount namespaces", namespace("NEWNS", "EPERM"), [], Refused("fs.root", "a private tree of mounts")),
    ("pid namespaces", namespace("NEWPID", "EPERM"), [], Refused("proc", "a process table of its own")),
    ("ipc namespaces", namespace("NEWIPC", "EINVAL"), [], Refused("ipc", "shared memory")),
    ("uts namespaces", namespace("NEWUTS", "EINVAL"), [], Refused("uts", "a host name of its own")),
    ("cgroup namespaces", namespace("NEWCGROUP", "EINVAL"), [], Refused("cgroup", "a cgroup tree")),
    # Here looking (which may use unshare) says yes and the cage's one clone is refused.
    ("clone into a pid namespace", ["clone3:NEWPID=EPERM", "clone:NEWPID=EPERM"], [],
     Refused("namespace", remedy=False)),

    # The tree.
    # Only an overlay is made by these two; without it the project is copied.
    ("fsopen", ["fsopen"], [], RUNS),
    ("fsmount", ["fsmount"], [], RUNS),
    ("move_mount", ["move_mount"], [], Refused(DETACHED)),
    ("open_tree", ["open_tree", "open_tree_attr"], [], Refused(DETACHED)),
    ("open_tree_attr", ["open_tree_attr"], [], RUNS),
    ("mount_setattr", ["mount_setattr", "open_tree_attr"], [], Refused(DETACHED)),
    ("pivot_root", ["pivot_root=EPERM"], [], Refused(DETACHED)),
    ("mount", ["mount=EPERM"], [], Refused("a private tree of mounts")),
    ("umount2", ["umount2=EPERM"], [], Refused(remedy=False)),
    ("openat2", ["openat2"], [], Refused("paths opened without leaving a directory")),
    ("a fresh /proc", ["fsopen:proc=EPERM", "mount:proc=EPERM"], [], Refused("proc", "/proc")),
    # The project is copied then.
    ("overlay", ["fsopen:overlay=ENODEV", "mount:overlay=ENODEV"], [], RUNS),
    ("overlay, which is forbidden", ["fsopen:overlay=EPERM", "mount:overlay=EPERM"], [], RUNS),
    ("overlay, with leave", ["fsopen:overlay=ENODEV", "mount:overlay=ENODEV"], ["--allow-degraded", "fs.project"],
     RUNS),
    ("overlay, with the project read-only", ["fsopen:overlay=ENODEV", "mount:overlay=ENODEV"], ["--read-only"],
     Runs(["project"])),
    ("tmpfs", ["fsopen:tmpfs=ENODEV", "mount:tmpfs=ENODEV"], [], Refused(DETACHED)),

    # Landlock: every version before the one at hand, none, and none with leave.
    *[(f"Landlock after version {version}", [f"landlock:{version}"], [], RUNS) for version in range(1, 7)],
    ("Landlock", ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"], [],
     Refused("landlock", FILE_RULES)),
    ("Landlock, switched off", ["landlock:0"], [], Refused("landlock", FILE_RULES, "lsm=")),
    ("Landlock, with leave", ["landlock:0"], ["--allow-degraded", "landlock"], Runs(["landlock"], "landlock")),
    ("Landlock, by surprise", ["landlock_restrict_self=EPERM"], [], Refused("Landlock", remedy=False)),
    ("rules of Landlock, by surprise", ["landlock_add_rule=EINVAL"], [], Refused("Landlock", remedy=False)),

    # Filters: bawn's own cannot be set, so what is left is the one that took this away.
    ("filters", ["seccomp=EINVAL", "prctl:22=EINVAL"], [], Refused("syscalls", "system calls filtered")),
    ("filters, with leave", ["seccomp=EINVAL", "prctl:22=EINVAL"], ["--allow-degraded", "syscalls"],
     Runs(["seccomp.rules"], "syscalls")),
    ("filters, by surprise", ["seccomp:1=EPERM", "prctl:22=EPERM"], [], Refused("filter", remedy=False)),

    # Rights that must go, and do not.
    ("no_new_privs", ["prctl:38=EINVAL"], [], Refused("privileges", remedy=False)),
    ("the bounding set", ["prctl:24=EPERM"], [], Refused("capabilities", remedy=False)),
    ("capset", ["capset=EPERM"], [], Refused(remedy=False)),
    # A user's cage has the user's own id, and needs no change.
    ("setresuid", ["setresuid=EPERM"], [], Either(RUNS, Refused(remedy=False))),
    ("setresgid", ["setresgid=EPERM"], [], Either(RUNS, Refused(remedy=False))),
    ("sethostname", ["sethostname=EPERM"], [], Refused("uts", "a host name of its own")),
    ("keyrings", ["keyctl"], [], RUNS),
    ("new keyrings", ["keyctl=EPERM"], [], Refused("keyring", remedy=False)),

    # What bawn uses besides: it does without, or says so.
    ("close_range", ["close_range"], [], Either(RUNS, Refused("descriptors", remedy=False))),
    ("memfd_create", ["memfd_create"], [], Either(RUNS, Refused("init", remedy=False))),
    ("execveat", ["execveat"], [], Either(RUNS, Refused("init", remedy=False))),
    ("pidfd_open", ["pidfd_open"], [], Either(RUNS, Refused(remedy=False))),
    ("pidfd_send_signal", ["pidfd_send_signal"], [], Either(RUNS, Refused(remedy=False))),
    ("renameat2", ["renameat2"], [], Either(RUNS, Refused(remedy=False))),
    ("waitid", ["waitid"], [], Either(RUNS, Refused(remedy=False))),
    ("statx", ["statx"], [], Either(RUNS, Refused(remedy=False))),
    ("faccessat2", ["faccessat2"], [], Either(RUNS, Refused(remedy=False))),
]


class Done:
    """What came of a run."""

    def __init__(self, status, out, err, record):
        self.status, self.err, self.record = status, err, record
        lines = out.splitlines()
        self.is_complete = bool(lines) and lines[-1] == "end"
        self.lines = dict(line.split(" ", 1) for line in lines if " " in line)


def read_record(place):
    for run in place.runs().values():
        try:
            return records.read(run)
        except (OSError, ValueError):
            pass
    return None


def run_row(tools, bawn, uid, rules, options):
    place = Place(uid, tools.witness)
    command = [tools.without, *rules, "--", bawn, "run", "--engine", "native", *options, "--", "/work/witness",
               tools.canary, *namespaces_here()]
    try:
        with place.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            try:
                out, err = (text.decode(errors="replace") for text in child.communicate(timeout=60))
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = "", "it hangs"
                child.communicate()
        left = place.left_files()
        return Done(child.returncode, out, err, read_record(place)), left
    finally:
        place.done()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bawn")
    parser.add_argument("without")
    parser.add_argument("witness")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    stand_apart()
    tap, tools = Tap(), Tools(args.bawn, args.without, args.witness)
    bawn, before = str(tools.top / os.path.basename(args.bawn)), Before()
    for uid in users():
        for title, rules, options, expected in ROWS:
            if args.only not in title:
                continue
            done, left = run_row(tools, bawn, uid, rules, options)
            problem = expected.problem(done) or (f"files changed: {left}" if left else None)
            again = " ".join(["without", *rules, "-- bawn run --engine native", *options, "-- /work/witness …"])
            notes = [problem, again, done.err] if problem else []
            tap.case(not problem, f"without {title} as {name_of(uid)}", notes)
    reap()
    left = before.left()
    tap.case(not left, "nothing is left behind", left)
    tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
