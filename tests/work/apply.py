#!/usr/bin/env python3
"""What apply makes of effects: every kind of change, conflicts, modes, owners, attributes, choices.

    apply.py TOOL INJECT [PART OF A NAME]        prints TAP
"""

import errno
import fcntl
import hashlib
import os
import pathlib
import shutil
import socket
import stat
import struct
import subprocess

from layer import Work, cage, leftovers, tick

case, of_root, of_users, Skip = cage.case, cage.of_root, cage.of_users, cage.Skip


def file(content, mode="644"):
    return ("file", mode, content if isinstance(content, bytes) else content.encode())


def folder(mode="755"):
    return ("folder", mode)


def link(target):
    return ("link", os.fsencode(target))


def expect_tree(work, wanted):
    found = work.look()
    wanted = {os.fsencode(path): what for path, what in wanted.items()}
    for path in sorted(found.keys() | wanted.keys()):
        assert found.get(path) == wanted.get(path), f"{path}: {found.get(path)}, not {wanted.get(path)}"
    assert not leftovers(work.tree, work.run), leftovers(work.tree, work.run)


# --- every kind of change ---

TREE = {
    "same": "same\n", "changed": "old\n", "mode": "mode\n", "gone": "gone\n", "old": "moved\n" * 20,
    "dir/gone/a": "a\n", "dir/gone/b/c": "c\n", "dir/kept": "kept\n",
    "file-folder": "was a file\n", "folder-file/inner/x": "x\n", "folder-link/y": "y\n",
    "file-link": "was a file\n", "link-file": pathlib.Path("same"), "link": pathlib.Path("changed"),
    "link-folder": pathlib.Path("dir"), "link-gone": pathlib.Path("nowhere"), "folder-mode/z": "z\n",
    "opaque/old": "old\n", "opaque/both": "both\n",
}
EXPECTED = {
    "same": file("same\n"), "changed": file("new\n"), "mode": file("mode\n", "755"), "new name": file("moved\n" * 20),
    "dir": folder(), "dir/kept": file("kept\n"), "dir/added": file("added\n"),
    "file-folder": folder("700"), "file-folder/in": file("in\n"), "folder-file": file("is a file\n"),
    "folder-link": link("/etc/passwd"), "file-link": link("../../.."), "link-file": file("is a file\n", "600"),
    "link": link("same"), "link-folder": folder(), "link-folder/in": file("in\n"), "folder-mode": folder("711"),
    "folder-mode/z": file("z\n"), "new": folder("775"), "new/deep": folder(), "new/deep/file": file("deep\n"),
    "new/empty": folder(), "empty": file(""), "new/link": link("deep"),
    "opaque": folder(), "opaque/new": file("new\n"), "opaque/both": file("both, new\n"),
}


def change_everything(place):
    work = Work(place, TREE)
    work.write("changed", "new\n")
    work.write("mode", "mode\n", 0o755)
    for path in ("gone", "old", "dir/gone", "link-gone"):
        work.delete(path)
    work.write("new name", "moved\n" * 20)
    work.write("dir/added", "added\n")
    work.replace("file-folder").chmod(0o700)
    work.write("file-folder/in", "in\n")
    work.write("folder-file", "is a file\n")
    work.write("folder-link", pathlib.Path("/etc/passwd"))
    work.write("file-link", pathlib.Path("../../.."))
    work.write("link-file", "is a file\n", 0o600)
    work.write("link", pathlib.Path("same"))
    work.replace("link-folder")
    work.write("link-folder/in", "in\n")
    work.write("folder-mode", None, 0o711)
    work.write("new", None, 0o775)
    work.write("new/deep/file", "deep\n")
    work.write("new/empty", None)
    work.write("new/link", pathlib.Path("deep"))
    work.write("empty")
    work.replace("opaque")
    work.write("opaque/new", "new\n")
    work.write("opaque/both", "both, new\n")
    return work.scan()


