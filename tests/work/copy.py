#!/usr/bin/env python3
"""A project that no overlay can show is captured by copying it, with the same results.

    copy.py BAWN WITHOUT [PART OF A NAME]        prints TAP

WITHOUT is the program of tests/kernels, which answers bawn as a kernel without overlays would.
"""

import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import BAWN, BREAKABLE as WITHOUT, CASES  # noqa: E402
from place import Skip, case, descendants, expect, in_mount_namespace, main, of_root, of_users, output, picture  # noqa: E402
from place import wait_until  # noqa: E402
import capture  # noqa: E402,F401 # pylint: disable=unused-import
from git import git_in_a_linked_worktree, what_is_written_to_a_worktrees_git_is_kept, worktree  # noqa: E402
from git_apply import a_commit_in_a_linked_worktree_arrives_in_its_repository  # noqa: E402

NO_OVERLAY = ["fsopen:overlay=ENODEV", "mount:overlay=ENODEV", "--", BAWN]
OTHER = 23456  # an id that is neither root's nor the user's

# --- what holds for overlays, again ---

SAME = [function for function in CASES if function.__module__ == "capture"]
SAME += [git_in_a_linked_worktree, what_is_written_to_a_worktrees_git_is_kept]
SAME += [a_commit_in_a_linked_worktree_arrives_in_its_repository]
CASES.clear()
DIFFERENT = {
    "writes_stay_in_the_layer": "the record has another word",
    "a_declared_disk_keeps_it_in_memory_and_saves_it": "no memory is kept",
    "what_the_host_changes_meanwhile_is_marked": "it waits for what an overlay writes",
    "the_work_of_a_killed_run_is_kept": "it waits for what an overlay writes",
    "the_layer_takes_no_more_than_it_may": "it wants another build",
    "files_of_others_stay_theirs": "a copy is the user's",
}


def repeat(function):
    """A case of the suite of overlays, on a kernel without them."""
    def run(place):
        words = place.words

        def instead(args, program=BAWN, groups=()):
            if program == BAWN and args[0] == "run":
                return words([*NO_OVERLAY, *args], WITHOUT, groups)
            return words(args, program, groups)
        place.words = instead
        function(place)
    run.__name__ = "copied: " + function.__name__
    if hasattr(function, "is_for"):
        run.is_for = function.is_for
    return run


CASES += [repeat(function) for function in SAME if function.__name__ not in DIFFERENT]


def copied(place, script, *options, **more):
    """A script in a cage on a kernel without overlays."""
    return place.run(*NO_OVERLAY, "run", *options, "--", "sh", "-c", script, program=WITHOUT, **more)


def runs(place):
    return sorted(place.state.glob("bawn/runs/*"), key=lambda path: path.stat().st_ctime_ns)


def kept(place):
    """What is left of the last run's layer, or None."""
    layer = runs(place)[-1] / "layer"
    if not layer.exists():
        return None
    assert sorted(os.listdir(layer)) == ["upper"], os.listdir(layer)
    found = {}
    for folder, folders, files in os.walk(layer / "upper"):
        for name in folders + files:
            path = pathlib.Path(folder, name)
            mode = path.lstat().st_mode
            what = "gone" if stat.S_ISCHR(mode) else path.read_text() if stat.S_ISREG(mode) else "other"
            found[str(path.relative_to(layer / "upper"))] = "folder" if stat.S_ISDIR(mode) else what
    return found


def refused(place, done, *parts):
    """Told in one sentence, and nothing of a copy is left."""
    expect(done, 125, "cannot capture the project by copying it", *parts)
    assert done.stdout == "", done.stdout
    for run in runs(place):
        assert not (run / "layer").exists(), list((run / "layer").iterdir())


def project(place):
    place.write("project/f", "one\n")
    place.write("project/sub/g", "two\n")
    place.write("project/sub/h", "three\n")
    os.symlink("f", place.project / "link")
    place.own(place.project / "link")


