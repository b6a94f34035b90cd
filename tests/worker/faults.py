#!/usr/bin/env python3
"""Workers that are killed, paused and cut off while they work: every run is done once or reported as not done.

    faults.py BAWN PG [--all] [--seed N] [PART OF A NAME]        prints TAP

PG is the bawn that knows PostgreSQL; the server is the test's own. What happens is chosen by a seed, and when by
how much was done, so that a slow machine sees the same faults. Without --all it is a slice of half a minute.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("bawn")
    parser.add_argument("pg")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("parts", nargs="*")
    return parser.parse_intermixed_args()


OPTIONS = parse()  # before a folder is made
HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage"), str(HERE.parent / "store")]
import invariants  # noqa: E402
import place  # noqa: E402
import postgres  # noqa: E402
import steps  # noqa: E402
import witness  # noqa: E402
from crowd import Crowd, signal_it  # noqa: E402
from invariants import CANCELLED, ENDED, FAILED, LOST, QUEUED, RUNNING, Change, Lease, Run  # noqa: E402
from place import FILES, Skip, case, of_users  # noqa: E402

LEASE = 3
SKEW = FILES / "skew.so"
SERVER = postgres.Server()


def of_all(function):
    """A case that is not in the slice."""
    if OPTIONS.all:
        case(function)
    return function


# --- faults in a crowd ---

class Chaos:
    """Faults, one after the other; each ends with as many workers as there were, and the database there."""

    def __init__(self, crowd, seed, options):
        self.crowd, self.random, self.options = crowd, random.Random(seed), options
        self.skews = []
        self.done = []

    def start(self):
        """A worker; every second one has a clock of its own, which is wrong."""
        env = None
        if OPTIONS.all and self.crowd.numbers % 2:
            path = self.crowd.place.write(f"skew{self.crowd.numbers}", bytes(8))
            self.skews.append(path)
            self.skew(path)
            env = {"LD_PRELOAD": str(SKEW), "BAWN_TEST_SKEW": str(path)}
        worker = self.crowd.start(*self.options, env=env)
        # One that finds no database ends at once, as it should: it is there before the next fault.
        self.crowd.wait_for(f"{worker.name} is there", lambda: self.crowd.client.ask(
            f"SELECT 1 FROM bawn_workers WHERE name LIKE '{worker.name}-%'"))
        return worker

    def replace(self, worker):
        self.crowd.bury(worker)
        self.start()

    def choose(self):
        return self.random.choice(self.crowd.workers)

    # Workers.

    def kill(self):
        time.sleep(self.random.random() * 0.3)
        self.replace(self.choose())

    def kill_busy(self):
        """Whoever has just taken a run."""
        found = []

        def look():
            rows = self.crowd.client.ask("SELECT worker FROM bawn_runs WHERE state = 1 ORDER BY taken_ms DESC LIMIT 1")
            found[:] = [worker for row in rows for worker in [self.crowd.find(row[0])] if worker]
            return found or not self.has_work()

        self.crowd.wait_for("a run is taken", look)
        self.replace(found[0] if found else self.choose())

    def has_work(self):
        return self.crowd.client.ask_one("SELECT count(*) FROM bawn_runs WHERE state < 2") != "0"

    def kill_at_gate(self, name):
        """Whoever comes there, in the middle of what it writes."""
        with witness.Gate(self.crowd.server, self.crowd.url, name) as gate:
            # What never comes there within a lease may have nothing to do there.
            found = gate.wait_for(self.crowd.lease)
            worker = self.crowd.find(found) if found else None
            if worker:
                self.crowd.bury(worker)
        if worker:
            self.start()
        else:
            self.done[-1] += " (nobody)"

    def kill_runner(self):
        for worker in self.random.sample(self.crowd.workers, len(self.crowd.workers)):
            runners = worker.runners()
            if runners and signal_it(self.random.choice(runners), signal.SIGKILL):
                return

    def kill_warden(self):
        worker = self.choose()
        self.crowd.workers.remove(worker)
        os.kill(worker.warden(), signal.SIGKILL)
        worker.join(125)
        self.start()

    def end(self):
        worker = self.choose()
        self.crowd.workers.remove(worker)
        worker.end()
        self.start()

    def pause(self, whole):
        """One that has a run, until that is another's, or lost."""
        worker, had = self.stop_busy(whole)
        try:
            # Its lease is over by the store's clock, and those runs are on record as lost by others.
            self.crowd.wait_for(f"{worker.name} is given up", lambda: self.is_given_up(worker))
        finally:
            worker.go_on()
        self.crowd.wait_for(f"{worker.name} is awake", lambda: not self.is_given_up(worker))
        self.done[-1] += f" ({len(had)} runs)"

    def stop_busy(self, whole, tries=100):
        """What it has is known when it has been stopped; if that is nothing, it is let go on, and another is tried."""
        while True:
            worker = self.choose()
            worker.stop(whole)
            had = self.crowd.runs_of(worker)
            tries -= 1
            # At the end of the queue what is left may wait for the lease of one that was killed.
            if had or not tries or not self.has_work():
                return worker, had
            worker.go_on()
            time.sleep(self.random.random() * 0.05)

    def is_given_up(self, worker):
        late, left = self.crowd.client.ask(
            "SELECT (SELECT count(*) FROM bawn_workers WHERE name LIKE '{0}-%' AND seen_ms + lease_ms + 200 < "
            "extract(epoch FROM clock_timestamp()) * 1000), (SELECT count(*) FROM bawn_runs WHERE state = 1 AND "
            "worker LIKE '{0}-%' AND taken_ms + {1} < extract(epoch FROM clock_timestamp()) * 1000)".format(
                worker.name, self.crowd.lease * 1000))[0]
        return late == "1" and left == "0"

    def skew(self, path):
        path.write_bytes(self.random.choice((-86400, -3600, 3600, 86400)).to_bytes(8, sys.byteorder, signed=True))

    def jump(self):
        """Their clocks, to another wrong time."""
        for path in self.skews:
            self.skew(path)

    # The database.

    def restart(self, how):
        self.crowd.server.stop(how)
        time.sleep(self.random.random())
        self.crowd.server.start()

    def cut_connections(self):
        self.crowd.client.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                              "WHERE datname = current_database() AND pid <> pg_backend_pid()")

    def freeze_database(self):
        """It is there and does not answer, past all leases."""
        server = self.crowd.server.process.pid
        stopped = []
        for pid in [server, *children(server)]:
            if signal_it(pid, signal.SIGSTOP):
                stopped.append(pid)
        time.sleep(self.crowd.lease * 1.2)
        for pid in reversed(stopped):
            signal_it(pid, signal.SIGCONT)

    # The disk.

    def fill(self):
        # What is begun now fails soon; not all of it is to.
        enough, end = self.crowd.count_finished() + 15, time.monotonic() + 3
        make_full(self.crowd.place.state)
        while self.crowd.count_finished() < enough and time.monotonic() < end:
            time.sleep(0.02)
        assert resize(self.crowd.place.state, SIZE)

    def run(self, faults, runs):
        """Evenly over as many finished runs."""
        for number, (name, *args) in enumerate(faults, 1):
            self.crowd.wait_for_finished(number * runs // (len(faults) + 1))
            self.done.append(" ".join([name, *map(str, args)]))
            getattr(self, name)(*args)


def children(pid):
    found = []
    for task in pathlib.Path("/proc", str(pid), "task").iterdir():
        found += map(int, (task / "children").read_text().split())
    return found


SIZE = "512m"


def resize(folder, size):
    """A folder with a disk of its own."""
    done = subprocess.run(["mount", "-o", f"remount,size={size}", folder], capture_output=True, check=False)
    return done.returncode == 0


def make_full(folder):
    """Nothing more fits in. What is written meanwhile may be more than there would be room for."""
    while True:
        now = os.statvfs(folder)
        if resize(folder, (now.f_blocks - now.f_bfree) * now.f_frsize):
            return


@contextlib.contextmanager
def small_disk(folder, uid):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},uid={uid},gid={uid},mode=755", "none", folder],
                   check=True)
    try:
        try:
            os.setxattr(folder, "user.test", b"1")
        except OSError as e:
            raise Skip(f"no workspace can be on a tmpfs of this kernel: {e}") from None
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def check_chaos(crowd, chaos, runs):
    crowd.wait_for_all()
    crowd.make_up(runs)
    known = crowd.check()
    count = {name: sum(x.state == state for x in known) for name, state in
             (("ended", ENDED), ("failed", FAILED), ("lost", LOST), ("cancelled", CANCELLED))}
    print(f"# {len(known)} runs: {count}; leases lost {len(crowd.events('lease_lost'))}, "
          f"results refused {len(crowd.events('result_refused'))}")
    print("# " + ", ".join(chaos.done))
    for error, number in crowd.errors():
        print(f"# {number} failed: {error}")
    # What is interrupted is what was running then; a test in which little else is left says nothing.
    assert len(known) >= runs and count["ended"] > runs // 2, count
    assert not chaos.skews or crowd.count_skewed(), "all clocks were right"
    crowd.remove_all()
    crowd.check_groups(known)


