"""Reads logs, and judges them by what docs/format-events.md says: nothing of it is repeated here."""

import collections
import hashlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cage"))

DOCUMENT = (HERE.parents[1] / "docs/format-events.md").read_text(encoding="utf-8")
COMMON = ("seq", "time", "type", "run", "session")  # first, and in this order; then its own, then `prev`
SEEN = collections.defaultdict(lambda: collections.defaultdict(set))  # members, by user and type


def words(text):
    return re.findall(r"`([a-z_0-9]+)`", text)


def documented():
    """The members of each type, from the table."""
    found = {}
    for row in re.findall(r"^\| (`.*) \|$", DOCUMENT.split("## Types")[1].split("\n## ")[0], re.MULTILINE):
        types, _, members = [cell.strip() for cell in row.split(" | ")] if row.count(" | ") == 2 else [row, "", ""]
        for kind in words(types.split("|")[0]):
            found[kind] = set(words(re.sub(r"\([^)]*\)", "", members)))
    return found


def checker():
    """The loop of the document, as a script that checks the file on its standard input."""
    return re.search(r"```sh\n(.*?)```", DOCUMENT, re.DOTALL).group(1).replace("<events.jsonl", "")


TYPES = documented()


def lines_of(path):
    """Whole lines of a file, and whether there is a piece of another behind them."""
    content = path.read_bytes()
    *whole, rest = content.split(b"\n")
    return whole, rest != b""


def read(path, is_torn=False):
    """The events of a file, of which every line is judged."""
    whole, has_piece = lines_of(path)
    assert is_torn or not has_piece, f"{path} ends with a piece of a line"
    prev, events = "0" * 64, []
    for number, line in enumerate(whole):
        assert len(line) < 32 << 10, f"line {number} has {len(line)} bytes"
        event = json.loads(line)
        names = tuple(event)
        assert names[:5] == COMMON and names[-1] == "prev" and len(set(names)) == len(names), line
        assert event["seq"] == number and event["prev"] == prev, f"line {number}: {line}"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z", event["time"]), line
        assert event["type"] in TYPES, f"{event['type']} is not documented"
        own = set(names[5:-1])
        assert own <= TYPES[event["type"]], f"{own - TYPES[event['type']]} of {event['type']} is not documented"
        prev = hashlib.sha256(line).hexdigest()
        events.append(event)
    return events


def same(event):
    """An event without what depends on the file it is in."""
    return {key: value for key, value in event.items() if key not in ("seq", "prev")}


def state(p, **more):
    return read(p.state / "bawn/log/events.jsonl", **more)


def runs(p, **more):
    """The events of each run, the oldest run first."""
    return [read(path, **more) for path in sorted(p.state.glob("bawn/runs/*/events.jsonl"))]


# What the two logs say differently of a run, or only one of them says.
APART = {"run_start", "inspected", "preflight", "run_end", "signed"}


def in_both(events):
    return [same(event) for event in events if event["type"] not in APART]


def last(p):
    """The events of the last run; what was denied and what became of it is in the state's log too, in that order."""
    path = max(p.state.glob("bawn/runs/*/events.jsonl"), key=lambda path: path.stat().st_ctime_ns)
    events = read(path)
    told = [event for event in state(p) if event["run"] == path.parent.name]
    assert in_both(events) == in_both(told), "both logs have the same events"
    assert {"inspected", "preflight"}.isdisjoint(event["type"] for event in told), told
    note(p, events)
    return events


def note(p, events=()):
    """Notes which members were seen."""
    for event in (*events, *state(p)):
        SEEN[p.uid][event["type"]] |= set(event) - set(COMMON) - {"prev"}


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]
