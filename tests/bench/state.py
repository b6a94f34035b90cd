"""What a state with many runs costs those who only want the newest: beside a state with ten.

The many are copies of one real run under other names, in the log of all runs too, so that they are whatever a run leaves.
"""

import datetime
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

FEW, MANY = 10, 100000
FIRST = datetime.datetime.utcnow().replace(microsecond=0) - datetime.timedelta(days=300)
ROUNDS = 15
COMMANDS = {"run": ("run", "-q", "--", "true"), "log": ("log",), "record list": ("record", "list", "-n", "10"),
            "diff": ("diff", "--stat")}
MOST = 1.3  # times as long, with some noise


def name_run(number):
    """A name and a beginning that are older than those of any real run."""
    began = FIRST + datetime.timedelta(minutes=number)
    return f"{began:%Y%m%d-%H%M%S}-{number * 4:08x}", f"{began:%Y-%m-%dT%H:%M:%S}.{number:09}Z"


def chain(lines, seq, prev):
    """The lines with numbers and digests that continue a chain."""
    for line in lines:
        event = {**json.loads(line), "seq": seq}
        event.pop("prev")
        text = json.dumps(event, separators=(",", ":"), ensure_ascii=False)[:-1] + f',"prev":"{prev}"}}'
        seq, prev = seq + 1, hashlib.sha256(text.encode()).hexdigest()
        yield text


def copy_runs(state, count):
    """As if the one run there is had been made many times before."""
    runs, log = state / "bawn/runs", state / "bawn/log/events.jsonl"
    run, = (path.name for path in runs.iterdir())
    files = {path.name: path.read_text() for path in (runs / run).iterdir() if path.is_file() and not path.is_symlink()}
    links = {path.name: os.readlink(path) for path in (runs / run).iterdir() if path.is_symlink()}
    began = json.loads(files["events.jsonl"].splitlines()[0])["began"]
    own = [line for line in log.read_text().splitlines() if f'"run":"{run}"' in line]
    lines = []
    for number in range(count):
        name, when = name_run(number)
        (runs / name).mkdir(0o700)
        for file, text in files.items():
            (runs / name / file).write_text(text.replace(run, name).replace(began, when))
            (runs / name / file).chmod(0o600)
        for link, target in links.items():
            os.symlink(target, runs / name / link)
        lines += [line.replace(run, name).replace(began, when) for line in own]
    log.write_text("".join(f"{line}\n" for line in chain(lines + own, 0, "0" * 64)))


def make_state(options, top, count):
    state, project = top / "state", top / "project"
    state.mkdir(parents=True)
    project.mkdir()
    env = {"PATH": os.defpath, "HOME": str(top), "XDG_STATE_HOME": str(state)}
    # No limit is tried while this is measured.
    (top / ".config/bawn").mkdir(parents=True)
    (top / ".config/bawn/policy.yaml").write_text("version: 1\nkeep_runs: 1000000\nkeep_age: 3650d\nkeep_size: 1T\n")
    (top / ".config/bawn/policy.yaml").chmod(0o600)
    (project / "file").write_text("one\n")
    subprocess.run([options.bawn, "run", "-q", "--", "true"], env=env, cwd=project, check=True)
    copy_runs(state, count)
    # One run has changes, which diff finds.
    subprocess.run([options.bawn, "run", "-q", "--", "sh", "-c", "echo two >file"], env=env, cwd=project, check=True)
    return env, project


def measure(options, words, place):
    env, project = place
    began = time.perf_counter()
    subprocess.run([options.bawn, *words], env=env, cwd=project, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def show(options, title, show_goal):
    title(f"A state with {MANY:,} runs beside one with {FEW}")
    top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-bench-", dir="/var/tmp"))
    try:
        places = [make_state(options, top / str(count), count) for count in (FEW, MANY)]
        for name, words in COMMANDS.items():
            times = [[], []]
            for _ in range(ROUNDS):
                for taken, place in zip(times, places):
                    taken.append(measure(options, words, place))
            few, many = map(statistics.median, times)
            show_goal(f"{name}: {few * 1000:.1f} and {many * 1000:.1f} ms, as a ratio", many / few, MOST)
    finally:
        shutil.rmtree(top)
