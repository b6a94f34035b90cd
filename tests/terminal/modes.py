"""The operator's terminal: its size, its modes, and that it has them back whatever happens."""

import os
import signal
import termios
import time

from place import BREAKABLE, case, descendants, wait_until
from window import PATIENCE, PROMPT, Host, Window, script

TELL = """
import termios
print("modes", termios.tcgetattr(0))
"""
READY = ("sh", "-c", "echo ready; exec sleep 60")


def strange(line):
    """Modes that nobody has by chance."""
    modes = termios.tcgetattr(line)
    modes[0] ^= termios.IXANY | termios.IMAXBEL
    modes[3] ^= termios.ECHOCTL | termios.ECHOK
    modes[6][termios.VERASE] = b"\x08"
    modes[6][termios.VINTR] = b"\x07"
    termios.tcsetattr(line, termios.TCSANOW, modes)


@case
def the_size_is_the_windows_and_changes_with_it(p):
    watch = "trap 'stty size' WINCH; stty size; echo ready; while :; do sleep 0.02; done"
    with Window(p, "run", "--", "sh", "-c", watch, rows=31, columns=101) as window:
        window.expect(b"31 101")
        window.ready()
        for rows, columns in ((40, 120), (5, 7)):
            window.resize(rows, columns)
            window.expect(b"%d %d\r\n" % (rows, columns))
        window.type(b"\x03")
        window.end(130)


@case
def modes_are_those_of_the_operators_terminal(p):
    with Window(p, "run", "--", *script(p, "tell", TELL), before=strange) as window:
        window.end(0)
        assert repr(window.first).encode() in window.seen, (window.first, window.seen)
        window.wait_restored()
    # And an interrupt key of the operator's own is the command's.
    with Window(p, "run", "--", *READY, before=strange) as window:
        window.ready()
        window.type(b"\x07")
        window.end(130)


@case
def what_the_command_does_to_its_terminal_is_not_done_to_the_operators(p):
    with Window(p, "run", "--", "sh", "-c", "stty -echo intr ^X rows 3; echo ready; read x; kill -9 $$",
                before=strange) as window:
        window.ready()
        window.type(b"\r")
        window.end(137)
        window.wait_restored()


ENDS = [
    ("the command's own end", ("true",), None, 0, ()),
    ("a command that is killed", ("sh", "-c", "stty raw -echo; kill -9 $$"), None, 137, ()),
    ("a command that is not there", ("/no/such",), None, 127, ()),
    ("the time limit", READY, None, 124, ("--time", "100ms")),
    ("SIGTERM", READY, signal.SIGTERM, 143, ()),
    ("SIGHUP", READY, signal.SIGHUP, 129, ()),
    ("SIGINT", READY, signal.SIGINT, 130, ()),
    ("SIGQUIT", READY, signal.SIGQUIT, 131, ()),
]


@case
def modes_are_given_back_at_every_end(p):
    for name, command, number, status, options in ENDS:
        with Window(p, "run", *options, "--", *command, before=strange) as window:
            if number:
                window.ready()
                window.process.send_signal(number)
            window.end(status)
            assert window.modes() == window.first, (name, window.modes(), window.first)


@case
def modes_are_given_back_after_a_refusal(p):
    with Window(p, "run", "--", "true", before=strange, program=BREAKABLE, env={"BAWN_TEST_BREAK": "tty"}) as window:
        window.end(125)
        assert window.modes() == window.first


@case
def modes_are_given_back_when_bawn_is_killed(p):
    """A second process stands by, also when all of bawn's group is killed."""
    for kill in (os.kill, os.killpg):
        with Window(p, "run", "--", *READY, before=strange) as window:
            window.ready()
            kill(window.process.pid, signal.SIGKILL)
            window.process.wait()
            window.wait_restored()
            wait_until(lambda: not descendants(), PATIENCE, "all of it ends")


@case
def a_terminal_that_is_gone_ends_the_command(p):
    with Window(p, "run", "--", *READY) as window:
        window.ready()
        window.hang_up()
        status = window.process.wait(timeout=PATIENCE)
        assert status == 129, status


@case
def a_terminal_that_is_gone_is_gone_for_who_ignores_it_too(p):
    """Who prints on learns that there is nobody, and does not wait for ever."""
    with Window(p, "run", "--", "sh", "-c", "trap '' HUP; echo ready; while echo more; do :; done; exit 7") as window:
        window.ready()
        window.hang_up()
        status = window.process.wait(timeout=6)
        assert status == 7, status


# --- in the background ---

@case
def in_the_background_output_is_shown_and_nothing_stops(p):
    with Host(p) as host:
        # Who reads is not stopped either: it waits.
        host.start("$bawn run -- sh -c 'echo be-\"hind\"; read x; echo got-$x' &")
        host.expect(b"be-hind")
        job = host.job()
        host.order("echo shell-\"goes\"-on")
        host.order("jobs")
        assert b"Running" in host.seen and b"Stopped" not in host.seen, host.seen
        assert b"shell-goes-on" in host.seen
        host.start("fg")
        host.wait_raw()
        host.type(b"typed\n")
        host.expect(b"got-typed")
        host.expect(PROMPT)
        assert b"0" in host.order("echo $?") and not os.path.exists(f"/proc/{job}")
        host.leave()


@case
def brought_to_the_foreground_it_has_keys_and_the_size_though_it_prints_on(p):
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'while printf .; do :; done & read x; kill $!; stty size; "
                   "echo got-$x' &")
        host.expect(b"....")
        host.resize(33, 99)
        host.start("fg")
        assert wait_raw_within(host, 3), "keys are not passed on"
        host.type(b"typed\n")
        host.expect(b"got-typed", 5)
        assert b"33 99" in host.seen, host.seen[-200:]
        host.expect(PROMPT)
        host.leave()


def wait_raw_within(window, seconds):
    end = time.monotonic() + seconds
    while not window.is_raw() and time.monotonic() < end:
        window.read(0.01)
    return window.is_raw()


@case
def a_line_can_be_typed_after_a_start_in_the_background(p):
    """The shell has modes of its own while it reads a line; they are not the command's."""
    with Host(p) as host:
        host.order("(sleep 0.2; exec $bawn run -- sh -c 'echo up; read x; "
                   "echo \"<$x>\"') &")
        host.expect(b"up")
        host.start("fg")
        host.wait_raw()
        host.type(b"tyq\x7fped\r")
        host.expect(b"<typed>", 5)
        host.expect(PROMPT)
        host.leave()
