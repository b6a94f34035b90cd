"""What the suites of real cages share: who runs bawn, what is expected of it, what it may leave.

A suite is a file of cases, each run in a cage of root's and in one of a user's:

    run.py BAWN BREAKABLE        prints TAP

Others may use the machine meanwhile, other suites among them. What is ours is known by descent: the suite adopts
every orphan below it, so whatever a run leaves running is a descendant, in whichever namespace it is. Its mounts
are its own.
"""

import ctypes
import hashlib
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import accounts  # noqa: E402
import machine  # noqa: E402
import records  # noqa: E402

USER = 12345  # an id that owns nothing here
RESERVED = 2130706432  # ids of root's cages are at least this
PR_SET_CHILD_SUBREAPER = 36
SLOW = int(os.environ.get("BAWN_TEST_SLOW", "1"))  # how many times slower this machine is: emulated ones are
FILES = pathlib.Path(tempfile.mkdtemp(prefix="bawn-cage-"))  # what a user may execute, wherever we are
BAWN, BREAKABLE = FILES / "bawn", FILES / "bawn-breakable"
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "src"  # whose headers the tools use
TOOL = FILES / "tool"  # tool.c
CASES = []


def case(function):
    CASES.append(function)
    return function


def of_root(function):
    """A case that means something for root's cages only."""
    function.is_for = lambda uid: uid == 0
    return function


def of_users(function):
    function.is_for = lambda uid: uid != 0
    return function


class Skip(Exception):
    """Why a case says nothing here."""


