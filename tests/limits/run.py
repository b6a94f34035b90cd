#!/usr/bin/env python3
"""Limits of real cages: that they hold, that they are seen and told, and that every run ends with all its processes.

    run.py BAWN BREAKABLE [WORD…]        prints TAP; with words, only cases whose name matches them all

Each case runs as root, as a user who was given a cgroup, and as a stranger, who was not, as far as it means
something for them. Each has a place of its own in the trees of cgroups, and so cases run side by side: most
of the time they wait. The trees may be of version 1 or 2.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage")]
import place as cages  # noqa: E402
import machine  # noqa: E402
import records  # noqa: E402
from groups import Group, NoGroups, read_trees  # noqa: E402
from place import BREAKABLE, FILES, USER, Skip, expect, expect_refusal, output, wait_until  # noqa: E402

TOOL = FILES / "limits-tool"
WORKERS = 6
GRACE = 5  # between SIGTERM and SIGKILL
START = 0.1  # seconds that a cage takes to start here, when nothing else runs
SLOW = 3  # how many times slower the machine may be than one that starts a cage in 0.1 s; other suites run too
CASES = []


def case(*kinds, first=False):
    """For whom; `first` are those that wait longest."""
    def add(function):
        function.kinds = kinds or ("root", "user")
        CASES.insert(0, function) if first else CASES.append(function)
        return function
    return add


EVERYBODY = ("root", "user", "stranger")


class Person(cages.Place):
    """Somebody with a home, a project, a state, and a place in the trees of cgroups unless a stranger."""

    def __init__(self, kind):
        super().__init__(os.geteuid() or (0 if kind == "root" else USER))
        self.kind = kind
        self.started = []
        self.group = None
        if kind != "stranger":
            self.group = Group(self.uid)

    def words(self, args, program=cages.BAWN, groups=()):
        words = super().words(args, program, groups)
        return [*self.group.enter(), *words] if self.group else words

    def start(self, *args, **more):
        self.started.append(super().start(*args, **more))
        return self.started[-1]

    def tool(self, *args, options=(), **more):
        """tool.c in a cage, bound at /tool."""
        return self.run(*self.tool_words(*args, options=options), **more)

    def tool_words(self, *args, options=()):
        return ["run", "-v", f"{TOOL}:/tool", *options, "--", "/tool", *args]

    def records(self):
        """Of all runs that came so far as to have one."""
        return [records.read(path) for path in sorted(self.state.glob(f"bawn/runs/*/{records.FILE}"))]

    def check(self):
        """Nothing of a run is left in the place."""
        if self.group:
            assert not self.group.runs(), f"cgroups are left: {self.group.runs()}"
            assert not self.group.processes(), f"processes are left: {self.group.processes()}"

    def done(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        if self.group:
            self.group.remove()
        super().done()


def seen(p, name):
    return p.record()["guarantees"][name]


def expect_seen(p, name, declared, vantage="outside"):
    got = seen(p, name)
    assert (got["holds"], got["vantage"], got["need"], got["declared"]) == (True, vantage, "must", declared), got


def events_of(p):
    return {event["limit"]: event for event in p.record()["events"]}


def run_with_events(p, *args, **more):
    """The run, and what it told on --status-fd."""
    read, write = os.pipe()
    try:
        done = p.run(*args[:1], "--status-fd", write, *args[1:], pass_fds=[write], **more)
    finally:
        os.close(write)
    with open(read, encoding="utf-8") as events:
        return done, [json.loads(line) for line in events]


def expect_told(p, status, limit, *words, times=None, stdout=None):
    """The run reaches this limit and no other: by its status, in a sentence, on record and as an event."""
    done, told = run_with_events(p, *words)
    expect(done, status)
    lines = [line for line in done.stderr.splitlines() if f"({limit}: " in line]
    assert len(lines) == 1 and lines[0].startswith("bawn: "), f"not told in one sentence:\n{done.stderr}"
    told = [event for event in told if event["event"] == "limit"]
    assert [event["limit"] for event in told] == [limit], told
    assert told[0]["run"] == p.record()["run"]
    assert list(events_of(p)) == [limit], p.record()["events"]
    event = events_of(p)[limit]
    assert event["type"] == "limit_hit" and event["text"] in lines[0] and event["times"] == told[0]["times"] > 0, event
    assert times is None or event["times"] == times, event
    assert stdout is None or done.stdout == stdout, f"printed {done.stdout!r}, not {stdout!r}"
    return done


def expect_quiet(p, status, *words, stdout=None, **more):
    """The run reaches no limit."""
    done, told = run_with_events(p, *words, **more)
    expect(done, status)
    assert [event["event"] for event in told] == ["started", "exited"], told
    assert p.record()["events"] == [], p.record()["events"]
    assert "limits." not in done.stderr, done.stderr
    assert stdout is None or done.stdout == stdout, f"printed {done.stdout!r}, not {stdout!r}"
    return done


def soon(ms=300):
    """A time limit in which a command has begun."""
    return f"{ms * SLOW}ms"


def before_kill():
    """Seconds in which a run has ended that did so when it was asked to, soon()."""
    return 0.3 * SLOW + GRACE


def took(function, *args, **more):
    began = time.monotonic()
    function(*args, **more)
    return time.monotonic() - began


# --- memory ---

@case()
def who_stays_below_the_memory_limit_is_not_killed(p):
    expect_quiet(p, 0, *p.tool_words("allocate", "40", options=("-m", "64M")), stdout="40 all\n")
    expect_seen(p, "limits.memory", "64M")


@case()
def who_wants_more_memory_is_killed(p):
    expect_told(p, 137, "limits.memory", *p.tool_words("allocate", "150", options=("-m", "64M")), times=1, stdout="")
    expect_seen(p, "limits.memory", "64M")
    # The same with more, and without the protection: it was the limit.
    expect_quiet(p, 0, *p.tool_words("allocate", "150", options=("-m", "256M")))
    output(p.tool("allocate", "150", options=("-m", "64M"), program=BREAKABLE,
                  env={"BAWN_TEST_BREAK": "limits,look"}), "150 all\n")


@case()
def memory_is_counted_of_all_processes_together(p):
    expect_quiet(p, 0, *p.tool_words("allocate-together", "3", "10", options=("-m", "64M")), stdout="0 killed\n")
    done, _ = run_with_events(p, *p.tool_words("allocate-together", "3", "40", options=("-m", "64M")))
    assert done.returncode in (1, 2, 3) and done.stdout == f"{done.returncode} killed\n", done
    assert events_of(p)["limits.memory"]["times"] == done.returncode


@case()
def files_of_the_cage_count_as_memory(p):
    options = ("-m", "64M", "--disk", "1G")
    # Before Linux 6.6 a captured project cannot be kept in memory: it is on disk.
    in_memory = ("/work/x",) if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 6) else ()
    for path in ("/tmp/x", "/dev/shm/x", *in_memory):
        expect_told(p, 137, "limits.memory", *p.tool_words("fill", path, str(150 * 1024), options=options))
        expect_quiet(p, 0, *p.tool_words("fill", path, str(30 * 1024), options=options))


@case()
def a_limit_too_small_for_any_cage_is_named(p):
    for option, least, name in (("-m", "4K", "limits.memory"), ("--pids-limit", "1", "limits.pids")):
        done = p.sh("echo ran", option, least)
        expect(done, 125, name)
        assert done.stdout == "", done


# --- processors ---

def used(p, *options, **more):
    """Processor time in ms of two processes that are busy for three seconds."""
    return int(expect(p.tool("busy", "2", "3000", options=options, **more), 0).stdout)


@case()
def processors_are_no_more_than_declared(p):
    # So little that there is more to be had on a busy machine too. Who is emulated overshoots, and starts slowly.
    few, most = ("0.02", 150) if SLOW < 4 else ("0.2", 1000)
    ms = used(p, "--cpus", few)
    expect_seen(p, "limits.cpu", few)
    assert p.record()["events"] == []
    assert 10 < ms < most, f"{ms} ms of {3000 * float(few):.0f}"
    assert any(used(p, "--cpus", "1.5") > most for _ in range(3))
    broken = {"program": BREAKABLE, "env": {"BAWN_TEST_BREAK": "limits,look"}}
    assert any(used(p, "--cpus", few, **broken) > most for _ in range(3))


# --- processes ---

@case(*EVERYBODY)
def there_are_exactly_as_many_processes_as_declared(p):
    # The init and the command count, and nobody else does.
    for kind in ("processes",) if p.kind == "stranger" else ("processes", "threads"):
        expect_told(p, 0, "limits.pids", *p.tool_words(kind, "50", options=("--pids-limit", "10")),
                    stdout="8 EAGAIN\n")
        expect_seen(p, "limits.pids", "10")
        # A user namespace does not count what it refused: who leaves as many as there may be is taken for refused.
        rest = "7" if p.kind == "stranger" else "8"
        expect_quiet(p, 0, *p.tool_words(kind, rest, options=("--pids-limit", "10")), stdout=f"{rest} all\n")


@case("stranger")
def threads_are_limited_without_a_cgroup_too(p):
    output(p.tool("threads", "50", options=("--pids-limit", "10")), "8 EAGAIN\n")


@case()
def processes_are_limited_by_the_cgroup(p):
    output(p.tool("processes", "50", options=("--pids-limit", "10"), program=BREAKABLE,
                  env={"BAWN_TEST_BREAK": "limits,look"}), "50 all\n")


@case()
def refused_forks_are_told_also_when_nobody_is_left(p):
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.2 & done; wait; exit 3"
    # dash ends with 2 when it cannot fork.
    expect_told(p, 2, "limits.pids", "run", "--pids-limit", "10", "--", "sh", "-c", f"({script}); wait; exit 2")


# --- runs beside each other ---

def cage_processes(p):
    """By folder of a run, what is in it."""
    return {folder: {int(pid) for pid in (folder / "cgroup.procs").read_text(encoding="ascii").split()}
            for folder in p.group.runs()}


@case()
def a_limit_touches_neither_another_run_nor_the_keeper(p):
    state = p.make(p.state / "other")
    other = p.start(*p.tool_words("allocate-together", "1", "120", options=("-m", "256M", "--cpus", "1.5")),
                    env={"XDG_STATE_HOME": str(state)})
    wait_until(p.group.runs, 10, "the other run's cgroup")
    expect_told(p, 137, "limits.memory", *p.tool_words(
        "allocate", "150", options=("-m", "64M", "--pids-limit", "10")), times=1)
    out, err = other.communicate(timeout=20)
    assert (other.returncode, out, err) == (0, b"0 killed\n", b""), (other.returncode, out, err)
    assert records.read(next(state.glob(f"bawn/runs/*/{records.FILE}")))["events"] == []


@case()
def the_cage_is_in_its_cgroups_and_the_keeper_is_not(p):
    keeper = p.start("run", "-m", "64M", "--cpus", "1", "--pids-limit", "20", "--", "sh", "-c", "echo up; read x; :")
    assert keeper.stdout.readline() == b"up\n"
    folders = cage_processes(p)
    try:
        assert {folder.parent for folder in folders} == set(p.group.parents.values()), folders
        assert len({folder.name for folder in folders}) == 1 and len(set(map(frozenset, folders.values()))) == 1
        inside = next(iter(folders.values()))
        assert len(inside) == 2 and keeper.pid not in inside, (inside, keeper.pid)
        for folder in folders:  # nobody else can take the lock, or look
            assert folder.stat().st_mode & 0o777 == 0o700 and folder.stat().st_uid == p.uid
        own = pathlib.Path(f"/proc/{keeper.pid}/cgroup").read_text(encoding="utf-8")
        assert not any(folder.name in own for folder in folders), own
    finally:
        keeper.communicate(b"\n", timeout=20)
    assert keeper.returncode == 0


@case(*EVERYBODY)
def many_runs_at_once_do_not_disturb_each_other(p):
    options = ("--pids-limit", "10") + (() if p.kind == "stranger" else ("-m", "32M", "--cpus", "1.5"))
    runs = [p.start("run", *options, "--", "sh", "-c", "sleep 0.1; echo done") for _ in range(8)]
    for run in runs:
        out, err = run.communicate(timeout=20)
        assert (run.returncode, out, err) == (0, b"done\n", b""), (run.returncode, out, err)
    assert all(record["events"] == [] and record["guarantees"]["limits.pids"]["holds"] for record in p.records())


# --- disk ---

def expect_watched(p, script):
    """Before Linux 6.6 what is written to the project is on disk: the keeper looks, and ends who took more."""
    expect_told(p, 125, "limits.disk", "run", "-v", f"{TOOL}:/tool", "--disk", "4M", "--", "sh", "-c",
                f"{script}; sleep 30")


@case(*EVERYBODY)
def the_disk_is_one_for_the_whole_cage(p):
    options = ("--disk", "4M")
    places = ["/tmp/x", "/work/x", "/home/agent/x", "/dev/shm/x", "/var/tmp/x"]
    if not cages.tmpfs_has_attributes():
        places.remove("/work/x")
        expect_watched(p, "/tool fill /work/x 6144")
    for path in places:
        done = expect_told(p, 1, "limits.disk", *p.tool_words("fill", path, str(6 * 1024), options=options))
        assert 3 * 1024 < int(done.stdout.split()[0]) <= 4 * 1024 and "ENOSPC" in done.stdout, done.stdout
        expect_seen(p, "limits.disk", "4M")
    expect_quiet(p, 0, *p.tool_words("fill", "/work/x", str(3 * 1024), options=options))
    script = "/tool fill /tmp/x 2000; /tool fill /work/x 1500; /tool fill /home/agent/x 2000"
    if cages.tmpfs_has_attributes():
        expect_told(p, 1, "limits.disk", "run", "-v", f"{TOOL}:/tool", *options, "--", "sh", "-c", script)
    else:
        expect_watched(p, script)


@case(*EVERYBODY)
def what_a_project_has_is_not_the_cages_disk(p):
    p.write("project/large", b"x" * (3 << 20))
    expect_quiet(p, 0, *p.tool_words("fill", "/work/x", str(3 * 1024), options=("--disk", "4M")))
    # What is changed in it is copied, and counts.
    script = "/tool fill /work/x 2048 && echo >>/work/large"
    if cages.tmpfs_has_attributes():
        done = p.run("run", "-v", f"{TOOL}:/tool", "--disk", "4M", "--", "sh", "-c", script)
        assert done.returncode != 0 and "No space left" in done.stderr, done
    else:
        expect_watched(p, script)
    assert p.project.joinpath("large").stat().st_size == 3 << 20


@case(*EVERYBODY)
def what_a_run_adds_to_its_state_counts(p):
    """And not what others kept before it, of which it may take as much again."""
    spec = p.spec("state: [/home/agent/.s]\n")
    fill = "head -c 12M /dev/zero > ~/.s/$(ls ~/.s | wc -l)"
    for _ in range(3):
        expect(p.run("run", *spec, "--disk", "16M", "--", "sh", "-c", fill), 0)
    expect_told(p, 125, "limits.disk", "run", *spec, "--disk", "16M", "--", "sh", "-c",
                "head -c 40M /dev/zero > ~/.s/more; sleep 10")
    # Both together.
    expect_told(p, 125, "limits.disk", "run", *spec, "--disk", "16M", "--", "sh", "-c",
                "head -c 10M /dev/zero > ~/x; head -c 10M /dev/zero > ~/.s/x; sleep 10")
    expect(p.run("run", *spec, "--disk", "16M", "--", "true"), 0)


@case(*EVERYBODY)
def there_is_an_end_of_files_that_take_no_space(p):
    options = ("--disk", "1M")
    expect(p.tool("files", "/tmp", "300", options=options), 0, "300 all")
    expect_told(p, 1, "limits.disk", *p.tool_words("files", "/tmp", "20000", options=options))


# --- time ---

@case(*EVERYBODY)
def a_command_is_asked_to_end_when_its_time_is_over(p):
    spent = took(expect_told, p, 124, "limits.time", "run", "--time", soon(), "--", "sh", "-c",
                 "trap 'echo asked; exit 0' TERM; sleep 30 & wait", stdout="asked\n", times=1)
    assert spent < before_kill(), spent
    assert p.record()["outcome"] == "timed_out" and seen(p, "limits.time")["vantage"] == "keeper"
    expect_quiet(p, 3, "run", "--time", "20s", "--", "sh", "-c", "exit 3")


@case(*EVERYBODY, first=True)
def who_does_not_end_when_asked_is_killed(p):
    # It counts the seconds between the request and its end.
    script = "trap 'echo asked' TERM; while :; do sleep 0.1; done"
    spent = took(expect_told, p, 124, "limits.time", "run", "--time", soon(), "--", "sh", "-c", script,
                 stdout="asked\n")
    assert GRACE < spent < GRACE + 10 + SLOW, spent


@case(*EVERYBODY)
def a_stopped_command_is_ended_too(p):
    for script in ("kill -STOP $$; sleep 30", "sleep 30 & kill -STOP $!; kill -STOP $$",
                   "trap 'exit 0' TERM; kill -STOP $$; while :; do sleep 0.1; done"):
        spent = took(expect_told, p, 124, "limits.time", "run", "--time", soon(), "--", "sh", "-c", script)
        assert spent < before_kill(), (script, spent)


@case("root", "stranger", first=True)
def a_command_that_stops_itself_for_ever_is_killed(p):
    script = "trap '' TERM; (while :; do kill -STOP $$; done) & while :; do sleep 0.1; done"
    spent = took(expect_told, p, 124, "limits.time", "run", "--time", soon(), "--", "sh", "-c", script)
    assert GRACE < spent < GRACE + 10 + SLOW, spent


# --- output ---

def spec_of(p, text):
    return p.spec(f"limits: {{{text}}}\n")


@case(*EVERYBODY)
def exactly_as_much_is_printed_as_declared(p):
    done = expect_told(p, 128 + signal.SIGPIPE, "limits.output", "run", "--output", "1K", "--", "yes")
    assert done.stdout == "y\n" * 512, len(done.stdout)
    assert seen(p, "limits.output")["vantage"] == "keeper" and seen(p, "limits.output")["holds"]
    expect_quiet(p, 0, "run", "--output", "1K", "--", "head", "-c", "1024", "/dev/zero", stdout="\0" * 1024)
    expect_told(p, 0, "limits.output", "run", "--output", "1K", "--", "head", "-c", "1025", "/dev/zero",
                stdout="\0" * 1024)


@case(*EVERYBODY)
def output_and_error_count_together(p):
    script = "head -c 600 /dev/zero; head -c 600 /dev/zero >&2; sleep 0.1; echo more"
    done = p.sh(script, "--output", "1K")
    arrived = len(done.stdout) + done.stderr.count("\0")
    assert arrived == 1024 and "(limits.output: 1K)" in done.stderr, (arrived, done.stderr[-200:])


@case(*EVERYBODY)
def who_prints_too_much_may_be_ended(p):
    end = spec_of(p, "output: 1K, output_then: end")
    for script in ("trap '' PIPE; yes 2>&-; sleep 30", "yes", "head -c 1025 /dev/zero"):
        done = expect_told(p, 125, "limits.output", "run", *end, "--", "sh", "-c", script)
        assert len(done.stdout) == 1024 and p.record()["outcome"] == "cut_off", p.record()["outcome"]
    # Whoever prints too much in the last moment as well, and every time.
    for _ in range(6):
        expect(p.run("run", *end, "--", "head", "-c", "1025", "/dev/zero"), 125)
    expect_quiet(p, 0, "run", *end, "--", "head", "-c", "1024", "/dev/zero")


@case("root", "stranger", first=True)
def who_prints_too_much_and_ignores_the_request_is_killed(p):
    script = "trap '' PIPE TERM; yes 2>&-; while :; do sleep 0.1; done"
    spent = took(expect_told, p, 125, "limits.output", "run", *spec_of(p, "output: 1K, output_then: end"), "--", "sh",
                 "-c", script)
    assert GRACE < spent < GRACE + 10 + SLOW, spent


@case(*EVERYBODY)
def a_reader_that_does_not_read_holds_nothing_up(p):
    keeper = p.start("run", "--output", "64M", "--time", soon(), "--", "yes")
    time.sleep(0.6 + 0.6 * SLOW)  # the pipe is full, and time is over all the same
    out, err = keeper.communicate(timeout=20)
    assert keeper.returncode == 124 and b"limits.time" in err and b"limits.output" not in err, (len(out), err)


# --- descriptors ---

@case(*EVERYBODY)
def a_process_has_no_more_files_open_than_declared(p):
    expect_quiet(p, 0, *p.tool_words("descriptors", options=spec_of(p, "files: 40")), stdout="37 EMFILE\n")
    expect_seen(p, "limits.files", "40")
    output(p.sh("ulimit -n 41 2>/dev/null || ulimit -Hn", *spec_of(p, "files: 40")), "40\n")


@case(*EVERYBODY)
def files_that_bawn_or_the_operator_has_open_do_not_count(p):
    expect_quiet(p, 0, *p.tool_words("descriptors", options=spec_of(p, "files: 10")), stdout="7 EMFILE\n")
    with open("/dev/null", "rb") as null:
        fds = [os.dup(null.fileno()) for _ in range(60)]
    try:
        output(p.tool("descriptors", options=spec_of(p, "files: 40"), pass_fds=fds), "37 EMFILE\n")
    finally:
        for fd in fds:
            os.close(fd)


# --- several at once, and none ---

@case(*EVERYBODY)
def a_run_that_reaches_no_limit_has_no_events(p):
    expect_quiet(p, 0, "run", "--", "true")
    expect_quiet(p, 7, "run", "--time", "30s", "--output", "1M", "--disk", "16M", "--pids-limit", "50", "--", "sh",
                 "-c", "echo a >/tmp/a; sleep 0 & wait; exit 7")


@case()
def every_limit_that_was_reached_is_told(p):
    script = "(/tool allocate 200); /tool fill /tmp/x 8000; yes | head -c 5000; /tool processes 50; exec sleep 30"
    done, told = run_with_events(p, "run", "-v", f"{TOOL}:/tool", "-m", "64M", "--disk", "4M", "--pids-limit", "12",
                                 "--output", "4K", "--time", soon(1200), "--", "sh", "-c", f"trap '' PIPE; {script}")
    expect(done, 124)
    limits = ["limits.memory", "limits.pids", "limits.disk", "limits.time", "limits.output"]
    assert sorted(events_of(p)) == sorted(limits), events_of(p)
    assert sorted(event["limit"] for event in told if event["event"] == "limit") == sorted(limits)
    assert told[-1]["event"] == "exited" and all(f"({name}: " in done.stderr for name in limits), done.stderr


# --- what cannot be enforced ---

@case("stranger")
def a_declared_limit_that_cannot_hold_is_refused(p):
    for option, value, name, thing in (("--memory", "64M", "limits.memory", "memory by cgroup"),
                                       ("--cpus", "1", "limits.cpu", "processor time by cgroup")):
        done, told = run_with_events(p, "run", option, value, "--", "sh", "-c", "echo ran; touch ran")
        expect(done, 125, f"\n  {name}\n", f"needs a limit on {thing}", "→ ", "allow_degraded")
        assert done.stdout == "" and not (p.project / "ran").exists(), done
        assert [(event["event"], event["status"]) for event in told] == [("failed", 125)], told


@case("stranger")
def a_limit_that_may_be_missing_is_on_record(p):
    done, told = run_with_events(p, "run", "-m", "64M", "--allow-degraded", "limits.memory", "--", "echo", "ran")
    output(done, "ran\n")
    got = seen(p, "limits.memory")
    assert (got["holds"], got["declared"], p.record()["level"]) == (False, "64M", "custom"), got
    assert "limits.memory" in p.record()["level_reasons"] and p.record()["events"] == []
    assert [event["event"] for event in told] == ["started", "exited"]


@case(*EVERYBODY)
def limits_that_nobody_declared_hold_where_they_can(p):
    expect(p.run("run", "--", "true"), 0)
    for name, declared in (("limits.memory", "8G"), ("limits.pids", "4096"), ("limits.disk", "8G")):
        got = seen(p, name)
        can = p.kind != "stranger" or name != "limits.memory"
        assert (got["need"], got["declared"], got["holds"]) == ("may", declared, can), (name, got)
    assert "limits.cpu" not in p.record()["guarantees"]


@case()
def a_cage_outside_its_cgroups_is_noticed(p):
    broken = {"program": BREAKABLE, "env": {"BAWN_TEST_BREAK": "limits"}}
    for option, value, name in (("-m", "64M", "limits.memory"), ("--cpus", "1", "limits.cpu"),
                                ("--pids-limit", "20", "limits.pids")):
        expect_refusal(p.sh("echo ran", option, value, **broken), f"'{name}' does not hold", "is not in the cgroup")
        assert p.record()["outcome"] == "refused" and seen(p, name)["holds"] is False


# --- what the cage sees of its cgroups ---

@case(*EVERYBODY)
def the_cage_sees_no_more_than_its_own_cgroups(p):
    options = () if p.kind == "stranger" else ("-m", "64M", "--cpus", "1", "--pids-limit", "20")
    done = expect(p.sh("cat /proc/self/cgroup", *options), 0)
    assert done.stdout and {line.split(":", 2)[2] for line in done.stdout.splitlines()} == {"/"}, done.stdout
    output(p.tool("cgroups", options=options), "")
    output(p.tool("cgroups", options=(*options, "--fakeroot")), "")


# --- ends ---

def marked(p):
    """Processes that were told the name of the place."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0] == b"/tool" and os.fsencode(p.top.name) in words:
                found.append(int(path.parent.name))
    return found


