"""What work on a large project costs in a captured cage, and what finding and applying its effects costs.

The tree is Debian's kernel source, about 78,000 files. Outside and inside take turns, on the same tree.
"""

import contextlib
import os
import pathlib
import resource
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
# As the cage's /etc/gitconfig: an overlay has inodes and devices of its own.
BARE_GIT = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.checkStat", "GIT_CONFIG_VALUE_0": "minimal"}
BUILD = ["make", "-s", "-j2", "lib/"]


def measured(command, wanted=(0,), **how):
    """Wall time, and CPU time of the command and its children: the latter is steadier on a busy machine."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, check=False, **how)
    spent, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in wanted:
        raise SystemExit(f"{' '.join(map(str, command))} ended with status {done.returncode}: {done.stderr[-500:]}")
    return spent, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def seconds(command, wanted=(0,), **how):
    return measured(command, wanted, **how)[0]


def medians(spent):
    """Of pairs as measured() gives them."""
    return [statistics.median(column) for column in zip(*spent)]


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


def compare(name, options, env, tree, command, limit, before=lambda: None):
    """Medians of the command outside and in a new cage, in turn, and of a cage that does nothing."""
    outside, inside, empty = [], [], []
    for _ in range(ROUNDS):
        before()
        outside.append(measured(command, cwd=tree))
        before()
        inside.append(measured([options.bawn, "run", "--no-tty", "--", *command], cwd=tree, env=env))
        empty.append(seconds([options.bawn, "run", "--no-tty", "--", "true"], cwd=tree, env=env))
        quietly([options.bawn, "discard", "--all"], cwd=tree, env=env, wanted=(0, 1))
    (there, there_cpu), (here, here_cpu) = medians(outside), medians(inside)
    show_goal(name, here / there, limit, more=f"   ({there:.2f} s outside, {here:.2f} s inside, of which a start "
                                              f"is {statistics.median(empty) * 1000:.0f} ms; CPU time "
                                              f"{here_cpu / there_cpu:.2f})")


# In a user's namespace of its own, an overlay and nothing else of bawn: what any cage would cost.
BARE = """
mount -t overlay overlay -o lowerdir=.,upperdir={top}/upper,workdir={top}/work,userxattr {top}/merged
cd {top}/merged
exec python3 -c 'import subprocess, sys, time
for _ in range(2):
    start = time.perf_counter()
    subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
    print(time.perf_counter() - start)' {words}
"""


def show_bare(name, tree, folder, command):
    """The floor: the first and the second time above an overlay without a cage."""
    outside, first, second = [], [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder) as top:
            for inner in ("upper", "work", "merged"):
                pathlib.Path(top, inner).mkdir()
            outside.append(seconds(command, cwd=tree))
            script = BARE.format(top=top, words=" ".join(command))
            done = subprocess.run(["unshare", "-Urm", "sh", "-ec", script], cwd=tree, stdout=subprocess.PIPE, text=True,
                                  check=False, env=os.environ | BARE_GIT)
            if done.returncode != 0:
                print("  an overlay alone cannot be measured here")
                return
            for times, text in zip((first, second), done.stdout.split()):
                times.append(float(text))
            subprocess.run(["chmod", "-R", "u+rwX", top], check=True)
    there = statistics.median(outside)
    print(f"  … above an overlay alone, {name:21}{statistics.median(first) / there:8.2f}   the second time "
          f"{statistics.median(second) / there:.2f}", flush=True)


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
import sys, time
for i in range({0}):
    with open(f"d{{i // 10}}/f{{i % 10}}.txt", "a") as file:
        file.write("one more line\\n")
print(time.clock_gettime(time.CLOCK_BOOTTIME), file=sys.stderr)
"""


def median_of(command, rounds=ROUNDS, **how):
    return statistics.median(seconds(command, **how) for _ in range(rounds))


def change_in_cage(options, env, project, changed):
    """Changes so many files; how long the run takes after the command's last word."""
    done = subprocess.run([options.bawn, "run", "--no-tty", "-q", "--", "python3", "-c", CHANGE.format(changed)],
                          cwd=project, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return time.clock_gettime(time.CLOCK_BOOTTIME) - float(done.stderr.split()[0])


def show_effects(options, env, folder):
    """10,000 changed files among 100,000, against git status of the same changes; and among 20,000."""
    stats = {}
    for total, changed in ((100_000, 10_000), (20_000, 2_000)):
        project = folder / f"tree{total}"
        make_tree(project, total)
        spent = []
        for last in range(3):
            spent.append(change_in_cage(options, env, project, changed))
            if last < 2:
                quietly([options.bawn, "discard", "--all"], cwd=project, env=env, wanted=(0, 1))
        stats[total] = median_of([options.bawn, "diff", "--stat"], cwd=project, env=env)
        if total == 100_000:
            with changed_copy(project, changed) as copy:
                status = median_of(["git", "status", "--porcelain"], cwd=copy)
            show_goal("10,000 changed files, found at the end", statistics.median(spent), 0.8, " s")
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
    plain, synced, applied = [], [], []
    for turn in range(3):
        (layer,) = (folder / "state" / "bawn" / "runs").glob("*/layer/upper")
        for times, after in ((plain, []), (synced, ["&&", "sync", "-f", folder])):
            quietly(["sync"])
            # Nothing is deleted in between: some file systems look at what was before they make a file.
            words = ["cp", "-r", layer, folder / f"copied-{turn}-{len(after)}", *after]
            times.append(measured(["sh", "-c", " ".join(map(str, words))]))
        quietly(["sync"])
        applied.append(measured([options.bawn, "apply"], cwd=project, env=env))
        if turn < 2:
            change_in_cage(options, env, project, 10_000)
    (wall, cpu), (copy, copy_cpu) = medians(applied), medians(plain)
    show_goal("bawn apply of 10,000 files, to cp -r", wall / copy, 1.2,
              more=f"   ({wall:.2f} s, {copy:.2f} s; CPU time {cpu / copy_cpu:.2f})")
    print(f"  … to cp -r and sync -f, as apply syncs too   {wall / medians(synced)[0]:8.2f}")


def show(options):
    print("Work on a project in a captured cage, to the same outside", flush=True)
    tree = unpack(options.bench)
    with tempfile.TemporaryDirectory(prefix="bawn-bench.", dir=options.bench) as name:
        folder = pathlib.Path(name)
        env = {"PATH": os.defpath, "HOME": name, "XDG_STATE_HOME": str(folder / "state")}
        compare("git status, 78,000 files", options, env, tree, STATUS, 1.5)
        show_bare("git status", tree, folder, STATUS)
        compare("rg over them", options, env, tree, SEARCH, 1.4)
        show_bare("rg", tree, folder, SEARCH)
        compare("make -j2 of lib/", options, env, tree, BUILD, 1.10, before=lambda: clean(tree))
        show_first_write(options, env, folder)
        show_effects(options, env, folder)
