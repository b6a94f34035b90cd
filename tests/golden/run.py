#!/usr/bin/env python3
"""Golden tests: a spec and a described host give exactly this plan, or exactly these diagnostics.

Each case is a file NAME.yaml with the expected output in NAME.out beside it: what bawn prints on
standard error, then on standard output, then its exit status. The first lines of a case may say

    #: args check --explain limits.memory     arguments instead of: plan --trust
    #: host no-landlock                       the file of hosts/ instead of: user
    #: policy strict                          the file of policies/ as the user's policy
    #: after -- sleep 5                       arguments at the end

    run.py BAWN              runs all cases and prints TAP
    run.py BAWN --update     writes what bawn prints now; look at the difference before you commit
"""

import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def directives(case):
    found = {}
    for line in case.read_bytes().split(b"\n"):
        if not line.startswith(b"#: "):
            break
        name, _, value = line[3:].decode().strip().partition(" ")
        found[name] = value
    return found


def command_of(bawn, case, said):
    name, *more = shlex.split(said.get("args", "plan --trust"))
    command = [bawn, name]
    if name != "doctor":
        command += ["-f", str(case.relative_to(HERE))]
    if name != "check":
        command += ["--host", f"hosts/{said.get('host', 'user')}.json"]
    return command + more + shlex.split(said.get("after", ""))


def run(bawn, case):
    said = directives(case)
    with tempfile.TemporaryDirectory() as config:
        policy = pathlib.Path(config) / "bawn" / "policy.yaml"
        if "policy" in said:
            # A copy: bawn wants it the user's own, whatever owner and umask the checkout has.
            policy.parent.mkdir()
            shutil.copyfile(HERE / "policies" / f"{said['policy']}.yaml", policy)
            policy.chmod(0o600)
        env = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": config}
        done = subprocess.run(command_of(bawn, case, said), cwd=HERE, env=env, timeout=60,
                              capture_output=True, check=False)
    text = done.stderr + done.stdout
    text = text.replace(str(policy).encode(), f"policies/{said.get('policy')}.yaml".encode())
    text = text.replace(str(HERE).encode(), b"HERE")
    return text + f"[exit {done.returncode}]\n".encode()


def main():
    bawn = str(pathlib.Path(sys.argv[1]).resolve())
    update = "--update" in sys.argv[2:]
    cases = sorted(HERE.glob("good/*.yaml")) + sorted(HERE.glob("bad/*.yaml"))
    failed = 0
    print(f"1..{len(cases)}")
    for number, case in enumerate(cases, 1):
        expected = case.with_suffix(".out")
        got = run(bawn, case)
        # A good case is one that is planned, and a bad one never is: neither can drift.
        status = int(got.rsplit(b"[exit ", 1)[1].split(b"]")[0])
        fits = (status == 0) == (case.parent.name == "good")
        if update:
            expected.write_bytes(got)
        wanted = expected.read_bytes() if expected.exists() else b"(no .out file)\n"
        good = fits and got == wanted
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {case.parent.name}/{case.stem}")
        if not fits:
            print(f"# exit {status} does not fit a case of {case.parent.name}/")
        if got != wanted:
            for line in got.decode(errors="replace").splitlines()[:60]:
                print("# got: " + line)
    for orphan in sorted(set(HERE.glob("*/*.out")) - {c.with_suffix(".out") for c in cases}):
        print(f"# {orphan.relative_to(HERE)} belongs to no case")
        failed += 1
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
