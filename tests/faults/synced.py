#!/usr/bin/env python3
"""With --sync a run whose folder does not reach the disk is not called a success.

    synced.py BAWN INJECT        prints TAP

The keeper calls syncfs twice: before the command starts, and before the record is signed. Each of
them fails with EIO; the twin is the same run with a disk that works. The other calls of a --sync are
tested without a cage, in tests/unit/durable_test.c.
"""

import errno
import os
import subprocess
import sys

from place import Place, Tap, Tools, adopt_orphans, name_of, system_calls, users

# Which call fails (0: none; there is no third), what bawn answers, whether the command runs.
ROWS = ((0, 0, True), (1, 125, False), (2, 125, True), (3, 0, True))


def run(place, inject, bawn, number, call):
    options = ["--process", "k", "--number", number, "--call", call, "--error", errno.EIO] if call else []
    with place.start([inject, *options, "--report", 2, "--", bawn, "run", "--sync", "--", "/bin/echo", "ran"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        return [text.decode(errors="replace") for text in child.communicate()]


def main():
    _, bawn, inject = sys.argv
    adopt_orphans()
    tap, tools = Tap(), Tools(bawn, inject)
    bawn, inject = (str(tools.top / os.path.basename(file)) for file in (bawn, inject))
    number = next(number for number, name in system_calls().items() if name == "syncfs")
    for uid in users():
        place = Place(uid)
        for call, status, runs in ROWS:
            out, err = run(place, inject, bawn, number, call)
            is_good = f'"status":{status},' in err.replace(" ", "") and (out == "ran\n") == runs and \
                ("cannot sync the run's folder: Input/output error" in err) == (status == 125)
            tap.case(is_good, f"syncfs {call or 'never'} fails: status {status}, the command "
                     f"{'runs' if runs else 'does not run'}, as {name_of(uid)}", [] if is_good else [out, err])
        place.done()
    tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
