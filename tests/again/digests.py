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
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import SLOW, TOOL, case, expect, expect_refusal, main, of_root, of_users  # noqa: E402

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
    wanted = {"sha256": digest(p.project), "files": 4, "bytes": 6 + 5001 + 21}
    assert project_of(p, "--digest-project") == wanted
    assert project_of(p, *p.spec("audit: {digest_project: true}\n")) == wanted
    assert project_of(p, "--digest-project", "--disk", "64M") == wanted, "wherever writes are captured"
    os.utime(p.project / "a", (0, 0))
    assert project_of(p, "--digest-project") == wanted, "times do not count"


@case
def each_change_of_a_project_changes_its_digest(p):
    fill(p)
    seen = [digest(p.project)]
    for change in (lambda: (p.project / "a").write_text("hallo\n"), lambda: (p.project / "a").chmod(0o600),
                   lambda: os.setxattr(p.project / "a", "user.colour", b"blu"),
                   lambda: (p.project / "a").rename(p.project / "A"),
                   lambda: (p.project / ".git/HEAD").write_text("ref: refs/heads/m\n")):
        change()
        p.own(p.project)
        expect(p.run("run", "--digest-project", "--", "true"), 0)
        found = p.record()["project"]["sha256"]
        assert found == digest(p.project) and found not in seen, (found, seen)
        seen.append(found)


@case
def what_a_run_writes_itself_is_not_in_it(p):
    fill(p)
    before = digest(p.project)
    expect(p.sh("echo x >>a", "--digest-project", "--write"), 0)
    assert p.record()["project"]["sha256"] == before != digest(p.project)


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
        assert project_of(p, "--digest-project", *p.spec(""))["sha256"] == digest(p.project)
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
    assert seen[0] == seen[1] and seen[0]["sha256"] == digest(top), seen
    known = list(p.state.glob("bawn/digests/*"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in known] == [0o600], known
    assert stat.S_IMODE(known[0].parent.stat().st_mode) == 0o700
    # By its twin is seen that it was asked, and that it is believed only whole.
    text = known[0].read_text()
    known[0].write_text(text.replace(seen[0]["sha256"], "0" * 64))
    expect(p.run("run", *options, "--", "true"), 0)
    assert p.record()["project"]["sha256"] == "0" * 64
    known[0].write_text(text.replace(seen[0]["sha256"], "0" * 64)[:-1])
    expect(p.run("run", *options, "--", "true"), 0)
    assert p.record()["project"] == seen[0]


@of_root
@case
def a_signal_ends_it_while_it_hashes(p):
    p.write("project/long", os.urandom(1 << 20) * (600 if SLOW == 1 else 100))
    process = p.start("run", "--digest-project", "--", "sh", "-c", "echo ran")
    time.sleep(0.25 * SLOW)
    process.send_signal(signal.SIGTERM)
    out, said = process.communicate(timeout=20 * SLOW)
    assert process.returncode == 128 + signal.SIGTERM and b"before the command was started" in said, (out, said)
    assert out == b""


if __name__ == "__main__":
    main()