# --- where there is no overlay ---

@case
def a_kernel_without_overlays_copies(p):
    project(p)
    before = picture(p.project)
    script = "echo more >>f; rm -r sub; echo new >new; cat f new; ls; cat link"
    done = expect(copied(p, script), 0)
    assert done.stdout == "one\nmore\nnew\nf\nlink\nnew\none\nmore\n", done.stdout
    assert p.record()["capture"] == "copy"
    assert picture(p.project) == before
    assert kept(p) == {"f": "one\nmore\n", "sub": "gone", "new": "new\n"}
    # The twin: the same command, with the project itself.
    expect(copied(p, script, "--write", "--allow-degraded", "fs.protect"), 0)
    assert (p.project / "new").exists() and not (p.project / "sub").exists()


@case
def the_attempt_is_told_once(p):
    done = expect(copied(p, "true"), 0)
    assert done.stderr.count("\n") == 1 and "trying another way" in done.stderr, done.stderr


@case
def nothing_stays_of_a_run_that_wrote_nothing(p):
    project(p)
    p.make("project/closed", mode=0o555)
    p.write("project/closed/f", "")
    (p.project / "closed").chmod(0o555)
    before = picture(p.project)
    expect(copied(p, "cat f sub/*; ls -lR . >/dev/null"), 0)
    assert kept(p) is None and picture(p.project) == before
    expect(copied(p, "/nowhere; exec /nowhere"), 127)
    assert kept(p) is None
    p.run(*NO_OVERLAY, "run", "--", "/nowhere", program=WITHOUT)
    assert kept(p) is None


@case
def both_ways_give_the_same(p):
    script = """
mkdir -p deep/er; echo x >deep/er/file; chmod 751 deep/er
mv sub moved; mkdir sub; echo again >sub/new
rm link; mkdir link; echo in >link/x
ln f hard; echo more >>f
mkfifo pipe; chmod 600 hard
mkdir gone; rmdir gone
touch sub/new; cp -r moved copy; rm copy/g
mv copy/h copy/i
find . -printf '%p %y %m %s %n\\n' | grep -v ' d ' | LC_ALL=C sort
cat f hard moved/* copy/* sub/* link/*
"""
    project(p)
    by_overlay = expect(p.sh(script), 0).stdout
    effects = p.record()["effects"]
    assert p.record()["capture"] == "disk"
    by_copy = expect(copied(p, script), 0).stdout
    assert p.record()["capture"] == "copy"
    assert by_copy == by_overlay
    assert p.record()["effects"] == effects and effects["added"] > 3, (p.record()["effects"], effects)


@case
def it_is_at_its_place_on_the_host_too(p):
    project(p)
    spec = p.spec("project: {cage: project}\n")
    output(copied(p, f"cd {p.project} && pwd && echo x >{p.project}/f && cat f", *spec), f"{p.project}\nx\n")
    assert (p.project / "f").read_text() == "one\n" and kept(p) == {"f": "x\n"}


@case
def parts_of_it_have_their_rights(p):
    project(p)
    spec = p.spec("project: {write_allowlist: ['$PROJECT/sub/**']}\n")
    done = copied(p, "echo x >f || echo x >sub/g && cat f sub/g", *spec)
    assert done.stdout == "one\nx\n", done
    assert kept(p) == {"sub": "folder", "sub/g": "x\n"}
    spec = p.spec("project: {read_allowlist: ['$PROJECT/sub/**'], write_allowlist: ['$PROJECT/sub/**']}\n")
    done = copied(p, "ls; echo x >sub/g; echo x >new", *spec)
    assert done.stdout == "sub\n", done
    assert kept(p) == {"sub": "folder", "sub/g": "x\n"}


