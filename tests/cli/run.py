#!/usr/bin/env python3
"""The command line as a person uses it: on this machine, as root where we are, and as a user.

    run.py BAWN        prints TAP
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = pathlib.Path(tempfile.mkdtemp(prefix="bawn-cli-"))  # what a user may read, wherever ROOT is
BAWN = str(FILES / "bawn")
CASES = []
USER = 12345  # an id that owns nothing here


def case(function):
    CASES.append(function)
    return function


class Place:
    """A home and a project of a person's own, gone afterwards."""

    def __init__(self, uid):
        self.uid = uid
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-cli-"))
        self.home = self.top / "home"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        for path in (self.top, self.home, self.project):
            os.chown(path, uid, uid)

    def write(self, path, text, mode=0o644):
        path = self.top / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        os.chown(path, self.uid, self.uid)
        return path

    def policy(self, text, mode=0o644):
        return self.write("home/.config/bawn/policy.yaml", text, mode)

    def spec(self, text):
        return self.write("home/project/bawn.yaml", text)

    def environ(self):
        # Root's state is the machine's, unless it is told another.
        state = {} if self.uid else {"XDG_STATE_HOME": str(self.home / ".local/state")}
        return {"HOME": str(self.home), "PATH": os.environ["PATH"], **state}

    def run(self, *args, env=None, cwd=None, stdin="", here=False):
        """Plans are for a described host, so that they are the same everywhere, unless `here`."""
        command = [BAWN, *map(str, args)]
        if args and args[0] == "plan" and not here:
            command[2:2] = ["--host", str(FILES / ("user.json" if self.uid else "root.json"))]
        command = [*accounts.login(self.uid), *command]
        return subprocess.run(command, cwd=cwd or self.project, env={**self.environ(), **(env or {})}, input=stdin, timeout=60,
                              capture_output=True, text=True, check=False)


def expect(done, status, *parts):
    said = done.stdout + done.stderr
    assert done.returncode == status, f"exit {done.returncode}, not {status}:\n{said}"
    for part in parts:
        assert part in said, f"{part!r} is not in:\n{said}"
    return done


OPENS = "version: 1\nnetwork: {mode: allowlist, allow: ['example.org:443']}\n"


@case
def plan_digest_is_the_sha256_of_what_json_prints(p):
    printed = expect(p.run("plan", "--json", "--", "true"), 0).stdout
    digest = expect(p.run("plan", "--digest", "--", "true"), 0).stdout.strip()
    assert hashlib.sha256(printed.encode()).hexdigest() == digest
    assert digest in expect(p.run("plan", "--", "true"), 0).stdout
    assert json.loads(printed)["engine"] == "native"


@case
def preflight_digest_is_that_of_its_file(p):
    digest = hashlib.sha256((FILES / "preflight.sh").read_bytes()).hexdigest()
    expect(p.run("plan"), 0, digest)
    expect(p.run("version"), 0, digest)


@case
def settings_of_a_service_do_not_change_a_cage(p):
    env = {"MODE": "logical", "NETWORK": "host", "CPU_LIMIT": "nonsense", "MEMORY_LIMIT_MB": "1", "NETWROK": "x"}
    env = {f"BAWN_SANDBOX_{name}": value for name, value in env.items()}
    wanted = expect(p.run("plan", "--digest", "--", "true"), 0).stdout
    assert expect(p.run("plan", "--digest", "--", "true", env=env), 0).stdout == wanted


def preflight(home, *before):
    """The exit status of the script with this home, started through the commands before it."""
    env = {"HOME": home, "PATH": os.environ["PATH"]}
    return subprocess.run([*before, "sh", str(FILES / "preflight.sh")], env=env, check=False).returncode


@case
def preflight_accepts_and_refuses(p):
    as_user = accounts.login(USER)
    assert preflight("/home/agent", *as_user) == 0
    assert preflight("/root", *as_user) == 12
    assert preflight("/home/agent", *as_user, "unshare", "-Ur") == 0, "root inside, a user outside"
    if os.geteuid() == 0:
        assert preflight("/home/agent") == 11, "root outside is refused"


