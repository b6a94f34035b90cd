#!/usr/bin/env python3
"""The signing key is in no cage: not by default, and not by any bind, whatever it is called by.

    keys.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

Each way in is tried twice: with the folder as bawn's state, and with bawn's state elsewhere. The second time it is a
folder as any other, and the key in it can be read: so the way leads there, and it is the state that closes it.
"""

import base64
import json
import os
import sys

sys.dont_write_bytecode = True
from place import FILES, Skip, case, descendants, expect, in_mount_namespace, main  # noqa: E402

SENTENCE = "bawn's own state in "


def make_key(p):
    """A key, and its secret line."""
    expect(p.run("key", "init"), 0)
    return (p.state / "bawn/keys/signing.pem").read_text().splitlines()[1]


def spec(p, source, text):
    """The operator's word, and their acknowledgement of whatever can be acknowledged."""
    return p.spec(f"{text}\npreflight_allow: ['{source}', '{os.path.realpath(source)}', '~', '/']\n")


def elsewhere(p):
    """Another folder for the state, in which nothing is; below no folder of the case's."""
    other = FILES / f"elsewhere-{p.uid}"
    other.mkdir(exist_ok=True)
    os.chown(other, p.uid, p.uid)
    return {"XDG_STATE_HOME": str(other)}


def refused(done):
    expect(done, 125, SENTENCE, "where the signing key is")
    assert done.stdout == "", done.stdout


def is_closed(p, secret, options, below, project=None):
    """Refused as long as it is the state; open when it is not."""
    look = ["--", "sh", "-c", f"cat '{below}'"]
    refused(p.run("run", *options, *look, cwd=project))
    done = p.run("run", *options, *look, cwd=project, env=elsewhere(p))
    expect(done, 0)
    assert secret in done.stdout, f"the way leads nowhere: {done.stdout!r}"


@case
def by_default_it_is_nowhere(p):
    """A file of the project is found by the same search, and a folder of the same home is not."""
    secret = make_key(p)
    p.write("project/found.pem", "x")
    p.write("other/found.pem", "x")
    done = p.sh("find / -xdev \\( -name signing.pem -o -name found.pem \\) 2>/dev/null; find . -name found.pem; "
                f"cat {p.state}/bawn/keys/signing.pem; ls {p.state} {p.home}/other")
    assert "./found.pem" in done.stdout and "signing.pem" not in done.stdout and secret not in done.stdout, done.stdout
    assert done.stderr.count("No such file") == 3, done.stderr


@case
def binds_of_it_are_refused(p):
    secret = make_key(p)
    for source, below in ((p.state / "bawn/keys/signing.pem", ""), (p.state / "bawn/keys", "/signing.pem"),
                          (p.state / "bawn", "/keys/signing.pem")):
        for mode in ("ro", "rw"):
            is_closed(p, secret, spec(p, source, f"binds: ['{source}:/data/k:{mode}']"), f"/data/k{below}")


@case
def binds_of_what_holds_it_are_refused(p):
    secret = make_key(p)
    for source, below in ((p.state, "/bawn"), (p.top, "/state/bawn")):
        is_closed(p, secret, spec(p, source, f"binds: ['{source}:/data/k']"), f"/data/k{below}/keys/signing.pem")


@case
def links_to_it_are_refused(p):
    secret = make_key(p)
    for number, (target, below) in enumerate(((p.state / "bawn/keys", "/signing.pem"), (p.top, "/state/bawn/keys/signing.pem"),
                                              (p.state / "bawn/keys/signing.pem", ""))):
        link = p.home / f"link-{number}"
        link.symlink_to(target)
        is_closed(p, secret, spec(p, link, f"binds: ['{link}:/data/k']"), f"/data/k{below}")


@case
def a_state_behind_a_link_is_known(p):
    """XDG_STATE_HOME may be a link itself."""
    secret = make_key(p)
    alias = p.home / "alias"
    alias.symlink_to(p.state)
    for source, below in ((p.state / "bawn", "/keys"), (p.top, "/state/bawn/keys")):
        options = [*spec(p, source, f"binds: ['{source}:/data/k']"), "--", "cat", f"/data/k{below}/signing.pem"]
        refused(p.run("run", *options, env={"XDG_STATE_HOME": str(alias)}))
        assert secret in expect(p.run("run", *options, env=elsewhere(p)), 0).stdout


