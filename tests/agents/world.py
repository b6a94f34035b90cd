"""What the suites of real agents share: the agents, a model that is told what to say, and a person who runs them.

    turns.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP

The agents are what their makers publish: package.json names them, npm brings them into the build folder, by digest
and without running anything, and nothing of them is part of bawn. Without --all only those cases are run that
in_short marks, as a user. A machine that npm cannot install on skips them, and says so.

To take newer ones, change package.json and then

    npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
"""

import atexit
import contextlib
import ctypes
import dataclasses
import functools
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / name) for name in ("cage", "peers", "terminal")]
import npm  # noqa: E402
import place as cage  # noqa: E402

sys.path.append(str(HERE.parent / "net"))
SPEC = importlib.util.spec_from_file_location("internet_world", HERE.parent / "net" / "world.py")
net = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(net)

BUILD = sys.argv.pop(1)
IS_WHOLE = "--all" in sys.argv and not sys.argv.remove("--all")
PATIENCE = 240  # seconds that no turn takes, however busy the machine: the agents are large
CLONE_NEWNS, MNT_DETACH = 1 << 17, 2
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18
KEY = "key-of-the-tests-0123456789"
PROMPT = "do what you have to"
DONE = "said-by-the-model"


@dataclasses.dataclass
class Agent:
    """How one agent is spoken to: by its words, its variables, and the names of its own tools."""
    name: str
    turn: list  # words before a prompt, without a terminal …
    more: list  # … and those that go on with what was last
    variable: str
    header: str
    base: str
    path: str
    folders: list  # of a person's home that are the agent's
    ready: str  # what its terminal shows when it waits for a word
    quit: str
    read: callable = None  # a step of a script: its own tool for reading a file
    write: callable = None
    has_hook: bool = True

    def options(self, model, key=KEY):
        return ["--agent", self.name, "--host-port", model.port, "-e", f"{self.variable}={key}",
                "-e", f"{self.base}=http://bawn-host:{model.port}{self.path}"]


def step(tool, **fixed):
    """A step that calls a tool, by the agent's own names for what it takes."""
    return lambda **given: {"tool": tool, "input": {fixed.get(name, name): text for name, text in given.items()}}


def patch(path, content):
    """Codex has one tool, for programs; among what they may call is a patch."""
    lines = "".join(f"+{line}\n" for line in content.splitlines())
    text = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
    return {"tool": "exec", "input": {"text": f"text(JSON.stringify(await tools.apply_patch({json.dumps(text)})))"}}


AGENTS = {agent.name: agent for agent in (
    Agent("claude", ["-p"], ["-c", "-p"], "ANTHROPIC_API_KEY", "x-api-key", "ANTHROPIC_BASE_URL", "", [".claude"],
          "bypass permissions on", "/exit", step("Read", path="file_path"), step("Write", path="file_path")),
    Agent("codex", ["exec", "--skip-git-repo-check"], ["exec", "--skip-git-repo-check", "resume", "--last"],
          "OPENAI_API_KEY", "authorization", "OPENAI_BASE_URL", "/v1", [".codex"], "? for shortcuts", "/quit",
          None, patch),
    Agent("gemini", ["-p"], ["--resume", "latest", "-p"], "GEMINI_API_KEY", "x-goog-api-key",
          "GOOGLE_GEMINI_BASE_URL", "", [".gemini"], "Type your message", "/quit", step("read_file", path="file_path"),
          step("write_file", path="file_path")),
    Agent("opencode", ["run"], ["run", "-c"], "ANTHROPIC_API_KEY", "x-api-key", "ANTHROPIC_BASE_URL", "/v1",
          [".local/share/opencode", ".local/state/opencode", ".config/opencode"], "Ask anything", "/exit",
          step("read", path="filePath"), step("write", path="filePath"), has_hook=False),
)}


# --- cases ---

def in_short(*names):
    """What `make test` has time for: with these agents, or all."""
    def mark(function):
        function.short_names = names or tuple(AGENTS)
        return function
    return mark


def each(*names):
    """A case for each of these agents, or all: it gets the place, and the agent."""
    def add(function):
        for name in names or AGENTS:
            def one(place, agent=AGENTS[name]):
                function(place, agent)
            one.__name__ = f"{name}_{function.__name__}"
            one.is_short = name in getattr(function, "short_names", ())
            cage.case(one)
        return function
    return add


