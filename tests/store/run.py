#!/usr/bin/env python3
"""What a store promises, on every kind of store there is, as root and as a user.

    run.py BUILD        prints TAP; BUILD has the test programs
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(sys.argv[1])
PROGRAMS = ["sessions_test", "leases_test"]
USER = 12345  # an id that owns nothing here
CASES = []


def case(function):
    CASES.append(function)
    return function


def words(uid, *command):
    if os.geteuid() == 0 and uid:
        return ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", *map(str, command)]
    return list(map(str, command))


def run_program(uid, folder, name, where):
    program = folder / name
    shutil.copy(BUILD / name, program)
    done = subprocess.run(words(uid, program, where), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-1000:]


def uids():
    return [0, USER] if os.geteuid() == 0 else [os.geteuid()]


def sqlite(name, uid):
    def run():
        folder = pathlib.Path(tempfile.mkdtemp(prefix="bawn-store-"))
        try:
            os.chown(folder, uid, uid)
            run_program(uid, folder, name, f"sqlite:{folder}/store.db")
            for path in folder.glob("store.db*"):
                assert path.stat().st_mode & 0o777 == 0o600, f"{path} has mode {path.stat().st_mode:o}"
                assert path.stat().st_uid == uid
        finally:
            shutil.rmtree(folder)
    run.name = f"{name} on SQLite as {'root' if uid == 0 else 'a user'}"
    return run


def main():
    chosen = [sqlite(name, uid) for name in PROGRAMS for uid in uids()]
    failed = 0
    print(f"1..{len(chosen)}")
    for number, run in enumerate(chosen, 1):
        error = None
        try:
            run()
        except (AssertionError, OSError, subprocess.SubprocessError) as e:
            error = e
            failed += 1
        print(f"{'not ok' if error else 'ok'} {number} - {run.name}")
        if error:
            print("\n".join("# " + line for line in str(error).splitlines()))
        sys.stdout.flush()
    sys.exit(1 if failed else 0)


main()
