#!/usr/bin/env python3
"""The process that stays after a command of `bawn session exec` and does the next: that nobody can tell by what a
command sees, prints or ends with; how long it stays, and what ends it.

    stay.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import functools
import json
import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import sessions  # noqa: E402

cage, for_root = sessions.cage, sessions.for_root
expect, finish = sessions.expect, sessions.finish
MOST = 8  # RUN_STAY_MOST
WAITS = "__skb_wait_for_more_packets"  # for what a session brings
STAYS = {"BAWN_STAY_SECONDS": "20"}


def case(function):
    """A case at whose end nobody stays."""
    @functools.wraps(function)
    def end(place):
        Session.made = []
        function(place)
        for s in Session.made:
            s.stop()
    return sessions.case(end)


class Session(sessions.Session):
    """One whose commands leave a process that stays."""
    made = []

    def __init__(self, *words, **more):
        super().__init__(*words, **more)
        self.made.append(self)

    def begin(self, script, *options, **more):
        return super().begin(script, *options, env={**STAYS, **more.pop("env", {})}, **more)

    def exec(self, *words, options=(), **more):
        return super().exec(*words, options=options, env={**STAYS, **more.pop("env", {})}, **more)

    def stay(self):
        """Its process, once it waits for the next command; or None."""
        pid = self.all.json("show", self.id)["stay"]
        if pid:
            cage.wait_until(lambda: is_waiting(pid), 10, "a warm cage")
        return pid

    def is_by_stay(self, run=None):
        """Was the newest run done by it? Only that has warm cages."""
        records = sorted(self.records(), key=lambda record: record["run"])
        return [r for r in records if run in (None, r["run"])][-1]["warm"]

    def ready(self):
        assert self.sh("true").returncode == 0
        pid = self.stay()
        assert pid, "nobody stays"
        return pid


def is_waiting(pid):
    """For the next command, with a warm cage."""
    try:
        cages = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return bool(cages) and all(pathlib.Path(f"/proc/{one}/wchan").read_text() == WAITS for one in cages)
    except OSError:
        return False


# --- a command cannot tell ---

@for_root
@case
def a_command_is_as_any_other_is(place):
    s = Session(place, "-e", "PASSED")
    assert s.sh("exit 3").returncode == 3
    pid = s.stay()
    ways = []
    for stays in ("20", "0"):
        env = {"BAWN_STAY_SECONDS": stays, "PASSED": f"given {stays}"}
        done = s.sh("cat; echo error >&2; echo $PASSED | cut -d' ' -f1; pwd; ls /proc/self/fd | wc -l; ulimit -a; id; "
                    "grep -E '^(Sig|Cap|Shd|No|Sec)' /proc/self/status; exit 7", env=env, stdin=b"typed\n")
        assert f"given {stays}" in s.sh("echo $PASSED", env=env).stdout
        ways.append((done.returncode, done.stdout, done.stderr))
    assert ways[0] == ways[1], ways
    assert s.stay() == pid and ways[0][0] == 7
    warm = [record["warm"] for record in sorted(s.records(), key=lambda r: r["run"])]
    assert warm.count(True) >= 1, warm
    for record in s.records():
        expect(place.run("verify", record["run"]), 0)


@case
def each_command_has_a_cage_of_its_own(place):
    s = Session(place)
    s.ready()
    said = []
    for _ in range(3):
        said.append(s.says("cut -d' ' -f22 /proc/1/stat; ls /dev/shm; >/dev/shm/mine"))
        assert s.is_by_stay()
        s.stay()
    assert len(set(said)) == 3, said


@case
def streams_end_when_the_command_does(place):
    s = Session(place)
    s.ready()
    began = time.monotonic()
    assert s.sh("echo out; echo err >&2; sleep 0 &").stdout == "out\n"
    # A file that is read in parts, as by a shell's read.
    path = place.write("lines", "1\n2\n3\n")
    with open(path, "rb") as lines:
        for number in ("1", "2", "3"):
            done = place.run("session", "exec", s.id, "--", "sh", "-c", "read x; echo $x", env=STAYS, stdin=lines)
            assert done.stdout == f"{number}\n", done
    # Who reads has enough.
    process = s.begin("yes")
    process.stdout.read(10)
    process.stdout.close()
    process.wait(timeout=10 * cage.SLOW)
    assert time.monotonic() - began < 15 * cage.SLOW
    process.stderr.close()


@for_root
@case
def signals_are_the_commands(place):
    s = Session(place)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        s.ready()
        process = s.start(f"trap 'echo got; exit 9' {number.name[3:]}; while :; do sleep 0.05; done")
        time.sleep(0.2)
        process.send_signal(number)
        done = finish(process)
        assert (done.returncode, done.stdout) == (9, "got\n"), (number, done)


def state_of(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


@case
def a_stop_is_for_both(place):
    """As a job of a shell: ^Z stops the command and who asked for it, and both go on."""
    s = Session(place)
    for stays in ("20", "0"):
        s.ready()
        process = s.start("while :; do sleep 0.05; test -e go && echo on && exit 5; done", env={"BAWN_STAY_SECONDS": stays},
                          process_group=0)
        shell = sessions.named("sh")
        os.kill(process.pid, signal.SIGTSTP)
        cage.wait_until(lambda p=process: state_of(p.pid) == "T", 5, "the stop of who asked")
        cage.wait_until(lambda pids=shell: any(state_of(pid) == "T" for pid in pids), 5, "the stop of the command")
        os.kill(process.pid, signal.SIGCONT)
        s.sh("touch go")
        done = finish(process)
        assert (done.returncode, done.stdout) == (5, "on\n"), (stays, done)
        s.says("rm go")


@for_root
@case
def a_command_ends_with_who_asked_for_it(place):
    s = Session(place)
    pid = s.ready()
    process = s.start("trap '' TERM HUP INT; sleep 300; sleep 300")
    process.send_signal(signal.SIGKILL)
    process.wait()
    cage.wait_until(lambda: not sessions.named("sleep"), 5, "the end of the command")
    assert s.says("echo on") == "on" and s.stay() == pid
    process.stdout.close()
    process.stderr.close()


@for_root
@case
def a_command_ends_with_who_does_it(place):
    s = Session(place)
    pid = s.ready()
    process = s.start("sleep 300")
    os.kill(pid, signal.SIGKILL)
    done = finish(process)
    assert done.returncode == 137 and "was killed" in done.stderr, done
    cage.wait_until(lambda: not sessions.named("sleep"), 5, "the end of the command")
    assert s.says("echo on") == "on" and s.stay() not in (None, pid)


@case
def commands_beside_each_other_are_done_all_the_same(place):
    s = Session(place)
    s.ready()
    started = [s.begin(f"echo {i} >{i}; cat {i}; sleep 0.3") for i in range(6)]
    assert [finish(process).stdout for process in started] == [f"{i}\n" for i in range(6)]
    assert sorted(s.says("ls").split()) == [str(i) for i in range(6)]


# --- for whom ---

@case
def it_works_only_for_who_is_as_its_first_caller_was(place):
    s = Session(place)
    s.ready()
    says = {}
    for name, options in (("same", {}), ("variable", {"env": {"XDG_DATA_HOME": "/elsewhere"}}),
                          ("home", {"env": {"BAWN_KEY": "x"}})):
        expect(s.sh("true", **options), 0)
        says[name] = s.is_by_stay()
        s.stay()
    assert says == {"same": True, "variable": False, "home": False}, says


@case
def a_limit_of_the_caller_holds(place):
    """With it: whoever asks has another limit, and the command is not done by a process without it."""
    said = {}
    for name, program, env in (("with", cage.BAWN, STAYS), ("without", cage.BREAKABLE, {**STAYS, "BAWN_TEST_BREAK": "stay"})):
        s = Session(place)
        expect(place.run("session", "exec", s.id, "--", "true", env=env, program=program), 0)
        s.stay()
        script = f"ulimit -S -c 0; ulimit -S -n 99; exec {program} session exec {s.id} -- sh -c 'ulimit -S -n'"
        said[name] = place.run("-c", script, env=env, program="/bin/sh").stdout.strip()
        expect(s.stop(), 0)
    assert said["with"] == "99" and said["without"] not in ("", "99"), said


# --- how long ---

@for_root
@case
def it_ends_by_itself_and_leaves_nothing(place):
    s = Session(place)
    before = sorted(os.listdir(s.workspace.parents[1]))
    began = time.monotonic()
    expect(s.exec("true", env={"BAWN_STAY_SECONDS": "1"}), 0)
    sessions.settle()
    assert time.monotonic() - began > 1
    assert not [name for name in os.listdir(s.workspace.parents[1]) if name in ("stay", "stay-door")]
    assert set(before) <= set(os.listdir(s.workspace.parents[1]))
    # And none where none is wanted, or a terminal is.
    expect(s.exec("true", env={"BAWN_STAY_SECONDS": "0"}), 0)
    assert s.stay() is None
    expect(s.exec("true", options=("-t",), env=STAYS), 0)
    assert s.stay() is None


@for_root
@case
def killed_it_leaves_nothing_that_lives(place):
    s = Session(place)
    os.kill(s.ready(), signal.SIGKILL)
    sessions.settle()
    assert s.stay() is None and s.says("echo on") == "on"
    assert s.stay() is not None


@for_root
@case
def stop_apply_and_rm_are_not_kept_waiting(place):
    s = Session(place)
    s.ready()
    expect(s.stop(), 0)
    sessions.settle()
    assert s.all.json("show", s.id)["state"] == "stopped"
    s.sh("echo 1 >one")
    s.stay()
    assert s.all.json("show", s.id)["state"] == "open"
    began = time.monotonic()
    expect(s.all.run("apply", s.id), 0)
    assert (place.project / "one").read_text() == "1\n"
    s.ready()
    expect(s.all.run("rm", s.id), 0)
    sessions.settle()
    assert time.monotonic() - began < 10 * cage.SLOW and s.all.names() == []


@case
def there_are_no_more_than_a_few(place):
    made = [Session(place) for _ in range(MOST + 2)]
    for s in made:
        expect(s.sh("true"), 0)
    staying = [s for s in made if s.stay()]
    assert len(staying) == MOST, len(staying)
    for s in staying:
        expect(s.stop(), 0)
    sessions.settle()
    assert made[-1].ready()


@case
def what_the_host_changes_between_commands_is_seen(place):
    place.write("project/old", "1\n")
    s = Session(place)
    assert s.says("cat old; ls new 2>/dev/null || true") == "1"
    s.stay()
    place.write("project/.new", "2\n")
    (place.project / ".new").rename(place.project / "old")
    place.write("project/new", "3\n")
    assert s.says("cat old new") == "2\n3" and s.is_by_stay()


@case
def show_says_who_stays(place):
    s = Session(place)
    assert "stays" not in s.all.run("show", s.id).stdout
    pid = s.ready()
    assert f"process {pid}" in s.all.run("show", s.id).stdout
    assert json.loads(s.all.run("show", s.id, "--json").stdout)["stay"] == pid


if __name__ == "__main__":
    sessions.main()
