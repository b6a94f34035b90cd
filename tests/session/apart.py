#!/usr/bin/env python3
"""Two sessions of one operator try to get at each other (C-01), as a user and (all with --all) as root.

    apart.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP

In pairs: what fails between two sessions is shown to get through where the wall is taken out of both, by the
test build or by the operator's own word, and from outside of any cage.
"""

import contextlib
import ctypes
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys

sys.dont_write_bytecode = True
import sessions  # noqa: E402
from sessions import Session, cage, case, expect, for_root  # noqa: E402

PYTHON = "/usr/bin/python3"
NEIGHBOUR = cage.FILES / "neighbour.py"
KEYCTL, JOIN_SESSION_KEYRING = 250 if os.uname().machine == "x86_64" else 219, 1

# What is enough to get through when it is left out, of both cages.
WALLS = (
    (("namespace:ipc", "landlock"), {"memory", "semaphore", "message", "queue"}),
    (("namespace:net",), {"loopback"}),
    (("namespace:net", "landlock"), {"loopback", "abstract"}),
    (("namespace:pid", "proc"), {"sight"}),
    (("namespace:pid", "proc", "landlock"), {"sight", "signal"}),
    (("syscalls", "drop:keyring"), {"key"}),
)
# And from outside, as the operator. A user namespace of its own is what no cage can be made without, and alone
# keeps the neighbour from being traced, and its root from being entered.
OUTSIDE = {"sight", "signal", "trace", "roots", "door", "paths", "groups"}
ROWS = set().union(OUTSIDE, *(rows for _, rows in WALLS))


def spare_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def two(place, *options):
    if not NEIGHBOUR.exists():
        shutil.copy(pathlib.Path(__file__).with_name("neighbour.py"), NEIGHBOUR)
    return tuple(Session(place, "-v", f"{NEIGHBOUR}:/neighbour.py", *options) for _ in range(2))


def words(*args):
    return [PYTHON, "-B", "/neighbour.py", *map(str, args)]


@contextlib.contextmanager
def going_on(session, *args, **more):
    """A neighbour in a session, from its first line until it is not needed any more."""
    process = session.place.start("session", "exec", session.id, "--", *words(*args), **more)
    try:
        line = process.stdout.readline().decode()
        if not line:
            raise AssertionError(process.stderr.read().decode())
        yield line.strip(), process
    finally:
        if not process.stdin.closed:
            process.stdin.close()
        process.wait(20 * cage.SLOW)
        process.stdout.close()
        process.stderr.close()


def says(session, *args, **more):
    return expect(session.exec(*words(*args), **more), 0).stdout.strip()


def pid_of(end):
    """On the host."""
    for pid in cage.descendants():
        with contextlib.suppress(OSError):
            text = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
            if text.startswith(PYTHON.encode()) and f"\0be\0{end}".encode() in text:
                return pid
    raise AssertionError("the neighbour is nowhere")


def meet(place, *options, left_out=(), outside=False):
    """One makes what it can, the other tries to reach it: what was made, and what came of each attempt."""
    end, port = secrets.token_hex(4), spare_port()
    env = {"BAWN_TEST_BREAK": ",".join((*left_out, "look"))} if left_out else {}
    more = {"env": env, "program": cage.BREAKABLE if left_out else cage.BAWN}
    a, b = two(place, *options)
    with going_on(a, "be", end, port, **more) as (made, _):
        paths = [a.layer / "secret", a.workspace / "home/secret", a.workspace / "tmp/secret", a.workspace / "door"]
        attack = ["try", end, port, pid_of(end), *paths]
        if outside:
            command = place.words([NEIGHBOUR, *attack], program=PYTHON)
            done = subprocess.run(command, env=place.environ(None), capture_output=True, check=True, timeout=20)
            said = done.stdout.decode()
        else:
            said = says(b, *attack, **more)
    return json.loads(made), json.loads(said)


def worked(said):
    return {name for name, what in said.items() if what == "worked"}


# --- C-01 ---

@for_root
@case
def two_sessions_do_not_reach_each_other(place):
    made, said = meet(place)
    assert not worked(said), said
    assert set(said) >= ROWS and not any(what.startswith("got ") for what in said.values()), said
    kept = {name for name, what in made.items() if what == "made"}
    assert kept >= {"abstract", "loopback", "memory", "semaphore", "message", "shared_file", "files"}, made


@for_root
@case
def they_would_reach_each_other_without_the_walls(place):
    # One keyring for both, as of one login.
    ctypes.CDLL(None).syscall(KEYCTL, JOIN_SESSION_KEYRING, None)
    for left_out, rows in WALLS:
        _, said = meet(place, left_out=left_out)
        assert worked(said) >= rows, (left_out, rows - worked(said), said)


@case
def what_is_outside_of_cages_reaches_them(place):
    """So what failed between them did not fail for want of rights, or for a wrong path."""
    _, said = meet(place, outside=True)
    assert worked(said) >= OUTSIDE, said


@case
def one_session_reaches_itself_only_by_its_files(place):
    """Two commands of one session are as far apart, but for what they share."""
    a, _ = two(place)
    end, port = secrets.token_hex(4), spare_port()
    with going_on(a, "be", end, port):
        said = json.loads(says(a, "try", end, port, pid_of(end), "/work/secret", "/tmp/secret"))
    assert worked(said) == {"paths", "roots"}, said
    assert a.says("cat ~/secret").endswith(end)


@case
def the_hosts_network_is_shared_by_who_declares_it(place):
    _, said = meet(place, "--network", "host")
    assert worked(said) == {"loopback"}, said


