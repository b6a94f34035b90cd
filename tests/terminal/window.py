"""A terminal's window: what runs in it, what is typed at it, what it shows and which modes it has."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from place import BAWN, descendants, reap, wait_until

PATIENCE = 20  # seconds; nothing here takes one, but machines are busy
RAW = {"lflag": termios.ICANON | termios.ECHO | termios.ISIG, "oflag": termios.OPOST}
PROMPT = b"host> "


class Window:
    """Whoever sits at it sees all of it: `seen` is everything that was ever printed, and is read
    only when something is expected, so a window that nobody asks is a slow reader."""

    def __init__(self, p, *words, program=BAWN, rows=24, columns=80, mode=0o666, before=None, streams=(0, 1, 2),
                 env=None, **more):
        self.keys, line = pty.openpty()
        os.fchmod(line, mode)
        self.name = os.ttyname(line)
        if before:
            before(line)
        self.resize(rows, columns)
        self.first = termios.tcgetattr(line)
        self.seen, self.at = b"", 0
        for i, name in enumerate(("stdin", "stdout", "stderr")):
            if name not in more:
                more[name] = line if i in streams else subprocess.DEVNULL
        # What this machine cannot give is no part of what is shown.
        if not (p.home / ".config/bawn/policy.yaml").exists():
            p.write(".config/bawn/policy.yaml",
                    "version: 1\ndefaults: { allow_degraded: [groups, limits.memory, limits.pids] }\n")
        self.process = p.start(*words, program=program, start_new_session=True, env={"TERM": "xterm-256color",
                               "LC_ALL": "C.UTF-8", **(env or {})},
                               preexec_fn=lambda: fcntl.ioctl(line, termios.TIOCSCTTY, 0), **more)
        os.close(line)

    # --- what is typed and shown ---

    def type(self, what):
        """Types, and looks at the screen when the keyboard is full."""
        while what:
            readable, writable, _ = select.select([self.keys], [self.keys], [], PATIENCE)
            assert readable or writable, "nobody takes what is typed"
            if writable:
                what = what[os.write(self.keys, what[:512]):]
            elif not self.read(0):
                raise AssertionError("the terminal is gone")

    def read(self, seconds=PATIENCE):
        """What is there within a while; False: nothing, or nothing will ever be."""
        if self.keys < 0 or not select.select([self.keys], [], [], seconds)[0]:
            return False
        try:
            self.seen += os.read(self.keys, 1 << 16)
        except OSError:
            return False  # nobody has it open any more
        return True

    def expect(self, what, seconds=PATIENCE):
        """Reads on until this was shown, after what was expected before."""
        end = time.monotonic() + seconds
        while self.seen.find(what, self.at) < 0:
            left = end - time.monotonic()
            if left <= 0 or not self.read(left):
                raise AssertionError(f"{what!r} is not shown after {self.seen[:self.at][-80:]!r} but "
                                     f"{self.seen[self.at:][-600:]!r}")
        self.at = self.seen.find(what, self.at) + len(what)

    def ready(self):
        """The command says so, and has the keys."""
        self.expect(b"ready")
        self.wait_raw()

    def end(self, status=None, seconds=PATIENCE):
        """Reads to the end of the process, which is that of the window too."""
        end = time.monotonic() + seconds
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.02)
        if self.process.poll() is None:
            self.destroy()
            raise AssertionError(f"still running after {seconds} s, and shows {self.seen[-300:]!r}")
        while self.read(0):
            pass
        assert status in (None, self.process.returncode), (
            f"ended with {self.process.returncode}, not {status}: {self.seen[-300:]!r}")
        return self.seen

    # --- its state ---

    def modes(self):
        return termios.tcgetattr(self.keys)  # of a pseudo-terminal: the other end's

    def is_raw(self):
        return not self.modes()[3] & RAW["lflag"] and not self.modes()[1] & RAW["oflag"]

    def wait_raw(self):
        wait_until(self.is_raw, PATIENCE, "the terminal passes every key")

    def wait_restored(self):
        wait_until(lambda: self.modes() == self.first, PATIENCE, f"modes {self.modes()} are {self.first} again")

    def resize(self, rows, columns):
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    # --- its end ---

    def hang_up(self):
        os.close(self.keys)
        self.keys = -1

    def destroy(self):
        """Ends what is left of a case that went wrong."""
        if self.keys >= 0:
            self.hang_up()
        for number in (signal.SIGCONT, signal.SIGKILL):
            if self.process.poll() is None:
                self.process.send_signal(number)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if hasattr(stream, "close"):
                stream.close()
        if kind:
            end_descendants()
            self.destroy()
            wait_until(lambda: reap() or not descendants(), PATIENCE, "what a failed case left has ended")
        elif self.process.poll() is None:
            self.destroy()
        elif self.keys >= 0:
            self.hang_up()


class Host(Window):
    """A window with the operator's shell in it, which has job control."""

    def __init__(self, p, *, program="/bin/bash", **more):
        words = ("--norc", "--noprofile") if program.endswith("bash") else ()
        super().__init__(p, *words, "-i", program=program, **more,
                         env={"PS1": PROMPT.decode(), "PS2": "", "HISTFILE": "", "bawn": str(BAWN),
                              "INPUTRC": "/dev/null"})
        self.expect(PROMPT)
        if words:
            self.order("bind 'set enable-bracketed-paste off'; set -b")

    def start(self, line):
        self.type(line.encode() + b"\r")
        self.expect(b"\n")

    def order(self, line):
        """A line for the shell, and what it shows before the next prompt."""
        self.start(line)
        begin = self.at
        self.expect(PROMPT)
        return self.seen[begin:self.at - len(PROMPT)]

    def job(self):
        """bawn, the shell's only child."""
        found = children(self.process.pid)
        assert len(found) == 1, found
        return found[0]

    def leave(self):
        # Twice: a shell that has not noticed the end of a stopped job asks to be told again.
        self.type(b"exit 0\rexit 0\r")
        self.end(0)


def end_descendants():
    """After a failure: ends what a case left, by id, so that the next one finds nothing."""
    for pid in sorted(descendants()):
        for number in (signal.SIGCONT, signal.SIGKILL):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass


def script(p, name, text):
    """A program of python's in the project; how it is called in the cage."""
    p.write(f"project/{name}", text)
    return ("python3", "-S", f"/work/{name}")


def lines(shown):
    """What is shown, whichever way the lines end: before keys are passed on, each ends twice."""
    return shown.replace(b"\r", b"").splitlines()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def process_named(name):
    """The pids below us whose command line has this word."""
    found = []
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if name.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def caged(bawn):
    """All that runs in the cage but its first process, which is bawn's child."""
    parents = {}
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                parents[pid] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    first, found = set(children(bawn)), set()
    for pid in parents:
        above = parents[pid]
        while above in parents and above not in first:
            above = parents[above]
        if above in first:
            found.add(pid)
    return found