def in_a_crowd(p, faults, runs, sessions, workers, slots):
    with Crowd(p, SERVER, sessions, LEASE) as crowd:
        chaos = Chaos(crowd, OPTIONS.seed, ["--slots", str(slots), "--idle", "2s"])
        for _ in range(workers):
            chaos.start()
        crowd.feed(runs, 2, chaos.random.choice)
        chaos.run(faults, runs)
        check_chaos(crowd, chaos, runs)


SLICE = [("kill",), ("pause", True), ("restart", signal.SIGINT), ("kill_busy",)]

EVERY_FAULT = [("kill",), ("kill_busy",), ("kill_runner",), ("kill_warden",), ("end",), ("pause", True),
               ("pause", False), ("jump",), ("restart", signal.SIGINT), ("restart", signal.SIGQUIT),
               ("cut_connections",), ("freeze_database",), *(("kill_at_gate", name) for name in witness.GATES)]


@case
def a_few_faults(p):
    runs, sessions = (150, 10) if p.uid else (40, 5)
    in_a_crowd(p, SLICE if p.uid else SLICE[:3:2], runs, sessions, 3, 2)


@of_all
@of_users
def all_faults_2000_runs(p):
    faults = 4 * EVERY_FAULT + 12 * [("kill",)] + 8 * [("kill_busy",)]
    random.Random(OPTIONS.seed).shuffle(faults)
    in_a_crowd(p, faults, 2000, 40, 4, 2)


