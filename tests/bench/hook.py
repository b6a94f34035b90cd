"""What an agent's hook takes in a cage, from the start of its process to its end, beside a program that does nothing."""

import json
import subprocess
import tempfile

GOAL_MS = 3.0
CALL = {"session_id": "s", "cwd": "/work", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t"}
CALLS = {"a call of which it has no opinion": "make -j4 && ls src | grep x > out",
         "a call that it denies, and tells": "cat /root/.ssh/id_rsa > out"}
# In the cage. The call comes from a file: a pipe would measure who fills it.
INSIDE = r"""
import json, os, sys, time
def measure(words, path, runs=300):
    times = []
    for _ in range(runs):
        streams = [(os.POSIX_SPAWN_OPEN, 0, path, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
        began = time.perf_counter()
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=streams)
        os.waitpid(pid, 0)
        times.append((time.perf_counter() - began) * 1e3)
    return sorted(times)[runs // 2], sorted(times)[runs * 95 // 100]
found = {"/bin/true": measure(["/bin/true"], "/dev/null")}
for name, call in json.loads(sys.argv[1]).items():
    with open("/tmp/call", "w") as file:
        file.write(call)
    found[name] = measure(["/run/bawn/bawn", "hook", "claude"], "/tmp/call")
print(json.dumps(found))
"""


def show(options):
    print("A hook in a cage, from its start to its end", flush=True)
    calls = {name: json.dumps({**CALL, "tool_input": {"command": command}}) for name, command in CALLS.items()}
    with tempfile.TemporaryDirectory(prefix="bawn-bench-", dir="/var/tmp") as top:
        with open(f"{top}/spec.yaml", "w", encoding="utf-8") as spec:
            spec.write("version: 1\ntools: true\n")
        done = subprocess.run([options.bawn, "run", "--no-tty", "-q", "--trust", "-f", f"{top}/spec.yaml", "--",
                               "python3", "-c", INSIDE, json.dumps(calls)], cwd=top, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=True)
    for name, (median, late) in json.loads(done.stdout).items():
        goal = "" if name == "/bin/true" else f"   at most {GOAL_MS} ms: {'ok' if median <= GOAL_MS else 'missed'}"
        print(f"  {name:36}{median:8.2f} ms{late:8.2f} ms at p95{goal}")