@case(*EVERYBODY)
def nothing_survives_the_end_of_the_command(p):
    output(p.tool("leave", p.top.name), "left\n")
    assert not marked(p), marked(p)
    expect(p.run("run", "-v", f"{TOOL}:/tool", "--time", soon(900), "--", "sh", "-c",
                 f"/tool leave {p.top.name}; exec sleep 30"), 124, "left")
    assert not marked(p), marked(p)


@case(*EVERYBODY)
def nothing_survives_a_killed_keeper(p):
    keeper = p.start("run", "-v", f"{TOOL}:/tool", "--", "sh", "-c", f"/tool leave {p.top.name}; exec sleep 30")
    assert keeper.stdout.readline() == b"left\n" and marked(p)
    keeper.kill()
    keeper.communicate(timeout=20)
    wait_until(lambda: not marked(p), 5, "the end of what the command left")
    if p.group:
        wait_until(lambda: not p.group.processes(), 5, "the end of the cage")
        assert p.group.runs()
    assert not p.records()
    expect(p.run("run", "--", "true"), 0)  # who sweeps, and signs
    assert sorted(record["outcome"] for record in p.records()) == ["exited", "interrupted"]


@case(*EVERYBODY)
def the_next_run_removes_what_killed_keepers_left(p):
    chance = random.Random(p.top.name)
    options = () if p.kind == "stranger" else ("-m", "64M", "--cpus", "1")
    # The first at its command, for on a slow machine no other may come as far as to be on record.
    for number in range(25):
        keeper = p.start("run", *options, "--pids-limit", "30", "--", "sh", "-c", "echo up; exec sleep 30")
        if number == 0:
            assert keeper.stdout.readline() == b"up\n"
        time.sleep(chance.uniform(0, START))
        keeper.kill()
        keeper.communicate(timeout=20)
    assert not p.records()
    if p.group:
        wait_until(lambda: not p.group.processes(), 5, "the end of all cages")
    expect(p.run("run", *options, "--", "true"), 0)
    assert {record["outcome"] for record in p.records()} == {"interrupted", "exited"}
    assert not list(p.state.glob("bawn/unsigned/*"))