@case
def a_place_for_a_bind_is_made_in_the_copy_only(p):
    folder, before = p.make("folder"), None
    p.write("folder/file", "text\n")
    project(p)
    before = picture(p.project)
    output(copied(p, "cat sub/place/file", "-v", f"{folder}:/work/sub/place"), "text\n")
    assert picture(p.project) == before and kept(p) is None
    # In a folder of the host, which has the same file system, nothing is made.
    other = p.make("other")
    expect(copied(p, "true", "-v", f"{other}:/other", "-v", f"{folder}:/other/place"), 125, "bawn creates nothing on the host")
    assert not list(other.iterdir())


# --- whose project it is ---

@case
@of_users
def a_project_of_another_group_is_not_copied(p):
    if os.geteuid() != 0:
        raise Skip("only root can give files to other groups")
    project(p)
    for path in (p.project, *p.project.rglob("*")):
        os.chown(path, p.uid, OTHER, follow_symlinks=False)
    p.project.chmod(0o2775)
    before = picture(p.project)
    script = "echo more >>f && rm sub/g && mv sub/h sub/i && chmod 600 f && cat f"
    done = expect(p.sh(script, groups=(OTHER,)), 0)
    assert done.stdout == "one\nmore\n" and "copied" not in done.stderr, done
    assert p.record()["capture"] == "disk" and picture(p.project) == before
    assert kept(p) == {"f": "one\nmore\n", "sub": "folder", "sub/g": "gone", "sub/h": "gone", "sub/i": "three\n"}
    expect(p.run("plan", groups=(OTHER,)), 0, "the project's group")
    # The twin: of a group that is not the operator's, every file is.
    done = expect(p.sh(script), 0, "files copied for this run: 4 of the project")
    assert done.stdout == "one\nmore\n" and p.record()["capture"] == "disk", done
    assert kept(p) == {"f": "one\nmore\n", "sub": "folder", "sub/g": "gone", "sub/h": "gone", "sub/i": "three\n"}
    # Who has no way to another group has the files copied, too.
    words = ["setpriv", "--no-new-privs", BAWN, "run", "--", "sh", "-c", script]
    done = expect(p.run(*words[1:], program=words[0], groups=(OTHER,)), 0, "files copied for this run: 4")
    assert done.stdout == "one\nmore\n", done


@case
@of_users
def the_files_of_another_user_are_copied(p):
    if os.geteuid() != 0:
        raise Skip("only root can give files to others")
    project(p)
    for path in (p.project, *p.project.rglob("*")):
        os.chown(path, OTHER, OTHER, follow_symlinks=False)
    done = expect(p.sh("echo more >>f; rm sub/g; cat f"), 0, "files copied for this run: 4 of the project (1K)",
                  "hint: they belong to others; --read-only and --write copy nothing")
    assert done.stdout == "one\nmore\n" and p.record()["capture"] == "disk"
    assert (p.project / "f").read_text() == "one\n"
    assert kept(p) == {"f": "one\nmore\n", "sub": "folder", "sub/g": "gone"}
    # What was only read is not kept, and in a repository there is a better way.
    p.make("project/.git")
    os.chown(p.project, OTHER, OTHER)
    expect(p.sh("cat f"), 0, f"hint: they belong to others; a clone of your own needs no copy: git clone '{p.project}'")
    assert kept(p) is None
    assert expect(p.run("run", "-q", "--", "cat", "f"), 0).stderr == ""
    # Nothing of it is said where nothing is captured.
    assert expect(p.sh("cat f", "--read-only"), 0).stderr == ""


@case
@of_root
def the_copy_of_root_is_its_owners(p):
    project(p)
    for path in (p.project, *p.project.rglob("*")):
        os.chown(path, OTHER, OTHER + 1, follow_symlinks=False)
    output(copied(p, "echo new >new; echo more >>f; stat -c %U:%G . f new sub/g"), "agent:agent\n" * 4)
    for name in ("new", "f"):
        st = (runs(p)[-1] / "layer/upper" / name).stat()
        assert (st.st_uid, st.st_gid) == (OTHER, OTHER + 1), (name, st)


