#!/usr/bin/env python3
"""git in a cage: repositories work there as they do outside, and nothing of it is left on the host.

    git.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage"), str(HERE)]
from place import BREAKABLE, USER, Skip, case, expect, main, of_root, of_users, output, picture  # noqa: E402
from repositories import Unchanged, caged, expect_sound, git, repository, worktree  # noqa: E402

# --- a repository in the project ---

# What people and agents do all day; the last lines say what came of it.
DAY = """
test -z "$(git status --porcelain)"
echo more >>a
git add a
git commit -qm second
git switch -qc side HEAD~1
echo other >d
git add d
git commit -qm third
git rebase -q main
git commit -q --amend -m 'third, said better'
echo unfinished >>b
git stash -q
test -z "$(git status --porcelain)"
git stash pop -q
git checkout -q -- b
git tag -a -m 'a tag' v1
git switch -q main
git merge -q --no-ff -m merged side
git mv c e
git commit -qm renamed
git worktree add -q .trees/other side
echo there >.trees/other/f
git -C .trees/other add f
git -C .trees/other commit -qm 'in a worktree'
git worktree list | wc -l
git gc -q
git pack-refs --all
git fsck --full --strict --no-dangling
test "$(git status --porcelain)" = '?? .trees/'
git log --oneline --all | wc -l
"""


@case
def a_day_of_git_in_a_captured_cage(p):
    repository(p)
    before = picture(p.project)
    output(caged(p, DAY), "2\n6\n")
    output(caged(p, DAY, *p.spec("project: {cage: project}\n")), "2\n6\n")
    assert picture(p.project) == before
    expect_sound(p, p.project)


@case
def the_same_at_a_terminal(p):
    repository(p)
    before = picture(p.project)
    done = expect(caged(p, "test -t 1\n" + DAY, "--tty"), 0)
    assert done.stdout.split()[-2:] == ["2", "6"], done
    assert picture(p.project) == before


@case
def packed_refs_and_a_detached_head(p):
    repository(p)
    for name in ("x", "y/z"):
        git(p, "branch", name)
    git(p, "gc", "-q")
    git(p, "pack-refs", "--all")
    git(p, "checkout", "-q", "--detach")
    before = picture(p.project)
    output(caged(p, """
        git symbolic-ref -q HEAD && exit 1
        echo more >>a
        git commit -qam second
        git branch -D -q x
        git branch -f y/z HEAD
        git for-each-ref --format='%(refname)'
        git rev-list --count HEAD
        git fsck --full --strict --no-dangling
    """), "refs/heads/main\nrefs/heads/y/z\n2\n")
    assert picture(p.project) == before


@case
def read_only_it_can_be_looked_at(p):
    repository(p)
    p.write("project/a", "changed\n")
    before = picture(p.project)
    output(caged(p, "git status --porcelain; git log --oneline | wc -l; git diff --stat | wc -l; git show HEAD:b",
                 "--read-only"), " M a\n1\n2\nb\n")
    expect(caged(p, "git commit -qam second", "--read-only"), 128, "Read-only file system")
    assert picture(p.project) == before


@case
def mounts_of_a_large_project_go_after_the_run(p):
    """bawn does not wait until the kernel has taken them down; it does that nevertheless, and soon."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a project of its own")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"uid={p.uid},gid={p.uid},mode=755", "tmpfs", p.project], check=True)
    try:
        repository(p)
        blob = git(p, "hash-object", "-w", "a").strip()
        p.write("listed", "".join(f"100644 {blob}\tfolder/{'x' * 20}{i}\n" for i in range(20000)))
        git(p, "update-index", "--index-info", stdin=(p.home / "listed").open("rb"))
        assert (p.project / ".git/index").stat().st_size > 1 << 20
        output(caged(p, "sleep 0.3; git ls-files | wc -l"), "20003\n")
        assert (p.project / "a").exists()
    finally:
        deadline = time.monotonic() + 60
        while subprocess.run(["umount", p.project], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            assert time.monotonic() < deadline, "something still uses the project's file system"
            time.sleep(0.01)


@case
@of_root
def a_users_repository_in_a_cage_of_roots(p):
    """git believes only what belongs to who runs it: in the cage that is whoever owns the project."""
    p.uid = USER
    repository(p)
    before = picture(p.project)
    p.uid = 0
    output(caged(p, DAY), "2\n6\n")
    assert picture(p.project) == before
    # A repository in it of somebody else's is as doubtful as outside.
    for folder, folders, files in os.walk(p.project / ".git"):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), 0, 0)
    expect(caged(p, "git status"), 128, "dubious ownership")


