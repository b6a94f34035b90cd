#!/usr/bin/env python3
"""bawn mcp, as the protocol's own clients and its own suite see it. Packages come from npm, by digest: npm/.

    peers.py BUILD BAWN BREAKABLE [PART OF A NAME]        prints TAP

The suite speaks HTTP, so there is a bridge between (bridge.py). Of its scenarios those are run that are about a
server that has tools and nothing else. Not run are those about what bawn mcp does not offer (resources, prompts,
completion, logging, sampling, elicitation and other input from users, tasks, skills, authorization), about HTTP itself (its
headers, its streams, its origins), and about tools of the suite's own that return images, sound or progress.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "peers")]
import npm  # noqa: E402
from bridge import Bridge  # noqa: E402
from server import LEGACY, MODERN, TOOLS, Server, cage, sessions  # noqa: E402

BUILD = sys.argv.pop(1)
SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"

NO_TOOL = "the suite wants a tool of its own for it"
NO_HEADERS = "it is about a header, and there are none on standard streams"
NO_SUCH_LIST = "bawn mcp has tools, and nothing else"
# What is run, and which of its checks fail, each with the reason. One that fails and is not here is an error, and so
# is one that is here and does not fail.
SCENARIOS = [
    ("server-initialize", "2025-06-18", {}),
    ("server-initialize", "2025-11-25", {}),
    ("ping", "2025-11-25", {}),
    ("tools-list", "2025-11-25", {}),
    ("tools-list", MODERN, {}),
    ("tools-call-simple-text", MODERN, {}),
    ("tools-call-error", "2025-11-25", {}),
    ("input-required-result-unsupported-methods", MODERN, {}),
    ("server-stateless", MODERN, {
        "sep-2575-http-server-header-mismatch-400": NO_HEADERS,
        "sep-2575-server-rejects-undeclared-capability": NO_TOOL,
        "sep-2575-missing-capability-http-400": NO_TOOL,
        "sep-2575-http-server-no-independent-requests-on-stream": NO_TOOL,
        "sep-2575-server-no-log-without-loglevel": NO_TOOL,
    }),
    ("caching", MODERN, {
        "sep-2549-prompts-list-caching-hints": NO_SUCH_LIST,
        "sep-2549-resources-list-caching-hints": NO_SUCH_LIST,
        "sep-2549-resources-templates-list-caching-hints": NO_SUCH_LIST,
    }),
]


def node():
    try:
        return npm.Node(BUILD, HERE / "npm")
    except npm.Missing as problem:
        raise cage.Skip(str(problem)) from problem


def talk(place, mode):
    """What a client of theirs gets to hear from a server of the person's."""
    # It is node that starts the server, which belongs to the person; so does its folder.
    words = place.words(["mcp"])
    done = node().run("client.mjs", mode, *words, cwd=place.project, env=place.environ(None))
    assert done.returncode == 0 and done.stderr == "", done
    said = json.loads(done.stdout)
    assert said["server"] == "bawn" and said["tools"] == TOOLS and "/work" in said["instructions"], said
    for name, text, status in (("good", "out\nerr\n", 0), ("bad", "[exit status 7]\n", 7)):
        result = said[name]
        assert result["content"] == [{"type": "text", "text": text}] and result["isError"] == (status != 0), result
        assert result["_meta"]["bawn/status"] == status and result["_meta"]["bawn/run"], result
    assert said["cancelled"] and said["unknown"] == -32602 and said["beside"] == ["1\n", "2\n", "3\n", "4\n"], said
    cage.wait_until(lambda: not sessions.Sessions(place).names(), 5, "the end of the sessions")
    return said


@sessions.case
def the_client_of_the_first_era(place):
    assert talk(place, "sdk")["ping"] == {}


@sessions.case
def the_client_of_both_eras_in_the_first(place):
    assert talk(place, "legacy")["version"] == LEGACY[0]


@sessions.case
def the_client_of_both_eras_in_the_second(place):
    said = talk(place, "auto")
    assert said["version"] == MODERN and said["capabilities"]["extensions"]["bawn/isolation"]["level"] == "hardened"


def judge(found, url, scenario, version):
    """The checks of a scenario that fail, and whether any did not."""
    with tempfile.TemporaryDirectory(prefix="bawn-cage-") as folder:
        done = subprocess.run([found.program, found.folder / SUITE, "server", "--url", url, "--scenario", scenario,
                               "--spec-version", version, "-o", folder], cwd=folder, capture_output=True, text=True,
                              timeout=120, check=False, env={"PATH": os.environ["PATH"], "HOME": folder})
        results = list(pathlib.Path(folder).rglob("checks.json"))
        assert len(results) == 1, done
        checks = json.loads(results[0].read_text())
    return ({check["id"] for check in checks if check["status"] == "FAILURE"},
            {check["id"] for check in checks if check["status"] == "SUCCESS"})


@cage.of_users
@sessions.case
def the_suite_of_the_protocol(place):
    found = node()
    with Bridge(lambda: Server(place)) as bridge, concurrent.futures.ThreadPoolExecutor(4) as pool:
        rows = [(row, pool.submit(judge, found, bridge.url, *row[:2])) for row in SCENARIOS]
        for (scenario, version, expected), future in rows:
            failed, passed = future.result()
            assert failed == set(expected), f"{scenario} of {version}: {failed ^ set(expected)}"
            assert passed, f"{scenario} of {version} checked nothing"
            print(f"# {scenario} of {version}: {len(passed)} passed, {len(failed)} cannot be")


if __name__ == "__main__":
    sessions.main()
