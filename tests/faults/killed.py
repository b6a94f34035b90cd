#!/usr/bin/env python3
"""Keepers are killed at any moment of a start: nothing they started outlives them.

    killed.py BAWN [--count 300] [--peer] [--seed N]        prints TAP

Of the keepers of each user, eight in ten get SIGKILL within 8 ms of their start, when the cage is
being made; one in ten gets it later, and one in ten SIGTERM, SIGINT or SIGHUP. One second after the
last, and after one more run, no process, mount, namespace, cgroup or file is there that was not
before. --peer does the same
to bubblewrap, where that is installed, and only prints what is left.
"""

import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from place import Before, Place, Tap, Tools, descendants, name_of, reap, stand_apart, users

SECONDS = 20  # for a keeper to end after any signal
OTHERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
BATCH = 200  # after each, what was adopted is buried


def choose(chance):
    """When, in seconds after the start, and by which signal."""
    kind = chance.random()
    if kind < 0.8:
        return chance.uniform(0, 0.008), signal.SIGKILL
    if kind < 0.9:
        return chance.uniform(0.008, 0.080), signal.SIGKILL
    return chance.uniform(0, 0.040), chance.choice(OTHERS)


def kill_one(place, command, when, sig):
    """Starts a keeper and ends it; what it ended with, or None if it did not end."""
    with place.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as keeper:
        time.sleep(when)
        keeper.send_signal(sig)
        try:
            keeper.wait(SECONDS)
            return keeper.returncode
        except subprocess.TimeoutExpired:
            keeper.kill()
            return None
        finally:
            # An orphan may hold the other end: do not read until it is gone.
            keeper.stderr.close()


def kill_many(place, command, moments):
    return [(when, sig, kill_one(place, command, when, sig)) for when, sig in moments]


def run(uid, command, count, chance, sweeper=None):
    """(all results, how many left a process, what is left a second after the last)"""
    before = Before()
    places = [Place(uid) for _ in range(2)]
    results = []
    for start in range(0, count, BATCH):
        moments = [choose(chance) for _ in range(min(BATCH, count - start))]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in pool.map(kill_many, places, [command] * 2, (moments[0::2], moments[1::2])):
                results += done
        time.sleep(0.05)
        reap()
    time.sleep(1)
    reap()
    # A keeper that was killed could not remove its cgroup; the next one does it.
    if sweeper:
        places[0].start(sweeper, stdout=subprocess.DEVNULL).wait(SECONDS)
    orphans = sum(parent == os.getpid() and state != "Z" for parent, state, _ in descendants().values())
    left = before.left()
    for place in places:
        left += place.left_files()
        place.done()
    return results, orphans, left


def end_all():
    """What a failed case left would also be in the way of the next: ours alone, each by its id."""
    for pid, (_, state, _) in descendants().items():
        if state != "Z":
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    time.sleep(0.2)
    reap()


def summary(results):
    ends = collections.Counter()
    for _, sig, status in results:
        ends[f"{sig.name}: " + ("did not end" if status is None else f"status {status}")] += 1
    return ", ".join(f"{n}x {what}" for what, n in sorted(ends.items()))


def wrong_end(sig, status):
    """Killed is killed; by another signal, a keeper ends its cage and says so by its status."""
    if sig == signal.SIGKILL:
        return status != -signal.SIGKILL
    return status not in (-sig, 128 + sig, 125)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bawn")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    stand_apart()
    chance, tap, tools = random.Random(args.seed), Tap(), Tools(args.bawn)
    print(f"# seed {args.seed}")
    bawn = str(tools.top / os.path.basename(args.bawn))
    for uid in users():
        count = args.count // len(users())
        results, orphans, left = run(uid, [bawn, "run", "--", "sleep", "100"], count, chance,
                                     [bawn, "run", "--", "true"])
        wrong = [f"{sig.name} after {when * 1000:.1f} ms: "
                 f"{'it did not end' if status is None else f'status {status}'}"
                 for when, sig, status in results if wrong_end(sig, status)]
        tap.case(not left, f"{orphans} of {count} killed keepers leave a process as {name_of(uid)}; "
                 f"{len(left)} things are left", left[:20])
        tap.case(not wrong, f"keepers end as they are told to as {name_of(uid)}",
                 wrong[:20] + [summary(results)])
        end_all()
    bwrap = shutil.which("bwrap")
    for uid in users() if args.peer and bwrap else []:
        command = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc",
                   "--dev", "/dev", "sleep", "100"]
        count = args.count // len(users())
        _, orphans, left = run(uid, command, count, chance)
        print(f"# bwrap: {orphans} of {count} leave a process as {name_of(uid)}; {len(left)} things are left")
        end_all()
    tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