# --- what a bind shares ---

def shared(place):
    folder = place.make("shared")
    place.write("shared/file", "file")
    single = place.write("single", "single")
    return folder, single


@case
def locks_are_shared_with_what_is_bound_and_no_more(place):
    """An advisory lock is a file's. A folder that is shown read-only is shown through a layer of the cage's own;
    a single file, a folder for writing, and the system's own files are the host's."""
    folder, single = shared(place)
    for mode, wanted in ((":ro", "free"), (":rw", "locked")):
        a, b = two(place, "-v", f"{folder}:/shared{mode}", "-v", f"{single}:/single")
        paths = ("/shared/file", "/single", "/usr/bin/env")
        with going_on(a, "lock", *paths):
            assert says(b, "find-locks", *paths).split() == [wanted, "locked", "locked"], mode
        a.says("echo x >work")
        b.says("echo x >work")
        with going_on(a, "lock", "/work/work"):
            assert says(b, "find-locks", "/work/work") == "free"
            assert says(a, "find-locks", "/work/work") == "locked", "of one session they are one file"


@case
def what_is_opened_is_seen_through_binds_and_no_more(place):
    folder, single = shared(place)
    paths = ("/shared/file", "/single", "/usr/bin/env")
    for mode, wanted in ((":ro", "unseen"), (":rw", "seen")):
        a, b = two(place, "-v", f"{folder}:/shared{mode}", "-v", f"{single}:/single")
        with going_on(a, "watch", *paths) as (_, process):
            b.says("cat " + " ".join(paths) + " >/dev/null")
            process.stdin.close()
            seen = process.stdout.readline().decode().split()
            assert seen == [wanted, "seen", "seen"], (mode, seen)


@case
def one_project_is_shared_where_it_is_writable(place):
    place.write("project/file", "theirs")
    for option, wanted in ((), "theirs"), (("--write",), "mine"):
        a, b = two(place, *option)
        a.says("echo mine >file; rm -f none")
        assert b.says("cat file") == wanted, option
    a, b = two(place)
    a.says("echo applied >file")
    b.says("true")
    expect(a.all.run("apply", a.id), 0)
    assert b.says("cat file") == "applied"


# --- what one may use up ---

@for_root
@case
def what_one_session_uses_up_another_still_has(place):
    for what in ("processes", "instances"):
        a, b = two(place, "--pids-limit", "60")
        with going_on(a, "exhaust", what) as (count, _):
            assert 0 < int(count) < 5000, count
            assert says(b, "use", what) == "fine", what


# --- planted things ---

@for_root
@case
def what_one_session_plants_leads_bawn_to_no_other(place):
    a, b = two(place)
    text = secrets.token_hex(8)
    b.says(f"echo {text} >secret; echo {text} >~/secret; mkdir ~/d; echo {text} >~/d/f")
    home, layer = b.workspace / "home", b.layer
    a.says(f"ln -s {home}/secret file; ln -s {home} folder; ln -s {b.workspace} door; ln -s {layer} project; "
           f"ln -s {home} ~/folder; ln -s {home} /tmp/folder; ln -s {b.workspace}/lock ~/lock; "
           f"ln -s {b.workspace} ~/.config; mkdir d; ln -s {home}/d d/deep; echo mine >d/own")
    # Nothing that bawn itself keeps beside is a name in the cage.
    seen = a.says("ls -A / ~ /tmp /home /work/.. 2>/dev/null")
    assert not {"turn", "mounted", "layer"} & set(seen.split()), seen
    before = cage.picture(b.workspace)
    diff = expect(a.all.run("diff", a.id), 0).stdout
    assert text not in diff and str(home) in diff, diff
    done = a.all.run("apply", a.id)
    assert text not in done.stdout + done.stderr, done
    a.says("rm -rf file folder/* ~/folder/* d/deep/* /tmp/folder/* 2>/dev/null; true")
    a.all.run("discard", a.id)
    expect(a.all.run("rm", a.id), 0)
    assert cage.picture(b.workspace) == before, "of the other session something changed"
    assert not a.workspace.exists()
    assert b.says("cat secret ~/secret ~/d/f").split() == [text] * 3


@case
def hard_links_stay_within_a_session(place):
    """What is linked is of one file system and one mount: nothing of another session is ever in it."""
    folder, single = shared(place)
    a, _ = two(place, "-v", f"{folder}:/shared:rw", "-v", f"{single}:/single")
    said = a.says("echo x >~/x; echo y >y; ln ~/x ~/also && echo home; ln y also && echo project; "
                  "for f in /single /shared/file ~/x /usr/bin/env; do ln $f /tmp/l && echo through; ln $f /work/l && "
                  "echo through; done 2>/dev/null; true")
    assert said.split() == ["home", "project"], said


@case
def a_session_is_not_told_of_others(place):
    a, b = two(place)
    seen = b.says("cat /proc/self/mountinfo /proc/self/environ /proc/self/cgroup; env; ls -laR ~ /tmp /work /run "
                  "2>/dev/null; true")
    assert b.id in seen and a.id not in seen
    # Nor may the spec show it, whoever writes that.
    for path in (a.workspace, a.all.root, a.all.state, place.state):
        done = a.all.run("create", "-v", f"{path}:/opt/x:rw")
        if done.returncode == 0:
            done = place.run("session", "exec", done.stdout.strip(), "--", "ls", "/opt/x")
        assert done.returncode == 125 and len(done.stderr.splitlines()) >= 1, (path, done)


if __name__ == "__main__":
    sessions.main()
