"""What the suites of sessions share: one person's sessions, and commands in them."""

import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import sqlite3
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402

expect = cage.expect
ID = re.compile(r"[0-9a-f]{32}\n")


class Sessions:
    """What one person has of them."""

    def __init__(self, place):
        self.place = place
        self.state = place.state / "bawn"
        self.root = self.state / "sessions"

    def run(self, *words, **more):
        return self.place.run("session", *words, **more)

    def json(self, *words, status=0, **more):
        return json.loads(expect(self.run(*words, "--json", **more), status).stdout)

    def create(self, *words, **more):
        done = expect(self.run("create", *words, **more), 0)
        assert ID.fullmatch(done.stdout), done.stdout
        return done.stdout.strip()

    def workspace(self, id_):
        return self.root / id_ / "w" / "1"

    def fake(self, id_, files):
        """As if a command had written these to the project."""
        workspace = self.workspace(id_)
        upper = workspace / "layer" / "upper"
        self.place.make(upper)
        if not (workspace / "project").is_symlink():
            time.sleep(0.05)  # what is there is older than what is done
            (workspace / "project").symlink_to(self.place.project)
            os.lchown(workspace / "project", self.place.uid, self.place.uid)
        for name, text in files.items():
            self.place.write(upper / name, text)

    def events(self):
        path = self.state / "log" / "events.jsonl"
        events = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(event["type"], event["session"], event.get("why")) for event in events]

    def names(self):
        return sorted(path.name for path in self.root.iterdir() if path.name != "id") if self.root.exists() else []

    def expire(self, *ids):
        """As if nobody had used them for a day."""
        with contextlib.closing(sqlite3.connect(self.state / "store.db")) as store:
            for id_ in ids:
                store.execute("update bawn_sessions set used_ms = used_ms - 86400000 where id = ?", (id_,))
            store.commit()
        self.own()

    def own(self):
        """What root looked into is the person's all the same."""
        for path in self.state.glob("store.db*"):
            os.chown(path, self.place.uid, self.place.uid)

    @contextlib.contextmanager
    def busy(self, id_):
        """While somebody is at work in it who does not know how to stop."""
        with open(self.workspace(id_) / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield


# --- commands in them ---

class Session:
    """One session, and what runs in it."""

    def __init__(self, place, *options, **more):
        self.place, self.all = place, Sessions(place)
        self.id = self.all.create(*options, **more)
        self.workspace = self.all.workspace(self.id)
        self.layer = self.workspace / "layer" / "upper"

    def exec(self, *words, options=(), **more):
        return self.place.run("session", "exec", self.id, *options, "--", *words, **more)

    def sh(self, script, *options, **more):
        return self.exec("sh", "-c", script, options=options, **more)

    def says(self, script, *options, **more):
        """What a script prints, which ends well."""
        return expect(self.sh(script, *options, **more), 0).stdout.strip()

    def start(self, script, *options, first=":", **more):
        """A script that goes on, from when it has done the first of it and said so."""
        process = self.begin(f"{first}; echo here; {script}", *options, **more)
        line = process.stdout.readline()
        if line != b"here\n":
            raise AssertionError(f"not started: {line!r} {process.stderr.read()!r}")
        return process

    def begin(self, script, *options, **more):
        return self.place.start("session", "exec", self.id, *options, "--", "sh", "-c", script, **more)

    def stop(self):
        return self.all.run("stop", self.id)

    def records(self):
        return [record for record in self.place.records() if record.get("session") == self.id]


def finish(process, seconds=20):
    """How one that was started ended; as of run()."""
    out, err = process.communicate(timeout=seconds * cage.SLOW)
    return cage.subprocess.CompletedProcess(process.args, process.returncode, cage.decode(out), cage.decode(err))


def named(name):
    """Pids of descendants with this name."""
    return [pid for pid, said in cage.descendants().items() if said.startswith(f"({name})")]


def workspaces():
    """Those processes that have a session's workspace mounted."""
    return named("bawn-workspace")


def describe():
    """What is left, and what it waits for."""
    said = cage.descendants()
    for pid in said:
        with contextlib.suppress(OSError):
            said[pid] += " in " + pathlib.Path(f"/proc/{pid}/wchan").read_text()
    return said


def settle():
    """Until nothing of ours is left: what has a workspace mounted goes by itself, and soon."""
    end = time.monotonic() + 20 * cage.SLOW
    while cage.descendants():
        assert time.monotonic() < end, f"processes are left: {describe()}"
        time.sleep(0.005)


def end_rest():
    """After a case that failed, for the next."""
    while cage.descendants():
        for pid in cage.descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def case(function):
    """A case after which nothing may go on."""
    def run(place):
        try:
            function(place)
        except BaseException:
            end_rest()
            raise
        settle()
    run.__name__ = function.__name__
    return cage.case(run)


def main():
    """Root's half is a choice unless all is asked for: what is a user's is the same code with fewer rights."""
    is_all = "--all" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--all"]
    for function in cage.CASES:
        if not is_all and not getattr(function, "is_for_root", False) and not hasattr(function, "is_for"):
            cage.of_users(function)
    cage.main()


def for_root(function):
    """Root's cages are another matter here, and in every run of the tests."""
    function.is_for_root = True
    return function
