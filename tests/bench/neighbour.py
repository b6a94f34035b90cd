"""What a cage that takes all it can get costs the steady work of the cage beside it."""

import os
import statistics
import subprocess
import tempfile
import time

# Fixed work of about a third of a second, many times.
WORK = """
import time
for _ in range(%d):
    start = time.perf_counter()
    n = 0
    for i in range(4_000_000):
        n += i
    print(time.perf_counter() - start, flush=True)
"""
ROUNDS = 9
HOGS = {
    "a fork bomb": (["--pids-limit", "256"], "bomb() { bomb | bomb & }; bomb; while :; do sleep 1 || :; done"),
    "256 busy processes": (["--pids-limit", "300"],
                           "for i in $(seq 256); do while :; do :; done & done; wait"),
    "a memory hog": (["--memory", "512M"],
                     "while :; do python3 -c 'x = [bytearray(1 << 20) for _ in range(100000)]'; done"),
}


def median_work(options, env, project):
    done = subprocess.run([options.bawn, "run", "--no-tty", "--", "python3", "-c", WORK % ROUNDS], env=env,
                          cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True)
    return statistics.median(map(float, done.stdout.split()))


def show(options):
    print(f"A neighbour's steady work ({ROUNDS} pieces in a cage), alone and beside a cage with")
    with tempfile.TemporaryDirectory(prefix="bawn-bench.") as folder:
        env = {"PATH": os.defpath, "HOME": folder, "XDG_STATE_HOME": os.path.join(folder, "state")}
        project = os.path.join(folder, "project")
        os.mkdir(project)
        for name, (limits, script) in HOGS.items():
            alone = median_work(options, env, project)
            hog = subprocess.Popen([options.bawn, "run", "--no-tty", *limits, "--", "bash", "-c", script], env=env,
                                   cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
            time.sleep(1)
            if hog.poll() is not None:
                raise SystemExit(f"{name} ended at once, with status {hog.returncode}")
            beside = median_work(options, env, project)
            hog.terminate()
            try:
                hog.wait(20)
            except subprocess.TimeoutExpired:
                hog.kill()
                raise SystemExit(f"{name} did not end")
            slower = (beside / alone - 1) * 100
            print(f"  {name:24}{alone * 1000:8.1f} ms alone,{beside * 1000:8.1f} ms beside it: "
                  f"{slower:5.1f} % slower   at most 20 %: {'ok' if slower <= 20 else 'missed'}")
