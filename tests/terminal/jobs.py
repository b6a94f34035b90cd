"""Keys that are signals, and jobs: in the cage's shell, and bawn itself as one of the operator's."""

import os
import signal
import subprocess
import time

from place import case, descendants, reap, wait_until
from window import PATIENCE, PROMPT, Host, Window, caged, state_of

CAT = ("sh", "-c", "stty -echo; echo ready; exec cat")


@case
def keys_are_signals_to_the_command(p):
    for key, status in ((b"\x03", 130), (b"\x1c", 131)):
        with Window(p, "run", "--", "sh", "-c", "echo ready; exec sleep 60") as window:
            window.ready()
            window.type(key)
            window.end(status)
    with Window(p, "run", "--", *CAT) as window:
        window.ready()
        window.type(b"line\r\x04")
        window.expect(b"line")
        window.end(0)


@case
def a_shell_in_the_cage_has_jobs(p):
    with Window(p, "run", "-e", "PS1=caged> ", "--", "bash", "--norc", "--noprofile", "-i") as window:
        def order(line, *parts):
            window.type(line)
            for part in parts:
                window.expect(part)
            window.expect(b"caged> ")

        window.expect(b"caged> ")
        assert b"job control" not in window.seen, window.seen
        window.type(b"sleep 61 | cat\r")
        wait_until(lambda: len(caged(window.process.pid)) == 3, PATIENCE, "the job runs")
        order(b"\x1a", b"Stopped")
        order(b"jobs\r", b"Stopped", b"sleep 61")
        order(b"bg\r", b"sleep 61")
        order(b"jobs\r", b"Running")
        window.type(b"fg\r")
        window.expect(b"sleep 61")
        wait_until(lambda: is_in_front(window), PATIENCE, "the job is in front")
        order(b"\x03", b"\r\n")
        order(b"echo is-$?\r", b"is-130")
        window.type(b"exit 5\r")
        window.end(5)


def is_in_front(window):
    """Is the shell in the cage no longer who has its terminal?"""
    for pid in caged(window.process.pid):
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        if fields[2] == fields[5] and fields[2] != str(min(caged(window.process.pid))):
            return True
    return False


@case
def suspended_it_gives_the_terminal_back_and_resumed_it_takes_it(p):
    with Host(p, program="/bin/dash") as host:  # which leaves modes alone
        first = host.modes()
        host.start("$bawn run -- sh -c 'stty -echo; echo re\"\"ady; exec cat'")
        host.ready()
        for _ in range(2):
            host.type(b"\x1a")
            host.expect(PROMPT)
            assert host.modes() == first, (host.modes(), first)
            assert state_of(host.job()) == "T"
            host.start("fg")
            host.wait_raw()
            host.type(b"again\r")
            host.expect(b"again")
        host.type(b"\x04")
        host.expect(PROMPT)
        assert host.modes() == first
        host.type(b"exit\r")
        host.end()


@case
def resumed_it_has_the_size_that_the_window_has_now(p):
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'echo re\"\"ady; read x; stty size'")
        host.ready()
        host.type(b"\x1a")
        host.expect(b"Stopped")
        host.expect(PROMPT)
        host.resize(44, 123)
        host.start("fg")
        host.wait_raw()
        host.type(b"\r")
        host.expect(b"44 123")
        host.expect(PROMPT)
        host.leave()


@case
def suspended_nothing_in_the_cage_goes_on_and_in_the_background_it_does(p):
    with Host(p) as host:
        # One in the command's group, one in a session of its own; both busy.
        host.start("$bawn run -- sh -c '(while :; do :; done) & setsid sh -c \"while :; do :; done\" & "
                   "echo re\"\"ady; exec sleep 60'")
        host.ready()
        wait_until(lambda: len(caged(host.job())) == 3, PATIENCE, "three processes run")
        host.type(b"\x1a")
        host.expect(b"Stopped")
        host.expect(PROMPT)
        wait_until(lambda: states(host) == {"T"}, PATIENCE, f"all are stopped: {states(host)}")
        host.order("bg")
        wait_until(lambda: "T" not in states(host), PATIENCE, "all go on")
        host.order("jobs")
        assert b"Running" in host.seen
        host.start("fg")
        host.wait_raw()
        host.type(b"\x03")
        host.expect(PROMPT)
        assert b"130" in host.order("echo $?")
        host.leave()


def states(host):
    found = set()
    for pid in caged(host.job()):
        try:
            found.add(state_of(pid))
        except OSError:
            found.add("gone")
    return found


