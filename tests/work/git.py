#!/usr/bin/env python3
"""git in a cage: repositories work there as they do outside, and nothing of it is left on the host.

    git.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import USER, case, expect, main, of_root, output, picture  # noqa: E402

PERSON = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
          for what, value in (("NAME", "a person"), ("EMAIL", "person@example.org"))}
# Only what a case says: neither this machine's configuration nor its user's.
PERSON |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
CAGED = [word for name, value in PERSON.items() for word in ("-e", f"{name}={value}")]


def git(place, *args, cwd=None, status=0):
    """git on the host, run by the person; what it printed."""
    done = subprocess.run(place.words(args, program="git"), cwd=cwd or place.project, env=place.environ(PERSON),
                          capture_output=True, text=True, check=False)
    assert done.returncode == status, f"git {args}: exit {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def repository(place, folder="project", files=("a", "b", "c")):
    """One commit with some files, on the branch main."""
    folder = place.make(folder)
    git(place, "init", "-q", "-b", "main", ".", cwd=folder)
    for name in files:
        place.write(folder / name, f"{name}\n")
    git(place, "add", ".", cwd=folder)
    git(place, "commit", "-q", "-m", "first", cwd=folder)
    return folder


def caged(place, script, *options, **more):
    """A script in a cage in which git knows who commits; the first command that fails ends it."""
    return place.sh("set -e\n" + script, *CAGED, *options, **more)


def expect_sound(place, folder):
    said = git(place, "fsck", "--full", "--strict", "--no-dangling", cwd=folder)
    assert said == "", f"fsck says: {said}"


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


if __name__ == "__main__":
    main()
