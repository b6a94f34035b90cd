#!/usr/bin/env python3
"""What a store promises, on every kind of store there is: SQLite as root and as a user, and PostgreSQL.

    run.py BAWN FOLDER [WORD...]       prints TAP; FOLDER has the test programs; cases with all of the words
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402
import faults
import postgres
from tool import Tool

BAWN, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
PROGRAMS = ["sessions_test", "leases_test", "processes_test"]
USER = 12345  # an id that owns nothing here
FILES = pathlib.Path(tempfile.mkdtemp(prefix="bawn-store-"))  # what a user may execute, wherever we are


def words(uid, *command):
    return [*accounts.login(uid), *map(str, command)]


def run(uid, *command, **more):
    # In a group of its own, so that what it leaves behind when it is given up ends with it.
    process = subprocess.Popen(words(uid, *command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               start_new_session=True, **more)
    try:
        said, _ = process.communicate(timeout=120)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def expect_passed(done):
    assert done.returncode == 0, f"exit {done.returncode}: {done.stdout[-3000:]}"


class Skip(Exception):
    """Why a case says nothing here."""


class Folder:
    """A temporary folder of a user's."""

    def __init__(self, uid):
        self.uid, self.path = uid, None

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="bawn-store-"))
        os.chown(self.path, self.uid, self.uid)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def on_sqlite(name, uid):
    def case(_):
        with Folder(uid) as folder:
            expect_passed(run(uid, FILES / name, f"sqlite:{folder}/store.db"))
            for path in folder.iterdir():
                st = path.stat()
                assert st.st_mode & 0o777 == 0o600 and st.st_uid == uid, f"{path}: {st.st_mode:o} of {st.st_uid}"
    case.__name__ = f"{name} on SQLite as {'root' if uid == 0 else 'a user'}"
    return case


def on_postgres(name, uid):
    def case(server):
        expect_passed(run(uid, FILES / (name + "_pg"), server.make_database()))
    case.__name__ = f"{name} on PostgreSQL"
    return case


def fault_on_sqlite(function, uid):
    def start(where, before=()):
        return Tool([*before, *words(uid, FILES / "asked", where)])

    def case(_):
        with Folder(uid) as folder:
            function(folder, start, uid)
    case.__name__ = f"{function.__name__} on SQLite as {'root' if uid == 0 else 'a user'}"
    return case


def fault_on_postgres(function, uid):
    def case(server):
        function(server, lambda where: Tool(words(uid, FILES / "asked_pg", where)))
    case.__name__ = f"{function.__name__} on PostgreSQL"
    return case


def program_of_its_own(server):
    """bawn becomes bawn-pg where the store is in PostgreSQL, and says so where there is none."""
    alone = FILES / "alone"
    alone.mkdir()
    shutil.copy(BAWN, alone / "bawn")
    url = server.make_database()
    gone = url.replace(str(server.folder), "/nowhere")

    def expect(status, said, where, *command):
        env = {"PATH": os.environ["PATH"], "HOME": str(alone), "XDG_STATE_HOME": str(alone / "state"),
               "BAWN_STORE": where}
        done = run(0, alone / "bawn", *command, env=env)
        assert done.returncode == status and said in done.stdout and gone not in done.stdout, done

    expect(125, "is neither in", gone, "session", "list")
    expect(0, "bawn 0.", gone, "version")
    expect(0, "", f"sqlite:{alone}/store.db", "session", "list")
    shutil.copy(BAWN.with_name("bawn-pg"), alone)
    expect(125, "connection to server", gone, "session", "list")
    expect(0, "", url, "session", "list")
    assert "bawn_sessions" in server.sql("SELECT relname FROM pg_class", url)
    (alone / "bawn-pg").chmod(0o600)
    expect(125, "cannot be executed: Permission denied", url, "session", "list")


def without_postgres(_):
    raise Skip("bawn is built without libpq: nothing was tried on PostgreSQL")


def cases():
    uids = [0, USER] if os.geteuid() == 0 else [os.geteuid()]
    found = [on_sqlite(name, uid) for name in PROGRAMS for uid in uids]
    found += [fault_on_sqlite(function, uid) for function in faults.SQLITE for uid in uids
              if uid == uids[-1] or not getattr(function, "is_long", False)]
    if (BUILD / "sessions_test_pg").exists():
        found += [on_postgres(name, uids[-1]) for name in PROGRAMS]
        found += [fault_on_postgres(function, uids[-1]) for function in faults.POSTGRES]
        found.append(program_of_its_own)
    else:
        found.append(without_postgres)
    return found


def run_case(case, server):
    try:
        case(server)
    except (AssertionError, OSError, subprocess.SubprocessError, Skip) as e:
        return e
    return None


def run_cases(chosen, server):
    failed = 0
    print(f"1..{len(chosen)}")
    for number, case in enumerate(chosen, 1):
        error = run_case(case, server)
        is_skipped = isinstance(error, Skip)
        failed += error is not None and not is_skipped
        print(f"{'not ok' if error and not is_skipped else 'ok'} {number} - {case.__name__}"
              + (f" # SKIP {error}" if is_skipped else ""))
        if error and not is_skipped:
            print("\n".join("# " + line for line in str(error).splitlines()))
        sys.stdout.flush()
    return failed


def main():
    chosen = [case for case in cases() if all(word in case.__name__ for word in sys.argv[3:])]
    try:
        FILES.chmod(0o755)
        for path in BUILD.iterdir():
            if path.is_file() and os.access(path, os.X_OK):
                shutil.copy(path, FILES)
        with postgres.Server() as server:
            failed = run_cases(chosen, server)
    except postgres.Missing as e:
        print(f"1..0 # SKIP {e}")
        failed = 0
    finally:
        shutil.rmtree(FILES)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
