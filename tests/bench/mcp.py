"""Calls of bawn mcp, one after the other, beside the same command by bawn session exec, with a process that stays for it
and without; taken by turns, so that what else the machine does falls on all of them.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import time

KEY = "io.modelcontextprotocol/"
META = {KEY + "protocolVersion": "2026-07-28", KEY + "clientCapabilities": {}}
GOALS = {"bash: true": 3, "read: /etc/hosts": 1.5, "bawn session exec -- true": 5}
CALLS = {"bash": {"command": "true"}, "read": {"path": "/etc/hosts"}}


def ask(server, method, **params):
    line = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    server.stdin.write(json.dumps(line).encode() + b"\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())["result"]


def call(server, tool):
    result = ask(server, "tools/call", name=tool, arguments=CALLS[tool])
    assert not result["isError"], result


def execute(bawn, session, env, project, **more):
    subprocess.run([bawn, "session", "exec", session, "--", "true"], env={**env, **more}, cwd=project, check=True,
                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def measure(bawn, env, project, rounds):
    """The times of each, in ms."""
    session = subprocess.run([bawn, "session", "create"], env=env, cwd=project, check=True, stdout=subprocess.PIPE,
                             text=True).stdout.strip()
    with subprocess.Popen([bawn, "mcp"], env=env, cwd=project, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as server:
        what = {
            "bash: true": lambda: call(server, "bash"),
            "read: /etc/hosts": lambda: call(server, "read"),
            "tools/list": lambda: ask(server, "tools/list"),
            "bawn session exec -- true": lambda: execute(bawn, session, env, project),
            "the same, and nobody stays": lambda: execute(bawn, session, env, project, BAWN_STAY_SECONDS="0"),
        }
        times = {name: [] for name in what}
        for _ in range(rounds):
            for name, do in what.items():
                began = time.perf_counter()
                do()
                times[name].append((time.perf_counter() - began) * 1000)
        server.stdin.close()
    return {name: sorted(all_of) for name, all_of in times.items()}


def show(options):
    print("Calls of bawn mcp, until their answer is there")
    with tempfile.TemporaryDirectory(prefix="bawn-bench-", dir="/var/tmp") as folder:
        top = pathlib.Path(folder)
        (top / "project").mkdir()
        env = {"PATH": os.environ["PATH"], "HOME": folder, "XDG_STATE_HOME": str(top / "state")}
        for name, times in measure(options.bawn, env, top / "project", options.rounds).items():
            median, goal = times[len(times) // 2], GOALS.get(name)
            judged = "" if goal is None else f"   (goal at most {goal:g}: {'ok' if median <= goal else 'missed'})"
            print(f"  {name:42}{median:9.2f} ms{times[len(times) * 95 // 100]:9.2f} ms at p95{judged}")
