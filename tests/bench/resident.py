"""Runs in sessions by processes that stay: what a worker adds to the command itself, how many it can do, what sessions
that nobody uses cost, and how long a queued run waits.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "store"))
import postgres  # pylint: disable=wrong-import-position

QUEUED = 200


def goal(text, value, limit, unit, at_least=False):
    is_met = value >= limit if at_least else value <= limit
    print(f"  {text:58}{value:9.2f} {unit}   (goal {'at least' if at_least else 'at most'} {limit:g}: "
          f"{'ok' if is_met else 'missed'})")


def show_runs(options):
    done = subprocess.run([options.bench / "bench_resident", "--count", str(options.count)], stdout=subprocess.PIPE,
                          text=True, check=True)
    found = {row["what"]: row for row in map(json.loads, done.stdout.splitlines())}
    for name in ("user", "root"):
        if f"resident-{name}" not in found:
            continue
        print(f"Resident runs of /bin/true as {name}, above posix_spawn of the same")
        spawn = found[f"spawn-{name}"]
        for what, text in (("resident", "until its end is known"), ("signed", "until its record is signed")):
            row = found[f"{what}-{name}"]
            median, p95 = ((row[key] - spawn[key]) / 1000 for key in ("median_us", "p95_us"))
            goal(f"{text}, median", median, 1, "ms")
            goal(f"{text}, p95", p95, 2, "ms")
        print(f"  posix_spawn itself: median {spawn['median_us'] / 1000:.2f} ms, p95 {spawn['p95_us'] / 1000:.2f} ms")
        rate = found[f"rate-{name}"]
        if rate["bwrap_loop_per_second"]:
            goal(f"{rate['resident_per_second']:.0f} runs a second, to those of a loop of bwrap "
                 f"({rate['bwrap_loop_per_second']:.0f})", rate["resident_per_second"] / rate["bwrap_loop_per_second"],
                 2, "times", at_least=True)
            print(f"  to those of two loops of bwrap ({rate['bwrap_per_second']:.0f}): "
                  f"{rate['resident_per_second'] / rate['bwrap_per_second']:.2f} times")
        idle = found[f"idle-{name}"]
        goal(f"{idle['sessions']} sessions that wait, mounted: memory of each", idle["kb_each"] / 1024, 1, "MB")


def queued_ms(bawn, env, session):
    """From when a run is in the store until its command reads the clock."""
    waits = []
    for _ in range(QUEUED):
        run = subprocess.run([bawn, "session", "exec", session, "--queue", "--", "date", "+%s%6N"], env=env, check=True,
                             stdout=subprocess.PIPE, text=True).stdout.strip()
        printed = subprocess.run([bawn, "session", "wait", run], env=env, check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        shown = json.loads(subprocess.run([bawn, "session", "show", run, "--json"], env=env, check=True,
                                          stdout=subprocess.PIPE, text=True).stdout)
        at = shown["queued"]
        seconds = time.mktime(time.strptime(at[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
        waits.append(int(printed) / 1000 - (seconds * 1000 + float("0" + at[19:].rstrip("Z")) * 1000))
    return waits


def show_queue(options):
    print("From the queue in PostgreSQL to the command itself, one worker")
    try:
        server = postgres.Server()
    except postgres.Missing as missing:
        print(f"  {missing}")
        return
    with server, tempfile.TemporaryDirectory(prefix="bawn-bench.") as folder:
        top = pathlib.Path(folder)
        (top / "project").mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": str(top / "state"),
               "BAWN_STORE": server.make_database(), "TZ": "UTC"}
        session = subprocess.run([options.bawn, "session", "create"], env=env, cwd=top / "project", check=True,
                                 stdout=subprocess.PIPE, text=True).stdout.strip()
        with subprocess.Popen([options.bawn, "worker"], env=env) as worker:
            try:
                waits = queued_ms(options.bawn, env, session)
            finally:
                worker.terminate()
        waits.sort()
        goal("median", statistics.median(waits), 3, "ms")
        print(f"  p95 {waits[len(waits) * 95 // 100]:.2f} ms")


def show(options):
    show_runs(options)
    show_queue(options)