@case
def same_spec_same_plan_for_every_operator(p):
    spec = "version: 1\nbinds: ['~/lib:/home/agent/lib']\nenv: {pass: [TOKEN]}\n"
    p.spec(spec)
    other = Place(p.uid + 1 if p.uid and os.geteuid() == 0 else p.uid)
    other.spec(spec)
    try:
        args = ("plan", "--trust", "--json")
        mine = expect(p.run(*args, env={"TOKEN": "a"}), 0).stdout
        theirs = expect(other.run(*args, env={"TOKEN": "b"}), 0).stdout
        assert mine == theirs
        assert str(p.home) not in mine
    finally:
        shutil.rmtree(other.top)


@case
def values_of_passed_variables_are_in_no_plan(p):
    for args in (("plan",), ("plan", "--json")):
        done = expect(p.run(*args, "-e", "TOKEN", env={"TOKEN": "hunter2"}), 0, "TOKEN")
        assert "hunter2" not in done.stdout + done.stderr


@case
def project_file_cannot_loosen(p):
    p.spec(OPENS)
    said = expect(p.run("check"), 1, "bawn.yaml:2:17: network.mode: 'allowlist'", "bawn.yaml:2:37: network.allow: ").stderr
    assert said.count("error: ") == said.count("--trust") == said.count("-f") == 1, said
    expect(p.run("check", "-f", "bawn.yaml"), 1, "a project's own file")
    expect(p.run("check", "-f", p.project / "bawn.yaml"), 1, "a project's own file")
    expect(p.run("plan"), 1, "a project's own file")


@case
def operators_word_can_loosen(p):
    p.spec(OPENS)
    expect(p.run("check", "--trust"), 0, "0 errors")
    expect(p.run("plan", "--allow", "example.org:443", "-f", "/dev/null"), 1, "the file is empty")
    p.policy("version: 1\nproject_may: {network: {mode: allowlist, allow: ['*.org:443']}}\n")
    expect(p.run("check"), 1, "whole top-level domain")
    p.policy("version: 1\nproject_may: {network: {mode: allowlist, allow: ['example.org:443']}}\n")
    expect(p.run("check"), 0, "0 errors")
    p.policy(f"version: 1\ntrusted_projects: ['{p.home}']\n")
    expect(p.run("check"), 0, "0 errors")
    p.policy("version: 1\ntrusted_projects: ['~/project']\n")
    expect(p.run("check"), 0, "0 errors")
    p.policy("version: 1\ntrusted_projects: ['~/proj']\n")
    expect(p.run("check"), 1, "a project's own file")


@case
def a_file_that_the_operator_names_is_the_operators_if_it_is_outside_of_the_project(p):
    expect(p.run("plan", "-f", p.write("home/.config/bawn/open.yaml", OPENS)), 0, "example.org:443")
    expect(p.run("plan", "-f", "-", stdin=OPENS), 0, "example.org:443")
    beside = p.write("home/specs/open.yaml", OPENS)
    expect(p.run("plan", "-f", beside), 0, "example.org:443")
    expect(p.run("plan", "-f", "../specs/open.yaml"), 0, "example.org:443")
    # What others can write, or somebody else has written, is not.
    for mode in (0o666, 0o664):
        beside.chmod(mode)
        expect(p.run("plan", "-f", beside), 1, "a project's own file")
        expect(p.run("plan", "-f", beside, "--trust"), 0)
    beside.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(beside, USER + 1, USER + 1)
        expect(p.run("plan", "-f", beside), 1, "a project's own file")
        os.chown(beside, 0, 0)
        expect(p.run("plan", "-f", beside), 0)
        os.chown(beside, p.uid, p.uid)
    # In the project it is the project's, whatever it is called and wherever one stands.
    p.spec(OPENS)
    sub = p.project / "sub"
    sub.mkdir()
    expect(p.run("plan", "-f", "bawn.yaml"), 1, "a project's own file")
    expect(p.run("plan", "-f", "../project/bawn.yaml"), 1, "a project's own file")
    expect(p.run("plan", "--project", p.project, "-f", p.project / "bawn.yaml", cwd=p.home / "specs"), 1,
           "a project's own file")
    own = p.write("home/project/own.yaml", OPENS + f"project: {{path: '{p.project}'}}\n")
    expect(p.run("plan", "-f", own, cwd=p.home / "specs"), 1, "a project's own file")
    away = p.write("home/project/away.yaml", OPENS + "project: {path: ~/specs}\n")
    expect(p.run("plan", "-f", away), 1, "a project's own file")
    (p.home / "link.yaml").symlink_to(p.project / "bawn.yaml")
    expect(p.run("plan", "-f", p.home / "link.yaml"), 1, "a project's own file")
    # A link in the project leads to nothing that the operator has named.
    (p.project / "d").symlink_to(p.home / "specs")
    expect(p.run("plan", "-f", "d/open.yaml"), 1, "a project's own file")
    # All of a repository is the project's.
    expect(p.run("plan", "-f", "../bawn.yaml", cwd=sub), 0)
    (p.project / ".git").mkdir()
    expect(p.run("plan", "-f", "../bawn.yaml", cwd=sub), 1, "a project's own file")


