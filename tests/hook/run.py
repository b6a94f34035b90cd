#!/usr/bin/env python3
"""bawn hook: what it says to calls of the three agents' tools in a cage, what comes of it on the host, and what of
everything else that is told from inside.

    run.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import json
import os
import pathlib
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import SLOW, case, descendants, expect, main, wait_until  # noqa: E402

WRITABLE = "tools: true\nproject: {mode: writable}\n"
EVENTS = {"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}
TYPES = {"read": "sandbox_read_blocked", "write": "sandbox_write_blocked"}

# Agent, tool, arguments; what is denied and of which real path, or None.
SSH = "/root/.ssh/id_rsa"
CALLS = [
    ("claude", "Read", {"file_path": "/work/file"}, None),
    ("claude", "Read", {"file_path": "file"}, None),
    ("claude", "Read", {"file_path": "/etc/passwd"}, None),
    ("claude", "Read", {"file_path": "/usr/bin/env"}, None),
    ("claude", "Read", {"file_path": "/bin/sh"}, None),
    ("claude", "Read", {"file_path": SSH}, ("read", SSH)),
    ("claude", "Read", {"file_path": "../root/x"}, ("read", "/root/x")),
    ("claude", "Read", {"file_path": "/work/out"}, ("read", "/root/secret")),
    ("claude", "Read", {"file_path": "/work/folder/up/bob/x"}, ("read", "/home/bob/x")),
    ("claude", "Read", {"file_path": "~/.profile"}, None),
    ("claude", "Read", {"file_path": "~bob/.ssh/id"}, ("read", "/home/bob/.ssh/id")),
    ("claude", "Write", {"file_path": "/work/new/deep/file", "content": "x"}, None),
    ("claude", "Write", {"file_path": "/tmp/x", "content": "x"}, None),
    ("claude", "Write", {"file_path": "/usr/bin/x", "content": "x"}, ("write", "/usr/bin/x")),
    ("claude", "Write", {"file_path": "/work/out/new", "content": "x"}, ("write", "/root/secret/new")),
    ("claude", "Edit", {"file_path": "/work/.git/config"}, ("write", "/work/.git/config")),
    ("claude", "Edit", {"file_path": "/work/way/hooks/new"}, ("write", "/work/.git/hooks/new")),
    ("claude", "MultiEdit", {"file_path": "/run/bawn/bawn"}, ("write", "/run/bawn/bawn")),
    ("claude", "NotebookEdit", {"notebook_path": "/srv/../boot/x"}, ("write", "/boot/x")),
    ("claude", "Glob", {"pattern": "**/*.c"}, None),
    ("claude", "Glob", {"pattern": "/root/**/*"}, ("read", "/root")),
    ("claude", "Grep", {"pattern": "/root/", "path": "/work"}, None),
    ("claude", "Grep", {"pattern": "x", "path": "/home/bob"}, ("read", "/home/bob")),
    ("claude", "LS", {"path": "/"}, None),
    ("claude", "LS", {"path": "/root"}, ("read", "/root")),
    ("claude", "Bash", {"command": "make && ls ../tmp > /dev/null 2>&1"}, None),
    ("claude", "Bash", {"command": "sed '/root/p' file | grep /sys /etc/passwd"}, None),
    ("claude", "Bash", {"command": f"cat {SSH}"}, ("read", SSH)),
    ("claude", "Bash", {"command": "echo key >> ~/../../root/x"}, ("write", "/root/x")),
    ("claude", "Bash", {"command": "cd .git && echo x > hooks/post-commit"}, ("write", "/work/.git/hooks/post-commit")),
    ("claude", "Bash", {"command": "bash -c 'cp file /boot/file'"}, ("write", "/boot/file")),
    ("claude", "WebFetch", {"url": "https://example.org/"}, None),
    ("codex", "Bash", {"command": "cat /work/file"}, None),
    ("codex", "Bash", {"command": "ls /sys/class"}, ("read", "/sys/class")),
    ("codex", "shell", {"command": ["bash", "-lc", "tee /boot/x"], "workdir": "/work"}, ("write", "/boot/x")),
    ("codex", "exec_command", {"cmd": "rm x", "workdir": "/usr/share"}, ("write", "/usr/share/x")),
    ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Add File: new\n+x\n*** End Patch"}, None),
    ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: out\n*** End Patch"},
     ("write", "/root/secret")),
    ("codex", "view_image", {"path": "/media/x.png"}, ("read", "/media/x.png")),
    ("gemini", "read_file", {"file_path": "file"}, None),
    ("gemini", "read_file", {"file_path": SSH}, ("read", SSH)),
    ("gemini", "read_many_files", {"include": ["*.md", "/home/bob/*"]}, ("read", "/home/bob")),
    ("gemini", "list_directory", {"dir_path": "/root"}, ("read", "/root")),
    ("gemini", "glob", {"pattern": "*", "dir_path": "/work/folder/up/bob"}, ("read", "/home/bob")),
    ("gemini", "grep_search", {"pattern": "x", "dir_path": "."}, None),
    ("gemini", "write_file", {"file_path": "/usr/x", "content": ""}, ("write", "/usr/x")),
    ("gemini", "replace", {"file_path": ".envrc"}, ("write", "/work/.envrc")),
    ("gemini", "run_shell_command", {"command": "touch ok"}, None),
    ("gemini", "run_shell_command", {"command": f"cat {SSH}"}, ("read", SSH)),
]

# In the cage: each call of the table as the agent makes it; what was printed, and how it ended.
ASK = r"""
import json, subprocess, sys
answers = []
for agent, call in json.load(open("calls.json")):
    done = subprocess.run(["/run/bawn/bawn", "hook", agent], input=call.encode("utf-8", "surrogateescape"),
                          capture_output=True, timeout=10)
    answers.append([done.returncode, done.stdout.decode(), done.stderr.decode()])