class Place:
    """A home, a project and a state of a person's own, gone afterwards."""

    def __init__(self, uid):
        self.uid = uid
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-cage-"))
        self.home, self.state = self.top / "home", self.top / "state"
        self.project = self.home / "project"
        for path in (self.top, self.home, self.project, self.state):
            path.mkdir(exist_ok=True)
            os.chown(path, uid, uid)
        self.top.chmod(0o755)

    def make(self, path, mode=0o755):
        """A folder, below the home unless absolute, with all that leads to it."""
        path = self.home / path
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        self.own(path)
        return path

    def write(self, path, content, mode=0o644):
        path = self.home / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(mode)
        self.own(path)
        return path

    def own(self, path):
        while path != self.top:
            os.chown(path, self.uid, self.uid, follow_symlinks=False)
            path = path.parent

    def spec(self, text):
        """A spec that --trust makes the operator's word, as options."""
        return ["--trust", "-f", self.write("spec.yaml", "version: 1\n" + text)]

    def words(self, args, program=BAWN, groups=()):
        command = [str(word) for word in (program, *args)]
        return [*accounts.login(self.uid, *groups), *command]

    def environ(self, env):
        base = {"HOME": str(self.home), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(self.state),
                "BAWN_STAY_SECONDS": os.environ.get("BAWN_TEST_STAY", "0")}
        return {**base, **(env or {})}

    def start(self, *args, env=None, cwd=None, program=BAWN, groups=(), **more):
        """bawn in the background; standard streams are pipes of the person's unless said otherwise."""
        ours, theirs = {}, []
        for name in ("stdin", "stdout", "stderr"):
            if name not in more:
                read, write = os.pipe()
                os.fchown(read, self.uid, self.uid)
                near, more[name] = (write, read) if name == "stdin" else (read, write)
                ours[name] = open(near, "wb" if name == "stdin" else "rb")  # pylint: disable=consider-using-with
                theirs.append(more[name])
        process = subprocess.Popen(self.words(args, program, groups), cwd=cwd or self.project,
                                   env=self.environ(env), **more)
        for fd in theirs:
            os.close(fd)
        for name, stream in ours.items():
            setattr(process, name, stream)
        return process

    def run(self, *args, stdin=b"", **more):
        """bawn to its end, which is soon; what it printed is text."""
        if stdin is not None and not isinstance(stdin, bytes):
            more["stdin"], stdin = stdin, None
        process = self.start(*args, **more)
        try:
            out, err = process.communicate(stdin, timeout=20 * SLOW)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"still running after {20 * SLOW} s: {args}") from None
        return subprocess.CompletedProcess(args, process.returncode, decode(out), decode(err))

    def sh(self, script, *options, **more):
        return self.run("run", *options, "--", "sh", "-c", script, **more)

    def tool(self, *args, options=(), **more):
        """tool.c in a cage, bound at /tool."""
        return self.run("run", "-v", f"{TOOL}:/tool", *options, "--", "/tool", *args, **more)

    def records(self):
        folders = sorted(self.state.glob("bawn/runs/*"))
        return [records.read(folder) for folder in folders]

    def record(self):
        """The record of the last run."""
        folders = sorted(self.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
        return records.read(folders[-1])

    def done(self):
        # Of a run that was killed, or a session, an overlay's own folder, which nobody may enter.
        for work in ("runs/*/*layer", "sessions/*/w/*/*layer", "layers/*"):
            for path in self.top.glob(f"**/bawn/{work}/work/work"):
                path.chmod(0o700)
        shutil.rmtree(self.top)


def in_mount_namespace(place, prepare, *args):
    """bawn to its end in a mount namespace of its own, where a script of root's has run before."""
    words = ["unshare", "-m", "sh", "-ec", prepare + '\nexec "$@"', "sh", *place.words(args)]
    done = subprocess.run(words, cwd=place.project, env=place.environ(None), capture_output=True, check=False,
                          timeout=20 * SLOW, stdin=subprocess.DEVNULL)
    return subprocess.CompletedProcess(words, done.returncode, decode(done.stdout), decode(done.stderr))


def decode(output):
    return None if output is None else output.decode("utf-8", "replace")


def expect(done, status, *parts):
    said = (done.stdout or "") + (done.stderr or "")
    assert done.returncode == status, f"exit {done.returncode}, not {status}:\n{said}"
    for part in parts:
        assert part in said, f"{part!r} is not in:\n{said}"
    return done


def expect_refusal(done, *parts):
    """125, one sentence of the form that errors have, at most one hint, and nothing printed by the command."""
    expect(done, 125, *parts)
    assert done.stdout in ("", None), f"the command printed:\n{done.stdout}"
    lines = done.stderr.splitlines()
    assert lines[0].startswith("bawn: cannot "), f"not of the form of errors:\n{done.stderr}"
    assert all(line.startswith("hint: ") for line in lines[1:]) and len(lines) < 3, f"not one sentence:\n{done.stderr}"
    return done


def output(done, wanted):
    expect(done, 0)
    assert done.stdout == wanted, f"printed {done.stdout!r}, not {wanted!r}; and {done.stderr!r}"


def picture(top):
    """Everything below a folder that a run could change, by name."""
    found = {}
    for folder, folders, files in os.walk(top):
        for name in [".", *folders, *files]:
            path = os.path.join(folder, name)
            st = os.lstat(path)
            content = None
            if stat.S_ISREG(st.st_mode) and os.access(path, os.R_OK):
                content = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                content = os.readlink(path)
            found[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_mtime_ns, content)
    return found


def wait_until(is_so, seconds, what):
    end = time.monotonic() + seconds * SLOW
    while not is_so():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.005)


# --- what is left behind ---

def adopt_orphans():
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Under nohup, or in a shell's background, what is started would ignore them too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def descendants():
    """{pid: name and state} of what descends from this process and is not dead."""
    parents, said = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                text = pathlib.Path("/proc", entry, "stat").read_text(errors="replace")
            except OSError:
                continue
            rest = text[text.rindex(")") + 2:].split()
            parents[int(entry)] = int(rest[1])
            said[int(entry)] = f"{text[text.index('('):text.rindex(')') + 1]} {rest[0]}"
    found = set()
    for pid in parents:
        line = []
        while pid in parents and pid not in found and pid != os.getpid():
            line.append(pid)
            pid = parents[pid]
        if pid == os.getpid() or pid in found:
            found.update(line)
    return {pid: said[pid] for pid in found if not said[pid].endswith(" Z")}


