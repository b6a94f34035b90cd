#!/usr/bin/env python3
"""Files that become subjects of a record: as the run left them, or not at all.

    subjects.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import hashlib
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import records  # noqa: E402
from place import case, expect, expect_refusal, main  # noqa: E402


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


def subjects(p):
    """Of the last run, in both statements."""
    folders = sorted(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
    both = [{entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
            for statement in records.statements(folders[-1] / records.FILE)]
    assert both[0] == both[1], both
    return both[0]


def named(*paths):
    return [word for path in paths for word in ("--subject", path)]


@case
def a_file_is_a_subject_as_the_run_left_it(p):
    p.write("project/old", "before\n")
    p.write("project/same", "same\n")
    p.write("project/moved", "long enough to be known again\n")
    script = "mkdir dist; echo out >dist/app; echo after >old; mv moved there"
    for options in ((), ("--disk", "64M"), ("--write",)):
        expect(p.sh(script, *options, *named("dist/app", "./old", "same", "there", "same")), 0)
        found = subjects(p)
        has_effects = found.pop("effects", None)
        assert has_effects or options == ("--write",)
        assert found == {"dist/app": sha256("out\n"), "old": sha256("after\n"), "same": sha256("same\n"),
                         "there": sha256("long enough to be known again\n")}, (options, found)


@case
def without_one_the_effects_are_the_subject(p):
    expect(p.sh("echo x >a"), 0)
    assert set(subjects(p)) == {"effects"}


@case
def what_is_not_there_is_no_subject_and_no_success(p):
    p.write("project/gone", "x\n")
    p.write("project/moved", "long enough to be known again\n")
    p.write("project/folder/file", "x\n")
    p.write("outside", "x\n")
    (p.project / "link").symlink_to("../outside")
    (p.project / "way").symlink_to("folder")
    p.write("project/there", "x\n")
    rows = {"gone": "deleted", "moved": "took it away", "never": "not there", "folder": "not a file",
            "link": "link", "way/file": "link", "new/link": "not a file", "folder/file": "", "made": "not a file"}
    script = "rm gone; mv moved other; mkdir new made; ln -s /etc/passwd new/link; rm -r folder; ln -s /etc folder"
    for path, part in rows.items():
        done = expect(p.sh(script, *named(path, "there")), 125, f"bawn: the record has no subject '{path}': ", part)
        assert "'there'" not in done.stderr, done
        assert set(subjects(p)) == {"effects", "there"}, (path, subjects(p))
    assert p.record()["outcome"] == "exited"
    expect(p.sh("exit 3", *named("never")), 3, "the record has no subject 'never'")
    expect(p.sh("echo x >never", *named("never")), 0)


@case
def a_name_that_could_be_mistaken_is_refused(p):
    for name in ("effects", "./effects", "events.jsonl", "spec.json", "record.intoto.jsonl"):
        expect_refusal(p.sh("echo ran", *named(name)), "cannot use --subject", "another")
    for name in ("", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "./", b"\xff"):
        expect_refusal(p.run("run", *named(name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")),
                             "--", "sh", "-c", "echo ran"), "it is not a path below the project")
    expect_refusal(p.sh("echo ran", *named(*map(str, range(65)))), "more than 64 times")
    expect(p.sh("mkdir sub; echo x >sub/effects", *named("sub/effects")), 0)
    assert subjects(p)["sub/effects"] == sha256("x\n")


@case
def verify_knows_the_file_beside_the_record(p):
    expect(p.sh("echo x >app", *named("app"), "--record", "r.intoto.jsonl"), 0)
    done = p.run("verify", "r.intoto.jsonl")
    assert "subject app" in done.stdout and done.returncode == 0, done
    p.write("project/app", "x\n")
    expect(p.run("verify", "r.intoto.jsonl"), 0, "subject app")
    p.write("project/app", "y\n")
    expect(p.run("verify", "r.intoto.jsonl"), 1, "subject app")


if __name__ == "__main__":
    main()
