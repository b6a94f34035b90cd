#!/usr/bin/env python3
"""Workers: runs that are queued are done once, in order, by whoever has the session, or are reported as not done.

    run.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import contextlib
import fcntl
import json
import os
import pathlib
import signal
import sqlite3
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage")]
import place  # noqa: E402
import records  # noqa: E402
from place import BREAKABLE, SLOW, decode, expect, main, output, wait_until  # noqa: E402

LEASE = f"{SLOW}s"
ALONE = ("--slots", "1", "--sweep", "0s")


# --- helpers ---

def case(function):
    """A case after which no worker is left, however it ends."""
    def alone(p):
        try:
            function(p)
            # What held a workspace ends when the last run in it has, a moment later.
            wait_until(lambda: not place.descendants(), 5, "nothing is left")
        finally:
            for worker in Worker.all:
                if worker.process.poll() is None:
                    for pid in worker.family():
                        os.kill(pid, signal.SIGKILL)
                    worker.process.communicate()
            Worker.all.clear()
    alone.__name__ = function.__name__
    return place.case(alone)


def has_ended(pid):
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return True
    return stat[stat.rindex(")") + 2] == "Z"


def create(p, *options):
    done = expect(p.run("session", "create", *options), 0)
    return done.stdout.strip()


def queue(p, session, script, *options):
    """The id of a run."""
    done = expect(p.run("session", "exec", session, "--queue", *options, "--", "sh", "-c", script), 0)
    return done.stdout.strip()


def work(p, *options):
    """A worker until nothing is queued."""
    return expect(p.run("worker", "--once", "--sweep", "0s", *options), 0)


def fetch(p, run):
    return p.run("session", "wait", run)


class Worker:
    """One that stays; its processes by what they are."""

    all = []

    def __init__(self, p, *options, **more):
        self.all.append(self)
        self.process = p.start("worker", *ALONE, "--lease", LEASE, *options, **more)
        self.pid = self.process.pid

    def children(self, pid=None):
        """Those of a process, in no order."""
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
                except OSError:
                    continue
                if int(stat[stat.rindex(")") + 2:].split()[1]) == (pid or self.pid):
                    found.append(int(entry))
        return found

    def family(self):
        found = [self.pid]
        for pid in found:
            found += self.children(pid)
        return found

    def runner(self):
        """The warden's only child."""
        wait_until(lambda: self.children() and self.children(self.children()[0]), 5, "a runner")
        return self.children(self.children()[0])[0]

    def end(self, number=signal.SIGTERM, status=0):
        self.process.send_signal(number)
        return self.join(status)

    def join(self, status=0):
        out, err = self.process.communicate(timeout=20 * SLOW)
        assert self.process.returncode == status, (self.process.returncode, decode(out), decode(err))
        return decode(err)


def try_lock(fd):
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def spec(p):
    """A session in which commands can be seen from outside: a folder of the host is bound, writable."""
    p.make("mark", 0o777)
    return p.spec(f"binds: [\"{p.home}/mark:/mark:rw\"]\n")


