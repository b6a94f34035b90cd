"""How fast what a command prints is shown, and a key echoed, through a cage's terminal."""

import os
import pty
import statistics
import subprocess
import tempfile
import time
import tty

SIZE = 1 << 30
KEYS = 2000
PRINT = f"yes | head -c {SIZE}"
ECHO = "stty raw -echo; echo ready; exec cat"


class Terminal:
    """A command in the foreground of a terminal of its own, which passes everything as it is."""

    def __init__(self, command, env, folder):
        self.near, far = pty.openpty()
        tty.setraw(far)
        self.process = subprocess.Popen(command, stdin=far, stdout=far, stderr=subprocess.DEVNULL, env=env,
                                        cwd=folder, start_new_session=True)
        os.close(far)

    def read(self):
        try:
            return os.read(self.near, 1 << 16)
        except OSError:  # the far end is closed
            return b""

    def close(self):
        os.close(self.near)
        self.process.wait()


def seconds_to_print(command, env, folder):
    start = time.perf_counter()
    terminal = Terminal(command, env, folder)
    got = 0
    while chunk := terminal.read():
        got += len(chunk)
    took = time.perf_counter() - start
    terminal.close()
    if got != SIZE:
        raise SystemExit(f"{command[0]} showed {got} bytes of {SIZE}")
    return took


def median_echo_us(command, env, folder):
    terminal = Terminal(command, env, folder)
    seen = b""
    while b"ready" not in seen:
        seen += terminal.read()
    time.sleep(0.1)
    times = []
    for _ in range(KEYS):
        start = time.perf_counter()
        os.write(terminal.near, b"x")
        if terminal.read() != b"x":
            raise SystemExit(f"{command[0]} echoed something else")
        times.append((time.perf_counter() - start) * 1e6)
    terminal.close()
    return statistics.median(times)


def show(options):
    print(f"A terminal: {SIZE >> 20} MB printed by `{PRINT}`, three times in turn, and {KEYS} keys echoed")
    with tempfile.TemporaryDirectory(prefix="bawn-bench.") as folder:
        env = {"PATH": os.defpath, "HOME": folder, "XDG_STATE_HOME": os.path.join(folder, "state")}
        project = os.path.join(folder, "project")
        os.mkdir(project)
        printers = {"bawn": [options.bawn, "run", "--", "sh", "-c", PRINT],
                    "bawn --raw": [options.bawn, "run", "--raw", "--", "sh", "-c", PRINT],
                    "script": ["script", "-qc", PRINT, "/dev/null"]}
        took = {name: [] for name in printers}
        for _ in range(3):
            for name, command in printers.items():
                took[name].append(seconds_to_print(command, env, project))
        best = {name: min(times) for name, times in took.items()}
        for name, times in took.items():
            print(f"  {name:24}{SIZE / 1e6 / best[name]:8.0f} MB/s   "
                  f"({', '.join(f'{one:.2f}' for one in times)} s)")
        ratio = best["script"] / best["bawn"]
        print(f"  {'bawn to script':24}{ratio:8.2f}   at least 0.8: {'ok' if ratio >= 0.8 else 'missed'}")
        plain = median_echo_us(["sh", "-c", ECHO], env, project)
        caged = median_echo_us([options.bawn, "run", "--", "sh", "-c", ECHO], env, project)
        added = (caged - plain) / 1000
        print(f"  {'a key, from press to echo':40}{plain / 1000:.3f} ms plain, {caged / 1000:.3f} ms caged")
        print(f"  {'added':40}{added:.3f} ms   at most 0.2 ms: {'ok' if added <= 0.2 else 'missed'}")
