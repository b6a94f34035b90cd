#!/usr/bin/env python3
"""bawn mcp: the protocol in both eras, calls beside each other, their ends; as a user and as root.

    protocol.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import datetime
import hashlib
import json
import pathlib
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import records  # noqa: E402
from server import KEY, LEGACY, META, MODERN, TOOLS, Result, Server, cage, expect, sessions  # noqa: E402

case, for_root = sessions.case, sessions.for_root
EVERY_ERA = (MODERN, *LEGACY)


def sessions_of(place):
    root = place.state / "bawn" / "sessions"
    return sorted(path.name for path in root.iterdir() if path.name != "id") if root.exists() else []


def ends_of(place):
    """How each run ended, as its record says, which verifies."""
    records = place.records()
    for record in records:
        expect(place.run("verify", record["run"]), 0)
    return sorted(str(record.get("signal", record["outcome"])) for record in records)


def age(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


# --- eras ---

@for_root
@case
def every_era_lists_the_same_tools_and_runs_them(place):
    lists = []
    for era in EVERY_ERA:
        with Server(place, era=era) as s:
            tools = s.ask("tools/list")["tools"]
            lists.append(tools)
            assert [tool["name"] for tool in tools] == TOOLS
            for tool in tools:
                assert tool["description"] and tool["inputSchema"]["type"] == "object"
                assert tool["inputSchema"]["additionalProperties"] is False
                assert set(tool["inputSchema"]["required"]) <= set(tool["inputSchema"]["properties"])
            assert s.sh("echo out; echo err >&2").good() == "out\nerr\n"
            assert s.sh("exit 3").bad("[exit status 3]") and s.sh("pwd").good() == "/work\n"
    assert all(one == lists[0] for one in lists)


@case
def discover_and_initialize_name_the_wall(place):
    with Server(place) as s:
        found = s.ask("server/discover")
        assert found["supportedVersions"] == [MODERN] and found["ttlMs"] > 0 and found["cacheScope"] == "private"
        assert found["_meta"][KEY + "serverInfo"]["name"] == "bawn"
        wall = found["capabilities"]["extensions"]["bawn/isolation"]
        assert wall["level"] == "hardened" and [wall["session"]] == sessions_of(place)
        assert "/work" in found["instructions"]
        run = s.sh("true")
        assert run.meta["bawn/session"] == wall["session"]
        spec = place.state / "bawn" / "sessions" / wall["session"] / "spec.json"
        assert hashlib.sha256(spec.read_bytes()).hexdigest() == wall["specSha256"]
    with Server(place, "--fakeroot", era=LEGACY[0]) as s:
        for asked in ("2025-03-26", "9999-01-01"):
            begun = s.answer(s.send("initialize", {"protocolVersion": asked}))["result"]
            assert begun["protocolVersion"] == LEGACY[0]
        assert begun["capabilities"]["experimental"]["bawn/isolation"]["level"] == "custom"


@case
def a_request_is_of_the_era_that_it_says(place):
    with Server(place) as s:
        assert s.error("ping") == -32601 and s.error("initialize") == -32601 and s.error("resources/list") == -32601
        s.write(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "tools/list"}) + "\n")
        assert s.answer("x")["error"]["code"] == -32602
        for meta in ({KEY + "protocolVersion": MODERN}, {KEY + "clientCapabilities": {}}, {}, []):
            s.write(json.dumps({"jsonrpc": "2.0", "id": "x", "method": "server/discover", "params": {"_meta": meta}})
                    + "\n")
            assert s.answer("x")["error"]["code"] == -32602, meta
        said = s.answer(s.send("tools/list", {"_meta": {KEY + "protocolVersion": "2030-01-01"}}))["error"]
        assert said["code"] == -32022 and said["data"] == {
            "supported": s.ask("server/discover")["supportedVersions"], "requested": "2030-01-01"}
    with Server(place, era=LEGACY[1]) as s:
        assert s.ask("ping") == {} and s.error("server/discover") == -32602 and s.error("resources/list") == -32601
        # One process may be asked by both.
        assert s.answer(s.send("tools/list", {"_meta": META}))["result"]["resultType"] == "complete"
        assert s.ask("tools/list")["tools"]


@case
def what_is_no_request_is_answered_and_forgotten(place):
    with Server(place) as s:
        rows = [(b"{", -32700), (b"\xff\xfe", -32700), (b"[]", -32600), (b'"x"', -32600), (b"{}", -32600),
                (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b"[" * 9999, -32700),
                (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600)]
        for line, code in rows:
            s.write(line + b"\n")
            said = s.line()
            assert said["error"]["code"] == code and said["id"] is None and said["error"]["message"], (line, said)
        s.write(b"\n  \n" + b'{"jsonrpc":"2.0","id":5,"result":{}}\n')
        s.tell("notifications/unheard")
        assert s.is_silent()
        for number in (0, -7, 2**70, "", "a \"b\" é \u2028"):
            assert s.answer(s.send("server/discover", number=number))["id"] == number
        # JSON of which no text can be made: who asked hears that, and does not wait.
        for text in ("\0", "\ud800", "\udc00\ud800", "\\\0"):
            assert s.error("tools/call", {"name": "bash", "arguments": {"command": f"echo {text}"}}) == -32602
        assert s.sh("echo '\\u0000 \U0001f600'").good() == "\\u0000 \U0001f600\n"
        assert s.error("tools/call", {"name": "rm"}) == -32602 and s.error("tools/call") == -32602
        assert s.error("tools/call", {"name": "bash", "arguments": []}) == -32602


@case
def a_line_may_be_16_MiB_long_and_not_longer(place):
    with Server(place) as s:
        head = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"'
        for size, code in ((16 << 20, -32602), ((16 << 20) + 1, -32600)):
            s.write(head + b"x" * (size - len(head) - 3) + b'"}}\n')
            said = s.line()
            assert said.get("result") == {} if code == -32602 else said["error"]["code"] == code, said
        assert s.sh("echo on").good() == "on\n"


# --- arguments and results ---

@case
def what_is_wrong_with_arguments_the_model_hears(place):
    with Server(place) as s:
        for arguments, part in (({}, "needs a command"), ({"command": ["ls"]}, "needs a command"),
                                ({"command": "x" * 130000}, "write a script"),
                                ({"command": "ls", "timeout": 0}, "milliseconds"),
                                ({"command": "ls", "timeout": "1s"}, "milliseconds"),
                                ({"command": "ls", "cwd": "/"}, "no argument 'cwd', and the command was not run"),
                                ({"command": "ls", "é" * 99: 1}, "it has command, timeout and description")):
            result = s.call("bash", **arguments)
            assert result.run is None and result.bad(part)
        assert s.sh("echo on", description="to see that it works").good() == "on\n"
        assert len(s.sh(f"printf %s {'x' * 120000} | wc -c").good()) == 7
        assert not list((place.state / "bawn" / "runs").iterdir()) or len(place.records()) == 2


@case
def a_command_is_one_whatever_it_begins_with(place):
    with Server(place) as s:
        assert s.sh("--version").status == 127 and s.sh("-c 'echo x'").status == 127


@for_root
@case
def every_result_names_a_record_that_verifies(place):
    with Server(place) as s:
        runs = [s.sh("echo 1").run, s.sh("exit 5").run, s.sh("kill -9 $$").run]
        session = s.ask("server/discover")["capabilities"]["extensions"]["bawn/isolation"]["session"]
    for run, outcome, status in zip(runs, ("exited", "exited", "signaled"), (0, 5, 9)):
        expect(place.run("verify", run), 0)
        record = [record for record in place.records() if record["run"] == run][0]
        said = record.get("status", record.get("signal"))
        assert (record["session"], record["outcome"], said) == (session, outcome, status), record


@case
def the_protocols_streams_are_none_of_a_commands(place):
    with Server(place) as s:
        assert s.sh("cat; wc -c; readlink /proc/self/fd/0").good() == "0\n/dev/null\n"
        assert s.sh("ls /proc/self/fd | wc -l").good() == "4\n"  # 0, 1, 2 and the folder itself
        s.sh("echo '{}' >&1; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}' >/proc/$PPID/fd/1 || true")
        assert s.is_silent()


@case
def output_is_text_and_its_end_is_kept(place):
    with Server(place) as s:
        assert s.sh(r"printf 'a\000b\377\303\251'").good() == "a\ufffdb\ufffd\u00e9"
        assert s.sh(r"printf '\033[31mred\a'").good() == "\033[31mred\a"
        text = s.sh("yes 0123456 | head -c 3000000; echo; echo end").good()
        assert text.startswith("[bawn: the first 1943237 bytes of the output are left out]\n"), text[:80]
        assert text.endswith("\nend\n") and len(text) < (1 << 20) + 8400
        # And nothing is left out of what fits.
        assert len(s.sh("yes | head -c 1048576").good()) == 1 << 20


@case
def a_command_has_the_time_it_asks_for(place):
    with Server(place) as s:
        began = time.monotonic()
        result = s.sh("echo begun; sleep 30", timeout=300)
        assert result.status == 124 and result.bad("begun\n", "its time was over", "limits.time: 300ms")
        assert time.monotonic() - began < 10 * cage.SLOW
    # No more than the session has.
    with Server(place, "--time", "1s") as s:
        assert s.sh("sleep 30", timeout=100000).bad("limits.time: 1s")
        assert s.sh("sleep 30", timeout=50).bad("limits.time: 50ms")


@case
def a_file_tool_has_its_time_too(place):
    for options, limit in (((), 120000), (("--time", "5s"), 5000), (("--time", "1h"), 120000)):
        with Server(place, *options) as s:
            runs = [s.call("glob", pattern="*").run, s.call("write", path="a", content="").run, s.sh("true").run]
        for run in runs:
            spec = json.loads(records.part(place.state / "bawn" / "runs" / run, "spec").read_text())
            assert spec["limits.time"] == limit, (options, spec["limits.time"])


@case
def what_the_wall_refused_is_in_the_text(place):
    with Server(place, "--allow", "allowed.example:443") as s:
        text = s.sh("curl -sS -m 5 https://denied.example/").bad("[bawn: network: denied.example")
        assert "[exit status" in text
        assert s.sh("unshare -U true || true").good().count("[bawn: ") == 1
        assert "[bawn:" not in s.sh("cat /etc/hosts").good()
    with Server(place, "--output", "1K") as s:
        assert "limits.output: 1K" in s.sh("yes | head -c 5000; exit 0").text
        assert "[bawn:" not in s.sh("yes | head -c 1000").good()


# --- beside each other ---

@for_root
@case
def calls_run_beside_each_other_and_requests_are_answered_meanwhile(place):
    for era in (MODERN, LEGACY[0]):
        with Server(place, era=era) as s:
            one = s.begin("bash", command="until test -e go; do sleep 0.01; done; echo one")
            assert s.ask("tools/list")["tools"]
            if era != MODERN:
                assert s.ask("ping") == {}
            assert s.sh("echo two").good() == "two\n"
            s.sh("touch go").good()
            assert Result(s.answer(one)["result"]).good() == "one\n"
            s.sh("rm go").good()


@case
def more_calls_than_there_is_room_for_are_refused(place):
    with Server(place) as s:
        numbers = [s.begin("bash", command="until test -e go; do sleep 0.05; done") for _ in range(32)]
        said = s.answer(s.begin("bash", command="true"))["error"]
        assert said["code"] == -32603 and "32 calls" in said["message"], said
        # And one that has the id of another.
        assert s.answer(s.send("tools/call", {"name": "bash", "arguments": {"command": "touch go"}},
                               number=numbers[0]))["error"]["code"] == -32603
        for number in numbers[:4]:
            s.tell("notifications/cancelled", requestId=number)
        done = None
        end = time.monotonic() + 10 * cage.SLOW
        while done is None and time.monotonic() < end:
            said = s.answer(s.begin("bash", command="touch go"))
            done = said.get("result")
        assert done, said
        for number in numbers[4:]:
            assert not s.answer(number)["result"]["isError"]


@for_root
@case
def a_cancelled_call_ends_and_is_not_answered(place):
    with Server(place) as s:
        for script in ("sleep 300", "trap '' TERM; while :; do sleep 1; done"):
            number = s.begin("bash", command=f"echo >started; {script}")
            while s.sh("test -e started").is_error:
                time.sleep(0.01)
            assert len(sessions.named("sleep")) == 1
            other = s.begin("bash", command="sleep 0.5; echo other")
            s.tell("notifications/cancelled", requestId=number, reason="enough")
            cage.wait_until(lambda: "sleep 300" not in str(cage.descendants()) and len(sessions.named("sleep")) == 0,
                            10, "the end of what was cancelled")
            assert Result(s.answer(other)["result"]).good() == "other\n"
            s.sh("rm started").good()
            assert s.is_silent()
        # An id is what it says, not how it is written.
        s.send("tools/call", {"name": "bash", "arguments": {"command": "echo >started; sleep 300"}}, number="a/é")
        while s.sh("test -e started").is_error:
            time.sleep(0.01)
        s.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a\\/é"}}\n')
        cage.wait_until(lambda: len(sessions.named("sleep")) == 0, 10, "the end of what was cancelled")
        s.tell("notifications/cancelled", requestId="unknown")
        assert s.sh("echo on").good() == "on\n"
    ends = ends_of(place)
    assert ends[:3] == ["15", "15", "9"] and set(ends[3:]) == {"exited"}, ends


@for_root
@case
def the_end_of_input_or_a_signal_ends_what_runs(place):
    ends = []
    for how in ("input", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        s = Server(place)
        is_stubborn = how in ("input", signal.SIGINT)
        s.begin("bash", command=("trap '' TERM; " if is_stubborn else "") + "sleep 300; sleep 300")
        cage.wait_until(lambda: sessions.named("sleep"), 10, "the start")
        began = time.monotonic()
        if how == "input":
            s.end()
        else:
            s.process.send_signal(how)
            assert s.process.wait(timeout=10 * cage.SLOW) == (-9 if how == signal.SIGKILL else 0), how
        cage.wait_until(lambda: not sessions.named("sleep"), 5, "the end")
        assert time.monotonic() - began < 4 * cage.SLOW, how
        sessions.settle()
        if how != signal.SIGKILL:
            ends.append("9" if is_stubborn else "15")
            assert ends_of(place) == sorted(ends), how
    assert len(sessions_of(place)) == 1, "only what was killed leaves a session"


@case
def a_signal_during_the_start_leaves_no_session(place):
    for how in 3 * (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        s = Server(place)
        end = time.monotonic() + 10 * cage.SLOW
        while not sessions_of(place) and time.monotonic() < end:
            pass
        s.process.send_signal(how)
        assert s.process.wait(timeout=10 * cage.SLOW) == 0 and sessions_of(place) == [], how


@case
def a_client_that_does_not_read_costs_no_more_memory(place):
    with Server(place) as s:
        # As JSON each is six times as long.
        numbers = [s.begin("bash", command="head -c 1000000 /dev/zero | tr '\\0' '\\1'") for _ in range(16)]
        cage.wait_until(lambda: not sessions.named("tr") and not sessions.named("head"), 20, "the end of the commands")
        status = pathlib.Path(f"/proc/{s.process.pid}/status").read_text()
        assert int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) < 40 << 10, status
        for number in numbers:
            assert Result(s.answer(number)["result"]).good() == "\1" * 1000000
        assert s.ask("tools/list")["tools"]


@case
def what_was_answered_is_written_whole_at_the_end(place):
    asked = [json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/list", "params": {"_meta": META}})
             for i in range(400)]
    for how in ("input", signal.SIGTERM):
        s = Server(place)
        # The last line of a file need not have an end.
        s.write("\n".join(asked))
        if how == "input":
            s.process.stdin.close()
        time.sleep(0.5)
        if how != "input":
            s.process.send_signal(how)
        lines, piece = b"", b"begun"
        while piece:
            piece = s.process.stdout.read1(1 << 18)
            lines += piece
            time.sleep(0.02)
        assert lines.endswith(b"\n") and len(lines) > 1 << 20
        ids = [json.loads(line)["id"] for line in lines.splitlines()]
        assert ids == list(range(400 if how == "input" else 399)), (how, ids)
        assert s.process.wait(timeout=10 * cage.SLOW) == 0


@case
def who_does_not_read_is_not_waited_for_at_the_end(place):
    s = Server(place)
    for i in range(100):
        s.send("tools/list", number=i)
    time.sleep(0.2)
    began = time.monotonic()
    s.process.stdin.close()
    assert s.process.wait(timeout=10 * cage.SLOW) == 0 and time.monotonic() - began < 4 * cage.SLOW
    assert sessions_of(place) == []


# --- the session ---

@for_root
@case
def what_changed_nothing_leaves_nothing(place):
    with Server(place) as s:
        assert s.sh("cat /etc/hosts >/tmp/x; echo >~/y").good() == ""
        assert s.sh("cat /tmp/x >/dev/null; test -e ~/y").good() == ""
        assert s.end() == ""
    assert sessions_of(place) == []


@for_root
@case
def what_changed_the_project_is_kept_and_can_be_applied(place):
    place.write("project/old", "old\n")
    s = Server(place)
    s.sh("echo new >new; echo changed >old").good()
    said = s.end()
    assert (place.project / "old").read_text() == "old\n" and not (place.project / "new").exists()
    [session] = sessions_of(place)
    assert f"bawn session diff {session[:8]}" in said and f"bawn session apply {session[:8]}" in said, said
    expect(place.run("session", "diff", session[:8]), 0, "changed")
    expect(place.run("session", "apply", session[:8]), 0)
    assert (place.project / "old").read_text() == "changed\n" and (place.project / "new").read_text() == "new\n"
    # It is kept for longer than one that somebody makes for himself, unless that is said.
    [listed] = json.loads(place.run("session", "list", "--json").stdout)["sessions"]
    assert age(listed["expires"]) - age(listed["used"]) == datetime.timedelta(days=7), listed


@case
def what_others_change_in_it_until_the_end_is_kept(place):
    s = Server(place)
    session = s.sh("true").meta["bawn/session"]
    other = place.start("session", "exec", session, "--", "sh", "-c",
                        "trap 'echo late > late; exit' TERM; echo ready; while :; do sleep 0.1; done")
    assert other.stdout.readline() == b"ready\n"
    assert "what the tools changed is in session" in s.end()
    other.communicate(timeout=20)
    expect(place.run("session", "diff", session), 0, "late")


@for_root
@case
def a_session_that_is_there_is_used_and_stays(place):
    made = sessions.Session(place, *place.spec("tools: true\n"))
    made.says("echo 1 >one")
    expect(made.stop(), 0)
    with Server(place, "--session", made.id[:8]) as s:
        assert s.sh("cat one; echo 2 >two").good() == "1\n"
        assert s.end() == ""
    [listed] = json.loads(place.run("session", "list", "--json").stdout)["sessions"]
    assert listed["state"] == "open" and made.says("cat two") == "2" and sessions_of(place) == [made.id]
    for words in (["--allow", "x.example:443"], ["--read-only"], ["--trust"], ["--ttl", "1h"]):
        expect(place.run("mcp", "--session", made.id, *words), 2, "fixed when a session is created")
    expect(place.run("mcp", "--session", "nobody"), 1, "cannot find session 'nobody'")
    expect(place.run("mcp", "--session", sessions.Session(place).id), 125, "was made without 'tools: true'")


@case
def that_a_session_was_removed_meanwhile_is_said(place):
    made = expect(place.run("session", "create", "-q", *place.spec("tools: true\n")), 0).stdout.strip()
    with Server(place, "--session", made) as s:
        assert s.sh("echo on").good() == "on\n"
        expect(place.run("session", "rm", made), 0)
        done = s.sh("echo on")
        assert done.is_error and "the command was not run" in done.text and made in done.text, done.text
        assert done.run is None


@case
def a_session_that_is_served_does_not_expire(place):
    with Server(place, "--ttl", "2s") as s:
        s.sh("echo 1 >one").good()
        time.sleep(3)
        expect(place.run("session", "sweep"), 0)
        assert s.sh("cat one").good() == "1\n"
        s.end()
    time.sleep(2.5)
    expect(place.run("session", "sweep"), 0, "is kept")
    expect(place.run("session", "sweep", "--discard"), 0)
    assert sessions_of(place) == []


@for_root
@case
def calls_may_share_a_cage(place):
    spec = place.spec("session: {background: true}\n")
    with Server(place, *spec) as s:
        s.sh("sleep 300 & echo $! >~/pid").good()
        assert s.sh("kill -0 $(cat ~/pid) && echo there").good() == "there\n"
        number = s.begin("bash", command="touch ~/begun; sleep 400")
        while s.sh("test -e ~/begun").is_error:
            time.sleep(0.01)
        s.tell("notifications/cancelled", requestId=number)
        cage.wait_until(lambda: len(sessions.named("sleep")) == 1, 5, "the end of what was cancelled")
        # Each leaves its streams to the keeper of the cage, which has others to hear at the same time.
        for _ in range(4):
            numbers = [s.begin("bash", command=f"echo {i}") for i in range(16)]
            assert [Result(s.answer(number)["result"]).good() for number in numbers] == [f"{i}\n" for i in range(16)]
        s.end()
    cage.wait_until(lambda: not sessions.named("sleep"), 5, "the end of the session")


@case
def wrong_use_is_told_in_a_sentence(place):
    expect(place.run("mcp", "ls"), 2, "cannot run a command")
    expect(place.run("mcp", "-f", "-"), 2, "standard input")
    expect(place.run("mcp", "--network", "some"), 125, "network.mode")
    expect(place.run("mcp", "--engine", "bwrap"), 125)
    assert sessions_of(place) == []
    assert place.run("mcp", "--json").stdout == ""


if __name__ == "__main__":
    sessions.main()
