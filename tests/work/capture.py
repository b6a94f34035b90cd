#!/usr/bin/env python3
"""A captured project: worked on as if it were real, unchanged on the host, and the effects exactly known.

    capture.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import hashlib
import json
import os
import pathlib
import pty
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import (BAWN, BREAKABLE, USER, case, descendants, expect, main, of_root, of_users, output,  # noqa: E402
                   picture, wait_until)

ODD = ["a\nb", " leading and trailing ", "-rf", "*?[x]", "\x1b]52;c;eA==\x07", "tab\there", "\\", "'\"", "\u202ecod",
       "a", "A", "x" * 255]
INVALID = b"\xff\xfe\x80"


def newest(p):
    return max((p.state / "bawn/runs").iterdir(), key=lambda path: path.stat().st_ctime_ns)


def found(p):
    """What effects.json of the last run says, by path; nothing if it is not there."""
    file = newest(p) / "effects.json"
    if not file.exists():
        return {}
    effects = json.loads(file.read_bytes())["effects"]
    return {x.get("path") or os.fsdecode(bytes.fromhex(x["path_hex"])): x for x in effects}


def changes(p):
    return {path: x["change"] for path, x in found(p).items()}


def digest(p):
    return p.record()["effects"]["sha256"]


def expect_unchanged(p, before):
    assert picture(p.project) == before, "the project changed on the host"


def caged(p, script, wanted, *options, status=0, **more):
    """A script in a captured cage: the host stays as it is, and the effects are these."""
    before = picture(p.project)
    done = expect(p.sh(script, *options, **more), status)
    expect_unchanged(p, before)
    assert changes(p) == wanted, f"{changes(p)} is not {wanted}; {done.stderr}"
    return done


# --- what is captured ---

@case
def writes_stay_in_the_layer(p):
    p.write("project/old", "old\n")
    p.write("project/gone", "gone\n")
    p.write("project/folder/inside", "inside\n")
    caged(p, "echo more >>old; rm gone; echo new >new; mkdir d; mv folder/inside d/; rmdir folder; chmod +x old",
          {"old": "changed", "gone": "deleted", "new": "added", "d": "added", "d/inside": "renamed",
           "folder": "deleted"})
    assert p.record()["capture"] == "disk"
    assert found(p)["d/inside"]["from"] == "folder/inside"
    assert (newest(p) / "layer/upper/new").read_text() == "new\n"


@case
def what_is_not_changed_is_no_effect(p):
    p.write("project/a", "a\n")
    p.write("project/d/b", "b\n")
    caged(p, "touch a d/b; echo x >>a; printf 'a\\n' >a; chmod 600 a; chmod 644 a; touch t; rm t; mkdir n; rmdir n", {})
    assert not (newest(p) / "layer").exists() and not (newest(p) / "effects.json").exists()
    caged(p, "cat a; ls -R", {})


@case
def the_same_effects_have_the_same_digest(p):
    p.write("project/a", "a\n")
    script = "echo b >>a; mkdir d; ln -s a l; echo x >d/x; chmod 750 d/x"
    seen = set()
    for options in ((), ("--disk", "64M"), ("--no-tty",), p.spec("project: {cage: project}\n")):
        expect(p.sh(script, *options), 0)
        seen.add(digest(p))
    assert len(seen) == 1 and len(seen.pop()) == 64
    expect(p.sh(script.replace("echo x", "echo y")), 0)
    other = digest(p)
    expect(p.sh("true"), 0)
    assert digest(p) != other


@case
def a_hole_nobody_can_read_is_told_and_not_applied(p):
    caged(p, "truncate -s 4T huge; ln huge again; truncate -s 1M fits; echo x >x",
          {"huge": "added", "again": "added", "fits": "added", "x": "added"})
    for path in ("huge", "again"):
        x = found(p)[path]
        assert x["after"]["size"] == 4 << 40 and "sha256" not in x["after"] and "holes" in x["note"], x
    assert found(p)["fits"]["after"]["sha256"] == hashlib.sha256(bytes(1 << 20)).hexdigest()
    for args in (("diff",), ("apply", "--dry-run"), ("apply", "--all")):
        done = p.run(*args)
        assert "4398046511104" in done.stdout + done.stderr and "holes" in done.stdout + done.stderr, output(done)
    assert sorted(os.listdir(p.project)) == ["fits", "x"]
    assert (p.project / "fits").stat().st_size == 1 << 20


@case
def a_terminal_makes_no_difference(p):
    p.write("project/a", "a\n")
    script = "echo b >>a; rm -f z; echo new >new"
    expect(p.sh(script), 0)
    without = digest(p)
    near, far = pty.openpty()
    os.fchown(far, p.uid, p.uid)
    process = p.start("run", "--", "sh", "-c", f"tty && {script}", stdin=far, stdout=far, stderr=far,
                      start_new_session=True)
    os.close(far)
    said = b""
    while True:
        try:
            chunk = os.read(near, 4096)
        except OSError:
            break
        if not chunk:
            break
        said += chunk
    os.close(near)
    assert process.wait(20) == 0 and b"/dev/pts/" in said, said
    assert digest(p) == without


@case
def a_declared_disk_keeps_it_in_memory_and_saves_it(p):
    p.write("project/a", "a\n")
    p.write("project/d/x", "x\n")
    caged(p, "echo b >>a; rm -r d; mkdir -p n/m; echo y >n/m/y; chmod 000 n/m/y", {
        "a": "changed", "d": "deleted", "d/x": "deleted", "n": "added", "n/m": "added", "n/m/y": "added"},
        "--disk", "16M")
    assert p.record()["capture"] == "memory"
    assert (newest(p) / "layer/upper/n/m/y").lstat().st_size == 2


# --- odd things in a project ---

@case
def names_are_bytes(p):
    top = os.fsencode(p.project)
    for name in [*map(os.fsencode, ODD), INVALID]:
        with open(top + b"/" + name, "wb") as file:
            file.write(b"old\n")
        os.chown(top + b"/" + name, p.uid, p.uid)
    wanted = {name: "changed" for name in ODD} | {os.fsdecode(INVALID): "changed"}
    caged(p, "for name in .[!.]* *; do [ -f \"$name\" ] && echo new >>\"./$name\"; done; true", wanted)


@case
def deep_trees_are_captured(p):
    path = p.project
    for _ in range(150):
        path = path / "folder"
    path.mkdir(parents=True)
    (path / "file").write_text("old\n", encoding="utf-8")
    subprocess.run(["chown", "-R", f"{p.uid}:{p.uid}", p.project], check=True)
    deep = str(path.relative_to(p.project))
    caged(p, f"echo new >>{deep}/file && mkdir {deep}/more", {f"{deep}/file": "changed", f"{deep}/more": "added"})


@case
def a_large_sparse_file_stays_sparse(p):
    large = p.write("project/large", "")
    os.truncate(large, 1 << 30)
    caged(p, "printf x | dd of=large bs=1 seek=500000000 conv=notrunc status=none", {"large": "changed"})
    kept = newest(p) / "layer/upper/large"
    assert kept.stat().st_size == 1 << 30 and kept.stat().st_blocks * 512 < 1 << 20, kept.stat()


@case
def hard_links_lead_nowhere(p):
    outside = p.write("outside", "mine\n")
    os.link(outside, p.project / "name")
    os.link(p.project / "name", p.project / "other")
    before = outside.read_bytes()
    caged(p, "echo theirs >>name; ln name third", {"name": "changed", "third": "added"})
    assert outside.read_bytes() == before and outside.stat().st_nlink == 3


@case
def links_lead_only_into_the_cage(p):
    p.write("secret", "host\n")
    for name, target in (("absolute", p.home / "secret"), ("climbing", "../secret"), ("dangling", "nowhere"),
                         ("loop", "loop"), ("etc", "/etc/passwd"), ("folder", "..")):
        os.symlink(target, p.project / name)
    p.write("project/real/file", "x\n")
    os.symlink("real", p.project / "inside")
    before = picture(p.home)
    done = expect(p.sh("cat absolute climbing dangling loop; echo planted >>absolute; echo planted >climbing; "
                       "echo planted >folder/planted; echo y >>inside/file; ln -sf /etc/shadow dangling; exit 0"), 0)
    assert "host" not in done.stdout
    assert picture(p.home) == before, "something changed on the host"
    assert changes(p) == {"real/file": "changed", "dangling": "changed"}, changes(p)


@case
def sockets_and_pipes_of_the_host_are_not_reached(p):
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(p.project / "socket"))
    server.listen()
    os.mkfifo(p.project / "pipe")
    for name in ("socket", "pipe"):
        os.chown(p.project / name, p.uid, p.uid)
        os.chmod(p.project / name, 0o777)
    connect = "import socket; socket.socket(socket.AF_UNIX).connect('socket')"
    caged(p, f"python3 -c \"{connect}\" && echo reached; echo x | dd of=pipe oflag=nonblock 2>/dev/null; true", {})
    server.settimeout(0)
    try:
        server.accept()
        assert False, "the cage reached a socket of the host"
    except BlockingIOError:
        pass
    server.close()


@case
def attributes_are_captured(p):
    p.write("project/a", "a\n")
    os.setxattr(p.project / "a", "user.old", b"1")
    script = ("import os; assert os.getxattr('a', 'user.old') == b'1'; os.setxattr('a', 'user.new', b'2'); "
              "os.removexattr('a', 'user.old')")
    caged(p, f"python3 -c \"{script}\"", {"a": "changed"})
    assert os.listxattr(p.project / "a") == ["user.old"]
    seen = {x["name"]: x["change"] for x in found(p)["a"]["attributes"]}
    assert seen == {"user.new": "added", "user.old": "deleted"}, seen


@case
def the_layer_cannot_be_forged(p):
    """T119: attributes and devices by which an overlay tells what is deleted or elsewhere."""
    p.write("project/d/kept", "x\n")
    p.write("secret", "host\n")
    forge = ("import os\\n"
             "for name in ('opaque', 'redirect', 'metacopy', 'whiteout', 'origin', 'impure'):\\n"
             "    for kind in ('user', 'trusted'):\\n"
             "        try: os.setxattr('d', f'{kind}.overlay.{name}', b'y'); print('set', kind, name)\\n"
             "        except OSError as e: pass\\n"
             "try: os.mknod('w', 0o020666, 0); print('whiteout')\\n"
             "except OSError: pass\\n")
    done = expect(p.sh(f"printf \"{forge}\" >/tmp/forge.py; python3 /tmp/forge.py; cat d/kept"), 0)
    assert "x" in done.stdout
    # What the kernel let through is what it hides again: no effect follows from it.
    assert set(changes(p)) <= {"d", "w"}, changes(p)
    assert changes(p).get("d", "changed") == "changed" and (p.project / "d/kept").exists()


@of_users
@case
def files_of_others_stay_theirs(p):
    if os.geteuid() != 0:
        return
    p.write("project/theirs", "theirs\n", 0o666)
    p.write("project/group", "group\n", 0o664)
    os.chown(p.project / "theirs", USER + 1, USER + 1)
    os.chown(p.project / "group", p.uid, USER + 1)
    before = picture(p.project)
    done = expect(p.sh("cat theirs group; echo x >>theirs; echo x >>group; echo x >mine"), 0)
    assert done.stdout == "theirs\ngroup\n" and "Value too large" in done.stderr, done
    expect_unchanged(p, before)
    assert changes(p) == {"mine": "added"}


@of_root
@case
def roots_project_of_a_user_stays_the_users(p):
    for path in (p.write("project/a", "a\n"), p.project):
        os.chown(path, USER, USER)
    caged(p, "echo b >>a; echo n >n", {"a": "changed", "n": "added"})
    for name in ("a", "n"):
        st = (newest(p) / "layer/upper" / name).stat()
        assert (st.st_uid, st.st_gid) == (USER, USER), st


# --- while it lasts, and when it is cut short ---

@case
def what_the_host_wrote_just_before_is_no_conflict(p):
    """Times of files are those of the clock's ticks: a run may begin in the one of the last write."""
    script = p.write("commit", """git init -q . && for i in 1 2 3 4 5 6; do
    echo "$i" >plain; "$1" run -q -- sh -c 'echo run >plain' && "$1" apply -q || exit
    echo "$i" >a; git add a; git -c user.name=A -c user.email=a@b commit -qm host
    "$1" run -q -- sh -c 'echo run >a; git -c user.name=B -c user.email=b@c commit -qam run' && "$1" apply -q || exit
    done; git log --format=%s""")
    done = expect(p.run("-eu", script, BAWN, program="sh"), 0)
    assert done.stdout == "run\nhost\n" * 6, done.stdout
    assert (p.project / "a").read_text() == (p.project / "plain").read_text() == "run\n"


