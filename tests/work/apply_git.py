#!/usr/bin/env python3
"""What git did over a tree, applied to it: the commits arrive, and no moment shows a broken repository.

    apply_git.py TOOL INJECT [PART OF A NAME]        prints TAP

git runs in a real overlay of a namespace of its own, as in a cage; then the layer is applied.
"""

import contextlib
import os
import signal
import subprocess
import threading

from layer import Work, cage, leftovers
import apply_hostile

case, Skip = cage.case, cage.Skip
cage.CASES.clear()  # those of apply_hostile.py are run there

PERSON = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
          for what, value in (("NAME", "a person"), ("EMAIL", "person@example.org"))}
PERSON |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_COUNT": "1",
           "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"}


class Repository(Work):
    """A tree that is one, with some commits on main."""

    def __init__(self, place, prepare=""):
        super().__init__(place)
        self.host("git init -q -b main .\n"
                  "for i in 1 2 3 4 5; do\n"
                  "  echo $i >f$i; mkdir -p d$i; echo $i >d$i/g; git add .; git commit -qm $i\n"
                  "done\n"
                  "git branch side HEAD~2; git branch gone HEAD~1; git tag t HEAD~3\n" + prepare)
        self.begin()

    def host(self, script, status=0):
        """A script of the host's, in the tree; what it printed."""
        done = subprocess.run(self.place.words(["-ec", script], program="sh"), cwd=self.tree, text=True,
                              env=self.place.environ(PERSON), capture_output=True, check=False)
        assert done.returncode == status, f"{script}\nexit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def cage(self, script):
        """The same over the tree, in an overlay; then its effects are found."""
        home = self.place.home
        for name in ("merged", "work"):
            self.place.make(name)
        mount = ("mount -t overlay overlay -o lowerdir=tree,upperdir=layer,workdir=work,userxattr merged\n"
                 "cd merged\n")
        done = subprocess.run(self.place.words(["-rm", "sh", "-ec", mount + script], program="unshare"), cwd=home,
                              env=self.place.environ(PERSON), capture_output=True, text=True, check=False)
        if "mount:" in done.stderr:
            raise Skip(f"no overlay here: {done.stderr.strip()}")
        assert done.returncode == 0, f"{script}\nexit {done.returncode}: {done.stdout}{done.stderr}"
        self.scan()
        return done.stdout

    def expect_sound(self):
        said = self.host("git fsck --full --strict --no-dangling 2>&1")
        assert said == "", f"fsck says: {said}"
        assert not leftovers(self.tree, self.run), leftovers(self.tree, self.run)

    def expect_clean(self):
        self.expect_sound()
        assert self.host("git status --porcelain") == "", self.host("git status")

    def refs(self):
        return self.host("git for-each-ref; git rev-parse HEAD; git symbolic-ref HEAD || true")


def expect_taken(applied):
    assert applied.status == 0 and not applied.counts["conflict"] and not applied.counts["failed"], applied.text
    return applied


COMMIT = "echo more >>f1; echo new >new; git rm -q f2; git add .; git commit -qm 'by the run'\n"


@case
def a_commit_arrives(place):
    work = Repository(place)
    wanted = work.cage(COMMIT + "git rev-parse HEAD").strip()
    expect_taken(work.apply())
    assert work.host("git rev-parse HEAD").strip() == wanted
    assert work.host("git log -1 --format=%s").strip() == "by the run"
    work.expect_clean()
    work.apply()
    work.expect_clean()


DAY = """
git switch -qc topic; echo t >topic; git add topic; git commit -qm topic
git switch -q main; git merge -q --no-ff -m merged topic
git branch -d topic -q; git branch -D gone; git branch -m side aside; git tag -a -m annotated v1
git stash list; echo w >>f3; git stash -q; git stash pop -q; git checkout -q f3
git switch -qc deep/er/one; git switch -q main
git rebase -q --onto HEAD~1 HEAD~1 main || true
git notes add -m note; git update-ref refs/custom/x HEAD
git status --porcelain
"""


