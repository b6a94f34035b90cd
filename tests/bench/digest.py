"""What the digest of a tree costs before a run, to sha256sum over the same files, and from memory.

What was written just now is never remembered, so each run hashes it anew; what was there for long is hashed once.
"""

import os
import pathlib
import statistics
import subprocess
import tempfile

from project import seconds

ROUNDS = 5
OLD = pathlib.Path("/usr/share")


def make(folder, count, size):
    folder.mkdir()
    block = os.urandom(1 << 20)
    for i in range(count):
        with open(folder / str(i), "wb") as file:
            for at in range(0, size, len(block)):
                file.write(block[:size - at])
    return folder


def run(options, project, state, *more):
    env = {"PATH": os.defpath, "HOME": str(state), "XDG_STATE_HOME": str(state)}
    return seconds([options.bawn, "run", "-q", "--project", project, "--read-only", *more, "--", "/bin/true"], env=env,
                   cwd=state)


def sums(project):
    return seconds(["find", project, "-type", "f", "-exec", "sha256sum", "{}", "+"])


def show_one(options, name, project, state):
    ours, theirs, plain = [], [], []
    for _ in range(ROUNDS):
        theirs.append(sums(project))
        ours.append(run(options, project, state, "--digest-project"))
        plain.append(run(options, project, state))
    spent = max(statistics.median(ours) - statistics.median(plain), 1e-6)
    ratio = statistics.median(theirs) / spent
    verdict = "ok" if ratio >= 0.9 else "missed"
    print(f"  {name:36}{spent * 1000:8.0f} ms  sha256sum {statistics.median(theirs) * 1000:8.0f} ms"
          f"   speed {ratio:6.2f}, at least 0.9: {verdict}", flush=True)


def show(options):
    print("The digest of a tree before a run, and sha256sum over the same files in turn", flush=True)
    with tempfile.TemporaryDirectory(prefix="bawn-bench.") as folder:
        top = pathlib.Path(folder)
        state = top / "state"
        state.mkdir(mode=0o700)
        show_one(options, "4 files of 64 MiB", make(top / "large", 4, 64 << 20), state)
        show_one(options, "10,000 files of 4 KiB", make(top / "small", 10000, 4096), state)
        files = subprocess.run(["find", OLD, "-type", "f"], stdout=subprocess.PIPE, check=True).stdout.count(b"\n")
        run(options, OLD, state)
        first, later = run(options, OLD, state, "--digest-project"), run(options, OLD, state, "--digest-project")
        print(f"  {OLD}, {files:,} files: {first:.2f} s the first time, {later:.2f} s from memory", flush=True)