@case
def a_file_that_is_not_read_is_noticed(p):
    for name in ("bawn.yml", ".bawn.yaml"):
        path = p.write(f"home/project/{name}", "version: 1\n")
        expect(p.run("check"), 0, f"{name}: warning: this file is not read", "rename it to bawn.yaml")
        p.spec("version: 1\n")
        assert "not read" not in expect(p.run("check"), 0).stderr
        (p.project / "bawn.yaml").unlink()
        path.unlink()


@case
def a_file_that_is_too_large_is_refused_like_any_other(p):
    p.spec("version: 1\n#" + "x" * (256 << 10) + "\n")
    expect(p.run("check"), 1, "bawn.yaml:1:1: error: the file is larger than 256 kB")
    assert json.loads(expect(p.run("check", "--json"), 1).stdout)["errors"] == 1
    expect(p.run("check", "--explain", "limits.memory"), 1)


@case
def a_file_cannot_trust_itself(p):
    mine = p.home / "mine"
    mine.mkdir()
    p.policy("version: 1\ntrusted_projects: [~/mine]\n")
    p.spec(OPENS + "project: {path: ~/mine}\n")
    expect(p.run("check"), 1, "a project's own file")
    (p.project / "link").symlink_to(mine)
    p.spec(OPENS + "project: {path: link}\n")
    expect(p.run("check"), 1, "a project's own file")
    p.spec(OPENS)
    expect(p.run("check", "--project", mine), 1, "a project's own file")
    (mine / "bawn.yaml").write_text(OPENS, encoding="utf-8")
    expect(p.run("check", cwd=mine), 0, "0 errors")


@case
def links_of_a_project_do_not_lead_out_of_it(p):
    (p.home / ".ssh").mkdir()
    (p.project / "keys").symlink_to(p.home / ".ssh")
    (p.project / "root").symlink_to("/")
    (p.project / "..other").symlink_to(p.top)  # a name, and not a way up
    (p.project / "~").symlink_to(p.top)  # a name, and not the home
    (p.project / "own").mkdir()
    for text, part in (("project: {path: keys}", "leads out of the project"),
                       ("root: {image: 'dir:root'}", "a project's own file"),
                       ("binds: ['keys:/data/k']", "leads out of the project"),
                       ("binds: ['..other:/data/k']", "leads out of the project"),
                       ("binds: ['./~:/data/k']", "leads out of the project"),
                       ("binds: ['own:/data/k:rw']", "a project's own file")):
        p.spec(f"version: 1\n{text}\n")
        expect(p.run("check"), 1, part)
        expect(p.run("plan"), 1, part)
    for text in ("project: {path: own}", "binds: ['own:/data/k']"):
        p.spec(f"version: 1\n{text}\n")
        expect(p.run("check"), 0)
    p.spec("version: 1\nroot: {image: 'dir:root'}\n")
    expect(p.run("plan", "--trust"), 1, "leads out of the project")


@case
def a_bind_does_not_go_around_the_lists(p):
    for name in (".git", "src", "priv"):
        (p.project / name).mkdir()
    p.policy("version: 1\ndefaults: {project: {mode: writable, write_allowlist: [$PROJECT/src/**], "
             "read_allowlist: [$PROJECT/src/**]}}\n")
    for bind, status in ((".git:/data/g:rw", 1), ("priv:/data/p", 1), ("src:/data/s:rw", 1), ("src:/data/s", 0)):
        p.spec(f"version: 1\nbinds: ['{bind}']\n")
        expect(p.run("check"), status)
    expect(p.run("plan", "--write", "-v", "./.git:/data/g:rw"), 1, "go around what project.protect protects")
    expect(p.run("plan", "--write", "-v", "./src:/data/g:rw"), 0)