@case()
def cgroups_go_with_every_kind_of_end(p):
    for words, status in ((("-w", "/nowhere", "--", "true"), 125), (("--", "no-such-command"), 127),
                          (("--", "/etc/passwd"), 126), (("--", "sh", "-c", "kill -9 $$"), 137),
                          ((*p.spec("startup_commands: ['exit 4']\n"), "--", "true"), 125)):
        assert p.run("run", "-m", "64M", "--cpus", "1", *words).returncode == status, words
        p.check()
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        keeper = p.start("run", "-m", "64M", "--", "sh", "-c", "echo up; exec sleep 30")
        keeper.stdout.readline()
        keeper.send_signal(sig)
        keeper.communicate(timeout=20)
        assert keeper.returncode == 128 + sig, keeper.returncode
        p.check()


@case()
def a_cage_that_is_ended_from_outside_did_not_run_out_of_processes(p):
    for _ in range(10):
        keeper = p.start(*p.tool_words("fork"))
        keeper.stdout.readline()
        children = pathlib.Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text(encoding="ascii").split()
        first = {int(pid) for pid in children} & set.union(*cage_processes(p).values())
        os.kill(first.pop(), signal.SIGKILL)
        _, err = keeper.communicate(timeout=20)
        assert keeper.returncode == 137 and b"ended from outside" in err, (keeper.returncode, err)
        assert p.record()["events"] == [], p.record()["events"]


