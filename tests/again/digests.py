#!/usr/bin/env python3
"""What image and project were before a run, on record: taken when, of what, and from memory when.

    digests.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import hashlib
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import SLOW, TOOL, USER, Place, case, expect, expect_refusal, main, of_root, of_users  # noqa: E402

BLOCK = 4096


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def content(path):
    """Of blocks that are not all zero, each after its number: as src/base/tree.h says."""
    data, fed = path.read_bytes(), hashlib.sha256()
    for at in range(0, len(data), BLOCK):
        block = data[at:at + BLOCK]
        if block.strip(b"\0"):
            fed.update(b"%d " % (at // BLOCK) + block)
    return fed.hexdigest()


def attributes(path):
    names = sorted(name for name in os.listxattr(path, follow_symlinks=False) if name.startswith("user."))
    fed = b"".join(name.encode() + b"\0%d " % len(os.getxattr(path, name)) + os.getxattr(path, name) for name in names)
    return sha256(fed) if names else "-"


def line(path, name):
    st = path.lstat()
    if stat.S_ISDIR(st.st_mode):
        kind, size, digest = "d", 0, sha256(b"".join(
            line(path / os.fsdecode(entry), entry) for entry in sorted(os.listdir(os.fsencode(path)))))
    elif stat.S_ISLNK(st.st_mode):
        kind, size, digest = "l", st.st_size, sha256(os.fsencode(os.readlink(path)))
    else:
        kind, size, digest = "f", st.st_size, content(path)
    kept = "-" if kind == "l" else attributes(path)
    return f"{kind} {stat.S_IMODE(st.st_mode):04o} {size} {digest} {kept} ".encode() + name + b"\0"


def digest(path):
    """A tree's digest, from its description and not from the program."""
    return sha256(line(pathlib.Path(path), b"."))


