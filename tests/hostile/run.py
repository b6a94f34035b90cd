#!/usr/bin/env python3
"""Hostile specs: each is refused with a reason, quickly and in little memory.

For every case `bawn check` must end with status 1 or 125, never by a signal and never with 0; say
why on standard error, in at least one line and at most 128 kB; and use less than 100 ms of
processor time and 64 MB of memory. Time is the processor's, so that a busy machine changes nothing.
Memory counts from what this script uses itself, since the kernel charges a child for the moment
before it becomes another program.

    run.py BAWN [WORD…]      prints TAP; with words, only cases whose name has one of them
"""

import os
import pathlib
import random
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LIMIT = 256 * 1024  # what bawn reads of a file
MOST_CPU = 0.1
MOST_MEMORY = 64 * 1024  # kB
MOST_WORDS = 128 * 1024
TIMEOUT = 20  # of the clock: only something that waits takes so long
NOBODY = "65534"
HEAD = b"version: 1\n"


def fill(pattern, size=LIMIT):
    return (pattern * (size // len(pattern) + 1))[:size]


def until_full(make, head=HEAD, tail=b""):
    """Pieces make(0), make(1), … as many as a file may hold."""
    parts, size, i = [head], len(head) + len(tail), 0
    while size + len(piece := make(i)) <= LIMIT:
        parts.append(piece)
        size += len(piece)
        i += 1
    return b"".join(parts) + tail


# --- what a file may hold ---

def nested():
    yield "brackets", fill(b"[")
    yield "brackets, closed", HEAD + b"name: " + b"[" * 100000 + b"]" * 100000
    yield "braces", fill(b"{")
    yield "flow maps", fill(b"{a: ")
    yield "flow maps and lists", fill(b"[{a: ")
    yield "flow pairs", HEAD + b"name: [" + fill(b"a: [", 200000)
    yield "dashes", fill(b"- ")
    yield "question marks", fill(b"? ")
    yield "dashes and question marks", fill(b"- ? ")
    yield "block maps", until_full(lambda i: b" " * i + b"a:\n")
    yield "block maps that come back", until_full(lambda i: b" " * (i % 700) + b"a:\n")
    yield "block lists", until_full(lambda i: b" " * i + b"-\n")
    yield "block lists on one line", HEAD + b"name:\n" + fill(b"- ", 200000) + b"x\n"


def marked():
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n"]
    lines += [b"a%d: &a%d [%s]\n" % (i, i, b"*a%d, " % (i - 1) * 9) for i in range(1, 40)]
    yield "alias bomb", HEAD + b"".join(lines)
    yield "alias bomb in flow", HEAD + b"{" + b", ".join(lines).replace(b"\n", b"") + b"}"
    yield "merge bomb", HEAD + b"a: &a {b: c}\n" + fill(b"<<: *a\n", 200000)
    yield "anchors", until_full(lambda i: b"- &a%d x\n" % i, b"")
    yield "anchors on one value", HEAD + b"name: " + fill(b"&a ", 200000) + b"x\n"
    yield "anchor of 200 kB", HEAD + b"name: &" + fill(b"a", 200000) + b" x\n"
    yield "alias to itself", HEAD + b"a: &a [*a]\n"
    yield "tags", HEAD + b"name: " + fill(b"!!str ", 200000) + b"x\n"
    yield "tag of 200 kB", HEAD + b"name: !" + fill(b"a", 200000) + b" x\n"
    yield "tag of escapes", HEAD + b"name: !" + fill(b"%41", 200000) + b" x\n"
    yield "tag directives", until_full(lambda i: b"%%TAG !%d! tag:x:\n" % i, b"", b"---\n" + HEAD)
    yield "version directives", fill(b"%YAML 1.2\n")
    yield "unknown directives", until_full(lambda i: b"%%X%d y\n" % i, b"", b"---\n" + HEAD)
    yield "documents", fill(b"---\n")
    yield "documents with content", fill(b"--- x\n")
    yield "ends of documents", fill(b"...\n")


def keyed():
    yield "one key again and again", fill(b"a: 1\n", 250000)
    yield "version again and again", fill(HEAD, 250000)
    yield "one-character keys", until_full(lambda i: chr(0x10000 + i).encode() + b":\n")
    yield "one-character keys in flow", b"{" + fill(b"a,b,c,", 120000) + b"}"
    yield "keys of many lengths", until_full(lambda i: b"k" * (i % 300 + 1) + b"%d: 1\n" % i)
    yield "unknown keys in a section", until_full(lambda i: b"  k%d: 1\n" % i, HEAD + b"limits:\n")
    yield "near keys", until_full(lambda i: b"networ%d: 1\n" % i)
    yield "keys that differ at their end", until_full(lambda i: b"k" * 500 + b"%06d: 1\n" % i)
    yield "one long key", HEAD + fill(b"k", 200000) + b": 1\n"
    yield "one long key in quotes", HEAD + b'"' + fill(b"k", 200000) + b'": 1\n'
    yield "explicit keys", fill(b"? a\n: b\n")
    yield "empty keys", fill(b": \n")
    yield "variables", until_full(lambda i: b"  A%d: 1\n" % i, HEAD + b"env:\n set:\n")
    yield "bad binds", until_full(lambda i: b" - /a%d:b\n" % i, HEAD + b"binds:\n")
    yield "binds to one place", until_full(lambda i: b" - /a%d:/b\n" % i, HEAD + b"binds:\n")
    yield "binds of nothing", until_full(lambda i: b" - /no/%d:/b%d\n" % (i, i), HEAD + b"binds:\n")
    yield "bad destinations", until_full(lambda i: b" - h%d\n" % i, HEAD + b"network:\n allow:\n")
    yield "unknown guarantees", until_full(lambda i: b" - x\n", HEAD + b"allow_degraded:\n")
    yield "name of many points", HEAD + b"network: {allow: ['" + fill(b"a.", 200000) + b"a:1']}\n"
    yield "path of many parts", HEAD + b"workdir: " + fill(b"/a", 200000) + b"\n"
    yield "path that climbs", HEAD + b"workdir: " + fill(b"/..", 200000) + b"\n"


def long():
    yield "plain scalar", HEAD + b"name: " + fill(b"a", 200000) + b"\n"
    yield "plain scalar of words", HEAD + b"name: " + fill(b"a ", 200000) + b"\n"
    yield "number", HEAD + b"name: " + fill(b"1", 200000) + b"\n"
    yield "size", HEAD + b"limits: {memory: " + fill(b"1", 200000) + b"G}\n"
    yield "duration", HEAD + b"limits: {time: " + fill(b"1d", 200000) + b"}\n"
    yield "text for a list", HEAD + b"command: " + fill(b"a", 200000) + b"\n"
    yield "scalar over lines", HEAD + b"name: a\n" + fill(b"  a b c d e f g h i j\n", 220000)
    yield "scalar over empty lines", HEAD + b"name: a\n" + b"\n" * 200000 + b"  b\n"
    yield "literal block", HEAD + b"name: |\n" + fill(b"  a\n", 200000)
    yield "folded block", HEAD + b"name: >\n" + fill(b"  a\n\n", 200000)
    yield "folded block of spaces", HEAD + b"name: >\n" + fill(b" " * 500 + b"\n", 250000)
    yield "double quotes", fill(b'"')
    yield "single quotes", fill(b"'")
    yield "single quotes after a key", HEAD + b"name: " + fill(b"'", 200000) + b"\n"
    yield "double quotes over lines", HEAD + b'name: "' + fill(b"\\\n", 200000) + b'"\n'
    yield "escapes of four digits", HEAD + b'name: "' + fill(b"\\u0041", 240000) + b'"\n'
    yield "escapes of two digits", HEAD + b'name: "' + fill(b"\\x41", 240000) + b'"\n'
    yield "escapes of hidden characters", HEAD + b'name: "' + fill(b"\\u202e", 240000) + b'"\n'
    yield "key of hidden characters", HEAD + b'"' + fill(b"\\u202e", 240000) + b'": 1\n'
    yield "hidden characters", HEAD + fill("\u200b".encode(), 240000) + b"\n"
    yield "spaces after a dash", HEAD + b"nmae:\n- " + b" " * 200000 + b"x\n"
    for n in (100, 1000, 8000):
        entry, key = b"- " + b" " * n + b"x\n", b"? " + b" " * n
        yield f"{n} spaces after every dash", HEAD + b"nmae:\n" + fill(entry, 250000)
        yield f"{n} spaces after every question mark", until_full(lambda i: key + b"%d\n" % i)
        yield f"{n} spaces after a tag", HEAD + b"name: !" + b" " * n + b"x\n"
        yield f"{n} escapes in a tag", HEAD + b"name: !" + b"%41" * (n // 3) + b" x\n"
    yield "spaces after a question mark", HEAD + b"? " + b" " * 200000 + b"x\n"
    yield "spaces after a tag", HEAD + b"name: !" + b" " * 200000 + b"x\n"
    yield "empty lines in a literal block", HEAD + b"name: |\n a\n" + b"\n" * 200000 + b" b\n"
    yield "empty lines in a folded block", HEAD + b"name: >\n a\n" + b"\n" * 200000 + b" b\n"
    yield "empty lines behind a block", HEAD + b"name: |\n a\n" + b"\n" * 200000
    yield "empty lines in double quotes", HEAD + b'name: "a\n' + b"\n" * 200000 + b' b"\n'
    yield "empty lines in single quotes", HEAD + b"name: 'a\n" + b"\n" * 200000 + b" b'\n"
    for n in (50, 100, 250, 1000):
        run = fill(b" a\n" + b"\n" * n, 250000)
        yield f"runs of {n} empty lines in a block", HEAD + b"name: |\n" + run
        yield f"runs of {n} empty lines in a scalar", HEAD + b"name:\n" + run + b" a\n"
        yield f"runs of {n} empty lines in quotes", HEAD + b'name: "\n' + run + b' "\n'
        spaces = fill(b" a\n" + b"  \n" * n, 250000)
        yield f"runs of {n} lines of spaces in a block", HEAD + b"name: |\n" + spaces
    yield "lines of spaces in a block", HEAD + b"name: |\n a\n" + fill(b"  \n", 200000) + b" b\n"
    yield "directive", b"%" + b"a" * 200000 + b"\n---\n" + HEAD
    yield "comment", b"#" * LIMIT
    yield "comments", fill(b"#\n")
    yield "comment behind a value", HEAD + b"nmae: x " + fill(b"#", 200000)
    yield "newlines", b"\n" * 250000
    yield "spaces", b" " * LIMIT
    yield "spaces and newlines", fill(b" \n")
    yield "tabs", b"\t" * LIMIT
    yield "carriage returns", b"\r" * LIMIT
    yield "NUL bytes", bytes(LIMIT)
    yield "invalid UTF-8", b"\xff" * LIMIT
    yield "UTF-16", b"\xff\xfe" + "version: 1\n".encode("utf-16-le") * 10000
    yield "unclosed double quote", HEAD + b'name: "' + fill(b"a b\n ", 250000)
    yield "unclosed single quote", HEAD + b"name: '" + fill(b"a b\n ", 250000)
    yield "unclosed flow list", HEAD + b"name: [" + fill(b"a, ", 250000)
    yield "unclosed flow map", HEAD + b"name: {" + fill(b"a: b, ", 250000)
    yield "commas", HEAD + b"name: [" + fill(b",", 200000) + b"]\n"
    for char in ":-!&*|>%\\@`?,]}~=<":
        yield f"only {char}", fill(char.encode())
        yield f"only {char} after a key", HEAD + b"name: " + fill(char.encode(), 200000) + b"\n"


def noise():
    rng = random.Random(20250101)
    tokens = [b"a", b"1", b":", b": ", b"- ", b"? ", b"[", b"]", b"{", b"}", b",", b"&a ", b"*a ",
              b"!t ", b"|", b">", b"'", b'"', b"#", b"\n", b"\n  ", b"\n    ", b"---\n", b"...\n",
              b"%YAML 1.2\n", b"\\", b"<<", b"~", b"version: 1\n", b"\xc3\xa9", b" "]
    for size in (100, 10000, LIMIT):
        yield f"random bytes, {size}", rng.randbytes(size)
    for i in range(60):
        size = rng.choice((50, 500, 5000))
        yield f"random tokens, {i}", fill(b"".join(rng.choices(tokens, k=2000)), size)
    for i in range(20):
        yield f"random tokens, long, {i}", b"".join(rng.choices(tokens, k=100000))[:LIMIT]
    for byte in range(256):
        yield f"byte {byte:02x}", bytes([byte])
    yield "nothing", b""


# --- running ---

def give_up_after_a_second():
    resource.setrlimit(resource.RLIMIT_CPU, (1, 1))


class Run:
    """One run of bawn: how it ended, what it said and what it took."""

    def __init__(self, top, args, cwd, stdin=subprocess.DEVNULL, prefix=(), config=None):
        env = {"HOME": "/nonexistent", "XDG_CONFIG_HOME": config or "/nonexistent"}
        self.hangs = False
        with tempfile.TemporaryFile(dir=top) as said:
            child = subprocess.Popen([*prefix, top / "bawn", "check", *args], cwd=cwd, env=env,
                                     stdin=stdin, stdout=subprocess.DEVNULL, stderr=said,
                                     preexec_fn=give_up_after_a_second)
            self.wait(child)
            said.seek(0)
            self.words = said.read()

    def wait(self, child):
        end = time.monotonic() + TIMEOUT
        pid, pause = 0, 0.0005
        while pid == 0:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid == 0 and time.monotonic() > end:
                self.hangs = True
                child.kill()
            if pid == 0:
                time.sleep(pause)
                pause = min(pause * 2, 0.01)
        child.returncode = self.status = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss

    def faults(self):
        if self.hangs:
            yield f"still there after {TIMEOUT} s"
        if self.status not in (1, 125):
            yield f"ended with {self.status}"
        if not self.words.strip():
            yield "gave no reason"
        if len(self.words) > MOST_WORDS:
            yield f"gave a reason of {len(self.words)} bytes"
        if self.cpu >= MOST_CPU:
            yield f"took {self.cpu * 1000:.0f} ms"
        if self.memory >= MOST_MEMORY:
            yield f"took {self.memory // 1024} MB"


class Suite:
    def __init__(self, top, words):
        self.top, self.words = top, words
        self.count = self.failed = 0
        self.slowest, self.largest = (0, ""), (0, "")

    def check(self, name, args, cwd=None, **more):
        if self.words and not any(word in name for word in self.words):
            return
        run = Run(self.top, args, cwd or self.top, **more)
        # A busy machine can only add to the time: the best of three counts. A stream is read once.
        for _ in range(0 if "stdin" in more else 2):
            if run.cpu < MOST_CPU:
                break
            run = min(run, Run(self.top, args, cwd or self.top, **more), key=lambda r: r.cpu)
        faults = list(run.faults())
        self.count += 1
        self.failed += bool(faults)
        self.slowest = max(self.slowest, (run.cpu, name))
        self.largest = max(self.largest, (run.memory, name))
        print(f"{'not ok' if faults else 'ok'} {self.count} - {name}")
        for line in faults + ([run.words[:200].decode(errors="replace")] if faults else []):
            print("# " + line.replace("\n", "\n# "))

    def end(self):
        cpu, slow = self.slowest
        memory, large = self.largest
        print(f"1..{self.count}")
        print(f"# worst time {cpu * 1000:.1f} ms: {slow}")
        print(f"# worst memory {memory / 1024:.1f} MB: {large}")
        return 1 if self.failed else 0


# --- cases ---

def check_contents(suite):
    path = suite.top / "spec.yaml"
    for group in (nested, marked, keyed, long, noise):
        for name, data in group():
            path.write_bytes(data)
            suite.check(f"{group.__name__}: {name}", ["-f", path])
    path.unlink()


def check_large(suite):
    path = suite.top / "large.yaml"
    pieces = {"100 MB of a": b"a" * 2**20, "100 MB of brackets": b"[" * 2**20,
              "100 MB of lines": fill(b"name: x\n", 2**20), "100 MB of zeros": bytes(2**20)}
    for name, piece in pieces.items():
        with path.open("wb") as out:
            for _ in range(100):
                out.write(piece)
        suite.check("large: " + name, ["-f", path])
    path.write_bytes(HEAD + b"#" * (LIMIT + 1 - len(HEAD)))
    suite.check("large: one byte too many", ["-f", path])
    path.write_bytes(b"[" * 1000000)
    suite.check("large: a million brackets", ["-f", path])
    path.write_bytes(b"".join(b"- &a%d x\n" % i for i in range(100000)))
    suite.check("large: 100000 anchors", ["-f", path])
    path.unlink()


def check_streams(suite):
    for name, word in (("zeros", "/dev/zero"), ("lines", "yes")):
        writer = subprocess.Popen(["yes", "# and on"] if word == "yes" else ["cat", word],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        suite.check(f"stream: a pipe without end, {name}", ["-f", "-"], stdin=writer.stdout)
        writer.stdout.close()
        writer.wait(TIMEOUT)
    with open("/dev/zero", "rb") as zero:
        suite.check("stream: a device without end", ["-f", "-"], stdin=zero)
    suite.check("stream: a device without end, by name", ["-f", "/dev/zero"])
    suite.check("stream: nothing", ["-f", "-"])
    with open("/dev/null", "wb") as out:
        suite.check("stream: a descriptor for writing", ["-f", "-"], stdin=out)


def check_files(suite):
    """The bawn.yaml of a project may be anything at all."""
    def place(name):
        path = suite.top / name / "bawn.yaml"
        path.parent.mkdir()
        return path

    def both(name, path):
        suite.check(f"file: {name}", [], cwd=path.parent)
        if not path.is_fifo():
            suite.check(f"file: {name}, by name", ["-f", path])

    (path := place("directory")).mkdir()
    both("a directory", path)
    os.mkfifo(path := place("fifo"))
    both("a fifo", path)
    (link := place("fifo-link")).symlink_to(path)
    suite.check("file: a link to a fifo", [], cwd=link.parent)
    (path := place("loop")).symlink_to("bawn.yaml")
    both("a link to itself", path)
    (path := place("dangling")).symlink_to("nowhere.yaml")
    both("a link to nowhere", path)
    (path := place("device")).symlink_to("/dev/zero")
    both("a link to a device", path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path := place("socket")))
        both("a socket", path)
    (path := place("unreadable")).write_bytes(HEAD)
    path.chmod(0)
    prefix = ()
    if os.geteuid() == 0:
        prefix = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")
    suite.check("file: unreadable", [], cwd=path.parent, prefix=prefix)
    suite.check("file: missing", ["-f", suite.top / "no-such-file"])
    suite.check("file: no name", ["-f", ""])
    suite.check("file: below a file", ["-f", suite.top / "bawn" / "x"])
    suite.check("file: a name that is too long", ["-f", "/" + "a" * 100000])


def check_policies(suite):
    for name in ("fifo", "directory", "large", "bomb"):
        path = suite.top / f"policy-{name}" / "bawn" / "policy.yaml"
        path.parent.mkdir(parents=True)
        if name == "fifo":
            os.mkfifo(path)
        elif name == "directory":
            path.mkdir()
        else:
            path.write_bytes(b"[" * (LIMIT + (name == "large")))
            path.chmod(0o600)
        suite.check(f"policy: {name}", [], config=path.parent.parent)


def main():
    with tempfile.TemporaryDirectory(prefix="bawn-hostile-") as top:
        top = pathlib.Path(top)
        top.chmod(0o755)
        # A copy, so that another user may run it wherever it was built.
        shutil.copy(sys.argv[1], top / "bawn")
        suite = Suite(top, sys.argv[2:])
        check_contents(suite)
        check_large(suite)
        check_streams(suite)
        check_files(suite)
        check_policies(suite)
        return suite.end()


if __name__ == "__main__":
    sys.exit(main())
