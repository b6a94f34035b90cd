#!/usr/bin/env python3
"""What was asked for before there was bawn, line by line, of real agents. Each case is a line.

    acceptance.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

from world import HERE, bawn, cage, each, in_short, main, model_that, shell, turn

SECRET = "of-another-project-7731"
HOSTS = HERE.parent / "golden" / "hosts"
SYSTEM = {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "mnt", "opt", "proc", "run", "sbin", "srv", "tmp",
          "usr", "var", "work"}


def furnish(place):
    for path in (".ssh/id_ed25519", ".aws/credentials", "framework/_cortex/rules", "other/notes"):
        place.write(path, SECRET)
    place.write(place.project / "notes", "of-this-project\n")


def heard(place, agent, *steps, options=()):
    """What the model is told by an agent that takes these steps."""
    with model_that(*steps) as model:
        turn(place, agent, model, *options)
        return model.heard()


def search(agent, **given):
    """A step by the agent's own tool; where it searches by its shell, by that."""
    if agent.name in ("claude", "codex"):
        return shell("grep -rs {pattern} {path}; find {path} -name rules".format(**given))
    if agent.name == "gemini":
        return {"tool": "grep_search", "input": {"pattern": given["pattern"], "dir_path": given["path"]}}
    return {"tool": "grep", "input": given}


def find(agent, **given):
    if agent.name in ("claude", "codex"):
        return shell("find {path} -path {pattern}".format(**given))
    return {"tool": "glob", "input": {"dir_path" if agent.name == "gemini" and key == "path" else key: value
                                      for key, value in given.items()}}


# --- phase A ---

@each("claude", "gemini", "opencode")
@in_short("claude")
def a1_reads_nothing_outside_its_project(place, agent):
    furnish(place)
    said = heard(place, agent, agent.read(path=str(place.home / "other/notes")), agent.read(path="/work/notes"))
    assert SECRET not in said and "of-this-project" in said


@each()
@in_short("codex")
def a2_searches_nothing_outside_its_project(place, agent):
    furnish(place)
    home = str(place.home)
    said = heard(place, agent, search(agent, pattern=SECRET[:8], path=home), find(agent, pattern="**/rules", path=home),
                 search(agent, pattern="of-this", path="/work"))
    assert SECRET not in said and "_cortex/rules" not in said and "of-this-project" in said, said[-2000:]


@each()
@in_short("codex")
def a3_reaches_no_keys_and_no_framework_by_any_tool(place, agent):
    furnish(place)
    paths = [str(place.home / name) for name in (".ssh/id_ed25519", ".aws/credentials", "framework/_cortex/rules")]
    steps = [shell(f"cat {path}; find / -name id_ed25519 -o -name _cortex 2> /dev/null") for path in paths]
    steps += [agent.read(path=path) for path in paths] if agent.read else []
    assert SECRET not in heard(place, agent, *steps)


@each()
@in_short("codex")
def a4_has_a_home_of_its_own(place, agent):
    said = heard(place, agent, shell("echo at:$HOME; cd; pwd"))
    assert "at:/home/agent" in said and str(place.home) not in said.replace(str(place.project), "")


@each()
@in_short("codex")
def a5_governs_itself_where_the_operator_says_so(place, agent):
    """In the framework's own folder, by policy: it may write what governs it. Elsewhere the same is refused."""
    order = shell("mkdir -p .claude .git/hooks; echo rule > .claude/settings.json; echo rule > .git/hooks/pre-commit")
    for name in ("framework", "project"):
        for path, text in ((".git/HEAD", "ref: refs/heads/main\n"), (".git/config", "[core]\n"), (".git/hooks/x", "")):
            place.write(place.home / name / path, text)
    place.make(".config/bawn")
    place.write(".config/bawn/policy.yaml", "version: 1\nself_governance: ~/framework\n", 0o600)
    for name, is_free in (("framework", True), ("project", False)):
        with model_that(order) as model:
            turn(place, agent, model, "--write", cwd=place.home / name)
        for path in (".claude/settings.json", ".git/hooks/pre-commit"):
            assert (place.home / name / path).exists() == is_free, (name, path)


@each()
@in_short("codex")
def a6_leaves_no_folders_behind(place, agent):
    """Nothing of the cage is left when it ends but its record, what it wrote for review, and what is to be kept."""
    before = cage.mounts(), cage.strays()
    heard(place, agent, shell("mkdir -p /tmp/mine ~/mine /var/tmp/mine; echo x > /tmp/mine/x"))
    assert (cage.mounts(), cage.strays()) == before
    assert not [path for path in place.top.rglob("mine") if "bawn" not in path.parts], "a private folder is left"


# --- phase B ---

@each()
@in_short("codex")
def b1_sees_its_project_and_a_system_only(place, agent):
    said = heard(place, agent, shell("ls -A / | tr '\\n' :; echo end"))
    seen = max((line for line in said.replace("\\", "").split('"') if line.startswith("bin:") or "bin:dev:" in line),
               key=len, default="")
    names = set(seen[seen.index("bin:"):].split("end")[0].strip(":").split(":"))
    assert names and names <= SYSTEM, names - SYSTEM


@each()
@in_short("codex")
def b2_finds_nobody_in_home(place, agent):
    """A home of its own is there, as it has to have one."""
    assert "[agent:]" in heard(place, agent, shell("ls -A /home | tr '\\n' : | sed 's/^/[/;s/$/]/'"))


@each()
@in_short("codex")
def b3_has_no_shadow(place, agent):
    said = heard(place, agent, shell("cat /etc/shadow || echo there-is-no''ne"))
    assert "root:" not in said and "there-is-none" in said, said[-2000:]


@each()
@in_short("codex")
def b4_reaches_no_service_of_another_project(place, agent):
    with model_that() as other:
        ways = [f"curl -sS -m 10 http://{name}:{other.port}/v1/models" for name in ("127.0.0.1", "localhost", "bawn-host")]
        heard(place, agent, *map(shell, ways))
        assert not other.requests(), "it got there"
        heard(place, agent, *map(shell, ways), options=("--host-port", other.port))
        assert other.requests(), "it does not even get there when it may"


@each()
@in_short("codex")
def b5_runs_nothing_weaker_where_there_are_no_user_namespaces(place, agent):
    """Another program that makes cages is not used yet: it is refused, and said."""
    words = ["plan", "--agent", agent.name, "--host", HOSTS / "no-userns.json"]
    done = bawn(place, *words)
    assert done.returncode == 1 and "user namespace" in done.stderr, done
    cage.expect(bawn(place, *words[:-1], HOSTS / "user.json"), 0)


if __name__ == "__main__":
    main()
