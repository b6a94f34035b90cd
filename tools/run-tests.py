#!/usr/bin/env python3
"""Runs the tests of a build folder and ends with one line: N passed, N failed, N skipped.

    tools/run-tests.py BUILD [argument of `meson test`]...

A test that speaks TAP counts once per case, any other counts as one. A case that is known not to
hold yet (TODO) is shown with its reason and counts as nothing. Every skip is shown with its
reason; with CI=true in the environment a skip is a failure, for there the machine is chosen to be
able to run everything.
"""

import json
import os
import re
import signal
import subprocess
import sys

# Most tests wait most of their time: for cages, networks and virtual machines.
SLOTS = 2 * len(os.sched_getaffinity(0))
TAP_CASE = re.compile(r"^(not )?ok\b(?: *\d+)?(?: *-)? *(.*?)(?:# *(SKIP|TODO)\b *(.*))?$", re.I)


def tap_cases(test):
    """The (name, outcome, reason) of every TAP case a test printed; none if it speaks no TAP."""
    lines = (test.get("stdout") or "").splitlines()
    if not any(re.match(r"1\.\.\d+", line) for line in lines):
        return
    for number, line in enumerate(lines):
        case = TAP_CASE.match(line)
        if not case:
            continue
        failed, name, directive, reason = case.groups()
        name = f"{test['name']}: {name.strip()}"
        directive = (directive or "").upper()
        if directive == "SKIP":
            yield name, "skipped", reason
        elif directive == "TODO" and failed:
            yield name, "to do", reason
        else:
            yield name, "failed" if failed else "passed", first_comment(lines[number + 1:]) if failed else ""


def first_comment(lines):
    """What a case says of its failure, in the line behind it."""
    return lines[0].lstrip("# ")[:400] if lines and lines[0].startswith("#") else ""


def outcomes(test):
    cases = list(tap_cases(test))
    result = test["result"]
    good = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}.get(result, "failed")
    # A crash, a time-out or a wrong plan is a failure even when every case printed was fine.
    if good == "failed" and not any(outcome == "failed" for _, outcome, _ in cases):
        cases.append((test["name"], "failed", result.lower()))
    if not cases:
        said = (test.get("stdout") or test.get("stderr") or "").strip().splitlines()
        cases.append((test["name"], good, said[-1] if said else ""))
    return cases


def log_base(arguments):
    """The name of the results, one for each choice of suites: several may run in one build folder at a time."""
    suites = [after for word, after in zip(arguments, arguments[1:]) if word == "--suite"]
    return "-".join(["testlog", *suites])


def run_meson(build, arguments):
    """Shows what meson says as it says it, without its own closing table; returns its status."""
    command = ["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs", "--num-processes", str(SLOTS),
               "--logbase", log_base(arguments), *arguments]
    # In a shell's background SIGINT is ignored, and would be in every program that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, "PYTHONUNBUFFERED": "1"}) as meson:
        is_table = False
        for line in meson.stdout:
            is_table = is_table or re.match(r"(Summary of Failures|Ok): ", line.strip() + " ")
            if not is_table:
                print(line, end="", flush=True)
    return meson.returncode


def main():
    build, arguments = sys.argv[1], sys.argv[2:]
    log = os.path.join(build, "meson-logs", log_base(arguments) + ".json")
    if os.path.exists(log):
        os.remove(log)  # so that an old result can never pass for this one
    status = run_meson(build, arguments)
    if not os.path.exists(log):
        sys.exit(f"{sys.argv[0]}: 'meson test' left no results in {log}")

    with open(log, encoding="utf-8") as lines:
        cases = [case for line in lines for case in outcomes(json.loads(line))]
    skip_is = "failed" if os.environ.get("CI") == "true" else "skipped"
    count = {"passed": 0, "failed": 0, "skipped": 0}
    for name, outcome, reason in cases:
        if outcome == "skipped":
            outcome = skip_is
            print(f"{'failed: ' if skip_is == 'failed' else ''}skipped: {name}: {reason or 'no reason given'}")
        elif outcome == "failed":
            print(f"failed: {name}" + (f": {reason}" if reason else ""))
        elif outcome == "to do":
            # Known, and told in the suite with its reason: it is no success, and not counted as one.
            print(f"does not hold yet: {name}: {reason or 'no reason given'}")
            continue
        count[outcome] += 1
    # No test at all is no success, and meson may know of a failure that it did not log.
    if not cases or (status and not count["failed"]):
        count["failed"] += 1
        print(f"failed: meson test ended with status {status}, {len(cases)} cases")
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**count))
    sys.exit(1 if count["failed"] else 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} BUILD [argument of `meson test`]...")
    main()
