"""What hashing costs of what a command prints: megabytes a second through a pipe, by record.output.

The processor's time is the figure to trust: relaying waits for both ends, and a busy machine changes how long.
"""

import os
import pathlib
import resource
import subprocess
import tempfile
import time

SIZE = 512 << 20
ROUNDS = 5
PRINT = f"head -c {SIZE} /dev/zero"
WAYS = {"no": "nothing on record", "digest": "SHA-256 and size", "keep": "the same, and 16 MiB kept"}


def costs_of_printing(command, env, folder):
    """Seconds until all of it arrived, and of the processor; the reader does no more than count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=folder) as process:
        got = 0
        while chunk := os.read(process.stdout.fileno(), 1 << 20):
            got += len(chunk)
    if got != SIZE or process.returncode != 0:
        raise SystemExit(f"{command[0]} showed {got} bytes of {SIZE}, and ended with {process.returncode}")
    took, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show(options):
    print(f"Output of {SIZE >> 20} MiB through a pipe, all in turn, the best of {ROUNDS}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bawn-bench-") as top:
        env = {"PATH": os.environ["PATH"], "HOME": top, "XDG_STATE_HOME": f"{top}/state"}
        project = pathlib.Path(top, "project")
        project.mkdir()
        commands = {"pipe": ["sh", "-c", PRINT]}
        for way in WAYS:
            spec = pathlib.Path(top, f"{way}.yaml")
            spec.write_text(f"version: 1\nrecord: {{ output: {way} }}\n", encoding="utf-8")
            commands[way] = [options.bawn, "run", "-q", "-f", spec, "--", "sh", "-c", PRINT]
        best = dict.fromkeys(commands, (float("inf"), float("inf")))
        for _ in range(ROUNDS):
            for name, command in commands.items():
                best[name] = tuple(map(min, best[name], costs_of_printing(command, env, project)))
    print(f"  {'record.output':32}{'MB/s':>12}{'to no':>10}{'processor':>14}{'to no':>10}")
    for name, (seconds, used) in best.items():
        text = "without bawn" if name == "pipe" else f"{name}: {WAYS[name]}"
        print(f"  {text:32}{SIZE / seconds / 1e6:12.0f}{best['no'][0] / seconds:10.2f}"
              f"{used * 1e12 / SIZE:9.0f} µs/MB{used / best['no'][1]:10.2f}")
