#!/usr/bin/env python3
"""Each agent with an account instead of a key: the recipes of docs/agents.md, as they are written there.

    subscriptions.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP

The makers' hosts are hosts of the tests' own internet, under their own names, and speak TLS (see tests/net). Nobody
logs in to a real account: the tests know the form of a credentials file, and of the answer that renews a token.
"""

import atexit
import base64
import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import time

from world import DONE, HERE, KEY, Model, PATIENCE, PROMPT, bawn, cage, each, in_short, main, net, path, shell

WORLD = PROVIDER = None
GUIDE = HERE.parent.parent / "docs" / "agents.md"
BUNDLE = net.BUNDLE
HOSTS = ("api.anthropic.com", "platform.claude.com", "api.openai.com", "chatgpt.com", "auth.openai.com",
         "cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "generativelanguage.googleapis.com")
HOUR = 3600


def jwt(**claims):
    """A token as OpenAI's are: signed by nobody, which agents do not look at."""
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    return ".".join((part({"alg": "none", "typ": "JWT"}), part(claims), part("signed by nobody")))


def openai_token(name, expires):
    claims = {"chatgpt_account_id": "account-1", "chatgpt_plan_type": "plus", "chatgpt_user_id": "user-1"}
    return jwt(jti=name, exp=int(expires), email="somebody@example.org", **{"https://api.openai.com/auth": claims})


def plain_token(name, _):
    return f"token-{name}-of-the-tests"


def claude_file(access, refresh, expires):
    return {"claudeAiOauth": {"accessToken": access, "refreshToken": refresh, "expiresAt": int(expires * 1000),
                              "scopes": ["user:inference", "user:profile"], "subscriptionType": "max"}}


def codex_file(access, refresh, expires):
    day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(expires - HOUR))
    return {"OPENAI_API_KEY": None, "last_refresh": day,
            "tokens": {"id_token": access, "access_token": access, "refresh_token": refresh, "account_id": "account-1"}}


def gemini_file(access, refresh, expires):
    return {"access_token": access, "refresh_token": refresh, "expiry_date": int(expires * 1000), "token_type": "Bearer",
            "scope": "https://www.googleapis.com/auth/cloud-platform"}


def opencode_file(access, refresh, expires):
    return {"openai": {"type": "oauth", "access": access, "refresh": refresh, "expires": int(expires * 1000),
                       "accountId": "account-1"}}


@dataclasses.dataclass
class Account:
    """What an agent's maker hands out: the file with it, and who answers with a new token."""
    file: str
    write: callable
    model: str  # the host that is asked for answers …
    renewal: str  # … and the path by which a token is renewed
    token: callable = plain_token
    words: tuple = ()
    answers: dict = dataclasses.field(default_factory=dict)


ACCOUNTS = {
    "claude": Account(".claude/.credentials.json", claude_file, "api.anthropic.com", "/v1/oauth/token"),
    "codex": Account(".codex/auth.json", codex_file, "chatgpt.com", "/oauth/token", openai_token, answers={
        "/accounts/check": {"account_ordering": ["account-1"], "default_account_id": "account-1", "accounts": [
            {"id": "account-1", "plan_type": "plus", "structure": "personal", "is_deactivated": False,
             "can_access_with_session": True, "is_fedramp_compliant_workspace": False,
             "workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT"}]}}),
    "gemini": Account(".gemini/oauth_creds.json", gemini_file, "cloudcode-pa.googleapis.com", "/token", answers={
        ":loadCodeAssist": {"currentTier": {"id": "standard-tier"}, "cloudaicompanionProject": "project-1"},
        "/tokeninfo": {"scope": "https://www.googleapis.com/auth/cloud-platform", "expires_in": HOUR}}),
    "opencode": Account(".local/share/opencode/auth.json", opencode_file, "chatgpt.com", "/oauth/token", openai_token),
}


class Provider(Model):
    """All makers at once, as hosts of the internet."""

    def start(self, words):
        line = WORLD.spawn(*words)
        for host in HOSTS:
            WORLD.ask("backend", host=host, port=int(line.split()[1]))
        return line

    def asked(self, host):
        return [request for request in self.requests() if request["headers"]["host"] == host]


def begin():
    global PROVIDER  # pylint: disable=global-statement
    WORLD.zone({host: {"A": [net.WEB], "AAAA": [net.WEB6]} for host in HOSTS})
    PROVIDER = Provider()
    atexit.register(shutil.rmtree, PROVIDER.folder)


def recipe(name):
    """The two lines of the guide: what gives the cage a copy, and what starts the agent."""
    section = GUIDE.read_text().split("\n## Accounts\n")[1].split("\n## ")[0]
    lines = re.findall(rf"^\$ (bawn run .*--agent {name}\b.*)$", section, re.MULTILINE)
    assert len(lines) == 2, lines
    return lines


