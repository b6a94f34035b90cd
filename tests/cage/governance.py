#!/usr/bin/env python3
"""Self-governance: one folder, named by the operator's policy, whose agents may change what governs them.

    governance.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

Each time the same commands are tried with the policy and without it, in that folder and elsewhere.
"""

import sys

sys.dont_write_bytecode = True
import records  # noqa: E402
from place import case, expect, main  # noqa: E402

# Things that run on the host later, and one that is the operator's own rule.
TRIED = (".git/hooks/pre-commit", ".git/config", ".githooks/pre-commit", ".claude/settings.json", ".bashrc", "bawn.yaml", "rules/fixed")
SCRIPT = f"for path in {' '.join(TRIED)}; do echo evil > $path && echo $path; done 2>/dev/null; true"


def prepare(p, project):
    contents = {"bawn.yaml": "version: 1\n", ".git/config": "[core]\n\thooksPath = .githooks\n"}
    for path in TRIED:
        p.write(project / path, contents.get(path, "before\n"))
    p.write(project / ".git/HEAD", "ref: refs/heads/main\n")
    p.make(project / ".git/objects")
    p.make(project / ".git/refs")
    return project


def govern(p, path, more=""):
    p.make(".config/bawn")
    p.write(".config/bawn/policy.yaml", f"version: 1\nself_governance: {path}\n{more}", 0o600)


def written(p, project, *options):
    """Which of them the command could write, and the host has."""
    done = expect(p.sh(SCRIPT, *options, cwd=project), 0)
    changed = [path for path in TRIED if (project / path).read_text() == "evil\n"]
    return done.stdout.split(), changed


def is_relaxed(p):
    record = p.record()
    return record["self_governance"], "self_governance" in record["level_reasons"]


@case
def the_named_folder_governs_itself(p):
    prepare(p, p.project)
    govern(p, "~/project")
    assert written(p, p.project) == (list(TRIED), list(TRIED))
    record = p.record()
    assert record["self_governance"] == "~/project" and record["level"] == "custom", record
    assert record["level_reasons"] == "self_governance ~/project, project.mode writable", record
    assert "fs.protect" not in record["guarantees"] and record["guarantees"]["fs.project"]["declared"] == "writable"
    expect(p.run("verify", record["run"]), 0)
    events = records.chain(p.state / "bawn/runs" / record["run"] / "events.jsonl")[0]
    assert [event["self_governance"] for event in events if event["type"] == "run_start"] == ["~/project"], events


@case
def without_the_policy_it_does_not(p):
    prepare(p, p.project)
    assert written(p, p.project, "--write") == (["rules/fixed"], ["rules/fixed"])
    assert is_relaxed(p) == (None, False)
    # As ever, nothing reaches the project that is not asked for.
    prepare(p, p.project)
    assert written(p, p.project) == (list(TRIED), [])
    assert is_relaxed(p) == (None, False)


@case
def no_other_folder_does(p):
    govern(p, p.make("all/project"))
    for other in map(p.make, ("all", "all/project/inner", "all/project2")):
        prepare(p, other)
        assert written(p, other, "--write") == (["rules/fixed"], ["rules/fixed"]), other
        assert is_relaxed(p) == (None, False), other
        prepare(p, other)
        assert written(p, other)[1] == [], other


@case
def it_is_the_folder_that_counts_and_no_name_of_it(p):
    prepare(p, p.project)
    (p.home / "link").symlink_to(p.project)
    govern(p, "~/link")
    assert written(p, p.home / "link")[1] == list(TRIED) and is_relaxed(p) == ("~/link", True)
    # A link of that name elsewhere is another folder.
    other = prepare(p, p.home / "other")
    (p.home / "link").unlink()
    (p.home / "link").symlink_to(other)
    prepare(p, p.project)
    assert written(p, p.project)[1] == [] and is_relaxed(p) == (None, False)
    # One that is not there is nobody's exception.
    govern(p, "~/nowhere")
    assert written(p, p.project)[1] == [] and is_relaxed(p) == (None, False)


