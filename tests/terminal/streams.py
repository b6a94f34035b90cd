"""Which streams are a terminal, whose it is, and that every byte passes."""

import hashlib
import os
import signal
import subprocess
import time
import tty

from place import BREAKABLE, case, descendants, expect, reap, wait_until
from window import PATIENCE, Window, lines, script

# Which device 0, 1, 2 and /dev/tty are: the file system it is on, its number and its name.
DEVICES = """
import os
for name, fd in (("stdin", 0), ("stdout", 1), ("stderr", 2), ("tty", -1)):
    try:
        fd = os.open("/dev/tty", os.O_RDWR) if fd < 0 else fd
        st = os.fstat(fd)
    except OSError as e:
        print(name, 0, 0, os.strerror(e.errno).replace(" ", "_"))
        continue
    try:
        print(name, st.st_dev, st.st_rdev, os.ttyname(fd) if os.isatty(fd) else "-")
    except OSError:
        print(name, st.st_dev, st.st_rdev, "elsewhere")
"""


def devices(text):
    """{name: (device, number, path)} of what DEVICES printed."""
    lines = [line.split() for line in text.decode().splitlines()]
    found = {line[0]: (int(line[1]), int(line[2]), line[3]) for line in lines if len(line) == 4}
    assert len(found) == 4, text
    return found


@case
def with_a_terminal_the_command_has_one_of_the_cages_own(p):
    with Window(p, "run", "--", *script(p, "devices", DEVICES)) as window:
        operators = os.stat(window.name)
        found = devices(window.end(0))
    streams = {found[name] for name in ("stdin", "stdout", "stderr")}
    assert len(streams) == 1 and streams.pop()[2] == "/dev/pts/0", found
    for device, number, _ in found.values():
        assert device != operators.st_dev, (found, operators)
        assert device or number, found
    assert found["tty"][2] in ("/dev/tty", "/dev/pts/0"), found


@case
def the_type_of_the_terminal_is_the_operators(p):
    for term, wanted in (("screen-256color", b"screen-256color"), ("bad;term", b"xterm-256color")):
        with Window(p, "run", "--", "sh", "-c", "echo [$TERM]", env={"TERM": term}) as window:
            assert b"[" + wanted + b"]" in window.end(0), term
    assert expect(p.run("run", "--", "sh", "-c", "echo [$TERM]", env={"TERM": "screen"}), 0).stdout == "[xterm-256color]\n"


@case
def the_operators_terminal_left_in_the_cage_is_noticed(p):
    for mechanism, part in (("tty", "it holds"), ("session", "session")):
        with Window(p, "run", "--", "echo", "ran", program=BREAKABLE, env={"BAWN_TEST_BREAK": mechanism}) as window:
            shown = window.end(125)
            assert b"ran" not in shown and b"bawn: " in shown and b"tty" in shown, shown
            assert part.encode() in shown, shown
            window.wait_restored()
        with Window(p, "run", "--", "echo", "ran", program=BREAKABLE) as window:
            assert lines(window.end(0)) == [b"ran"], window.seen
    # The twin: without the look the operator's terminal would be there.
    with Window(p, "run", "--", *script(p, "devices", DEVICES), program=BREAKABLE,
                env={"BAWN_TEST_BREAK": "tty,look"}) as window:
        number = os.stat(window.name).st_rdev
        assert devices(window.end(0))["stdin"][1] == number


@case
def without_a_terminal_there_are_pipes(p):
    for words, streams in ((("--no-tty",), (0, 1, 2)), ((), (1, 2)), ((), (0, 2))):
        more = {} if 1 in streams else {"stdout": open(p.write("out", "", 0o666), "r+b")}
        with Window(p, "run", *words, "--", *script(p, "devices", DEVICES), streams=streams, **more) as window:
            shown = window.end(0)
            if more:
                shown = more["stdout"].seek(0) or more["stdout"].read()
        found = devices(shown)
        assert all(path == "-" for _, _, path in list(found.values())[:3]), (words, streams, found)
        assert found["tty"][2] == "No_such_device_or_address", found