def do(place, line, **more):
    """A line of the guide, typed by the person."""
    env = {"PATH": f"{cage.FILES}:{path()}", **more.pop("env", {})}
    process = place.start("-c", line, program="sh", env=env, **more)
    try:
        out, err = process.communicate(b"", timeout=PATIENCE * cage.SLOW)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.communicate()
        raise AssertionError(f"hung: {line}") from None
    return subprocess.CompletedProcess(line, process.returncode, cage.decode(out), cage.decode(err))


def start_line(agent):
    """The guide's, with a prompt; and, as this internet has an authority of its own, with what agents trust."""
    trust = " ".join(f"-e {name}={BUNDLE}" for name in ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"))
    line = recipe(agent.name)[1].replace("bawn run", f"bawn run {trust}", 1)
    words = shlex.join([*agent.turn, *ACCOUNTS[agent.name].words, PROMPT])
    return f"{line} {words}" if " -- " in line else f"{line} -- {words}"


def log_in(place, agent, name="first", expires_in=8 * HOUR):
    """As the agent itself leaves it in the person's home; and the copy."""
    account, end = ACCOUNTS[agent.name], time.time() + expires_in
    token = account.token(name, end)
    content = json.dumps(account.write(token, f"refresh-{name}", end))
    place.write(account.file, content, 0o600)
    cage.expect(do(place, recipe(agent.name)[0]), 0)
    return token, content


def prepare(agent, **answers):
    PROVIDER.forget()
    PROVIDER.script(shell("echo made >made"), answers={**ACCOUNTS[agent.name].answers, **answers})


def tokens_heard(agent):
    """What the model's host was told to be let in."""
    asked = [request for request in PROVIDER.asked(ACCOUNTS[agent.name].model) if request["method"] == "POST"]
    return {request["headers"].get("authorization", "").removeprefix("Bearer ") for request in asked}


def files_with(place, text):
    """Files of the person's that have this text: bawn's state is among them."""
    return [path_ for path_ in place.top.rglob("*") if path_.is_file() and text.encode() in path_.read_bytes()]


@each()
@in_short("codex")
def works_with_a_copy_of_its_accounts_file(place, agent):
    prepare(agent)
    token, content = log_in(place, agent)
    cage.expect(do(place, start_line(agent)), 0, DONE)
    assert tokens_heard(agent) == {token}, tokens_heard(agent)
    cage.expect(bawn(place, "diff"), 0, "made")
    assert (place.home / ACCOUNTS[agent.name].file).read_text() == content
    assert not [path_ for path_ in files_with(place, token) if "project" in path_.parts or "runs" in path_.parts]


@each()
@in_short("codex")
def renews_a_token_in_the_copy(place, agent):
    account, end = ACCOUNTS[agent.name], time.time() + 8 * HOUR
    renewed = account.token("second", end)
    prepare(agent, **{account.renewal: {"access_token": renewed, "id_token": renewed, "refresh_token": "refresh-second",
                                        "expires_in": 8 * HOUR, "token_type": "Bearer", "scope": "user:inference"}})
    _, content = log_in(place, agent, expires_in=-HOUR)
    cage.expect(do(place, start_line(agent)), 0, DONE)
    assert tokens_heard(agent) == {renewed}, tokens_heard(agent)
    asked = [json.dumps(request["body"]) for request in PROVIDER.requests() if request["url"].endswith(account.renewal)]
    assert asked and all("refresh-first" in body for body in asked), asked
    # The next run has the new one, and asks for none.
    prepare(agent)
    cage.expect(do(place, start_line(agent)), 0, DONE)
    assert tokens_heard(agent) == {renewed}, tokens_heard(agent)
    assert (place.home / account.file).read_text() == content


@each()
@in_short("codex")
def has_no_account_in_another_project(place, agent):
    """The twin: the copy is this agent's in this project, until it is forgotten."""
    prepare(agent)
    token, _ = log_in(place, agent)
    look = f"bawn run -q --agent {agent.name} -- /bin/sh -c 'cat ~/{ACCOUNTS[agent.name].file}'"
    assert token in cage.expect(do(place, look), 0).stdout
    cage.expect(do(place, look, cwd=place.make("other")), 1, "No such file")
    cage.expect(do(place, f"bawn agent forget {agent.name} --yes"), 0)
    cage.expect(do(place, look), 1, "No such file")
    if agent.name != "opencode":  # which asks others for minutes
        do(place, start_line(agent))
        assert token not in json.dumps(PROVIDER.requests()), "what was forgotten was sent"


@each()
@in_short("codex")
def works_with_its_key_as_a_secret(place, agent):
    """The guide's first way, with the host of the profile."""
    prepare(agent)
    line = f"bawn run --agent {agent.name} --secret {agent.variable} -- {shlex.join([*agent.turn, PROMPT])}"
    cage.expect(do(place, line, env={agent.variable: KEY}), 0, DONE)
    asked = [request["headers"] for request in PROVIDER.requests() if request["method"] == "POST"]
    assert asked and all(KEY in headers.get(agent.header, "") for headers in asked), asked
    assert not files_with(place, KEY)


if __name__ == "__main__":
    WORLD = net.enter()
    main(begin)
