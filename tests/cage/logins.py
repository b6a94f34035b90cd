#!/usr/bin/env python3
"""Who may run bawn: every kind of account, entered as people enter theirs.

    logins.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import contextlib
import os
import pathlib
import pty
import signal
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402
import records  # noqa: E402
from place import BAWN, SLOW, Place, case, decode, descendants, expect, in_mount_namespace, main, of_root, of_users  # noqa: E402

COLLEAGUE = 45678  # the id of another member of a team
NOBODYS = 54321  # a user id that /etc/passwd does not have
RUNS = 30


class Login(Place):
    """A place of an account's, or of a user id that has none."""

    def __init__(self, enter, uid, gid):
        super().__init__(uid)
        self.enter, self.gid = enter, gid
        for path in (self.home, self.project, self.state):
            os.chown(path, uid, gid)

    def own(self, path):
        """What is new has the group of the account, or of a folder that gives its own."""
        while path != self.top and path.lstat().st_uid != self.uid:
            parent = path.parent.stat()
            os.chown(path, self.uid, parent.st_gid if parent.st_mode & stat.S_ISGID else self.gid, follow_symlinks=False)
            path = path.parent

    def words(self, args, program=BAWN, groups=()):
        return self.enter(program, *map(str, args))


@contextlib.contextmanager
def login_of(*groups, **more):
    with accounts.Account("/nonexistent", *groups, **more) as account:
        p = Login(account.words, account.uid, account.gid)
        try:
            # su sets the home that /etc/passwd names.
            accounts.change("usermod", "-d", str(p.home), account.name)
            yield p
        finally:
            p.done()


@contextlib.contextmanager
def nobodys_login(gid, *groups):
    before = ["setpriv", "--reuid", str(NOBODYS), "--regid", str(gid)]
    before += ["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"]
    p = Login(lambda *words: [*before, *map(str, words)], NOBODYS, gid)
    try:
        yield p
    finally:
        p.done()


def row_of(text):
    """What doctor or plan says about groups."""
    return next(words[0] for words in map(str.split, text.splitlines())
                if words[:1] in (["yes"], ["no"]) and words[1] == "groups")


def check_login(p, has_none, *options):
    """A command runs; plan, doctor and the record say the same about groups."""
    p.write("project/file", "of the host\n")
    done = expect(p.sh("cat file && echo more >>file && grep ^Groups: /proc/self/status", *options), 0, "of the host")
    row = p.record()["guarantees"]["groups"]
    assert row["holds"] is has_none, (row, done.stdout)
    wanted = "yes" if has_none else "no"
    assert row_of(expect(p.run("plan", *options), 0).stdout) == wanted, "plan"
    assert row_of(p.run("doctor").stdout) == wanted, "doctor"
    return row