@case
def submodules_of_the_project(p):
    repository(p)
    library = repository(p, "project/library")
    git(p, "remote", "add", "origin", str(p.project))
    git(p, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "./library", "sub")
    git(p, "commit", "-qm", "a submodule")
    git(p, "submodule", "deinit", "-q", "-f", "sub")
    p.write(library / "a", "newer\n")
    git(p, "commit", "-qam", "second", cwd=library)
    before = picture(p.project)
    output(caged(p, """
        git config remote.origin.url "$PWD"
        git -c protocol.file.allow=always submodule update -q --init
        cat sub/a
        git submodule sync -q
        git -c protocol.file.allow=always submodule update -q --remote
        cat sub/a
        git add sub
        echo more >>sub/b
        git -C sub commit -qam third
        git add sub
        git commit -qm 'submodule moved'
        git submodule status | cut -c1
        git -C sub rev-list --count HEAD
        git -C sub fsck --full --strict
        git fsck --full --strict
    """), "a\nnewer\n \n3\n")
    assert picture(p.project) == before


# --- the project is a linked worktree ---

AT_OWN_PATH = "project: {cage: project}\n"
AT_WORK = "project: {at: /work}\n"

# The same as in a repository of its own, but for what is checked out elsewhere.
WORKTREE_DAY = """
test -z "$(git status --porcelain)"
echo more >>a
git commit -qam second
git switch -qc other HEAD~1
echo other >d
git add d
git commit -qm third
git rebase -q side
git stash list
echo unfinished >>b
git stash -q
git stash pop -q
git checkout -q -- b
git tag -a -m 'a tag' v1
git switch -q side
git merge -q --no-ff -m merged other
git worktree add -q .trees/new other
git -C .trees/new status --porcelain
git worktree list | wc -l
git gc -q
git fsck --full --strict --no-dangling
git log --oneline --all | wc -l
"""


@case
def git_in_a_linked_worktree(p):
    main_folder = worktree(p)
    with Unchanged(p, main_folder):
        output(caged(p, WORKTREE_DAY), "3\n4\n")
        output(caged(p, WORKTREE_DAY, *p.spec(AT_OWN_PATH)), "3\n4\n")
        done = expect(caged(p, "test -t 1\n" + WORKTREE_DAY, "--tty"), 0)
        assert done.stdout.split() == ["3", "4"], done
    expect_sound(p, main_folder)
    assert git(p, "status", "--porcelain") == ""


@case
def what_is_written_to_a_worktrees_git_is_kept(p):
    main_folder = worktree(p)
    for options in ((), p.spec("limits: {disk: 64M}\n")):  # on disk, and in the cage's own file system
        with Unchanged(p, main_folder):
            expect(caged(p, "git commit -q --allow-empty -m second", *options), 0)
        (run,) = p.state.glob("bawn/runs/*")
        assert os.readlink(run / "project") == str(p.project)
        assert os.readlink(run / "git") == f"{main_folder}/.git"
        assert (run / "git-layer/upper/refs/heads/side").exists(), list(run.rglob("*"))
        shutil.rmtree(run)
        # A run that wrote nothing leaves no layers.
        expect(caged(p, "git log --oneline", *options), 0)
        (run,) = p.state.glob("bawn/runs/*")
        assert not {"layer", "git-layer"} & set(os.listdir(run)), os.listdir(run)
        shutil.rmtree(run)


@case
def a_worktrees_git_is_planned_and_recorded(p):
    main_folder = worktree(p)
    done = expect(p.run("plan", "--", "true"), 0, f"$GIT is {main_folder}/.git")
    assert re.search(r"cow git +\$GIT +from \$GIT", done.stdout), done.stdout
    digest = p.run("plan", "--digest", "--", "true").stdout
    output(caged(p, f"ls -A {main_folder}"), ".git\n")
    expect(p.run("run", "--", "true"), 0)
    assert p.record()["plan_sha256"] == digest.strip()
    # Wherever it is: the plan says what is shown, not where that is on one machine.
    shutil.rmtree(main_folder)
    worktree(p, "elsewhere/repository.git", "another")
    assert p.run("plan", "--digest", "--", "true").stdout == digest
    for options in (p.spec("project: {git: none}\n"), p.spec("project: {read_allowlist: [$PROJECT/a]}\n")):
        assert "$GIT" not in expect(p.run("plan", *options, "--", "true"), 0).stdout


