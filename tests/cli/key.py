#!/usr/bin/env python3
"""bawn key: the operator's signing key, and what may be wrong with it.

    key.py BAWN        prints TAP
"""

import json
import os
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
import run  # noqa: E402
from run import case, expect  # noqa: E402

run.CASES.clear()  # those are another suite's


def key(p, *args, state="state"):
    return p.run("key", *args, env={"XDG_STATE_HOME": str(p.top / state)})


def keys(p):
    return p.top / "state/bawn/keys"


def log(p):
    return [json.loads(line) for line in (p.top / "state/bawn/log/events.jsonl").read_text().splitlines()]


def refused(done, status, *parts):
    """One sentence, at most one hint, and nothing printed."""
    expect(done, status, *parts)
    said, *hints = done.stderr.splitlines()
    assert done.stdout == "" and said.startswith("bawn: ") and len(hints) <= 1, done.stderr
    assert all(hint.startswith("hint: ") for hint in hints), done.stderr


@case
def one_is_made_that_openssl_reads(p):
    done = expect(key(p, "init"), 0, "made the signing key ", f"{keys(p)}/signing.pub")
    shown = json.loads(expect(key(p, "show", "--json"), 0).stdout)
    assert shown["id"] in done.stdout and shown["private"] == str(keys(p) / "signing.pem")
    assert (keys(p) / "signing.pub").read_text() == shown["pem"] == expect(key(p, "show", "--pem"), 0).stdout
    derived = subprocess.run(["openssl", "pkey", "-in", keys(p) / "signing.pem", "-pubout"], capture_output=True,
                             text=True, check=True).stdout
    assert derived == shown["pem"]
    again = subprocess.run(["openssl", "pkey", "-in", keys(p) / "signing.pem"], capture_output=True, text=True, check=True)
    assert again.stdout == (keys(p) / "signing.pem").read_text()


@case
def it_is_the_operators_alone(p):
    expect(key(p, "init"), 0)
    for path, mode in ((keys(p), 0o40700), (keys(p) / "signing.pem", 0o100600), (keys(p).parent, 0o40700)):
        st = path.stat()
        assert st.st_mode == mode and st.st_uid == p.uid, f"{path}: {stat.filemode(st.st_mode)}"
    assert sorted(os.listdir(keys(p))) == ["signing.pem", "signing.pub"]


@case
def nothing_of_the_private_half_is_printed(p):
    said = ""
    for args in (["init"], ["init"], ["init", "--new"], ["init", "--new", "--json"], ["show"], ["show", "--json"]):
        done = key(p, *args)
        said += done.stdout + done.stderr
        body = (keys(p) / "signing.pem").read_text().splitlines()[1]
        assert body not in said and body[22:] not in said, args
    assert "signing.pem" in said
    assert "PRIVATE" not in said


@case
def a_second_one_is_made_only_when_asked_for(p):
    expect(key(p, "init"), 0)
    first = json.loads(key(p, "show", "--json").stdout)
    refused(key(p, "init"), 1, first["id"], "bawn key init --new")
    assert json.loads(key(p, "show", "--json").stdout) == first
    second = json.loads(expect(key(p, "init", "--new", "--json"), 0).stdout)
    assert second["id"] != first["id"] and second["former"] == first["id"]
    assert (keys(p) / "former" / f"{first['id']}.pub").read_text() == first["pem"]
    assert [(event["type"], event["key"], event["former"]) for event in log(p)] == [
        ("key_made", first["id"], None), ("key_made", second["id"], first["id"])]


@case
def without_one_the_way_to_one_is_told(p):
    refused(key(p, "show"), 1, "cannot show a signing key: there is none in", "hint: bawn key init creates one")
    assert not (p.top / "state").exists()
    (p.top / "state/bawn").mkdir(parents=True)
    for path in (p.top / "state", p.top / "state/bawn"):
        os.chown(path, p.uid, p.uid)
    refused(key(p, "show"), 1, "there is none in")
    done = p.run("key", "show", env={"HOME": "", "XDG_STATE_HOME": ""})
    if p.uid:
        refused(done, 125, "neither HOME nor XDG_STATE_HOME is set")


@case
def one_that_others_may_have_read_is_not_used(p):
    expect(key(p, "init"), 0)
    for mode in (0o640, 0o604, 0o620):
        (keys(p) / "signing.pem").chmod(mode)
        for verb in ("show", "init"):
            refused(key(p, verb), 125, f"signing.pem has mode 0{mode:o}", "bawn key init --new", str(keys(p)))
    expect(key(p, "init", "--new"), 0)
    expect(key(p, "show"), 0)


@case
def what_is_no_key_is_none(p):
    expect(key(p, "init"), 0)
    path = keys(p) / "signing.pem"
    public = (keys(p) / "signing.pub").read_text()
    for text, part in (("", "no Ed25519 private key"), ("x" * 10000, "no Ed25519 private key"),
                       (public, "begins as a public key")):
        path.write_text(text)
        refused(key(p, "show"), 125, part, str(keys(p)))
        refused(key(p, "init"), 125, part)
    path.unlink()
    path.symlink_to(keys(p) / "signing.pub")
    refused(key(p, "show"), 125, "signing.pem")
    path.unlink()
    path.mkdir()
    refused(key(p, "show"), 125, "is not a plain file of yours")
    refused(key(p, "init", "--new"), 125, "cannot make the signing key")


@case
def a_folder_that_is_not_the_operators_alone_is_not_used(p):
    expect(key(p, "init"), 0)
    keys(p).chmod(0o770)
    refused(key(p, "show"), 125, "'keys'", "is not yours")
    refused(key(p, "init", "--new"), 125, "'keys'", "is not yours")
    keys(p).chmod(0o700)
    keys(p).parent.chmod(0o777)
    refused(key(p, "show"), 125, "is not yours")


@case
def of_another_owner_it_is_not_used(p):
    if os.geteuid() != 0:
        return
    expect(key(p, "init"), 0)
    other = 0 if p.uid else run.USER
    os.chown(keys(p) / "signing.pem", other, other)
    refused(key(p, "show"), 125, "Permission denied" if p.uid else "is not a plain file of yours")
    os.chown(keys(p) / "signing.pem", p.uid, p.uid)
    os.chown(keys(p), other, other)
    refused(key(p, "show"), 125, "Permission denied" if p.uid else "is not yours")


@case
def a_state_that_cannot_be_written_is_told(p):
    refused(p.run("key", "init", env={"XDG_STATE_HOME": "/proc"}), 125, "cannot use a signing key", "/proc/bawn")
    p.write("state", "a file")
    refused(key(p, "init"), 125, "cannot use a signing key", "Not a directory")
    if p.uid:
        (p.top / "closed/bawn").mkdir(parents=True)
        os.chown(p.top / "closed/bawn", p.uid, p.uid)
        (p.top / "closed/bawn").chmod(0o500)
        refused(key(p, "init", state="closed"), 125, "cannot make the signing key", "Permission denied")


@case
def words_and_options_are_looked_at(p):
    for args, part in (([], "init or show"), (["make"], "cannot do 'make'"), (["show", "x"], "takes no 'x'"),
                       (["show", "--new"], "takes no --new"), (["init", "--pem"], "takes no --pem"),
                       (["show", "--pem", "--json"], "together with --pem")):
        refused(key(p, *args), 2, part)
    assert not (p.top / "state").exists()


if __name__ == "__main__":
    run.main()
