#!/usr/bin/env python3
"""Records that are signed and do not make sense: whoever has the key cannot say just anything.

    forged.py BAWN FLIP        prints TAP

Each is a real record in which one thing was changed before the operator's own key signed it; the twin is the same
without the change.
"""

import copy
import json
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import case, expect, main  # noqa: E402
from records import first_version, statements  # noqa: E402
from verifying import FILE, copied, found, results, run, sign, verify  # noqa: E402


def forged(p, payloads, change, both=False):
    """What is said of a record after a change of its predicate, of both with `both`."""
    record, provenance = copy.deepcopy(payloads)
    change(record["predicate"])
    if both:
        change(provenance["predicate"])
    return found(p, "-", stdin=sign(p, [record, provenance]))[0]


def at(path, value):
    """Sets a member, which a path with slashes leads to."""
    def change(predicate):
        *way, last = path.split("/")
        for part in way:
            predicate = predicate[part]
        if value is None:
            del predicate[last]
        else:
            predicate[last] = value
    return change


@case
def guarantees_are_held_to_what_was_seen(p):
    payloads = first_version(run(p))
    names = payloads[0]["predicate"]["guarantees"]
    must = next(name for name in names if names[name]["need"] == "must")
    already = payloads[0]["predicate"]["degraded"]  # what this machine cannot give
    may = next(name for name in names if names[name]["need"] == "may" and name not in already)
    twin = forged(p, payloads, lambda predicate: None)
    assert twin["guarantees"][0] == twin["degraded"][0] == "yes"
    rows = forged(p, payloads, at(f"guarantees/{must}/holds", False))
    assert rows["guarantees"][0] == "no" and must in rows["guarantees"][1], rows
    missing = at(f"guarantees/{may}/holds", False)
    seen = at(f"guarantees/{may}/vantage", "outside")
    rows = forged(p, payloads, lambda x: (missing(x), seen(x)))
    assert rows["guarantees"][0] == "yes" and rows["degraded"][0] == "no" and may in rows["degraded"][1], rows
    rows = forged(p, payloads, lambda x: (missing(x), seen(x), at("degraded", [may, *already])(x)))
    count = 1 + len(already)
    said = f"{count} optional guarantee{' was' if count == 1 else 's were'} not enforced, as the record says: {may} first"
    assert rows["degraded"] == ("yes", said), rows
    for listed in ([must, *already], ["invented", *already], [may, *already], [*already, *already, must]):
        rows = forged(p, payloads, at("degraded", listed))
        assert rows["degraded"][0] == "no", (listed, rows)


@case
def what_version_2_groups_is_held_to_what_was_seen(p):
    folder = run(p)
    payloads = statements(folder / FILE)
    groups = payloads[0]["predicate"]["guarantees"]
    must, may = groups["must"]["outside"], groups["may"]["outside"]
    twin = forged(p, payloads, lambda predicate: None)
    assert twin["guarantees"][0] == twin["degraded"][0] == twin["provenance"][0] == "yes"
    rows = forged(p, payloads, lambda x: (at("guarantees/must/outside", must[1:])(x),
                                          at("guarantees/must/missing", {must[0]: "outside"})(x)))
    assert rows["guarantees"][0] == "no" and must[0] in rows["guarantees"][1], rows
    rows = forged(p, payloads, lambda x: (at("guarantees/may/outside", may[1:])(x),
                                          at("guarantees/may/missing", {may[0]: "none", **groups["may"].get("missing", {})})(x)))
    assert rows["degraded"][0] == "yes" and "optional guarantee" in rows["degraded"][1], rows
    rows = forged(p, payloads, at("degraded", [must[0]]))
    assert rows["degraded"][0] == "no", rows
    other = "0" * 64
    for path, value in (("run", "20200101-000000-00000000"), ("spec_sha256", other), ("bawn", "9.9.9"),
                        ("began", "2020-01-01T00:00:00.000000Z"), ("image", {"name": "dir:/x", "sha256": other})):
        assert forged(p, payloads, at(path, value))["provenance"][0] == "no", path
    # What a version does not know is not read as if it were of the other.
    for version, type_ in ((1, "v2"), (2, "v1"), (3, "v2")):
        record, provenance = copy.deepcopy(payloads)
        record["predicate"]["version"], record["predicateType"] = version, f"urn:bawn:record:{type_}"
        expect(verify(p, "-", stdin=sign(p, [record, provenance])), 1, "version")


@case
def a_record_of_version_1_is_read(p):
    folder = run(p)
    (folder / FILE).write_bytes(sign(p, first_version(folder)))
    assert results(p, folder)["guarantees"] == results(p, folder)["provenance"] == results(p, folder)["effects"] == "yes"
    expect(p.run("record", "show", folder.name), 0)
    expect(p.run("run", "--again", folder.name), 0, "the effects are the same")
    expect(p.run("card", folder.name), 0)


@case
def the_end_is_held_to_its_numbers(p):
    payloads = statements(run(p) / FILE)
    for changes, result in (((), "yes"), ((at("outcome", "signaled"),), "no"), ((at("signal", 9),), "no"),
                            ((at("outcome", "timed_out"),), "no"),
                            ((at("outcome", "timed_out"), at("status", None)), "yes"),
                            ((at("outcome", "signaled"), at("status", None), at("signal", 9)), "yes")):
        rows = forged(p, payloads, lambda x, changes=changes: [change(x) for change in changes])
        assert rows["outcome"][0] == result, rows


