#!/usr/bin/env python3
"""Profiles of agents, with a small agent of our own: where its program is found, who may name it, and what is kept.

    agent.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

The real agents are in tests/agents.
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from place import BAWN, case, expect, main, picture  # noqa: E402

GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "agents.md"
ACCOUNT_FILES = {"claude": ".claude/.credentials.json", "codex": ".codex/auth.json", "gemini": ".gemini/oauth_creds.json",
                 "opencode": ".local/share/opencode/auth.json"}

AGENT = """#!/bin/sh
case $1 in
show) cat "$HOME/.pal/settings" "$HOME/.pal/first"; echo "$PAL_HOST" ;;
keep) echo more >> "$HOME/.pal/first"; echo changed > "$HOME/.pal/settings" ;;
link) rm -rf "$HOME/.pal/settings"; ln -s "$2" "$HOME/.pal/settings" ;;
*) echo "pal at $0 in $PWD:" "$@" ;;
esac
"""

PROFILE = """version: 1
name: pal
title: a small agent
program: { name: pal }
prompts: /etc/pal/prompts
spec:
  command: [pal]
  env: { set: { PAL_HOST: "1" } }
  files: { /home/agent/.pal/settings: "in @PROJECT@\\n" }
  initial_files: { /home/agent/.pal/first: "once\\n" }
  state: [/home/agent/.pal]
"""


def install(p):
    """As an installer would: below the home. And the operator's profile of it."""
    p.write(".local/bin/pal", AGENT, 0o755)
    p.write(".config/bawn/agents/pal.yaml", PROFILE)


def pal(p, *words, options=()):
    return p.run("run", "--agent", "pal", *options, "--", *words)