@case
def what_the_host_writes_as_soon_as_the_command_runs_is_a_conflict(p):
    """However little later than the start: on the device of the state, whose files' times bawn can split, and on another."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        os.chown(elsewhere, p.uid, p.uid)
        for state in (None, {"XDG_STATE_HOME": elsewhere}):
            for count in range(8):
                p.write("project/a", f"{count}\n")
                process = p.start("run", "-q", "--", "sh", "-c", "echo ready; echo run >a; read line", env=state)
                assert process.stdout.readline() == b"ready\n"
                (p.project / "a").write_text("host's own\n", encoding="utf-8")
                process.communicate(b"\n", timeout=20)
                said = expect(p.run("apply", env=state), 1).stdout
                assert "conflict" in said and (p.project / "a").read_text() == "host's own\n", (state, count, said)
                expect(p.run("discard", "--yes", env=state), 0)


@case
def what_the_host_changes_meanwhile_is_marked(p):
    p.write("project/a", "a\n")
    p.write("project/b", "b\n")
    process = p.start("run", "--", "sh", "-c", "echo one >>a; echo one >>b; touch /work/ready; read line; rm ready")
    layer = lambda: list((p.state / "bawn/runs").glob("*/layer/upper/ready"))  # noqa: E731
    wait_until(layer, 10, "the command writes")
    p.write("project/a", "host's own\n")
    process.stdin.write(b"\n")
    process.stdin.close()
    assert process.wait(20) == 0
    process.stdout.close()
    process.stderr.close()
    effects = found(p)
    assert effects["a"].get("moved") is True and "moved" not in effects["b"], effects
    assert (p.project / "a").read_text() == "host's own\n"


@case
def the_work_of_a_killed_run_is_kept(p):
    p.write("project/a", "a\n")
    before = picture(p.project)
    process = p.start("run", "--", "sh", "-c", "echo b >>a; touch ready; sleep 60")
    wait_until(lambda: list((p.state / "bawn/runs").glob("*/layer/upper/ready")), 10, "the command writes")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    wait_until(lambda: not descendants(), 10, "nothing is left of the cage")
    expect_unchanged(p, before)
    expect(p.run("record", "list"), 0, "interrupted")
    assert p.record()["outcome"] == "interrupted"
    assert (newest(p) / "layer/upper/a").read_text() == "a\nb\n"
    assert os.readlink(newest(p) / "project") == str(p.project)


@case
def what_cannot_be_told_is_no_success(p):
    """Folders in folders without end; they are in the layer still, and can be dropped."""
    dig = "i=0; while [ $i -lt 1100 ]; do mkdir d && cd d || exit 3; i=$((i+1)); done; echo dug"
    done = expect(p.sh(dig), 125, "cannot find out what the run changed")
    assert done.stdout == "dug\n" and "error" in p.record()["effects"], p.record()["effects"]
    expect(p.run("discard"), 0)
    assert not (newest(p) / "layer").exists()


@case
def what_never_ran_leaves_no_layer(p):
    expect(p.run("run", "--", "no-such-command"), 127)
    assert not (newest(p) / "layer").exists()


@case
def the_layer_takes_no_more_than_it_may(p):
    """A kernel without attributes on tmpfs has the layer on disk, and the keeper watches it."""
    old = {"program": BREAKABLE, "env": {"BAWN_TEST_BREAK": "attributes"}}
    flood = "dd if=/dev/zero of=big bs=1M count=4000 status=none; echo over"
    done = expect(p.sh(flood, "--disk", "64M", **old), 125, "limits.disk", "takes more than it may")
    assert "over" not in done.stdout, done
    record = p.record()
    assert record["outcome"] == "cut_off" and record["capture"] == "disk" and changes(p) == {"big": "added"}, record
    many = "i=0; while [ $i -lt 40000 ]; do : >f$i; i=$((i+1)); done; echo over"
    done = expect(p.sh(many, "--disk", "8M", **old), 125, "limits.disk")
    # What others take on the same disk is not the run's.
    other = p.home / "other"
    process = p.start("run", "--disk", "64M", "--", "sh", "-c", "echo x >x; read line; echo $line", **old)
    wait_until(lambda: list((p.state / "bawn/runs").glob("*/layer/upper/x")), 10, "the command writes")
    with open(other, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 200 << 20)
    time.sleep(0.5)
    other.unlink()
    out, err = process.communicate(b"went on\n", timeout=20)
    assert process.returncode == 0 and out == b"went on\n", (process.returncode, out, err)


# --- modes ---

@case
def parts_are_captured_alone(p):
    p.write("project/src/a", "a\n")
    p.write("project/doc/b", "b\n")
    options = p.spec('project: {write_allowlist: ["$PROJECT/src/**"]}\n')
    caged(p, "echo x >>src/a; echo x >>doc/b; echo x >new; true", {"src/a": "changed"}, *options)
    options = p.spec('project: {read_allowlist: ["$PROJECT/src/**"], write_allowlist: ["$PROJECT/src/**"]}\n')
    done = caged(p, "ls; echo x >>src/a; echo new >src/n; cat doc/b; true",
                 {"src/a": "changed", "src/n": "added"}, *options)
    assert done.stdout == "src\n", done.stdout


@case
def read_only_has_no_effects(p):
    p.write("project/a", "a\n")
    before = picture(p.project)
    done = expect(p.sh("echo x >>a || echo refused", "--read-only"), 0)
    assert done.stdout == "refused\n"
    expect_unchanged(p, before)
    assert "effects" not in p.record() and p.record()["capture"] is None


@case
def at_its_own_path_absolute_and_relative_are_the_same(p):
    p.write("project/a", "a\n")
    p.write("project/d/b", "b\n")
    options = p.spec("project: {cage: project}\n")
    caged(p, f"pwd; echo one >>{p.project}/a; echo two >>a; cd d; echo three >>../a; echo x >{p.project}/d/new",
          {"a": "changed", "d/new": "added"}, *options)
    assert (newest(p) / "layer/upper/a").read_text() == "a\none\ntwo\nthree\n"


@case
def what_is_bound_into_the_project_is_no_effect(p):
    p.write("project/a", "a\n")
    p.write("lib/x", "x\n")
    caged(p, "cat lib/x deep/er/x; echo n >n", {"n": "added"}, "-v", f"{p.home}/lib:/work/lib", "-v",
          f"{p.home}/lib:/work/deep/er")


if __name__ == "__main__":
    main()
