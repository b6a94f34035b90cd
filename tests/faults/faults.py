#!/usr/bin/env python3
"""Every system call of a start fails, or is the last: then all layers stand, or nothing runs.

    faults.py BAWN INJECT WITNESS [--all] [--only TEXT] [--user UID] [--write] [--allow]        prints TAP

A first run counts the calls of each process. Then, for the keeper, the cage's first process and
the others that bawn starts (helpers, the command until it is executed):

  once       a call fails with EMFILE, ENOMEM, ENOSPC, EINTR or EPERM
  for ever   and so do all later ones of its kind (EINTR: fifty of them, for that one is retried)
  killed     the process is killed instead of making the call
  orphaned   the keeper is killed, and gone, when another process makes the call

After each, the command has seen all layers, or has not run and bawn has said so; nothing hangs;
no process, mount, namespace or file is left. By default, each kind of call of each process fails
with one errno, so does each call that the keeper makes after the command, and every fifth call is the
last; with --all, every call with every errno. With --write the project is writable: then the command's
own file is in it, but nothing that is protected. With --allow a destination is allowed, so there are a
gate and a caller too.
"""

import argparse
import collections
import concurrent.futures
import errno
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import records  # noqa: E402
from place import Before, Place, Tap, Tools, name_of, namespaces_here, reap, stand_apart, system_calls, users

ERRORS = ("EMFILE", "ENOMEM", "ENOSPC", "EINTR", "EPERM")
SECONDS = 20  # for anything at all, on a busy machine too
NOTES = 40  # of one case
UNTOLD = re.compile("bawn: cannot (write (standard|the run's|the record|to the log)|find out what the run changed|"
                    "sign the run's record|"
                    "(read|open|use|load|sync) .*(events|record|key|log|folder))")
ENDED = re.compile("cannot finish the command: ")
SOON = 5000  # ms, on a busy machine too: after the keeper's end everything else has ended

# They cannot fail, so programs need not be ready for it.
NEVER = {"exit", "exit_group", "rt_sigreturn", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid",
         "getegid", "umask", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "execve",
         "sched_yield", "vfork"}
# What the C library does before main: a failure there is not bawn's to explain.
LIBRARY = {"execve", "brk", "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "readlink",
           "readlinkat", "getrandom", "mprotect", "mmap", "munmap", "newfstatat", "poll", "openat"}
SAYS = {"write", "writev"}
# Layers that nobody has by chance.
OUTSIDE = ("ns.user", "ns.mount", "ns.pid", "ns.net", "ns.ipc", "ns.uts", "ns.cgroup", "canary", "environment",
           "hostname", "project")

# The call is the n-th of its name; of a kill, the n-th of all.
Fault = collections.namedtuple("Fault", "process role call name kind error times is_library")
Process = collections.namedtuple("Process", "label role names")


class Suite:
    def __init__(self, args):
        self.tools = Tools(args.bawn, args.inject, args.witness)
        self.bawn = str(self.tools.top / os.path.basename(args.bawn))
        self.calls = system_calls()
        self.numbers = {name: number for number, name in self.calls.items()}
        self.layers = subprocess.run([self.tools.witness, "--names"], capture_output=True, text=True,
                                     check=True).stdout.split()
        self.spaces = namespaces_here()
        self.options = (["--write"] if args.write else []) + (["--allow", "nobody.example:443"] if args.allow else [])

    def command(self, *options):
        return [self.tools.inject, "--seconds", str(SECONDS), *options, "--", self.bawn, "run",
                *self.options, "--", "/work/witness", str(self.tools.canary), *self.spaces]

    def run(self, place, *options):
        """The report of one run, with what it printed."""
        read, write = os.pipe()
        with place.start(self.command("--report", str(write), *options), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, pass_fds=[write]) as child:
            os.close(write)
            with open(read, encoding="utf-8") as f:
                text = f.read()
            out, err = (text.decode(errors="replace") for text in child.communicate())
        report = json.loads(text) if text else {}
        report.update(out=out, err=err)
        return report

    def names(self, mask):
        return [name for i, name in enumerate(self.layers) if mask >> i & 1]

    def all_layers(self):
        return (1 << len(self.layers)) - 1