@case
@of_root
def root_copies_nothing_that_the_owner_cannot_read(p):
    project(p)
    os.chown(p.project, OTHER, OTHER)
    secret = p.write("secret", "hunter2\n", mode=0o600)
    shutil.move(secret, p.project / "secret")
    for owner, group, mode in ((0, 0, 0o600), (0, OTHER + 1, 0o640), (OTHER + 1, OTHER + 1, 0o400)):
        os.chown(p.project / "secret", owner, group)
        (p.project / "secret").chmod(mode)
        refused(p, copied(p, "cat secret"), "'secret'", "Permission denied", "its owner must be able to read")
    # Nor does root's own project show what root may read only because it is root.
    for path in (p.project, *p.project.rglob("*")):
        os.chown(path, 0, 0, follow_symlinks=False)
    os.chown(p.project / "secret", OTHER, OTHER)
    refused(p, copied(p, "cat secret"), "'secret'", "Permission denied")
    # The twins: what may be read is, and is the cage's user's.
    (p.project / "secret").chmod(0o404)
    output(copied(p, "cat secret; stat -c %U secret"), "hunter2\nagent\n")


@case
def what_cannot_be_read_is_refused(p):
    project(p)
    p.write("project/sub/secret", "x")
    for mode in (0, 0o200):
        (p.project / "sub/secret").chmod(mode)
        if p.uid == 0:
            continue  # its owner is root, and may
        refused(p, copied(p, "true"), "'sub/secret'", "Permission denied", "you must be able to read")
    (p.project / "sub/secret").chmod(0o400)
    expect(copied(p, "true"), 0)


@case
def set_id_bits_of_others_are_not_copied(p):
    if os.geteuid() != 0:
        raise Skip("only root can make files of others")
    project(p)
    for name, owner in (("own", p.uid), ("others", OTHER)):
        path = p.write(f"project/{name}", "#!/bin/sh\n")
        os.chown(path, owner, owner)
        path.chmod(0o6755)
    output(copied(p, "stat -c '%a %n' own others; touch own others"), "6755 own\n755 others\n")


# --- what is in it ---

@case
def everything_in_a_project_is_copied_as_it_is(p):
    p.write("project/-rf *\n\x1b[31m", "name\n", mode=0o640)
    p.write("project/Case", "upper\n")
    p.write("project/case", "lower\n")
    deep = p.project
    for _ in range(120):
        deep = deep / "d"
    p.make(deep)
    p.write(deep / "bottom", "deep\n")
    os.close(os.open(os.fsencode(p.project) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY, 0o600))
    os.mkfifo(p.project / "pipe", 0o622)
    with open(p.project / "sparse", "wb") as file:
        file.truncate(1 << 30)
    os.link(p.project / "case", p.project / "hard")
    for target, name in (("/etc/passwd", "out"), ("../../..", "up"), ("nowhere", "dangling"), ("loop", "loop")):
        os.symlink(target, p.project / name)
    os.setxattr(p.project / "case", "user.mark", b"value")
    for path in p.project.rglob("*"):
        os.chown(path, p.uid, p.uid, follow_symlinks=False)
    os.chown(os.fsencode(p.project) + b"/\xff\xfe", p.uid, p.uid)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(p.project / "socket"))
        show = r"find . ! -type s -printf '%y %m %s %T@ %l %P\0' | grep -zv '^d' | LC_ALL=C sort -z | od -c"
        outside = subprocess.run(["sh", "-c", show], cwd=p.project, capture_output=True, text=True, check=True).stdout
        script = show + "; du -k sparse; cat d/d/d/*/d/../../d/d/d 2>&1 | head -1; test -e socket"
        done = expect(copied(p, script), 1)
    assert done.stdout.startswith(outside), done.stdout
    assert done.stdout[len(outside):].startswith("0\tsparse\n"), done.stdout[len(outside):]
    output(copied(p, "python3 -c \"import os; print(os.getxattr('case', 'user.mark'))\""), "b'value'\n")


