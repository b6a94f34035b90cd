#!/usr/bin/env python3
"""What a cage adds to real agents: to telling their version, and to a turn with a model on the loopback.

    measure.py BUILD BAWN BREAKABLE [ROUNDS]        prints tables

Outside is the same program that the cage runs, started directly, with the settings it has in the cage as far as they have
a place in a home, and no hook. Both have worked a turn before, and take turns, so that what else the machine does falls on both.
"""

import json
import shutil
import statistics
import subprocess
import sys
import time

from world import AGENTS, DONE, KEY, PATIENCE, PROMPT, bring, cage, model_that, native, npm, path, shell, turn

ADDED_MS, RATIO = 10, 1.05
ROUNDS = int(sys.argv.pop(3)) if len(sys.argv) > 3 else 9
# Where what a profile writes has its place in a home; of Codex's, see below.
PLACES = {"/etc/claude-code/managed-settings.json": ".claude/settings.json",
          "/home/agent/.claude/.claude.json": ".claude/.claude.json",
          "/home/agent/.gemini/settings.json": ".gemini/settings.json"}
CODEX = """
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "{base}"
env_key = "{variable}"
wire_api = "responses"
[analytics]
enabled = false
[features]
plugins = false
apps = false
daemon_auto_start = false
"""


class Outside:
    """The agent in a home of the same person's, without bawn."""

    def __init__(self, place, agent, model):
        self.place, self.agent = place, agent
        self.project = place.make("outside")
        base = f"http://127.0.0.1:{model.port}{agent.path}"
        shown = cage.expect(place.run("agent", "show", agent.name, "--json"), 0).stdout
        spec = json.loads(shown.replace("@PROJECT@", str(self.project)))["spec"]
        self.options = spec["command"][1:]
        self.env = {**self.pairs(spec["env.set"]), "HOME": str(place.home), "PATH": path(), agent.variable: KEY,
                    agent.base: base}
        self.env.update(dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR", "BUN_TMPDIR"), str(place.make("tmp"))))
        for name, text in self.pairs([*spec.get("files", []), *spec.get("initial_files", [])]).items():
            if name in PLACES:
                settings = json.loads(text)
                for part in ("hooks", "context"):  # the latter is what is in the cage's /etc
                    settings.pop(part, None)
                place.write(PLACES[name], json.dumps(settings))
        place.write(".codex/config.toml", CODEX.format(base=base, variable=agent.variable))

    def pairs(self, items):
        """NAME=VALUE, of which the cage's home becomes this one; what is in /etc there is not here."""
        found = dict(item.split("=", 1) for item in items)
        return {name: value.replace("/home/agent", str(self.place.home)) for name, value in found.items()
                if not value.startswith("/etc")}

    def run(self, *words):
        done = subprocess.run(self.place.words(words, native(self.agent)), env=self.env, cwd=self.project,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=PATIENCE)
        return cage.expect(done, 0)

    def turn(self):
        assert DONE in self.run(*self.agent.turn, PROMPT, *self.options).stdout
        made = self.project / "made"
        assert made.exists(), "the tool was not run"
        made.unlink()


def by_turns(ways, rounds):
    """Medians in ms, of each way."""
    times = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, do in ways.items():
            began = time.perf_counter()
            do()
            if number:  # the first one fills caches, and makes what is kept
                times[name].append((time.perf_counter() - began) * 1000)
    return {name: statistics.median(all_of) for name, all_of in times.items()}


def measure(agent, place):
    with model_that(shell("echo x > made")) as model:
        outside = Outside(place, agent, model)
        version = by_turns({
            "outside": lambda: outside.run("--version"),
            "caged": lambda: cage.expect(place.run("run", "-q", "--agent", agent.name, "--", "--version",
                                                   env={"PATH": path()}), 0)}, 2 * ROUNDS)
        turns = by_turns({"outside": outside.turn, "caged": lambda: turn(place, agent, model, "-q")}, ROUNDS)
    return version, turns


def verdict(value, limit):
    return "ok" if value <= limit else "missed"


def show_all():
    cage.adopt_orphans()
    try:
        cage.prepare()
        print(f"  {'':10}{'--version':>12}{'caged':>12}{'added':>12}{'':24}{'a turn':>12}{'caged':>12}{'ratio':>8}")
        for agent in AGENTS.values():
            place = cage.Place(cage.USER)
            try:
                version, turns = measure(agent, place)
            finally:
                place.done()
            added, ratio = version["caged"] - version["outside"], turns["caged"] / turns["outside"]
            print(f"  {agent.name:10}{version['outside']:9.1f} ms{version['caged']:9.1f} ms{added:9.1f} ms"
                  f"{f'   at most {ADDED_MS}: {verdict(added, ADDED_MS)}':24}{turns['outside']:9.0f} ms"
                  f"{turns['caged']:9.0f} ms{ratio:8.3f}   at most {RATIO}: {verdict(ratio, RATIO)}", flush=True)
    finally:
        shutil.rmtree(cage.FILES)


if __name__ == "__main__":
    try:
        bring()
    except npm.Missing as problem:
        sys.exit(f"there are no agents to measure: {problem}")
    show_all()
