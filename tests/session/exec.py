#!/usr/bin/env python3
"""bawn session exec and stop, honest and rough, as a user and (all with --all) as root.

    exec.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import contextlib
import json
import os
import pathlib
import pty
import random
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "limits"))
from groups import Group, NoGroups  # noqa: E402
import sessions  # noqa: E402
from sessions import Session, cage, case, expect, finish, for_root, workspaces  # noqa: E402

MANY = 20
ROUNDS = 50
# Waits in a cage, for at most ten seconds.
AWAIT = "await() { n=0; until eval \"$1\"; do n=$((n+1)); [ $n -lt 1000 ] || exit 99; sleep 0.01; done; }; "


def say(process):
    return finish(process).stdout.split()


# --- one workspace ---

@for_root
@case
def what_one_command_writes_the_next_one_sees(place):
    place.write("project/old", "old")
    s = Session(place)
    s.says("echo 1 >new; echo 2 >~/kept; echo 3 >/tmp/also; rm old; mkdir -p d/e; ln -s new link; chmod 700 new")
    assert s.says("cat new link ~/kept /tmp/also; test ! -e old && test -d d/e && stat -c %a new").split() == [
        "1", "1", "2", "3", "700"]
    s.says("mv d f; echo more >>new; rm ~/kept /tmp/also")
    assert s.says("ls -A . ~ /tmp; cat new").split() == [".:", "f", "link", "new", "/home/agent:", "/tmp:", "1", "more"]
    assert os.listdir(place.project) == ["old"], "the project itself was written"
    assert s.says("echo $BAWN_SESSION_ID") == s.id


@for_root
@case
def commands_at_one_time_see_one_workspace(place):
    s = Session(place)
    one = s.start(AWAIT + "echo 1 >one; await 'test -e two'; mv two three; await 'test -e tree/500'; "
                  "ls tree | wc -l; rm -r tree; await 'test -e ~/said'; cat ~/said /tmp/said")
    two = s.start(AWAIT + "await 'test -e one'; rm one; echo 2 >two; await 'test -e three'; cat three; "
                  "mkdir .new; for i in $(seq 500); do echo $i >.new/$i; done; mv .new tree; "
                  "await 'test ! -e tree'; echo tmp >/tmp/said; echo home >~/.said; mv ~/.said ~/said")
    assert say(one) == ["500", "home", "tmp"]
    assert say(two) == ["2"]
    assert s.says("ls -A") == "three"


@case
def commands_do_not_see_each_others_processes(place):
    s = Session(place)
    one = s.start("wait", first="sleep 4242 & echo $! >pid")
    try:
        seen = s.says("for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done; kill -9 $(cat pid) || echo none")
        assert "4242" not in seen and seen.endswith("none"), seen
        assert one.poll() is None, "it was killed by the other"
        # And where the namespace is left out, it is seen.
        env = {"BAWN_TEST_BREAK": "namespace:pid,proc,look"}
        seen = s.sh("cat /proc/*/cmdline | tr '\\0' ' '", env=env, program=cage.BREAKABLE)
        assert "4242" in seen.stdout, seen
    finally:
        s.stop()
        finish(one)


# --- narrower, never wider ---

SPEC = """network: {{mode: allowlist, allow: ["a.example:443", "*.b.example:80"]}}
limits: {{memory: 300M, cpu: 0.5, pids: 60, time: 1h, output: 10M, files: 200, disk: 64M}}
env: {{pass: [GIVEN]}}
binds: [{shown}:/shown, {open}:/open:rw]
"""

WIDER = (
    ("--network host", "network.mode: 'host'"),
    ("--allow c.example:443", "network.allow: 'c.example:443"),
    ("--allow a.example:22", "network.allow: 'a.example:22"),
    ("--allow b.example:80", "network.allow: 'b.example:80"),
    ("--allow *.example:80", "network.allow"),
    ("--host-port 5432", "network.host_ports: '5432'"),
    ("-p 8080:80", "network.publish"),
    ("--memory 301M", "limits.memory: '301M'"),
    ("--cpus 0.6", "limits.cpu"),
    ("--pids-limit 61", "limits.pids: '61'"),
    ("--time 2h", "limits.time: '2h'"),
    ("--output 11M", "limits.output: '11M'"),
    ("--disk 65M", "limits.disk: '65M'"),
    ("-e OTHER", "env.pass: 'OTHER'"),
    ("-v {home}:/other", "binds"),
    ("-v {shown}:/shown:rw", "binds"),
    ("-v {home}:/shown", "binds"),
    ("-v {shown}/../open:/shown", "binds"),
    ("--write", "project.mode: 'writable'"),
    ("--read-only", "it would not see what the session wrote"),
    ("--relaxed", "relaxed: 'true'"),
    ("--fakeroot", "fakeroot: 'true'"),
    ("--allow-degraded net.none", "allow_degraded: 'net.none'"),
    ("--engine native", "cannot use --engine: it is fixed"),
    ("--engine logical", "cannot use --engine: it is fixed"),
    ("--project /", "cannot use --project: it is fixed"),
    ("--host {home}/host.json", "cannot use --host: it is fixed"),
    ("--agent claude", "cannot use --agent: it is fixed"),
    ("-f {home}/spec.yaml", "cannot use --file: it is fixed"),
    ("--trust", "cannot use --trust: it is fixed"),
    ("--syscalls {home}/filter", "syscalls"),
)

NARROWER = (
    ("--network none", "cat /proc/net/dev | grep -c : ", "1"),
    ("--allow a.example:443", "echo through", "through"),
    ("--allow x.b.example:80", "echo through", "through"),
    ("--memory 100M", "echo through", "through"),
    ("--pids-limit 30", "echo through", "through"),
    ("--time 1s", "timeout 9 sleep 8", None),
    ("--output 1K", "head -c 9999 /dev/zero", None),
    ("-v {open}:/open:ro", "touch /open/x || ls -d /shown || echo neither", "neither"),
    ("-v {shown}/part:/shown", "cat /shown/in", "part"),
    ("-e SET=2", "echo $SET$GIVEN", "21"),
    ("--syscalls strict", "echo through", "through"),
    ("-w /usr", "pwd", "/usr"),
)


@contextlib.contextmanager
def in_groups(place):
    """Where limits can be set: runs have a place of their own in the trees of cgroups, if there are any."""
    try:
        group = Group(place.uid)
    except NoGroups as e:
        raise cage.Skip(f"{e}") from None
    words = place.words
    place.words = lambda *args, **more: [*group.enter(), *words(*args, **more)]
    try:
        yield group
    finally:
        place.words = words
        group.remove()


@case
def an_exec_may_ask_for_less_and_never_for_more(place):
    folders = {"shown": place.make("shown"), "open": place.make("open"), "home": place.home}
    place.write("shown/part/in", "part")
    place.write("filter", "{}")
    place.write("host.json", "{}")
    env = {"GIVEN": "1", "OTHER": "1"}
    with in_groups(place) as group:
        s = Session(place, *place.spec(SPEC.format(**folders)), env=env)
        for words, said in WIDER:
            done = s.sh("echo ran", *words.format(**folders).split(), env=env)
            expect(done, 125, said)
            assert not done.stdout, (words, done.stdout)
        for words, script, wanted in NARROWER:
            done = s.sh(script, *words.format(**folders).split(), env=env)
            if wanted is None:
                assert done.returncode in (124, 137, 141, 125, 0) and "limits." in done.stderr, (words, done)
            else:
                assert done.stdout.strip() == wanted, (words, done)
        assert not list(folders["open"].iterdir())
        cage.wait_until(lambda: not group.runs(), 3, f"cgroups are left: {group.runs()}")


@case
def what_a_session_is_was_said_when_it_was_created(place):
    """Neither the project's file nor the copy beside the workspace is asked again."""
    s = Session(place, "--network", "none")
    place.write("project/bawn.yaml", "version: 1\nnetwork: {mode: host}\nenv: {set: {WIDE: 1}}\n")
    copy = s.workspace.parents[1] / "spec.json"
    place.write(copy, copy.read_text().replace('"none"', '"host"'))
    assert s.says("echo $WIDE; grep -c : /proc/net/dev; cat bawn.yaml | wc -l").split() == ["1", "3"]
    s.says("echo 'version: 1' >bawn.yaml; mkdir .bawn")
    assert s.says("grep -c : /proc/net/dev") == "1"
    # By the store alone; and what is no spec is refused.
    with contextlib.closing(sessions.sqlite3.connect(s.all.state / "store.db")) as store:
        store.execute("update bawn_sessions set spec = '{' where id = ?", (s.id,))
        store.commit()
    s.all.own()
    expect(s.sh("echo ran", env={"BAWN_STAY_SECONDS": "0"}), 125, f"cannot use the spec of session {s.id}")