def events(p, kind):
    lines = (p.state / "bawn/log/events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["type"] == kind]


# --- what is queued is done ---

@case
def what_is_queued_is_done_and_waited_for(p):
    session = create(p)
    first = queue(p, session, "echo out; echo err >&2; exit 3")
    second = queue(p, session, "echo $1 | tr a b", "--network", "none")
    work(p)
    done = expect(fetch(p, first), 3)
    assert (done.stdout, done.stderr) == ("out\n", "err\n"), done
    output(fetch(p, second), "\n")
    # Again, as often as one likes.
    expect(fetch(p, first), 3)


@case
def who_waits_is_told_when_it_is_done(p):
    session = create(p)
    worker = Worker(p)
    began = time.monotonic()
    done = expect(p.run("session", "exec", session, "--queue", "--wait", "--", "sh", "-c", "echo waited; exit 4"), 4)
    assert done.stdout == "waited\n" and time.monotonic() - began < 5 * SLOW
    worker.end()


@case
def runs_of_one_session_are_done_in_order_and_see_one_workspace(p):
    session = create(p)
    runs = [queue(p, session, f"echo {i} >> list; echo {i} >> ~/list; cat list ~/list") for i in range(5)]
    work(p, "--slots", "4")
    for i, run in enumerate(runs):
        output(fetch(p, run), "".join(f"{n}\n" for n in range(i + 1)) * 2)
    assert not (p.project / "list").exists()


@case
def two_workers_do_every_run_once(p):
    sessions = [create(p) for _ in range(6)]
    runs = {session: [queue(p, session, f"echo {i} >> ~/list") for i in range(9)] for session in sessions}
    last = {session: queue(p, session, "cat ~/list") for session in sessions}
    workers = [p.start("worker", "--once", "--sweep", "0s", "--slots", "2") for _ in range(2)]
    for worker in workers:
        out, err = worker.communicate(timeout=60 * SLOW)
        assert worker.returncode == 0, decode(out + err)
    for session in sessions:
        for run in runs[session]:
            expect(fetch(p, run), 0)
        output(fetch(p, last[session]), "".join(f"{i}\n" for i in range(9)))


@case
def the_end_of_what_is_printed_is_kept(p):
    session = create(p)
    run = queue(p, session, "yes 12345678901234567890123456789012 | head -n 100000; echo end")
    work(p)
    done = expect(fetch(p, run), 0)
    assert len(done.stdout) == 1 << 20 and done.stdout.endswith("9012\nend\n"), len(done.stdout)


@case
def the_record_says_who_did_it(p):
    session = create(p)
    run = queue(p, session, "true")
    work(p, "--name", "Kim.1")
    expect(p.run("verify", run), 0)
    record = json.dumps(p.record())
    assert session in record and "Kim.1-" in record, record


@case
def a_cage_that_waited_shows_what_is_there_now(p):
    named = p.write(p.home / "named", "old\n")
    session = create(p, *p.spec(f'binds: ["{named}:/named"]\n'))
    worker = Worker(p)
    seen = []
    for content in ("old\n", "old\n", "new\n", "new\n"):
        if named.read_text() != content:
            p.write(p.home / "other", content).rename(named)
        run = queue(p, session, "cat /named")
        output(fetch(p, run), content)
        expect(p.run("verify", run), 0)
        seen.append(records.read(p.state / "bawn/runs" / run)["warm"])
    worker.end()
    assert seen == [False, True, False, True], seen


@case
def a_cage_with_tools_may_wait(p):
    session = create(p, *p.spec("tools: true\n"))
    worker = Worker(p)
    seen = []
    for _ in range(2):
        run = queue(p, session, "test -x /run/bawn/bawn && echo there")
        output(fetch(p, run), "there\n")
        seen.append(records.read(p.state / "bawn/runs" / run)["warm"])
    worker.end()
    assert seen == [False, True], seen


# --- what is wrong ---

@case
def what_cannot_be_queued_is_said_at_once(p):
    session = create(p)
    for options, part in ((("--record", "x"), "cannot use --record together with --queue"), (("-t",), "cannot use --tty together"),
                          (("--status-fd", "2"), "cannot use --status-fd together"), (("--no-such",), "no-such"),
                          (("--network", "host"), "network"), (("--project", "/"), "cannot use --project: it is fixed")):
        done = p.run("session", "exec", session, "--queue", *options, "--", "true")
        assert done.returncode == 125 and part in done.stderr and not done.stdout, (options, done)
    expect(p.run("session", "exec", session, "--queue"), 125, "no command is named")
    expect(p.run("session", "exec", session, "--wait", "--", "true"), 125, "cannot use --wait without --queue")
    for run in ("nonsense", "20260102-030405-0a0b0c0d", "", "../x"):
        expect(fetch(p, run), 125, f"cannot wait for run '{run}': no such run was queued")


@case
def a_request_that_nobody_can_read_fails_and_the_next_is_done(p):
    session = create(p)
    runs = {text: queue(p, session, "true") for text in (
        "", "{", '{"version": 2, "command": ["true"]}', '{"version": 1, "record": "/x", "command": ["true"]}',
        '{"version": 1, "command": ["true"], "settings": [{"key": "network.mode", "value": "host"}]}',
        '{"version": 1, "command": ["true"], "settings": [{"key": "project.path", "value": "/"}]}',
        '{"version": 1, "command": ["true"], "settings": [{"key": "no.such", "value": "x"}]}', '{"version": 1}',
        '{"arguments": ["--", "true"]}')}
    good = queue(p, session, "echo good")
    with sqlite3.connect(p.state / "bawn/store.db") as store:
        for text, run in runs.items():
            store.execute("UPDATE bawn_runs SET request = ? WHERE id = ?", (text, run))
    store.close()
    work(p)
    for text, run in runs.items():
        done = fetch(p, run)
        assert done.returncode == 125 and run in done.stderr, (text, done)
        assert "arguments" not in text or "an earlier bawn wrote it; queue the run again" in done.stderr, done
    output(fetch(p, good), "good\n")


@case
def a_session_that_is_miscounted_is_in_nobodys_way(p):
    wrong, right = create(p), create(p)
    lost = queue(p, wrong, "echo lost")
    with sqlite3.connect(p.state / "bawn/store.db") as store:
        store.execute("DELETE FROM bawn_runs WHERE id = ?", (lost,))
    store.close()
    run = queue(p, right, "echo right")
    said = work(p).stderr.splitlines()
    assert len([line for line in said if wrong in line and "counted anew" in line]) == 1, said
    output(fetch(p, run), "right\n")
    # And it is used as before.
    run = queue(p, wrong, "echo again")
    assert "counted" not in work(p).stderr
    output(fetch(p, run), "again\n")


@case
def misuse_is_said_in_a_sentence(p):
    def sentences(done):
        return [line for line in done.stderr.splitlines() if not line.startswith("hint: ")]

    for args, part in ((("--slots", "0"), "--slots"), (("--slots", "many"), "--slots"), (("--lease", "10ms"), "--lease"),
                       (("--lease", "x"), "--lease"), (("--name", "a b"), "cannot name a worker"), (("--name", ""), "cannot name a"),
                       (("--drain", "-1s"), "--drain"), (("--once", "word"), "word"), (("--nme", "x"), "--name")):
        done = p.run("worker", *args)
        assert done.returncode == 2 and part in done.stderr and len(sentences(done)) == 1, (args, done)
    done = expect(p.run("worker", "--once", "--metrics", "/no/such/folder/file"), 125, "/no/such/folder/file")
    assert done.stderr.count("\n") == 1, done
    done = expect(p.run("worker", "--once", env={"BAWN_STORE": "postgresql://user:secret@127.0.0.1:1/x"}), 125)
    assert "secret" not in done.stderr and len(sentences(done)) == 1, done


@case
def a_worker_says_where_it_works(p):
    create(p)
    said = work(p, "--name", "one", "--slots", "3").stderr
    store = p.state / "bawn/store.db"
    assert said.startswith("bawn: worker one-") and f": 3 slots; store {store}; workers of this store: 1\n" in said, said
    assert work(p, "-q").stderr == ""
    expect(p.run("worker", "--list"), 0, f"no worker is connected to the store {store}")
    worker = Worker(p, "--name", "two")
    wait_until(lambda: "two-" in p.run("worker", "--list").stdout, 10, "it is listed")
    listed = expect(p.run("worker", "--list"), 0).stdout
    assert listed.count("\n") == 1 and "slots 1 " in listed and "runs 0 " in listed, listed
    worker.end()
    assert p.run("worker", "--list").stdout == ""


@case
def where_no_store_is_nobody_is_connected(p):
    assert expect(p.run("worker", "--list"), 0, "there is none yet").stdout == ""
    assert not (p.state / "bawn/store.db").exists()


@case
def who_waits_without_a_worker_is_told_and_waits_on(p):
    session = create(p)
    waiting = p.start("session", "exec", session, "--queue", "--wait", "--", "echo", "done")
    said = waiting.stderr.readline().decode()  # comes while it waits, or the case hangs
    assert "has no worker; start one with: bawn worker" in said and str(p.state / "bawn/store.db") in said, said
    assert waiting.poll() is None
    work(p)
    out, err = waiting.communicate(timeout=20 * SLOW)
    assert waiting.returncode == 0 and out == b"done\n" and err == b"", (out, err)


@case
def who_waits_beside_a_worker_is_told_nothing(p):
    worker = Worker(p, "-q")
    wait_until(lambda: p.run("worker", "--list").stdout, 10, "it is there")
    done = p.run("session", "exec", create(p), "--queue", "--wait", "--", "sh", "-c", "sleep 1.5; echo done")
    output(done, "done\n")
    assert done.stderr == "", done.stderr
    worker.end()


@case
def the_metrics_tell_of_the_queue(p):
    session, file = create(p), p.write("metrics", "")
    queue(p, session, "sleep 900")
    worker = Worker(p, "-q", "--metrics", file)
    wait_until(lambda: "bawn_workers 1\n" in file.read_text(), 10, "it has counted")
    assert "bawn_queued_runs 1\n" in file.read_text(), file.read_text()
    assert "\nbawn_queued_oldest_seconds 0\n" in file.read_text()
    worker.end(signal.SIGKILL, -signal.SIGKILL)


@case
def what_is_wrong_with_a_store_names_the_setting(p):
    for where in ("nonsense", "sqlite:/no/such/folder/store.db", "postgresql://user:secret@127.0.0.1:1/x"):
        for args in (("worker", "--once"), ("worker", "--list"), ("session", "list")):
            done = expect(p.run(*args, env={"BAWN_STORE": where}), 125)
            assert "BAWN_STORE" in done.stderr and "secret" not in done.stderr, (where, args, done)


# --- ends that are nobody's wish ---

def begin(p, session, script="sleep 60", before=":"):
    """Queues a run, and what waits until a worker has begun it."""
    mark = p.home / "mark" / f"started-{time.monotonic_ns()}"
    run = queue(p, session, f"{before}; touch /mark/{mark.name}; {script}")
    return run, lambda: wait_until(mark.exists, 10, "the run began")


@case
def a_run_whose_worker_is_killed_is_lost_and_its_session_goes_on(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session, "echo kept > kept; sleep 60")
    worker = Worker(p)
    begun()
    family = worker.family()
    worker.end(signal.SIGKILL, -signal.SIGKILL)
    wait_until(lambda: all(map(has_ended, family[1:])), 5, "all of it has ended")
    after = queue(p, session, "cat kept")
    successor = Worker(p)
    output(fetch(p, after), "kept\n")
    expect(fetch(p, run), 125, "its worker was lost")
    successor.end()


@case
def a_worker_that_slept_past_its_lease_writes_nothing(p):
    for whole in (False, True):
        session = create(p, *spec(p))
        late = p.home / "mark" / f"late-{whole}"
        run, begun = begin(p, session, f"sleep {2 * SLOW}; touch /mark/{late.name}; echo mine > late; sleep 60")
        sleeper = Worker(p, "--name", f"sleeper-{whole}")
        begun()
        stopped = sleeper.family() if whole else [sleeper.pid]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        after = queue(p, session, "cat late 2>&1; echo theirs > late")
        successor = Worker(p)
        done = fetch(p, after)
        assert "mine" not in done.stdout and done.returncode == 0, done
        # Where only the coordinator sleeps, the command was ended in time nevertheless.
        assert not late.exists()
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)
        expect(fetch(p, run), 125, "its worker was lost")
        output(fetch(p, queue(p, session, "cat late")), "theirs\n")
        wait_until(lambda: any(event["worker"].startswith(f"sleeper-{whole}")
                               for kind in ("lease_lost", "result_refused") for event in events(p, kind)),
                   5, "the loss is told")
        # It is awake, and of use.
        output(fetch(p, queue(p, create(p), "echo awake")), "awake\n")
        sleeper.end()
        successor.end()
        assert not late.exists()
        expect(fetch(p, run), 125, "its worker was lost")


