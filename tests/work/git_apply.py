#!/usr/bin/env python3
"""Commits made in a cage arrive on the host by bawn apply, and the host's repository stays sound.

    git_apply.py BAWN BREAKABLE [PART OF A NAME]        prints TAP

Most cases have a twin: the same script, run on the host on a copy of the same repository. After the apply
both have the same refs, the same index, the same files; hashes too, because the dates of all commits are
the same.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent / "cage"), str(HERE)]
from place import case, expect, main, of_users, picture  # noqa: E402
from repositories import PERSON, caged, expect_sound, git, repository, worktree  # noqa: E402

DATES = {f"GIT_{role}_DATE": "2026-01-02T03:04:05Z" for role in ("AUTHOR", "COMMITTER")}
DATED = [word for name, value in DATES.items() for word in ("-e", f"{name}={value}")]


ASKED = (("for-each-ref",), ("rev-parse", "--abbrev-ref", "HEAD"), ("rev-parse", "HEAD"), ("ls-files", "-s"),
         ("stash", "list"), ("status", "--porcelain"), ("log", "-g", "--format=%H %gs"))


def state(place, folder):
    """What git says of a repository, and the files themselves."""
    asked = {words: git(place, *words, cwd=folder) for words in ASKED}
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
             if path.is_file() and ".git" not in path.parts}
    return asked, files


def on_host(place, folder, script):
    done = subprocess.run(place.words(["-ec", script], program="sh"), cwd=folder, check=False,
                          env=place.environ(PERSON | DATES), capture_output=True, text=True)
    assert done.returncode == 0, f"the twin: {done.stdout}{done.stderr}"


def in_cage(place, script, *options):
    expect(caged(place, script, *DATED, *options), 0)


def expect_same(place, folder, twin):
    ours, theirs = state(place, folder), state(place, twin)
    assert ours == theirs, f"not as in the twin: {ours} != {theirs}"
    expect_sound(place, folder)
    locks = [path for path in (folder / ".git").rglob("*") if path.name.endswith(".lock") or ".bawn" in path.name]
    assert not locks, locks


def arrives(place, script, *options):
    """In a cage and applied it is as if it had been done on the host."""
    twin = place.home / "twin"
    shutil.copytree(place.project, twin, symlinks=True)
    subprocess.run(["chown", "-R", f"{place.uid}:{place.uid}", twin], check=True)
    on_host(place, twin, script)
    in_cage(place, script, *options)
    expect(place.run("apply"), 0)
    expect_same(place, place.project, twin)
    # And goes on from there on the host.
    git(place, "commit", "-q", "--allow-empty", "-m", "on the host again")
    expect_sound(place, place.project)
    shutil.rmtree(twin)


DAYS = {
    "one_more_commit": "echo more >>a; git commit -qam second",
    "a_new_branch": "git switch -qc side; echo x >d; git add d; git commit -qm second; git rm -q b; git commit -qm third",
    "an_amended_commit": "echo more >>a; git commit -qa --amend -m 'first, said better'",
    "a_rebase": """echo more >>a; git commit -qam second; git switch -qc side HEAD~1; echo x >d; git add d
                   git commit -qm third; git mv c e; git commit -qm fourth; git rebase -q main""",
    "a_tag": "git tag light; git tag -a -m annotated heavy",
    "a_merge": """git switch -qc side; echo x >d; git add d; git commit -qm second; git switch -q main
                  echo more >>a; git commit -qam third; git merge -q --no-ff -m merged side""",
    "a_stash": "echo more >>a; git stash -q; echo other >>b",
    "staged_and_not_committed": "echo more >>a; git add a; echo x >d; git add d; git rm -q --cached b",
    "a_branch_that_is_renamed": "git branch side; git branch -m side other; git branch -m main trunk",
    "a_branch_that_is_deleted": "git branch -D -q gone",
    "collected_garbage": """echo more >>a; git commit -qam second; git tag v1; git gc -q; git pack-refs --all
                            echo again >>a; git commit -qam third""",
    "a_revert_and_a_reset": """echo more >>a; git commit -qam second; git revert --no-edit HEAD >/dev/null
                               echo bad >>b; git commit -qam third; git reset -q --hard HEAD~1""",
    "folders_and_links": """mkdir -p x/y; echo z >x/y/z; ln -s y x/l; git add x; git commit -qm second
                            git mv x/y x/w; chmod +x a; git add .; git commit -qm third""",
}


def add_case(name, script):
    def function(place):
        repository(place)
        git(place, "branch", "gone")
        arrives(place, script)

    function.__name__ = name + "_arrives"
    case(function)


for NAME, SCRIPT in DAYS.items():
    add_case(NAME, SCRIPT)


@case
def a_detached_head_and_packed_refs_arrive(p):
    repository(p)
    git(p, "branch", "x")
    git(p, "gc", "-q")
    git(p, "pack-refs", "--all")
    git(p, "checkout", "-q", "--detach")
    arrives(p, "echo more >>a; git commit -qam second; git branch -f x HEAD; git branch -D -q main; git tag v1")
    git(p, "symbolic-ref", "-q", "HEAD", status=1)


@case
def one_run_after_the_other(p):
    repository(p)
    for number in range(3):
        in_cage(p, f"echo {number} >>a; git commit -qam 'run {number}'")
        expect(p.run("apply"), 0)
    assert git(p, "rev-list", "--count", "HEAD") == "4\n" and git(p, "status", "--porcelain") == ""
    expect_sound(p, p.project)


@case
def a_whole_repository_that_a_run_made(p):
    p.write("project/a", "a\n")
    in_cage(p, "git init -q -b main .; git add .; git commit -qm first")
    done = expect(p.run("apply"), 1, ".git/config", "held back")
    assert "hooks" in done.stdout, done.stdout
    expect(p.run("apply", "--all"), 0)
    assert git(p, "rev-list", "--count", "HEAD") == "1\n" and git(p, "status", "--porcelain") == ""
    expect_sound(p, p.project)


@case
def hooks_and_configuration_are_held_back(p):
    repository(p)
    script = "echo evil >.git/hooks/post-commit; chmod +x .git/hooks/post-commit; git config core.pager evil; "
    in_cage(p, script + "echo more >>a; git commit -qam second")
    before = (p.project / ".git/config").read_text()
    shown = expect(p.run("diff"), 0).stdout
    assert shown.index("post-commit") < shown.index("Everything else") < shown.index("refs/heads/main"), shown
    done = expect(p.run("apply"), 1, ".git/hooks/post-commit", ".git/config", "held back")
    assert not (p.project / ".git/hooks/post-commit").exists(), done
    assert (p.project / ".git/config").read_text() == before
    # The commit has arrived all the same.
    assert git(p, "rev-list", "--count", "HEAD") == "2\n" and git(p, "status", "--porcelain") == ""
    expect_sound(p, p.project)
    expect(p.run("apply", ".git/hooks/post-commit"), 0)
    assert (p.project / ".git/hooks/post-commit").exists() and (p.project / ".git/config").read_text() == before
    expect(p.run("apply", "--all"), 0)
    assert "evil" in (p.project / ".git/config").read_text()


@case
def a_commit_of_the_hosts_meanwhile_is_a_conflict(p):
    repository(p)
    in_cage(p, "echo more >>a; git commit -qam 'of the run'; git branch new")
    p.write("project/b", "host\n")
    git(p, "commit", "-qam", "of the host")
    before = git(p, "for-each-ref"), git(p, "rev-parse", "HEAD"), git(p, "ls-files", "-s")
    expect(p.run("apply"), 1, "refs/heads/main", "conflict")
    assert (git(p, "for-each-ref"), git(p, "rev-parse", "HEAD"), git(p, "ls-files", "-s")) == before
    expect_sound(p, p.project)
    assert git(p, "log", "--format=%s") == "of the host\nfirst\n"
    # What the run made of the file is there, as a change of the working tree.
    assert git(p, "status", "--porcelain") == " M a\n"
    git(p, "commit", "-qam", "both")
    expect_sound(p, p.project)


@case
def a_lock_of_the_hosts_is_respected(p):
    repository(p)
    in_cage(p, "echo more >>a; git commit -qam second")
    lock = p.write("project/.git/index.lock", "")
    before = git(p, "for-each-ref")
    expect(p.run("apply"), 1)
    assert lock.exists() and git(p, "for-each-ref") == before
    expect_sound(p, p.project)
    lock.unlink()
    expect(p.run("apply"), 0)
    assert git(p, "rev-list", "--count", "HEAD") == "2\n" and git(p, "status", "--porcelain") == ""
    expect_sound(p, p.project)


@case
def a_lock_that_a_run_left_does_not_arrive(p):
    repository(p)
    in_cage(p, "echo more >>a; git commit -qam second; touch .git/index.lock .git/refs/heads/main.lock .git/gc.pid")
    expect(p.run("apply"), 0)
    assert not (p.project / ".git/index.lock").exists() and not (p.project / ".git/gc.pid").exists()
    assert git(p, "rev-list", "--count", "HEAD") == "2\n" and git(p, "status", "--porcelain") == ""


@case
def objects_are_only_added(p):
    repository(p)
    on_host(p, p.project, "for i in 1 2 3; do echo $i >>a; git commit -qam $i; done")
    before = {path for path in (p.project / ".git/objects").rglob("*") if path.is_file()}
    in_cage(p, "git checkout -q --orphan other; git commit -qm only; git branch -D -q main; git gc -q --prune=now")
    expect(p.run("apply"), 0)
    assert {path for path in before if not path.exists()} == set()
    assert git(p, "for-each-ref", "--format=%(refname)") == "refs/heads/other\n"
    expect_sound(p, p.project)


@case
def a_repository_that_a_run_removed_stays(p):
    repository(p)
    for script in ("rm -rf .git", "mv .git old", "rm .git/HEAD"):
        in_cage(p, script)
        expect(p.run("apply"), 1, "held back")
        assert git(p, "log", "--format=%s") == "first\n", script
        assert git(p, "status", "--porcelain") in ("", "?? old/\n"), script
        expect_sound(p, p.project)
        expect(p.run("discard"), 0)
        shutil.rmtree(p.project / "old", ignore_errors=True)


# --- where git's folder is outside the project ---

@case
def a_commit_in_a_linked_worktree_arrives_in_its_repository(p):
    main_folder = worktree(p)
    script = """echo more >>a; git commit -qam second; git switch -qc other; echo x >d; git add d; git commit -qm third
                git tag v1; git switch -q side; git merge -q --no-ff -m merged other; git rm -q c; git commit -qm fourth"""
    for options in ((), p.spec("project: {cage: project}\n"), p.spec("limits: {disk: 64M}\n")):
        before = int(git(p, "rev-list", "--count", "HEAD"))
        in_cage(p, script, *options)
        expect(p.run("apply"), 0)
        assert int(git(p, "rev-list", "--count", "HEAD")) > before and git(p, "status", "--porcelain") == ""
        assert "side\n" in git(p, "branch", "--show-current")
        for folder in (p.project, main_folder):
            expect_sound(p, folder)
        # As seen from the main repository, whose own working tree was left alone.
        assert git(p, "rev-parse", "side", cwd=main_folder) == git(p, "rev-parse", "HEAD")
        assert git(p, "status", "--porcelain", cwd=main_folder) == ""
        script = "echo again >>a; git commit -qam again"
    locks = [path for path in (main_folder / ".git").rglob("*") if ".lock" in path.name or ".bawn" in path.name]
    assert not locks, locks


@case
def hooks_of_a_worktrees_repository_are_held_back(p):
    main_folder = worktree(p)
    in_cage(p, f"echo evil >{main_folder}/.git/hooks/post-commit; git config core.pager evil; git commit -q "
               "--allow-empty -m second")
    expect(p.run("apply"), 1, ".git/hooks/post-commit", ".git/config", "held back")
    assert not (main_folder / ".git/hooks/post-commit").exists()
    assert git(p, "rev-list", "--count", "HEAD") == "2\n"
    expect(p.run("apply", ".git/hooks/post-commit"), 0)
    assert (main_folder / ".git/hooks/post-commit").read_text() == "evil\n"
    assert sorted(os.listdir(p.project)) == [".git", "a", "b", "c"] and (p.project / ".git").is_file()


@case
def pruned_worktrees_are_still_there_after_an_apply(p):
    main_folder = worktree(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"), cwd=main_folder)
    in_cage(p, "git commit -q --allow-empty -m second; git worktree prune; git worktree list | wc -l")
    p.run("apply")
    for folder in (p.project, p.home / "third", main_folder):
        assert git(p, "status", "--porcelain", cwd=folder) == "", folder
        expect_sound(p, folder)
    assert len(git(p, "worktree", "list", cwd=main_folder).splitlines()) == 3


@case
def the_same_of_a_repository_in_the_project(p):
    repository(p)
    git(p, "worktree", "add", "-q", "-b", "third", str(p.home / "third"))
    in_cage(p, "git worktree prune; git commit -q --allow-empty -m second")
    expect(p.run("apply"), 1, "held back")
    assert git(p, "status", "--porcelain", cwd=p.home / "third") == ""
    assert git(p, "rev-list", "--count", "HEAD") == "2\n"
    expect_sound(p, p.home / "third")


@case
def a_commit_of_the_hosts_in_the_same_repository_meanwhile(p):
    main_folder = worktree(p)
    in_cage(p, "echo more >>a; git commit -qam 'of the run'")
    # On another branch, in another worktree: nobody's business.
    git(p, "commit", "-q", "--allow-empty", "-m", "on main", cwd=main_folder)
    expect(p.run("apply"), 0)
    assert git(p, "log", "--format=%s") == "of the run\nfirst\n" and git(p, "status", "--porcelain") == ""
    assert git(p, "log", "--format=%s", cwd=main_folder) == "on main\nfirst\n"
    # On the same one.
    in_cage(p, "echo more >>a; git commit -qam 'of another run'")
    git(p, "commit", "-q", "--allow-empty", "-m", "on side")
    expect(p.run("apply"), 1, "conflict")
    assert git(p, "log", "--format=%s") == "on side\nof the run\nfirst\n"
    for folder in (p.project, main_folder):
        expect_sound(p, folder)


@case
def a_commit_in_a_submodule_arrives(p):
    repository(p, "library")
    outer = repository(p, "outer")
    git(p, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(p.home / "library"), "sub", cwd=outer)
    git(p, "commit", "-qm", "a submodule", cwd=outer)
    p.project = outer / "sub"
    in_cage(p, "echo more >>a; git commit -qam second", *p.spec("project: {cage: project}\n"))
    expect(p.run("apply"), 0)
    assert git(p, "rev-list", "--count", "HEAD") == "2\n" and git(p, "status", "--porcelain") == ""
    expect_sound(p, p.project)
    # And in one of the project's, seen from above.
    p.project = outer
    in_cage(p, "cd sub; echo again >>a; git commit -qam third; cd ..; git add sub; git commit -qm moved")
    expect(p.run("apply"), 0)
    assert git(p, "status", "--porcelain") == "" and git(p, "submodule", "status")[0] == " "
    for folder in (outer, outer / "sub"):
        expect_sound(p, folder)


@case
@of_users
def a_repository_that_is_gone_is_said_to_be(p):
    main_folder = worktree(p)
    in_cage(p, "echo more >>a; git commit -qam second")
    main_folder.rename(p.home / "moved")
    before = picture(p.project)
    expect(p.run("apply"), 125, "cannot open", f"{main_folder}/.git")
    assert picture(p.project) == before
    (p.home / "moved").rename(main_folder)
    expect(p.run("apply"), 0)
    assert git(p, "rev-list", "--count", "HEAD") == "2\n" and git(p, "status", "--porcelain") == ""


if __name__ == "__main__":
    main()