print(json.dumps(answers))
"""
# In the cage: one message, as bawn's program makes it.
SEND = r"""
import os, socket, struct
told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.connect("/run/bawn/told")
def message(kind=0, agent=0, tool=b"Read", path=b"/root/x"):
    return struct.pack("=II64s1016s", kind, agent, tool, path)
"""


def project(p):
    for path in (".git/config", ".git/hooks/sample", ".envrc", "file", "folder/file"):
        p.write(f"project/{path}", "text\n")
    for path, target in (("out", "/root/secret"), ("folder/up", "../../home"), ("way", ".git")):
        (p.project / path).symlink_to(target)
        p.own(p.project / path)


def call(agent, tool, arguments, folder="/work"):
    return json.dumps({"session_id": "s", "transcript_path": None, "cwd": folder, "hook_event_name": EVENTS[agent],
                       "tool_name": tool, "tool_input": arguments, "tool_use_id": "t"})


def ask(p, calls, *options):
    p.write("project/calls.json", json.dumps(calls))
    done = p.run("run", *options, "--", "python3", "-c", ASK)
    expect(done, 0)
    return json.loads(done.stdout)


def reason(agent, text):
    """Why it is denied; None: it is not. An answer has nothing else in it."""
    if not text:
        return None
    answer = json.loads(text)
    if agent == "gemini":
        assert set(answer) == {"decision", "reason"} and answer["decision"] == "deny", answer
        return answer["reason"]
    inner = answer["hookSpecificOutput"]
    assert set(answer) == {"hookSpecificOutput"}, answer
    assert (inner["hookEventName"], inner["permissionDecision"]) == ("PreToolUse", "deny"), inner
    return inner["permissionDecisionReason"]


def blocked(p):
    """Events of the last run's own log."""
    folder = max(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if "blocked" in event["type"]]


def counts(p):
    return {event["type"]: event["times"] for event in p.record()["events"] if event.get("by") == "hook"}


def send(p, script, *options):
    done = p.run("run", *options, *p.spec("tools: true\n"), "--", "python3", "-c", SEND + script)
    return expect(done, 0)


# --- what it says ---

@case
def calls_are_judged_by_where_their_paths_lead(p):
    project(p)
    answers = ask(p, [(agent, call(agent, tool, arguments)) for agent, tool, arguments, _ in CALLS],
                  *p.spec(WRITABLE))
    for (agent, tool, arguments, denied), (status, out, err) in zip(CALLS, answers):
        said = reason(agent, out)
        assert status == 0 and not err, (tool, arguments, status, err)
        assert bool(said) == bool(denied), f"{tool} {arguments}: {said}"
        if denied:
            assert f"cannot {denied[0]} " in said and denied[1] in said and "/work" in said, (arguments, said)
    wanted = [(TYPES[denied[0]], agent, tool, denied[1], "hook") for agent, tool, _, denied in CALLS if denied]
    seen = [(event["type"], event["agent"], event["tool"], event["path"], event["by"]) for event in blocked(p)]
    assert seen == wanted, [pair for pair in zip(seen, wanted) if pair[0] != pair[1]] or (len(seen), len(wanted))
    assert counts(p) == {name: sum(row[0] == name for row in wanted) for name in TYPES.values()}, counts(p)