@case
def every_kind_of_change_is_applied(place):
    work = change_everything(place)
    count = work.apply().counts["applied"]
    expect_tree(work, EXPECTED)
    work.apply().expect(there=count)
    expect_tree(work, EXPECTED)


@case
def the_host_is_what_the_overlay_showed(place):
    """The kernel's own view of the same layer, as the cage had it."""
    work = change_everything(place)
    wanted = place.make("wanted")
    os.makedirs(place.home / "merged", exist_ok=True)
    os.makedirs(place.home / "work", exist_ok=True)
    for name in ("merged", "work"):
        os.chown(place.home / name, place.uid, place.uid)
    script = ("mount -t overlay overlay -o lowerdir=tree,upperdir=layer,workdir=work,userxattr merged"
              " && cp -a merged/. wanted/")
    done = subprocess.run(place.words(["-rm", "sh", "-c", script], program="unshare"), cwd=place.home,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip(f"no overlay here: {done.stderr.strip()}")
    work.apply()
    assert work.look() == work.look(wanted)


@case
def names_of_any_bytes(place):
    names = [b"new\nline", b"\xff\xfe", b"-rf", b" ", b"\x1b[31m", b"a" * 255, "ü".encode(), b"..x", b"...", b"*"]
    work = Work(place)
    work.put(work.tree, b"old\n\xff", "old")
    work.begin()
    for name in names:
        work.write(name, b"content of " + name)
        work.write(b"in\n\xfe/" + name, b"inner")
    work.delete(b"old\n\xff")
    work.scan().apply().expect(applied=2 * len(names) + 2)
    found = work.look()
    for name in names:
        assert found[name] == file(b"content of " + name) and found[b"in\n\xfe/" + name] == file("inner"), name
    assert len(found) == 2 * len(names) + 1


@case
def a_path_longer_than_the_kernel_takes(place):
    work = Work(place)
    name, depth = "d" * 200, 40
    for top in (work.layer,):
        at = os.open(top, os.O_RDONLY)
        for _ in range(depth):
            os.mkdir(name, dir_fd=at)
            os.chown(name, place.uid, place.uid, dir_fd=at)
            at, old = os.open(name, os.O_RDONLY, dir_fd=at), at
            os.close(old)
        fd = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at)
        os.write(fd, b"deep")
        os.fchown(fd, place.uid, place.uid)
        os.close(fd)
        os.close(at)
    work.scan().apply().expect(applied=depth + 1)
    at = os.open(work.tree, os.O_RDONLY)
    for _ in range(depth):
        at, old = os.open(name, os.O_RDONLY, dir_fd=at), at
        os.close(old)
    fd = os.open("file", os.O_RDONLY, dir_fd=at)
    assert os.read(fd, 10) == b"deep"
    os.close(fd)
    os.close(at)
    work.apply().expect(there=depth + 1)
    for top in (work.tree, work.layer):
        subprocess.run(["rm", "-rf", top / name], check=True)


@case
def a_sparse_file_stays_one(place):
    work = Work(place)
    path = work.write("sparse")
    with open(path, "r+b") as sparse:
        sparse.seek(300 << 20)
        sparse.write(b"middle")
        sparse.truncate(1 << 30)
    work.scan().apply().expect(applied=1)
    st = os.stat(work.tree / "sparse")
    assert st.st_size == 1 << 30 and st.st_blocks * 512 < 1 << 20, (st.st_size, st.st_blocks)
    with open(work.tree / "sparse", "rb") as sparse:
        sparse.seek(300 << 20)
        assert sparse.read(6) == b"middle" and sparse.read(6) == bytes(6)


@case
def a_file_of_holes_that_was_not_read_is_not_taken(place):
    work = Work(place, {"changed": "old\n"})
    for name in ("changed", "new"):
        os.truncate(work.write(name), 4 << 40)
    work.write("other", "x\n")
    applied = work.scan().apply("--force", "--held").expect(applied=1, not_taken=2)
    applied.expect_word("new", "not-taken", "holes").expect_word("changed", "not-taken", "holes")
    assert sorted(os.listdir(work.tree)) == ["changed", "other"]
    assert (work.tree / "changed").read_text(encoding="ascii") == "old\n"


