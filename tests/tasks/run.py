#!/usr/bin/env python3
"""Everyday tasks, as scripts: bawn's are run, and all are counted.

    run.py BAWN [--table]        prints TAP, or the table of `make bench`

A folder has the scripts of one program, as somebody would type them. A task without a script was not tried: most
often the program has no such thing, and srt's masking of credentials is one that is still to be written. Lines that end with "# check" are the test's own, and are not counted. A flag is a word
that begins with "-" before the caged command. Scripts of other programs are run for the table where these are
installed; for a count that was not tried the table says so.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "docs"), str(HERE.parent / "peers")]
import lines  # noqa: E402
import npm  # noqa: E402

PROGRAMS = ("bawn", "bwrap", "firejail", "srt", "codex")
STAGE = """
mkdir -p ~/project ~/.local/bin && cd ~/project || exit 1
export PATH=~/.local/bin:$PATH ANTHROPIC_API_KEY=sk-example-of-the-tests
echo one >notes
echo '{ "name": "p", "version": "1.0.0", "scripts": { "test": "echo tests passed" } }' >package.json
echo '{ "name": "p", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": { "": {} } }' >package-lock.json
echo 'require("http").createServer((_, answer) => answer.end("hello\\n")).listen(3000)' >server.js
printf '#!/bin/sh\\n! env | grep sk-example && test -n "$ANTHROPIC_BASE_URL"\\n' >~/.local/bin/claude && chmod +x ~/.local/bin/claude
"""


def counts(path):
    """(commands, flags) that a person types."""
    typed = [line for line in path.read_text(encoding="utf-8").splitlines()
             if line and not line.startswith("#") and not line.endswith("# check")]
    flags = 0
    for line in typed:
        own = re.split(r" -- | \| |\bnpm\b|\bsed\b", line)[0] if path.parent.name in line else ""
        flags += sum(word.startswith("-") for word in own.split())
    return len(typed), flags


def run(account, path):
    """(how it ended, what it printed)"""
    text = f"trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n{STAGE}\nset -e -o pipefail\n{path.read_text(encoding='utf-8')}\necho 'all done'\n"
    printed = account.shell(text)
    return "\nall done\n" in "\n" + printed, printed


def test(account):
    failed, paths = 0, sorted((HERE / "bawn").glob("*.sh"))
    for number, path in enumerate(paths, 1):
        is_good, printed = run(account, path)
        # Without a cgroup of one's own a limit on memory must be refused, and not ignored.
        note = ""
        if not is_good and "--memory" in path.read_text(encoding="utf-8") and "limits.memory" in printed:
            is_good, note = "tests passed" not in printed, ": refused, for there is no cgroup to limit"
        if not is_good:
            failed += 1
            print("".join(f"# {line}\n" for line in printed.splitlines()), end="")
        print(f"{'ok' if is_good else 'not ok'} {number} - {path.stem}{note}", flush=True)
    print(f"1..{len(paths)}")
    return failed


def has(account, program):
    return program == "bawn" or bool(shutil.which(program, path=f"{account.folder}/bin:/usr/bin:/bin"))


def table(account):
    tasks = sorted({path.stem for program in PROGRAMS for path in (HERE / program).glob("*.sh")})
    reasons = []
    print(f"  {'commands/flags':34}" + "".join(f"{program:>12}" for program in PROGRAMS))
    for task in tasks:
        cells = []
        for program in PROGRAMS:
            path = HERE / program / f"{task}.sh"
            cell = "-"
            if path.exists():
                cell = "/".join(map(str, counts(path)))
                is_good, printed = run(account, path) if has(account, program) else (True, "")
                cell += "" if is_good and printed else "?" if is_good else "!"
                if not is_good:
                    reasons.append(f"{program}/{task}: {(printed.strip().splitlines() or ['nothing was printed'])[-1]}")
            cells.append(f"{cell:>12}")
        print(f"  {task:34}" + "".join(cells), flush=True)
    print("  -: no script here; ?: not installed here, so not tried; !: tried, and failed here:")
    print("".join(f"    {reason}\n" for reason in reasons), end="")


def bring(account, build):
    """srt and codex as npm has them, where the account may execute them."""
    try:
        shutil.copytree(npm.Node(build, HERE).folder, account.folder / "npm", symlinks=True)
        for program in ("srt", "codex"):
            (account.folder / "bin" / program).symlink_to(f"../npm/node_modules/.bin/{program}")
    except npm.Missing as problem:
        print(f"  {problem}")


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP only root can make an account")
        return
    account = lines.Account(sys.argv[1])
    try:
        if "--table" not in sys.argv:
            sys.exit(1 if test(account) else 0)
        bring(account, pathlib.Path(sys.argv[1]).resolve().parents[2])
        table(account)
    finally:
        account.end()


if __name__ == "__main__":
    main()