@case
def the_hosts_own_changes_are_not_the_runs(p):
    project(p)
    before = p.start(*NO_OVERLAY, "run", "--", "sh", "-c", "echo started; read line; echo mine >mine; cat f",
                     program=WITHOUT)
    assert before.stdout.readline() == b"started\n"
    p.write("project/f", "changed on the host\n")
    p.write("project/new", "new on the host\n")
    (p.project / "sub/g").unlink()
    p.make("project/folder")
    out, err = before.communicate(b"go\n", timeout=20)
    assert before.returncode == 0 and out == b"one\n", (out, err)
    assert kept(p) == {"mine": "mine\n"}


@case
def forged_marks_of_an_overlay_are_not_obeyed(p):
    project(p)
    script = """import os
os.setxattr('/work', 'user.overlay.opaque', b'y')
os.setxattr('sub', 'user.overlay.opaque', b'y')
os.setxattr('sub', 'user.overlay.redirect', b'/etc')
open('new', 'w').close()
"""
    expect(p.run(*NO_OVERLAY, "run", "--", "python3", "-c", script, program=WITHOUT), 0)
    assert kept(p) == {"new": "", "sub": "folder"}, kept(p)
    upper = runs(p)[-1] / "layer/upper"
    assert not os.listxattr(upper) and not os.listxattr(upper / "sub")


# --- what goes wrong ---

@case
@of_root
def a_disk_that_is_full_is_told(p):
    p.write("project/large", os.urandom(3 << 20))
    words = [WITHOUT, *NO_OVERLAY, "run", "--", "true"]
    script = f"mount -t tmpfs -o size=1M tmpfs {p.state}; \"$@\"; s=$?; find {p.state} -name layer; exit $s"
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *map(str, words)], cwd=p.project,
                          env=p.environ(None), capture_output=True, text=True, check=False)
    expect(done, 125, "cannot copy 'large': No space left on device", "XDG_STATE_HOME")
    assert done.stdout == "", done.stdout


@case
def a_state_without_marks_is_told(p):
    project(p)
    done = p.run("mknodat=EPERM", *NO_OVERLAY, "run", "--", "true", program=WITHOUT)
    refused(p, done, "has no whiteouts", "XDG_STATE_HOME")


@case
def a_copy_does_not_hold_itself(p):
    project(p)
    state = p.make("project/state")
    done = copied(p, "true", env={"XDG_STATE_HOME": str(state)})
    expect(done, 125, "would show bawn's own state")


@case
@of_root
def what_is_mounted_in_a_project_is_not_copied(p):
    project(p)
    done = in_mount_namespace(p, f"mount -t tmpfs tmpfs {p.project}/sub; set -- {WITHOUT} "
                              f"{' '.join(map(str, NO_OVERLAY[:-1]))} \"$@\"", "run", "--", "true")
    expect(done, 125, "in one piece", str(p.project / "sub"))


@case
@of_root
def a_file_system_that_cannot_map_owners_is_copied_from(p):
    os.chown(p.project, OTHER, OTHER)
    prepare = (f"mount -t ramfs ramfs {p.project}; echo one >{p.project}/f; chown -R {OTHER}:{OTHER} {p.project}; "
               f"cd {p.project}")
    done = expect(in_mount_namespace(p, prepare, "run", "--", "sh", "-c", "stat -c %U f; echo more >>f; cat f"), 0)
    assert done.stdout == "agent\none\nmore\n" and done.stderr.count("trying another way") == 1, done
    assert p.record()["capture"] == "copy" and p.record()["effects"]["changed"] == 1


def large(place):
    """So many files that there is time to look while they are copied."""
    folder = place.make("project/many")
    for i in range(4000):
        (folder / f"{i:04}").write_bytes(b"x" * 5000)
        os.chown(folder / f"{i:04}", place.uid, place.uid)


def wait_for_copy(place):
    wait_until(lambda: any(place.state.glob("bawn/runs/*/layer/copy/many/0*")), 10, "copying has begun")


