"""What it costs that denied system calls are told: the allowed ones, the denied ones, and others' work."""

import json
import os
import subprocess
import tempfile
import time

PAIRS = 7
PERSONALITY = 135 if os.uname().machine == "x86_64" else 92
FLOOD = f"import ctypes\ncall = ctypes.CDLL(None).syscall\nwhile True:\n    call({PERSONALITY}, 0)\n"
NAMES = {"getpid": "getpid", "open": "open and close", "missing": "one that is not there"}


def measure(options, env, project, is_telling):
    breakable = options.bawn.with_name("bawn-breakable")
    broken = {} if is_telling else {"BAWN_TEST_BREAK": "tell"}
    calls = options.bench / "calls"
    done = subprocess.run([breakable, "run", "--no-tty", "-q", "-v", f"{calls}:/calls", "--", "/calls"], cwd=project,
                          env={**env, **broken}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def show_calls(options, env, project):
    print(f"System calls in a cage, told and not told what is denied (the least of {PAIRS} pairs of runs)")
    told, plain = [], []
    for _ in range(PAIRS):
        told.append(measure(options, env, project, True))
        plain.append(measure(options, env, project, False))
    for key, name in NAMES.items():
        least = [min(run[key] for run in runs) for runs in (told, plain)]
        ratio = least[0] / least[1]
        print(f"  {name:24}{least[1]:8.0f} ns, told {least[0]:8.0f} ns: ratio {ratio:5.3f}   "
              f"at most 1.02: {'ok' if ratio <= 1.02 else 'missed'}")
    least = [min(run["denied"] for run in runs) for runs in (told, plain)]
    print(f"  {'one that is denied':24}{least[1]:8.0f} ns, told {least[0]:8.0f} ns")


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show_flood(options, env, project):
    seconds = 5
    hog = subprocess.Popen([options.bawn, "run", "--no-tty", "-q", "--", "sh", "-c",
                            'python3 -c "$0" & python3 -c "$0"', FLOOD], env=env, cwd=project,
                           stdin=subprocess.DEVNULL)
    try:
        time.sleep(1)
        before, began = processor_seconds(hog.pid), time.monotonic()
        time.sleep(seconds)
        share = (processor_seconds(hog.pid) - before) / (time.monotonic() - began) * 100
        if hog.poll() is not None:
            raise SystemExit(f"the flood ended at once, with status {hog.returncode}")
    finally:
        hog.terminate()
        hog.wait(20)
    print(f"  {'a flood of two processes':24}{share:8.1f} % of a processor for the keeper   "
          f"at most 20 %: {'ok' if share <= 20 else 'missed'}")
    runs = sorted(os.scandir(os.path.join(env["XDG_STATE_HOME"], "bawn/runs")),
                  key=lambda entry: entry.stat().st_ctime_ns)
    with open(os.path.join(runs[-1].path, "events.jsonl"), encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    times = max(event["times"] for event in events if event["type"] == "syscall_denied")
    print(f"  {'':24}{times:8d} calls of it denied and counted")


def show(options):
    with tempfile.TemporaryDirectory(prefix="bawn-bench.") as folder:
        env = {"PATH": os.defpath, "HOME": folder, "XDG_STATE_HOME": os.path.join(folder, "state")}
        project = os.path.join(folder, "project")
        os.mkdir(project)
        show_calls(options, env, project)
        show_flood(options, env, project)
