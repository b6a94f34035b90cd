"""What work on a large project costs in a captured cage, and what finding and applying its effects costs.

The tree is Debian's kernel source, about 78,000 files. Outside and inside take turns, on the same tree.
"""

import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

SOURCE = pathlib.Path("/usr/src/linux-source-6.1.tar.xz")
ROUNDS = 5
GIT = ["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "gc.auto=0"]
STATUS = ["git", "status", "--porcelain"]
SEARCH = ["rg", "--count-matches", "--no-config", "spin_lock_irqsave"]
BUILD = ["make", "-s", "-j2", "lib/"]


def seconds(command, wanted=(0,), **how):
    start = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False, **how)
    spent = time.perf_counter() - start
    if done.returncode not in wanted:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {done.returncode}: {done.stderr[-500:]}")
    return spent


def quietly(command, **how):
    seconds(command, **how)


def show_goal(name, value, limit, unit="", more=""):
    verdict = "ok" if value <= limit else "missed"
    print(f"  {name:44}{value:8.2f}{unit}   at most {limit}{unit}: {verdict}{more}", flush=True)


def unpack(folder):
    """A committed kernel tree, configured; made once for a build folder."""
    tree = folder / "linux"
    if (tree / ".git" / "ready").exists():
        return tree
    if not SOURCE.exists():
        raise SystemExit(f"{SOURCE} is missing; tools/install-deps.sh bench installs it")
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    quietly(["tar", "xf", SOURCE, "--strip-components=1", "-C", tree])
    (tree / ".gitignore").unlink()  # Debian's has git ignore everything
    quietly(["make", "-s", "tinyconfig"], cwd=tree)
    quietly(["make", "-s", "-j2", "prepare"], cwd=tree)
    quietly(["git", "init", "-q"], cwd=tree)
    quietly([*GIT, "add", "-A"], cwd=tree)
    quietly([*GIT, "commit", "-q", "-m", "all"], cwd=tree)
    quietly(STATUS, cwd=tree)
    (tree / ".git" / "ready").touch()
    return tree


def clean(tree):
    quietly(["git", "clean", "-xdfq", "lib"], cwd=tree)


def compare(name, options, env, tree, command, before=lambda: None):
    """Medians of the command outside and in a cage, in turn, and of a cage that does nothing."""
    outside, inside, empty = [], [], []
    for _ in range(ROUNDS):
        before()
        outside.append(seconds(command, cwd=tree))
        before()
        inside.append(seconds([options.bawn, "run", "--no-tty", "--", *command], cwd=tree, env=env))
        empty.append(seconds([options.bawn, "run", "--no-tty", "--", "true"], cwd=tree, env=env))
        quietly([options.bawn, "discard", "--all"], cwd=tree, env=env, wanted=(0, 1))
    there, here = statistics.median(outside), statistics.median(inside)
    show_goal(name, here / there, 1.10, more=f"   ({there:.2f} s outside, {here:.2f} s inside, of which a start "
                                             f"is {statistics.median(empty) * 1000:.0f} ms)")


def show_first_write(options, env, folder):
    """A file of 1 GB is copied when its first byte changes."""
    project = folder / "large"
    project.mkdir()
    with open(project / "file", "wb") as file:
        for _ in range(1024):
            file.write(os.urandom(1 << 20))
    # 100 MB too, to show what it grows with.
    with open(project / "small", "wb") as file:
        for _ in range(100):
            file.write(os.urandom(1 << 20))
    script = "import time; s = time.perf_counter(); f = open('{0}', 'r+b'); f.write(b'x'); f.close(); " \
             "print(time.perf_counter() - s)"
    for name, text in (("small", "100 MB"), ("file", "1 GB")):
        done = subprocess.run([options.bawn, "run", "--no-tty", "--", "python3", "-c", script.format(name)],
                              cwd=project, env=env, stdout=subprocess.PIPE, text=True, check=True)
        copied = seconds(["cp", project / name, folder / "copied"])
        (folder / "copied").unlink()
        print(f"  the first write to a file of {text:6}   {float(done.stdout):8.2f} s   (cp of it: {copied:.2f} s)")
        quietly([options.bawn, "discard", "--all"], cwd=project, env=env, wanted=(0, 1))
    shutil.rmtree(project)