@case
def what_follows_the_dashes_is_for_the_agent(p):
    install(p)
    done = expect(pal(p, "--do", "it"), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work: --do it\n", done.stdout
    done = expect(pal(p, "/bin/sh", "-c", "command -v pal; pal here"), 0)
    assert done.stdout == "/opt/agent/bin/pal\npal at /opt/agent/lib/pal in /work: here\n", done.stdout
    assert str(p.home) not in pal(p, "/bin/cat", "/proc/self/environ").stdout
    for prompt in ("explain src/main.c", "/review", "/etc/hosts is wrong", "./x"):
        assert expect(pal(p, prompt), 0).stdout == f"pal at /opt/agent/lib/pal in /work: {prompt}\n"


@case
def what_the_operator_writes_in_its_place_is_run(p):
    install(p)
    spec = p.spec("files: { /opt/agent/bin/pal: \"#!/bin/sh\\necho mine $1\\n\" }\n")
    assert expect(pal(p, "x", options=spec), 0).stdout == "mine x\n"


@case
def nobody_in_the_cage_changes_the_program(p):
    install(p)
    script = "rm /opt/agent/bin/pal; mv /opt/agent /opt/other; echo > /opt/agent/bin/git; ls /opt /opt/agent/bin; pal x"
    done = expect(pal(p, "/bin/sh", "-c", script), 0)
    assert done.stdout == "/opt:\nagent\n\n/opt/agent/bin:\npal\npal at /opt/agent/lib/pal in /work: x\n", done.stdout


@case
def one_that_is_missing_is_told(p):
    p.write(".config/bawn/agents/pal.yaml", PROFILE)
    expect(pal(p, "x"), 125, "'pal' is not installed here")
    expect(p.run("run", "--agent", "pall", "--", "x"), 125, "there is no profile 'pall'")
    expect(p.run("run", "--agent", "claud", "--", "x"), 125, "did you mean 'claude'?")
    expect(p.run("check", "--agent", "pal"), 0, "is not installed here")


@case
def a_profile_that_others_can_write_is_not_the_operators(p):
    install(p)
    (p.home / ".config/bawn/agents/pal.yaml").chmod(0o666)
    expect(pal(p, "x"), 125, "others can write to")


@case
def what_is_kept_is_there_again_and_settings_are_made_anew(p):
    install(p)
    assert pal(p, "show").stdout == "in /work\nonce\n1\n"
    expect(pal(p, "keep"), 0)
    assert pal(p, "show").stdout == "in /work\nonce\nmore\n1\n"
    # In another project it is another home.
    p.make("other")
    done = p.run("run", "--agent", "pal", "--", "show", cwd=p.home / "other")
    assert done.stdout == "in /work\nonce\n1\n", done.stdout
    assert not (p.home / ".pal").exists()
    expect(p.run("agent", "forget", "--all"), 0, "forgot")
    assert pal(p, "show").stdout == "in /work\nonce\n1\n"
    expect(p.run("agent", "forget", "--all", "--project", p.home), 0, "nothing is kept")
    strange = p.make("esc\033]0;x\007")
    assert "\033" not in expect(p.run("agent", "forget", "--all", "--project", strange), 0, "nothing is kept").stdout


@case
def an_accounts_credentials_are_given_once_and_kept(p):
    install(p)
    script = "umask 077; cat >~/.pal/credentials"
    expect(p.run("run", "-q", "--agent", "pal", "--", "/bin/sh", "-c", script, stdin=b'{"token":1}\n'), 0)
    look = ("/bin/sh", "-c", "cat ~/.pal/credentials; stat -c %a ~/.pal/credentials; echo renewed >~/.pal/credentials")
    assert expect(pal(p, *look), 0).stdout == '{"token":1}\n600\n'
    assert pal(p, *look).stdout == "renewed\n600\n"
    # Neither another project nor another agent has them.
    p.make("other")
    done = p.run("run", "--agent", "pal", "--", "/bin/sh", "-c", "ls ~/.pal", cwd=p.home / "other")
    assert done.stdout == "first\nsettings\n", done.stdout
    assert "credentials" not in p.run("run", "--agent", "shell", "--", "-c", "ls -aR ~").stdout
    assert not list(p.project.rglob("credentials"))
    expect(p.run("agent", "forget", "--all"), 0, "forgot")
    assert pal(p, "/bin/sh", "-c", "ls ~/.pal").stdout == "first\nsettings\n"


@case
def the_guides_recipes_bring_each_agent_its_accounts_file(p):
    """With programs that only read the file; the real ones are in tests/agents/subscriptions.py."""
    section = GUIDE.read_text().split("\n## Accounts\n")[1].split("\n## ")[0]
    for name, file in ACCOUNT_FILES.items():
        p.write(f".local/bin/{name}", f"#!/bin/sh\ncat ~/{file} || exit 3\necho renewed >~/{file}\n", 0o755)
        copy, start = re.findall(rf"^\$ (bawn run .*--agent {name}\b.*)$", section, re.MULTILINE)
        p.write(file, f"the token for {name}\n", 0o600)
        for line, status, said in ((start, 3, ""), (copy, 0, ""), (start, 0, f"the token for {name}\n"), (start, 0, "renewed\n")):
            env = {"PATH": f"{BAWN.parent}:{p.home}/.local/bin:/usr/bin:/bin"}
            done = expect(p.run("-c", line, program="sh", env=env), status)
            assert done.stdout == said, (line, done)
        assert (p.home / file).read_text() == f"the token for {name}\n"


@case
def what_a_run_uses_is_not_forgotten(p):
    install(p)
    running = p.start("run", "--agent", "pal", "--", "/bin/sh", "-c", "echo up; read line; pal show")
    assert running.stdout.readline() == b"up\n"
    expect(p.run("agent", "forget", "--all"), 125, "cannot remove the state of this project's runs: a run uses it")
    out, _ = running.communicate(b"go\n", timeout=20)
    assert out == b"in /work\nonce\n1\n", out
    expect(p.run("agent", "forget", "--all"), 0, "forgot")


@case
def a_link_in_what_is_kept_leads_nowhere(p):
    """A run that leaves one where the next writes settings does not have it followed."""
    install(p)
    victim = p.write("victim", "mine\n")
    inside = p.write("project/victim", "mine\n")
    for target in (str(victim), "/work/victim", "/etc/passwd"):
        expect(pal(p, "link", target), 0)
        done = expect(pal(p, "show"), 0)
        assert done.stdout.startswith("in /work\n"), done.stdout
    assert victim.read_text() == inside.read_text() == "mine\n"


@case
def what_a_run_leaves_in_the_way_is_named_and_can_be_forgotten(p):
    spec = p.spec("state: [/home/agent/.s]\nfiles: { /home/agent/.s/a/b: x }\n")
    keep = ("run", *spec, "--", "sh", "-c")
    for script in ("rm ~/.s/a/b; mkdir -p ~/.s/a/b/c", "rm -r ~/.s/a; echo > ~/.s/a",
                   "rm -r ~/.s/a; ln -s /work ~/.s/a"):
        expect(p.run(*keep, script), 0)
        expect(p.run(*keep, "true"), 125, "'/home/agent/.s/a/b'", "something that an earlier run left is in the way", "forget")
        expect(p.run("agent", "forget", "--all"), 0, "forgot")
    assert not (p.project / "b").exists()
    # What it closes is opened again: it would be closed to all that follow.
    expect(p.run(*keep, "chmod 0 ~/.s/a ~/.s"), 0)
    expect(p.run(*keep, "ls ~/.s"), 0, "a\n")


@case
def runs_that_start_together_have_their_files(p):
    """And one that runs never misses them."""
    spec = p.spec("state: [/home/agent/.s]\nfiles: { /home/agent/.s/a/f: x }\n"
                  "initial_files: { /home/agent/.s/b/i: y }\n")
    look = "for i in $(seq 500); do cat ~/.s/a/f ~/.s/b/i; done | tr -d '\\n' | wc -c"
    for _ in range(4):
        runs = [p.start("run", *spec, "--", "sh", "-c", look) for _ in range(6)]
        for run in runs:
            out, err = run.communicate(timeout=60)
            assert run.returncode == 0 and out == b"1000\n" and not err, (run.returncode, out, err)
        assert expect(p.run("run", *spec, "--", "sh", "-c", "ls -A ~/.s/a ~/.s/b"), 0).stdout.split() == [
            "/home/agent/.s/a:", "f", "/home/agent/.s/b:", "i"]
        expect(p.run("agent", "forget", "--all"), 0, "forgot")


@case
def what_is_kept_for_a_project_that_is_gone_can_be_forgotten(p):
    spec = p.spec("state: [/home/agent/.s]\n")
    for gone in ("there/x", "there"):
        folder = p.make("there/x")
        expect(p.run("run", *spec, "--", "sh", "-c", "echo kept > ~/.s/x", cwd=folder), 0)
        folder.rmdir()
        if gone == "there":
            folder.parent.rmdir()
        expect(p.run("agent", "forget", "--all", "--project", folder), 0, "forgot", str(folder))
        expect(p.run("agent", "forget", "--all", "--project", folder), 0, "nothing is kept")
    expect(p.run("agent", "forget", "--all", "--project", "nowhere/x"), 125, "cannot use the project")
    expect(p.run("agent", "forget", "--all", "--project", "nowhere"), 0, "nothing is kept")


@case
def a_project_cannot_name_an_agent_that_the_operator_did_not(p):
    install(p)
    p.write("project/bawn.yaml", "version: 1\nagent: pal\n")
    expect(p.run("run", "--", "x"), 125, "bawn.yaml:2:8: error: agent: 'pal'", "name it yourself: --agent")
    expect(pal(p, "x"), 0, "pal at")
    expect(p.run("run", "--trust", "--", "x"), 0, "pal at")
    p.write(".config/bawn/policy.yaml", "version: 1\nproject_may: { agent: pal }\n")
    expect(p.run("run", "--", "x"), 0, "pal at")
    p.write("project/bawn.yaml", "version: 1\nagent: shell\n")
    expect(p.run("run", "--", "-c", "true"), 125, "error: agent: 'shell'")


@case
def a_project_does_not_choose_the_program(p):
    """What it has in PATH, as a shell that was prepared for it, is neither run nor followed."""
    install(p)
    p.write("private/node_modules/secret", "s3cret\n")
    p.write("private/node_modules/x.sh", "#!/bin/sh\necho theirs\n", 0o755)
    (p.make("project/.venv/bin") / "pal").symlink_to(p.home / "private/node_modules/x.sh")
    path = {"PATH": f"{p.project}/.venv/bin:/usr/bin:/bin"}
    look = ("--", "/bin/sh", "-c", "pal; find / -name secret 2>/dev/null; true")
    done = expect(p.run("run", "--agent", "pal", *look, env=path), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work:\n", done.stdout
    # Nor by a project that is a part of it, whoever says so.
    p.write("project/.git/HEAD", "ref: refs/heads/main\n")
    p.make("project/sub")
    done = expect(p.run("run", "--agent", "pal", *look, env=path, cwd=p.project / "sub"), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work:\n", done.stdout
    p.write("project/bawn.yaml", "version: 1\nproject: { path: ./sub }\n")
    done = expect(p.run("run", "--agent", "pal", *look, env=path), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work:\n", done.stdout
    # Nor by a link of the operator's into it, beside which it may have others.
    p.write("project/pal", "#!/bin/sh\necho theirs\n", 0o755)
    (p.make("links") / "pal").symlink_to(p.project / "pal")
    done = expect(p.run("run", "--agent", "pal", *look, env={"PATH": f"{p.home}/links:/usr/bin:/bin"}), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work:\n", done.stdout
    # In a project of another name it is the operator's own choice.
    p.make("other")
    done = expect(p.run("run", "--agent", "pal", *look, env=path, cwd=p.home / "other"), 0)
    assert done.stdout == "theirs\n/opt/agent/node_modules/secret\n", done.stdout


@case
def what_a_project_sets_does_not_undo_the_profile(p):
    install(p)
    p.write("project/bawn.yaml", "version: 1\nenv: { set: { CI: \"1\" } }\nfiles: { /etc/other: \"x\" }\n")
    p.write(".config/bawn/policy.yaml", "version: 1\ndefaults: { agent: pal }\n")
    done = expect(p.run("run", "--", "/bin/sh", "-c", "pal show; cat /etc/other; echo $CI"), 0)
    assert done.stdout == "in /work\nonce\n1\nx1\n", done.stdout
    done = expect(pal(p, "/bin/sh", "-c", "pal show; echo $CI"), 0)
    assert done.stdout == "in /work\nonce\n1\n1\n", done.stdout
    # Nor what the operator says of the agent instead.
    p.write(".config/bawn/policy.yaml", "version: 1\ndefaults:\n  agent: pal\n  env: { set: { PAL_HOST: theirs } }\n"
            "  files: { /home/agent/.pal/settings: \"stern\\n\" }\n")
    done = expect(p.run("run", "--", "/bin/sh", "-c", "pal show; cat /etc/other; echo $CI"), 0)
    assert done.stdout == "stern\nonce\ntheirs\nx1\n", done.stdout


@case
def what_is_the_agents_own_a_project_cannot_say(p):
    install(p)
    p.write(".config/bawn/agents/pal.yaml", PROFILE + "  tools: true\n")
    p.write("project/evil", "#!/bin/sh\necho evil\n", 0o755)
    for text, named in (("files: { /home/agent/.pal/settings: evil }", "files: '/home/agent/.pal/settings'"),
                        ("files: { /opt/agent/bin/pal: \"#!/bin/sh\\necho evil\" }", "files: '/opt/agent/bin/pal'"),
                        ("files: { /etc/pal/prompts: evil }", "files: '/etc/pal/prompts'"),
                        ("env: { set: { PATH: \"/work:/bin\" } }", "env.set: 'PATH'"),
                        ("binds: [\"./evil:/opt/agent/lib/pal\"]", "binds: '/opt/agent/lib/pal'"),
                        ("binds: [\"./evil:/home/agent/.pal/x\"]", "binds: '/home/agent/.pal/x'"),
                        ("binds: [\"./:/opt\"]", "binds: '/opt'"),
                        ("project: { at: /opt/agent/x }", "project.at: '/opt/agent/x'"),
                        ("tools: false", "tools: 'false'")):
        p.write("project/bawn.yaml", f"version: 1\n{text}\n")
        expect(pal(p, "show"), 125, named, "is for the profile 'pal' to say", "--trust")
        if not text.startswith(("binds", "project")):  # whose places are taken, whoever says so
            expect(p.run("run", "--agent", "pal", "--trust", "--", "/bin/true"), 0)
        expect(p.run("run", "--", "/bin/true"), 0)  # without an agent it is as good as any
    p.write("project/bawn.yaml", "version: 1\ntools: false\nenv: { set: { PATH: \"/work:/bin\" } }\n")
    done = expect(pal(p, "show"), 125, "bawn.yaml:2:8: tools: 'false'", "bawn.yaml:3:15: env.set: 'PATH'")
    assert done.stderr.count("error: ") == done.stderr.count("--trust") == 1, done.stderr
    p.write("project/bawn.yaml", "version: 1\ncommand: [echo, evil]\n")
    done = expect(p.run("run", "--agent", "pal"), 0)
    assert done.stdout == "pal at /opt/agent/lib/pal in /work:\n", done.stdout
    assert expect(p.run("run"), 0).stdout == "evil\n"


@case
def prompts_reach_the_file_that_the_profile_names(p):
    install(p)
    spec = p.spec("agent: pal\nstartup_prompts: [\"Be brief.\", \"Be kind.\"]\n")
    done = expect(p.run("run", *spec, "--", "/bin/cat", "/etc/pal/prompts"), 0)
    assert done.stdout == "Be brief.\n\nBe kind.\n", done.stdout
    # A project's come after the operator's, which it cannot take away, and are told apart.
    p.write(".config/bawn/policy.yaml", "version: 1\ndefaults: { startup_prompts: [\"Be brief.\"] }\n")
    p.write("project/bawn.yaml", "version: 1\nstartup_prompts: [\"Be evil.\"]\n")
    done = expect(pal(p, "/bin/cat", "/etc/pal/prompts"), 0)
    told = "From the project's own file, not from the operator:"
    assert done.stdout == f"Be brief.\n\n{told}\n\nBe evil.\n", done.stdout
    # Who repeats them does not make them its own.
    p.write("project/bawn.yaml", "version: 1\nstartup_prompts: [\"Be evil.\", \"Be brief.\"]\n")
    done = expect(pal(p, "/bin/cat", "/etc/pal/prompts"), 0)
    assert done.stdout == f"Be brief.\n\n{told}\n\nBe evil.\n", done.stdout
    done = expect(pal(p, "/bin/cat", "/etc/pal/prompts", options=["--trust"]), 0)
    assert done.stdout == "Be brief.\n\nBe evil.\n", done.stdout
    (p.home / ".config/bawn/policy.yaml").unlink()
    spec = p.spec("agent: shell\nstartup_prompts: [x]\n")
    expect(p.run("run", *spec, "--", "-c", "true"), 125, "says no way to hand them over")
    spec = p.spec("startup_prompts: [x]\n")
    expect(p.run("run", *spec, "--", "true"), 125, "nobody is handed them")


@case
def a_session_has_the_agent_too(p):
    install(p)
    made = expect(p.run("session", "create", "--agent", "pal", "-q"), 0)
    name = made.stdout.strip()
    expect(p.run("session", "exec", name, "--", "pal", "keep"), 0)
    done = expect(p.run("session", "exec", name, "--", "pal", "show"), 0)
    assert done.stdout == "in /work\nonce\nmore\n1\n", done.stdout
    # Nothing of it is in what runs of the project keep.
    assert pal(p, "show").stdout == "in /work\nonce\n1\n"
    expect(p.run("session", "rm", name), 0)


@case
def files_are_held_to_their_places(p):
    for text, said in (("files: { /usr/x: y }", "must be below /home/agent, /etc, /opt or /run"),
                       ("files: { /etc/passwd: y }", "/etc/passwd is made by the cage itself"),
                       ("files: { /etc/../usr/x: y }", "has '..'"),
                       ("files: { \"/etc/a=b\": y }", "has a '=' in its name"),
                       ("state: [/etc]", "is not below /home/agent"),
                       ("state: [/home/agent/.a, /home/agent/.a/b]", "is kept already"),
                       ("state: [/home/agent/.a/b]\nproject: { at: /home/agent/.a }", "would cover /home/agent/.a/b, which"),
                       ("state: [/home/agent/.a]\nbinds: [\"./:/home/agent/.a\"]", "would cover /home/agent/.a, which"),
                       ("state: [\"/home/agent/a b\"]", "letters, digits")):
        expect(p.run("run", *p.spec(text + "\n"), "--", "true"), 125, said)
    before = picture(p.home)
    done = expect(p.run("run", *p.spec("files: { /etc/a/b: \"c\", /opt/x: \"#!/bin/sh\\necho run\\n\" }\n"),
                        "--", "sh", "-c", "cat /etc/a/b; /opt/x; echo no > /etc/a/b || echo refused"), 0)
    assert done.stdout == "crun\nrefused\n", done.stdout
    (p.home / "spec.yaml").unlink()
    before.pop(str(p.home / "spec.yaml"), None)
    assert {k: v[-1] for k, v in picture(p.home).items()} == {k: v[-1] for k, v in before.items()}


@case
def the_operators_own_key_stays_outside_and_that_is_said(p):
    install(p)
    p.write(".config/bawn/agents/pal.yaml", PROFILE + "keys:\n  - { name: pal, variable: PAL_KEY, host: "
            "\"pal.example:443\", header: x-key, base_url: PAL_URL }\n")
    env = {"PAL_KEY": "s3cret"}
    look = ("/bin/sh", "-c", "env | grep ^PAL_")
    done = expect(p.run("run", "--agent", "pal", "--", *look, env=env), 0, "PAL_KEY is set here, and stays outside")
    assert done.stdout == "PAL_HOST=1\n", done.stdout
    done = p.run("run", "--agent", "pal", "-e", "PAL_KEY", "--", *look, env=env)
    assert sorted(done.stdout.split()) == ["PAL_HOST=1", "PAL_KEY=s3cret"], done.stdout
    plan = json.loads(p.run("plan", "--agent", "pal", "--network", "allowlist", "--secret", "PAL_KEY", "--json",
                            env=env).stdout)
    assert "s3cret" not in json.dumps(plan)
    expect(p.run("run", "--agent", "pal", "--secret", "OTHER", "--", "x"), 125, "knows no such key")


@case
def they_are_listed_and_shown(p):
    install(p)
    done = expect(p.run("agent", "list", "--json"), 0)
    names = {row["name"]: row["path"] for row in json.loads(done.stdout)["agents"]}
    assert {"claude", "codex", "gemini", "opencode", "shell", "any", "pal"} <= set(names)
    assert names["pal"] == str(p.home / ".local/bin/pal")
    shown = json.loads(expect(p.run("agent", "show", "pal", "--json"), 0).stdout)
    assert shown["spec"]["state"] == ["/home/agent/.pal"]
    expect(p.run("agent", "show", "nobody"), 1, "there is no profile 'nobody'")
    p.write(".config/bawn/policy.yaml", "version: 1\n")
    expect(p.run("agent", "show", "../policy"), 1, "there is no profile '../policy'")
    for line, said in (("  network: { mode: host }\n", "cannot give the host's network"),
                       ("  binds: [\"~/x:/srv/x:rw\"]\n", "cannot let '~/x' be written")):
        p.write(".config/bawn/agents/pal.yaml", PROFILE + line)
        expect(p.run("agent", "show", "pal"), 1, said)
    p.write(".config/bawn/agents/pal.yaml", PROFILE + "other: 1\n")
    expect(p.run("agent", "show", "pal"), 1, "unknown key 'other' in a profile")


if __name__ == "__main__":
    main()