def program():
    """The one in docs/format-project.md, as others would take it from there."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/format-project.md").read_text()
    found = {"__name__": "page"}
    exec(page.split("```python\n")[1].split("```")[0], found)  # noqa: S102
    return found


PAGE = program()
# Root looks at the repositories of other accounts here.
os.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")


def list_of(path):
    return PAGE["project_list"](str(path))


def is_what(path):
    return sha256(list_of(path))


def fill(p):
    p.write("project/a", "hello\n")
    p.write("project/sub/b", b"\0" * 5000 + b"x", mode=0o755)
    p.write("project/.git/HEAD", "ref: refs/heads/main\n")
    (p.project / "link").symlink_to("/etc/passwd")
    p.own(p.project / "link")
    (p.project / "empty").touch()
    p.own(p.project / "empty")
    os.setxattr(p.project / "a", "user.colour", b"red")


def project_of(p, *options, **more):
    expect(p.sh("echo x >>a; rm -f empty", *options, **more), 0)
    return p.record().get("project")


@case
def a_projects_digest_is_of_all_that_is_in_it(p):
    fill(p)
    assert project_of(p) is None, "nobody asked"
    wanted = {"sha256": is_what(p.project), "files": 4, "bytes": 6 + 5001 + 21, "list_sha256": is_what(p.project)}
    assert project_of(p, "--digest-project") == wanted
    assert project_of(p, *p.spec("audit: {digest_project: true}\n")) == wanted
    assert project_of(p, "--digest-project", "--disk", "64M") == wanted, "wherever writes are captured"
    os.utime(p.project / "a", (0, 0))
    assert project_of(p, "--digest-project") == wanted, "times do not count"
    for folder in p.state.glob("bawn/runs/*"):
        assert not (folder / "project.list").exists() or (folder / "project.list").read_bytes() == list_of(p.project)


@case
def each_change_of_a_project_changes_its_digest(p):
    fill(p)
    seen = [is_what(p.project)]
    for change in (lambda: (p.project / "a").write_text("hallo\n"), lambda: (p.project / "a").chmod(0o700),
                   lambda: os.setxattr(p.project / "a", "user.colour", b"blu"),
                   lambda: (p.project / "a").rename(p.project / "A"),
                   lambda: (p.project / ".git/HEAD").write_text("ref: refs/heads/m\n")):
        change()
        p.own(p.project)
        expect(p.run("run", "--digest-project", "--", "true"), 0)
        found = p.record()["project"]["sha256"]
        assert found == is_what(p.project) and found not in seen, (found, seen)
        seen.append(found)


@case
def what_a_run_writes_itself_is_not_in_it(p):
    fill(p)
    before = is_what(p.project)
    expect(p.sh("echo x >>a", "--digest-project", "--write"), 0)
    assert p.record()["project"]["sha256"] == before != is_what(p.project)


@of_users
@case
def a_project_that_cannot_be_read_has_no_digest_and_is_refused(p):
    fill(p)
    p.write("project/secret", "s", mode=0)
    expect(p.run("run", "--", "true"), 0)
    expect_refusal(p.run("run", "--digest-project", "--", "true"), "cannot make a digest of the project",
                   "'secret': Permission denied")
    (p.project / "secret").chmod(0o600)
    expect(p.run("run", "--digest-project", "--", "true"), 0)


# --- images ---

def image(p):
    top = p.make("image")
    for folder in ("etc", "proc", "dev", "tmp", "work", "sys", "run", "home"):
        p.make(f"image/{folder}")
    shutil.copy(TOOL, top / "tool")
    p.own(top / "tool")
    return top


def image_of(p, top):
    expect(p.run("run", *p.spec(f"root: {{image: 'dir:{top}'}}\n"), "--", "/tool", "ids"), 0)
    return p.record()["image"]


@case
def an_images_digest_is_of_all_that_is_in_it(p):
    top = image(p)
    found = image_of(p, top)
    assert found["name"] == f"dir:{top}" and found["sha256"] == digest(top), found
    assert found["files"] == 1 and found["bytes"] == TOOL.stat().st_size, found
    p.write("image/etc/more", "x")
    again = image_of(p, top)
    assert again["sha256"] == digest(top) != found["sha256"]


@case
def the_hosts_own_system_has_no_digest(p):
    expect(p.run("run", "--", "true"), 0)
    assert p.record()["image"] == {"name": "host", "sha256": None}


@of_users
@case
def an_image_that_cannot_be_read_is_used_and_has_no_digest(p):
    top = image(p)
    p.write("image/etc/shadow", "s", mode=0)
    found = image_of(p, top)
    assert found["sha256"] is None and "etc/shadow': Permission denied" in found["error"], found
    (top / "etc/shadow").chmod(0o600)
    found = image_of(p, top)
    assert found["sha256"] == digest(top) and "error" not in found, found


# --- from memory ---

@case
def what_changed_just_now_is_not_remembered(p):
    fill(p)
    for text in ("hello\n", "hallo\n", "hullo\n"):
        (p.project / "a").write_text(text)
        os.utime(p.project / "a", ns=(0, 0))
        assert project_of(p, "--digest-project", *p.spec(""))["sha256"] == is_what(p.project)
    assert not list(p.state.glob("bawn/digests/*"))


@case
def what_is_remembered_is_the_operators_alone_and_true(p):
    """Of a tree that has been there for long."""
    top = pathlib.Path("/usr/share/doc/git" if os.path.isdir("/usr/share/doc/git") else "/usr/share/doc/dash")
    options = ("--project", top, "--read-only", "--digest-project")
    seen = []
    for _ in range(2):
        expect(p.run("run", *options, "--", "true"), 0)
        seen.append(p.record()["project"])
    assert seen[0] == seen[1] and seen[0]["sha256"] == is_what(top), seen
    known = list(p.state.glob("bawn/digests/*"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in known] == [0o600], known
    assert stat.S_IMODE(known[0].parent.stat().st_mode) == 0o700
    # By its twin is seen that it was asked, and that it is believed only whole.
    data = known[0].read_bytes()
    other = data[data.index(b"\n") + 1:] + b"f 0 - - other\0"
    lie = data[:data.index(b"\n") + 1].replace(seen[0]["sha256"].encode(), sha256(other).encode()) + other
    for written, wanted in ((lie, sha256(other)), (lie[:-1], seen[0]["sha256"])):
        known[0].write_bytes(written)
        expect(p.run("run", *options, "--", "true"), 0)
        assert p.record()["project"]["sha256"] == wanted


# --- repositories ---

def git(p, *words, cwd=None):
    """As the account that runs bawn."""
    options = ("user.name=a", "user.email=a@b", "protocol.file.allow=always")
    expect(p.run(*(word for option in options for word in ("-c", option)), *words, cwd=cwd or p.project,
                 program="git"), 0)


def repository(p):
    p.write("project/a", "hello\n")
    p.write("project/sub/run", "#!/bin/sh\n", mode=0o755)
    git(p, "init", "-q", "-b", "main")
    git(p, "add", ".")
    git(p, "commit", "-q", "-m", "one")


def digest_in(p, folder):
    expect(p.run("run", "--digest-project", "--project", folder, "--", "true"), 0)
    found = p.record()["project"]["sha256"]
    assert found == is_what(folder), (found, list_of(folder))
    return found


@case
def an_exported_run_is_repeated_by_another_account_in_another_clone(p):
    repository(p)
    expect(p.sh("echo made >b; cat a", "--digest-project"), 0)
    other = Place(p.uid + 1 if p.uid else USER)
    try:
        expect(p.run("record", "export", "-o", p.home / "run.tar"), 0)
        tar = other.write("run.tar", (p.home / "run.tar").read_bytes())
        key = other.write("key.pem", expect(p.run("key", "show", "--pem"), 0).stdout)
        clone = other.home / "clone"
        subprocess.run(["cp", "-r", p.project, other.home / "copy"], check=True)
        subprocess.run(["chown", "-R", f"{other.uid}:{other.uid}", other.home / "copy"], check=True)
        git(other, "clone", "-q", str(other.home / "copy"), str(clone))
        expect(other.run("verify", "--key", key, tar), 0)
        expect(other.run("verify", tar), 1, "signed by none of your keys")
        words = ("run", "--again", tar, "--same", "--key", key, "--project")
        expect(other.run(*words, clone), 0, "again: the effects are the same", "the output is the same")
        other.write("clone/a", "changed\n")
        expect(other.run(*words, clone), 125, "'a' ", "the project is not what it was")
    finally:
        other.done()


@case
def clones_of_a_commit_have_one_digest(p):
    repository(p)
    first = digest_in(p, p.project)
    os.utime(p.project / "a", (0, 0))
    git(p, "status")
    assert digest_in(p, p.project) == first, "git status looks, and changes nothing"
    git(p, "clone", "-q", str(p.project), str(p.home / "clone"))
    git(p, "clone", "-q", "--no-hardlinks", "--depth", "1", f"file://{p.project}", str(p.home / "other"))
    git(p, "checkout", "-q", "--detach", cwd=p.home / "other")
    for path in (p.home / "other").rglob("*"):
        path.chmod(path.stat().st_mode & 0o700)
    assert digest_in(p, p.home / "clone") == digest_in(p, p.home / "other") == first
    git(p, "pack-refs", "--all")
    git(p, "gc", "-q")
    assert digest_in(p, p.project) == first
    git(p, "worktree", "add", "-q", "--detach", str(p.home / "tree"))
    assert digest_in(p, p.home / "tree") == first, "a linked worktree, whose git is elsewhere"
    seen = [first]
    for change in (("commit", "-q", "--allow-empty", "-m", "two"), ("rm", "-q", "--cached", "a"), ("add", "-N", "a")):
        git(p, *change)
        seen.append(digest_in(p, p.project))
    assert len(set(seen)) == len(seen), seen


@case
def submodules_and_first_steps_are_read_as_git_reads_them(p):
    repository(p)
    top = p.make("top")
    git(p, "init", "-q", "-b", "main", cwd=top)
    digest_in(p, top)
    git(p, "submodule", "-q", "add", str(p.project), "part", cwd=top)
    git(p, "update-index", "--index-version", "4", cwd=top)
    assert list_of(top).count(b"\0g 0 ") + list_of(top).count(b"\ng 0 ") == 2
    digest_in(p, top)
    git(p, "update-index", "--split-index", cwd=top)
    expect_refusal(p.run("run", "--digest-project", "--project", top, "--", "true"), "cannot read the index")


@of_root
@case
def a_signal_ends_it_while_it_hashes(p):
    p.write("project/long", os.urandom(1 << 20) * (600 if SLOW == 1 else 100))
    process = p.start("run", "--digest-project", "--", "sh", "-c", "echo ran")
    time.sleep(0.25 * SLOW)
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=20 * SLOW)
    assert process.returncode == 128 + signal.SIGTERM and b"cannot start the command" in said, (out, said)
    assert out == b""


if __name__ == "__main__":
    main()