@case
def both_envelopes_must_tell_the_same(p):
    payloads = first_version(run(p))
    other = "0" * 64
    for path, value in (("run", "20200101-000000-00000000"), ("name", "other"), ("level", "custom"),
                        ("spec_sha256", other), ("plan_sha256", other), ("filter_sha256", other), ("engine", "other"),
                        ("bawn", "9.9.9"), ("kernel", "1.0"), ("began", "2020-01-01T00:00:00.000000Z"),
                        ("ended", "2020-01-01T00:00:00.000000Z"), ("image", {"name": "dir:/x", "sha256": other}),
                        ("project", {"sha256": other, "files": 1, "bytes": 1})):
        rows = forged(p, payloads, at(path, value))
        assert rows["provenance"][0] == "no", (path, rows)
    record, provenance = copy.deepcopy(payloads)
    provenance["subject"][0]["digest"]["sha256"] = other
    assert results(p, "-", stdin=sign(p, [record, provenance]))["provenance"] == "no"
    record["subject"] = provenance["subject"]
    rows, _ = found(p, "-", stdin=sign(p, [record, provenance]))
    assert rows["provenance"][0] == "yes" and rows["subject"][0] == "no", rows


@case
def digests_are_those_of_the_files(p):
    folder = run(p)
    payloads, other = first_version(folder), "0" * 64
    beside = copied(p, folder)

    def judged(change):
        record, provenance = copy.deepcopy(payloads)
        change(record["predicate"])
        (beside / FILE).write_bytes(sign(p, [record, provenance]))
        return results(p, beside)

    assert "no" not in judged(lambda x: None).values()
    for path, value, name in (("spec_sha256", other, "spec"), ("plan_sha256", other, "plan"),
                              ("effects/sha256", other, "effects"), ("effects/file_sha256", other, "effects"),
                              ("effects/added", 7, "effects"), ("log/last", other, "events"),
                              ("log/events", 1, "events"), ("log/events", 0, "events"), ("log/events", 10 ** 15, "events")):
        assert judged(at(path, value))[name] == "no", path


@case
def subjects_are_files_beside_it(p):
    folder = run(p)
    record, provenance = statements(folder / FILE)
    beside = copied(p, folder)
    p.write("copy/out.bin", "content")
    p.write("secret", "content")
    os.symlink(p.home / "secret", beside / "link")
    good = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"

    def judged(name, digest):
        for statement in (record, provenance):
            statement["subject"] = statement["subject"][:1] + [{"name": name, "digest": {"sha256": digest}}]
        (beside / FILE).write_bytes(sign(p, [record, provenance]))
        return results(p, beside)[f"subject {name}"]

    assert judged("out.bin", good) == "yes"
    assert judged("out.bin", "0" * 64) == "no"
    assert judged("missing.bin", good) == "not there"
    assert judged("link", good) == "no"
    # A name that leads elsewhere is of no file beside it.
    assert judged("../secret", good) == "not there" and judged(str(p.home / "secret"), good) == "not there"


@case
def a_name_is_no_digest(p):
    record, provenance = statements(run(p) / FILE)
    demand = p.write("policy.yaml", f"version: 1\nimage: {'a' * 64}\n")
    for image, result in (({"name": "a" * 64, "sha256": None}, "no"), ({"name": "a" * 64, "sha256": "b" * 64}, "no"),
                          ({"name": "dir:/x", "sha256": "a" * 64}, "yes")):
        record["predicate"]["image"] = image
        rows, _ = found(p, "-", "--quick", "--policy", demand, stdin=sign(p, [record, provenance]))
        assert rows["policy.image"][0] == result, (image, rows)


@case
def texts_command_no_terminal(p):
    payloads = statements(run(p) / FILE)
    evil = "\x1b]52;c;eA==\x07\u202e\r\n\x9b2J"
    change = lambda x: (at("outcome", "refused")(x), at("status", None)(x), at("error", evil)(x),
                        at("guarantees/must/missing", {evil: "none"})(x))
    record, provenance = copy.deepcopy(payloads)
    change(record["predicate"])
    for statement in (record, provenance):
        statement["subject"].append({"name": evil, "digest": {"sha256": "0" * 64}})
    content = sign(p, [record, provenance])
    for args in (("-",), ("-", "--json"), ("-", "--attest")):
        done = verify(p, *args, stdin=content)
        assert done.returncode == 1
        said = done.stdout + done.stderr
        assert not any(c in said for c in "\x1b\x07\u202e\r\x9b"), said
    json.loads(verify(p, "-", "--json", stdin=content).stdout)


@case
def nonsense_in_a_signed_payload_is_told(p):
    payloads = first_version(run(p))
    record = payloads[0]
    for body, part in ((b"", "expected"), (b"[]", "expected"), (b"{}", "_type"), (b"{" * 5000, "expected"),
                       (json.dumps(record).encode()[:-1], "expected"),
                       (json.dumps({**record, "_type": "x"}).encode(), "an in-toto statement"),
                       (json.dumps({**record, "subject": []}).encode(), "a subject"),
                       (json.dumps({**record, "predicateType": "urn:other"}).encode(), "no record of a run"),
                       (json.dumps({**record, "predicate": {}}).encode(), "version"),
                       (json.dumps(record).encode().replace(b'"version"', b'"run": "x", "version"'), "once"),
                       (json.dumps(record).encode().replace(b'"in_chain": true', b'"in_chain": 1'), "true or false")):
        done = expect(verify(p, "-", stdin=sign(p, [body])), 1, part)
        assert len(done.stderr.splitlines()) == 1, done
    more = sign(p, [*payloads, {**record, "predicateType": "urn:other"}])
    rows, _ = found(p, "-", stdin=more)
    assert rows["others"][0] == "not asked" and rows["signature"][0] == "yes"


main()
