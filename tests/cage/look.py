#!/usr/bin/env python3
"""The keeper's look from outside: what is left out of a cage is noticed before anything runs in it.

Each mechanism in turn is left out by the test build. The run must then end with 125 and a sentence
that names what is missing, and the command must not have run. Where it is the look that notices, and
not a later step of the cage itself, the same cage must run when nobody looks: that is the twin.

    look.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import ctypes
import os
import pty
import sys

sys.dont_write_bytecode = True
from place import (BREAKABLE, TOOL, Skip, case, descendants, expect, in_mount_namespace, main, of_root,  # noqa: E402
                   of_users, wait_until)

MARK = "echo RAN; touch /mark/ran"


def run_broken(p, names, *options, script=MARK, groups=(), **more):
    """A run with mechanisms left out, and whether its command ran."""
    mark = p.make("mark")
    done = p.sh(script, "-v", f"{mark}:/mark:rw", *options, program=BREAKABLE, groups=groups,
                env={"BAWN_TEST_BREAK": names}, **more)
    has_run = (mark / "ran").exists()
    if has_run:
        (mark / "ran").unlink()
    assert has_run == ("RAN" in done.stdout), done
    return done, has_run


def check_noticed(p, name, guarantee, *parts):
    done, has_run = run_broken(p, name)
    expect(done, 125, f"'{guarantee}' does not hold", "cannot start the command", *parts)
    assert not has_run
    assert p.record()["outcome"] == "refused"
    row = p.record()["guarantees"][guarantee]
    assert row["holds"] is False and row["seen"] and row["seen"] in done.stderr, row
    done, has_run = run_broken(p, f"{name},look")
    assert has_run, f"without the look it does not run either: {done}"
    assert p.record()["guarantees"][guarantee]["holds"] is False


def check_step(p, name, part):
    """A mechanism without which a later step of the cage fails."""
    done, has_run = run_broken(p, name)
    expect(done, 125, part)
    assert not has_run


@case
def a_whole_cage_passes(p):
    done, has_run = run_broken(p, "nothing")
    assert has_run, done


@case
def the_real_build_leaves_nothing_out(p):
    mark = p.make("mark")
    for name in ("namespace:net", "syscalls", "read-only", "look"):
        expect(p.sh("cat /sys/class/net/* 2>/dev/null; grep Seccomp: /proc/self/status", "-v", f"{mark}:/mark",
                    env={"BAWN_TEST_BREAK": name}), 0, "Seccomp:\t2")
        assert all(row["holds"] for row in p.record()["guarantees"].values() if row["need"] == "must")


@case
def a_project_in_which_nothing_is_held_is_noticed(p):
    done, has_run = run_broken(p, "protect", "--write")
    expect(done, 125, "does not hold", "cannot start the command")
    assert not has_run and not p.record()["guarantees"]["fs.protect"]["holds"]
    _, has_run = run_broken(p, "protect,look", "--write")
    assert has_run and not p.record()["guarantees"]["fs.protect"]["holds"]
    # And one of which a single path can be written.
    done, has_run = run_broken(p, "read-only", "--write")
    assert not has_run and not p.record()["guarantees"]["fs.protect"]["holds"], done


@case
def a_cage_without_a_user_namespace_is_not_started(p):
    check_step(p, "namespace:user", "cannot ")


@case
def a_cage_without_a_mount_namespace_is_not_started(p):
    check_step(p, "namespace:mount", "cannot make a file system of type tmpfs")


@case
def a_cage_without_a_pid_namespace_is_not_started(p):
    check_step(p, "namespace:pid", "proc")
    # Its preflight, which no kernel ends together with the first process, ends by itself.
    wait_until(lambda: not descendants(), 5, "the end of the preflight")


@case
def the_hosts_network_is_noticed(p):
    check_noticed(p, "namespace:net", "net.none", "the network namespace is the host's")


@case
def the_hosts_ipc_is_noticed(p):
    check_noticed(p, "namespace:ipc", "ipc", "the ipc namespace is the host's")


@case
def the_hosts_name_is_noticed(p):
    check_noticed(p, "namespace:uts", "uts", "the uts namespace is the host's")


@case
def the_hosts_cgroups_are_noticed(p):
    check_noticed(p, "namespace:cgroup", "cgroup", "the cgroup namespace is the host's")


@case
def the_hosts_root_left_in_the_cage_is_noticed(p):
    check_noticed(p, "detach", "fs.root", "/mnt", "not planned")


@case
def a_writable_system_is_noticed(p):
    check_noticed(p, "read-only", "fs.writes", "lacks ro")


@case
def a_writable_project_that_should_be_read_only_is_noticed(p):
    p.write("project/file", "")
    done, has_run = run_broken(p, "read-only", "--read-only")
    expect(done, 125, "does not hold")
    assert not has_run and p.record()["guarantees"]["fs.project"]["holds"] is False


@case
def live_devices_are_noticed(p):
    check_noticed(p, "no-dev", "fs.writes", "lacks nodev")


@case
def an_uncovered_proc_is_noticed(p):
    check_noticed(p, "proc", "proc", "is not covered")


@case
def capabilities_that_are_kept_are_noticed(p):
    check_noticed(p, "drop:capabilities", "ids", "capabilities are")


@case
def without_no_new_privileges_nothing_is_confined(p):
    check_step(p, "drop:new-privileges", "cannot enter the Landlock domain")


@case
def privileges_that_can_be_gained_are_noticed(p):
    # Without Landlock nothing else needs no_new_privs while capabilities are still there.
    done, has_run = run_broken(p, "drop:new-privileges,drop:capabilities,landlock")
    expect(done, 125, "'ids' does not hold")
    assert not has_run


@case
def a_missing_landlock_is_noticed(p):
    check_noticed(p, "landlock", "landlock", "did not enter its domain")


@case
def a_missing_filter_is_noticed(p):
    check_noticed(p, "syscalls", "syscalls", "seccomp mode 0")


@case
def variables_that_are_not_planned_are_noticed(p):
    check_noticed(p, "environment", "env", "is not planned")


@case
def descriptors_that_are_not_planned_are_noticed(p):
    check_noticed(p, "descriptors", "tty", "it holds ")


@case
def the_operators_session_is_noticed(p):
    check_noticed(p, "session", "tty", "it is in the operator's session")


@case
def a_project_that_is_not_captured_is_noticed(p):
    check_noticed(p, "project", "fs.project", "at /work there is")


@case
def a_terminal_in_the_cage_is_noticed(p):
    master, slave = pty.openpty()
    os.fchmod(slave, 0o666)
    try:
        done, has_run = run_broken(p, "tty", stdin=Stream(slave))
        expect(done, 125, "'tty' does not hold", "it holds /dev/pts/")
        assert not has_run
        done, has_run = run_broken(p, "tty,look", stdin=Stream(slave))
        assert has_run, done
        done, has_run = run_broken(p, "nothing", stdin=Stream(slave))
        assert has_run, done
    finally:
        os.close(master)
        os.close(slave)


class Stream:
    """A descriptor as subprocess takes one."""

    def __init__(self, fd):
        self.fd = fd

    def fileno(self):
        return self.fd


@case
@of_root
def a_cage_that_is_root_outside_is_noticed(p):
    done, has_run = run_broken(p, "ids")
    expect(done, 125, "'ids' does not hold", "outside it is user 0")
    assert not has_run


@case
@of_root
def groups_of_the_operator_are_dropped(p):
    done, has_run = run_broken(p, "nothing", groups=(4, 24))
    assert has_run, done
    assert p.record()["guarantees"]["groups"]["holds"] is True
    done = p.run("run", "-v", f"{TOOL}:/tool", "--", "/tool", "ids", groups=(4, 24))
    assert done.stdout == "1000 1000 0\n", done


@case
@of_root
def groups_that_are_kept_are_on_record(p):
    done, has_run = run_broken(p, "drop:groups", groups=(4, 24))
    assert has_run, done
    row = p.record()["guarantees"]["groups"]
    assert (row["need"], row["holds"], row["seen"]) == ("may", False, "3 supplementary groups"), row


@case
@of_users
def groups_of_a_user_who_cannot_drop_them_are_on_record(p):
    if os.geteuid() != 0:
        raise Skip("only root can give a user groups")
    done = p.run("run", "-v", f"{TOOL}:/tool", "--", "/tool", "ids", groups=(p.uid + 1, p.uid + 2))
    expect(done, 0, "1000 1000 2")
    row = p.record()["guarantees"]["groups"]
    assert (row["need"], row["holds"], row["seen"]) == ("may", False, "2 supplementary groups"), row


@case
def what_may_be_missing_is_on_record_and_runs(p):
    for name, guarantee in (("namespace:ipc", "ipc"), ("syscalls", "syscalls"), ("landlock", "landlock")):
        done, has_run = run_broken(p, name, "--allow-degraded", guarantee)
        assert has_run, done
        row = p.record()["guarantees"][guarantee]
        assert (row["need"], row["holds"]) == ("may", False), row
        assert p.record()["level"] == "custom"


@case
def a_cage_that_differs_is_ended_before_the_startup_commands(p):
    done, has_run = run_broken(p, "syscalls", *p.spec("startup_commands: ['touch /mark/ran', 'echo RAN']\n"))
    expect(done, 125, "'syscalls' does not hold")
    assert not has_run


@case
def every_difference_is_noticed_with_every_kind_of_cage(p):
    p.write("project/src/file", "")
    image = p.make("image")
    p.write(image / "tool", TOOL.read_bytes(), mode=0o755)
    kinds = (("--read-only",), ("--fakeroot",), ("--network", "host"), p.spec("project: {cage: project}\n"),)
    for options in kinds:
        for name in ("syscalls", "namespace:uts", "detach"):
            done, has_run = run_broken(p, name, *options)
            expect(done, 125, "does not hold")
            assert not has_run, (options, name)
    lists = p.spec("project: {read_allowlist: [$PROJECT/src/**], write_allowlist: [$PROJECT/src/**]}\n")
    expect(run_broken(p, "project", *lists)[0], 125, "'fs.project' does not hold")
    done = p.run("run", *p.spec(f"root: {{image: 'dir:{image}'}}\n"), "--", "/tool", "ids", program=BREAKABLE,
                 env={"BAWN_TEST_BREAK": "syscalls"})
    expect(done, 125, "'syscalls' does not hold")


# --- the second wall, where the first is missing ---

def landlock_abi():
    """As landlock_create_ruleset answers; 0 or less: the kernel has none."""
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@case
def landlock_alone_refuses_to_cut_a_file_that_is_only_to_be_read(p):
    if landlock_abi() < 3:
        raise Skip("Landlock of this kernel knows no truncate(2)")
    file = p.write("data/file", "text\n", mode=0o666)
    # By its name: to open it for writing is another right, which refuses first.
    script = "python3 -c 'import os; os.truncate(\"/data/file\", 0)' 2>&1 | tail -n 1"
    for broken, said, left in (("read-only,look", "PermissionError: [Errno 13]", "text\n"),
                               ("landlock,look", "OSError: [Errno 30]", "text\n"),
                               ("read-only,landlock,look", "", "")):
        done, _ = run_broken(p, broken, "-v", f"{file.parent}:/data", script=script)
        expect(done, 0)
        assert done.stdout.startswith(said) and bool(done.stdout) == bool(said), (broken, done)
        assert file.read_text(encoding="utf-8") == left, broken


# --- changes of the host meanwhile, and odd hosts ---

@case
def mounts_below_a_source_come_along_or_are_refused_by_name(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    p.make("folder/below")
    p.write("other/file", "text\n")
    prepare = f"mount --bind {p.home}/other {p.home}/folder/below"
    script = "cat /data/below/file; echo x >/data/below/new && echo written"
    done = in_mount_namespace(p, prepare, "run", "-v", f"{p.home}/folder:/data", "--", "sh", "-c", script)
    expect(done, 125, f"'{p.home}/folder/below' is mounted below it")
    assert done.stdout == "" and not (p.home / "other/new").exists(), done
    done = in_mount_namespace(p, prepare, "run", "-v", f"{p.home}/folder:/data:rw", "--", "sh", "-c", script)
    assert done.stdout == "text\nwritten\n", done
    assert (p.home / "other/new").stat().st_uid == p.uid


@case
def a_project_that_is_a_mount_is_one_like_others(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    prepare = f"mount --bind {p.project} {p.project}\ncd {p.project}"
    expect(in_mount_namespace(p, prepare, "run", "--", "sh", "-c", "echo x >new; cat new"), 0, "x")
    assert not (p.project / "new").exists()


@case
def what_is_mounted_below_a_project_is_never_missing_in_silence(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    p.make("project/below")
    p.write("other/file", "text\n")
    prepare = f"mount --bind {p.home}/other {p.project}/below\ncd {p.project}"
    for option in ((), ("--read-only",)):
        expect(in_mount_namespace(p, prepare, "run", *option, "--", "echo", "ran"), 125,
               "project/below' is mounted below it")


@case
def a_mount_of_the_host_with_an_empty_source_is_understood(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    p.make("folder")
    expect(in_mount_namespace(p, f"mount -t tmpfs '' {p.home}/folder", "run", "--", "echo", "ran"), 0, "ran")


@case
def strange_names_of_the_host_are_understood(p):
    for name in ("with space", "tab\tand\nnewline", "back\\slash", "comma,colon=equals", "é", "\\040", "#", "$x"):
        folder = p.make(f"{name}/project")
        p.write(folder / "file", "text\n")
        expect(p.run("run", "--", "cat", "file", cwd=folder), 0, "text\n")
        expect(p.run("run", "--read-only", "--", "cat", "file", cwd=folder), 0, "text\n")
        if name.isprintable():  # what a spec can say
            expect(p.run("run", "-v", f"{folder}:/data", "--", "cat", "/data/file"), 0, "text\n")


@case
def shared_mounts_of_the_host_learn_nothing(p):
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    script = ("mount --make-rshared /\nbefore=$(grep -c . /proc/self/mountinfo)\n\"$@\"\n"
              "test $before = $(grep -c . /proc/self/mountinfo)\nset -- true")
    expect(in_mount_namespace(p, script, "run", "--", "echo", "ran"), 0, "ran")


if __name__ == "__main__":
    main()
