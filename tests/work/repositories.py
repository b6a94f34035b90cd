"""Repositories of git for the suites that work on them: made on the host, used there and in cages."""

import shutil
import subprocess

from place import picture

PERSON = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
          for what, value in (("NAME", "a person"), ("EMAIL", "person@example.org"))}
CAGED = [word for name, value in PERSON.items() for word in ("-e", f"{name}={value}")]
# Only what a case says: neither this machine's configuration nor its user's.
PERSON |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def git(place, *args, cwd=None, status=0, stdin=None):
    """git on the host, run by the person; what it printed."""
    done = subprocess.run(place.words(args, program="git"), cwd=cwd or place.project, env=place.environ(PERSON),
                          stdin=stdin, capture_output=True, text=True, check=False)
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


def worktree(place, main="main", branch="side"):
    """The project as a linked worktree of another repository, which is left with a branch of its own."""
    main = repository(place, main)
    shutil.rmtree(place.project)
    git(place, "worktree", "add", "-q", "-b", branch, str(place.project), cwd=main)
    return main


class Unchanged:
    """Neither the project nor what is beside it changes meanwhile."""

    def __init__(self, place, *folders):
        self.folders = [place.project, *folders]

    def __enter__(self):
        self.before = [picture(folder) for folder in self.folders]

    def __exit__(self, kind, *_):
        if not kind:
            for folder, before in zip(self.folders, self.before):
                now = picture(folder)
                assert now == before, f"changed: {sorted(set(now.items()) ^ set(before.items()))}"