@case
def the_operators_own_rules_stay(p):
    prepare(p, p.project)
    govern(p, p.project, "defaults:\n  project: {protect: [rules]}\n")
    free = [path for path in TRIED if not path.startswith("rules/")]
    assert written(p, p.project) == (free, free)
    record = p.record()
    assert record["guarantees"]["fs.protect"]["holds"] and record["self_governance"], record
    expect(p.run("verify", record["run"]), 0)
    prepare(p, p.project)
    for options, seen in ((("--read-only",), []), (p.spec("project: {mode: captured}\n"), free + ["rules/fixed"])):
        assert written(p, p.project, *options) == (seen, []), options
        assert is_relaxed(p) == (None, False), options
    govern(p, p.project, "defaults:\n  project: {mode: read_only}\n")
    assert written(p, p.project) == ([], [])


@case
def all_else_is_as_in_any_run(p):
    prepare(p, p.project)
    secret = p.write("secret", "secret\n")
    env = {"SECRET_KEY": "1", "AWS_ACCESS_KEY_ID": "2", "SSH_AUTH_SOCK": "/x"}
    script = f"env | sort; id -u; cat {secret} /etc/shadow; grep -E 'Seccomp:|NoNewPrivs|CapEff' /proc/self/status; ls /sys/class/net"
    plain = p.sh(script, "--write", env=env)
    before = p.record()
    govern(p, p.project)
    governed = p.sh(script, env=env)
    after = p.record()
    assert "SECRET_KEY" not in governed.stdout and "Seccomp:\t2" in governed.stdout, governed
    hide = [line for line in plain.stdout.splitlines() if before["run"] not in line]
    assert hide == [line for line in governed.stdout.splitlines() if after["run"] not in line], (plain, governed)
    names = set(before["guarantees"]) - {"fs.protect"}
    assert names == set(after["guarantees"]) and all(after["guarantees"][name]["holds"] ==
                                                     before["guarantees"][name]["holds"] for name in names)
    assert before["filter_sha256"] == after["filter_sha256"] and after["in_chain"]


@case
def only_a_policy_can_say_it(p):
    prepare(p, p.project)
    p.write(p.project / "bawn.yaml", f"version: 1\nself_governance: {p.project}\n")
    for options in ((), ("--trust",)):
        expect(p.sh("true", *options), 125, "unknown key 'self_governance'", "belongs in the operator's policy.yaml")
    p.write(p.project / "bawn.yaml", "version: 1\n")
    expect(p.run("run", "--self-governance", p.project, "--", "true"), 125, "cannot use --self-governance: bawn run has no such option")
    # And one that others can write is none.
    govern(p, p.project)
    (p.home / ".config/bawn/policy.yaml").chmod(0o666)
    expect(p.sh("true"), 125, "others can write to")


@case
def plan_check_and_card_name_it(p):
    prepare(p, p.project)
    expect(p.run("check"), 0)
    govern(p, p.project)
    said = expect(p.run("check"), 0)
    assert "self_governance: what runs in this project may change its hooks" in said.stdout + said.stderr, said
    said = expect(p.run("plan", "--", "true"), 0).stdout
    assert f"self_governance {p.project}" in said and "  ro  protect" not in said, said
    expect(p.sh("true"), 0)
    for words in (("card", "--json"), ("card", "--json", p.record()["run"])):
        card = expect(p.run(*words), 0).stdout
        assert "self_governance" in card and '"custom"' in card and "protectedPathsHeld\":true" not in card, card


@case
def a_run_is_repeated_under_todays_policy(p):
    prepare(p, p.project)
    govern(p, p.project)
    expect(p.sh("true"), 0)
    run = p.record()["run"]
    expect(p.run("run", "--again", run, "--trust"), 0)
    assert is_relaxed(p) == (str(p.project), True)
    (p.home / ".config/bawn/policy.yaml").unlink()
    expect(p.run("run", "--again", run, "--trust"), 0)
    assert is_relaxed(p) == (None, False)


@case
def a_session_of_it_holds_what_is_protected(p):
    prepare(p, p.project)
    govern(p, p.project)
    for options, changed in (([], []), (["--write"], ["rules/fixed"])):
        session = expect(p.run("session", "create", *options), 0).stdout.strip()
        expect(p.run("session", "exec", session, "--", "sh", "-c", SCRIPT), 0)
        assert is_relaxed(p) == (None, False), p.record()
        assert [path for path in TRIED if (p.project / path).read_text() == "evil\n"] == changed
        expect(p.run("session", "rm", session, "--yes"), 0)


if __name__ == "__main__":
    main()
