#!/usr/bin/env python3
"""bawn run --again: what is repeated, on what, and whether it came out the same.

    run.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "verify"))
import records  # noqa: E402
from verifying import sign  # noqa: E402
from place import TOOL, case, expect, expect_refusal, main  # noqa: E402


def folders(p):
    return sorted(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)


def first(p, script, *options, status=0):
    """A run, and its folder."""
    before = set(folders(p))
    expect(p.sh(script, *options), status)
    return (set(folders(p)) - before).pop()


def again(p, folder, *options, **more):
    return p.run("run", "--again", folder.name, *options, **more)


def newest(p, before):
    """The record of the one run that is not among those."""
    return records.read((set(folders(p)) - set(before)).pop())


MADE = "mkdir -p out && echo made >out/a && sed -i s/x/y/ in && rm -f gone"


def fill(p):
    p.write("project/in", "x\n")
    p.write("project/gone", "x\n")


# --- the same ---

@case
def a_run_that_is_repeated_comes_out_the_same(p):
    fill(p)
    one = first(p, MADE, "--digest-project")
    before = folders(p)
    done = expect(again(p, one), 0, f"again: the effects are the same as in run {one.name}",
                  "again: the outcome is the same, the output is the same, the plan is the same, "
                  "the filter is the same")
    record, then = newest(p, before), records.read(one)
    assert record["again"] == {"of": one.name, "same_image": None, "same_project": True, "same_overlay": None,
                               "same_plan": True, "same_filter": True, "same_outcome": True,
                               "same_effects": True, "same_output": True}, record["again"]
    assert record["effects"]["sha256"] == then["effects"]["sha256"] and record["spec_sha256"] == then["spec_sha256"]
    assert record["project"] == then["project"]
    assert "project is what it was is not known" not in done.stderr
    events = [json.loads(line) for line in (p.state / "bawn/log/events.jsonl").read_text().splitlines()]
    start = [event for event in events if event["type"] == "run_start"]
    assert "again" not in start[0] and start[-1]["again"] == one.name
    told = [event for event in events if event["type"] == "repeated"]
    assert len(told) == 1 and told[0]["of"] == one.name and told[0]["same_effects"] is True, told
    expect(p.run("verify", record["run"]), 0)
    expect(p.run("verify", "--same", one.name, record["run"]), 0)


@case
def a_record_is_meant_by_its_run_its_folder_or_its_file(p):
    fill(p)
    one = first(p, MADE)
    copy = p.make("elsewhere")
    shutil.copy(records.part(one, "spec"), copy / "spec.json")
    shutil.copy(one / records.FILE, copy / records.FILE)
    for name in ("spec.json", records.FILE):
        p.own(copy / name)
    for word in (one.name, one.name[:-2], one, one / records.FILE, copy, copy / records.FILE):
        expect(p.run("run", "--again", word), 0, f"again: the effects are the same as in run {one.name}")


@case
def the_commands_status_is_bawns_also_when_it_is_repeated(p):
    one = first(p, "echo x >a; exit 3", status=3)
    expect(again(p, one), 3, "the effects are the same", "the outcome is the same")
    expect(again(p, one, "--same"), 0)
    quiet = expect(again(p, one, "--same", "-q"), 0)
    assert quiet.stderr == "", quiet


# --- not the same ---

@case
def other_output_is_told_and_decides_nothing(p):
    one = first(p, "date +%s%N")
    before = folders(p)
    expect(again(p, one, "--same"), 0, "the output is not the same")
    assert newest(p, before)["again"]["same_output"] is False
    other = folders(p)[-1].name
    told = expect(p.run("verify", "--same", one.name, other), 0).stdout
    assert [line.split()[1] for line in told.splitlines() if line.startswith("std")] == ["no", "yes"], told


@case
def output_that_cannot_be_compared_is_not_known_to_be_the_same(p):
    one = first(p, "echo x; echo y >&2")
    for options, more in ((("-t",), {}), ((), {"stdout": subprocess.DEVNULL})):
        before = folders(p)
        expect(again(p, one, *options, **more), 0, "the output is not known to be the same")
        assert newest(p, before)["again"]["same_output"] is None


@case
def what_differs_is_named(p):
    script = "date +%s%N >now; echo same >same; od -An -N8 -tx8 /dev/urandom >\"f$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')\""
    one = first(p, script)
    before = folders(p)
    done = expect(again(p, one), 0, f"again: the effects are not the same as in run {one.name}", "'now' is another",
                  "only in the first run", "only in the second run", "the outcome is the same")
    assert "'same'" not in done.stderr
    assert newest(p, before)["again"]["same_effects"] is False
    expect(again(p, one, "--same"), 1)


@case
def at_most_twenty_paths_are_named(p):
    one = first(p, "for i in $(seq 1 50); do date +%s%N >f$i; done")
    done = expect(again(p, one), 0, "and 30 more")
    assert done.stderr.count("is another") == 20, done


@case
def another_outcome_is_told(p):
    p.write("bin/fickle", "#!/bin/sh\nexit 0\n", mode=0o755)
    bind = ("-v", f"{p.home}/bin:/opt/fickle")
    expect(p.run("run", *bind, "--", "/opt/fickle/fickle"), 0)
    one = folders(p)[-1]
    expect(again(p, one, "--trust"), 0, "the outcome is the same")
    p.write("bin/fickle", "#!/bin/sh\nexit 7\n", mode=0o755)
    expect(again(p, one, "--trust"), 7, "the outcome is not the same", "the effects are the same")
    expect(again(p, one, "--trust", "--same"), 1)


@case
def effects_that_nobody_captured_are_not_known(p):
    one = first(p, "true", "--write")
    before = folders(p)
    expect(again(p, one, "--trust"), 0, "the effects are not known to be the same")
    assert newest(p, before)["again"]["same_effects"] is None
    expect(again(p, one, "--trust", "--same"), 1)


@case
def programs_are_told_on_status_fd(p):
    one = first(p, "date +%s%N >a")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    expect(again(p, one, "--status-fd", str(write), pass_fds=(write,)), 0)
    os.close(write)
    with open(read, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    assert events[-1]["event"] == "exited" and events[-1]["again"]["same_effects"] is False, events


# --- on what ---

@case
def a_project_that_changed_is_refused_where_that_is_known(p):
    fill(p)
    one, other = first(p, MADE, "--digest-project"), first(p, MADE)
    p.write("project/in", "x\nx\n")
    then = records.read(one)["project"]["sha256"]
    before = folders(p)
    p.write("project/more", "x\n")
    (p.project / "gone").chmod(0o755)
    done = again(p, one)
    expect(done, 125, f"cannot repeat run {one.name}: the project is not what it was", then, "--project",
           "'in' has another content", "'more' was not there", "'gone' was made executable")
    (p.project / "more").unlink()
    (p.project / "gone").chmod(0o644)
    refused = newest(p, before)
    assert refused["outcome"] == "refused" and refused["again"]["same_project"] is False, refused
    assert refused["project"]["sha256"] in refused["error"]
    expect(again(p, other), 0, "whether the project is what it was is not known", "'in' is another")
    p.write("project/in", "x\n")
    expect(again(p, one, "--same"), 0)


@case
def effects_that_were_applied_since_are_seen(p):
    fill(p)
    one = first(p, MADE, "--digest-project")
    expect(p.run("apply", one.name), 0)
    expect(again(p, one), 125, "applied", "'out/a' was not there")


@case
def it_can_be_repeated_in_a_copy_of_the_project(p):
    fill(p)
    one = first(p, MADE, "--digest-project")
    copy = p.make("copy")
    for name in ("in", "gone"):
        shutil.copy2(p.project / name, copy / name)
        p.own(copy / name)
    (p.project / "in").unlink()
    expect(again(p, one), 125, "the project is not what it was", "'in' is not there")
    expect(again(p, one, "--project", copy), 0, f"was in '{p.project}', and this one is in '{copy}'",
           "the effects are the same")
    expect(again(p, one, cwd=copy), 0, "the effects are the same")
    expect_refusal(again(p, one, "--project", "/nowhere"), "/nowhere")


@case
def an_image_that_changed_is_refused(p):
    top = p.make("image")
    p.write("image/tool", TOOL.read_bytes(), mode=0o755)
    p.write("image/note", "x\n")
    expect(p.run("run", *p.spec(f"root: {{image: 'dir:{top}'}}\n"), "--", "/tool", "ids"), 0)
    one = folders(p)[-1]
    expect(again(p, one, "--trust", "--same"), 0)
    p.write("image/note", "y\n")
    expect_refusal(again(p, one, "--trust", "-q"), "the image is not what it was", records.read(one)["image"]["sha256"])
    p.write("image/note", "x\n")
    expect(again(p, one, "--trust", "--same"), 0)


# --- whose word ---

@case
def a_spec_that_was_changed_is_refused(p):
    one = first(p, "echo x >a")
    spec = records.part(one, "spec")
    good = spec.read_text()
    for bad in (good.replace("echo x", "echo y"), good[:-1], "{}\n", ""):
        p.write(spec, bad, mode=0o600)
        expect_refusal(again(p, one), "cannot use spec.json: its digest")
    spec.unlink()
    expect_refusal(again(p, one), "cannot read spec.json")
    p.write(spec, good, mode=0o600)
    expect(again(p, one), 0)


@case
def a_record_of_before_there_were_some_keys_is_repeated(p):
    """Their defaults then are their defaults now; any other key that is missing makes it no spec."""
    one = first(p, "echo x >a; echo said")
    records.bring(p, one)
    spec, good = (one / "spec.json").read_text(), (one / records.FILE).read_bytes()
    for key, status in ((r'"toolchains":\[\],', 0), (r',"record\.output":"digest"', 0), (r'"relaxed":false,', 125)):
        older = re.sub(key, "", spec)
        assert older != spec
        digests = [hashlib.sha256(text.encode()).hexdigest().encode() for text in (spec, older)]
        bodies = [base64.b64decode(json.loads(line)["payload"]) for line in good.splitlines()]
        p.write(one / "spec.json", older, mode=0o600)
        (one / records.FILE).write_bytes(sign(p, [body.replace(*digests) for body in bodies]))
        said = ("is of an earlier bawn", "the effects are the same", "the output is the same")
        expect(again(p, one), status, *(said if status == 0 else ("it is no spec in canonical form",)))


@case
def a_record_that_was_changed_or_is_anothers_is_refused(p):
    one = first(p, "echo x >a")
    public = expect(p.run("key", "show", "--pem"), 0).stdout
    p.write("mine.pub", public)
    good = (one / records.FILE).read_text()
    p.write(one / records.FILE, good.replace('"payload":"e', '"payload":"f', 1), mode=0o600)
    done = again(p, one)
    assert done.returncode == 125 and len(done.stderr.splitlines()) == 1, done
    p.write(one / records.FILE, good, mode=0o600)
    # Another operator: the same files, another state, another key.
    other = p.make("other-state", mode=0o700)
    copy = p.make("elsewhere")
    shutil.copy(records.part(one, "spec"), copy / "spec.json")
    shutil.copy(one / records.FILE, copy / records.FILE)
    for name in ("spec.json", records.FILE):
        p.own(copy / name)
    env = {"XDG_STATE_HOME": str(other)}
    expect_refusal(p.run("run", "--again", copy, env=env), "cannot repeat the record", "signed by none of your keys")
    expect(p.run("run", "--again", copy, "--key", p.home / "mine.pub", env=env), 0, "the effects are the same")


@case
def what_policies_do_not_allow_is_refused_unless_it_is_the_operators_word(p):
    p.write("data/x", "x\n")
    one = first(p, "cat /data/x >copy", "-v", f"{p.home}/data:/data")
    done = expect(again(p, one), 125, "binds", "--trust")
    assert "ran" not in done.stdout
    expect(again(p, one, "--trust"), 0, "the effects are the same")
    # A policy that says what nobody said then makes another spec of it.
    plain = first(p, "echo x >a")
    expect(again(p, plain), 0)
    p.write(".config/bawn/policy.yaml", "version: 1\ndefaults: {limits: {pids: 100}}\n")
    expect_refusal(again(p, plain), "the policies of this machine change its spec")


@case
def nothing_but_the_record_says_what_is_run(p):
    one = first(p, "echo x >a")
    for options in (("-v", "/srv:/srv"), ("--write",), ("-f", "spec.yaml"), ("-e", "A=1"), ("--network", "host")):
        expect_refusal(again(p, one, *options), "with --again: the spec is that of the record")
    expect_refusal(p.run("run", "--again", one.name, "--", "true"), "cannot run another command with --again")
    expect_refusal(p.run("run", "--same", "--", "true"), "without --again")
    expect(p.run("run", "--again", "20200101-000000"), 125)
    expect(p.run("run", "--again", "nowhere"), 125, "cannot read the record 'nowhere'")
    # Nor does a file in the project.
    p.write("project/bawn.yaml", "version: 1\nname: other\n")
    expect(again(p, one), 0, "the effects are the same")


@case
def a_run_that_was_refused_has_nothing_to_repeat(p):
    fill(p)
    one = first(p, MADE, "--digest-project")
    p.write("project/in", "other\n")
    before = folders(p)
    expect(again(p, one), 125, "not what it was")
    refused = (set(folders(p)) - set(before)).pop()
    expect_refusal(again(p, refused), "it was refused and ran nothing")


@case
def a_repetition_can_be_repeated(p):
    fill(p)
    one = first(p, MADE, "--digest-project", "--subject", "out/a")
    before = folders(p)
    expect(again(p, one, "--subject", "out/a"), 0)
    two = (set(folders(p)) - set(before)).pop()
    names = [entry["name"] for entry in records.statements(two / records.FILE)[0]["subject"]]
    assert names == ["effects", "out/a"], names
    expect(again(p, two, "--same"), 0, f"as in run {two.name}")


if __name__ == "__main__":
    main()