def reap():
    """Buries adopted children; only where nobody waits for children of its own."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def mounts():
    lines = pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line.split(" ", 1)[1] for line in lines}


def strays():
    """What lies where programs leave things, and may be a cage's."""
    found = set()
    for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/"):
        for entry in os.scandir(folder):
            try:
                owner = entry.stat(follow_symlinks=False).st_uid
            except OSError:
                continue
            is_suite = entry.name.startswith("bawn-") and owner < RESERVED  # of any account that a suite beside us made
            if not is_suite and (owner == USER or owner >= RESERVED or "bawn" in entry.name):
                found.add(entry.path)
    return found


def left_running():
    """What still runs five seconds later: on a busy machine the kernel ends what it was told to end a moment after."""
    until = time.monotonic() + 5
    while True:
        reap()
        left = descendants()
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


class Before:
    """The machine as it was before the suite."""

    def __init__(self):
        self.mounts, self.strays, self.hostname = mounts(), strays(), os.uname().nodename

    def check(self):
        left = left_running()
        assert not left, f"processes are left: {left}"
        assert mounts() == self.mounts, f"mounts changed: {mounts() ^ self.mounts}"
        assert strays() <= self.strays, f"files are left: {strays() - self.strays}"
        assert os.uname().nodename == self.hostname


# --- running the cases ---

def compile_tool(source, target):
    """A static program, so that it runs in any image."""
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run([*compiler, "-O1", "-D_GNU_SOURCE", "-I", SOURCES, "-static", "-o", target, source], check=True)


def prepare():
    """The programs, where a user may execute them."""
    for name, source in zip((BAWN, BREAKABLE), sys.argv[1:3]):
        shutil.copy(source, name)
    vault = pathlib.Path(sys.argv[1]).resolve().with_name("bawn-vault")
    if vault.exists():
        shutil.copy(vault, FILES / vault.name)
    compile_tool(pathlib.Path(__file__).with_name("tool.c"), TOOL)
    FILES.chmod(0o755)


def tell(number, name, error):
    print(f"{'not ok' if error and not isinstance(error, Skip) else 'ok'} {number} - {name}"
          + (f" # SKIP {error}" if isinstance(error, Skip) else ""))
    if error and not isinstance(error, Skip):
        print("\n".join("# " + line for line in f"{type(error).__name__}: {error}".splitlines()))
    sys.stdout.flush()


def run_case(function, uid):
    place = Place(uid)
    try:
        function(place)
        left = left_running()
        assert not left, f"processes are left: {left}"
    except Exception as e:  # a failed case is told, and the rest still run
        return e
    finally:
        place.done()
    return None


def tmpfs_has_attributes():
    """Since Linux 6.6: so the kernel can hold limits.disk for a captured project too."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        try:
            os.setxattr(file.name, "user.test", b"")
        except OSError:
            return False
    return True


def main():
    chosen = [function for function in CASES if all(re.search(word, function.__name__) for word in sys.argv[3:])]
    uids = [0, USER] if os.geteuid() == 0 else [os.geteuid()]
    chosen = [(function, uid) for uid in uids for function in chosen
              if getattr(function, "is_for", lambda uid: True)(uid)]
    failed = 0
    adopt_orphans()
    try:
        prepare()
        machine.own_mounts()
        before = Before()
        print(f"1..{len(chosen) + 1}")
        for number, (function, uid) in enumerate(chosen, 1):
            error = run_case(function, uid)
            failed += error is not None and not isinstance(error, Skip)
            tell(number, f"{function.__name__} as {'root' if uid == 0 else 'a user'}", error)
        try:
            before.check()
            tell(len(chosen) + 1, "nothing_is_left_behind", None)
        except AssertionError as e:
            failed += 1
            tell(len(chosen) + 1, "nothing_is_left_behind", e)
    finally:
        shutil.rmtree(FILES)
    sys.exit(1 if failed else 0)