@case
def a_project_at_its_own_path_is_known_there(p):
    project(p)
    own = str(p.project)
    # What is above it is in the cage's own /tmp.
    rows = [("Read", own + "/file", None), ("Read", "/work/file", "read"), ("Write", own + "/new", None),
            ("Write", own + "/.envrc", "write"), ("Read", "folder/../out", "read")]
    answers = ask(p, [("claude", call("claude", tool, {"file_path": path}, own)) for tool, path, _ in rows],
                  *p.spec("tools: true\nproject: {mode: writable, cage: project}\n"))
    for (tool, path, denied), (_, out, _) in zip(rows, answers):
        said = reason("claude", out)
        assert bool(said) == bool(denied) and (not said or f"cannot {denied}" in said), (tool, path, said)


@case
def what_a_read_only_project_is_for_is_said(p):
    project(p)
    (_, out, _), = ask(p, [("claude", call("claude", "Write", {"file_path": "/work/x"}))],
                       *p.spec("tools: true\nproject: {mode: read_only}\n"))
    assert "read-only in this cage; what can be written is /home/agent" in reason("claude", out), out


@case
def what_is_not_understood_gets_no_answer(p):
    """Whatever comes, status 0 and nothing printed: an agent takes a 2, or words, for an answer."""
    project(p)
    good = call("claude", "Read", {"file_path": SSH})
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    inputs = ["", " ", "null", "[]", "{}", "x", good[:-1], good + good, good.replace("Read", "Reed"),
              good.replace("PreToolUse", "PostToolUse"), good.replace('"tool_input": {', '"tool_input": ['),
              good.replace(SSH, SSH + "\\u0000"), good.replace(SSH, "\udcff\udcfe"), deep, "\n" * 200000,
              call("claude", "Read", {"file_path": "/root/" + "x" * (1 << 20)}),
              call("claude", "Bash", {"command": "'" * 1001}), call("claude", "Bash", {"command": "$(" * 50000}),
              call("claude", "Read", {"file_path": {"file_path": SSH}})]
    for (status, out, err), text in zip(ask(p, [("claude", text) for text in inputs], *p.spec(WRITABLE)), inputs):
        assert (status, out, err) == (0, "", ""), (text[:80], status, out[:200], err)
    assert not blocked(p)


@case
def an_agent_that_is_not_known_is_no_refusal_of_a_call(p):
    for words in (["hook"], ["hook", "other"], ["hook", "claude", "x"], ["hook", "--wrong"], ["hook", "claude", "-x"]):
        done = p.run(*words, stdin=b"{}")
        errors = [line for line in done.stderr.splitlines() if not line.startswith("hint: ")]
        assert done.returncode not in (0, 2) and not done.stdout and len(errors) == 1, done


