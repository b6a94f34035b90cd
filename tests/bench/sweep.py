"""Sweeping many expired sessions, against rm -rf of as many folders with the same in them.

bawn also asks the store about each, tells it, and writes an event; rm only removes. In memory where there is room: a disk
would be what is measured.
"""

import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import tempfile

from project import seconds

ROUNDS = 5
COUNT = 10000
FILES = {"home": ("notes", ".config/tool/settings", ".cache/a/b"), "tmp": ("build.log",),
         "layer/upper": ("README", "src/main.c", "src/lib/util.c")}


def fill(folder):
    """What a short session leaves in its workspace."""
    for top, names in FILES.items():
        for name in names:
            path = os.path.join(folder, top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write("x" * 200)


def make_folder(root, id_):
    workspace = os.path.join(root, id_, "w", "1")
    os.makedirs(workspace, 0o700)
    for path in (os.path.join(root, id_, "spec.json"), os.path.join(workspace, "lock")):
        with open(path, "w", encoding="ascii"):
            pass
    fill(workspace)


def make_sessions(options, state, env):
    """As many as there are to be, all expired, as `session create` and a few commands leave them."""
    root = state / "bawn" / "sessions"
    project = state / "project"
    project.mkdir()
    made = json.loads(subprocess.run([options.bawn, "session", "create", "--json"], env=env, cwd=project, check=True,
                                     stdout=subprocess.PIPE).stdout)
    ids = [f"{number:032x}" for number in range(1, COUNT + 1)]
    with contextlib.closing(sqlite3.connect(state / "bawn" / "store.db")) as store:
        columns = [row[1] for row in store.execute("pragma table_info(bawn_sessions)")]
        row = dict(zip(columns, store.execute("select * from bawn_sessions where id = ?",
                                              (made["session"],)).fetchone()))
        row.update(used_ms=row["used_ms"] - 86400000)
        del row["seq"]
        names, marks = ", ".join(row), ", ".join("?" * len(row))
        store.executemany(f"insert into bawn_sessions ({names}) values ({marks})",
                          ([*{**row, "id": id_}.values()] for id_ in ids))
        store.commit()
    for id_ in ids:
        make_folder(root, id_)


def measure(options, top, number):
    state = top / f"state-{number}"
    state.mkdir(mode=0o700)
    env = {"PATH": os.defpath, "HOME": str(state), "XDG_STATE_HOME": str(state)}
    make_sessions(options, state, env)
    other = top / f"other-{number}"
    other.mkdir()
    for i in range(1, COUNT + 1):
        make_folder(other, f"{i:032x}")
    os.sync()
    turns = [lambda: seconds(["rm", "-rf", other]),
             lambda: seconds([options.bawn, "session", "sweep", "--discard", "-q"], env=env, cwd=state)]
    if number % 2:
        ours, theirs = turns[1](), turns[0]()
    else:
        theirs, ours = turns[0](), turns[1]()
    left = len(os.listdir(state / "bawn" / "sessions"))
    if left != 2:  # its id, and the session that is not expired
        raise SystemExit(f"the sweep left {left - 2} sessions")
    shutil.rmtree(state)
    return ours, theirs


def show(options):
    print(f"Sweeping {COUNT:,} expired sessions, and rm -rf of as many folders in turn", flush=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="bawn-bench.", dir=memory) as folder:
        found = [measure(options, pathlib.Path(folder), number) for number in range(ROUNDS)]
    ours, theirs = (statistics.median(times) for times in zip(*found))
    ratio = statistics.median(theirs / ours for ours, theirs in found)
    verdict = "ok" if ratio >= 1 else "missed"
    print(f"  sweep {ours * 1000:8.0f} ms  rm -rf {theirs * 1000:8.0f} ms   speed {ratio:6.2f}, at least 1.0: {verdict}",
          flush=True)