@case
def credentials_are_known_by_any_name(p):
    (p.home / ".ssh").mkdir()
    (p.top / "alias").symlink_to(p.home / ".ssh")
    away = {"XDG_STATE_HOME": "/nowhere"}  # bawn's own state is another reason, and nobody acknowledges that
    for source in ("~/.ssh", p.home / ".ssh", p.top / "alias", "../.ssh", p.top):
        expect(p.run("plan", "-v", f"{source}:/data/k", env=away), 1, "preflight_allow")
    spec = "version: 1\nbinds: ['~/.ssh:/data/k']\npreflight_allow: ['~/.ssh']\n"
    expect(p.run("plan", "--trust", "-f", p.write("s.yaml", spec)), 0)
    expect(p.run("plan", "-v", "~/.ssh:/data/k", "--preflight-allow", "~/.ssh"), 0)


@case
def a_home_is_no_project(p):
    expect(p.run("plan", cwd=p.home), 1, "would show your home with its credentials")
    expect(p.run("plan", cwd=p.top), 1, "would show your home")
    expect(p.run("plan", "--project", "~"), 1, "project.path")
    spec = p.write("specs/home.yaml", "version: 1\npreflight_allow: ['~']\n")
    expect(p.run("plan", "--trust", "-f", spec, cwd=p.home, env={"XDG_STATE_HOME": "/nowhere"}), 0,
           "because of  preflight_allow [~]")


@case
def nobody_can_acknowledge_the_state(p):
    for source in ("~", "~/.local", "~/.local/state/bawn", "~/.local/state/bawn/keys"):
        (p.home / ".local/state/bawn/keys").mkdir(parents=True, exist_ok=True)
        spec = p.write("s.yaml", f"version: 1\nbinds: ['{source}:/data/k']\npreflight_allow: ['{source}']\n")
        done = p.run("plan", "--trust", "-f", spec, env={"XDG_STATE_HOME": str(p.home / ".local/state")})
        expect(done, 1, "bawn's own state in ", "XDG_STATE_HOME can move the state")
        expect(p.run("plan", "--trust", "-f", spec, env={"XDG_STATE_HOME": "/nowhere"}), 0)


@case
def a_policy_names_its_line(p):
    p.policy("version: 1\ndefaults:\n  limits: {memory: 2G}\n")
    p.spec("version: 1\nlimits: {memory: 3G}\n")
    expect(p.run("check"), 1, "limits.memory: '3G' is more than", "policy.yaml:3:20")
    expect(p.run("check", "--explain", "limits.memory"), 1, "is more than", "project may 2G")
    p.spec("version: 1\nlimits: {memory: 1G}\n")
    expect(p.run("check", "--explain", "limits.memory"), 0, "value       1G", "the spec file, bawn.yaml:2:18",
           "overrides   2G", "the user's policy")
    said = json.loads(expect(p.run("check", "--explain", "limits.memory", "--json"), 0).stdout)
    assert [row["value"] for row in said["says"]] == ["1G", "2G", "8G", "2G"], said


@case
def a_policy_others_can_write_is_refused(p):
    path = p.policy("version: 1\n", mode=0o666)
    expect(p.run("plan"), 125, "others can write to it", f"hint: chmod go-w '{path}'")
    path.chmod(0o600)
    expect(p.run("plan"), 0)
    path.parent.chmod(0o777)
    expect(p.run("plan"), 125, "others can write to the folder")
    path.parent.chmod(0o755)
    if p.uid and os.geteuid() == 0:
        os.chown(path, p.uid + 1, p.uid + 1)
        path.chmod(0o644)
        expect(p.run("plan"), 125, "belongs to another user")
        os.chown(path, 0, 0)
        path.chmod(0o600)
        expect(p.run("plan"), 125, "cannot read policy", "Permission denied")