@case
def outside_of_a_cage_it_has_no_opinion(p):
    done = p.run("hook", "claude", stdin=call("claude", "Read", {"file_path": SSH}).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done


@case
def an_input_that_never_ends_is_not_waited_for(p):
    began = time.monotonic()
    done = p.sh("sleep 5 | (/run/bawn/bawn hook claude; echo $?)", *p.spec("tools: true\n"))
    expect(done, 0)
    assert done.stdout == "0\n" and time.monotonic() - began < 8 * SLOW, done


@case
def the_cage_holds_without_it(p):
    """The twin: what the hook denies, the kernel denies too, as nobody asks the hook here."""
    project(p)
    script = "for f in /root/.ssh/id_rsa /home/bob/x /boot/x out; do cat $f && echo read; done; " \
             "for f in /usr/x /boot/x .git/config .git/hooks/new .envrc /run/bawn/bawn out; do " \
             "echo x > $f && echo written; done; true"
    done = p.sh(script, *p.spec(WRITABLE))
    assert done.returncode == 0 and done.stdout == "", done
    assert not blocked(p) and (p.project / ".envrc").read_text() == "text\n"


# --- what is told ---

@case
def what_is_told_is_seen_by_the_operator(p):
    send(p, "told.send(message()); told.send(message(1, 2, b'write_file', '/usr/é x'.encode()))")
    shown = expect(p.run("log", "--denials"), 0).stdout
    assert "claude was refused reading /root/x, by its hook (Read)" in shown, shown
    assert "gemini was refused writing /usr/é x, by its hook (write_file)" in shown, shown
    assert counts(p) == {"sandbox_read_blocked": 1, "sandbox_write_blocked": 1}, counts(p)
    expect(p.run("verify", p.record()["run"]), 0)


@case
def what_is_none_is_dropped(p):
    send(p, r"""
bad = [b"", b"x", message()[:-1], message() + b"x", b"\0" * 1088, b"\xff" * 1088, message(kind=2), message(agent=3),
       message(tool=b""), message(tool=b"a b"), message(tool=b"x" * 64), message(path=b""), message(path=b"root"),
       message(path=b"/a\nb"), message(path=b"/\x1b[m"), message(path=b"/\xff"), message(path=b"/\xe2\x80\xae"),
       message(path=b"/a\0b"), message(path=b"/" * 1016), os.urandom(1088), os.urandom(60000)]
for text in bad:
    told.send(text)
socket.send_fds(told, [message(path=b"/with/a/descriptor")], [0, 1, 2])
""")
    assert [event["path"] for event in blocked(p)] == ["/with/a/descriptor"], blocked(p)


@case
def a_run_has_so_many_and_a_count_of_the_others(p):
    send(p, "for i in range(300): told.send(message(path=b'/root/%d' % i))")
    events = blocked(p)
    assert [event["path"] for event in events[:-1]] == [f"/root/{i}" for i in range(256)], len(events)
    assert (events[-1]["type"], events[-1]["times"]) == ("blocked_untold", 44), events[-1]
    assert counts(p) == {"sandbox_read_blocked": 300, "blocked_untold": 44}, counts(p)


@case
def a_flood_is_no_work_and_hides_nothing(p):
    """Four that send as fast as they can: the keeper hardly notices, and what else happens is told."""
    spec = p.spec("tools: true\n")
    script = SEND + r"""
text = [message(), b"", b"x" * 60000, message(path=b"\xff")]
for i in range(4):
    if os.fork() == 0:
        while True:
            told.send(text[i])
import ctypes, time
time.sleep(1)
ctypes.CDLL(None).mount(b"a", b"/b", b"tmpfs", 0, 0)
print("ready", flush=True)
time.sleep(60)
"""
    process = p.start("run", *spec, "--", "python3", "-c", script)
    try:
        assert process.stdout.readline() == b"ready\n"
        before = processor_seconds(process.pid)
        time.sleep(1)
        used = processor_seconds(process.pid) - before
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20 * SLOW)
    assert used < 0.3, f"the keeper used {used:.2f} s of a second"
    types = [event["type"] for event in p.record()["events"]]
    assert "syscall_denied" in types, types
    assert len(blocked(p)) == 257, len(blocked(p))


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@case
def the_socket_is_gone_afterwards(p):
    process = p.start("run", *p.spec("tools: true\n"), "--", "sh", "-c", "echo ready; read x")
    assert process.stdout.readline() == b"ready\n"
    found = list(p.state.glob("bawn/runs/*/told"))
    assert len(found) == 1 and found[0].is_socket(), found
    assert found[0].parent.stat().st_mode & 0o077 == 0, "others could talk to it"
    process.communicate(b"\n", timeout=20 * SLOW)
    assert not found[0].exists()


@case
def nothing_of_it_is_there_unless_asked_for(p):
    done = p.sh("ls /run/bawn /etc/bawn; true")
    assert done.returncode == 0 and not done.stdout and done.stderr.count("No such file") == 2, done


@case
def nobody_puts_another_program_in_its_place(p):
    done = p.sh("cd /run; mv bawn b; rm -f bawn/bawn; echo x > bawn/x; echo x > /etc/bawn/cage.json; "
                "chmod 700 bawn/told; bawn/bawn version | head -1", *p.spec("tools: true\n"))
    assert done.stdout.startswith("bawn ") and len(done.stderr.splitlines()) == 5, done


@case
def in_a_session_it_answers_and_nobody_listens(p):
    project(p)
    for background in ("false", "true"):
        spec = p.spec(f"tools: true\nsession: {{background: {background}}}\n")
        session = expect(p.run("session", "create", *spec), 0).stdout.strip()
        done = p.run("session", "exec", session, "--", "sh", "-c", "ls /run/bawn; exec /run/bawn/bawn hook claude",
                     stdin=call("claude", "Read", {"file_path": SSH}).encode())
        expect(done, 0)
        listed, answer = done.stdout.split("\n", 1)
        assert listed == "bawn" and SSH in reason("claude", answer), done
        expect(p.run("session", "rm", session), 0)
    wait_until(lambda: not descendants(), 5, "what had them mounted is gone")


if __name__ == "__main__":
    main()