# --- processes that cannot be killed ---

@contextlib.contextmanager
def freezer(p):
    """A freezer of version 1: what is in it does not even die. Yields a function that puts a process in."""
    tree = read_trees().get("freezer")
    if not tree:
        raise Skip("no freezer of version 1, and that of version 2 lets processes die")
    folder = tree.mount / tree.path / f"{p.group.name}-freezer"

    def set_state(word):
        (folder / "freezer.state").write_text(word, encoding="ascii")

    def freeze(pid):
        (folder / "tasks").write_text(str(pid), encoding="ascii")
        set_state("FROZEN")
        wait_until(lambda: (folder / "freezer.state").read_text(encoding="ascii") == "FROZEN\n", 5, "frozen")

    folder.mkdir()
    try:
        yield freeze
    finally:
        set_state("THAWED")
        wait_until(lambda: not (folder / "tasks").read_text(encoding="ascii"), 5, "the end of what was frozen")
        folder.rmdir()


def sleeper(p):
    """The process of the cage that sleeps."""
    for pid in p.group.processes():
        with contextlib.suppress(OSError):
            if pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\0"):
                return pid
    return None


def end_frozen(p, keeper, act):
    """Freezes a process of a run and ends that: what bawn says of it, and how long that took."""
    with freezer(p) as freeze:
        assert keeper.stdout.readline() == b"up\n"
        wait_until(lambda: sleeper(p), 5, "its process")
        freeze(sleeper(p))
        began = time.monotonic()
        act()
        try:
            _, err = keeper.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            keeper.kill()
            raise AssertionError("it waits for what does not end") from None
        spent = time.monotonic() - began
        assert b"kernel" in err and b"hang" in err, err
    wait_until(lambda: not p.group.processes(), 5, "the end of the thawed")
    expect(p.run("run", "--", "true"), 0)  # removes the cgroup that could not be
    return spent


