"""What must be so in the end, whatever happened; each is a function that gives sentences, or none.

A run's command writes a line when it begins and one before it ends, into two files of its session: one of the
project, one of the home.
"""

import collections

QUEUED, RUNNING, ENDED, FAILED, LOST, CANCELLED = range(6)

Run = collections.namedtuple("Run", "id session label state status token worker")  # in the order they were queued
Change = collections.namedtuple("Change", "run was is_now token worker newest holder")  # of a run, in its order
Lease = collections.namedtuple("Lease", "session was is_now workspace moved")  # of a session


def script(label, pause="0"):
    both = " && ".join(f"echo {label} {{0}} >> {path}" for path in ("list", "~/list"))
    return " && ".join((both.format("begins"), f"sleep {pause}" if pause != "0" else "true", both.format("ends")))


def unfinished(runs):
    return [f"run {x.label} is {'running' if x.state == RUNNING else 'queued'} still" for x in runs
            if x.state not in (ENDED, FAILED, LOST, CANCELLED)]


def unknown(runs, acknowledged):
    """Whoever queued a run and was told so, finds it."""
    known = {x.id for x in runs}
    return [f"run {run} was queued, and nobody knows it" for run in acknowledged if run not in known]


def miscounted(runs, lines):
    """One session's, and what is in one of its files: once where the run ended well, and never twice."""
    counted = collections.Counter(lines)
    wrong = [f"{line!r} is there {n} times" for line, n in counted.items() if n > 1]
    for x in runs:
        for word in ("begins", "ends"):
            n = counted.pop(f"{x.label} {word}", 0)
            if n != 1 and x.state == ENDED and x.status == 0:
                wrong.append(f"{x.label} ended well, and {word!r} is there {n} times")
            if n and (x.state == CANCELLED or x.token == 0):
                wrong.append(f"{x.label} was never begun, and {word!r} is there")
    return wrong + [f"{line!r} is nobody's" for line in counted]


def disordered(runs, lines):
    """What one run wrote is together, and in the order of the runs: nobody writes after the next one has begun."""
    place = {f"{x.label} {word}": (i, word == "ends") for i, x in enumerate(runs) for word in ("begins", "ends")}
    known = [line for line in lines if line in place]
    return [f"{after!r} comes after {before!r}" for before, after in zip(known, known[1:])
            if place[before] >= place[after]]


def not_once(runs, changes):
    """A run is taken once at most, and ends once."""
    wrong, of = [], collections.defaultdict(list)
    for change in changes:
        of[change.run].append((change.was, change.is_now))
    for x in runs:
        good = {CANCELLED: [[(QUEUED, CANCELLED)]]}.get(x.state, [[(QUEUED, RUNNING), (RUNNING, x.state)]])
        if of[x.id] not in good:
            wrong.append(f"run {x.label} went through {of[x.id]}")
    return wrong


def fenced(changes):
    """What a run came to is written by who has the session then, with the newest token; that it is lost, by anyone."""
    return [f"{x.worker} wrote of run {x.run} with token {x.token}, when {x.holder or 'nobody'} had {x.newest}"
            for x in changes
            if x.is_now in (RUNNING, ENDED, FAILED) and (x.token != x.newest or x.worker != x.holder)]


def backward(leases):
    """Tokens grow by one, and a workspace is that of the lease which moved it."""
    wrong = [f"session {x.session}: token {x.is_now} after {x.was}" for x in leases
             if x.is_now not in (x.was, x.was + 1)]
    return wrong + [f"session {x.session}: workspace {x.moved} under token {x.is_now}" for x in leases
                    if x.moved != x.workspace and x.moved != x.is_now]


def unordered_tokens(runs):
    """In one session, in the order they were queued."""
    tokens = [x.token for x in runs if x.token]
    return [f"token {b} after {a}" for a, b in zip(tokens, tokens[1:]) if b < a]
