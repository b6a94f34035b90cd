"""Reads records, without looking at their signatures: tests/verify and tests/peers do that."""

import base64
import hashlib
import json
import os
import pathlib
import shutil

FILE = "record.intoto.jsonl"

# What a run's folder has beside what it wrote.
FILES = {"events.jsonl", FILE}


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


def part(folder, name):
    """The file with the spec or the plan of a run: in its folder, or under its digest in the state."""
    folder = pathlib.Path(folder)
    beside = folder / f"{name}.json"
    digest = statements(folder / FILE)[0]["predicate"][f"{name}_sha256"]
    return beside if beside.exists() else folder.parents[1] / f"{name}s" / f"{digest}.json"


def bring(p, folder):
    """Spec and plan into the run's folder, as runs of before November 2026 have them."""
    for name in ("spec", "plan"):
        beside = pathlib.Path(folder) / f"{name}.json"
        if not beside.exists():
            shutil.copy(part(folder, name), beside)
            os.chown(beside, p.uid, p.uid)


# What a record of version 2 leaves to be understood.
USUAL = {"session": None, "worker": None, "lease": 0, "cage": None, "name": "", "level_reasons": "",
         "self_governance": None, "in_chain": True, "warm": False, "image": {"name": "host", "sha256": None},
         "capture": None, "terminal": False, "escapes_dropped": 0, "events": [], "skipped": [], "skipped_count": 0,
         "preflight_by": None, "preflight_passed": False}
# Of what is seen in most runs, an event has no word: docs/guarantees.md has it.
GUARANTEES = (pathlib.Path(__file__).resolve().parents[2] / "docs/guarantees.md").read_text(encoding="utf-8")


def usual_words():
    lines = [line.split("|")[1:-1] for line in GUARANTEES.splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): cells[3].strip() for cells in lines if cells[3].strip()}


def rows(grouped, seen):
    """A guarantee by its name, with all that is known of it."""
    found, words = {}, usual_words()
    for need in ("must", "may"):
        for key, names in grouped.get(need, {}).items():
            for name in names:
                vantage = names[name] if key == "missing" else key
                holds = key != "missing"
                found[name] = {"need": need, "declared": grouped["declared"].get(name, "yes"), "holds": holds,
                               "vantage": vantage, "seen": seen.get(name, words.get(name, "") if holds else "")}
    return found


def whole(statement, folder=None):
    """A record as version 1 said it, with what goes without saying; what was seen is in the log."""
    record = statement["predicate"]
    if record["version"] == 1:
        return record
    record = {**USUAL, **record}
    seen = {}
    if folder and (folder / "events.jsonl").exists():
        for event in chain(folder / "events.jsonl")[0]:
            if event["type"] == "inspected":
                seen = event["guarantees"]["seen"]
    record["image"] = {"sha256": None, **record["image"]}
    record["guarantees"] = rows(record["guarantees"], {**seen, **record["guarantees"].get("seen", {})})
    record["degraded"] = [name for name, row in record["guarantees"].items() if row["need"] == "may" and not row["holds"]]
    for subject in statement["subject"]:
        if subject["name"] == "effects" and "effects" in record:
            counts = dict.fromkeys(("added", "changed", "deleted", "renamed", "runs_on_host"), 0)
            record["effects"] = {"sha256": subject["digest"]["sha256"], **counts, **record["effects"]}
    if "output" in record:
        record["output"] = {"together": False, **record["output"]}
        for stream in ("stdout", "stderr"):
            if record["output"].get(stream, {}).get("bytes") == 0:
                record["output"][stream].setdefault("sha256", hashlib.sha256(b"").hexdigest())
    return record


def read(path):
    """The record in a file, or in a run's folder."""
    path = pathlib.Path(path)
    return whole(statements(path / FILE if path.is_dir() else path)[0], path if path.is_dir() else path.parent)


def first_version(folder):
    """The statements of a run as bawn made them before November 2026."""
    statement, provenance = statements(pathlib.Path(folder) / FILE)
    record = {**whole(statement, pathlib.Path(folder)), "version": 1}
    log = record["log"]
    made = {"buildType": "urn:bawn:run:v1",
            "externalParameters": {"name": record["name"], "spec": {"sha256": record["spec_sha256"]},
                                   "level": record["level"]},
            "internalParameters": {"plan": {"sha256": record["plan_sha256"]}, "filter": {"sha256": record["filter_sha256"]},
                                   "engine": record["engine"]},
            "resolvedDependencies": [{"name": "image"}]}
    details = {"builder": {"id": "urn:bawn:keeper:v1", "version": {"bawn": record["bawn"], "linux": record["kernel"]}},
               "metadata": {"invocationId": record["run"], "startedOn": record["began"], "finishedOn": record["ended"]},
               "byproducts": [{"name": "events.jsonl", "annotations": log}]}
    return [{**statement, "predicateType": "urn:bawn:record:v1", "predicate": record},
            {**provenance, "predicate": {"buildDefinition": made, "runDetails": details}}]