def make_tree(folder, count):
    """So many small files in folders of a hundred, committed."""
    for i in range(count):
        at = folder / f"d{i // 100}"
        if i % 100 == 0:
            at.mkdir(parents=True)
        (at / f"f{i % 100}.txt").write_text("".join(f"line {n} of file {i}\n" for n in range(20)))
    quietly(["git", "init", "-q"], cwd=folder)
    quietly([*GIT, "add", "-A"], cwd=folder)
    quietly([*GIT, "commit", "-q", "-m", "all"], cwd=folder)


CHANGE = """
import os
for i in range({0}):
    with open(f"d{{i // 10}}/f{{i % 10}}.txt", "a") as file:
        file.write("one more line\\n")
"""


def median_of(command, rounds=ROUNDS, **how):
    return statistics.median(seconds(command, **how) for _ in range(rounds))


def show_effects(options, env, folder):
    """10,000 changed files among 100,000, against git status of the same changes; and among 20,000."""
    stats = {}
    for total, changed in ((100_000, 10_000), (20_000, 2_000)):
        project = folder / f"tree{total}"
        make_tree(project, total)
        start = time.perf_counter()
        quietly([options.bawn, "run", "--no-tty", "--", "python3", "-c", CHANGE.format(changed)],
                cwd=project, env=env)
        ran = time.perf_counter() - start
        stats[total] = median_of([options.bawn, "diff", "--stat"], cwd=project, env=env)
        if total == 100_000:
            with changed_copy(project, changed) as copy:
                status = median_of(["git", "status", "--porcelain"], cwd=copy)
            print(f"  the run that changes them takes {ran:.2f} s with the search for its effects")
            show_goal("bawn diff --stat, to git status", stats[total] / status, 1.0,
                      more=f"   ({stats[total] * 1000:.0f} ms, {status * 1000:.0f} ms)")
            show_apply(options, env, project, folder)
        quietly([options.bawn, "discard", "--all"], cwd=project, env=env, wanted=(0, 1))
        shutil.rmtree(project)
    print(f"  diff --stat of 2,000 among 20,000: {stats[20_000] * 1000:.0f} ms")


@contextlib.contextmanager
def changed_copy(project, changed):
    """The tree on the host with the same changes made, as git status sees them."""
    copy = project.with_name("copy")
    quietly(["cp", "-a", project, copy])
    quietly(["git", "status", "--porcelain"], cwd=copy)
    quietly(["python3", "-c", CHANGE.format(changed)], cwd=copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


def show_apply(options, env, project, folder):
    """The same files by cp -r: what apply writes, from its layer to another folder of the same disk."""
    (layer,) = (folder / "state" / "bawn" / "runs").glob("*/layer/upper")
    plain, synced = [], []
    for times, after in ((plain, []), (synced, ["&&", "sync", "-f", folder])):
        for _ in range(3):
            shutil.rmtree(folder / "copied", ignore_errors=True)
            quietly(["sync"])
            words = ["cp", "-r", layer, folder / "copied", *after]
            times.append(seconds(["sh", "-c", " ".join(map(str, words))]))
    quietly(["sync"])
    applied = seconds([options.bawn, "apply"], cwd=project, env=env)
    show_goal("bawn apply of 10,000 files, to cp -r", applied / statistics.median(plain), 1.0,
              more=f"   ({applied:.2f} s, {statistics.median(plain):.2f} s)")
    print(f"  … to cp -r and sync -f, as apply syncs too   {applied / statistics.median(synced):8.2f}")


def show(options):
    print("Work on a project in a captured cage, to the same outside", flush=True)
    tree = unpack(options.bench)
    with tempfile.TemporaryDirectory(prefix="bawn-bench.", dir=options.bench) as name:
        folder = pathlib.Path(name)
        env = {"PATH": os.defpath, "HOME": name, "XDG_STATE_HOME": str(folder / "state")}
        compare("git status, 78,000 files", options, env, tree, STATUS)
        compare("rg over them", options, env, tree, SEARCH)
        compare("make -j2 of lib/", options, env, tree, BUILD, before=lambda: clean(tree))
        show_first_write(options, env, folder)
        show_effects(options, env, folder)
