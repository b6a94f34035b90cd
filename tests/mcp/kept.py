#!/usr/bin/env python3
"""What bawn mcp keeps between calls: processes, warm cages, the mounted workspace; and what none of it changes.

    kept.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server import Server, cage, expect, sessions  # noqa: E402

case, for_root = sessions.case, sessions.for_root
IDLE = 2  # MCP_MOST_IDLE
# Numbers of namespaces are used again, and so is a pid; when the first process began is not.
CAGE = "cut -d' ' -f22 /proc/1/stat"


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def rest(s):
    """Until whoever has no call does nothing any more."""
    cage.wait_until(lambda: all(is_asleep(pid) for pid in cage.descendants()), 10, "rest")
    return children(s.process.pid)


def is_asleep(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"
    except OSError:
        return True


# --- cages ---

@for_root
@case
def a_call_gets_a_cage_that_waited_and_nobody_else_gets_it(place):
    with Server(place) as s:
        said, runs = [], []
        for number in range(4):
            rest(s)
            # With another time, too, which is not of the cage.
            done = s.sh(f"{CAGE}; ls /dev/shm; touch /dev/shm/mine", timeout=1000 * (30 + number))
            said.append(done.good())
            runs.append(done.run)
        assert len(set(said)) == 4 and all(len(text.split()) == 1 for text in said), said
    warm = [record["warm"] for run in runs for record in place.records() if record["run"] == run]
    assert warm == [False, True, True, True], warm


@case
def a_file_tool_is_in_a_cage_like_that_of_a_shell(place):
    place.write("project/a", "1\n")
    with Server(place) as s:
        for _ in range(3):
            assert s.sh("cat a").good() == "1\n" and s.call("read", path="a").good().endswith("1\n")


# --- how many ---

@for_root
@case
def no_more_wait_than_a_few(place):
    with Server(place) as s:
        numbers = [s.begin("bash", command="until test -e go; do sleep 0.02; done") for _ in range(8)]
        s.sh("touch go").good()
        for number in numbers:
            assert not s.answer(number)["result"]["isError"]
        cage.wait_until(lambda: len(children(s.process.pid)) <= IDLE, 10, "the end of what is too much")
        assert s.sh("echo on").good() == "on\n"
    sessions.settle()


@for_root
@case
def who_is_killed_between_calls_is_replaced(place):
    with Server(place) as s:
        for _ in range(3):
            s.sh("true").good()
            for pid in rest(s):
                os.kill(pid, signal.SIGKILL)
            cage.wait_until(lambda: not children(s.process.pid), 5, "the end of those that were killed")
            assert s.sh("echo on").good() == "on\n"
        for pid in sessions.workspaces():
            os.kill(pid, signal.SIGKILL)
        assert s.sh("echo on").good() == "on\n"
    sessions.settle()


@for_root
@case
def nothing_outlives_a_server_that_is_killed(place):
    s = Server(place)
    s.sh("true").good()
    rest(s)
    s.process.send_signal(signal.SIGKILL)
    s.process.wait()
    sessions.settle()


# --- the workspace ---

@for_root
@case
def each_call_sees_the_project_as_it_is(place):
    """Also where the session had looked before, and found something else or nothing."""
    place.write("project/old", "1\n")
    with Server(place) as s:
        assert s.sh("cat old; ls new sub 2>/dev/null; true").good() == "1\n"
        assert sessions.workspaces(), "the workspace stays mounted"
        place.write("project/.new", "2\n")
        (place.project / ".new").rename(place.project / "old")
        place.write("project/new", "3\n")
        place.write("project/sub/deep", "4\n")
        assert s.sh("cat old new sub/deep").good() == "2\n3\n4\n"
        assert s.call("read", path="new").good().endswith("3\n")
        (place.project / "new").unlink()
        assert s.sh("test -e new").is_error


@for_root
@case
def between_calls_what_was_done_is_shown_and_applied(place):
    with Server(place) as s:
        session = s.sh("echo 1 >one").meta["bawn/session"]
        for number in range(3):
            assert "going on" not in expect(place.run("session", "diff", session), 0, "one").stderr
            expect(place.run("session", "apply", session), 0)
            assert (place.project / "one").read_text() == "1\n" * (number + 1)
            s.sh("echo 1 >>one").good()
        # While a call is being done, as ever.
        number = s.begin("bash", command="until test -e /tmp/go; do sleep 0.02; done")
        cage.wait_until(lambda: sessions.named("sleep"), 10, "the call")
        expect(place.run("session", "apply", session), 1, "a command is running in it")
        s.sh("touch /tmp/go").good()
        assert not s.answer(number)["result"]["isError"]
        expect(place.run("session", "discard", session), 0)


@for_root
@case
def a_session_that_is_stopped_or_removed_between_calls_is(place):
    made = expect(place.run("session", "create", "-q", *place.spec("tools: true\n")), 0).stdout.strip()
    with Server(place, "--session", made) as s:
        s.sh("true").good()
        expect(place.run("session", "stop", made), 0)
        cage.wait_until(lambda: not sessions.workspaces(), 5, "the workspace's end")
        assert s.sh("echo on").good() == "on\n"
        expect(place.run("session", "rm", made), 0)
        cage.wait_until(lambda: not sessions.workspaces(), 5, "the workspace's end")
        assert s.sh("echo on").is_error


if __name__ == "__main__":
    sessions.main()