def broken(*mechanisms):
    """A worker that lacks them."""
    return {"program": BREAKABLE, "env": {"BAWN_TEST_BREAK": ",".join(mechanisms)}}


def oversleep(p, sleeper_lacks=(), successor_lacks=()):
    """A coordinator sleeps while its run goes on, and another worker takes the session meanwhile.

    Did the command go on; what is then in the workspace; is the run on record as one that ended?
    """
    session = create(p, *spec(p))
    run, begun = begin(p, session, "while [ ! -e /mark/go ]; do sleep 0.01; done; echo mine > late; touch /mark/late")
    late = p.home / "mark/late"
    sleeper = Worker(p, **(broken(*sleeper_lacks) if sleeper_lacks else {}))
    begun()
    os.kill(sleeper.pid, signal.SIGSTOP)
    after = queue(p, session, "true")
    successor = Worker(p, **(broken(*successor_lacks) if successor_lacks else {}))
    expect(fetch(p, after), 0)
    p.write("mark/go", "")
    deadline = time.monotonic() + (5 if sleeper_lacks else 0.3) * SLOW
    while not late.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    seen = fetch(p, queue(p, session, "cat late"))
    time.sleep(0.3 * SLOW if "ask" in sleeper_lacks else 0)
    os.kill(sleeper.pid, signal.SIGCONT)
    expect(fetch(p, run), 125, "its worker was lost")
    sleeper.end()
    successor.end()
    record = p.state / "bawn/runs" / run / records.FILE
    return late.exists(), seen.stdout, record.exists() and records.read(record)["outcome"] == "exited"


