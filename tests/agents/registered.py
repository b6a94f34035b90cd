#!/usr/bin/env python3
"""bawn mcp, registered in each agent: one that runs outside of any cage, and whose tools are those of one.

    registered.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP

The settings are those of docs/mcp.md.
"""

import json
import subprocess

from world import DONE, KEY, PATIENCE, PROMPT, cage, each, in_short, main, model_that, native, path

TOOLS = {"claude": "mcp__bawn__bash", "codex": "bash", "gemini": "mcp_bawn_bash", "opencode": "bawn_bash"}


def register(place, agent, model):
    """Its settings, as somebody who trusts only bawn's tools has them; more words for its command line."""
    server = {"command": "bawn", "args": ["mcp"]}
    if agent.name == "claude":
        file = place.write("mcp.json", json.dumps({"mcpServers": {"bawn": server}}))
        return ["--mcp-config", file, "--strict-mcp-config", "--tools", "", "--allowedTools", "mcp__bawn__*"]
    if agent.name == "codex":
        place.write(".codex/config.toml", f"""
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "http://127.0.0.1:{model.port}/v1"
env_key = "{agent.variable}"
[features]
shell_tool = false
plugins = false
apps = false
[mcp_servers.bawn]
command = "bawn"
args = ["mcp"]
default_tools_approval_mode = "approve"
""")
    if agent.name == "gemini":
        place.write(".gemini/settings.json", json.dumps({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "tools": {"core": ["mcp_bawn_*"]},
            "mcpServers": {"bawn": {**server, "trust": True}}}))
    if agent.name == "opencode":
        own = dict.fromkeys(("bash", "read", "write", "edit", "glob", "grep"), False)
        place.write(".config/opencode/opencode.json", json.dumps({
            "tools": {**own, "bawn_*": True},
            "mcp": {"bawn": {"type": "local", "command": ["bawn", "mcp"], "enabled": True}}}))
    return []


@each()
@in_short()
def calls_tools_of_a_cage(place, agent):
    order = "echo from-a-cage; pwd; echo x > made; cat /etc/bawn/cage.json"
    with model_that({"tool": TOOLS[agent.name], "input": {"command": order}}) as model:
        env = {"HOME": str(place.home), "PATH": f"{cage.FILES}:{path()}", agent.variable: KEY,
               agent.base: f"http://127.0.0.1:{model.port}{agent.path}", "GEMINI_CLI_TRUST_WORKSPACE": "true",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        env["TMPDIR"] = env["CLAUDE_CODE_TMPDIR"] = env["BUN_TMPDIR"] = str(place.make("tmp"))
        words = [*agent.turn, PROMPT, *register(place, agent, model)]
        done = subprocess.run(place.words(words, native(agent)), env=env,
                              cwd=place.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        assert DONE in done.stdout, done
        said = model.heard().replace("\\", "")
        assert "from-a-cagen/work" in said and '"project":"/work"' in said, said[-2000:]
    assert not (place.project / "made").exists(), "it was not in a cage"


if __name__ == "__main__":
    main()