@case
def a_day_of_git_arrives(place):
    """Branches made, renamed, deleted, merged; tags, notes, stashes; then gc."""
    for more in ("", "git gc -q --prune=now\n", "git pack-refs --all\ngit repack -qad\ngit commit-graph write\n"):
        work = Repository(place, "git pack-refs --all\n")
        wanted = work.cage(DAY + more + "git for-each-ref; git rev-parse HEAD; git symbolic-ref HEAD")
        expect_taken(work.apply())
        assert wanted.endswith(work.refs()), (wanted, work.refs())
        work.expect_clean()
        apply_hostile.clear(place)


@case
def names_of_refs_may_become_folders_and_back(place):
    work = Repository(place, "git branch a; git branch b/c; git branch b/d\n")
    wanted = work.cage("git branch -D a b/c b/d -q; git branch a/x; git branch b HEAD~1; git for-each-ref")
    expect_taken(work.apply())
    assert work.host("git for-each-ref") == wanted
    work.expect_clean()


@case
def objects_are_only_ever_added(place):
    """What gc packed in the cage stays loose on the host, whose own gc will come."""
    work = Repository(place)
    before = set((work.tree / ".git/objects").glob("??/*"))
    work.cage(COMMIT + "git gc -q --prune=now\n")
    applied = expect_taken(work.apply())
    assert applied.counts["not-taken"] >= len(before), applied.text
    assert before <= set((work.tree / ".git/objects").glob("??/*"))
    work.expect_clean()
    assert work.host("git log -1 --format=%s").strip() == "by the run"
    work.host("git gc -q --prune=now")
    work.expect_clean()


@case
def worktrees_and_submodules(place):
    other = place.make("other")
    work = Repository(place)
    script = "git init -q -b main .; echo s >s; git add .; git commit -qm s"
    subprocess.run(place.words(["-ec", script], program="sh"), cwd=other, env=place.environ(PERSON), check=True)
    work.host(f"git submodule --quiet add {other} lib/sub; git commit -qm sub")
    work.begin()
    work.cage("cd lib/sub; echo more >>s; git commit -qam more; cd ../..; git commit -qam 'sub moved'\n"
              "git worktree add -q linked -b linked; cd linked; echo l >l; git add l; git commit -qm linked")
    expect_taken(work.apply("--held"))
    assert work.host("git -C lib/sub log -1 --format=%s").strip() == "more"
    assert work.host("git log -1 --format=%s linked --").strip() == "linked"
    work.expect_sound()
    work.host("git -C lib/sub fsck --full --strict")
    assert work.host("git status --porcelain -uno") == "", work.host("git status")


# --- the host goes on ---

@case
def a_commit_of_the_host_s_is_not_lost(place):
    work = Repository(place)
    work.cage(COMMIT)
    work.host("echo host >>f5; git commit -qam host")
    before = work.refs()
    applied = work.apply()
    assert applied.counts["conflict"] and not applied.counts["failed"], applied.text
    for path in (".git/refs/heads/main", ".git/index", ".git/logs/HEAD"):
        applied.expect_word(path, "conflict")
    assert work.refs() == before
    work.expect_sound()
    # The files have arrived, as changes; nothing is staged, and a commit would not undo anything.
    assert work.host("git diff --cached --name-only") == ""
    assert (work.tree / "new").read_text() == "new\n"
    work.host("git add -A; git commit -qm both; git show HEAD:f5 | grep -q host")
    work.expect_clean()


@case
def what_the_host_staged_is_not_lost(place):
    """Nor is the branch moved below it: the next commit would undo the run's."""
    work = Repository(place)
    work.cage(COMMIT)
    work.host("echo staged >>f4; git add f4")
    before = work.refs()
    work.apply().expect_word(".git/index", "conflict").expect_word(".git/refs/heads/main", "conflict")
    assert work.refs() == before and work.host("git diff --cached --name-only").split() == ["f4"]
    work.expect_sound()


@case
def the_logs_of_refs_go_with_them(place):
    """Nor do refs and index go without the log that the host has written to since."""
    work = Repository(place)
    work.cage(COMMIT)
    work.host("git switch -q -c other; git switch -q main")
    before = work.refs()
    work.apply().expect_word(".git/logs/HEAD", "conflict").expect_word(".git/refs/heads/main", "conflict")
    assert work.refs() == before and work.host("git diff --cached --name-only") == ""
    work.expect_sound()