@case
def what_sleeps_is_ended_copied_from_and_not_signed(p):
    assert oversleep(p) == (False, "", False)


@case
def without_the_warden_the_command_goes_on_and_still_changes_nothing(p):
    assert oversleep(p, ["warden"]) == (True, "", False)


@case
def without_a_workspace_of_its_own_the_next_lease_sees_what_the_last_one_writes(p):
    assert oversleep(p, ["warden"], ["move"]) == (True, "mine\n", False)


@case
def without_asking_what_another_took_would_be_signed(p):
    assert oversleep(p, ["warden", "ask"]) == (True, "", True)


@case
def a_session_goes_on_in_another_root_as_it_was_saved(p):
    def at(name):
        return {"BAWN_SANDBOX_ROOT": str(p.make(name, 0o700))}

    session = expect(p.run("session", "create", env=at("one")), 0).stdout.strip()
    there = Worker(p, "--name", "there", env=at("two"))
    # Nothing of it is there, and nobody else is: that is said.
    lost = queue(p, session, "true")
    expect(fetch(p, lost), 125, "are in a folder that this worker does not have")
    here = Worker(p, "--name", "here", env=at("one"))
    wait_until(lambda: "here" in workers(p), 5, "it is there")
    first = queue(p, session, "echo project > kept; echo home > ~/kept; echo tmp > /tmp/kept")
    expect(fetch(p, first), 0)
    begun = queue(p, session, "cat kept ~/kept /tmp/kept; echo more >> kept; sleep 60")
    time.sleep(0.5 * SLOW)
    here.end(signal.SIGKILL, -signal.SIGKILL)
    done = expect(fetch(p, queue(p, session, "cat kept ~/kept; ls /tmp")), 0)
    assert done.stdout == "project\nhome\n", done
    expect(fetch(p, begun), 125, "its worker was lost")
    there.end()


