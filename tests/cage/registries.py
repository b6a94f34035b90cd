#!/usr/bin/env python3
"""Registries by the name of their client: who is asked, what it becomes, and that no project changes it.

    registries.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

The clients are small ones of our own, which read a file of the folder they stand in as npm reads .npmrc.
"""

import json
import os
import shutil
import sys

sys.dont_write_bytecode = True
import records  # noqa: E402
from place import Skip, case, expect, main  # noqa: E402

NPM = """#!/bin/sh
registry=https://npm.example.org/
for file in "$HOME/.npmrc" ./.npmrc; do
    test ! -f "$file" || registry=$(sed -n 's/^registry=//p' "$file")
done
printf '{\\n  "proxy": null,\\n  "registry": "%s"\\n}\\n' "${npm_config_registry:-$registry}"
"""


def install(p, name="npm", text=NPM):
    p.write(f"bin/{name}", text, 0o755)
    return {"PATH": f"{p.home}/bin:{os.environ['PATH']}"}


def allowed(p, *options, env=None, **more):
    """{destination: whose it is} of a plan"""
    done = expect(p.run("plan", "--json", *options, "--", "true", env=env, **more), 0)
    return {op["a"]: op.get("b") for op in json.loads(done.stdout)["operations"] if op["op"] == "allow"}


@case
def it_becomes_what_the_operators_client_uses(p):
    env = install(p)
    assert allowed(p, "--allow", "npm", env=env) == {"npm.example.org:443/tls": "npm"}
    p.write(".npmrc", "registry=https://mirror.example.com:8443/npm/\n")
    assert allowed(p, "--allow", "npm", env=env) == {"mirror.example.com:8443/tls": "npm"}
    env["npm_config_registry"] = "http://env.example.net/"
    assert allowed(p, "--allow", "npm", env=env) == {"env.example.net:80/http": "npm"}


@case
def plan_and_record_show_it_and_the_cages_client_is_told(p):
    env = install(p)
    p.write(".npmrc", "registry=https://me:s3cret@mirror.example.com/\n")
    done = expect(p.run("plan", "--allow", "npm", "--", "true", env=env), 0)
    assert "mirror.example.com:443/tls  (npm)" in done.stdout, done.stdout
    assert "s3cret" not in done.stdout + done.stderr
    p.write(".npmrc", "registry=https://mirror.example.com/\n")
    done = expect(p.run("run", "--allow", "npm", "--", "cat", "/home/agent/.npmrc", env=env), 0)
    assert done.stdout == "registry=https://mirror.example.com/\n", done.stdout
    folder = max(p.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)
    spec = json.loads(records.part(folder, "spec").read_text())
    assert spec["network.allow"] == ["mirror.example.com:443/tls"], spec["network.allow"]
    assert '"b":"npm"' in records.part(folder, "plan").read_text()


@case
def a_file_of_the_project_does_not_change_it(p):
    env = install(p)
    p.write("project/.npmrc", "registry=https://evil.example/\n")
    assert allowed(p, "--allow", "npm", env=env) == {"npm.example.org:443/tls": "npm"}
    # The twin: the same file where the operator keeps theirs does.
    shutil.move(p.home / "project/.npmrc", p.home / ".npmrc")
    assert allowed(p, "--allow", "npm", env=env) == {"evil.example:443/tls": "npm"}


@case
def a_program_of_the_project_is_not_asked(p):
    env = install(p)
    p.write("project/node_modules/.bin/npm", "#!/bin/sh\necho '  \"registry\": \"https://evil.example/\"'\n", 0o755)
    for folder in (f"{p.project}/node_modules/.bin", "node_modules/.bin"):
        path = {"PATH": f"{folder}:{env['PATH']}"}
        assert allowed(p, "--allow", "npm", env=path) == {"npm.example.org:443/tls": "npm"}
    # The twin: in another project it is a program like any other.
    p.make("other")
    path = {"PATH": f"{p.project}/node_modules/.bin:{env['PATH']}"}
    assert allowed(p, "--allow", "npm", env=path, cwd=p.home / "other") == {"evil.example:443/tls": "npm"}


@case
def a_projects_spec_may_ask_for_it_where_the_policy_says_so(p):
    env = install(p)
    p.write("project/bawn.yaml", "version: 1\nnetwork: { mode: allowlist, allow: [npm] }\n")
    expect(p.run("run", "--", "true", env=env), 125, "network.allow: 'npm'")
    p.write(".config/bawn/policy.yaml", "version: 1\nproject_may: { network: { mode: allowlist, allow: [npm] } }\n")
    assert allowed(p, env=env) == {"npm.example.org:443/tls": "npm"}
    p.write("project/bawn.yaml", "version: 1\nnetwork: { mode: allowlist, allow: [pip] }\n")
    expect(p.run("run", "--", "true", env=env), 125, "network.allow: 'pip' is more than")