@case
def it_is_no_project_and_no_image(p):
    secret = make_key(p)
    is_closed(p, secret, spec(p, p.state, "name: x"), "bawn/keys/signing.pem", project=p.state)
    is_closed(p, secret, spec(p, p.state, "name: x"), "signing.pem", project=p.state / "bawn/keys")
    options = spec(p, p.state, f"root: {{image: 'dir:{p.state}'}}")
    refused(p.run("run", *options, "--", "/bin/true"))


@case
def a_project_that_holds_it_is_refused(p):
    """As with a state below the current directory, by mistake."""
    expect(p.run("key", "init", env={"XDG_STATE_HOME": str(p.project / "state")}), 0)
    inside = {"XDG_STATE_HOME": str(p.project / "state")}
    secret = (p.project / "state/bawn/keys/signing.pem").read_text().splitlines()[1]
    for mode in ("captured", "writable", "read_only"):
        options = p.spec(f"project: {{mode: {mode}}}")
        refused(p.run("run", *options, "--", "true", env=inside))
        done = expect(p.run("run", *options, "--", "cat", "state/bawn/keys/signing.pem"), 0)
        assert secret in done.stdout


@case
def it_is_refused_before_there_is_one(p):
    """What would show the state that the first run makes."""
    first = p.top / "new"
    p.make(first)
    options = spec(p, first, f"binds: ['{first}:/data/k']")
    refused(p.run("run", *options, "--", "true", env={"XDG_STATE_HOME": str(first / "deep/state")}))
    expect(p.run("run", *options, "--", "true"), 0)


@case
def check_and_plan_say_so_too(p):
    make_key(p)
    options = spec(p, p.state, f"binds: ['{p.state}:/data/k']")
    for verb in ("check", "plan"):
        done = expect(p.run(verb, *options), 1, "binds: ", SENTENCE, "XDG_STATE_HOME can move the state")
        assert "acknowledge" not in done.stderr, done.stderr
    said = json.loads(expect(p.run("check", "--json", *options), 1).stdout)
    assert SENTENCE in json.dumps(said)


@case
def mounts_of_it_are_refused(p):
    """By another path, and below what is bound; that may be refused for being in two pieces as well."""
    if os.geteuid() != 0:
        raise Skip("only root can mount")
    secret = make_key(p)
    for number, (what, below) in enumerate(((p.state / "bawn/keys", "/signing.pem"), (p.state, "/bawn/keys/signing.pem"),
                                            (p.top, "/state/bawn/keys/signing.pem"))):
        outer = p.make(p.top / f"outer-{number}")
        inner = p.make(outer / "in ner")
        mount = f"mount --bind '{what}' '{inner}'"
        for source, more in ((inner, ""), (outer, "/in ner")):
            options = ["run", *spec(p, source, f"binds: ['{source}:/data/k']"), "--", "cat", f"/data/k{more}{below}"]
            refused(in_mount_namespace(p, mount, *options))
            done = in_mount_namespace(p, f"export XDG_STATE_HOME='{elsewhere(p)['XDG_STATE_HOME']}'\n{mount}", *options)
            assert secret in done.stdout or "in one piece" in done.stderr, done.stderr
            assert secret in done.stdout or source == outer


def memory(pid):
    """What a process could read of itself."""
    found = b""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            if " rw" in line and "[v" not in line:
                mem.seek(start)
                found += mem.read(end - start)
    return found


@case
def while_the_command_runs_no_process_has_it_in_memory(p):
    """What the keeper does have in memory is found by the same search: where the project is."""
    if os.geteuid() != 0:
        raise Skip("only root reads the memory of others")
    secret = make_key(p)
    seed = base64.b64decode(secret)[16:]
    process = p.start("run", "--", "sh", "-c", "echo begun; read line; echo line")
    assert process.stdout.readline() == b"begun\n"
    try:
        ours = descendants()
        seen = {pid: memory(pid) for pid in ours}
    finally:
        process.stdin.write(b"x\n")
        process.communicate(timeout=20)
    assert len(seen) >= 3, f"only {seen.keys()} were there"
    assert any(str(p.project).encode() in content for content in seen.values())
    for pid, content in seen.items():
        for part in (seed, seed[:16], seed[16:], secret.encode(), secret[24:].encode()):
            assert part not in content, f"process {pid} has the key"


@case
def what_is_beside_it_can_be_shown(p):
    make_key(p)
    p.write(p.top / "beside/file", "shown")
    done = p.run("run", *p.spec(f"binds: ['{p.top}/beside:/data/k']"), "--", "cat", "/data/k/file")
    assert expect(done, 0).stdout == "shown"


if __name__ == "__main__":
    main()