@case("root", first=True)
def a_process_that_cannot_be_killed_is_told(p):
    keeper = p.start("run", "-m", "64M", "--", "sh", "-c", "sleep 100 & echo up; read x; exit 3")
    spent = end_frozen(p, keeper, lambda: (keeper.stdin.write(b"\n"), keeper.stdin.flush()))
    assert keeper.returncode != 0, "that is no success"
    assert spent < 40, spent


@case("root", first=True)
def a_time_limit_ends_also_what_cannot_be_killed(p):
    keeper = p.start("run", "-m", "64M", "--time", soon(700), "--", "sh", "-c", "sleep 100 & echo up; exec sleep 200")
    spent = end_frozen(p, keeper, lambda: None)
    assert keeper.returncode in (124, 125), keeper.returncode
    assert spent < GRACE + 40, spent


# --- running them ---

def kinds():
    """Who can be had here, and why others cannot."""
    if os.geteuid() == 0:
        Group(USER).remove()
        return EVERYBODY
    try:
        Group(os.geteuid()).remove()
        return ("user",)
    except NoGroups:
        return ("stranger",)


def run_case(function, kind):
    began = time.monotonic()
    try:
        p = Person(kind)
    except NoGroups as e:
        return e, 0
    try:
        function(p)
        p.check()
        error = None
    except Exception as e:  # a failed case is told, and the rest still run
        error = e
    try:
        p.done()
    except OSError as e:
        error = error or e
    return error, time.monotonic() - began