def find_roles(suite, report):
    """What each process of a run is, and the names of its calls as far as they are bawn's."""
    labels = {p["label"]: p for p in report["processes"]}
    witness = next(label for label, p in labels.items() if p["name"] == "witness")
    cage = ".".join(witness.split(".")[:2])
    found = []
    for label, p in labels.items():
        names = [suite.calls.get(number, str(number)) for number in p["log"]]
        if label == witness:
            names = names[:names.index("execve")]
            role = "command"
        elif label == "k":
            role = "keeper"
        elif label == cage:
            role = "cage"
        else:
            role = "helper"
        found.append(Process(label, role, names))
    return found


def library_calls(process):
    """How many of the keeper's calls are made before main."""
    if process.role != "keeper":
        return 0
    return next(i for i, name in enumerate(process.names) if name not in LIBRARY)


def places_of(process):
    """{name: how often it is called}, without those that cannot fail."""
    return {name: n for name, n in sorted(collections.Counter(process.names).items()) if name not in NEVER}


def is_early(process, name, n):
    """Is the n-th of these made before main?"""
    return process.names[:library_calls(process)].count(name) >= n


def some_of(count):
    return sorted({1, (count + 1) // 2, count})


def fail(process, name, n, kind, error, times):
    return Fault(process.label, process.role, n, name, kind, error, times, is_early(process, name, n))


def plan_once(processes, every):
    rotation = itertools.cycle(ERRORS)
    for p in processes:
        for name, count in places_of(p).items():
            if not every:
                yield fail(p, name, (count + 1) // 2, "once", next(rotation), 1)
                continue
            for n in range(1, count + 1):
                for error in ERRORS:
                    yield fail(p, name, n, "once", error, 1)


def plan_finish(processes, every):
    """What the keeper does after the command: judged otherwise than a start, and rarely the call in the middle."""
    keeper = next(p for p in processes if p.role == "keeper")
    end = len(keeper.names) - keeper.names[::-1].index("pidfd_send_signal")  # to what the command left running
    rotation = itertools.cycle(ERRORS)
    for i in range(end, len(keeper.names)) if not every else ():  # else each of them fails in every way
        name = keeper.names[i]
        if name not in NEVER | {"close"}:
            yield fail(keeper, name, keeper.names[:i + 1].count(name), "once", next(rotation), 1)


def plan_for_ever(processes, every):
    rotation = itertools.cycle(ERRORS[1:] + ERRORS[:1])
    for p in processes:
        for name, count in places_of(p).items():
            for error in ERRORS if every else [next(rotation)]:
                for n in some_of(count) if every else [1]:
                    yield fail(p, name, n, "for ever", error, 50 if error == "EINTR" else 0)


def plan_kills(processes, every):
    for p in processes:
        if every or p.role in ("keeper", "cage"):
            for i in range(1, len(p.names) + 1, 1 if every else 5):
                yield Fault(p.label, p.role, i, p.names[i - 1], "killed", None, 1, False)


def plan_orphans(processes, every):
    for p in processes:
        if p.role != "keeper":
            step = 1 if every else 5
            # At 0 it has just been born, and its parent has not gone on either.
            for i in range(0, len(p.names) + 1, step):
                yield Fault(p.label, p.role, i, p.names[i - 1] if i else "birth", "orphaned", None, 1, False)


def options_of(suite, fault):
    options = ["--process", fault.process, "--call", str(fault.call)]
    if fault.kind == "orphaned":
        return options + ["--victim", "k"]
    if fault.kind == "killed":
        return options + ["--kill"]
    return options + ["--number", str(suite.numbers[fault.name]), "--error", str(getattr(errno, fault.error)),
                      "--times", str(fault.times)]


def judge_refusal(fault, report):
    """The command has not run: why is that not fine?"""
    if fault.kind == "orphaned" or (fault.kind == "killed" and fault.role == "keeper"):
        return None if report["signal"] == 9 else f"the keeper was killed and ended with {report['status']}"
    if report["signal"]:
        return None if fault.is_library else f"bawn died of signal {report['signal']}"
    if fault.is_library:
        return None if report["status"] else "nothing ran, and the status is 0"
    # What happens to the command's own process is the command's end.
    if fault.role == "command" and fault.kind == "killed" and report["status"] == 128 + 9:
        return None
    # So it is when the init dies between the announcement of the command and its first instruction.
    if report["status"] == 128 + 9 and ENDED.search(report["err"]):
        return None
    wanted = (125, 126, 127) if fault.role == "command" else (125,)
    if report["status"] not in wanted:
        return f"nothing ran, and the status is {report['status']}"
    said = [line for line in report["err"].splitlines() if line.startswith("bawn: ") and line.strip() != "bawn:"]
    if fault.role == "keeper" and fault.name in SAYS:
        return None
    # A second one may say that there is no record of it either. What fails for ever also fails where the log, the
    # record and earlier records are kept: each is said once.
    if not 1 <= len(said) <= (2 if fault.times else 4) or len(set(said)) < len(said):
        return f"nothing ran, and {len(said)} lines say so: {report['err'].strip()!r}"
    return None


def judge_run(suite, fault, report):
    """The command has run: why is that not fine?"""
    if fault.kind == "orphaned" or (fault.kind == "killed" and fault.role in ("keeper", "cage")):
        return None
    # What it printed is lost, or its record, so its own 0 would be a lie.
    if report["status"] == 125 and UNTOLD.search(report["err"]):
        return None
    if report["status"] == 125 and fault.role == "keeper" and fault.name in SAYS and fault.kind != "fails once":
        return None  # nor can that be said
    if report["status"] == 125:
        return f"the command ran, and the status says it did not: {report['err'].strip()!r}"
    if not report["done"] or report["status"] != 0:
        # Cut short by a failure while it ran: that is said, and it is no success.
        if report["status"] == 128 + 9 and ENDED.search(report["err"]):
            return None
        if report["started_before"] and report["status"] != 0 and "bawn: " in report["err"]:
            return None
        return (f"cut short: status {report['status']}, signal {report['signal']}, "
                f"{'all' if report['done'] else 'not all'} done, said {report['err'].strip()!r}")
    if report["held"] != suite.all_layers():
        return f"not all layers were looked at: {report['held']:x}"
    if not report["out"].endswith("end\n") and "bawn: " not in report["err"]:
        return f"output was lost and nobody said so: {report['out'][-60:]!r}"
    return None


def judge(suite, fault, report):
    """(what came of it, what is wrong about it or None)"""
    if "status" not in report:
        return "broken", f"no report: {report}"
    if report["missing"]:
        return "broken", "ran without " + ", ".join(suite.names(report["missing"]))
    if report["late"]:
        left = ", ".join(f"{p['label']} ({p['name']})" for p in report["left"])
        return "broken", f"hangs; left after {SECONDS} s: {left}; said {report['err'].strip()!r}"
    if report["after_ms"] > SOON:
        return "broken", f"{report['after_ms']:.0f} ms after the keeper something still ran"
    if report["hits"] == 0:
        return "not reached", None
    if not report["started"]:
        return "refused", judge_refusal(fault, report)
    return "ran" if report["done"] and report["status"] == 0 else "cut short", judge_run(suite, fault, report)


def place_with_key(suite, uid, *programs):
    """The key is made once, and not by the run that is looked at."""
    place = Place(uid, *programs)
    place.start([suite.tools.bawn, "key", "init"], stdout=subprocess.DEVNULL).wait(SECONDS)
    return place


def judge_record(place):
    """Whatever happened: logs are beginnings of what they would have been, and records are whole or not there."""
    try:
        if (place.state / "bawn/log/events.jsonl").exists():
            records.chain(place.state / "bawn/log/events.jsonl")
        for run in place.runs().values():
            events = records.chain(run / "events.jsonl")[0] if (run / "events.jsonl").exists() else []
            if (run / records.FILE).exists():
                assert len(records.statements(run / records.FILE)) == 2, "half a record"
                assert records.read(run)["log"]["events"] == len(events), "a record of other events"
    except (AssertionError, ValueError, KeyError) as e:
        return f"the record: {e!r}"
    return None


def try_fault(suite, place, fault):
    report = suite.run(place, *options_of(suite, fault))
    outcome, wrong = judge(suite, fault, report)
    is_mute = fault.role == "keeper" and fault.name in SAYS
    if not wrong and outcome == "ran" and not is_mute and not is_recorded(place) and "bawn: " not in report["err"]:
        wrong = "it ran, there is no record, and nobody said so"
    changed = place.left_files()
    if "--write" in suite.options and str(place.project / "written") in changed:
        changed.remove(str(place.project / "written"))
        (place.project / "written").unlink()
    if not wrong and changed:
        wrong = f"files changed: {changed}"
    wrong = wrong or judge_record(place)
    place.forget_runs()
    return fault, outcome, wrong


def is_recorded(place):
    for run in place.runs().values():
        try:
            records.read(run)
            return True
        except (OSError, ValueError):
            pass
    return False


def tell(suite, wrong):
    """A note for each call that something is wrong about, whichever the errors were."""
    calls = {}
    for fault, why in wrong:
        calls.setdefault((fault.role, fault.name, fault.call, fault.kind), []).append((fault, why))
    for (role, name, call, kind), all_of_it in calls.items():
        fault, why = all_of_it[0]
        errors = " ".join(fault.error for fault, _ in all_of_it if fault.error)
        again = " ".join(["inject", *options_of(suite, fault), "-- bawn run -- /work/witness …"])
        yield f"{role} {name} {call}, {kind} {errors}: {again}\n  {why}"


def run_faults(suite, tap, uid, title, faults):
    """All faults of a kind, two at a time; one case of TAP for each role."""
    places = [place_with_key(suite, uid, suite.tools.witness) for _ in range(2)]
    before = Before()
    results = []

    def work(place, mine):
        return [try_fault(suite, place, fault) for fault in mine]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for done in pool.map(work, places, (faults[0::2], faults[1::2])):
            results += done
    reap()
    # What a keeper that was killed could not remove, the next one does.
    places[0].start([suite.tools.bawn, "run", "--", "true"], stdout=subprocess.DEVNULL).wait(SECONDS)
    left = before.left()
    before.clean()
    for role in ("keeper", "cage", "command", "helper"):
        mine = [r for r in results if r[0].role == role]
        if not mine:
            continue
        count = collections.Counter(outcome for _, outcome, _ in mine)
        wrong = [(fault, why) for fault, _, why in mine if why]
        # Calls that depend on time come and go; when many do, the plan of faults is wrong.
        missed = count["not reached"] * 5 > len(mine) + 25
        notes = list(tell(suite, wrong))
        notes[NOTES:] = [f"… and {len(notes) - NOTES} more"] if len(notes) > NOTES else []
        notes += [f"{count['not reached']} of {len(mine)} calls were not reached"] if missed else []
        summary = ", ".join(f"{n} {what}" for what, n in sorted(count.items()))
        tap.case(not wrong and not missed, f"{role} {title} as {name_of(uid)}: {len(mine)} runs, {summary}", notes)
    tap.case(not left, f"nothing is left after {len(results)} runs ({title}) as {name_of(uid)}", left)
    for place in places:
        place.done()


def run_outside(suite, tap, uid):
    """The twin: where there is no cage, the witness says so."""
    place = Place(uid)
    with place.start([suite.tools.witness, suite.tools.canary, *suite.spaces], stdout=subprocess.PIPE) as child:
        said = dict(line.split(" ") for line in child.communicate()[0].decode().splitlines() if " " in line)
    place.done()
    seen = [layer for layer in OUTSIDE if said.get(layer) != "no"]
    tap.case(not seen, f"without a cage the witness misses what a cage gives as {name_of(uid)}", seen)


def run_user(suite, tap, uid, args):
    run_outside(suite, tap, uid)
    place = place_with_key(suite, uid, suite.tools.witness)
    report = suite.run(place, "--log")
    place.done()
    good = report.get("status") == 0 and report.get("held") == suite.all_layers() and not report.get("late")
    tap.case(good, f"without a fault all layers hold as {name_of(uid)}",
             [] if good else [f"status {report.get('status')}, missing {suite.names(report.get('missing', 0))}",
                              report.get("err"), report.get("out")])
    if not good:
        return
    processes = find_roles(suite, report)
    for p in processes:
        print(f"# {p.label} {p.role}: {len(p.names)} calls, {len(set(p.names))} kinds")
    for title, plan in (("fails once", plan_once), ("cannot finish", plan_finish), ("fails for ever", plan_for_ever),
                        ("is killed", plan_kills), ("is orphaned", plan_orphans)):
        faults = list(plan(processes, args.all)) if args.only in title else []
        if faults:
            run_faults(suite, tap, uid, title, faults)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bawn")
    parser.add_argument("inject")
    parser.add_argument("witness")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--user", type=int)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--allow", action="store_true")
    args = parser.parse_args()
    stand_apart()
    suite, tap = Suite(args), Tap()
    try:
        for uid in users() if args.user is None else [args.user]:
            run_user(suite, tap, uid, args)
    finally:
        suite.tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