def check_worker(p):
    """Queued runs of a worker that keeps cages ready: all of them run, most in a cage that waited."""
    session = expect(p.run("session", "create"), 0).stdout.strip()
    runs = [expect(p.run("session", "exec", session, "--queue", "--", "true"), 0).stdout.strip() for _ in range(RUNS)]
    words = p.words(["worker", "--once", "--slots", "1", "--sweep", "0s"])
    done = subprocess.run(words, cwd=p.project, env=p.environ(None), capture_output=True, check=False,
                          timeout=60 * SLOW, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, decode(done.stderr)
    seen = [records.read(p.state / "bawn/runs" / run) for run in runs]
    outcomes = [r["outcome"] for r in seen]
    assert outcomes == ["exited"] * RUNS, outcomes
    assert any(r["warm"] for r in seen), "no cage was kept ready"
    expect(p.run("session", "rm", session), 0)


@case
@of_root
def an_account_with_its_own_group_alone(_):
    with login_of() as p:
        assert check_login(p, True)["seen"] == "none"


@case
@of_root
def an_account_with_several_groups(_):
    with accounts.Group() as one, accounts.Group() as two, login_of(one, two) as p:
        assert check_login(p, False)["seen"] == "2 supplementary groups"


@case
@of_root
def an_account_without_sub_ids(_):
    with login_of(has_subids=False) as p:
        check_login(p, True)


@case
@of_root
def an_account_with_sub_ids_but_without_newuidmap(_):
    with login_of() as p:
        hide = 'for f in newuidmap newgidmap; do f=$(command -v $f) && mount --bind /dev/null "$f"; done'
        expect(in_mount_namespace(p, hide, "run", "--", "true"), 0)


@case
@of_users
def an_account_that_may_not_have_core_dumps(p):
    """Hardened machines say `* hard core 0`; the 1 that stops a host's handler of crashes is more than that."""
    if pathlib.Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").startswith("|"):
        return  # then it is refused: keeper_engine_test
    words = [*p.words([])[:-1], "prlimit", "--core=0:0", "--", str(BAWN), "run", "-q", "--", "sh", "-c",
             "ulimit -Hc; kill -SEGV $$"]
    done = subprocess.run(words, cwd=p.project, env=p.environ(None), capture_output=True, text=True, check=False,
                          timeout=20 * SLOW, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout) == (139, "0\n"), done


@case
@of_root
def a_project_of_another_group(_):
    with accounts.Group() as team, login_of(team) as p:
        os.chown(p.project, p.uid, team.gid)
        p.project.chmod(0o2770)
        check_login(p, False)
        assert p.project.stat().st_gid == team.gid and p.project.stat().st_mode & 0o7777 == 0o2770


@contextlib.contextmanager
def team_project():
    """A project that a team shares: folders give their group, members write to each other's files."""
    with accounts.Group() as team, login_of(team) as p:
        for name in ("mine", "sub/mine", "theirs", "their/file", "their/other", "secret"):
            p.write(f"project/{name}", name + "\n")
        for path in (p.project, *p.project.rglob("*")):
            owner = COLLEAGUE if path.name in ("theirs", "their", "file", "other", "secret") else p.uid
            os.chown(path, owner, team.gid)
            path.chmod(0o2775 if path.is_dir() else 0o600 if path.name == "secret" else 0o664)
        yield p, team


def owners(project):
    return {str(path.relative_to(project)): (st.st_uid, st.st_gid, st.st_mode & 0o7777)
            for path in project.rglob("*") for st in [path.stat()]}


@case
@of_root
def what_a_team_shares_is_not_copied(_):
    with team_project() as (p, team):
        for name in ("theirs", "their/file", "their/other", "their", "secret"):
            os.chown(p.project / name, p.uid, team.gid)
        script = "echo more >>mine && mv sub/mine sub/moved && mkdir -p new/er && echo x >new/er/x && rm -r their"
        done = expect(p.sh(script + "&& stat -c '%U %G %a' mine new . && cat mine"), 0)
        assert done.stdout == "agent agent 664\nagent agent 2755\nagent agent 2775\nmine\nmore\n", done.stdout
        assert "copied" not in done.stderr and p.record()["capture"] == "disk", done
        seen = p.record()["guarantees"]["ids"]
        assert seen["holds"] and f"user {p.uid} and group {team.gid} outside" in seen["seen"], seen
        expect(p.run("apply"), 0)
        assert owners(p.project) == {
            "mine": (p.uid, team.gid, 0o664), "theirs": (p.uid, team.gid, 0o664), "secret": (p.uid, team.gid, 0o600),
            "sub": (p.uid, team.gid, 0o2775), "sub/moved": (p.uid, team.gid, 0o664),
            "new": (p.uid, team.gid, 0o2755), "new/er": (p.uid, team.gid, 0o2755), "new/er/x": (p.uid, team.gid, 0o644),
        }, owners(p.project)


@case
@of_root
def of_what_a_team_shares_the_others_files_are_copied(_):
    with team_project() as (p, team):
        before = owners(p.project)
        script = "echo more >>mine; echo more >>theirs; rm their/file; mv their/other their/moved; >their/new; cat secret"
        done = expect(p.sh(script), 1, "files copied for this run: 3 of the project (1K)", "secret: Permission denied")
        assert p.record()["capture"] == "disk" and owners(p.project) == before
        (layer,) = p.state.glob("bawn/runs/*/layer")
        assert sorted(str(path.relative_to(layer)) for path in layer.rglob("*")) == [
            "upper", "upper/mine", "upper/their", "upper/their/file", "upper/their/moved", "upper/their/new",
            "upper/their/other", "upper/theirs"]
        names = p.run("diff", "--name-only").stdout.split()
        assert names == ["mine", "their/file", "their/moved", "their/new", "theirs"], names
        expect(p.run("apply"), 0, "it belonged to another user and is yours now")
        after = owners(p.project)
        assert after["theirs"] == (p.uid, team.gid, 0o664) and after["their"] == before["their"], after
        assert after["their/new"][:2] == (p.uid, team.gid) and after["secret"] == before["secret"], after
        # What was only read leaves nothing.
        expect(p.sh("cat mine theirs their/*"), 0)
        assert not list(p.state.glob("bawn/runs/*/layer"))


@case
@of_root
def the_work_of_a_killed_run_on_others_files_is_found(_):
    with team_project() as (p, _):
        child = p.start("run", "--", "sh", "-c", "echo more >>theirs; rm their/file; echo written; sleep 60")
        assert child.stdout.readline() == b"written\n"
        (layer,) = p.state.glob("bawn/runs/*/layer")
        assert (layer / "list").exists() and (layer / "upper/their/other").exists()
        expect(p.run("diff"), 1, "still going on")
        os.kill(min(pid for pid, name in descendants().items() if name.startswith("(bawn)")), signal.SIGKILL)
        child.communicate(timeout=20)
        done = expect(p.run("diff", "--name-only"), 0, "interrupted")
        assert done.stdout.split() == ["their/file", "theirs"], done.stdout
        assert not (layer / "list").exists() and not (layer / "upper/their/other").exists()
        expect(p.run("discard"), 0)


@case
@of_root
def a_state_where_no_program_gains_a_group(_):
    """The files are copied, and the message says what to do."""
    with team_project() as (p, team):
        mount = f"mount -t tmpfs -o nosuid,uid={p.uid},gid={team.gid} tmpfs {p.state}"
        done = in_mount_namespace(p, mount, "run", "--", "sh", "-c", "echo more >>mine; cat mine")
        expect(done, 0, "cannot give the cage the group", "XDG_STATE_HOME can name another place",
               "files copied for this run: 5 of the project")
        assert done.stdout == "mine\nmore\n", done


@case
@of_root
def root_as_su_enters_it(_):
    p = Login(lambda *words: ["su", "-c", 'exec "$@"', "--", "root", "sh", *map(str, words)], 0, 0)
    try:
        check_login(p, True)
    finally:
        p.done()


@case
@of_root
def a_user_id_without_an_account(_):
    with nobodys_login(NOBODYS) as p:
        check_login(p, True)
    with nobodys_login(NOBODYS, NOBODYS) as p:
        check_login(p, True)


@case
@of_root
def a_user_id_whose_group_is_roots_as_in_containers(_):
    """podman --user 1000: group 0 is kept, since a user can map no other, and that is on record."""
    for groups in ((), (0,)):
        with nobodys_login(0, *groups) as p:
            assert check_login(p, False)["seen"] == "the own group is root's"


@case
def any_umask(p):
    """The command's is 022 whatever the operator's; bawn can use what it makes itself."""
    p.write("project/file", "of the host\n")
    for mask in ("0", "002", "077", "0777"):
        words = p.words(["run", "--", "sh", "-c", "umask; echo more >>file"])
        done = subprocess.run(["sh", "-c", f'umask {mask} && exec "$@"', "sh", *words], cwd=p.project, check=False,
                              env=p.environ(None), capture_output=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, done.stdout) == (0, b"0022\n"), (mask, done)
        expect(p.run("discard"), 0)


@case
@of_users
def no_home_to_write_to(p):
    """The sentence names what to set, and with it the command runs."""
    empty = p.environ(None)
    for home in ("/nonexistent", "/proc", ""):
        env = {**empty, "HOME": home, "XDG_STATE_HOME": ""}
        expect(p.run("run", "--", "true", env=env), 125, "XDG_STATE_HOME")
        expect(p.run("run", "--", "true", env={**env, "XDG_STATE_HOME": str(p.state)}), 0)


def said_at_terminal(p, *args):
    """What a run of `true` says to a terminal."""
    ours, theirs = pty.openpty()
    done = p.run("run", *args, "--", "true", stderr=theirs)
    os.close(theirs)
    try:
        text = os.read(ours, 4096).decode()
    except OSError:  # nothing was written
        text = ""
    os.close(ours)
    assert done.returncode == 0, text
    return text


@case
@of_root
def what_is_not_given_is_said_once_until_it_is_accepted(_):
    with accounts.Group() as team, login_of(team) as p:
        lines = said_at_terminal(p).splitlines()
        assert len(lines) == 1 and lines[0].startswith("bawn: not given on this machine: groups"), lines
        assert "groups" in p.record()["degraded"] and "allow_degraded: [groups" in lines[0], lines
        assert lines[0].endswith("/.config/bawn/policy.yaml"), lines
        assert said_at_terminal(p, "-q") == ""
        # A required one that is missing would end the level; these were never required.
        p.write(".config/bawn/policy.yaml", "version: 1\ndefaults: { allow_degraded: [groups, limits.memory] }\n")
        assert said_at_terminal(p) == "" and p.record()["level"] == "hardened", p.record()
        assert "groups" in p.record()["degraded"]


@case
@of_root
def a_worker_of_an_account_with_its_own_group_alone(_):
    with login_of() as p:
        check_worker(p)


@case
@of_root
def a_worker_of_an_account_with_groups(_):
    with accounts.Group() as team, login_of(team) as p:
        check_worker(p)


if __name__ == "__main__":
    main()