@case
def errors_that_go_elsewhere_stay_apart(p):
    with open(p.write("errors", "", 0o666), "r+b") as errors:
        with Window(p, "run", "--", "sh", "-c", "echo out; echo err >&2; test ! -t 2 && test -t 1", stderr=errors) as w:
            assert lines(w.end(0)) == [b"out"], w.seen
        assert errors.seek(0) == 0 and errors.read() == b"err\n"
    # Another terminal is elsewhere, too.
    with Window(p, "infinity", program="sleep") as other:
        with open(other.name, "wb", buffering=0) as line:
            with Window(p, "run", "--", "sh", "-c", "echo out; echo err >&2", stderr=line) as w:
                assert lines(w.end(0)) == [b"out"], w.seen
        other.expect(b"err\r\n")
        other.process.terminate()
        other.end()


@case
def a_terminal_can_be_had_without_one(p):
    """The end of what is piped in is ^D, twice after half a line; the order stays."""
    process = p.start("run", "-t", "--", "sh", "-c", "stty -echo; stty size; echo err >&2; tty; cat; echo over",
                      stderr=subprocess.STDOUT)
    assert process.stdout.read(24) == b"24 80\r\nerr\r\n/dev/pts/0\r\n"
    out, _ = process.communicate(b"line\nhalf", timeout=PATIENCE)
    assert (out, process.returncode) == (b"line\r\nhalfover\r\n", 0), out
    done = expect(p.run("run", "-t", "--", "wc", "-l", stdin=b"a line of some length\n" * 20000), 0)
    assert done.stdout.splitlines()[-1] == "20000", done.stdout[-100:]
    done = expect(p.run("run", "-t", "--", "cat", stdin=b""), 0)
    assert done.stdout == "", done
    done = p.run("run", "-t", "--", "sh", "-c", "cat; echo over", stdin=open("/dev/null", "rb"))
    assert done.stdout == "over\r\n", done


@case
def who_reads_only_the_beginning_ends_the_command(p):
    """As with a pipe: nobody is left to write to."""
    process = p.start("run", "-t", "--", "yes", stdin=open("/dev/null", "rb"))
    assert process.stdout.read(3) == b"y\r\n"
    process.stdout.close()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        wait_until(lambda: reap() or not descendants(), PATIENCE, "all of it ends")
        raise
    finally:
        process.stderr.close()


@case
def keys_still_interrupt_where_the_input_is_no_terminal(p):
    with open("/dev/null", "rb") as null:
        with Window(p, "run", "-t", "--", "sh", "-c", "echo ready; exec sleep 60", stdin=null) as window:
            window.expect(b"ready")
            window.type(b"\x03")
            window.end(128 + signal.SIGINT, seconds=5)
            window.wait_restored()


@case
def piped_use_is_exact_and_keeps_output_and_errors_apart(p):
    every = bytes(range(256)) * 4096
    p.write("project/every", every)
    process = p.start("run", "--", "sh", "-c", "cat; cat /work/every >&2")
    out, err = process.communicate(every, timeout=PATIENCE)
    assert (out, err, process.returncode) == (every, every, 0), (len(out), len(err))


# --- every byte ---

RECEIVE = """
import hashlib, os, sys, termios, tty
tty.setraw(0)
if len(sys.argv) > 2:
    os.write(1, b"\\x1b[?2004h")
os.write(1, b"ready")
left, digest = int(sys.argv[1]), hashlib.sha256()
while left > 0:
    part = os.read(0, 65536)
    digest.update(part)
    left -= len(part)
os.write(1, b"<" + digest.hexdigest().encode() + b">")
"""


@case
def what_is_pasted_arrives_byte_by_byte(p):
    plain = bytes(i * 7 % 251 for i in range(100000))
    bracketed = b"\x1b[200~" + "grüße ✓ \t\n".encode() * 6000 + b"\x1b[201~"
    for paste, more in ((plain, ()), (bracketed, ("brackets",))):
        with Window(p, "run", "--", *script(p, "receive", RECEIVE), str(len(paste)), *more) as window:
            window.expect(b"ready")
            window.type(paste)
            window.expect(f"<{hashlib.sha256(paste).hexdigest()}>".encode())
            window.end(0)