# --- as bawn run ---

@case
def a_command_has_a_terminal_where_one_is_wanted(place):
    s = Session(place)
    assert s.says("tty; test -t 0 && test -t 1 && echo both", "-t").split() == ["/dev/pts/0", "both"]
    near, far = pty.openpty()
    os.fchown(far, place.uid, place.uid)
    process = place.start("session", "exec", s.id, "--", "sh", "-c", "tty; read line; echo got $line",
                          stdin=far, stdout=far, stderr=far)
    os.close(far)
    os.write(near, b"typed\n")
    said = b""
    with contextlib.suppress(OSError):
        while b"got typed" not in said:
            said += os.read(near, 4096)
    assert process.wait(20) == 0 and b"/dev/pts/0" in said, said
    os.close(near)
    assert s.says("tty; true").split()[0] == "not", "without one there is none"


@case
def how_a_command_ends_is_how_exec_ends(place):
    s = Session(place)
    for script, status in (("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("true", 0)):
        expect(s.sh(script), status)
    expect(s.exec("nowhere"), 127, "cannot run 'nowhere': there is no such command")
    expect(s.exec("/etc/passwd"), 126, "cannot execute '/etc/passwd'")
    expect(s.sh("sleep 9", "--time", "1s"), 124, "limits.time")
    expect(place.run("session", "exec"), 125, "no session or no command is named")
    expect(place.run("session", "exec", "--", "ls"), 125, "no session is named", "SESSION -- ls; bawn session list")
    expect(place.run("session", "exec", "nope", "--", "true"), 125, "cannot find session 'nope'")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # A shell that waits for another program takes SIGINT for that one's.
        process = s.start("exec sleep 99")
        process.send_signal(number)
        expect(finish(process), 128 + number)
    process = s.start("while :; do sleep 0.05; done", first="trap 'echo trapped; exit 3' USR1")
    process.send_signal(signal.SIGUSR1)
    expect(finish(process), 3, "trapped")


@case
def events_of_an_exec_come_on_its_descriptor(place):
    s = Session(place)
    read, write = os.pipe()
    expect(s.sh("exit 4", "--status-fd", str(write), pass_fds=(write,)), 4)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as lines:
        events = [json.loads(line) for line in lines]
    assert events and all(isinstance(event, dict) for event in events), events
    assert "4" in json.dumps(events[-1]), events


@for_root
@case
def each_command_has_a_record_of_its_own(place):
    s, other = Session(place), Session(place)
    for i in range(3):
        s.says(f"echo {i} >{i}")
    other.says("true")
    expect(s.sh("false", "--network", "host"), 125)
    found = s.records()
    assert [record["outcome"] for record in found] == ["exited"] * 3 and len(other.records()) == 1
    assert len({record["run"] for record in found}) == 3
    log = [json.loads(line) for line in (s.all.state / "log/events.jsonl").read_text().splitlines()]
    assert [event["session"] for event in log if event["type"] == "refused"] == [s.id], "of what is refused, an event"
    assert [event["session"] for event in log if event["type"] == "run_end"] == [s.id] * 3 + [other.id]
    for folder in sorted(s.all.state.glob("runs/*")):
        expect(place.run("verify", folder.name), 0)
    assert "layer" not in {path.name for path in s.all.state.glob("runs/*/*")}, "its writes are the session's"
    # It can be had again as a run of its own, and what is missing there is said.
    again = place.run("run", "--again", found[0]["run"])
    expect(again, 0, f"was in session {s.id}, and this one begins without what the session had written by then")
    assert place.record()["session"] is None


# --- kinds of projects ---

@case
def a_session_may_have_its_project_read_only_or_writable(place):
    place.write("project/old", "old")
    for option, wanted in (("--read-only", ["old"]), ("--write", ["new", "old"])):
        s = Session(place, option)
        s.sh("echo new >new")
        assert s.says("cat ~/n 2>/dev/null; echo kept >~/n; ls new old 2>/dev/null; true").split() == wanted
        assert s.says("cat ~/n; ls new old 2>/dev/null; true").split() == ["kept", *wanted]
        assert sorted(os.listdir(place.project)) == wanted
        process = s.start("sleep 99")
        expect(s.stop(), 0)
        expect(finish(process), 143)
    expect(s.sh("touch more", "--read-only"), 1)


@for_root
@case
def a_session_may_bind_into_its_project(place):
    """These cages cannot be made before their session is known."""
    shown = place.make("shown")
    place.write("shown/file", "theirs")
    s = Session(place, "-v", f"{shown}:/work/shown", "-v", f"{shown}:/home/agent/also:rw")
    for i in range(2):
        assert s.says(f"cat shown/file also 2>/dev/null; touch shown/x; echo {i} >>mine; echo {i} >~/also/{i}; "
                      "cat mine") == "theirs" + "0\n1"[:2 * i + 1]
    assert sorted(os.listdir(shown)) == ["0", "1", "file"]


@for_root
@case
def a_session_may_have_a_project_whose_git_is_elsewhere(place):
    """The folder of git is captured beside the project."""
    top = place.make("repository")
    git = ["-c", "user.name=n", "-c", "user.email=n@example.org"]
    for words in (["init", "-q"], [*git, "commit", "-q", "--allow-empty", "-m", "first"],
                  ["worktree", "add", "-q", place.project]):
        subprocess.run(place.words(words, program="git"), cwd=top, env=place.environ(None), check=True)
    before = cage.picture(top / ".git")
    s = Session(place, *place.spec("project: {git: auto}\n"))
    s.says(f"echo a >a; git add a; git {' '.join(git)} commit -qm second")
    one = s.start("sleep 99")
    assert s.says("git log --oneline | wc -l; git status --short | wc -l").split() == ["2", "0"]
    assert cage.picture(top / ".git") == before, "the repository itself was written"
    expect(s.stop(), 0)
    expect(finish(one), 143)


@case
def a_project_that_is_gone_is_told(place):
    s = Session(place)
    s.says("echo 1 >new")
    place.project.rename(place.home / "moved")
    done = expect(s.sh("echo ran", cwd=place.home), 125, str(place.project))
    assert not done.stdout and len(done.stderr.splitlines()) == 1, done
    place.project.symlink_to(place.home)
    done = expect(s.sh("cat spec.yaml; ls", cwd=place.home), 125)
    place.project.unlink()
    (place.home / "moved").rename(place.project)
    assert s.says("cat new") == "1"


# --- ends ---

@case
def a_command_that_does_not_listen_is_ended_by_stop(place):
    """By its keeper, who signs; and where the keeper was stopped, with it."""
    s = Session(place)
    deaf = s.start("while :; do sleep 0.1; done", first="trap '' TERM")
    frozen = s.start("sleep 99", first="echo 1 >kept")
    frozen.send_signal(signal.SIGSTOP)
    expect(s.stop(), 0)
    expect(finish(deaf), 137)
    assert finish(frozen).returncode == -signal.SIGKILL
    sessions.settle()
    assert s.all.json("show", s.id)["state"] == "stopped"
    assert s.says("cat kept") == "1"
    outcomes = sorted(record["outcome"] for record in s.records())
    assert outcomes == ["broken", "exited", "interrupted"], outcomes
    assert s.all.json("show", s.id)["state"] == "open", "it is used again"


@for_root
@case
def the_process_that_has_the_workspace_may_be_killed(place):
    s = Session(place)
    running = [s.start("sleep 99", first=f"echo {i} >{i}") for i in range(3)]
    (workspace,) = workspaces()
    assert pathlib.Path(f"/proc/{workspace}/cmdline").read_bytes().startswith(b"bawn: workspace of a session\0")
    os.kill(workspace, signal.SIGKILL)
    for process in running:
        expect(finish(process), 137, "the process that mounts it was stopped")
    assert s.says("cat 0 1 2; echo 3 >3").split() == ["0", "1", "2"]
    assert s.says("ls").split() == ["0", "1", "2", "3"]


@case
def the_process_that_has_the_workspace_may_hang(place):
    """Nobody waits for it for ever, and what it has is there when it goes on."""
    s = Session(place)
    running = s.start("sleep 99", first="echo 1 >kept")
    (workspace,) = workspaces()
    os.kill(workspace, signal.SIGSTOP)
    expect(s.sh("echo ran"), 125, "the process that mounts it does not answer")
    os.kill(workspace, signal.SIGCONT)
    assert s.says("cat kept") == "1"
    expect(s.stop(), 0)
    expect(finish(running), 143)


@for_root
@case
def a_keeper_may_be_killed(place):
    s = Session(place)
    process, other = s.start("sleep 99", first="echo 1 >kept"), s.start("read x; cat kept")
    process.kill()
    finish(process)
    cage.wait_until(lambda: not sessions.named("sleep"), 3, "the cage goes on without its keeper")
    out, _ = other.communicate(b"x\n", timeout=20)
    assert other.returncode == 0 and out == b"1\n", out
    assert s.says("cat kept") == "1"
    outcomes = sorted(record["outcome"] for record in s.records())
    assert outcomes == ["exited", "exited", "interrupted"], outcomes
    for folder in sorted(s.all.state.glob("runs/*")):
        expect(place.run("verify", folder.name), 0)


@case
def what_runs_is_not_applied_discarded_or_forgotten(place):
    s = Session(place)
    process = s.start("sleep 99", first="echo 1 >new")
    expect(s.all.run("diff", s.id), 0, "it is still going on", "+1")
    for verb in ("apply", "discard"):
        expect(s.all.run(verb, s.id), 1, f"session {s.id}: a command is running in it")
    expect(s.stop(), 0)
    expect(finish(process), 143)
    expect(s.all.run("apply", s.id), 0)
    assert (place.project / "new").read_text() == "1\n"
    process = s.start("sleep 99")
    expect(s.all.run("rm", s.id), 0)
    expect(finish(process), 143)
    expect(s.sh("true"), 125, "cannot find session")


@case
def what_may_be_written_is_counted_over_all_commands(place):
    s = Session(place, "--disk", "8M")
    expect(s.sh("head -c 5M /dev/zero >one"), 0)
    done = s.sh("head -c 5M /dev/zero >two; sleep 3")
    assert done.returncode != 0 and "limits.disk" in done.stderr, done
    done = s.sh("sleep 3")
    assert done.returncode != 0 and "limits.disk" in done.stderr, "there is too much, whoever wrote it"
    expect(s.all.run("discard", s.id), 0)
    for s in (s, Session(place, "--disk", "8M", "--read-only"), Session(place, "--disk", "8M", "--write")):
        expect(s.sh("head -c 5M /dev/zero >~/three"), 0)
        done = s.sh("head -c 5M /dev/zero >/tmp/four; sleep 3")
        assert done.returncode != 0 and "limits.disk" in done.stderr, done


# --- races ---

@for_root
@case
def many_may_begin_at_the_same_moment(place):
    s = Session(place)
    started = [s.begin(f"echo {i} >{i}; mkdir -p d; echo {i} >>d/all; echo said") for i in range(MANY)]
    for process in started:
        cage.output(finish(process, 60), "said\n")
    assert sorted(map(int, s.says("cat d/all").split())) == list(range(MANY))
    assert len(s.records()) == MANY + 1


@case
def starts_and_stops_may_meet(place):
    """Each command runs or is ended or refused with a sentence, and no stop fails."""
    s, chance = Session(place), random.Random(8)
    ends = set()
    for i in range(ROUNDS):
        started = [s.begin("echo x >>all; sleep 9")]
        time.sleep(chance.random() * 0.06)
        if i % 3 == 0:
            started.append(s.begin("sleep 9"))
        expect(s.stop(), 0)
        expect(s.stop(), 0)
        for process in started:
            if process.poll() is None:
                expect(s.stop(), 0)
            done = finish(process)
            assert done.returncode in (125, 137, 143), done
            said = [line for line in done.stderr.splitlines() if not line.startswith("bawn: files: ")]
            assert len(said) == (done.returncode != 143) and all("stopped" in line for line in said), done.stderr
            ends.add(done.returncode)
    assert ends >= {125, 143}, ends
    assert s.says("test -e all; echo fine") == "fine"


@case
def a_keeper_may_be_killed_at_any_moment(place):
    """Nothing of its cage stays, and nobody who comes later waits for it."""
    s, chance = Session(place), random.Random(9)
    for i in range(ROUNDS // 2):
        process = s.begin(f"echo {i} >{i}; sleep 99")
        time.sleep(chance.random() * 0.08)
        process.kill()
        finish(process)
        sessions.settle()
        assert s.says("echo fine") == "fine"


@case
def removal_and_commands_may_meet(place):
    chance = random.Random(10)
    for _ in range(ROUNDS // 4):
        s = Session(place)
        started = [s.begin("echo 1 >new; sleep 9") for _ in range(2)]
        time.sleep(chance.random() * 0.06)
        done = s.all.run("rm", s.id, "--yes")
        for process in started:
            ended = finish(process)
            assert ended.returncode in (125, 137, 143), ended
            said = [line for line in ended.stderr.splitlines() if not line.startswith("bawn: files: ")]
            assert len(said) == (ended.returncode != 143), ended.stderr
        if done.returncode:  # somebody came in just then, and was told to go on, or it was said why not
            assert len(done.stderr.splitlines()) == 1, done.stderr
            expect(s.all.run("rm", s.id, "--yes"), 0)
        assert not s.workspace.exists() and s.id not in s.all.names()


@case
def what_is_applied_while_commands_come_and_go_is_all_there(place):
    s = Session(place)
    started, written, refused = {}, set(), 0
    for i in range(MANY):
        started[i] = s.begin(f"echo {i} >{i}")
        applied = s.all.run("apply", s.id)
        assert applied.returncode in (0, 1), applied
        if i % 4 == 3:
            for number, process in started.items():
                done = finish(process)
                assert done.returncode == 0 or "is being moved, applied or removed" in done.stderr, done
                refused += done.returncode != 0
                written |= {number} if done.returncode == 0 else set()
            started = {}
    expect(s.all.run("apply", s.id), 0)
    assert {int(name) for name in os.listdir(place.project)} == written and written, (written, refused)


if __name__ == "__main__":
    sessions.main()