@of_all
def a_disk_that_is_full(p):
    if os.geteuid() != 0:
        raise Skip("only root can make a small disk")
    with small_disk(p.state, p.uid):
        in_a_crowd(p, [("fill",), ("kill",), ("fill",), ("pause", True), ("fill",)], 200, 12, 3, 2)


# --- every step ---

def at_step(function):
    def alone(p):
        with Crowd(p, SERVER, 1, 2, steps.make_spec(p)) as crowd:
            function(crowd)
            known = crowd.check()
            crowd.remove_all()
            crowd.check_groups(known)
    alone.__name__ = function.__name__
    of_all(of_users(alone))


for step in steps.STEPS:
    at_step(step)


# --- that what is checked can be wrong ---

class Idlers:
    """Stands in for a crowd, and its only worker: there is work, and it has none of it."""

    def __init__(self):
        self.workers, self.client, self.is_stopped = [self], self, False

    def stop(self, _whole):
        self.is_stopped = True

    def go_on(self):
        self.is_stopped = False

    def runs_of(self, _worker):
        return []

    def ask_one(self, _text):
        return "1"


@case
@of_users
def whoever_is_paused_has_been_stopped(_p):
    worker, had = Chaos(Idlers(), OPTIONS.seed, []).stop_busy(True, tries=3)
    assert worker.is_stopped and not had