@case
def git_status_on_the_host_is_no_conflict(place):
    """It writes the index anew, with the same entries."""
    work = Repository(place)
    work.cage(COMMIT)
    before = (work.tree / ".git/index").read_bytes()
    work.host("touch -d 2020-01-01 f3 f4; git status --porcelain")
    assert (work.tree / ".git/index").read_bytes() != before, "git did not write its index"
    expect_taken(work.apply())
    work.expect_clean()
    assert work.host("git log -1 --format=%s").strip() == "by the run"


@case
def git_at_work_is_waited_for(place):
    """A lock of git's is never taken away, and nothing is half applied because of it."""
    for lock in ("index.lock", "HEAD.lock", "refs/heads/main.lock"):
        work = Repository(place)
        work.cage(COMMIT + "git branch more; git switch -q more")
        held = work.put(work.tree, f".git/{lock}", "git's\n")
        before = work.refs()
        applied = work.apply("--force")
        assert f"git is at work in this repository: '{os.path.basename(lock)}' is there" in applied.text, applied.text
        assert held.read_text() == "git's\n" and work.refs() == before
        held.unlink()
        expect_taken(work.apply())
        work.expect_clean()
        apply_hostile.clear(place)


@case
def locks_of_the_layer_are_not_taken(place):
    work = Repository(place)
    work.cage("touch .git/index.lock .git/refs/heads/main.lock .git/gc.pid")
    work.apply().expect(not_taken=3)
    work.expect_clean()


@case
def a_ref_takes_its_objects_along(place):
    work = Repository(place)
    work.cage(COMMIT + "git branch other")
    expect_taken(work.apply(paths=[".git/refs/heads/other"]))
    assert work.host("git log -1 --format=%s other").strip() == "by the run"
    work.expect_clean()


@case
def git_goes_on_while_it_is_applied(place):
    """Commits on another branch, status, gc: neither side harms the other."""
    work = Repository(place)
    work.cage("".join(f"echo {n} >r{n}; git add .; git commit -qm r{n}\n" for n in range(30)))
    stop, failed = threading.Event(), []

    def go_on():
        n = 0
        while not stop.is_set():
            n += 1
            with contextlib.suppress(AssertionError):  # it may find it locked
                work.host(f"git status --porcelain; git branch -f host{n % 3} side; git update-ref refs/x/{n} HEAD;"
                          "git pack-refs --all")
            done = work.host("git rev-list --objects --all --quiet 2>&1 || echo broken")
            if done.strip():
                failed.append(done)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        for _ in range(6):
            applied = work.apply()
            assert applied.status == 0 and not applied.counts["failed"], applied.text
    finally:
        stop.set()
        thread.join()
    assert not failed, failed
    work.expect_sound()
    expect_taken(work.apply("--force"))
    work.expect_sound()


@case
def killed_anywhere_the_repository_is_sound(place):
    """At each moment every ref has its objects; a lock that we left goes with the next call."""
    script = COMMIT + "git branch -m side aside; git branch -D -q gone; git tag new\n"
    work = Repository(place)
    work.cage(script)
    report, _, _ = apply_hostile.inject(work, "--log", "--process", "k")
    calls = report["processes"][0]["calls"]
    wanted = work.refs()
    apply_hostile.clear(place)
    step = 1 if os.environ.get("BAWN_TEST_EVERY") else max(1, calls // 25)
    for call in range(1 + os.getpid() % step, calls, step):
        work = Repository(place)
        work.cage(script)
        report, _, _ = apply_hostile.inject(work, "--process", "k", "--call", call, "--kill")
        assert report["signal"] == signal.SIGKILL or call > calls - 20, report  # one call more or less
        said = work.host("git fsck --full --no-dangling 2>&1")
        assert said == "", f"killed at call {call}, fsck says: {said}"
        if call % 2:
            done = work.tool("clean", work.tree, work.run)
            assert done.returncode == 0, done.stderr
            work.expect_sound()
        expect_taken(work.apply())
        assert [line.split()[-1] for line in work.refs().splitlines()[:-2]] == \
            [line.split()[-1] for line in wanted.splitlines()[:-2]]
        work.expect_clean()
        apply_hostile.clear(place)


if __name__ == "__main__":
    cage.main()
