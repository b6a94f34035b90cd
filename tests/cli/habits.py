#!/usr/bin/env python3
"""What people type by habit, and what must never be typed back to them or be removed without a word.

    habits.py BAWN        prints TAP
"""

import os
import pty
import re
import select

import run
from run import expect

run.CASES.clear()
case = run.case

KEY = "sk-1234-hunter2"  # behind a "=" in every argument
COMMANDS = ("run", "plan", "check", "diff", "apply", "discard", "log", "card", "record", "record show", "record export",
            "session create", "session exec", "session show", "session rm", "session stop", "session wait",
            "session apply", "session discard", "agent show", "agent list", "agent forget", "overlay init",
            "overlay reset", "key init", "verify", "doctor", "version", "worker", "hook", "tool read", "nonsense",
            "session nonsense", "agent nonsense", "record nonsense")


def options(p, command):
    """The options that take a value, as the help lists them."""
    said = "" if command == "worker" else p.run(*command.split(), "--help").stdout  # a worker would wait for work
    return re.findall(r"--([a-z-]+) [A-Z\[]", said)


@case
def no_message_shows_what_stands_behind_an_equals_sign(p):
    given, shown = [f"NAME={KEY}", f"-NAME={KEY}", f"--name-of={KEY}", f"-xNAME={KEY}", f"A B={KEY}", f"={KEY}"], []
    for command in COMMANDS:
        words = [[word] for word in given]
        words += [[f"--{option}", f"NAME={KEY}"] for option in options(p, command)]
        words += [[f"--{option}=NAME={KEY}"] for option in options(p, command)]
        for more in words:
            done = p.run(*command.split(), *more, "--json", stdin="")
            (p.project / f"NAME={KEY}").unlink(missing_ok=True)  # what was exported: the name of a file is no key
            if KEY in done.stderr or (done.returncode and KEY in done.stdout):
                shown.append((command, more, done.stderr or done.stdout))
    assert not shown, "\n".join(map(str, shown))


@case
def a_key_given_as_a_secret_is_not_shown(p):
    for words in ((f"ANTHROPIC_API_KEY={KEY}",), (KEY,), (f"{KEY}=",)):
        done = expect(p.run("plan", "--agent", "claude", "--secret", *words), 125, "hint: ")
        assert KEY not in done.stdout + done.stderr, done.stderr
    expect(p.run("plan", "--agent", "claude", "--secret", "OTHER"), 125, "it knows ANTHROPIC_API_KEY")
    # The pair: a value that is no key is shown, so that people see their slip.
    expect(p.run("plan", "--network", "nnoe"), 1, "'nnoe' is not none")
    expect(p.run("plan", "--network=nnoe"), 1, "'nnoe' is not none")