def workers(p):
    with sqlite3.connect(p.state / "bawn/store.db") as store:
        rows = store.execute("SELECT name FROM bawn_workers WHERE slots > 0").fetchall()
    store.close()
    return [name.rsplit("-", 1)[0] for name, in rows]


@case
def a_runner_that_is_killed_is_replaced_and_its_run_failed(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session)
    worker = Worker(p)
    begun()
    os.kill(worker.runner(), signal.SIGKILL)
    expect(fetch(p, run), 125, "the process that did the run was ended")
    output(fetch(p, queue(p, session, "echo next")), "next\n")
    worker.end()


@case
def a_worker_without_its_warden_ends_and_says_so(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session)
    worker = Worker(p)
    begun()
    family = worker.family()
    os.kill(worker.children()[0], signal.SIGKILL)
    assert "warden" in worker.join(125)
    wait_until(lambda: all(map(has_ended, family[1:])), 5, "all of it has ended")
    expect(fetch(p, run), 125, "warden")


# --- ends that are ---

@case
def a_worker_that_is_told_to_end_finishes_what_it_began_and_no_more(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session, "sleep 1; echo finished")
    after = queue(p, session, "echo after")
    worker = Worker(p)
    begun()
    worker.end()
    output(fetch(p, run), "finished\n")
    work(p)
    output(fetch(p, after), "after\n")