def main(begin=lambda: None):
    try:
        bring()
        begin()
    except npm.Missing as problem:
        print(f"1..0 # SKIP {problem}")
        return
    if not IS_WHOLE:
        cage.CASES[:] = [cage.of_users(one) for one in cage.CASES if one.is_short]
    cage.main()


# --- the programs ---

@functools.cache
def packages():
    return npm.Node(BUILD, HERE)


@functools.cache
def bring():
    """The packages, where a user may execute them, wherever the build folder is."""
    return show(packages().folder) if os.geteuid() == 0 else packages().folder


def show(folder):
    """A read-only mount of it that nobody else sees, and that ends with this process."""
    libc, place = ctypes.CDLL(None, use_errno=True), tempfile.mkdtemp(prefix="bawn-cage-")
    os.chmod(place, 0o755)
    for failed in (libc.unshare(CLONE_NEWNS),
                   libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None),
                   libc.mount(bytes(folder), place.encode(), None, MS_BIND, None),
                   libc.mount(b"none", place.encode(), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)):
        if failed:
            raise npm.Missing(f"the packages cannot be shown to a user: {os.strerror(ctypes.get_errno())}")
    atexit.register(lambda: (libc.umount2(place.encode(), MNT_DETACH), os.rmdir(place)))
    return pathlib.Path(place)


# What npm's commands start in the end, and cages at once.
NATIVE = {"claude": "@anthropic-ai/claude-code-linux-x64/claude",
          "codex": "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
          "gemini": ".bin/gemini", "opencode": "opencode-linux-x64/bin/opencode"}


def programs():
    return bring() / "node_modules" / ".bin"


def native(agent):
    return bring() / "node_modules" / NATIVE[agent.name]


def path():
    """Agents first, and what a person has beside them."""
    return f"{programs()}:/usr/bin:/bin"


# --- the model ---

class Model:
    """A model with a script; see fake-model.js."""

    def __init__(self, *steps):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bawn-cage-"))
        self.script(*steps)
        self.port = self.start([packages().program, str(HERE / "fake-model.js"), str(self.folder)]).split()[1]

    def start(self, words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)  # pylint: disable=consider-using-with
        return self.process.stdout.readline()

    def script(self, *steps, text=DONE, **more):
        draft = self.folder / "draft"
        draft.write_text(json.dumps({"steps": steps, "text": text, **more}))
        draft.rename(self.folder / "script.json")

    def requests(self):
        path_ = self.folder / "requests.jsonl"
        return [json.loads(line) for line in path_.read_text().splitlines()] if path_.exists() else []

    def heard(self):
        """All that an agent ever told it."""
        return json.dumps([request["body"] for request in self.requests()])

    def forget(self):
        (self.folder / "requests.jsonl").unlink(missing_ok=True)

    def end(self):
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def model_that(*steps):
    model = Model(*steps)
    try:
        yield model
    finally:
        model.end()


def shell(command):
    return {"shell": command}


# --- who runs them ---

def bawn(place, *words, stdin=b"", **more):
    """bawn to its end, with the agents in the person's PATH."""
    process = place.start(*words, env={"PATH": path(), **more.pop("env", {})}, **more)
    try:
        out, err = process.communicate(stdin, timeout=PATIENCE * cage.SLOW)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        raise AssertionError(f"hung: {words}\n{cage.decode(out)}{cage.decode(err)}") from None
    return subprocess.CompletedProcess(words, process.returncode, cage.decode(out), cage.decode(err))


def turn(place, agent, model, *options, words=None, **more):
    """One turn without a terminal: the agent asks the model until the script is at its end."""
    words = [*(words or agent.turn), PROMPT]
    done = bawn(place, "run", *agent.options(model), *options, "--", *words, **more)
    cage.expect(done, 0, DONE)
    return done


def events(place, *types):
    """What is on the last run's log, of these types."""
    found = json.loads(cage.expect(bawn(place, "log", "--json"), 0).stdout)
    assert found["chain"] == "whole", found["chain"]
    return [event for event in found["events"] if event["type"] in types]


def last_run(place):
    return max(place.state.glob("bawn/runs/*"), key=lambda path_: path_.stat().st_ctime_ns).name