@case
def hard_links_of_the_host_are_left_alone(place):
    """A name in the tree, another outside: only the one in the tree changes, in content and in mode."""
    outside = place.write("outside/file", "old\n")
    work = Work(place)
    for name in ("content", "mode", "one", "two"):
        os.link(outside, work.tree / name)
    work.begin()
    work.write("content", "new\n")
    work.write("mode", "old\n", 0o755)
    work.write("one", "1\n")
    work.write("two", "2\n")
    work.scan().apply().expect(applied=4)
    assert outside.read_text() == "old\n" and stat.S_IMODE(outside.stat().st_mode) == 0o644
    assert outside.stat().st_nlink == 1
    expect_tree(work, {"content": file("new\n"), "mode": file("old\n", "755"), "one": file("1\n"),
                       "two": file("2\n")})


@case
def files_get_the_time_of_the_call(place):
    work = Work(place, {"source": "old\n"})
    os.utime(work.write("source", "new\n"), (1, 1))
    work.scan().apply().expect(applied=1)
    assert os.stat(work.tree / "source").st_mtime > 1e9


# --- what is never taken ---

@case
def special_files_and_bits_are_not_taken(place):
    work = Work(place, {"was": "file\n", "suid-here": "x\n"})
    os.chmod(work.tree / "suid-here", 0o4755)
    work.begin()
    os.mkfifo(work.layer / "fifo")
    os.mkfifo(work.layer / "was")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(work.layer)
        listening.bind("socket")
        os.chdir("/")
    count = 3
    if place.uid == 0:
        os.mknod(work.layer / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.mknod(work.layer / "disk", stat.S_IFBLK | 0o666, os.makedev(7, 200))
        count = 5
    work.write("suid", "#!/bin/sh\n", 0o4755)
    work.write("sgid", "#!/bin/sh\n", 0o2755)
    work.write("suid-here", "y\n", 0o4755)
    work.write("folder", None, 0o3777)
    applied = work.scan().apply().expect(applied=4, not_taken=count)
    applied.expect_word("suid", "applied", "set-user-id").expect_word("folder", "applied", "sticky")
    applied.expect_word("suid-here", "applied", "set-user-id")
    expect_tree(work, {"was": file("file\n"), "suid": file("#!/bin/sh\n", "755"), "sgid": file("#!/bin/sh\n", "755"),
                       "suid-here": file("y\n", "755"), "folder": folder("777")})


@case
def what_is_mounted_in_the_project_is_left_alone(place):
    """The run has seen what is below the mount, and not what is there."""
    work = Work(place, {"mounted/a": "below\n", "file": "below\n", "b/mounted": "below\n"})
    work.write("mounted/a", "changed\n")
    work.write("mounted/new", "new\n")
    work.write("mounted", None, 0o700)
    work.write("file", "changed\n")
    work.delete("b/mounted")
    work.scan()
    other = place.make("other")
    place.write("other/a", "mounted\n")
    single = place.write("single", "mounted\n")
    if os.geteuid():
        raise Skip("mounts are made by root")
    words = place.words([str(word) for word in work.words()], program=cage.BAWN)
    script = f"mount --bind {other} {work.tree}/mounted; mount --bind {single} {work.tree}/file; exec \"$@\""
    done = subprocess.run(["unshare", "-m", "sh", "-ec", script, "sh", *words], capture_output=True, text=True,
                          check=False, cwd=place.home)
    assert "not-taken mounted/a: " in done.stdout and "not-taken mounted/new: " in done.stdout, done.stdout
    assert "not-taken mounted: " in done.stdout and "not-taken file: " in done.stdout, done.stdout
    assert (other / "a").read_text() == single.read_text() == "mounted\n" and not (other / "new").exists()
    assert stat.S_IMODE(other.stat().st_mode) == 0o755
    assert (work.tree / "mounted/a").read_text() == (work.tree / "file").read_text() == "below\n"


@case
def a_layer_that_changed_since_is_refused(place):
    work = Work(place, {"content": "old\n", "type": "old\n", "size": "old\n"})
    for name in ("content", "type", "size", "attribute", "gone"):
        work.write(name, "new\n")
    os.setxattr(work.layer / "attribute", "user.a", b"one")
    work.write("link", pathlib.Path("one"))
    work.scan()
    (work.layer / "content").write_text("NEW\n", "utf-8")
    (work.layer / "type").unlink()
    (work.layer / "type").symlink_to("/etc/passwd")
    (work.layer / "size").write_text("newer\n", "utf-8")
    os.setxattr(work.layer / "attribute", "user.a", b"two")
    (work.layer / "gone").unlink()
    (work.layer / "link").unlink()
    (work.layer / "link").symlink_to("two")
    work.apply().expect(failed=6).expect_word("content", "failed", "layer has changed")
    expect_tree(work, {"content": file("old\n"), "type": file("old\n"), "size": file("old\n")})


# --- modes and owners ---

@case
def folders_without_rights_are_filled_first(place):
    work = Work(place, {"opened/old": "x\n"})
    os.chmod(work.tree / "opened", 0o555)
    work.begin()
    work.write("opened", None, 0o755)
    work.write("opened/new", "new\n")
    work.write("closed/inner/file", "x\n", 0o400)
    (work.layer / "closed/inner").chmod(0o500)
    (work.layer / "closed").chmod(0o111)
    work.write("nothing", "n\n", 0)
    work.write("locked", None, 0)
    work.scan().apply().expect(applied=7)
    modes = {path: stat.S_IMODE(os.lstat(work.tree / path).st_mode) for path in
             ("opened", "opened/new", "closed", "closed/inner", "closed/inner/file", "nothing", "locked")}
    assert modes == {"opened": 0o755, "opened/new": 0o644, "closed": 0o111, "closed/inner": 0o500,
                     "closed/inner/file": 0o400, "nothing": 0, "locked": 0}, modes
    assert not leftovers(work.tree, work.run)


@of_root
@case
def as_root_files_belong_to_whom_the_folder_belongs(place):
    work = Work(place, {"mine/replaced": "old\n", "theirs/replaced": "old\n", "theirs/special": "old\n"})
    theirs = {"theirs": (12345, 12346), "theirs/replaced": (12345, 12347), "theirs/special": (12348, 12349)}
    for path, owner in theirs.items():
        os.chown(work.tree / path, *owner)
    work.begin()
    for name in ("mine", "theirs"):
        work.write(f"{name}/replaced", "new\n")
        work.write(f"{name}/new", "new\n")
        work.write(f"{name}/link", pathlib.Path("new"))
        work.write(f"{name}/folder/file", "new\n")
    work.write("theirs/special", "new\n")
    for path in work.layer.rglob("*"):
        os.chown(path, 2130706432, 2130706432, follow_symlinks=False)  # as a cage of root's leaves it
    work.scan().apply().expect(applied=11)
    owners = {str(path.relative_to(work.tree)): (path.lstat().st_uid, path.lstat().st_gid)
              for path in work.tree.rglob("*")}
    wanted = {"mine": (0, 0), **theirs}
    for path, owner in owners.items():
        assert owner == wanted.get(path, wanted[path.split("/", maxsplit=1)[0]]), (path, owner)


@of_users
@case
def a_replaced_file_keeps_its_group(place):
    if os.geteuid():
        raise Skip("groups are given by root")
    work = Work(place, {"shared": "old\n", "foreign": "old\n", "folder/x": "x\n"})
    os.chown(work.tree / "shared", -1, 54321)
    os.chown(work.tree / "foreign", 0, 0)
    os.chown(work.tree / "folder", -1, 54321)
    os.chmod(work.tree / "folder", 0o2775)
    work.begin()
    work.write("shared", "new\n")
    work.write("foreign", "new\n")
    work.write("folder/new", "new\n")
    work.write("folder/deep/new", "new\n")
    applied = work.scan().apply(groups=(54321,))
    applied.expect_word("foreign", "applied", "yours now")
    st = os.stat(work.tree / "shared")
    assert (st.st_uid, st.st_gid) == (place.uid, 54321)
    assert (work.tree / "foreign").stat().st_uid == place.uid
    for path in ("folder/new", "folder/deep", "folder/deep/new"):
        assert (work.tree / path).stat().st_gid == 54321, path
    assert stat.S_IMODE((work.tree / "folder/deep").stat().st_mode) == 0o2755
    assert stat.S_IMODE((work.tree / "folder").stat().st_mode) == 0o2775


# --- attributes ---

def acl(*entries):
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@case
def attributes_and_access_lists(place):
    work = Work(place, {"file": "old\n", "folder/x": "x\n", "listed": "old\n", "plain": "old\n"})
    listed = acl((1, 6, 0xffffffff), (2, 4, 4711), (4, 4, 0xffffffff), (16, 4, 0xffffffff), (32, 4, 0xffffffff))
    try:
        for name, value in ((b"user.kept", b"k"), (b"user.gone", b"g"), (b"user.changed", b"old")):
            os.setxattr(work.tree / "file", name, value)
        os.setxattr(work.tree / "listed", "system.posix_acl_access", listed)
        os.setxattr(work.tree / "listed", "user.host", b"h")
        if place.uid == 0:
            os.setxattr(work.tree / "listed", "trusted.host", b"t")
    except OSError as e:
        raise Skip(f"no attributes here: {e}") from None
    work.begin()
    work.write("file", "old\n")
    for name, value in ((b"user.kept", b"k"), (b"user.changed", b"new"), (b"user.added", b"a\0b")):
        os.setxattr(work.layer / "file", name, value)
    work.write("folder", None)
    os.setxattr(work.layer / "folder", "user.f", b"f")
    work.write("listed", "new\n")
    os.setxattr(work.layer / "listed", "user.host", b"h")
    work.write("plain", "new\n")
    if place.uid == 0:
        os.setxattr(work.layer / "plain", "trusted.evil", b"t")
        os.setxattr(work.layer / "plain", "security.evil", b"t")
    work.scan().apply().expect(applied=4)
    found = {name: os.getxattr(work.tree / "file", name) for name in os.listxattr(work.tree / "file")}
    assert found == {"user.kept": b"k", "user.changed": b"new", "user.added": b"a\0b"}, found
    assert os.getxattr(work.tree / "folder", "user.f") == b"f"
    assert os.getxattr(work.tree / "listed", "system.posix_acl_access") == listed
    assert os.getxattr(work.tree / "listed", "user.host") == b"h"
    assert os.listxattr(work.tree / "plain") == []
    work.apply().expect(there=4)


@case
def a_folder_gives_its_access_list_to_new_files_only(place):
    work = Work(place, {"gives/old": "old\n", "gives/other": "old\n", "none/old": "old\n"})
    listed = acl((1, 7, 0xffffffff), (2, 6, 4711), (4, 5, 0xffffffff), (16, 7, 0xffffffff), (32, 5, 0xffffffff))
    try:
        os.setxattr(work.tree / "gives", "system.posix_acl_default", listed)
    except OSError as e:
        raise Skip(f"no access lists here: {e}") from None
    work.begin()
    for name in ("gives/old", "gives/other", "gives/new", "none/old", "none/new"):
        work.write(name, "new\n")
    work.scan().apply().expect(applied=5)
    has = [name for name in ("gives/old", "gives/other", "gives/new", "none/old", "none/new")
           if "system.posix_acl_access" in os.listxattr(work.tree / name)]
    assert has == ["gives/new"], has


# --- conflicts ---

def conflicting(place):
    work = Work(place, {"changed": "old\n", "same-again": "old\n", "gone": "old\n", "deleted": "old\n",
                        "moved": "old\n" * 30, "deleted-folder/a": "a\n", "folder-file/a": "a\n", "mode": None})
    work.write("changed", "run\n")
    work.write("same-again", "run\n")
    work.write("gone", "run\n")
    work.write("appeared", "run\n")
    work.write("appeared-folder/x", "run\n")
    work.write("both", "both\n")
    work.delete("deleted")
    work.delete("deleted-folder")
    work.delete("moved")
    work.write("moved-to", "old\n" * 30)
    work.write("folder-file", "run\n")
    work.write("mode", None, 0o700)
    work.scan()
    # the host, meanwhile
    work.put(work.tree, "changed", "host\n")
    (work.tree / "same-again").unlink()
    work.put(work.tree, "same-again", "old\n")
    (work.tree / "gone").unlink()
    work.put(work.tree, "appeared", "host\n")
    work.put(work.tree, "appeared-folder", "a file of the host's\n")
    work.put(work.tree, "both", "both\n")
    work.put(work.tree, "deleted", "host\n")
    work.put(work.tree, "deleted-folder/host", "host\n")
    work.put(work.tree, "moved", "host\n")
    work.put(work.tree, "folder-file/host", "host\n")
    os.chmod(work.tree / "mode", 0o750)
    tick()
    return work


@case
def what_the_host_changed_is_left_alone(place):
    work = conflicting(place)
    before = work.look()
    applied = work.apply()
    applied.expect(applied=3, there=1, conflict=10)  # the children of deleted folders are as they were
    for path in ("changed", "gone", "appeared", "appeared-folder", "appeared-folder/x", "deleted",
                 "deleted-folder", "moved-to", "folder-file", "mode"):
        applied.expect_word(path, "conflict")
    before[b"same-again"] = file("run\n")
    del before[b"deleted-folder/a"], before[b"folder-file/a"]
    assert work.look() == before
    assert not leftovers(work.tree, work.run)


@case
def force_takes_the_run_s_side(place):
    """But nothing that the run never saw is deleted: folders the host put files into stay."""
    work = conflicting(place)
    applied = work.apply("--force")
    applied.expect(applied=11, there=1, conflict=2)
    expect_tree(work, {
        "changed": file("run\n"), "same-again": file("run\n"), "gone": file("run\n"), "appeared": file("run\n"),
        "appeared-folder": folder(), "appeared-folder/x": file("run\n"), "both": file("both\n"),
        "moved-to": file("old\n" * 30), "mode": folder("700"), "deleted-folder": folder(),
        "deleted-folder/host": file("host\n"), "folder-file": folder(), "folder-file/host": file("host\n")})


@case
def what_the_host_changed_during_the_run_is_a_conflict(place):
    """Nobody knows which version the run saw: not even a merge may guess."""
    work = Work(place, {"file": "1\n2\n3\n", "gone": "x\n", "touched": "t\n"})
    work.put(work.tree, "file", "1\n2\n3 host\n")
    work.put(work.tree, "gone", "x host\n")
    work.write("file", "1 run\n2\n3\n")
    work.delete("gone")
    work.scan().apply().expect(conflict=2).expect_word("file", "conflict", "while the run lasted")
    work.apply("--merge").expect(conflict=2)
    assert (work.tree / "file").read_text() == "1\n2\n3 host\n"
    work.apply("--force").expect(applied=2)
    assert (work.tree / "file").read_text() == "1 run\n2\n3\n" and not (work.tree / "gone").exists()


@case
def texts_are_merged(place):
    text = "".join(f"line {n}\n" for n in range(1, 30))
    work = Work(place, {name: text for name in ("apart", "clash", "script", "moved")})
    work.write("apart", text.replace("line 3\n", "run 3\n"))
    work.write("clash", text.replace("line 3\n", "run 3\n"))
    work.write("script", text.replace("line 3\n", "run 3\n"), 0o755)
    work.delete("moved")
    work.write("moved-to", text)
    work.scan()
    for name in ("apart", "script", "moved"):
        work.put(work.tree, name, text.replace("line 20\n", "host 20\n"), 0o640)
    work.put(work.tree, "clash", text.replace("line 3\n", "host 3\n"))
    before = work.look()
    work.apply().expect(conflict=4)
    assert work.look() == before
    applied = work.apply("--merge").expect(merged=2, conflict=2)
    applied.expect_word("clash", "conflict", "1 place")
    both = text.replace("line 3\n", "run 3\n").replace("line 20\n", "host 20\n")
    before[b"apart"] = file(both, "640")
    before[b"script"] = file(both, "755")
    assert work.look() == before


# --- choosing ---

@case
def only_what_is_chosen(place):
    work = Work(place, {"a": "old\n", "b/c": "old\n", "b/d": "old\n", "bb": "old\n", "old": "m\n" * 30})
    for path in ("a", "b/c", "b/d", "bb", "new/deep/x", "new/y"):
        work.write(path, "new\n")
    work.delete("old")
    work.write("renamed", "m\n" * 30)
    work.scan()
    work.apply(paths=["b"]).expect(applied=2)
    work.apply(paths=["new/deep/x"]).expect(applied=3)
    expect_tree(work, {"a": file("old\n"), "b": folder(), "b/c": file("new\n"), "b/d": file("new\n"),
                       "bb": file("old\n"), "old": file("m\n" * 30), "new": folder(),
                       "new/deep": folder(), "new/deep/x": file("new\n")})
    work.apply(paths=["old"]).expect(applied=1)
    assert not (work.tree / "old").exists() and (work.tree / "renamed").exists()
    work.apply(paths=["no/such"]).expect()
    work.apply(paths=["."]).expect(applied=3, there=6)


@case
def what_runs_on_the_host_is_named_or_held_back(place):
    held = (".vscode/tasks.json", ".git/hooks/pre-commit", ".git/config", ".envrc", "mine/secret")
    work = Work(place)
    for path in (*held, ".git/description", "mine-not"):
        work.write(path, "x\n")
    work.scan("mine")
    hold = ("--hold", "mine")
    work.apply(*hold).expect_word(".envrc", "held", "shell").expect_word("mine/secret", "held", "protected")
    for path in held:
        assert not (work.tree / path).exists(), path
    assert (work.tree / ".git/description").exists() and (work.tree / "mine-not").exists()
    for path in (".", ".git"):
        work.apply(*hold, paths=[path])
        assert not any((work.tree / name).exists() for name in held), path
    before = []
    for paths in ([".git/hooks"], [".git/config", ".vscode/tasks.json"], ["mine"], [".envrc"]):
        work.apply(*hold, paths=paths)
        assert all((work.tree / name).exists() == any(name.startswith(path) for path in paths) or name in before
                   for name in held), paths
        before = [name for name in held if (work.tree / name).exists()]
    work.apply("--held", *hold).expect(there=11)


@case
def what_is_held_back_is_told_with_the_reason(place):
    work = Work(place, {".envrc": "a program\n", ".bashrc": "another\n"})
    for name in ("objects", "refs", "hooks"):
        work.write(f"bare/{name}", None)
    work.write("bare/config", "[core]\n")
    work.write(".git/somewhere", pathlib.Path("/etc/motd"))
    work.write("mine/makefile", "all:\n")
    for old, new in ((".envrc", "bare/hooks/update"), (".bashrc", "plain")):
        work.delete(old)
        work.write(new, (work.tree / old).read_text(encoding="utf-8"))
    applied = work.scan("mine").apply("--hold", "mine")
    for path, why in (("bare/config", "git takes its folder for a repository"), (".git/somewhere", "git writes to"),
                      ("mine/makefile", "a protected path"), ("plain", "when a shell or a session starts"),
                      ("bare/hooks/update", "git takes its folder for a repository")):
        applied.expect_word(path, "held", why)


@case
def the_old_name_does_not_install_what_runs(place):
    for name, applied in (("setup.sh", False), (".git/hooks/post-commit", True)):
        work = Work(place, {"setup.sh": "#!/bin/sh\n" * 20, ".git/hooks/x": "x\n"})
        work.delete("setup.sh")
        work.write(".git/hooks/post-commit", "#!/bin/sh\n" * 20)
        work.scan().apply(paths=[name])
        assert (work.tree / ".git/hooks/post-commit").exists() == applied, name
        assert (work.tree / "setup.sh").exists() != applied, name
        for top in (work.tree, work.layer, work.run):
            shutil.rmtree(top)


def index_of(*names):
    """As git writes it."""
    entries = b"".join((bytes(24) + struct.pack(">I12x20sH", 0o100644, b"x" * 20, len(name)) + name).ljust(
        (62 + len(name) + 8) & ~7, b"\0") for name in names)
    content = struct.pack(">4sII", b"DIRC", 2, len(names)) + entries
    return content + hashlib.sha1(content).digest()


@case
def an_index_that_leads_into_git_is_not_taken(place):
    good, bad = index_of(b"a", b"b/c"), index_of(b".git/hooks/post-checkout", b"a")
    for options in ((), ("--force", "--held")):
        work = Work(place, {".git/HEAD": "ref: refs/heads/main\n", "a/.git/HEAD": "ref: refs/heads/main\n"})
        work.write(".git/index", bad)
        work.write(".git/worktrees/w/index", good[:-30])
        work.write(".git/sharedindex.12", bad)
        work.write(".git/refs/heads/main", "1" * 40 + "\n")
        work.write("a/.git/index", good)
        applied = work.scan().apply(*options)
        for path in (".git/index", ".git/worktrees/w/index", ".git/sharedindex.12"):
            applied.expect_word(path, "not-taken", "index")
            assert not (work.tree / path).exists(), path
        assert (work.tree / "a/.git/index").read_bytes() == good and (work.tree / ".git/refs/heads/main").exists()
        for top in (work.tree, work.layer, work.run):
            shutil.rmtree(top)


@case
def many_files_need_few_descriptors(place):
    count = 300
    work = Work(place, {f"{n:03}": "old\n" for n in range(count)})
    for n in range(count):
        work.write(f"{n:03}", "new\n")
    work.scan()
    words = [str(word) for word in work.words()]
    for verdict in ("applied", "there"):
        done = subprocess.run(["prlimit", "--nofile=128", *place.words(words, program=cage.BAWN)], cwd=place.home,
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0 and f"{verdict}={count}" in done.stdout, done.stdout[-300:] + done.stderr


# --- one at a time ---

@case
def two_at_once_are_refused(place):
    work = Work(place)
    work.write("file", "x\n")
    work.scan()
    journal = work.run / "apply.journal"
    journal.write_bytes(b"")
    os.chown(journal, place.uid, place.uid)
    with open(journal, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        applied = work.apply()
        assert applied.status == 1 and "another bawn" in applied.error, applied.error
        done = work.tool("clean", work.tree, work.run)
        assert done.returncode == 1 and "another bawn" in done.stderr
        assert not (work.tree / "file").exists()
    work.apply().expect(applied=1)
    assert not journal.exists()


@case
def a_disk_that_is_full_ends_it_at_once(place):
    if os.geteuid():
        raise Skip("the file system is root's")
    work = Work(place)
    for n in range(64):
        work.write(f"{n:03}", os.urandom(64 << 10))
    work.scan()
    words = place.words([str(word) for word in work.words()], program=cage.BAWN)
    script = (f"mount -t tmpfs -o size=1m,uid={place.uid} tmpfs {work.tree}; cd {work.tree}; \"$@\"; echo status $?;"
              " ls -A; cat 0* | wc -c")
    words[words.index(str(work.tree))] = "."
    done = subprocess.run(["unshare", "-m", "sh", "-ec", script.replace('"$@"', '"$@" || true'), "sh", *words],
                          capture_output=True, text=True, check=False)
    assert os.strerror(errno.ENOSPC) in done.stderr, done.stdout + done.stderr
    assert ".bawn-" not in done.stdout, done.stdout
    assert not leftovers(work.run)


if __name__ == "__main__":
    cage.main()
