"""Reads records, without looking at their signatures: tests/verify and tests/peers do that."""

import base64
import hashlib
import json
import pathlib

FILE = "record.intoto.jsonl"

# What a run's folder has beside what it wrote.
FILES = {"events.jsonl", "plan.json", FILE, "spec.json"}


def statements(path):
    """What the envelopes of a file hold: the record's statement, and that of the provenance."""
    return [json.loads(base64.b64decode(json.loads(line)["payload"], validate=True))
            for line in pathlib.Path(path).read_bytes().splitlines()]


def chain(path):
    """The events of a log, each of which continues the one before, and the hash of the last line.

    A piece of a line at the end is none.
    """
    prev, events = "0" * 64, []
    *whole, _ = pathlib.Path(path).read_bytes().split(b"\n")
    for seq, line in enumerate(whole):
        event = json.loads(line)
        assert (event["seq"], event["prev"]) == (seq, prev), (seq, event)
        prev = hashlib.sha256(line).hexdigest()
        events.append(event)
    return events, prev


def read(path):
    """The record in a file, or in a run's folder."""
    path = pathlib.Path(path)
    return statements(path / FILE if path.is_dir() else path)[0]["predicate"]
