#!/usr/bin/env python3
"""Differences and merges of texts, held against what git and patch make of them.

    text.py TEXT_TOOL        prints TAP

Texts are drawn, always the same ones. Patches are applied to all of them at once by `git apply` and
by `patch`, forwards and backwards. Merges are compared with `git merge-file`: where neither sees a
conflict, both give the same text; and nothing that a side changed is ever missing.
"""

import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

TOOL = os.path.abspath(sys.argv[1])
PAIRS, TRIPLES = 300, 200
NAMES = ("base", "ours", "theirs")
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
       "GIT_CEILING_DIRECTORIES": os.path.realpath(tempfile.gettempdir())}
CONFLICT = re.compile(rb"<<<<<<< ours\r?\n(.*?)=======\r?\n(.*?)>>>>>>> theirs\r?\n", re.S)


def run(*command, cwd=None, good=(0,)):
    done = subprocess.run(command, cwd=cwd, env=ENV, capture_output=True, check=False, timeout=120)
    assert done.returncode in good, f"{command[:3]}: {done.returncode} {done.stderr[-300:]} {done.stdout[-300:]}"
    return done


# --- texts ---


class Draw:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0

    def few(self):
        """One of a few lines: every text repeats itself."""
        return self.random.choice((b"a\n", b"b\n", b"\n", b"a \n", b"a\r\n", b"- a\n", b"\\ a\n"))

    def code(self):
        """Most lines are like no other, as in source."""
        self.count += 1
        if self.random.random() < 0.3:
            return self.random.choice((b"\n", b"}\n", b"\t}\n", b"\tbreak;\n"))
        return b"\tline %d;\n" % self.count

    def dos(self):
        return self.code()[:-1] + b"\r\n"

    def single(self):
        """No two lines are the same."""
        self.count += 1
        return b"%d\n" % self.count

    def text(self, line, most=40):
        return [line() for _ in range(self.random.randrange(most))]

    def change(self, lines, line, times):
        lines = list(lines)
        for _ in range(times):
            at, size = self.random.randint(0, len(lines)), self.random.randint(1, 4)
            lines[at:at + self.random.choice((0, size))] = [line() for _ in range(self.random.choice((0, size)))]
        return lines

    def end(self, lines):
        """The bytes, now and then without the last newline."""
        text = b"".join(lines)
        return text[:-1] if self.random.random() < 0.2 else text


