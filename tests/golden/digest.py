#!/usr/bin/env python3
"""The same meaning has the same digest, another meaning another one.

All files of same/ say the same in other words: bawn prints the same canonical form and the same
plan for each. Each file of differ/ means something else for the cage: no two of them may have the
same digest, nor plans that do the same.

    digest.py BAWN        prints TAP
"""

import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def ask(bawn, case, command, *options):
    env = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": "/nonexistent"}
    done = subprocess.run([bawn, command, "-f", case.relative_to(HERE), "--trust", *options],
                          cwd=HERE, env=env, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        return f"exit {done.returncode}: {(done.stderr + done.stdout).decode(errors='replace')}"
    return done.stdout.decode()


def canonical(bawn, case):
    return ask(bawn, case, "check", "--canonical", "-q")


def plan(bawn, case):
    return ask(bawn, case, "plan", "--json", "--host", "hosts/user.json")


def effect(text):
    """What a plan does and promises, without what it is called."""
    try:
        whole = json.loads(text)
    except ValueError:
        return text
    return json.dumps([whole["engine"], whole["operations"], whole["guarantees"]])


def digest(text):
    return json.loads(text)["spec_sha256"] if text.startswith("{") else text


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def say(self, good, name, *why):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        for line in "\n".join(why).splitlines() if not good else []:
            print("# " + line[:2000])


def difference(one, other):
    """Where two texts part, with a few words around it."""
    at = next((i for i, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), 0)
    return [text[max(at - 60, 0):at + 60] for text in (one, other)]


def compare_same(tap, bawn, name, of):
    first = of(bawn, HERE / "same" / "plain.yaml")
    for case in sorted(HERE.glob("same/*.yaml")):
        text = of(bawn, case)
        good = text == first and not text.startswith("exit")
        tap.say(good, f"same {name}: {case.stem}", *difference(first, text))


def compare_different(tap, bawn, name, of):
    seen = {}
    for case in sorted(HERE.glob("differ/*.yaml")):
        text = plan(bawn, case)
        twin = seen.setdefault(of(text), case)
        good = twin == case and not text.startswith("exit")
        why = text if twin == case else f"the same as {twin.stem}"
        tap.say(good, f"other {name}: {case.stem}", why)


def main():
    bawn = str(pathlib.Path(sys.argv[1]).resolve())
    tap = Tap()
    compare_same(tap, bawn, "canonical form", canonical)
    compare_same(tap, bawn, "plan", plan)
    compare_different(tap, bawn, "digest", digest)
    compare_different(tap, bawn, "effect", effect)
    print(f"1..{tap.count}")
    sys.exit(1 if tap.failed else 0)


if __name__ == "__main__":
    main()
