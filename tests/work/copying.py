#!/usr/bin/env python3
"""A project that is captured by copying has the effects that it has captured by an overlay.

    copying.py COPYING SCAN [SEEDS [FIRST SEED]]        prints TAP; as root, and as a user

Each seed makes a tree and a row of random operations, which run in an overlay and in a copy: what a scan finds
in the two layers is the same. A second row has also what an overlay would not let anybody do, and what is found
then is the difference of two pictures.
"""

import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import scan  # noqa: E402

FORBIDDEN = (scan.Actor.forge, scan.Actor.whiteout)
LAWFUL = tuple(action for action in scan.Actor.ALL if action not in FORBIDDEN)
FORGER = scan.Actor.ALL + FORBIDDEN * 4


class Actor(scan.Actor):
    def any(self, wanted=lambda path: True):
        # What a link that leads out leads to is not the same for both.
        return super().any(lambda path: wanted(path) and not (wanted is os.path.isdir and os.path.islink(path)))


def act(folder, seed, actions):
    actor = Actor(folder, seed * 7919 + 1)
    actor.act(actions, actor.random.choice([1, 5, 20, 100]))
    os.chdir("/")


def inside(top, seeds):
    """In a namespace of our own, where we are root and our files are ours."""
    for seed in seeds:
        place = pathlib.Path(top, str(seed))
        layers = f"lowerdir={place}/below,upperdir={place}/layer,workdir={place}/work,userxattr"
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, place / "merged"], check=True)
        act(place / "merged", seed, LAWFUL)
        subprocess.run(["umount", place / "merged"], check=True)
        act(place / "lawful/copy", seed, LAWFUL)
        act(place / "forger/copy", seed, FORGER)


def is_whiteout(path):
    st = os.lstat(path)
    return stat.S_ISCHR(st.st_mode) and st.st_rdev == 0


def picture(top):
    """Without what an overlay takes for a whiteout: the run's own stand for nothing."""
    return {path: state for path, state in scan.picture(top).items()
            if not is_whiteout(os.path.join(os.fsencode(top), path))}


def tell(document):
    return [{key: value for key, value in x.items() if key != "base"} for x in document["effects"]]


def check(tools, uid, place):
    below, was = scan.picture(place / "below"), picture(place / "forger/copy")
    for layer in ("lawful", "forger"):
        run(tools, uid, "finish", place / layer)
    by_overlay = scan.decode(scan.scan(tools / "scan", uid, place, "layer", "-"))
    by_copy = scan.decode(scan.scan(tools / "scan", uid, place, "lawful/upper", "-"))
    other = [x for x in tell(by_copy) + tell(by_overlay) if x not in tell(by_overlay) or x not in tell(by_copy)]
    assert not other and by_copy["digest"] == by_overlay["digest"], f"{place}: other effects: {other}"
    forged = scan.decode(scan.scan(tools / "scan", uid, place, "forger/upper", "-"))
    scan.check_effects(forged["effects"], scan.difference(below, was), place)
    assert scan.picture(place / "below") == below, f"{place}: the tree changed"
    return len(by_copy["effects"])


def run(tools, uid, *words):
    done = subprocess.run([str(word) for word in scan.as_user(uid, [tools / "copying", *words])], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: status {done.returncode}: {done.stderr}"


def run_all(programs, uid, seeds):
    top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-copying-", dir="/var/tmp"))
    try:
        for program in programs:
            shutil.copy(program, top)
        for source in (__file__, scan.__file__, scan.accounts.__file__):
            shutil.copy(source, top)
        scan.prepare(top, uid, seeds)
        top.chmod(0o755)
        for seed in seeds:
            for layer in ("lawful", "forger"):
                place = top / str(seed) / layer
                place.mkdir()
                os.chown(place, uid, uid)
                run(top, uid, "begin", top / str(seed) / "below", place)
        words = ["unshare", "-Urm", scan.PYTHON, top / pathlib.Path(__file__).name, "inside", top, *seeds]
        subprocess.run([str(word) for word in scan.as_user(uid, words)], check=True)
        return sum(check(top, uid, top / str(seed)) for seed in seeds)
    finally:
        shutil.rmtree(top)


def main():
    if sys.argv[1] == "inside":
        inside(sys.argv[2], [int(seed) for seed in sys.argv[3:]])
        return 0
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    uids = [0, scan.USER] if os.geteuid() == 0 else [os.geteuid()]
    failed = 0
    print(f"1..{len(uids)}")
    for number, uid in enumerate(uids, 1):
        name = f"{number} - the same effects by copying as {'root' if uid == 0 else 'a user'}"
        try:
            print(f"ok {name} # {run_all(sys.argv[1:3], uid, range(first, first + count))} effects")
        except AssertionError as e:
            failed += 1
            print(f"not ok {name}")
            print("\n".join("# " + line for line in str(e).splitlines()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
