#!/usr/bin/env python3
"""Each agent, as its maker publishes it, works in a hardened cage: what it does is reviewed, kept and on record.

    turns.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import json
import subprocess
import urllib.parse

from world import KEY, bawn, cage, each, in_short, last_run, main, model_that, shell, turn

WROTE = "written-by-a-tool"
MINE = "of-the-person"


def home_of(place):
    """What there is of a person beside the project."""
    return {path: seen for path, seen in cage.picture(place.home).items() if not path.startswith(str(place.project))}


def use_outside(place, agent):
    """A home as of somebody who uses the agent without bawn as well."""
    for folder in agent.folders:
        place.write(f"{folder}/mine", MINE)
    return home_of(place)


@each()
@in_short()
def works_a_turn_that_is_reviewed(place, agent):
    """A shell tool and a file; in the diff, applied, on record. What the operator has of the agent is not touched."""
    before = use_outside(place, agent)
    look = " ".join(f"~/{folder}/mine" for folder in agent.folders)
    with model_that(shell(f"echo {WROTE} > made; cat made; id -u; pwd; cat {look} 2> /dev/null")) as model:
        turn(place, agent, model)
        assert f"{WROTE}\\n1000\\n/work" in model.heard().replace("\\\\", "\\"), model.heard()[-2000:]
        assert MINE not in model.heard()
        sent = [request["headers"].get(agent.header) for request in model.requests() if request["method"] == "POST"]
        assert sent and all(KEY in (header or "") for header in sent), sent
    assert not (place.project / "made").exists()
    cage.expect(bawn(place, "diff"), 0, "made", WROTE)
    cage.expect(bawn(place, "verify", last_run(place)), 0, "nothing was relaxed", "\ngood")
    cage.expect(bawn(place, "apply"), 0)
    assert (place.project / "made").read_text() == WROTE + "\n"
    assert home_of(place) == before


@each()
def goes_on_where_it_was(place, agent):
    """What it remembers is kept between runs, for this project and no other."""
    with model_that(shell(f"echo {WROTE}")) as model:
        turn(place, agent, model)
        model.forget()
        model.script(shell("echo something else"))
        turn(place, agent, model, words=agent.more)
        assert WROTE in model.heard(), "the first turn is not in the second"
        model.forget()
        # Where there is nothing to go on with, an agent may begin anew, or refuse.
        bawn(place, "run", *agent.options(model), "--", *agent.more, "go on", cwd=place.make("other"))
        assert WROTE not in model.heard(), "another project's turn is remembered"


@each()
def is_told_what_the_operator_says(place, agent):
    """startup_prompts are in what the model gets."""
    prompts = ["the build is slow today", 'say "please" \\ twice']
    spec = place.write("spec.yaml", "version: 1\nstartup_prompts: " + json.dumps(prompts) + "\n")
    with model_that(shell("true")) as model:
        turn(place, agent, model, "--trust", "-f", spec)
        asked = [request for request in model.requests() if "as scripted" not in json.dumps(request["body"])]
        for prompt in prompts:
            assert json.dumps(prompt)[1:-1] in json.dumps(asked[-1]["body"]), prompt
    with model_that(shell("true")) as model:
        turn(place, agent, model)
        assert prompts[0] not in model.heard()


@each()
def is_told_what_the_project_says(place, agent):
    """Its own file of instructions, which every agent looks for."""
    name = {"claude": "CLAUDE.md", "gemini": "GEMINI.md"}.get(agent.name, "AGENTS.md")
    place.write(place.project / name, "tabs here\n")
    with model_that(shell("true")) as model:
        turn(place, agent, model)
        assert "tabs here" in model.heard()


@each()
def writes_at_once_where_it_may(place, agent):
    with model_that(shell(f"echo {WROTE} > made")) as model:
        turn(place, agent, model, "--write")
    assert (place.project / "made").read_text() == WROTE + "\n"


@each()
def takes_its_own_options(place, agent):
    said = cage.expect(bawn(place, "run", "--agent", agent.name, "--", "--version"), 0)
    assert any(character.isdigit() for character in said.stdout), said.stdout


@each()
def asks_nobody_but_its_model(place, agent):
    """What it would fetch beside is switched off, or denied without harm."""
    registry = subprocess.run(["npm", "config", "get", "registry"], cwd="/", capture_output=True, text=True, check=True)
    spared = {urllib.parse.urlsplit(registry.stdout.strip()).hostname} if agent.name == "opencode" else set()
    with model_that(shell("true")) as model:
        turn(place, agent, model)
    log = json.loads(cage.expect(bawn(place, "log", "--json"), 0).stdout)["events"]
    met = {event["name"] for event in log if event["type"].startswith(("net_", "name_"))}
    assert met - spared == {"bawn-host"}, met


if __name__ == "__main__":
    main()
