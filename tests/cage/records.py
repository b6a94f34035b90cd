"""Reads records, without looking at their signatures: tests/verify and tests/peers do that."""

import base64
import json
import pathlib

FILE = "record.intoto.jsonl"

# What a run's folder has beside what it wrote.
FILES = {"events.jsonl", "plan.json", FILE, "spec.json"}


def statements(path):
    """What the envelopes of a file hold: the record's statement, and that of the provenance."""
    return [json.loads(base64.b64decode(json.loads(line)["payload"], validate=True))
            for line in pathlib.Path(path).read_bytes().splitlines()]


def read(path):
    """The record in a file, or in a run's folder."""
    path = pathlib.Path(path)
    return statements(path / FILE if path.is_dir() else path)[0]["predicate"]