@case
def what_does_not_end_in_time_is_ended(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session, "sleep 60 & wait", "trap 'echo asked; exit 0' TERM; sleep 0.3")
    worker = Worker(p, "--drain", "0s")
    begun()
    began = time.monotonic()
    worker.end()
    done = fetch(p, run)
    assert "the worker was stopped while the command ran" in done.stderr and done.stdout == "asked\n", done
    run, begun = begin(p, session, before="trap '' TERM")
    worker = Worker(p)
    begun()
    worker.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    worker.end()
    expect(fetch(p, run), 125, "the worker was stopped while the command ran")
    assert time.monotonic() - began < 10 * SLOW


@case
def a_session_that_is_stopped_ends_what_a_worker_does_in_it(p):
    session = create(p, *spec(p))
    run, begun = begin(p, session)
    worker = Worker(p)
    begun()
    waiting = queue(p, session, "true")
    expect(p.run("session", "stop", session), 0)
    expect(fetch(p, run), 128 + signal.SIGTERM)
    expect(fetch(p, waiting), 125, "stopped")
    # As from another machine, where only the store can be told.
    run, begun = begin(p, session)
    begun()
    with sqlite3.connect(p.state / "bawn/store.db") as store:
        store.execute("UPDATE bawn_sessions SET state = 1 WHERE id = ?", (session,))
    store.close()
    done = fetch(p, run)
    assert done.returncode and "the session was stopped while the command ran" in done.stderr, done
    worker.end()


def mounted():
    return [name for name in place.descendants().values() if "bawn-workspace" in name]


@case
def a_session_stays_mounted_until_nobody_uses_it_or_it_is_stopped(p):
    first, second = create(p), create(p)
    worker = Worker(p, "--idle", f"{2 * SLOW}s")
    for session in (first, second, first):
        expect(fetch(p, queue(p, session, "true")), 0)
    assert len(mounted()) == 2, mounted()
    expect(p.run("session", "stop", first), 0)
    wait_until(lambda: len(mounted()) == 1, 5, "the stopped one is let go")
    wait_until(lambda: not mounted(), 10, "the other is, too")
    with sqlite3.connect(p.state / "bawn/store.db") as store:
        wait_until(lambda: store.execute("SELECT count(*) FROM bawn_sessions WHERE worker <> ''").fetchone() == (0,),
                   10, "the leases are given back")
    store.close()
    output(fetch(p, queue(p, second, "echo again")), "again\n")
    worker.end()