def prepare():
    cages.prepare()
    cages.compile_tool(HERE / "tool.c", TOOL)


def measure():
    global START, SLOW
    p = cages.Place(os.geteuid())
    START = min(took(p.run, "run", "--", "true") for _ in range(3))
    SLOW = max(SLOW, min(8, round(10 * START)))
    p.done()
    print(f"# a cage starts in {START:.2f} s; slow: {SLOW}")


def main():
    present = kinds()
    chosen = [(function, kind) for function in CASES for kind in function.kinds
              if kind in present and all(re.search(word, f"{function.__name__} {kind}") for word in sys.argv[3:])]
    failed = 0
    cages.adopt_orphans()
    try:
        prepare()
        measure()
        machine.own_mounts()
        before = cages.Before()
        print(f"1..{len(chosen) + 1}")
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            results = pool.map(lambda row: run_case(*row), chosen)
            for number, ((function, kind), (error, spent)) in enumerate(zip(chosen, results), 1):
                failed += error is not None and not isinstance(error, Skip)
                cages.tell(number, f"{function.__name__} as {'root' if kind == 'root' else 'a ' + kind}", error)
                print(f"# {spent:.1f} s")
        try:
            before.check()
            error = None
        except AssertionError as e:
            failed, error = failed + 1, e
        cages.tell(len(chosen) + 1, "nothing_is_left_behind", error)
    finally:
        shutil.rmtree(FILES)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