def keeper():
    """It was there before the process that copies."""
    return min(pid for pid, name in descendants().items() if name.startswith("(bawn)"))


@case
def a_signal_ends_the_copying(p):
    large(p)
    for number in (signal.SIGINT, signal.SIGTERM):
        child = p.start(*NO_OVERLAY, "run", "--", "echo", "ran", program=WITHOUT)
        wait_for_copy(p)
        os.kill(keeper(), number)
        out, err = child.communicate(timeout=20)
        assert child.returncode == 128 + number and out == b"" and b"cannot start the command: signal" in err, (out, err)
        assert kept(p) is None


@case
def nobody_goes_on_copying_for_a_keeper_that_was_killed(p):
    large(p)
    child = p.start(*NO_OVERLAY, "run", "--", "echo", "ran", program=WITHOUT)
    wait_for_copy(p)
    os.kill(keeper(), signal.SIGKILL)
    out, _ = child.communicate(timeout=20)
    assert out == b""
    wait_until(lambda: not descendants(), 5, "the process that copies is gone")
    assert not (runs(p)[-1] / "layer/list").exists()
    # No command ran on it: that is seen, and it is removed.
    expect(p.run("diff", runs(p)[-1].name), 0)
    assert not (runs(p)[-1] / "layer").exists()


def start_and_kill(place, script):
    """A run whose keeper is killed when the script says so."""
    child = place.start(*NO_OVERLAY, "run", "--", "sh", "-c", script + "; echo written; sleep 60", program=WITHOUT)
    assert child.stdout.readline() == b"written\n"
    # While it goes on, nobody touches the copy.
    expect(place.run("diff"), 1, "still going on")
    os.kill(keeper(), signal.SIGKILL)
    child.communicate(timeout=20)
    wait_until(lambda: not descendants(), 5, "the cage is gone")


@case
def the_work_of_a_killed_run_is_found(p):
    project(p)
    before = picture(p.project)
    start_and_kill(p, "echo more >>f; rm sub/g; mkdir new; echo x >new/x")
    assert sorted(os.listdir(runs(p)[-1] / "layer")) == ["copy", "list"]
    (p.project / "sub/h").write_text("changed on the host\n")
    done = expect(p.run("diff", "--name-only"), 0, "interrupted")
    assert done.stdout.split() == ["f", "new/x", "sub/g"], done.stdout
    assert kept(p) == {"f": "one\nmore\n", "sub": "folder", "sub/g": "gone", "new": "folder", "new/x": "x\n"}
    (p.project / "sub/h").write_text("three\n")
    assert before.keys() == picture(p.project).keys()
    expect(p.run("discard"), 0)
    assert not (runs(p)[-1] / "layer").exists()


@case
def the_work_of_a_killed_run_in_a_worktree_is_found(p):
    repository = worktree(p)
    start_and_kill(p, "echo more >>a; git add a; git -c user.name=a -c user.email=b commit -qm new")
    run = runs(p)[-1]
    assert sorted(os.listdir(run / "git-layer")) == ["copy", "list"]
    done = expect(p.run("diff", "--name-only"), 0, "interrupted")
    assert "a" in done.stdout.split(), done.stdout
    for layer in ("layer", "git-layer"):
        assert sorted(os.listdir(run / layer)) == ["upper"]
    assert (run / "git-layer/upper/worktrees/project").exists() and repository.exists()


@case
def the_disk_limit_is_for_what_the_run_adds(p):
    p.write("project/large", os.urandom(6 << 20))
    disk = p.spec("limits: {disk: 4M}\n")
    write = "head -c {} /dev/urandom >{}; sync; sleep 3; echo done"
    output(copied(p, write.format("1M", "new"), *disk), "done\n")
    output(copied(p, "rm large;" + write.format("6M", "large"), *disk), "done\n")
    done = copied(p, write.format("8M", "new"), *disk)
    expect(done, 125, "limits.disk")
    assert done.stdout == "", done


if __name__ == "__main__":
    main()
