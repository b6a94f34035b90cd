"""A worker that is killed, at one step after the other; another one goes on."""

import contextlib
import os
import signal
import time

import records
import witness
from invariants import ENDED, FAILED, LOST
from place import SLOW, wait_until

STEPS = []
ONE = ("--slots", "1", "--idle", "0s")


def step(function):
    STEPS.append(function)
    return function


def make_spec(p):
    """Commands begin when a file is there, and it is seen that they do."""
    p.make("mark", 0o777)
    return p.spec(f"binds: [\"{p.home}/mark:/mark:rw\"]\n")


# Both lines as every run's, with a wait between them that ends when the test says so.
HELD = ("echo {label} begins >> list && echo {label} begins >> ~/list && touch /mark/{label} && "
        "while [ ! -e /mark/go ]; do sleep 0.02; done && echo {label} ends >> list && echo {label} ends >> ~/list")


def let_go(crowd):
    crowd.place.write("mark/go", "")


def wait_for_mark(crowd, label):
    wait_until((crowd.place.home / "mark" / label).exists, 60, f"{label} has begun")


def begin(crowd, *options):
    """A worker that has done a run; its session has files."""
    worker = crowd.start(*(options or ONE))
    run, _ = crowd.queue(crowd.sessions[0])
    crowd.wait_for("the first run has ended", lambda: crowd.state_of(run) == ENDED)
    return worker


def go_on(crowd, run, *wanted):
    """Another worker does what follows, and the run came out as one of these."""
    after, _ = crowd.queue(crowd.sessions[0])
    crowd.start(*ONE)
    crowd.wait_for_all()
    assert crowd.state_of(run) in wanted, crowd.state_of(run)
    assert crowd.state_of(after) == ENDED, crowd.state_of(after)


def check_lines(crowd, label, *wanted):
    """Of a run, in both files."""
    for lines in crowd.list_files(crowd.sessions[0]):
        found = [line.split()[1] for line in lines if line.startswith(label)]
        assert found == list(wanted), (found, wanted)


def kill_at_gate(crowd, worker, name):
    """A run, in the middle of what is written about it."""
    with witness.Gate(crowd.server, crowd.url, name) as gate:
        run, label = crowd.queue(crowd.sessions[0])
        assert gate.wait_for(60 * SLOW), "nobody comes there"
        crowd.bury(worker)
    return run, label


@step
def killed_while_a_run_is_taken(crowd):
    run, _ = kill_at_gate(crowd, begin(crowd), "taking")
    # That it took it was not said to the end: it is the next one's, who does it.
    go_on(crowd, run, ENDED)


@step
def killed_after_a_run_is_taken(crowd):
    worker = begin(crowd)
    for pid in worker.runners():
        os.kill(pid, signal.SIGSTOP)
    run, label = crowd.queue(crowd.sessions[0])
    crowd.wait_for("it is taken", lambda: crowd.runs_of(worker) == [run])
    crowd.bury(worker)
    go_on(crowd, run, LOST)
    check_lines(crowd, label)


def find_doors(crowd):
    """The sockets of those who have a workspace mounted, and had: when they were made."""
    found = set()
    for path in (crowd.place.state / "bawn/sessions" / crowd.sessions[0] / "w").glob("*/door"):
        with contextlib.suppress(FileNotFoundError):
            found.add(path.stat().st_ctime_ns)
    return found


@step
def killed_while_the_workspace_is_joined(crowd):
    # Who has been in it keeps it mounted: so that one goes first.
    first = begin(crowd)
    first.end()
    crowd.workers.remove(first)
    before = find_doors(crowd)
    run, _ = crowd.queue(crowd.sessions[0], HELD)
    worker = crowd.start(*ONE)
    wait_until(lambda: find_doors(crowd) - before, 60, "somebody mounts it")
    crowd.bury(worker)
    let_go(crowd)
    go_on(crowd, run, LOST)


@step
def killed_while_the_command_runs(crowd):
    worker = begin(crowd)
    run, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    crowd.bury(worker)
    let_go(crowd)
    go_on(crowd, run, LOST)
    check_lines(crowd, label, "begins")


@step
def killed_while_a_runner_waits_for_leave_to_sign(crowd):
    worker = begin(crowd)
    run, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    worker.stop(False)
    let_go(crowd)
    wait_until(lambda: crowd.read_workspace(crowd.sessions[0]).count(f"{label} ends") == 2, 60, "it ends")
    time.sleep(0.3 * SLOW)
    crowd.bury(worker)
    go_on(crowd, run, LOST)
    check_lines(crowd, label, "begins", "ends")
    check_unsigned(crowd, run)


def check_unsigned(crowd, run):
    """No record says that the command came to its end, unless it says too that nobody accepted that."""
    folder = crowd.place.state / "bawn/runs" / run
    if (folder / records.FILE).exists() and records.read(folder)["outcome"] == "exited":
        events, _ = records.chain(folder / "events.jsonl")
        assert "result_refused" in [event["type"] for event in events], events


@step
def killed_before_the_result_is_written(crowd):
    run, label = kill_at_gate(crowd, begin(crowd), "reporting")
    go_on(crowd, run, LOST)
    check_lines(crowd, label, "begins", "ends")


@step
def killed_while_a_session_is_given_back(crowd):
    with witness.Gate(crowd.server, crowd.url, "releasing") as gate:
        worker = begin(crowd)
        assert gate.wait_for(60 * SLOW), "nobody gives it back"
        crowd.bury(worker)
    run, _ = crowd.queue(crowd.sessions[0])
    go_on(crowd, run, ENDED)