@case
def a_session_that_is_stopped_disturbs_no_other(p):
    first, second = create(p), create(p, *p.spec("limits: {pids: 60}\n"))
    worker = Worker(p, "--lease", f"{60 * SLOW}s")
    expect(fetch(p, queue(p, first, "true")), 0)
    # The runner that mounted the first is at work for the second, and the coordinator does not listen.
    other = queue(p, second, f"echo began > f; sleep {4 * SLOW}; cat f")
    wait_until(lambda: len(mounted()) == 2, 10, "the other is at work")
    os.kill(worker.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        expect(p.run("session", "stop", first), 0)
        assert time.monotonic() - began < 3 * SLOW, "who has nothing at work was waited for"
    finally:
        os.kill(worker.pid, signal.SIGCONT)
    output(fetch(p, other), "began\n")
    worker.end()


@case
def what_waits_for_the_next_run_has_nothing_of_the_last(p):
    session = create(p)
    worker = Worker(p)
    run = queue(p, session, "echo done")
    output(fetch(p, run), "done\n")
    wait_until(lambda: worker.children(worker.runner()), 5, "a cage that waits")
    folder = os.open(p.state / "bawn/runs" / run, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # Whoever looks at the run sees that it is over.
        wait_until(lambda: try_lock(folder), 5, "nobody has its folder locked")
    finally:
        os.close(folder)
    for pid in worker.children(worker.runner()):
        opened = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        assert not [path for path in opened if session in path or run in path], opened
    worker.end()


def leave_running(p, **more):
    """Two workers that are killed, one after the other, in a session whose processes outlive them."""
    session = create(p, *p.spec("session: {background: true}\n"))
    for script in ("sleep 1000 & echo one > f; sleep 1", "cat f"):
        worker = Worker(p, **more)
        run = queue(p, session, script)
        done = fetch(p, run)
        for pid in worker.family():
            with contextlib.suppress(ProcessLookupError):  # each ends with its parent
                os.kill(pid, signal.SIGKILL)
        worker.process.communicate()
    output(done, "one\n")
    return session


@case
def what_a_dead_worker_left_running_is_ended_by_the_next(p):
    session = leave_running(p)
    wait_until(lambda: len(mounted()) == 1, 5, "the first one's has ended")
    expect(p.run("session", "rm", session, "--yes"), 0)


@case
def what_a_dead_worker_left_running_ends_with_the_session(p):
    session = leave_running(p, **broken("left"))
    # The second lease has a copy: something may still write to the first one's workspace.
    assert len(mounted()) == 2, mounted()
    expect(p.run("session", "stop", session), 0)
    wait_until(lambda: not mounted(), 5, "both have ended")
    expect(p.run("session", "rm", session, "--yes"), 0)


@case
def a_project_that_is_gone_is_named(p):
    session = create(p, "--project", str(p.make("away")))
    (p.home / "away").rename(p.home / "gone")
    run = queue(p, session, "true")
    work(p)
    expect(fetch(p, run), 125, f"cannot use the session's project '{p.home}/away': No such file or directory")


@case
def nothing_stays_of_the_cages_that_waited(p):
    session = create(p)
    worker = Worker(p, "--slots", "1")
    expect(fetch(p, queue(p, session, "true")), 0)
    wait_until(lambda: worker.children(worker.runner()), 5, "a cage waits")
    pid = worker.children(worker.runner())[0]
    lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
    names = {line.rpartition("/")[2] for line in lines if "/bawn-" in line}
    assert names or p.uid != 0, lines
    worker.end()
    left = [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if os.path.basename(folder) in names]
    assert not left, left


# --- what runners have ---

@case
def only_the_coordinator_has_the_store(p):
    where = f"sqlite:{p.state}/of-my-own.db"
    worker = Worker(p, env={"BAWN_STORE": where})
    runner = worker.runner()

    def has_it(pid):
        names = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        return ("of-my-own" in pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace"),
                any("of-my-own" in name for name in names))

    wait_until(lambda: has_it(worker.pid) == (True, True), 5, "the store is open")
    assert has_it(runner) == (False, False), has_it(runner)
    assert has_it(worker.children()[0]) == (False, False)
    worker.end()


@case
def what_it_counts_is_in_a_file(p):
    session = create(p)
    for script in ("true", "exit 3"):
        queue(p, session, script)
    work(p, "--metrics", p.home / "metrics")
    text = (p.home / "metrics").read_text(encoding="utf-8")
    assert 'result="exited"} 2\n' in text, text


if __name__ == "__main__":
    main()
