#!/usr/bin/env python3
"""A start that is deceived, by the host or by the answer of a call, is refused before its command runs.

    deceived.py BAWN BREAKABLE INJECT        prints TAP

sources    The cage's first process stops before it opens its first source, and the host puts another
           folder in the place of one. A user's cage compares what it opens with what was approved;
           root's keeper hands over the approved tree, and the inspection finds it under another name.
listeners  It stops before it enters its root, and root listens in its network, where only the gate may.
the gate   A call that takes rights from the gate, or from who connects for it, is not made and
           answers 0.

In each twin the comparison is left out, and the command runs.
"""

import json
import os
import subprocess
import sys

from place import Place, Tap, Tools, adopt_orphans, name_of, system_calls, users

SECONDS = 60
SCRIPT = "cat /data/file"
# By user: what the twin leaves out, how the run is refused otherwise, and what the twin's command sees.
OF_ROOT = ("look", "'fs.reads' does not hold: at /data there is", "source\n")
OF_USERS = ("source", "in the cage: it was replaced just now", "other\n")
ALLOW = ("--allow", "nobody.example:443")
# Of whom, which call only seems to be made; a user's gate has all capabilities of the cage's user namespace.
LIES = (("gate", "seccomp"), ("dialer", "seccomp"))
LIES_OF_ROOT = LIES + (("gate", "setresuid"), ("dialer", "setresuid"))
LIES_OF_USERS = LIES + (("gate", "capset"),)
# Listens in the network it is in, and ends when the process that is stopped meanwhile has.
LISTENER = """
import os, socket, sys, time
server = socket.create_server(("", int(sys.argv[1])))
if os.fork() == 0:
    os.close(1)
    while os.path.exists("/proc/" + os.environ["STOPPED"]):
        time.sleep(0.05)
"""


class Suite:
    def __init__(self, bawn, breakable, inject):
        self.tools = Tools(bawn, breakable, inject)
        self.bawn, self.breakable = (str(self.tools.top / os.path.basename(file)) for file in (bawn, breakable))
        self.calls = system_calls()
        self.numbers = {name: number for number, name in self.calls.items()}

    def run(self, place, program, *options, more=()):
        """The report of one run, with what it printed."""
        read, write = os.pipe()
        command = [self.tools.inject, "--seconds", SECONDS, "--report", write, *options, "--", program, "run",
                   "-v", f"{place.home}/source:/data:rw", *more, "--", "sh", "-c", SCRIPT]
        with place.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[write]) as child:
            os.close(write)
            with open(read, encoding="utf-8") as f:
                report = json.loads(f.read())
            report["out"], report["err"] = (text.decode() for text in child.communicate())
        return report

    def labels(self, place, more=()):
        """The cage's first process, the gate, and who connects for it, of a run in which nothing is wrong."""
        report = self.run(place, self.bawn, "--log", more=more)
        assert report["status"] == 0, report
        calls = {p["label"]: {self.calls.get(number) for number in p["log"]} for p in report["processes"]}
        cage = next(label for label in calls if "pivot_root" in calls[label])
        # They are fresh starts of the program, and the gate goes into the cage's network.
        fresh = [label for label in calls if label.count(".") == 1 and {"execve", "seccomp"} <= calls[label]]
        return {"cage": cage, "gate": next((label for label in fresh if "setns" in calls[label]), None),
                "dialer": next((label for label in fresh if "setns" not in calls[label]), None)}


def new_place(uid):
    place = Place(uid)
    for name in ("source", "other"):
        folder = place.home / name
        folder.mkdir()
        (folder / "file").write_text(f"{name}\n", encoding="utf-8")
        for path in (folder, folder / "file"):
            os.chown(path, uid, uid)
    return place


def run_stopped(suite, uid, label, meanwhile, program, left_out=""):
    """One run whose cage stops at its first openat2 while the host runs a command."""
    place = new_place(uid)
    place.env["BAWN_TEST_BREAK"] = left_out
    report = suite.run(place, program, "--process", label, "--call", 1, "--number", suite.numbers["openat2"],
                       "--meanwhile", f"cd '{place.home}' && {meanwhile}")
    place.done()
    return report


def tell(tap, report, is_good, name):
    is_good = is_good and report["meanwhile"] == 0
    tap.case(is_good, name, [] if is_good else [report])


def run_sources(suite, tap, uid):
    left_out, refusal, shown = OF_ROOT if uid == 0 else OF_USERS
    swap = "mv source old && mv other source"
    place = new_place(uid)
    label = suite.labels(place)["cage"]
    place.done()
    report = run_stopped(suite, uid, label, ":", suite.bawn)
    tell(tap, report, report["status"] == 0 and report["out"] == "source\n",
         f"a cage that was only stopped runs its command as {name_of(uid)}")
    report = run_stopped(suite, uid, label, swap, suite.bawn)
    tell(tap, report, report["status"] == 125 and not report["out"] and refusal in report["err"],
         f"a source that was replaced meanwhile is refused as {name_of(uid)}")
    report = run_stopped(suite, uid, label, swap, suite.breakable, left_out)
    tell(tap, report, report["status"] == 0 and report["out"] == shown,
         f"without the comparison the command sees the {shown.strip()} as {name_of(uid)}")


def run_listener(suite, tap):
    place = new_place(0)
    place.env["BAWN_TEST_BREAK"] = "look"
    label = suite.labels(place, ALLOW)["cage"]
    listen = f"nsenter --net=/proc/$STOPPED/ns/net {sys.executable} -c '{LISTENER}' 7777"
    for program, meanwhile, refusal in ((suite.bawn, ":", None),
                                        (suite.bawn, listen, "somebody listens at port 7777 in the cage's network"),
                                        (suite.breakable, listen, None)):
        report = suite.run(place, program, "--process", label, "--call", 1, "--number",
                           suite.numbers["pivot_root"], "--meanwhile", meanwhile, more=ALLOW)
        is_good = (report["status"] == 125 and not report["out"] and refusal in report["err"] if refusal else
                   report["status"] == 0 and report["out"] == "source\n")
        tell(tap, report, is_good,
             f"{'a stranger listens' if meanwhile == listen else 'only the gate listens'} in the cage's network: "
             f"{'refused' if refusal else 'runs'}{'' if program == suite.bawn else ' without the inspection'}")
    place.done()


def run_lies(suite, tap, uid):
    place = new_place(uid)
    place.env["BAWN_TEST_BREAK"] = "look"
    labels = suite.labels(place, ALLOW)
    for who, call in LIES_OF_ROOT if uid == 0 else LIES_OF_USERS:
        for program in suite.bawn, suite.breakable:
            report = suite.run(place, program, "--process", labels[who], "--call", 1, "--number", suite.numbers[call],
                               "--error", 0, more=ALLOW)
            is_refused = report["status"] == 125 and f"the {who} is not confined" in report["err"]
            has_run = report["status"] == 0 and report["out"] == "source\n"
            is_good = report["hits"] == 1 and (is_refused and not report["out"] if program == suite.bawn else has_run)
            tap.case(is_good, f"a {call} of the {who} that only seems to be made is "
                     f"{'noticed' if program == suite.bawn else 'not noticed without the inspection'} "
                     f"as {name_of(uid)}", [] if is_good else [report])
    place.done()


def main():
    adopt_orphans()
    suite, tap = Suite(*sys.argv[1:4]), Tap()
    try:
        for uid in users():
            run_sources(suite, tap, uid)
            run_lies(suite, tap, uid)
        if os.geteuid() == 0:
            run_listener(suite, tap)
    finally:
        suite.tools.done()
    tap.end()


if __name__ == "__main__":
    sys.exit(main())