@case
def colours_and_characters_pass(p):
    shown = b"".join(b"\x1b[38;5;%dm%d\x1b[0m" % (i, i) for i in range(256)) + b"\x1b[38;2;1;2;3mx\x1b[m"
    shown += "äöü ✓ 漢字 🙂 e\u0301 ║█".encode()
    p.write("project/shown", shown)
    with Window(p, "run", "--", "cat", "/work/shown") as window:
        assert window.end(0) == shown, window.seen


@case
def much_output_is_complete_and_in_order(p):
    """50 MB: lines whose numbers must follow each other."""
    total, wanted = 50_000_000, hashlib.sha256()
    line = b"%09d " + b"x" * 989
    p.write("project/much", f"import os\nfor i in range(0, {total // 1000}, 100):\n"
            f"    os.write(1, b''.join({line!r} % n + b'\\n' for n in range(i, i + 100)))\n")
    seen, count = hashlib.sha256(), 0
    with Window(p, "run", "--", "python3", "-S", "/work/much", before=None) as window:
        while window.read(PATIENCE if window.process.poll() is None else 0):
            seen.update(window.seen)
            count += len(window.seen)
            window.seen = b""
        window.end(0)
    for i in range(total // 1000):
        wanted.update(line % i + b"\r\n")
    assert (seen.digest(), count) == (wanted.digest(), total + total // 1000), count


class TookAll(AssertionError):
    """The terminal held all of it, and nobody had to wait: how much it holds is not always the same."""


class Events:
    """What --status-fd tells, and whether the command still runs while its output is not read."""

    def __init__(self, p):
        self.path = p.write("events", "", 0o666)
        self.file = open(self.path, "r+b")  # pylint: disable=consider-using-with

    def has(self, event):
        return f'"{event}"'.encode() in self.path.read_bytes()

    def wait_for_end(self, process, seconds=PATIENCE):
        """Until nothing is left in the cage; bawn, and who stands by for it, may wait for a reader."""
        wait_until(lambda: self.has("started"), PATIENCE, "the command is started")
        wait_until(lambda: not [said for pid, said in descendants().items() if "bawn" not in said],
                   seconds, "the command has ended")
        if process.poll() is not None:
            raise TookAll("bawn did not wait for who reads its output")


@case
def a_slow_reader_does_not_stop_the_clock(p):
    """Also where the terminal is another's and cannot be opened a second time."""
    for mode, words, command in ((0o666, (), "y"), (0o600, (), "y"), (0o600, ("--no-tty",), "")):
        events = Events(p)
        with events.file, Window(p, "run", "--time", "300ms", "--status-fd", "2", *words, "--", "yes", command,
                                 mode=mode, stderr=events.file) as window:
            events.wait_for_end(window.process, 5)
            window.end(124)


@case
def all_that_was_printed_is_shown_at_the_end(p):
    for last, status, said in (("exit 4", 4, []),
                               ("kill -9 $$", 137, [b"bawn: the command was ended by signal 9 (SIGKILL)"])):
        with Window(p, "run", "--", "sh", "-c", f"seq 5000; {last}") as window:
            shown = lines(window.end(status))
            assert shown == [b"%d" % n for n in range(1, 5001)] + said, (len(shown), shown[-3:])


@case
def a_window_that_is_resized_at_the_end_costs_no_output(p):
    """The command has ended, and its output waits for a reader; then bawn is told of a new size."""
    def shown_after(words, count, number, tries=5):
        events = Events(p)
        with events.file, Window(p, "run", "--status-fd", "2", *words, "--", "seq", str(count),
                                 stderr=events.file) as window:
            try:
                events.wait_for_end(window.process)
                window.process.send_signal(number)
            except TookAll:
                if not tries:
                    raise
            else:
                return lines(window.end(0))
        return shown_after(words, count, number, tries - 1)

    for words, count in (((), 3500), (("--no-tty",), 12000)):
        for number in (signal.SIGWINCH, signal.SIGCONT):
            shown = shown_after(words, count, number)
            assert shown == [b"%d" % n for n in range(1, count + 1)], (words, number, len(shown))


@case
def output_waits_until_keys_are_passed_on(p):
    """Or the first lines would go through the modes of two terminals."""
    for _ in range(10):
        with Window(p, "run", "--", "echo", "first") as window:
            assert window.end(0) == b"first\r\n", window.seen