@case
def a_worktrees_git_has_the_rights_of_the_project(p):
    main_folder = worktree(p)
    with Unchanged(p, main_folder):
        look = "git status --porcelain; git log --oneline | wc -l; "
        write = f"echo x >{main_folder}/.git/HEAD"
        output(caged(p, look, "--read-only"), "1\n")
        expect(caged(p, write, "--read-only"), 2, "Read-only file system")
        part = p.spec("project: {write_allowlist: [$PROJECT/a]}\n")
        output(caged(p, look + "echo more >>a", *part), "1\n")
        expect(caged(p, write, *part), 2, "Read-only file system")
        # What is written there while the run lasts is seen by the run only.
        output(caged(p, write + f"; cat {main_folder}/.git/HEAD"), "x\n")
        # Where it is on the host, and what else is there, is not seen.
        output(caged(p, "grep -c " + str(p.top) + " /proc/self/mountinfo"), "1\n")


@case
def in_a_writable_project_commits_are_the_hosts(p):
    main_folder = worktree(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"), cwd=main_folder)
    for options in (("--write",), ("--write", *p.spec(AT_OWN_PATH))):
        held = picture(main_folder / ".git/hooks"), (main_folder / ".git/config").read_bytes()
        before = int(git(p, "rev-list", "--count", "HEAD"))
        script = f"""
            echo more >>a
            git commit -qam second
            git switch -qc new-{before}
            git commit -q --allow-empty -m third
            git switch -q side
            git merge -q --no-ff -m merged new-{before}
            git stash list
            git status --porcelain
            git fsck --full --strict --no-dangling
        """
        output(caged(p, script, *options), "")
        assert int(git(p, "rev-list", "--count", "HEAD")) == before + 3
        for folder in (p.project, main_folder, p.home / "third"):
            assert git(p, "status", "--porcelain", cwd=folder) == ""
            expect_sound(p, folder)
        # What would run on the host, and what is another worktree's, stays as it is.
        top = main_folder / ".git"
        for attempt in (f"echo x >{top}/hooks/post-commit", f"echo x >>{top}/config", "git config core.pager x",
                        f"mkdir -p {top}/info && echo x >{top}/info/attributes", f"echo x >{top}/config.worktree",
                        f"echo x >{top}/commondir", f"mv {top}/hooks {top}/old", f"mv {top}/worktrees {top}/old",
                        f"rm -r {top}/worktrees/third", f"echo x >{top}/worktrees/{p.project.name}/gitdir",
                        f"echo x >{top}/worktrees/{p.project.name}/config.worktree", "rm .git", "mv .git x"):
            done = caged(p, attempt + " 2>/dev/null", *options)
            assert done.returncode != 0, attempt
        caged(p, "git worktree prune; git gc -q", *options)
        assert (picture(main_folder / ".git/hooks"), (main_folder / ".git/config").read_bytes()) == held
        for folder in (p.project, main_folder, p.home / "third"):
            assert git(p, "status", "--porcelain", cwd=folder) == ""
            expect_sound(p, folder)
    left = [path for path in (main_folder / ".git").rglob("*")
            if path.name.endswith(".lock") or path.name in ("attributes", "commondir") and path.parent.name != p.project.name
            and "worktrees" not in path.parts]
    assert not left, left
    assert not (main_folder / ".git/config.worktree").exists()
    # The twin: where nothing is held, and nobody looks, they are written.
    expect(caged(p, f"echo x >{main_folder}/.git/hooks/post-commit; rm -r {main_folder}/.git/worktrees/third", "--write",
                 program=BREAKABLE, env={"BAWN_TEST_BREAK": "protect,look"}), 0)
    assert (main_folder / ".git/hooks/post-commit").exists()


@case
def in_a_writable_repository_other_worktrees_stay(p):
    repository(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"))
    expect(caged(p, "git commit -q --allow-empty -m second; git worktree prune || true", "--write"), 0)
    assert caged(p, "rm -r .git/worktrees/third 2>/dev/null", "--write").returncode != 0
    assert git(p, "status", "--porcelain", cwd=p.home / "third") == ""
    assert git(p, "rev-list", "--count", "HEAD") == "2\n"
    expect_sound(p, p.home / "third")


@case
def hooks_that_git_takes_from_the_project_are_protected(p):
    repository(p)
    git(p, "config", "core.hooksPath", "tools/run")
    p.write("project/tools/run/pre-commit", "#!/bin/sh\n", mode=0o755)
    before = picture(p.project / "tools")
    for attempt in ("echo x >tools/run/pre-commit", "echo x >tools/run/other", "rm -r tools/run", "mv tools old"):
        assert caged(p, attempt + " 2>/dev/null", "--write").returncode != 0, attempt
    assert picture(p.project / "tools") == before
    expect(caged(p, "echo x >tools/other", "--write"), 0)
    assert (p.project / "tools/other").exists()


@case
def more_hooks_than_can_be_held_are_no_run(p):
    repository(p)
    filters = "".join(f'[filter "f{i}"]\n\tclean = ./tools/f{i}\n' for i in range(300))
    config = p.project / ".git/config"
    few = config.read_text()
    config.write_text(few + filters)
    for options in ((), ("--write",)):
        expect(caged(p, "echo ran", *options), 125, "names more than 256 paths")
    config.write_text(few + filters[:len(filters) // 2])
    expect(caged(p, "echo ran"), 0, "ran")


@case
def the_operator_can_do_without(p):
    main_folder = worktree(p)
    for options in (p.spec("project: {git: none}\n"), p.spec("project: {read_allowlist: [$PROJECT/.git]}\n")):
        done = expect(p.sh("git status", *options), 128, "not a git repository")
        assert "warning" not in done.stderr, done.stderr
        expect(p.sh(f"ls {main_folder}", *options), 2)
    # Or show it in another way: then that is what git has.
    done = caged(p, "git log --oneline | wc -l; git commit --allow-empty -m x 2>&1 | grep -c Read-only",
                 "-v", f"{main_folder}/.git:{main_folder}/.git")
    output(done, "1\n1\n")
    assert done.stderr == "" and "git-layer" not in os.listdir(next(p.state.glob("bawn/runs/*")))


@case
@of_users
def a_repository_of_another_group(p):
    main_folder = worktree(p)
    if os.geteuid() != 0:
        raise Skip("only root gives files to groups")
    subprocess.run(["chgrp", "-R", "23456", main_folder / ".git"], check=True)
    with Unchanged(p, main_folder):
        done = expect(caged(p, WORKTREE_DAY), 0, "files copied for this run:", "of git's folder")
        assert done.stdout == "3\n4\n", done
    # A worktree that the run made is known to git only if its pointers are taken too.
    expect(p.run("apply"), 1, ".trees/new/.git: held back")
    expect_sound(p, main_folder)
    assert git(p, "rev-list", "--count", "--all") == "4\n" and git(p, "status", "--porcelain") == "?? .trees/\n"
    assert len(git(p, "worktree", "list").splitlines()) == 2


@case
def other_worktrees_are_not_taken_for_gone(p):
    """git in the cage cannot see them, and would tidy up; on the host they are as they were."""
    main_folder = worktree(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"), cwd=main_folder)
    with Unchanged(p, main_folder, p.home / "third"):
        expect(caged(p, "git worktree prune; git gc -q --prune=now || true"), 0)
    for folder in (p.project, p.home / "third"):
        assert git(p, "status", "--porcelain", cwd=folder) == ""


def effects(place):
    """What the only run did, by path."""
    (run,) = place.state.glob("bawn/runs/*")
    found = json.loads((run / "effects.json").read_bytes())["effects"]
    shutil.rmtree(run)
    return {effect["path"]: effect for effect in found}


@case
def effects_on_a_worktrees_git_are_told_with_the_others(p):
    main_folder = worktree(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"), cwd=main_folder)
    expect(caged(p, f"""
        echo more >>a
        git commit -qam second
        echo evil >{main_folder}/.git/hooks/post-commit
        git config core.fsmonitor evil
        git worktree prune
    """), 0)
    record = p.record()["effects"]
    found = effects(p)
    assert found["a"]["change"] == "changed" and found["a"].get("mark", "plain") == "plain"
    assert found[".git/refs/heads/side"]["change"] == "changed"
    assert found[".git/hooks/post-commit"]["mark"] == "held" and found[".git/config"]["mark"] == "held"
    # Of other worktrees, which git could not find, nothing is taken over unless it is named; and a
    # worktree without a HEAD is none.
    pruned = {path: effect["mark"] for path, effect in found.items() if path.startswith(".git/worktrees/third/")}
    assert pruned and set(pruned.values()) == {"held"}, pruned
    assert found[f".git/worktrees/{p.project.name}/HEAD"]["mark"] == "held"
    assert record["runs_on_host"] >= 3 and len(record["sha256"]) == 64


@case
def a_worktrees_git_is_shown_and_discarded_with_the_rest(p):
    main_folder = worktree(p)
    with Unchanged(p, main_folder):
        for options in ((), p.spec("limits: {disk: 64M}\n")):
            expect(caged(p, f"echo evil >{main_folder}/.git/hooks/post-commit; git tag v1", *options), 0)
            (run,) = p.state.glob("bawn/runs/*")
            first = json.loads((run / "effects.json").read_bytes())
            done = expect(p.run("diff"), 0, "b/.git/hooks/post-commit", "+evil")
            # A run that nobody lived to look at is looked at now: with the same result.
            (run / "effects.json").unlink()
            again = expect(p.run("diff"), 0, "it was interrupted").stdout
            assert json.loads((run / "effects.json").read_bytes()) == first
            assert again.partition("\n")[2] == done.stdout.partition("\n")[2], (again, done.stdout)
            expect(p.run("diff", ".git/refs"), 0, "v1")
            expect(p.run("discard"), 0, "discarded")
            assert not {"layer", "git-layer", "base"} & set(os.listdir(run)), os.listdir(run)
            shutil.rmtree(run)


@case
def where_hooks_are_is_asked_of_git(p):
    repository(p)
    git(p, "config", "core.hooksPath", "tools/run")
    p.make("project/tools/run")
    output(caged(p, "mkdir -p tools; echo x >tools/run/pre-commit; echo x >tools/other"), "")
    found = effects(p)
    assert found["tools/run/pre-commit"]["mark"] == "held" and "mark" not in found["tools/other"], found


@case
def a_repository_instead_of_the_pointer(p):
    main_folder = worktree(p)
    expect(caged(p, "rm .git; git init -q . && git add . && git commit -qm other"), 0)
    found = effects(p)
    assert set(found) == {".git"} and found[".git"]["after"]["type"] == "special", found
    assert found[".git"]["mark"] == "held"
    expect(caged(p, "rm .git; echo x >.git"), 0)
    assert effects(p)[".git"]["mark"] == "held"
    assert git(p, "status", "--porcelain", cwd=main_folder) == ""


# --- what is believed ---

def refused(place, *parts, options=()):
    """git does not work, one warning says why, the run goes on."""
    done = expect(place.sh("git status >/dev/null 2>&1; echo status $?", *options), 0, "status 128",
                  ".git: warning: git will not work in the cage: ", *parts)
    assert done.stderr.count("warning") == 1, done.stderr


@case
def a_forged_pointer_opens_nothing(p):
    canary = repository(p, "precious")
    p.write("precious/secret", "canary\n")
    git(p, "add", ".", cwd=canary)
    git(p, "commit", "-qm", "a secret", cwd=canary)
    read = f"cat {canary}/.git/HEAD 2>/dev/null || echo nothing; git log --oneline 2>/dev/null | wc -l"
    forgeries = {canary / ".git": "nothing says", canary: "nothing says", p.home: "nothing says",
                 canary / ".git/worktrees/x": "cannot be found", "/etc": "nothing says"}
    for target, why in forgeries.items():
        p.write("project/.git", f"gitdir: {target}\n")
        refused(p, why)
        output(caged(p, read), "nothing\n0\n")
    # One that is registered, for another project.
    git(p, "worktree", "add", "-q", "--detach", str(p.home / "registered"), cwd=canary)
    pointer = (p.home / "registered/.git").read_text()
    p.write("project/.git", pointer)
    refused(p, "nothing says")
    output(caged(p, read), "nothing\n0\n")
    # The twin: the repository itself says that the project is its worktree.
    p.write("precious/.git/worktrees/registered/gitdir", f"{p.project}/.git\n")
    done = expect(caged(p, read), 0)
    assert done.stdout != "nothing\n0\n" and done.stdout.endswith("\n2\n"), done


@case
def a_folder_of_credentials_is_not_shown(p):
    main_folder = worktree(p, ".password-store")
    refused(p, "holds credentials", str(main_folder))
    options = p.spec(f"preflight_allow: [{main_folder}/.git]\n")
    output(caged(p, "git log --oneline | wc -l", *options), "1\n")


@case
@of_root
def somebody_elses_repository_is_not_shown(p):
    main_folder = worktree(p)
    for folder, folders, files in os.walk(main_folder):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), USER, USER)
    refused(p, "belongs to somebody else")
    # Unless the project is theirs too.
    for folder, folders, files in os.walk(p.project):
        for name in (".", *folders, *files):
            os.chown(os.path.join(folder, name), USER, USER)
    with Unchanged(p, main_folder):
        output(caged(p, WORKTREE_DAY), "3\n4\n")


@case
def a_git_folder_elsewhere_without_a_way_back(p):
    p.make("separate")
    git(p, "init", "-q", "--separate-git-dir", str(p.home / "separate/repo.git"), ".")
    refused(p, "where nothing says that this is its working tree", "bind it at its own path")
    done = caged(p, "git status --porcelain", "-v", f"{p.home}/separate/repo.git:{p.home}/separate/repo.git")
    output(done, "")
    assert done.stderr == "", done.stderr


@case
def who_commits_is_known_and_nothing_else_of_the_configuration(p):
    script = "git init -q /tmp/r; cd /tmp/r; git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>';" \
             "git config --get-regexp 'alias|credential'; git config user.name Local; git config user.name"
    p.write(".gitconfig", """[user]
        name = "O. \\"P\\" ; Q"  # not this
        email = o@p
        [user "other"]
        name = Other
        [alias]
        x = !true
        [credential]
        helper = store""")
    output(p.sh(script), 'O. "P" ; Q <o@p>\nLocal\n')
    expect(p.sh(script, *p.spec("project: {git: none}\n")), 0, "Please tell me who you are")
    (p.home / ".gitconfig").unlink()
    expect(p.sh(script), 0, "Please tell me who you are")


@case
def pointers_that_begin_at_the_project(p):
    """Only where the project is at its own path do they lead to git's folder; there it is, if nothing else is said."""
    main_folder = worktree(p)
    p.write("project/.git", f"gitdir: ../main/.git/worktrees/{p.project.name}\n")
    refused(p, "found only from where the project is on the host", "project.cage: project", options=p.spec(AT_WORK))
    with Unchanged(p, main_folder):
        output(caged(p, WORKTREE_DAY), "3\n4\n")


@case
def a_project_that_is_a_submodule(p):
    repository(p, "library")
    outer = repository(p, "outer")
    git(p, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(p.home / "library"), "deep/sub",
        cwd=outer)
    git(p, "commit", "-qm", "a submodule", cwd=outer)
    p.project = outer / "deep/sub"
    refused(p, "found only from where the project is on the host", "project.cage: project", options=p.spec(AT_WORK))
    with Unchanged(p, outer):
        output(caged(p, f"""
            test -z "$(git status --porcelain)"
            echo more >>a
            git commit -qam second
            git switch -qc side HEAD~1
            git commit -q --allow-empty -m third
            git rebase -q main
            git stash -q || true
            git log --oneline | wc -l
            git fsck --full --strict --no-dangling
            ls -A {outer} {outer}/deep {outer}/.git
        """), f"3\n{outer}:\n.git\ndeep\n\n{outer}/.git:\nmodules\n\n{outer}/deep:\nsub\n")
    # The superproject has everything inside.
    p.project = outer
    with Unchanged(p):
        output(caged(p, "cd deep/sub; git commit -q --allow-empty -m x; git log --oneline | wc -l"), "2\n")


@case
def worktrees_in_a_bare_repository(p):
    repository(p, "source")
    git(p, "clone", "-q", "--bare", "source", "bare.git", cwd=p.home)
    bare = p.home / "bare.git"
    git(p, "worktree", "add", "-q", "-b", "side", str(bare / "tree"), cwd=bare)
    p.project = bare / "tree"
    refused(p, "found only from where the project is on the host", "project.cage: project", options=p.spec(AT_WORK))
    with Unchanged(p, bare):
        output(caged(p, "echo x >>a; git commit -qam second; git log --oneline | wc -l; git status --porcelain"), "2\n")


@case
def a_repository_where_the_cage_has_the_project(p):
    worktree(p)
    refused(p, "is where the cage has the project", "another project.at",
            options=p.spec(f"project: {{at: {p.home}/main}}\n"))


@case
def a_project_with_a_link_for_git(p):
    repository(p, "main")
    os.symlink("../main/.git", p.project / ".git")
    refused(p, "a link out of the project")
    (p.project / ".git").unlink()
    p.write("project/.git", "x")
    refused(p, "not one of git's")


if __name__ == "__main__":
    main()
