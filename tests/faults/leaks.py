#!/usr/bin/env python3
"""Many runs in a row leave the machine as it was.

    leaks.py BAWN [--count 200]        prints TAP

No process, mount, namespace, cgroup or file (but for what is kept of runs) is there that was not
before; the numbers of open files and of cgroups in the kernel, those that are dying too, and the
memory it has for itself do not grow with the number of runs.
"""

import argparse
import concurrent.futures
import os
import subprocess
import sys
import time

from place import Before, Place, Tap, Tools, name_of, reap, stand_apart, users

WARM_UP = 30
# Others use the machine, and the kernel frees late: so much is no leak, whatever the count ...
SLACK = {"open files": 200, "cgroups": 60, "kernel memory": 24 << 20, "memory": 96 << 20}
# ... and so much for each run.
PER_RUN = {"open files": 0.05, "cgroups": 0.01, "kernel memory": 2048, "memory": 4096}


def numbers(path):
    with open(path, encoding="utf-8") as f:
        return {line.split()[0].rstrip(":"): line.split()[1:] for line in f if len(line.split()) > 1}


def measure():
    memory = {key: int(value[0]) * 1024 for key, value in numbers("/proc/meminfo").items()}
    with open("/proc/sys/fs/file-nr", encoding="utf-8") as f:
        files = int(f.read().split()[0])
    return {
        "open files": files,
        "cgroups": sum(int(row[1]) for row in numbers("/proc/cgroups").values() if row[0].isdigit()),
        "kernel memory": sum(memory.get(key, 0) for key in ("SUnreclaim", "Percpu", "PageTables", "KernelStack")),
        "memory": memory["MemTotal"] - memory["MemAvailable"],
    }


def settle(before):
    """The smallest growth within some seconds: what is given back late is given back."""
    least = None
    for _ in range(200):
        now = measure()
        grown = {name: now[name] - before[name] for name in now}
        least = grown if least is None else {name: min(grown[name], least[name]) for name in grown}
        if all(least[name] <= SLACK[name] // 4 for name in least):
            break
        time.sleep(0.1)
    return least


def run_one(place, command):
    with place.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        said = child.communicate(timeout=60)[1]
        return child.returncode, said.decode(errors="replace")


def run_many(places, command, count):
    """How many were run, and what the first that did not succeed said."""
    def work(place):
        for i in range(count // len(places)):
            status, said = run_one(place, command)
            if status != 0:
                return f"status {status}: {said}"
            if i % 500 == 499:
                place.forget_runs()
        return None

    with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
        return [wrong for wrong in pool.map(work, places) if wrong]


def run_user(tap, uid, bawn, count):
    places = [Place(uid) for _ in range(2)]
    before = Before()
    command = [bawn, "run", "--", "true"]
    wrong = run_many(places, command, WARM_UP)
    start, began = measure(), time.monotonic()
    wrong = wrong or run_many(places, command, count)
    spent = (time.monotonic() - began) / count * 1000
    reap()
    tap.case(not wrong, f"{count} runs succeed as {name_of(uid)}: {spent:.1f} ms each, two at a time", wrong)
    left = before.left()
    for place in places:
        left += place.left_files()
    tap.case(not left, f"{len(left)} things left after {count} runs as {name_of(uid)}", left[:20])
    grown = settle(start)
    for place in places:
        place.done()
    for name, growth in grown.items():
        limit = SLACK[name] + PER_RUN[name] * count
        tap.case(growth <= limit, f"{name}: {growth:+d} after {count} runs as {name_of(uid)}, at most {limit:.0f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bawn")
    parser.add_argument("--count", type=int, default=200)
    args = parser.parse_args()
    stand_apart()
    tap, tools = Tap(), Tools(args.bawn)
    for uid in users():
        run_user(tap, uid, str(tools.top / os.path.basename(args.bawn)), args.count // len(users()))
    tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