@step
def killed_while_it_says_goodbye(crowd):
    worker = begin(crowd, "--slots", "1")
    with witness.Gate(crowd.server, crowd.url, "releasing") as gate:
        os.kill(worker.pid, signal.SIGTERM)
        assert gate.wait_for(60 * SLOW), "it does not go"
        crowd.bury(worker)
    run, _ = crowd.queue(crowd.sessions[0])
    go_on(crowd, run, ENDED)


@step
def killed_while_it_renews_its_leases(crowd):
    worker = begin(crowd)
    run, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    with witness.Gate(crowd.server, crowd.url, "renewing") as gate:
        assert gate.wait_for(60 * SLOW), "it does not renew"
        crowd.bury(worker)
    let_go(crowd)
    go_on(crowd, run, LOST)


def oversleep(crowd):
    """A worker that sleeps past its lease, with a run whose workspace it still has."""
    sleeper = begin(crowd)
    # Enough to be copied for a while.
    run, _ = crowd.queue(crowd.sessions[0], "mkdir many && cd many && seq 3000 | xargs touch; "
                         "cd ..; echo {label} begins >> list; echo {label} begins >> ~/list; "
                         "echo {label} ends >> list; echo {label} ends >> ~/list")
    crowd.wait_for("many files are there", lambda: crowd.state_of(run) == ENDED)
    slept, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    sleeper.stop(True)
    return sleeper, slept, label


def wake(crowd, sleeper, slept, label):
    """It goes on where it was, and nothing of that comes into the session."""
    sleeper.go_on()
    let_go(crowd)
    crowd.wait_for("it is lost", lambda: crowd.state_of(slept) == LOST)
    # It is of use again.
    run, _ = crowd.queue(crowd.sessions[0])
    crowd.wait_for("the next has ended", lambda: crowd.state_of(run) == ENDED)
    sleeper.end()
    crowd.workers.remove(sleeper)
    check_lines(crowd, label, "begins")
    check_unsigned(crowd, slept)


@step
def killed_while_it_copies_a_workspace(crowd):
    sleeper, slept, label = oversleep(crowd)
    root = crowd.place.state / "bawn/sessions" / crowd.sessions[0] / "w"
    before = set(root.iterdir())
    worker = crowd.start(*ONE)
    run, _ = crowd.queue(crowd.sessions[0])
    wait_until(lambda: set(root.iterdir()) - before, 60, "a workspace is made")
    crowd.bury(worker)
    go_on(crowd, run, LOST, ENDED)
    wake(crowd, sleeper, slept, label)


@step
def killed_before_it_is_written_where_the_workspace_is(crowd):
    sleeper, slept, label = oversleep(crowd)
    run, _ = kill_at_gate(crowd, crowd.start(*ONE), "moving")
    go_on(crowd, run, LOST)
    wake(crowd, sleeper, slept, label)


@step
def killed_where_the_workspace_is_gone_to_is_unknown(crowd):
    first = begin(crowd)
    lost, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    crowd.bury(first)
    # The one before left nothing in it: the workspace itself is moved, and not a copy.
    second = crowd.start(*ONE)
    run, _ = kill_at_gate(crowd, second, "moving")
    check_lines(crowd, label, "begins")
    crowd.do("session", "diff", crowd.sessions[0], "--stat")
    go_on(crowd, run, LOST)
    assert crowd.state_of(lost) == LOST


def pause_at_gate(crowd, name):
    """Frozen in the middle of a transaction: the store gives the session to another, and refuses the rest."""
    worker = begin(crowd)
    with witness.Gate(crowd.server, crowd.url, name) as gate:
        run, label = crowd.queue(crowd.sessions[0])
        assert gate.wait_for(60 * SLOW), "nobody comes there"
        worker.stop(True)
    return worker, run, label


@step
def paused_while_a_result_is_written(crowd):
    worker, run, label = pause_at_gate(crowd, "reporting")
    go_on(crowd, run, LOST)
    worker.go_on()
    after, _ = crowd.queue(crowd.sessions[0])
    crowd.wait_for("it is awake, and the next has ended", lambda: crowd.state_of(after) == ENDED)
    worker.end()
    crowd.workers.remove(worker)
    assert crowd.state_of(run) == LOST
    check_lines(crowd, label, "begins", "ends")


@step
def paused_while_a_run_is_taken(crowd):
    worker, run, _ = pause_at_gate(crowd, "taking")
    go_on(crowd, run, ENDED)
    worker.go_on()
    after, _ = crowd.queue(crowd.sessions[0])
    crowd.wait_for("it is awake, and the next has ended", lambda: crowd.state_of(after) == ENDED)
    worker.end()
    crowd.workers.remove(worker)


@step
def paused_while_a_runner_waits_for_leave_to_sign(crowd):
    """Nobody else is there, so the session is still its own when it wakes up, and it is not sure of that."""
    worker = begin(crowd)
    run, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    warden = worker.warden()
    worker.stop(False)
    os.kill(warden, signal.SIGSTOP)
    let_go(crowd)
    wait_until(lambda: crowd.read_workspace(crowd.sessions[0]).count(f"{label} ends") == 2, 60, "it ends")
    time.sleep(crowd.lease)
    worker.go_on()
    os.kill(warden, signal.SIGCONT)
    go_on(crowd, run, LOST)
    check_lines(crowd, label, "begins", "ends")


@step
def killed_is_its_runner_only(crowd):
    worker = begin(crowd)
    run, label = crowd.queue(crowd.sessions[0], HELD)
    wait_for_mark(crowd, label)
    for pid in worker.runners():
        os.kill(pid, signal.SIGKILL)
    crowd.wait_for("it failed", lambda: crowd.state_of(run) == FAILED)
    let_go(crowd)
    go_on(crowd, run, FAILED)