def draw_pairs():
    draw = Draw(1)
    for line in (draw.few, draw.code, draw.dos):
        for _ in range(PAIRS // 3):
            a = draw.text(line)
            yield draw.end(a), draw.end(draw.change(a, line, draw.random.randrange(6)))
    zero = [b"\0%d\n" % i for i in range(30)]
    lines = [b"%d\n" % i for i in range(3000)]
    yield from ((b"", b""), (b"", b"a\n"), (b"a\n", b""), (b"", b"a"), (b"a", b""), (b"a", b"a\n"), (b"\n", b""),
                (b"a\n", b"a\r\n"), (b"a\r", b"a"), (b"x" * 100000, b"x" * 100000 + b"\n"),
                (b"".join(lines + zero), b"".join(lines + zero[:10] + [b"\0\0\n"] + zero[12:])),
                (b"".join(lines), b"".join(reversed(lines))))


# --- patches ---


def write(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_bytes(text)


def read(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def make_patch(top):
    """Both trees, and one patch of all that differs."""
    before, after, patch = {}, {}, b""
    for number, (a, b) in enumerate(draw_pairs()):
        before[f"{number}"], after[f"{number}"] = a, b
    write(top / "a", before)
    write(top / "b", after)
    for name in before:
        hunks = run(TOOL, "diff", f"a/{name}", f"b/{name}", cwd=top).stdout
        assert bool(hunks) == (before[name] != after[name]), name
        if hunks:
            patch += f"diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n".encode() + hunks
    (top / "patch").write_bytes(patch)
    return before, after


def differing(got, wanted):
    return sorted(name for name in wanted.keys() | got.keys() if got.get(name) != wanted.get(name))


def check_patches(top, there, back):
    before, after = make_patch(top)
    run(*there, "../patch", cwd=top / "a")
    assert not differing(read(top / "a"), after), differing(read(top / "a"), after)
    run(*back, "../patch", cwd=top / "a")
    assert not differing(read(top / "a"), before), differing(read(top / "a"), before)


def git_applies_every_patch_and_takes_it_back(top):
    check_patches(top, ("git", "apply", "--whitespace=nowarn"), ("git", "apply", "--whitespace=nowarn", "-R"))


def patch_applies_every_patch_and_takes_it_back(top):
    strict = ("patch", "-p1", "--binary", "--fuzz=0", "--force", "--silent")
    check_patches(top, (*strict, "-i"), (*strict, "-R", "-i"))


def a_patch_that_is_wrong_is_refused(top):
    """The twin: neither of them takes just anything."""
    make_patch(top)
    patch, changed = re.subn(rb"\n-\tline", rb"\n-\tother", (top / "patch").read_bytes(), count=1)
    assert changed == 1
    (top / "patch").write_bytes(patch)
    run("git", "apply", "../patch", cwd=top / "a", good=(1, 128))
    run("patch", "-p1", "--binary", "--fuzz=0", "--force", "--silent", "-i", "../patch", cwd=top / "a", good=(1, 2))


def counts_are_those_of_the_patch(top):
    make_patch(top)
    for path in sorted((top / "a").iterdir()):
        pair = path, top / "b" / path.name
        added, removed = map(int, run(TOOL, "count", *pair).stdout.split())
        lines = re.findall(rb"^[-+]", run(TOOL, "diff", *pair).stdout, re.M)
        assert (added, removed) == (lines.count(b"+"), lines.count(b"-")), path.name


# --- merges ---


def merge(top, base, ours, theirs):
    for name, text in zip(NAMES, (base, ours, theirs)):
        (top / name).write_bytes(text)
    done = run(TOOL, "merge", *NAMES, cwd=top, good=(0, 1))
    return done.stdout, done.returncode


def draw_triples(seed, line):
    draw = Draw(seed)
    line = getattr(draw, line)
    for _ in range(TRIPLES):
        base = draw.text(line)
        ours, theirs = (draw.change(base, line, draw.random.randrange(5)) for _ in range(2))
        if draw.random.random() < 0.2:
            theirs = draw.change(ours, line, 1)
        yield base, ours, theirs


def merges_are_those_of_git(top):
    clean, ends = 0, Draw(5)
    for kind in ("single", "code", "dos"):
        for triple in draw_triples(2, kind):
            merged, conflicts = merge(top, *(ends.end(lines) for lines in triple))
            git = run("git", "merge-file", "-p", "ours", "base", "theirs", cwd=top, good=range(100))
            if not conflicts and git.returncode == 0:
                assert merged == git.stdout, triple
                clean += 1
            # Where lines repeat, one of us may see how to avoid a conflict; where none does, never.
            assert kind != "single" or bool(conflicts) == bool(git.returncode), triple
    assert clean > TRIPLES, f"only {clean} without a conflict"


def nothing_of_either_side_is_lost(top):
    """Of lines like no other it is known who brought and who removed them."""
    conflicted = 0
    for base, ours, theirs in draw_triples(3, "single"):
        merged, conflicts = merge(top, *(b"".join(lines) for lines in (base, ours, theirs)))
        conflicted += conflicts
        assert bool(conflicts) == (b"<<<<<<<" in merged)
        outside = CONFLICT.sub(b"", merged).splitlines(True)
        for side, other, group in ((ours, theirs, 1), (theirs, ours, 2)):
            taken = CONFLICT.sub(lambda found, group=group: found.group(group), merged).splitlines(True)
            # All that the side has is there, but for what the other one removed.
            mine = [line for line in side if line in taken]
            assert mine == [line for line in taken if line in side], "in its order"
            assert all(line in base and line not in other for line in side if line not in taken)
            # All that it removed is gone, and what the other one brought is there or in a conflict.
            assert not [line for line in taken if line in base and line not in side]
            assert all(line in merged.splitlines(True) for line in other if line not in base)
        assert all(line in ours or line in theirs for line in outside)
    assert TRIPLES / 10 < conflicted < TRIPLES * 9 / 10, conflicted


def sides_may_be_exchanged(top):
    for kind in ("few", "code"):
        for base, ours, theirs in draw_triples(4, kind):
            one, one_conflicts = merge(top, *(b"".join(lines) for lines in (base, ours, theirs)))
            two, two_conflicts = merge(top, *(b"".join(lines) for lines in (base, theirs, ours)))
            one, two = CONFLICT.sub(rb"<\1|\2>", one), CONFLICT.sub(rb"<\2|\1>", two)
            assert one_conflicts == two_conflicts and one == two, (base, ours, theirs)


CASES = (git_applies_every_patch_and_takes_it_back, patch_applies_every_patch_and_takes_it_back,
         a_patch_that_is_wrong_is_refused, counts_are_those_of_the_patch, merges_are_those_of_git,
         nothing_of_either_side_is_lost, sides_may_be_exchanged)


def main():
    print(f"1..{len(CASES)}")
    failed = 0
    for number, case in enumerate(CASES, 1):
        top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-text-"))
        name = case.__name__.replace("_", " ")
        try:
            case(top)
            print(f"ok {number} - {name}", flush=True)
        except AssertionError as failure:
            failed += 1
            print(f"not ok {number} - {name}\n# {str(failure)[:2000]}", flush=True)
        finally:
            shutil.rmtree(top)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
