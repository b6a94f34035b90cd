#!/usr/bin/env python3
"""Metrics of bawn's, judged by Prometheus' own tool: the format, and what it advises about names.

    metrics.py BUILD MAKE_METRICS        prints TAP
"""

import subprocess
import sys

sys.dont_write_bytecode = True
import promtool  # noqa: E402

BUILD, MAKE = sys.argv[1:3]


def made(which):
    return subprocess.run([MAKE, which], capture_output=True, check=True, text=True).stdout


def judge(tool, text):
    """None, or what it has to say."""
    done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60,
                          check=False)
    said = done.stdout + done.stderr
    return None if done.returncode == 0 and not said else said or f"status {done.returncode}"


def good(which):
    return lambda tool: judge(tool, made(which))


def bad(before, after):
    """The twin: the tool does see what is wrong."""
    def look(tool):
        text = made("some")
        assert before in text, f"{before!r} is not there"
        return None if judge(tool, text.replace(before, after)) else "it takes what is wrong"
    return look


CASES = {
    "metrics of a worker that has just begun": good("none"),
    "metrics of one that has counted, also the largest numbers": good("some"),
    "a counter by another name is not taken": bad("bawn_sweeps_total", "bawn_sweeps"),
    "a value that is no number is not taken": bad("bawn_sessions 3", "bawn_sessions three"),
    "a series without help is not taken": bad("# HELP bawn_workers Workers of the store that are alive.\n", ""),
}


def main():
    try:
        tool = promtool.find(BUILD)
    except promtool.Missing as reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    failed = 0
    print(f"1..{len(CASES)}")
    for number, (name, look) in enumerate(CASES.items(), 1):
        problem = look(tool)
        failed += problem is not None
        print(f"{'not ok' if problem else 'ok'} {number} - {name}", flush=True)
        if problem:
            print("\n".join(f"# {line}" for line in problem.splitlines()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