def on_terminal(p, *args, answer=""):
    """What bawn says on a terminal where `answer` is typed, and its exit status."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(p.project)
        command = [*run.accounts.login(p.uid), run.BAWN, *map(str, args)]
        os.execvpe(command[0], command, {**p.environ(), "TERM": "dumb"})
    os.write(fd, answer.encode())
    said = b""
    while select.select([fd], [], [], 30)[0]:
        try:
            part = os.read(fd, 4096)
        except OSError:  # how a terminal ends
            break
        said += part
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.decode(errors="replace")


def keep_conversations(p, *agents):
    """What runs of these agents would have kept of the project, and what is left of it."""
    spec = p.write("home/.config/bawn/keep.yaml", "version: 1\nstate: [%s]\n" % ", ".join(f"/home/agent/.{a}" for a in agents))
    expect(p.run("run", "-f", spec, "--", "sh", "-c", " ".join(f"echo mine > ~/.{a}/talk;" for a in agents)), 0)
    return lambda: p.run("run", "-f", spec, "--", "sh", "-c", "cd; ls .*/talk 2>/dev/null").stdout.split()


@case
def forgetting_names_what_it_forgets(p):
    left = keep_conversations(p, "claude", "codex")
    expect(p.run("agent", "forget"), 2, "say which agent's conversations, or --all", "~/.claude, ~/.codex")
    expect(p.run("agent", "forget", "claude"), 1, "conversations and settings of claude", "~/.claude", "hint: --yes answers")
    expect(p.run("agent", "forget", "nobody"), 1, "there is no profile 'nobody'")
    expect(p.run("agent", "forget", p.project), 2, "it is a folder", "--all --project")
    expect(p.run("agent", "forget", "claude", "--all"), 2, "--all is of all agents")
    assert left() == [".claude/talk", ".codex/talk"], left()
    expect(p.run("agent", "forget", "gemini", "--yes"), 0, "nothing is kept of gemini")
    expect(p.run("agent", "forget", "claude", "--yes"), 0, "forgot what was kept of claude", "~/.claude")
    assert left() == [".codex/talk"], left()
    expect(p.run("agent", "forget", "--all"), 0, "forgot what was kept of all agents", str(p.project), "~/.codex")
    assert left() == []


@case
def forgetting_asks_on_a_terminal(p):
    left = keep_conversations(p, "claude")
    for words in (("claude",), ("--all",)):
        for answer in ("n\n", "\n", "yeah\n", "\4"):
            status, said = on_terminal(p, "agent", "forget", *words, answer=answer)
            assert status == 1 and "~/.claude)? [y/N]" in said and "nothing was removed" in said, said
    assert left() == [".claude/talk"]
    assert on_terminal(p, "agent", "forget", "claude", answer="y\n")[0] == 0
    assert left() == []


@case
def discarding_asks_on_a_terminal(p):
    def change():
        expect(p.run("run", "--", "sh", "-c", "echo new > f"), 0)

    change()
    for words in ((), ("--all",)):
        status, said = on_terminal(p, "discard", *words, answer="n\n")
        assert status == 1 and "[y/N]" in said and "nothing was removed" in said, said
    expect(p.run("diff"), 0, "+new")
    status, said = on_terminal(p, "discard", answer="yes\n")
    assert status == 0 and "(1 file)? [y/N]" in said and "discarded" in said, said
    change()
    assert on_terminal(p, "discard", "--yes")[0] == 0
    expect(p.run("discard"), 0, "no changes of a run are waiting")


@case
def without_a_terminal_what_is_discarded_is_certain(p):
    for _ in range(2):
        expect(p.run("run", "--", "sh", "-c", "echo new > f"), 0)
    expect(p.run("discard"), 1, "1 more run in", "hint: --yes answers")
    expect(p.run("discard", "--yes"), 0, "discarded")
    expect(p.run("discard"), 0, "discarded")  # the only one


@case
def an_overlay_is_emptied_after_a_question(p):
    expect(p.run("overlay", "init", "o", "--size", "64M"), 0)
    status, said = on_terminal(p, "overlay", "reset", "o", answer="n\n")
    assert status == 1 and "remove all that is in the overlay 'o'? [y/N]" in said, said
    status, said = on_terminal(p, "overlay", "reset", "o", answer="y\n")
    assert status == 0 and "emptied" in said, said
    expect(p.run("overlay", "reset", "o"), 0, "emptied")


@case
def a_session_with_changes_is_removed_after_a_question(p):
    name = expect(p.run("session", "create", "--name", "web"), 0).stdout.strip()
    expect(p.run("session", "exec", "web", "--", "sh", "-c", "echo new > changed"), 0)
    status, said = on_terminal(p, "session", "rm", "web", answer="n\n")
    assert status == 1 and f"remove session {name[:8]}" in said and "changed" in said and "[y/N]" in said, said
    expect(p.run("session", "diff", "web"), 0, "+new")
    status, said = on_terminal(p, "session", "rm", "web", answer="y\n")
    assert status == 0 and name in said, said
    expect(p.run("session", "show", "web"), 1)
    # Where there is nothing to lose, nothing is asked.
    name = expect(p.run("session", "create"), 0).stdout.strip()
    status, said = on_terminal(p, "session", "rm", name)
    assert status == 0 and "[y/N]" not in said, said


@case
def what_is_known_from_elsewhere_is_understood(p):
    expect(p.run("help", "run"), 0, "bawn run [options]")
    expect(p.run("help", "session", "exec"), 0, "bawn session exec SESSION")
    expect(p.run("help", "session"), 0, "bawn session create")
    expect(p.run("help", "rnu"), 2, "did you mean run?")
    expect(p.run("session", "ls"), 0)
    expect(p.run("record", "ls"), 0)
    assert expect(p.run("agent", "ls"), 0).stdout == p.run("agent", "list").stdout
    assert expect(p.run("-V"), 0).stdout == expect(p.run("-v"), 0).stdout == p.run("version").stdout
    assert p.run("logs", "--all").returncode == p.run("log", "--all").returncode == 0
    plan = expect(p.run("plan", "-iq", "--rm", "--net", "host", "--timeout", "5m", "--", "true"), 0, "5m")
    assert plan.stdout == p.run("plan", "-q", "--network", "host", "--time", "5m", "--", "true").stdout
    expect(p.run("run", "-it", "--rm", "echo", "there"), 0, "there")
    assert expect(p.run("run", "-i", "--rm", "echo", "-n", "there"), 0).stdout == "there"
    assert "interactive" not in p.run("run", "--help").stdout


@case
def what_is_not_there_is_answered(p):
    for words, line in ((("ps",), "bawn session list"), (("exec", "x"), "bawn session exec SESSION"), (("ls",), "bawn record list"),
                        (("stop",), "bawn session stop"), (("rm", "x"), "bawn session rm"), (("shell",), "bawn run -- bash"),
                        (("init",), "version: 1"), (("npm", "test"), "bawn run -- "), (("session", "run"), "session exec"),
                        (("session", "log", "x"), "bawn log --session SESSION"), (("session", "end"), "bawn session stop"),
                        (("session", "kill"), "bawn session stop"), (("session", "close"), "bawn session rm"),
                        (("session", "shell", "x"), "bawn session exec SESSION -- bash"),
                        (("plan", "-d"), "bawn session create"), (("plan", "-u", "1"), "--fakeroot"),
                        (("plan", "--user=1"), "--fakeroot"), (("plan", "-id"), "bawn session create"),
                        (("plan", "--privileged"), "bawn plan"), (("claude",), "bawn run --agent claude"),
                        (("cp", "a", "b"), "bawn apply"), (("attach", "x"), "bawn session exec"),
                        (("session", "logs", "x"), "bawn log --session")):
        expect(p.run(*words), 2, "hint: ", line)
    expect(p.run("run", "-d", "--", "true"), 125, "hint: ", "session create")
    expect(p.run("log", "web"), 1, "there is no run 'web'", "hint: of a session: bawn log --session SESSION")
    expect(p.run("record", "verify", "x"), 2, "hint: bawn verify x")
    expect(p.run("run", "--again", "last"), 125, "'last'", "hint: bawn record list")
    expect(p.run("record", "export", "--help"), 0, "tar archive")


@case
def letters_stand_together_and_take_what_follows(p):
    expect(p.run("plan", "-qeA=one", "--", "true"), 0, "A=one")
    expect(p.run("plan", "-qm"), 2, "its value is missing", "--memory SIZE")
    expect(p.run("plan", "-" + "q" * 5000), 2, "more than 4096 options")
    expect(p.run("plan", "-qX"), 2, "cannot use -X")


@case
def slips_are_warned_of(p):
    expect(p.run("check", "--memory", "2"), 0, "warning: limits.memory: '2' is 2 bytes", "write a unit behind it")
    assert "bytes" not in expect(p.run("check", "--memory", "2G"), 0).stderr
    expect(p.run("check", "-e", "NOTSET"), 0, "warning: env.pass: NOTSET is not set here")
    assert "not set" not in expect(p.run("check", "-e", "THERE", env={"THERE": "1"}), 0).stderr
    for key, hint in (("volumes: [a]", "binds:"), ("ports: ['80:80']", "publish:"), ("timeout: 5m", "limits: { time:"),
                      ("image: x", "root: { image:"), ("environment: {A: b}", "env: { set:")):
        p.spec(f"version: 1\n{key}\n")
        expect(p.run("check"), 1, "unknown key", hint)
    p.spec("version: 1\nenv: {A: b}\n")
    expect(p.run("check"), 1, "unknown key 'env.A'", "write env: { set: { NAME: value } }")
    p.spec("version: 1\nnetwork: none\n")
    expect(p.run("check"), 1, "expected a map, not text", "write network: { mode: none }")
    p.spec("version: 1\nenvironment: prod\n")
    expect(p.run("check"), 1, "belongs in the operator's policy.yaml")


@case
def variables_come_from_a_file(p):
    p.write("home/project/vars", f"# mine\nA=one two\r\n\n  B=\nTHERE\nC={KEY}=x\n")
    plan = expect(p.run("plan", "--env-file", "vars", "--", "true", env={"THERE": "1"}), 0, "A=one two\n", "THERE")
    assert "#" not in plan.stdout.partition("A=")[0][-40:] and "\r" not in plan.stdout
    p.write("home/project/vars", f"A=1\nnot a variable {KEY}\n1X={KEY}\n")
    done = expect(p.run("plan", "--env-file", "vars"), 1, "vars:2: error: it is not NAME=VALUE", "vars:3: error: ",
                  "'1X' is not the name")
    assert KEY not in done.stdout + done.stderr, done.stderr
    expect(p.run("plan", "--env-file", "missing"), 1, "cannot read 'missing': No such file")
    p.write("home/project/vars", f"A='1 $HOME'\nexport C={KEY}\n")
    done = expect(p.run("plan", "--env-file", "vars"), 1, "vars:2: error: ", "leave out 'export'")
    assert KEY not in done.stdout + done.stderr, done.stderr
    p.write("home/project/vars", "A='1 $HOME' # no comment\nNOTSET\n")
    expect(p.run("check", "--env-file", "vars"), 0, "vars:2: warning: env.pass: NOTSET is not set here")
    expect(p.run("run", "--env-file", "vars", "--", "sh", "-c", 'echo "$A"'), 0, "'1 $HOME' # no comment\n")


@case
def a_network_that_is_none_allows_nothing(p):
    for more in (("--allow", "example.org:443"), ("--host-port", "80"), ("-p", "80:80"), ("--allow", "npm")):
        for mode in ("--network", "--net"):
            for words in ((mode, "none", *more), (*more, mode, "none")):
                expect(p.run("run", *words, "--", "true"), 125, "contradict each other", "leave out --network none")
    spec = p.write("home/spec.yaml", "version: 1\nnetwork: {allow: ['example.org:443']}\n")
    for command in (("check",), ("run", "--", "true")):
        expect(p.run(command[0], "-f", spec, *command[1:]), 0,
               "warning: network.allow: nothing of it is reachable, because network.mode is none")
    # The pair: what does not contradict is not spoken of.
    assert not expect(p.run("run", "--network", "none", "--", "true"), 0).stderr
    assert "reachable" not in p.run("check", "--allow", "example.org:443").stderr


@case
def a_spec_that_counts_as_the_projects_says_why(p):
    asks = "version: 1\nnetwork: {mode: host}\n"
    outside = p.write("home/spec.yaml", asks, 0o666)
    expect(p.run("check", "-f", outside), 1, "counts as the project's own, because others can write to it", "chmod go-w")
    outside.chmod(0o644)
    assert "counts" not in expect(p.run("check", "-f", outside), 0).stderr
    (p.project / "link.yaml").symlink_to(outside)
    inside = p.write("home/project/spec.yaml", asks)
    for name in (inside, p.project / "link.yaml"):
        expect(p.run("check", "-f", name), 1, "because it lies in the project", "--trust")
    p.spec(asks)
    expect(p.run("check"), 1, "keep it outside of the project and name it with -f")


@case
def slips_are_answered_with_what_to_write(p):
    for words, answer in ((("--memory", "2 GB"), "write 2G"), (("--time", "5 minutes"), "write 5m"),
                          (("--allow", "a.org:443,b.org:443"), "hint: --allow a.org:443 --allow b.org:443"),
                          (("--allow", "127.0.0.1:8011"), "--host-port 8011, and bawn-host:8011 in the cage"),
                          (("-p", "8000"), "such as 8000:8000"), (("--memory", "1"), "'1' is 1 byte\n")):
        done = p.run("check", *words)
        assert answer.replace("hint: ", "") in done.stderr, done.stderr
    for text, answer in (("env: { FOO: bar }", "write env: { set: { NAME: value } }"), ("network: none", "network: { mode: none }"),
                         ("network: { allow: example.org }", '[example.org:443]'),
                         ("network: { allow: ['127.0.0.1:80'] }", "write host_ports: [80]")):
        p.spec(f"version: 1\n{text}\n")
        expect(p.run("check"), 1, answer)
    (p.project / "bawn.yaml").unlink()
    expect(p.run("check"), 0, "0 errors, 0 warnings", "there is no bawn.yaml here")
    p.spec("version: 1\n")
    assert "no bawn.yaml" not in expect(p.run("check"), 0, "0 errors").stdout


@case
def words_of_others_are_answered(p):
    for words, answer in ((("log", "--denied"), "bawn log --denials"), (("log", "--why"), "bawn log --denials"),
                          (("why",), "bawn log --denials"), (("run", "--port", "80"), "-p PORT:PORT"),
                          (("record", "export", "--out", "x"), "-o FILE"), (("session", "rm", "--all"), "session list"),
                          (("help", "spec"), "man bawn.yaml"), (("help", "bawn.yaml"), "man bawn.yaml"),
                          (("run", "--no-network"), "no network is the default"), (("run", "--no-spec"), "-f FILE")):
        done = p.run(*words)
        assert done.returncode in (2, 125) and answer in done.stderr, (words, done.stderr)


@case
def a_command_that_is_none_is_answered(p):
    p.write("home/.cargo/bin/cargo", "#!/bin/sh\n", 0o755)
    p.write("home/tools/hammer", "#!/bin/sh\n", 0o755)
    p.write("home/project/.venv/bin/snake", "#!/bin/sh\necho hiss\n", 0o755)
    env = {"PATH": f"{p.project}/.venv/bin:{os.environ['PATH']}"}
    for words, answer in ((("make test",), "without quotes, or: bawn run -- sh -c 'make test'"),
                          ((f"FOO={KEY}", "env"), "-e FOO=… sets a variable"),
                          ((p.home / ".cargo/bin/cargo",), "is ~/.cargo/bin/cargo; add --toolchain cargo"),
                          ((p.home / "tools/hammer",), "-v ~/tools/hammer:/opt/bin/hammer"),
                          (("snake",), "your 'snake' is .venv/bin/snake; run that")):
        done = expect(p.run("run", "--", *words, env=env), 127, "hint: ", answer)
        assert KEY not in done.stderr, done.stderr
    expect(p.run("run", ".venv/bin/snake", env=env), 0, "hiss")  # the advice helps
    assert "hint" not in expect(p.run("run", "--", "no-such-program"), 127).stderr


@case
def a_signal_that_ends_the_command_is_told_on_a_terminal(p):
    status, said = on_terminal(p, "run", "--", "sh", "-c", "kill -ABRT $$")
    assert status == 134 and "the command was ended by signal 6 (SIGABRT)" in said, said
    threads = "import os, threading, time\ntry:\n for _ in range(40): threading.Thread(target=time.sleep, args=(9,)).start()\n"
    status, limited = on_terminal(p, "run", "--pids-limit", "10", "--", "python3", "-c", threads + "except RuntimeError: os.abort()")
    assert status == 134 and "limits.pids" in limited and "limits.pids" not in said, limited
    assert "signal" not in expect(p.run("run", "--", "sh", "-c", "kill -ABRT $$"), 134).stderr
    expect(p.run("log"), 0, "by signal 6 (SIGABRT)")


if __name__ == "__main__":
    run.main()