@case
def what_was_printed_before_the_stop_is_shown_before_it(p):
    """As the last thing a full-screen program prints when it is suspended is the other screen's end."""
    with Host(p) as host:
        for _ in range(5):
            host.start("$bawn run -- sh -c 'echo re\"\"ady; read x; seq 300; echo \"<\"last\">\"; kill -STOP $$'")
            host.ready()
            begin = host.at
            host.type(b"\r")
            host.expect(b"Stopped")
            assert b"<last>" in host.seen[begin:host.at], host.seen[begin:host.at][-200:]
            host.expect(PROMPT)
            host.order("kill -9 %%; wait; true")
        wait_until(lambda: len(descendants()) == 1, PATIENCE, "only the shell is left")
        host.leave()


@case
def stopped_and_continued_by_signals_it_still_passes_keys(p):
    """SIGSTOP is not announced: the shell sets its own modes, and bawn finds them when it is back."""
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'stty -echo; echo re\"\"ady; exec cat'")
        host.ready()
        os.kill(host.job(), signal.SIGSTOP)
        host.expect(b"Stopped")
        host.expect(PROMPT)
        host.resize(50, 70)
        host.start("fg")
        raw = wait_for(host.is_raw, 3)
        host.type(b"again\r")
        host.expect(b"again")
        assert raw, "the terminal does not pass every key"
        host.type(b"\x04")
        host.expect(PROMPT)
        host.leave()


@case
def stopped_by_a_signal_and_sent_to_the_background_it_leaves_keys_to_the_shell(p):
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'echo re\"\"ady; exec sleep 60'")
        host.ready()
        job = host.job()
        os.kill(job, signal.SIGSTOP)
        host.expect(b"Stopped")
        host.expect(PROMPT)
        host.order("bg")
        wait_until(lambda: state_of(job) != "T", PATIENCE, "it goes on")
        host.order("echo a-\"long\"-line")
        stopped = wait_for(lambda: state_of(job) == "T", 0.5)
        assert not stopped, "it took the shell's keys, and was stopped for that"
        assert b"a-long-line" in host.seen, host.seen
        os.kill(job, signal.SIGTERM)
        host.expect(b"Exit 143")
        host.leave()


def wait_for(is_so, seconds):
    end = time.monotonic() + seconds
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    return is_so()


@case
def killed_while_suspended_nothing_is_left(p):
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'echo re\"\"ady; exec sleep 60'")
        host.ready()
        host.type(b"\x1a")
        host.expect(b"Stopped")
        host.expect(PROMPT)
        host.order("kill -9 %1; wait")
        wait_until(lambda: len(descendants()) == 1, PATIENCE, "only the shell is left")
        host.leave()


# --- where nobody could continue it ---

def in_a_group(p, *args):
    """bawn as a job of this process, which does not look whether it is stopped."""
    return p.start(*args, preexec_fn=os.setpgrp)


def ended(process, seconds=8):
    """The status; stopped for good is a failure, and ends here."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        wait_until(lambda: reap() or not descendants(), PATIENCE, "all of it ends")
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


@case
def a_command_that_stops_itself_does_not_put_its_keeper_to_sleep(p):
    assert ended(in_a_group(p, "run", "--time", "200ms", "--", "sh", "-c", "kill -STOP $$")) == 124


@case
def nor_after_a_stop_that_it_ignored(p):
    process = in_a_group(p, "run", "--time", "1s", "--", "sh", "-c",
                         "trap '' TSTP; echo ready; read x; kill -STOP $$")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTSTP)
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert ended(process) == 124


@case
def a_stopped_command_ends_when_it_is_told_to(p):
    for _ in range(12):  # the keeper may hear of the signal before it hears of the stop
        process = in_a_group(p, "run", "--", "sh", "-c", "echo ready; kill -STOP $$")
        assert process.stdout.readline() == b"ready\n"
        wait_until(lambda pid=process.pid: "T" in {state_of(one) for one in caged(pid)}, PATIENCE, "it is stopped")
        process.send_signal(signal.SIGTERM)
        assert ended(process) == 143


@case
def where_no_shell_could_resume_it_it_is_not_stopped(p):
    with Window(p, "run", "--", *CAT) as window:
        window.ready()
        for _ in range(2):
            window.type(b"\x1a")
            window.type(b"again\r")
            window.expect(b"again")
        window.type(b"\x04")
        window.end(0)


@case
def stopped_in_the_background_it_goes_on_in_the_foreground(p):
    with Host(p) as host:
        host.start("$bawn run -- sh -c 'echo re\"\"ady; kill -STOP $$; echo went-\"on\"' &")
        host.expect(b"ready")
        wait_until(lambda: "T" in states(host), PATIENCE, "the command is stopped")
        host.start("fg")
        host.expect(b"went-on", 5)
        host.expect(PROMPT)
        host.leave()