@case
def a_policy_that_is_there_is_never_skipped(p):
    path = p.policy("version: 1\n")
    path.unlink()
    path.symlink_to("/nonexistent/policy.yaml")
    expect(p.run("plan"), 125, "cannot read policy")
    path.unlink()
    os.mkfifo(path)
    os.chown(path, p.uid, p.uid)
    path.chmod(0o600)
    expect(p.run("plan"), 125, "not a regular file")
    path.unlink()
    p.policy("version: 2\n")
    expect(p.run("check"), 1, "version 1, not 2")
    long = str(p.home) + "/." * ((4090 - len(str(p.home))) // 2)
    expect(p.run("check", env={"HOME": long}), 125, "longer than")


@case
def closed_descriptors_are_not_taken_for_files(p):
    p.spec("version: 1\nnmae: x\n")
    for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
        done = subprocess.run(["sh", "-c", f"'{BAWN}' check {closed}"], cwd=p.project, check=False, timeout=60,
                              capture_output=True, env={"HOME": str(p.home)})
        assert done.returncode == 1, (closed, done)
        assert (p.project / "bawn.yaml").read_text(encoding="utf-8") == "version: 1\nnmae: x\n"


@case
def a_hostile_project_file_cannot_hang_or_mislead(p):
    (p.project / "bawn.yaml").symlink_to("nowhere")
    expect(p.run("check"), 125, "not a regular file")
    (p.project / "bawn.yaml").unlink()
    os.mkfifo(p.project / "bawn.yaml")
    os.chown(p.project / "bawn.yaml", p.uid, p.uid)
    expect(p.run("check"), 125, "not a regular file")
    (p.project / "bawn.yaml").unlink()
    (p.project / "bawn.yaml").mkdir()
    expect(p.run("check"), 125)
    (p.project / "bawn.yaml").rmdir()
    p.spec("version: 1\n\"\\x1b[31mname\": x\n")
    done = expect(p.run("check"), 1, "\\x1b[31mname")
    assert "\x1b" not in done.stderr


@case
def options_override_and_add(p):
    p.spec("version: 1\nenv: {set: {A: one, B: two}}\nlimits: {time: 5m}\n")
    done = expect(p.run("plan", "-e", "A=three", "--time", "1h30m", "-v", "/srv:/data", "--name", "x"), 0, "A=three",
                  "B=two", "1h30m", "/data", "x: hardened")
    assert "A=one" not in done.stdout
    expect(p.run("plan", "--network", "host"), 0, "custom", "because of  network.mode host")
    expect(p.run("plan", "--read-only"), 0, "ro  project")
    expect(p.run("plan", "--write"), 0, "rw  project", "protect")


@case
def wrong_use_is_told(p):
    expect(p.run(), 2, "say what to do")
    expect(p.run("paln"), 2, "did you mean plan?")
    expect(p.run("plan", "--jsno"), 2, "did you mean --json?")
    expect(p.run("plan", "--memory"), 2, "its value is missing", "hint: --memory SIZE")
    expect(p.run("plan", "--memory", "2X"), 1, "--memory: error: limits.memory", "unknown unit 'X'")
    expect(p.run("plan", "--json=1"), 2, "it takes no value")
    expect(p.run("plan", "-f", "missing.yaml"), 125, "cannot read spec 'missing.yaml': No such file")
    expect(p.run("plan", "--project", "missing"), 125, "cannot use the project 'missing'")
    expect(p.run("doctor", "x"), 2, "takes no 'x'")
    expect(p.run("check", "other.yaml"), 2, "bawn check -f other.yaml")
    expect(p.run("check", "--explain", "limits.memroy"), 2, "did you mean limits.memory?")
    expect(p.run("plan", "--color", "blue"), 2, "auto, always or never")
    expect(p.run("run", "--jsno"), 125, "did you mean --json?")
    gone = p.project / "gone"
    gone.mkdir()
    done = subprocess.run(["sh", "-c", f"cd '{gone}' && rmdir '{gone}' && exec '{BAWN}' plan"], check=False,
                          capture_output=True, text=True)
    expect(done, 125, "cannot use the current directory")


@case
def json_is_json_and_help_is_help(p):
    p.spec("version: 1\nnmae: x\n")
    said = json.loads(expect(p.run("check", "--json"), 1).stdout)
    assert said["ok"] is False and said["diagnostics"][0]["line"] == 2
    assert said["diagnostics"][0]["hint"] == "did you mean 'name'?"
    assert json.loads(expect(p.run("plan", "--json"), 1).stdout)["diagnostics"]
    doctor = json.loads(p.run("doctor", "--json").stdout)
    assert doctor["host"]["is_root"] is (p.uid == 0)
    schema = json.loads(expect(p.run("check", "--schema"), 0).stdout)
    assert schema["properties"]["limits"]["properties"]["memory"]["default"] == "8G"
    for command in ("plan", "check", "doctor", "version"):
        expect(p.run(command, "--help"), 0, "--json")
        assert command in p.run("--help").stdout
    expect(p.run("plan", "--color", "always", "-f", "/dev/null"), 1, "\x1b[1;31m")


# Whoever adds one sees at once whether it is a verb.
VERBS = set("""accept add allocate allow apply be begin cage check choose compare create delete discard do end exit explain
    export fsync judge keep lease leave let limit list merge mount name offer overwrite plan print publish read record remove
    repeat replace run search serve set show start stop tell throw trust use validate verify wait write""".split())


def help_lines(p, words):
    """What the help of a command says it does, and what each of its options and commands does."""
    lines = expect(p.run(*words, "--help"), 0).stdout.splitlines()
    yield next(line for line in lines[1:] if line)
    for line in lines:
        row = re.match(r" +(?:-\w, )?(?:--|bawn )\S.*?  +(\S.*)", line)
        if row:
            yield re.sub(r"^(?:with --[\w-]+|\w+): |^(?:also|always|never) ", "", row[1])


@case
def help_begins_with_a_verb(p):
    """Each command, and each of its options and commands: people read the first word."""
    pages = sorted({words for name in named_by_help(p) for words in ((name.split()[0],), tuple(name.split()))})
    assert ("session", "create") in pages and len(pages) > 30, pages
    odd = [(page, said) for page in pages for said in help_lines(p, page)
           if said.split()[0].rstrip(",") not in VERBS]
    assert not odd, "\n".join(f"{' '.join(page)}: {said}" for page, said in odd)
def named_by_help(p):
    """All commands that the help names, with their words: run, record list, session create…"""
    found = []
    for name in re.findall(r"^  bawn (\S+)", p.run("--help").stdout, re.M):
        said = p.run(name, "--help").stdout
        words = re.findall(rf"^  bawn {name} (\S+)", said, re.M)
        verbs = re.match(rf"bawn {name} ((?:[a-z]+\|)+[a-z]+)", said)
        if verbs and name != "hook":  # whose words are agents
            words = verbs[1].split("|")
        found += [f"{name} {word}" for word in words] or [name]
    return found


# The arguments with which each has a result. RUN is the newest.
RESULTS = {
    "version": "", "preflight": "", "doctor": "", "plan": "", "check": "", "diff": "RUN", "apply": "RUN", "discard": "RUN", "log": "RUN",
    "record list": "", "record show": "RUN", "prune": "", "verify": "RUN", "key show": "", "key init": "--new", "agent list": "",
    "agent show": "claude", "agent forget": "claude --yes", "overlay init": "o --size 1M", "overlay digest": "o",
    "overlay prune": "o", "overlay reset": "o --yes", "session create": "--name j", "session list": "",
    "session show": "j", "session diff": "j", "session apply": "j", "session discard": "j", "session stop": "j",
    "session sweep": "", "session rm": "j --yes", "tool read": "", "tool write": "", "tool edit": "", "tool glob": "",
    "tool grep": "",
}
CALLS = {"read": {"path": "f"}, "write": {"path": "g", "content": ""}, "glob": {"pattern": "*"}, "grep": {"pattern": "x"},
         "edit": {"path": "f", "old_string": "x", "new_string": "y"}}
NO_RESULT = {"run", "worker", "mcp", "hook", "session exec", "session wait"}
OTHERS = {"card": "supportedInterfaces"}  # an agent card: its version is the agent's
ARCHIVES = {"record export"}
VERSIONS = {"record show": 2}  # the record itself


@case
def every_command_prints_one_object_with_a_version_or_says_that_it_has_none(p):
    env = {"XDG_STATE_HOME": str(p.top / "state")}
    expect(p.run("run", "--", "sh", "-c", "echo new >changed", env=env), 0)
    ids = expect(p.run("record", "list", env=env), 0).stdout.split()[:1]
    p.write("home/project/f", "x\n")
    assert sorted(named_by_help(p)) == sorted([*RESULTS, *NO_RESULT, *OTHERS, *ARCHIVES])
    for command, words in [*RESULTS.items(), *((name, "") for name in OTHERS)]:
        assert "--json" in p.run(*command.split(), "--help").stdout, command
        stdin = json.dumps(CALLS.get(command.split()[-1], ""))
        words = words.replace("RUN", ids[0]).split()
        done = p.run(*command.split(), *words, "--json", env=env, stdin=stdin if command.startswith("tool ") else "")
        assert done.returncode == 0, (command, done)
        said = json.loads(done.stdout)
        version = VERSIONS.get(command, 1)
        assert isinstance(said, dict) and (OTHERS[command] in said if command in OTHERS else said["version"] == version), done
    for command in NO_RESULT:
        done = p.run(*command.split(), "--json", "claude", env=env)
        assert done.returncode in (2, 125) and f"{command} has no --json: " in done.stderr and not done.stdout, done
        said = expect(p.run(*command.split(), "--help"), 0, f"bawn {command} has no --json: ").stdout
        assert not re.search(r"^ +--json", said, re.M), said
    expect(p.run("record", "export", "--json", env=env), 2, "takes no --json")
    said = json.loads(p.run("check", "--explain", "name", "--json", env=env).stdout)
    assert said["version"] == 1 and said["key"] == "name", said


@case
def doctor_agrees_with_plan(p):
    printed = p.run("doctor", "--json").stdout
    doctor, replay = json.loads(printed), p.write("host.json", printed)
    here, there = p.run("plan", "--json", here=True), p.run("plan", "--json", "--host", replay, here=True)
    assert here.stdout == there.stdout, here.stdout + here.stderr + there.stdout + there.stderr
    assert here.returncode == there.returncode
    again, now = p.run("doctor", "--host", replay).stdout, p.run("doctor").stdout
    assert again == now, again + now
    for name, row in doctor["guarantees"].items():
        if not row["possible"]:
            assert row["remedy"], name
    limit = doctor["guarantees"]["limits.memory"]["possible"]
    done = p.run("plan", "--memory", "2G", here=True)
    possible = doctor["hardened"] and limit
    assert done.returncode == (0 if possible else 1)
    if doctor["hardened"] and not limit:
        expect(done, 1, "limits.memory", "→", "allow_degraded")
        expect(p.run("plan", "--memory", "2G", "--allow-degraded", "limits.memory", here=True), 0,
               "no  limits.memory")


@case
def full_example_is_planned(p):
    p.write("home/proj/lib/x", "")
    done = p.run("check", "-f", FILES / "full.yaml")
    assert "error" not in done.stderr.replace("does not exist", "") or "/srv/data" in done.stderr, done.stderr
    expect(p.run("plan", "--trust", "-f", FILES / "full.yaml"), 0, "stats-auditor: custom")


def main():
    hosts = ROOT / "tests/golden/hosts"
    for source in (sys.argv[1], ROOT / "data/preflight.sh", ROOT / "examples/full.yaml",
                   hosts / "user.json", hosts / "root.json"):
        shutil.copy(source, FILES)
    FILES.chmod(0o755)
    uids = [0, USER] if os.geteuid() == 0 else [os.geteuid()]
    failed, number = 0, 0
    print(f"1..{len(CASES) * len(uids)}")
    for uid in uids:
        for function in CASES:
            number += 1
            place = Place(uid)
            try:
                function(place)
                print(f"ok {number} - {function.__name__} as {'root' if uid == 0 else 'a user'}")
            except Exception as e:  # a failed case is told, and the rest still run
                failed += 1
                print(f"not ok {number} - {function.__name__} as {'root' if uid == 0 else 'a user'}")
                print("\n".join("# " + line for line in f"{type(e).__name__}: {e}".splitlines()))
            finally:
                shutil.rmtree(place.top)
    shutil.rmtree(FILES)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