@case
def remotes_are_those_of_the_projects_repository(p):
    expect(p.run("run", "--allow", "git", "--", "true"), 125, "no repository with a remote", "add a remote")
    p.write("project/.git/config", "[remote \"a\"]\nurl = git@git.example.org:x\n[remote \"b\"]\n"
            "url = https://git.example.com/x\n")
    p.write("project/.gitmodules", "[submodule \"s\"]\nurl = https://evil.example/s\n")
    wanted = {"git.example.org:22/tcp": "git", "git.example.com:443/tls": "git"}
    assert allowed(p, "--allow", "git") == wanted
    if p.uid != 0:
        os.chown(p.project / ".git/config", p.uid + 1, p.uid + 1)
        expect(p.run("run", "--allow", "git", "--", "true"), 125, "belongs to another user")


@case
def one_that_cannot_be_asked_is_refused(p):
    p.make("empty")
    (p.home / "empty/setpriv").symlink_to(shutil.which("setpriv"))
    path = {"PATH": f"{p.home}/empty"}
    expect(p.run("run", "--allow", "npm", "--", "true", env=path), 125, "'npm' is not installed here",
           "--allow HOST:PORT")
    env = install(p, text="#!/bin/sh\necho '  \"registry\": \"https://npm.example.org/\"'\nexit 1\n")
    expect(p.run("run", "--allow", "npm", "--", "true", env=env), 125, "'npm config' failed here")
    env = install(p, text="#!/bin/sh\necho '{}'\n")
    expect(p.run("run", "--allow", "npm", "--", "true", env=env), 125, "names none", "npm config set registry")
    expect(p.run("run", "--allow", "cargo", "--", "true"), 125, "does not print its default", "config.toml")
    for here in ("http://localhost:4873/", "http://127.0.0.1:4873/"):
        env = install(p, text=f"#!/bin/sh\necho '  \"registry\": \"{here}\"'\n")
        expect(p.run("run", "--allow", "npm", "--", "true", env=env), 125, "this machine itself")


@case
def cargo_and_go_are_told_in_their_own_way(p):
    p.write(".cargo/config.toml", "[build]\njobs = 1\n[source.crates-io]\nreplace-with = \"m\"\n[source.m]\n"
            "registry = \"sparse+https://crates.example.org/\"\n[registries.m]\ntoken = \"s3cret\"\n")
    done = expect(p.run("run", "--allow", "cargo", "--", "cat", "/home/agent/.cargo/config.toml"), 0)
    assert done.stdout == ("[source.crates-io]\nreplace-with = \"m\"\n[source.m]\n"
                           "registry = \"sparse+https://crates.example.org/\"\n[registries.m]\n"), done.stdout
    env = install(p, "go", "#!/bin/sh\nprintf '{\\n\\t\"GOPROXY\": \"https://go.example.org,direct\",\\n"
                  "\\t\"GOSUMDB\": \"off\"\\n}\\n'\n")
    done = expect(p.run("run", "--allow", "go", "--", "sh", "-c", "echo $GOPROXY $GOSUMDB", env=env), 0)
    assert done.stdout == "https://go.example.org,direct off\n", done.stdout


@case
def a_session_keeps_what_it_became(p):
    env = install(p)
    expect(p.run("session", "create", "--name", "s", "--allow", "npm", env=env), 0)
    p.write(".npmrc", "registry=https://later.example/\n")
    done = expect(p.run("session", "exec", "s", "--", "cat", "/home/agent/.npmrc", env=env), 0)
    assert done.stdout == "registry=https://npm.example.org/\n", done.stdout
    expect(p.run("session", "exec", "s", "--allow", "npm", "--", "true", env=env), 125,
           "'later.example:443/tls' is more than the session was created with")
    expect(p.run("session", "rm", "s"), 0)


@case
def the_real_ones_answer(p):
    """Those that this machine has: one host each at least, and none of them is a proxy or a path."""
    asked = 0
    for name, program in (("npm", "npm"), ("pip", "pip"), ("apt", "apt-get")):
        if os.access(f"/usr/bin/{program}", os.X_OK):
            found = allowed(p, "--allow", name, env={"PATH": "/usr/bin:/bin"})
            assert found and set(found.values()) == {name}, found
            asked += 1
    if not asked:
        raise Skip("neither npm nor pip nor apt-get is installed in /usr/bin")


if __name__ == "__main__":
    main()
