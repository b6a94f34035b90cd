#!/usr/bin/env python3
"""What .ci/run does with its steps: their order, the sum, and that no failure is lost.

    run.py        prints TAP

`make` is a stand-in, which notes its words, prints what it was told to and ends as it was told to.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

CI = pathlib.Path(__file__).resolve().parents[2] / ".ci/run"
SUITES = ["test", "test-vm", "test-agents", "test-workers", "test-net", "faults-start"]
# After the first, two rows beside each other.
FIRST, ROWS = "test", [["lint", "fuzz FUZZ_SECONDS=5"], SUITES[1:]]
STEPS = [FIRST, *ROWS[0], *ROWS[1]]
# What the sanitizers count in lint is in the other suites too.
GOOD = {**{step: (0, f"{10 ** i} passed, 0 failed, {i} skipped") for i, step in enumerate(SUITES)},
        "lint": (0, "7 passed, 0 failed, 0 skipped"), "fuzz": (0, "")}
PASSED, SKIPPED = 111111, 15  # of all suites together

MAKE = """#!/bin/sh
cd "${0%/*}" && echo "$* $CI" >>steps && echo "some line" && cat "$1" && exit "$(cat "$1.status")"
"""

CASES = []


def case(function):
    CASES.append(function)
    return function


def run(ends=None):
    """With steps that end otherwise than well, by their first word. The status, the last line, and those before it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "make").write_text(MAKE, encoding="utf-8")
        (folder / "make").chmod(0o755)
        for step, (status, text) in {**GOOD, **(ends or {})}.items():
            (folder / step).write_text(text + "\n", encoding="utf-8")
            (folder / f"{step}.status").write_text(str(status), encoding="utf-8")
        done = subprocess.run([CI], env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CI": "false"},
                              capture_output=True, text=True, check=False)
        steps = (folder / "steps").read_text(encoding="utf-8").splitlines()
    assert sorted(steps) == sorted(f"{step} true" for step in STEPS) and steps[0] == f"{FIRST} true", steps
    for row in ROWS:
        assert [step.removesuffix(" true") for step in steps if step.removesuffix(" true") in row] == row, steps
    *before, last = done.stdout.splitlines()
    told = before[max(i for i, line in enumerate(before) if line.startswith("all of it: ")) + 1:]
    return done.returncode, last, told


@case
def all_steps_run_in_order_and_the_last_line_is_the_sum_of_the_suites():
    assert run() == (0, f"{PASSED} passed, 0 failed, {SKIPPED} skipped", []), run()


@case
def a_failure_of_any_step_is_the_end_of_all():
    for step in STEPS:
        status, line, _ = run({step.split()[0]: (2, "no closing line")})
        assert status != 0 and re.search(" 1 failed", line), (step, status, line)


@case
def failures_that_a_suite_counts_are_summed():
    status, line, _ = run({"test": (2, "5 passed, 2 failed, 0 skipped"), "test-vm": (2, "6 passed, 3 failed, 1 skipped")})
    assert (status != 0, line) == (True, f"{PASSED - 1 - 10 + 11} passed, 5 failed, {SKIPPED} skipped"), (status, line)


@case
def a_counted_failure_is_one_whatever_the_status_is():
    status, line, _ = run({"test-workers": (0, "5 passed, 1 failed, 0 skipped")})
    assert status != 0 and " 1 failed" in line, (status, line)


@case
def a_suite_that_fails_after_a_good_closing_line_is_a_failure():
    status, line, _ = run({"faults-start": (1, "5 passed, 0 failed, 0 skipped")})
    assert status != 0 and " 1 failed" in line, (status, line)


@case
def a_suite_that_counts_nothing_is_a_failure():
    for text in ("", "# 5 passed, 0 failed, 0 skipped", "5 passed, 0 failed"):
        status, line, _ = run({"test-vm": (0, text)})
        assert status != 0 and " 1 failed" in line, (text, status, line)


@case
def what_failed_is_listed_before_the_sum():
    many = "\n".join(f"failed: suite: case {i}: {'why ' * 200}" for i in range(150))
    _, _, told = run({"test": (2, f"failed: a: b: c\nnoise\n5 passed, 1 failed, 0 skipped"), "lint": (1, "bad tidy"),
                      "test-vm": (2, "nothing counted"), "faults-start": (1, "5 passed, 0 failed, 0 skipped")})
    assert told == ["make test: failed: a: b: c", "make lint: bad tidy", "make lint: failed: make lint: status 1",
                    "make test-vm: failed: make test-vm: it counted nothing",
                    "make faults-start: failed: make faults-start: status 1"], told
    _, _, told = run({"test": (2, f"{many}\n5 passed, 150 failed, 0 skipped")})
    assert len(told) == 101 and told[-1] == "... and 50 more lines" and max(map(len, told)) <= 400, told


def main():
    print(f"1..{len(CASES)}")
    failed = 0
    for number, function in enumerate(CASES, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}")
        except AssertionError as e:
            failed += 1
            print(f"not ok {number} - {function.__name__}\n# {e}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
