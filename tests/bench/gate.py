"""What an allow-list costs: bytes through the gate, connections, memory, and the start of a run.

All that carries bytes leads to the same server on the host's loopback, and each takes its turn. The ends
of a connection copy nothing (stream.c), so that what lies between them is what is measured.
"""

import contextlib
import os
import pathlib
import select
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

SIZE = 2_000_000_000
ROUNDS = 5
PINGS = 1000
HELD = 1000
STARTS = 200
WAIT = 60  # seconds for any one answer
STALL = 20  # seconds for a transfer; pasta has been seen to stop in the middle of one
USER = "12345"  # owns nothing here: pasta gives root's rights up, and then cannot do its work
# pasta wants /dev/net/tun, which may be root's; in a mount namespace of its own it is everybody's.
PASTA_AS_ROOT = ["unshare", "--mount", "sh", "-c",
                 "mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec setpriv "
                 f"--reuid={USER} --regid={USER} --clear-groups --inh-caps=-all \"$@\"", "sh"]


class Shell:
    """A shell somewhere that is told what to run, line by line, and answers each with a line."""

    def __init__(self, stack, command, **how):
        self.process = subprocess.Popen([*command, "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, bufsize=0, **how)
        stack.callback(self.close)
        self.ask("echo ready")

    def ask(self, line):
        self.process.stdin.write(f"{line}\n".encode())
        return answer_of(self.process, line)

    def close(self):
        self.process.stdin.close()
        end(self.process)


def answer_of(process, what):
    if not select.select([process.stdout], [], [], WAIT)[0]:
        process.kill()
        raise SystemExit(f"{what}: no answer in {WAIT} s")
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{what}: failed, with status {process.wait(WAIT)}")
    return line.decode().strip()


def end(process):
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def started(stack, command):
    """A process that ends when the stack does."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
    stack.callback(end, process)
    stack.callback(process.terminate)
    return process


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def descendants(pid):
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield int(child)
            yield from descendants(int(child))


def find_process(pid, name):
    """The process of this name, among one and its descendants."""
    for one in (pid, *descendants(pid)):
        if os.path.basename(pathlib.Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")[0].decode()) == name:
            return one
    raise SystemExit(f"there is no {name}")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


class Carriers:
    """All ways to the server, open at once: name → (shell, host, port, process that carries or None)."""

    def __init__(self, stack, options, env, folder, port):
        self.ways, how = {}, {"env": env, "cwd": folder}
        self.ways["direct"] = (Shell(stack, [], **how), "127.0.0.1", port, None)
        bawn = Shell(stack, [options.bawn, "run", "--no-tty", "--host-port", str(port), "--"], **how)
        self.keeper = bawn.process.pid
        self.ways["gate"] = (bawn, "bawn-host", port, find_process(self.keeper, "bawn-gate"))
        if shutil.which("pasta"):
            as_user = PASTA_AS_ROOT if os.geteuid() == 0 else []
            shell = Shell(stack, [*as_user, "pasta", "--config-net", "-T", str(port), "--"], **how)
            self.ways["pasta"] = (shell, "127.0.0.1", port, find_process(shell.process.pid, "pasta"))
        if shutil.which("socat"):
            other = free_port()
            started(stack, ["socat", f"TCP-LISTEN:{other},bind=127.0.0.1,fork", f"TCP:127.0.0.1:{port}"])
            time.sleep(0.2)
            self.ways["socat"] = (Shell(stack, [], **how), "127.0.0.1", other, None)

    def ask(self, name, what, count):
        shell, host, port, _ = self.ways[name]
        limit = f"timeout {STALL} " if what != "hold" else ""
        said = shell.ask(f"{limit}./stream {what} {host} {port} {count} || echo failed")
        if said == "failed" and name in ("direct", "gate"):
            raise SystemExit(f"{name}: {what} failed")
        return said


def show_goal(name, value, limit, unit="", is_least=False):
    verdict = "ok" if (value >= limit if is_least else value <= limit) else "missed"
    print(f"  {name:44}{value:8.2f}{unit}   at {'least' if is_least else 'most'} {limit}{unit}: {verdict}", flush=True)


def show_bulk(carriers, what, text):
    took = {name: [] for name in carriers.ways}
    cpu = dict.fromkeys(carriers.ways, 0.0)
    for _ in range(ROUNDS):
        for name, (_, _, _, pid) in carriers.ways.items():
            before = cpu_seconds(pid) if pid else 0
            said = carriers.ask(name, what, SIZE)
            took[name].append(STALL if said == "failed" else float(said))
            cpu[name] += cpu_seconds(pid) - before if pid else 0
    rate = {name: SIZE / 1e6 / statistics.median(times) for name, times in took.items()}
    for name, times in took.items():
        used = f"{cpu[name] / ROUNDS / (SIZE / 1e9):5.2f} s of CPU per GB" if cpu[name] else " " * 21
        print(f"  {text + ', ' + name:24}{rate[name]:8.0f} MB/s   {used}   "
              f"({', '.join(f'{one:.2f}' for one in times)} s)", flush=True)
    for name, least in (("pasta", 1.0), ("socat", 2.0)):
        if name in rate:
            show_goal(f"{text}, the gate to {name}", rate["gate"] / rate[name], least, is_least=True)
        else:
            print(f"  {name} is missing; tools/install-deps.sh bench installs it")


def show_latency(carriers):
    us = {name: [] for name in ("direct", "gate")}
    for _ in range(ROUNDS):
        for name, times in us.items():
            times.append(float(carriers.ask(name, "ping", PINGS)))
    direct, gate = (statistics.median(times) / 1000 for times in us.values())
    print(f"  connect and a byte there and back, {PINGS}: {direct:.3f} ms directly, {gate:.3f} ms through the gate")
    show_goal("added", gate - direct, 0.3, " ms")


def pss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("smaps_rollup has no Pss")


def show_memory(carriers):
    pids = [find_process(carriers.keeper, name) for name in ("bawn-gate", "bawn-dialer")]
    if os.geteuid() != 0:
        print("  memory is not measured: only root may see that of the gate")
        return
    if carriers.ask("gate", "hold", HELD) != "held":
        raise SystemExit(f"{HELD} connections could not be held")
    gate, caller = map(pss_mb, pids)
    print(f"  gate {gate:.2f} MB, caller {caller:.2f} MB with {HELD} connections open")
    show_goal(f"memory of both with {HELD} connections", gate + caller, 32, " MB")


def start_ms(command, env, folder):
    start = time.perf_counter()
    subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


def show_start(options, env, folder):
    commands = {"without": [options.bawn, "run", "--no-tty", "--", "/bin/true"],
                "with": [options.bawn, "run", "--no-tty", "--allow", "example.org:443", "--", "/bin/true"]}
    took = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, command in commands.items():
            took[name].append(start_ms(command, env, folder))
    without, allowed = (statistics.median(times) for times in took.values())
    print(f"  a run of /bin/true: {without:.2f} ms without an allow-list, {allowed:.2f} ms with one "
          f"(fastest {min(took['without']):.2f} and {min(took['with']):.2f} ms)")
    show_goal("added", allowed - without, 1.0, " ms")


def show(options):
    print(f"The gate: {SIZE / 1e9:.0f} GB at a time, {ROUNDS} times in turn, medians")
    with tempfile.TemporaryDirectory(prefix="bawn-bench.") as top:
        folder = pathlib.Path(top) / "project"
        env = {"PATH": os.defpath, "HOME": top, "XDG_STATE_HOME": os.path.join(top, "state")}
        os.chmod(top, 0o755)
        folder.mkdir()
        shutil.copy(options.bench / "stream", folder)
        port = free_port()
        with contextlib.ExitStack() as stack:
            answer_of(started(stack, [folder / "stream", "serve", str(port)]), "stream serve")
            carriers = Carriers(stack, options, env, folder, port)
            show_bulk(carriers, "send", "upload")
            show_bulk(carriers, "receive", "download")
            show_latency(carriers)
            show_memory(carriers)
        show_start(options, env, folder)
