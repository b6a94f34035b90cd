"""Sessions with runs to be done, workers that do them, and all that is known of both."""

import base64
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import invariants
import place
import witness
from place import SLOW, wait_until

PATIENCE = 120 * SLOW  # for something to happen at all, on a machine that is busy


class Worker:
    """A process of the crowd's; its name in the store begins with its own."""

    def __init__(self, crowd, name, *options, env=None):
        self.crowd, self.name, self.stopped = crowd, name, []
        self.said = crowd.place.top / f"{name}.said"
        with open(self.said, "wb") as said:
            self.process = crowd.place.start("worker", "--name", name, "--lease", f"{crowd.lease}s", "--sweep", "0s",
                                             *options, env={**crowd.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                             stdout=said, stderr=said)
        self.pid = self.process.pid

    def family(self):
        """What descends from it, it first."""
        below = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    stat = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
                except OSError:
                    continue
                below.setdefault(int(stat[stat.rindex(")") + 2:].split()[1]), []).append(int(entry))
        found = [self.pid]
        for pid in found:
            found += below.get(pid, [])
        return found

    def warden(self):
        wait_until(lambda: self.family()[1:], 20, "a warden")
        return self.family()[1]

    def runners(self):
        """Children of the warden."""
        warden = self.warden()
        return [pid for pid in self.family() if parent(pid) == warden]

    def is_there(self):
        return self.process.poll() is None

    def kill(self):
        """At once, all of it: what it started has to go by itself."""
        family = self.family()
        os.kill(self.pid, signal.SIGKILL)
        self.process.wait()
        wait_until(lambda: all(map(has_ended, family)), 30, f"all of {self.name} has ended")

    def stop(self, whole):
        """Freezes it; whole: with all that it started, as a machine does."""
        while True:
            fresh = [pid for pid in (self.family() if whole else [self.pid]) if pid not in self.stopped]
            if not fresh:
                return
            for pid in fresh:
                if signal_it(pid, signal.SIGSTOP):
                    self.stopped.append(pid)

    def go_on(self):
        for pid in reversed(self.stopped):
            signal_it(pid, signal.SIGCONT)
        self.stopped = []

    def end(self, status=0):
        """Told to, it ends well."""
        self.process.send_signal(signal.SIGTERM)
        self.join(status)

    def join(self, status):
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end: {self.tail()}") from None
        assert self.process.returncode == status, f"{self.name}: {self.process.returncode}, not {status}: {self.tail()}"

    def tail(self):
        return self.said.read_text(errors="replace")[-600:]


def signal_it(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def parent(pid):
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return 0
    return int(stat[stat.rindex(")") + 2:].split()[1])


def has_ended(pid):
    try:
        stat = pathlib.Path("/proc", str(pid), "stat").read_text(errors="replace")
    except OSError:
        return True
    return stat[stat.rindex(")") + 2] == "Z"


def read_record(text):
    """The first statement, out of its envelope."""
    return json.loads(base64.b64decode(json.loads(text.splitlines()[0])["payload"]))


def is_record_of(run, text):
    try:
        return run in json.dumps(read_record(text))
    except (IndexError, KeyError, ValueError):
        return False


class Crowd:
    """With a database of its own. Whatever happens, no process of it is left when one leaves it."""

    def __init__(self, p, server, sessions, lease, spec=()):
        self.place, self.server, self.lease = p, server, lease * SLOW
        self.url = server.make_database()
        self.env = {"BAWN_STORE": self.url}
        self.client = witness.Client(server, self.url)
        self.workers, self.started, self.numbers = [], [], 0
        self.acknowledged, self.labels = [], 0
        self.lock = threading.Lock()
        self.feeders, self.is_over, self.failure = [], False, None
        self.waiting = []  # (label, process of `session exec --queue --wait`)
        self.sessions = [self.do("session", "create", *spec).strip() for _ in range(sessions)]
        witness.install(self.client)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.is_over = True
        for feeder in self.feeders:
            feeder.join()
        for worker in self.started:
            if worker.is_there():
                family = worker.family()
                for pid in family:
                    signal_it(pid, signal.SIGKILL)
                worker.process.wait()
        for _, process in self.waiting:
            process.kill()
            process.communicate()
        self.client.close()

    def bawn(self, *args):
        """To its end, however long the database is away."""
        process = self.place.start(*args, env=self.env)
        try:
            out, err = process.communicate(b"", timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"still running: {args}") from None
        return subprocess.CompletedProcess(args, process.returncode, place.decode(out), place.decode(err))

    def do(self, *args):
        """The same, which goes well; what it prints."""
        done = self.bawn(*args)
        assert done.returncode == 0, done
        return done.stdout

    # --- runs ---

    def next_label(self):
        with self.lock:
            self.labels += 1
            return f"run{self.labels:05}"

    def queue(self, session, text=None, pause="0"):
        """The id of a run, or None where bawn could not say that it is queued; and its label."""
        label = self.next_label()
        done = self.bawn("session", "exec", session, "--queue", "--", "sh", "-c",
                         text.format(label=label) if text else invariants.script(label, pause))
        if done.returncode != 0:
            # What libpq says while it connects comes before the sentence, and a hint behind it.
            assert re.search("^bawn: cannot ", done.stderr, re.M), done
            assert not done.stdout, done
            return None, label
        with self.lock:
            self.acknowledged.append(done.stdout.strip())
        return done.stdout.strip(), label

    def queue_and_wait(self, session):
        label = self.next_label()
        process = self.place.start("session", "exec", session, "--queue", "--wait", "--", "sh", "-c",
                                   f"{invariants.script(label)} && echo {label}", env=self.env)
        with self.lock:
            self.waiting.append((label, process))

    def feed(self, runs, threads, choice):
        """Queues that many, round and round the sessions, a few at a time; who is refused tries again."""
        numbers = iter(range(runs))

        def work():
            try:
                queue_next()
            except Exception as e:
                self.failure = e

        def queue_next():
            while not self.is_over:
                with self.lock:
                    number = next(numbers, None)
                    pause = choice(("0", "0", "0", "0.01", "0.05", "0.2"))
                if number is None:
                    return
                session = self.sessions[number % len(self.sessions)]
                if number % 50 == 49:
                    self.queue_and_wait(session)
                    continue
                while self.queue(session, pause=pause)[0] is None and not self.is_over:
                    time.sleep(0.1)

        self.feeders = [threading.Thread(target=work) for _ in range(threads)]
        for feeder in self.feeders:
            feeder.start()

    def count_finished(self):
        try:
            return int(self.client.ask_one("SELECT count(*) FROM bawn_runs WHERE state >= 2"))
        except witness.Cut:
            return 0

    def wait_for(self, what, is_so):
        """As long as it takes, if runs are finished meanwhile."""
        finished, end = -1, time.monotonic() + PATIENCE
        while not is_so():
            self.check_workers()
            now = self.count_finished()
            if now > finished:
                finished, end = now, time.monotonic() + PATIENCE
            assert time.monotonic() < end, f"never: {what}; {finished} runs were finished\n{self.describe()}"
            time.sleep(0.05)

    def check_workers(self):
        if self.failure:
            raise self.failure
        for worker in self.workers:
            assert worker.is_there(), f"{worker.name} has ended by itself: {worker.process.returncode}: {worker.tail()}"

    def describe(self):
        rows = self.client.ask("SELECT state, worker, count(*) FROM bawn_runs GROUP BY 1, 2 ORDER BY 1, 2")
        said = "".join(f"{worker.name}: {worker.tail()[-200:]}\n" for worker in self.workers)
        return "\n".join(map(" ".join, rows)) + "\n" + said

    def wait_for_finished(self, number):
        self.wait_for(f"{number} runs are finished", lambda: self.count_finished() >= number)

    def wait_for_all(self):
        self.wait_for("all are queued", lambda: not any(feeder.is_alive() for feeder in self.feeders))
        for label, process in self.waiting:
            self.wait_for(f"{label} is waited for", lambda process=process: process.poll() is not None)
        self.wait_for("all are finished", lambda: self.client.ask_one(
            "SELECT count(*) FROM bawn_runs WHERE state < 2") == "0")

    def make_up(self, runs):
        """For those who would have waited, and could not queue: the database was away just then."""
        missing = runs - int(self.client.ask_one("SELECT count(*) FROM bawn_runs"))
        for number in range(missing):
            self.queue(self.sessions[number % len(self.sessions)])
        self.wait_for_all()

    def state_of(self, run):
        return int(self.client.ask_one(f"SELECT state FROM bawn_runs WHERE id = '{run}'"))

    # --- workers ---

    def start(self, *options, env=None):
        self.numbers += 1
        worker = Worker(self, f"w{self.numbers}", *options, env=env)
        self.workers.append(worker)
        self.started.append(worker)
        return worker

    def find(self, name):
        """By a name of the store's; None: it is not one of ours any more."""
        return next((worker for worker in self.workers if name.rsplit("-", 1)[0] == worker.name), None)

    def bury(self, worker):
        worker.kill()
        self.workers.remove(worker)

    def runs_of(self, worker):
        rows = self.client.ask(f"SELECT id FROM bawn_runs WHERE state = 1 AND worker LIKE '{worker.name}-%'")
        return [row[0] for row in rows]

    # --- what is known in the end ---

    def runs(self):
        rows = self.client.ask("SELECT id, session, substring(convert_from(request, 'UTF8') from 'run[0-9]{5}'), "
                               "state, status, token, worker FROM bawn_runs ORDER BY seq")
        return [invariants.Run(*row[:3], *map(int, row[3:6]), row[6]) for row in rows]

    def changes(self):
        rows = self.client.ask("SELECT run, was, is_now, token, worker, newest, holder FROM test_runs ORDER BY seq")
        return [invariants.Change(row[0], *map(int, row[1:4]), row[4], int(row[5]), row[6]) for row in rows]

    def leases(self):
        rows = self.client.ask("SELECT session, was, is_now, workspace, moved FROM test_leases ORDER BY seq")
        return [invariants.Lease(row[0], *map(int, row[1:])) for row in rows]

    def errors(self):
        """Why runs failed, and how many."""
        return self.client.ask("SELECT translate(convert_from(error, 'UTF8'), E'\\t\\n', '  ') AS why, count(*) "
                               f"FROM bawn_runs WHERE state = {invariants.FAILED} GROUP BY why ORDER BY 2 DESC")

    def list_files(self, session):
        """The lines of both files of a session, by a run in it."""
        printed = self.do("session", "exec", session, "--", "sh", "-c",
                          "cat list 2>/dev/null; echo ---; cat ~/list 2>/dev/null; true")
        project, home = printed.split("---\n")
        return project.splitlines(), home.splitlines()

    def read_workspace(self, session):
        """All lines of files of that name that are on the disk: what a run wrote that is not over yet."""
        root = self.place.state / "bawn/sessions" / session / "w"
        return [line for path in root.rglob("list") if path.is_file()
                for line in path.read_text(errors="replace").splitlines()]

    def check(self):
        """All that must be so; the runs."""
        runs, changes, wrong = self.runs(), self.changes(), []
        wrong += invariants.unfinished(runs) + invariants.unknown(runs, self.acknowledged)
        wrong += invariants.not_once(runs, changes) + invariants.fenced(changes) + invariants.backward(self.leases())
        for session in self.sessions:
            own = [x for x in runs if x.session == session]
            wrong += invariants.unordered_tokens(own)
            for lines in self.list_files(session):
                wrong += invariants.miscounted(own, lines) + invariants.disordered(own, lines)
        wrong += self.check_waiting(runs) + self.check_records(runs)
        assert not wrong, f"{len(wrong)} are wrong:\n" + "\n".join(wrong[:30])
        return runs

    def check_waiting(self, runs):
        """Who waited was told what the store says; or that the run could not be queued."""
        wrong, of = [], {x.label: x for x in runs}
        for label, process in self.waiting:
            out, err = map(place.decode, process.communicate())
            x = of.get(label)
            if process.returncode == 125 and re.search("^bawn: cannot .*(connection|PostgreSQL)", err, re.M):
                continue
            if x is None:
                wrong.append(f"who waited for {label} was told {process.returncode} {err!r}, and it is not known")
                continue
            said = (process.returncode == 0, out == f"{label}\n")
            is_good = x.state == invariants.ENDED and x.status == 0
            # Where a disk was full, a command may have run whose log could not be written: then it is 125, whatever it said.
            is_unrecorded = x.state == invariants.ENDED and x.status == process.returncode == 125
            if said != (is_good, is_good) and not is_unrecorded:
                wrong.append(f"who waited for {label} was told {process.returncode} {out!r} {err!r}; it is {x}")
        self.waiting = []
        return wrong

    def check_records(self, runs):
        """What ended has its record, in the store; of its own run."""
        rows = self.client.ask(f"SELECT id, encode(record, 'hex') FROM bawn_runs WHERE state = {invariants.ENDED}")
        wrong = [f"run {run} ended, and its record is not its own" for run, record in rows
                 if not is_record_of(run, bytes.fromhex(record))]
        assert len(rows) == sum(x.state == invariants.ENDED for x in runs)
        return wrong

    def count_skewed(self):
        """Records of a time that is none of the database's, by at least half an hour."""
        rows = self.client.ask("SELECT encode(record, 'hex'), queued_ms FROM bawn_runs "
                               f"WHERE state = {invariants.ENDED}")
        began = [(read_record(bytes.fromhex(record))["predicate"]["began"], int(ms)) for record, ms in rows]
        return sum(abs(datetime.datetime.fromisoformat(text).timestamp() * 1000 - ms) > 1800000 for text, ms in began)

    def remove_all(self):
        """After it nothing of a session is left, on the disk or in the store."""
        for worker in self.workers:
            worker.end()
        self.workers = []
        for session in self.sessions:
            self.do("session", "rm", session, "--yes")
        root = self.place.state / "bawn/sessions"
        left = [path.name for path in root.iterdir() if path.name != "id"]
        assert not left, f"of sessions there is left: {left}"
        rows = self.client.ask("SELECT (SELECT count(*) FROM bawn_sessions), (SELECT count(*) FROM bawn_saved)")
        assert rows == [["0", "0"]], rows

    def check_groups(self, runs):
        """No cgroup of a run is left."""
        names = {f"bawn-{x.id}" for x in runs}
        for line in place.mounts():
            if re.search(" - cgroup2? ", line):
                for folder, folders, _ in os.walk(line.split(" ")[3]):
                    left = names.intersection(folders)
                    assert not left, f"cgroups are left in {folder}: {left}"

    def events(self, kind):
        lines = (self.place.state / "bawn/log/events.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["type"] == kind]
