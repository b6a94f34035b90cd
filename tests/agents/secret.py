#!/usr/bin/env python3
"""Each agent with a key that stays outside: it works, and the key is nowhere in the cage.

    secret.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP

The model is a host of the tests' own internet, and speaks TLS: see tests/net.
"""

import atexit
import json
import os
import shutil

from world import Model, bawn, cage, each, in_short, last_run, main, model_that, net, shell

WORLD = HOST_MODEL = None
HOST, PORT = "api.example.net", 8445
SECRET = "a-key-that-stays-outside-8c1f2d"
NAMES = {"claude": "anthropic", "codex": "openai", "gemini": "gemini", "opencode": "anthropic"}
# All that a cage can look at: variables of every process, its arguments, memory that may be read, and files.
SEARCH = """env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2> /dev/null | tr '\\0' '\\n'
printf %s%s {0} {1} > /tmp/pattern
grep -rslf /tmp/pattern /etc /home /opt/agent/bin /run /tmp /var /work | grep -v pattern | sed s/^/fou''nd-in:/"""


class Host(Model):
    """The model as a host of the internet."""

    def start(self, words):
        certificate = WORLD.certificate(HOST)
        return WORLD.spawn(*words, PORT, *certificate[:2])


def begin():
    global HOST_MODEL  # pylint: disable=global-statement
    WORLD.zone({HOST: {"A": [net.WEB], "AAAA": [net.WEB6]}})
    HOST_MODEL = Host()
    atexit.register(shutil.rmtree, HOST_MODEL.folder)


def declared(place, agent):
    """The agent's key as a secret: for a host of ours instead of its maker's."""
    secret = {"name": NAMES[agent.name], "host": f"{HOST}:{PORT}", "header": agent.header, "from": "env:MY_KEY"}
    if agent.header == "authorization":
        secret["scheme"] = "Bearer"
    return place.spec("secrets: " + json.dumps([secret]) + "\n")


def search():
    return shell(SEARCH.format(SECRET[:8], SECRET[8:]))


@each()
@in_short()
def works_without_having_its_key(place, agent):
    HOST_MODEL.forget()
    HOST_MODEL.script(search(), shell("echo made > made"))
    words = ["--agent", agent.name, *declared(place, agent), "--", *agent.turn, "do it"]
    done = cage.expect(bawn(place, "run", *words, env={"MY_KEY": SECRET}), 0)
    assert SECRET not in done.stdout + done.stderr
    asked = [request for request in HOST_MODEL.requests() if request["method"] == "POST"]
    assert asked and all(SECRET in request["headers"].get(agent.header, "") for request in asked), "the key was not added"
    heard = HOST_MODEL.heard()
    assert "BAWN_SANDBOX" in heard, heard[-2000:]
    assert SECRET not in heard and "found-in" not in heard, "the cage has the key"
    assert "made" in cage.expect(bawn(place, "diff"), 0).stdout
    assert not holders(place), "bawn has written the key down"
    cage.expect(bawn(place, "verify", last_run(place)), 0)


def holders(place):
    """Files of the person's, of bawn's state among them, that have the key."""
    return [path for folder, _, names in os.walk(place.top) for path in (os.path.join(folder, name) for name in names)
            if os.path.isfile(path) and SECRET.encode() in open(path, "rb").read()]


@each()
@in_short("codex")
def shows_a_key_that_is_passed(place, agent):
    """The twin: a key in a variable is found by the same search."""
    with model_that(search()) as model:
        place.write(place.project / "notes", SECRET)
        done = bawn(place, "run", *agent.options(model, SECRET), "--", *agent.turn, "do it")
        cage.expect(done, 0)
        assert SECRET in model.heard() and "found-in" in model.heard()


if __name__ == "__main__":
    WORLD = net.enter()
    main(begin)