@case
@of_users
def what_is_checked_can_be_wrong(_p):
    good = [Run("r1", "s", "a", ENDED, 0, 1, "w"), Run("r2", "s", "b", LOST, 0, 1, "w"),
            Run("r3", "s", "c", ENDED, 0, 2, "v")]
    lines = ["a begins", "a ends", "b begins", "c begins", "c ends"]
    assert not invariants.miscounted(good, lines) and not invariants.disordered(good, lines)
    assert not invariants.miscounted(good, lines[:2] + lines[3:])
    for wrong in (lines[1:], lines + ["c ends"], ["b begins"] + lines, lines + ["d begins"], []):
        assert invariants.miscounted(good, wrong), wrong
    for wrong in (lines + ["b ends"], ["b begins"] + lines[:2] + lines[3:], ["a begins", "b begins", "a ends"]):
        assert invariants.disordered(good, wrong), wrong
    never = [Run("r4", "s", "d", CANCELLED, 0, 0, "")]
    assert invariants.miscounted(never, ["d begins"]) and not invariants.miscounted(never, [])
    assert not invariants.unfinished(good) and not invariants.unordered_tokens(good)
    for state in (QUEUED, RUNNING):
        assert invariants.unfinished([good[0]._replace(state=state)])
    assert invariants.unordered_tokens(good[::-1])
    assert invariants.unknown(good, ["r1", "r9"]) and not invariants.unknown(good, ["r1"])
    changes = [Change(x.id, was, now, x.token, x.worker, x.token, x.worker) for x in good
               for was, now in ((QUEUED, RUNNING), (RUNNING, x.state))]
    assert not invariants.not_once(good, changes) and not invariants.fenced(changes)
    for wrong in (changes[:-1], changes + changes[:1], changes + changes[-1:], changes[1:]):
        assert invariants.not_once(good, wrong)
    for wrong in ({"newest": 2}, {"holder": "v"}, {"holder": ""}):
        assert invariants.fenced([changes[1]._replace(**wrong)]), wrong
        assert not invariants.fenced([changes[3]._replace(**wrong)])
    assert not invariants.backward([Lease("s", 1, 2, 1, 1), Lease("s", 2, 2, 1, 2)])
    assert invariants.backward([Lease("s", 2, 1, 1, 1)]) and invariants.backward([Lease("s", 2, 2, 1, 3)])


# --- the suite ---

def apart():
    """In mounts of our own, where we may make some: a disk that is full is nobody else's."""
    if OPTIONS.all and os.geteuid() == 0 and "BAWN_TEST_APART" not in os.environ:
        shutil.rmtree(FILES)
        shutil.rmtree(SERVER.top)
        os.environ["BAWN_TEST_APART"] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


def prepare():
    """The programs, one of which becomes the other; and the wrong clock."""
    shutil.copy(OPTIONS.bawn, FILES / "bawn")
    shutil.copy(OPTIONS.pg, FILES / "bawn-pg")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-O1", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", SKEW, HERE / "skew.c"], check=True)
    FILES.chmod(0o755)


def left_by(look):
    """What is left by runs: the server is ours, and stays."""
    def without_server():
        server = SERVER.process.pid if SERVER.process else 0
        ours = [server, *children(server)] if server else []
        return {pid: name for pid, name in look().items() if pid not in ours}
    return without_server


if __name__ == "__main__":
    apart()
    place.prepare, place.descendants = prepare, left_by(place.descendants)
    sys.argv[3:] = OPTIONS.parts
    with SERVER:
        place.main()
