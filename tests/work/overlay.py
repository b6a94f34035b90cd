#!/usr/bin/env python3
"""Overlays of the root that are kept: what runs find again, what holds them, and what cannot hurt.

    overlay.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import json
import os
import pathlib
import shlex
import shutil
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
from place import BREAKABLE, SLOW, TOOL, Skip, case, descendants, expect, expect_refusal, main, of_root, \
    output, picture, wait_until  # noqa: E402

MB = 1 << 20


def has_tmpfs_attributes():
    return tuple(int(part) for part in os.uname().release.split(".")[:2]) >= (6, 6)


def spec(p, more="", size="16M", image=None, at="~/overlay"):
    """Options for a run with an overlay."""
    parts = [f"overlay: {at}"]
    parts += [f"overlay_size: {size}"] if size else []
    parts += [f"image: 'dir:{image}'"] if image else []
    return p.spec("root: {" + ", ".join(parts + ([more] if more else [])) + "}\n")


def overlay(p):
    return p.home / "overlay"


def note(p):
    return json.loads((overlay(p) / "overlay.json").read_bytes())


def make(p, script="true", **more):
    """An overlay in which a script has run."""
    options = spec(p, **more)
    expect(p.sh(script, *options), 0)
    return options


def make_image(p):
    """A root with a shell, a static program and some files of its own."""
    image = p.make("image")
    p.write(image / "bin/tool", TOOL.read_bytes(), mode=0o755)
    words = subprocess.run(["ldd", "/bin/sh"], capture_output=True, check=True, text=True).stdout.split()
    for file in ["/bin/sh", "/bin/rm", "/bin/mkdir", "/bin/ln", "/bin/cat", "/bin/mv", "/bin/chmod"]:
        words += subprocess.run(["ldd", file], capture_output=True, check=True, text=True).stdout.split() + [file]
    for file in {word for word in words if word.startswith("/")}:
        p.write(image / file.lstrip("/"), pathlib.Path(file).read_bytes(), mode=0o755)
    for name in ("opt/gone", "opt/changed", "data/deep/file", "etc/own"):
        p.write(image / name, f"{name} of the image\n")
    return image


# --- kept, and not kept ---

@case
def what_a_run_writes_is_there_in_the_next(p):
    options = make(p, """
        echo one >/opt/file; chmod 640 /opt/file; touch -d 2001-02-03T04:05:06Z /opt/file
        ln -s /etc/passwd /home/agent/link; mkdir -p /var/lib/a/b; mkfifo /srv/pipe
        echo two >/opt/a; ln /opt/a /opt/b
        truncate -s 8M /opt/sparse; echo end >>/opt/sparse""")
    output(p.sh("""cat /opt/file; stat -c '%a %Y %U' /opt/file; readlink /home/agent/link; ls -d /var/lib/a/b
        stat -c %F /srv/pipe; test /opt/a -ef /opt/b && stat -c %h /opt/b; cat /opt/b
        stat -c %s /opt/sparse; test $(stat -c %b /opt/sparse) -lt 100 && tail -c 4 /opt/sparse""", *options),
           "one\n640 981173106 agent\n/etc/passwd\n/var/lib/a/b\nfifo\n2\ntwo\n8388612\nend\n")
    expect(p.sh("rm /opt/file /opt/a; echo three >/opt/b", *options), 0)
    output(p.sh("ls /opt; cat /opt/b", *options), "b\nsparse\nthree\n")


@case
def without_one_nothing_is_kept(p):
    make(p, "echo kept >/opt/file")
    before = picture(overlay(p))
    expect(p.sh("test ! -e /opt/file; echo x >/opt/file"), 0)
    expect(p.sh("test ! -e /opt/file"), 0)
    assert picture(overlay(p)) == before
    assert "overlay" not in p.record()


@case
def what_a_failed_command_left_is_kept(p):
    options = spec(p)
    expect(p.sh("echo one >/opt/file; exit 3", *options), 3)
    output(p.sh("cat /opt/file", *options), "one\n")
    expect(p.sh("echo two >/opt/file; kill -9 $$", *options), 137)
    output(p.sh("cat /opt/file", *options), "two\n")
    expect(p.sh("echo three >/opt/file; sleep 60", *options, "--time", "1s"), 124)
    output(p.sh("cat /opt/file", *options), "three\n")


@case
def what_never_ran_keeps_nothing(p):
    options = make(p)
    before = note(p)
    expect(p.run("run", *options, "--", "no-such-command"), 127)
    startup = p.write("startup.yaml", "version: 1\nroot: {overlay: ~/overlay}\n"
                      "startup_commands: ['echo x >/opt/startup', 'false']\n")
    expect(p.run("run", "--trust", "-f", startup, "--", "true"), 125)
    assert note(p) == before and not (overlay(p) / "tree/opt/startup").exists()
    assert p.record()["overlay"]["saved"] is False


@case
def users_attributes_are_kept(p):
    if not has_tmpfs_attributes():
        raise Skip("a tmpfs has them since Linux 6.6")
    set_it = "import os; os.setxattr('/opt', 'user.colour', b'red'); os.setxattr('/opt/f', 'user.a', b'\\0')"
    options = make(p, f'echo >/opt/f; python3 -c "{set_it}"')
    get_it = "import os; print(os.getxattr('/opt', 'user.colour'), os.getxattr('/opt/f', 'user.a'))"
    output(p.sh(f'python3 -c "{get_it}"', *options), "b'red' b'\\x00'\n")


@case
def what_its_owner_cannot_read_stays_readable(p):
    options = make(p, "echo secret >/opt/f; chmod 0 /opt/f; mkdir /opt/d; echo x >/opt/d/x; chmod 0 /opt/d")
    output(p.sh("cat /opt/f /opt/d/x; stat -c %a /opt/f /opt/d", *options), "secret\nx\n400\n700\n")


@case
def sockets_are_not_kept_and_that_is_said(p):
    script = "import socket; socket.socket(socket.AF_UNIX).bind('/opt/s')"
    done = expect(p.sh(f'python3 -c "{script}"', *spec(p)), 0)
    assert done.stderr == "bawn: an overlay keeps no sockets and devices; left out: 1\n", done.stderr
    assert p.record()["overlay"]["skipped"] == 1


@case
def what_did_not_change_is_not_written_again(p):
    options = make(p, "echo one >/opt/one; echo two >/opt/two; touch -d 2001-02-03 /opt/two")
    tree = overlay(p) / "tree/opt"
    before = {name: (tree / name).stat().st_ino for name in ("one", "two")}
    expect(p.sh("echo TWO >/opt/two; touch -d 2001-02-03 /opt/two", *options), 0)
    assert (tree / "one").stat().st_ino == before["one"] and (tree / "one").stat().st_nlink == 1
    assert (tree / "two").stat().st_ino != before["two"] and (tree / "two").read_text() == "TWO\n"


# --- the size ---

FILL = "cat /dev/zero >/opt/zeros; stat -c %s /opt/zeros"


@case
def the_size_is_a_quota(p):
    options = spec(p, size="8M")
    done = expect(p.sh(FILL, *options), 0, "No space left on device")
    assert 8 * MB - 65536 < int(done.stdout) <= 8 * MB, done.stdout
    assert "bawn: the overlay was full when the command ended (root.overlay_size: 8M)\n" in done.stderr
    assert p.record()["overlay"]["full"] is True and p.record()["overlay"]["saved"] is True
    # What is full can be loaded again, and emptied.
    output(p.sh("stat -c %s /opt/zeros; rm /opt/zeros", *options), done.stdout)
    assert p.record()["overlay"]["full"] is False
    # Not by the limit of the rest, and the rest not by it.
    expect(p.sh("head -c 12M /dev/zero >/work/zeros", *options), 0)
    expect(p.sh("head -c 6M /dev/zero >/opt/zeros", *options, "--disk", "1M"), 0)


@case
def so_is_the_number_of_files(p):
    options = spec(p, size="1M")
    count = 1024 + MB // 8192
    script = "cd /opt; i=0; while true 2>/dev/null >$i; do i=$((i+1)); done; echo $i"
    done = expect(p.sh(script, *options), 0)
    assert count - 100 < int(done.stdout) <= count, done.stdout
    output(p.sh("ls /opt | wc -l", *options), done.stdout)
    # Also where each of them has two names, and copying takes a third for a while.
    expect(p.sh("cd /opt; rm -f *; i=0; while true >$i && ln $i $i.b; do i=$((i+1)); done 2>/dev/null", *options), 0)
    expect(p.sh("true", *options), 0)


@case
def a_size_can_be_changed(p):
    make(p, "head -c 6M /dev/zero >/opt/zeros", size="8M")
    assert note(p)["size"] == 8 * MB
    before = picture(overlay(p) / "tree")
    expect_refusal(p.sh("echo ran", *spec(p, size="4M")),
                   "bawn: cannot use the overlay '~/overlay': its contents do not fit into its size of 4M\n"
                   "hint: set a larger root.overlay_size, or empty it: bawn overlay reset\n")
    assert picture(overlay(p) / "tree") == before and note(p)["size"] == 8 * MB
    expect(p.sh("head -c 9M /dev/zero >/opt/more", *spec(p, size="16M")), 0)
    assert note(p)["size"] == 16 * MB
    # Without a size it stays as large as it is.
    expect(p.sh("head -c 9M /dev/zero >/opt/more", *spec(p, size=None)), 0)
    expect(p.sh("rm /opt/*", *spec(p, size="4M", more="overlay_create_if_missing: false")), 125)
    expect(p.sh("rm /opt/more /opt/zeros", *spec(p, size=None)), 0)
    expect(p.sh("true", *spec(p, size="4M", more="overlay_create_if_missing: false")), 0)
    assert note(p)["size"] == 4 * MB


# --- missing, and made ---

@case
def a_missing_one_is_made_only_if_that_is_declared(p):
    path = overlay(p)
    expect_refusal(p.sh("true", *spec(p, size=None)),
                   f"bawn: cannot make the overlay '{path}': a new one needs a size\n"
                   "hint: set root.overlay_size, such as 5G\n")
    missing = (f"bawn: cannot use the overlay '{path}': it does not exist\n"
               "hint: make it with bawn overlay init, or set root.overlay_create_if_missing: true\n")
    for size in (None, "8M"):
        expect_refusal(p.sh("true", *spec(p, size=size, more="overlay_create_if_missing: false")), missing)
    assert not path.exists()
    expect(p.sh("true", *spec(p, size="8M")), 0)
    st = path.stat()
    assert stat.S_IMODE(st.st_mode) == 0o700 and st.st_uid == p.uid and note(p)["size"] == 8 * MB


@case
def what_it_is_in_must_exist(p):
    done = expect_refusal(p.sh("true", *spec(p, at="~/none/overlay")))
    assert f"the folder '{p.home}/none/' it is in cannot be opened: No such file or directory" in done.stderr
    assert not (p.home / "none").exists()


@case
def only_an_overlay_is_taken_for_one(p):
    options, path = spec(p), overlay(p)
    p.make("overlay")
    p.write("overlay/mine", "mine")
    expect_refusal(p.sh("true", *options), f"cannot use '{path}' as an overlay: it has no overlay.json")
    assert [entry.name for entry in path.iterdir()] == ["mine"]
    shutil.rmtree(path)
    p.write("overlay", "a file")
    expect_refusal(p.sh("true", *options), f"cannot use '{path}' as an overlay: it is not a folder")
    path.unlink()
    make(p, at="~/other")
    path.symlink_to("other")
    spec(p)
    expect_refusal(p.sh("true", *options), f"cannot use '{path}' as an overlay: it is not a folder")
    path.unlink()
    (p.home / "other").rename(path)
    path.chmod(0o770)
    expect_refusal(p.sh("true", *options), f"cannot use the overlay '{path}': others can write to it")
    path.chmod(0o700)
    (path / "overlay.json").write_text("{}")
    expect_refusal(p.sh("true", *options), f"cannot use '{path}' as an overlay: its overlay.json is damaged")


@case
def somebody_elses_is_not_used(p):
    if os.geteuid() != 0:
        raise Skip("only root can give files away")
    options = make(p)
    os.chown(overlay(p), 4711, 4711)
    expect_refusal(p.sh("true", *options), "it belongs to user 4711, not to you" if p.uid == 0 else "ermission denied")


@case
def it_is_never_where_the_cage_can_see_it(p):
    p.make("bound")
    for at, options, other in (("$PROJECT/o", (), p.project), (p.project / "o", (), p.project),
                               ("~/bound/o", ("-v", f"{p.home}/bound:/srv/bound"), p.home / "bound"),
                               (p.state / "bawn/o", (), p.state / "bawn"),
                               ("/usr/o", (), "/usr")):
        at = str(at).replace("$PROJECT", str(p.project))
        done = expect_refusal(p.sh("true", *spec(p, at=at), *options))
        assert "cannot use the overlay" in done.stderr, done.stderr
        assert f"'{other}'\nhint: choose a place apart from it" in done.stderr, done.stderr
    make(p)
    expect_refusal(p.sh("true", *spec(p), "-v", "~/overlay/tree:/srv/tree"), "cannot use the overlay", "choose a place apart")


# --- one at a time ---

def run_in_background(p, options, script="echo started; cat >/dev/null"):
    process = p.start("run", *options, "--", "sh", "-c", script)
    assert process.stdout.readline() == b"started\n"
    return process


@case
def a_second_run_is_told_who_has_it(p):
    options = spec(p)
    process = run_in_background(p, options)
    try:
        run = max((p.state / "bawn/runs").iterdir(), key=lambda path: path.stat().st_ctime_ns).name
        expect_refusal(p.sh("echo ran", *options),
                       f"bawn: cannot use the overlay '{overlay(p)}': run {run}, process {process.pid} uses it\n"
                       "hint: wait for its end, or use another overlay\n")
    finally:
        process.communicate(timeout=20 * SLOW)
    expect(p.sh("true", *options), 0)


@case
def a_killed_run_leaves_what_was_kept(p):
    options = make(p, "echo kept >/opt/file")
    before = note(p)
    process = run_in_background(p, options, "echo lost >/opt/file; echo started; cat >/dev/null")
    process.kill()
    process.communicate(timeout=20 * SLOW)
    assert note(p) == before
    output(p.sh("cat /opt/file", *options), "kept\n")


@case
def a_run_killed_while_it_saves_leaves_what_was_kept(p):
    options = make(p, "echo kept >/opt/file", size="64M")
    before = note(p)
    script = "echo lost >/opt/file; cd /var/tmp; for d in 1 2 3 4; do mkdir $d; (cd $d; seq 1500 | xargs touch); done"
    process = p.start("run", *options, "--", "sh", "-c", script)
    wait_until((overlay(p) / "tree.new/var/tmp").exists, 20, "a new tree")
    process.kill()
    process.communicate(timeout=20 * SLOW)
    if not (overlay(p) / "tree.new").exists():
        raise Skip("it was faster than we")
    assert note(p) == before
    output(p.sh("cat /opt/file; ls /var/tmp", *options), "kept\n")
    assert not (overlay(p) / "tree.new").exists()


# --- on record ---

@case
def digests_are_on_record(p):
    options = make(p, "echo one >/opt/file")
    first = p.record()["overlay"]
    assert first["path"] == "~/overlay" and first["size"] == 16 * MB
    assert first["saved"] is True and first["full"] is False and first["skipped"] == 0
    assert first["sha256_before"] != first["sha256_after"] == note(p)["sha256"]
    expect(p.sh("cat /opt/file", *options), 0)
    second = p.record()["overlay"]
    assert second["sha256_before"] == first["sha256_after"] == second["sha256_after"]
    expect(p.sh("chmod 600 /opt/file", *options), 0)
    third = p.record()["overlay"]
    assert third["sha256_before"] == first["sha256_after"] != third["sha256_after"]
    # What changes on disk meanwhile is seen, whatever the note says.
    (overlay(p) / "tree/opt/file").write_text("other\n")
    output(p.sh("cat /opt/file", *options), "other\n")
    assert p.record()["overlay"]["sha256_before"] != third["sha256_after"]


@case
def a_killed_run_has_its_digest_on_record(p):
    options = make(p)
    process = run_in_background(p, options)
    process.kill()
    process.communicate(timeout=20 * SLOW)
    wait_until(lambda: not descendants(), 20, "the end of the cage")
    expect(p.run("record", "list"), 0)
    record = p.record()
    assert record["outcome"] == "interrupted" and record["overlay"]["sha256_before"] == note(p)["sha256"]
    assert record["overlay"]["saved"] is False and record["overlay"]["sha256_after"] is None


# --- bawn overlay ---

@case
def one_can_be_made_beforehand(p):
    path = overlay(p)
    output(p.run("overlay", "init", path, "--size", "8MB"), f"made the overlay '{path}', which may take 8M\n")
    before = note(p)
    assert before["size"] == 8 * MB and stat.S_IMODE(path.stat().st_mode) == 0o700
    expect(p.sh("echo kept >/opt/file", *spec(p, size=None, more="overlay_create_if_missing: false")), 0)
    assert note(p)["size"] == 8 * MB and note(p)["created"] == before["created"]
    done = expect_refusal(p.run("overlay", "init", path, "--size", "8M"))
    assert done.stderr == (f"bawn: cannot make an overlay at '{path}': something is there\n"
                           "hint: bawn overlay reset empties an overlay\n")
    output(p.sh("cat /opt/file", *spec(p, size=None)), "kept\n")
    done = expect(p.run("overlay", "init", "other", "--size", "1G", "--json", cwd=p.home), 0)
    made = json.loads(done.stdout)
    assert made["version"] == 1 and made["path"] == str(p.home / "other") and made["size"] == 1024 * MB and made["sha256"] == before["sha256"]


@case
def sizes_have_exact_units(p):
    for size in ("5120K", "5120KB", "5T", "5m", "5", "5242880", "0M", "05M", "5 M", "M", "-5M", "5.5G", ""):
        done = expect(p.run("overlay", "init", overlay(p), "--size", size), 2)
        assert done.stderr.startswith("bawn: --size: ") and not overlay(p).exists(), done.stderr
        expect(p.run("check", *spec(p, size=f"'{size}'")), 1, "root.overlay_size: ")
        expect(p.sh("true", *spec(p, size=f"'{size}'")), 125)
        assert not overlay(p).exists()
    for size, wanted in (("5M", 5), ("5MB", 5), ("1G", 1024), ("1GB", 1024)):
        expect(p.run("overlay", "init", overlay(p), "--size", size), 0)
        assert note(p)["size"] == wanted * MB
        shutil.rmtree(overlay(p))
        expect(p.run("check", *spec(p, size=size)), 0)


@case
def one_can_be_emptied(p):
    options = make(p, "echo kept >/opt/file")
    output(p.run("overlay", "reset", f"{overlay(p)}/"), f"emptied the overlay '{overlay(p)}'\n")
    assert list((overlay(p) / "tree").iterdir()) == [] and note(p)["size"] == 16 * MB
    output(p.sh("ls /opt", *options), "")
    expect(p.run("overlay", "reset", overlay(p), "-q"), 0)
    assert list((overlay(p) / "tree").iterdir()) == []


@case
def its_digest_is_that_of_the_record(p):
    make(p, "echo kept >/opt/file")
    digest = p.record()["overlay"]["sha256_after"]
    output(p.run("overlay", "digest", overlay(p)), digest + "\n")
    said = json.loads(p.run("overlay", "digest", overlay(p), "--json").stdout)
    assert said["sha256"] == said["noted_sha256"] == digest and said["size"] == 16 * MB
    (overlay(p) / "tree/opt/file").write_text("other\n")
    done = expect(p.run("overlay", "digest", overlay(p)), 0)
    assert len(done.stdout) == 65 and done.stdout != digest + "\n"
    assert done.stderr == (f"bawn: '{overlay(p)}' is not what the last run left in it: something else changed it\n")


@case
def what_killed_runs_left_can_be_removed(p):
    options, other = make(p, "echo kept >/opt/file"), p.home / "other"
    expect(p.run("overlay", "init", other, "--size", "1M"), 0)
    p.write("overlay/tree.new/opt/half", "half")
    p.make("overlay/links.new")
    output(p.run("overlay", "prune", overlay(p), other),
           f"removed 1 tree that killed runs left in '{overlay(p)}'\nthere is nothing to remove in '{other}'\n")
    assert sorted(entry.name for entry in overlay(p).iterdir()) == ["lock", "overlay.json", "tree"]
    output(p.sh("cat /opt/file", *options), "kept\n")
    p.make("overlay/tree.old")
    said = json.loads(p.run("overlay", "prune", overlay(p), "--json").stdout)
    assert [one["removed"] for one in said["overlays"]] == [1]


@case
def what_is_in_use_is_left_alone(p):
    options = make(p)
    process = run_in_background(p, options)
    try:
        run = max((p.state / "bawn/runs").iterdir(), key=lambda path: path.stat().st_ctime_ns).name
        for verb in ("reset", "prune", "digest"):
            expect_refusal(p.run("overlay", verb, overlay(p)),
                           f"bawn: cannot use the overlay '{overlay(p)}': run {run}, process {process.pid} uses it")
    finally:
        process.communicate(timeout=20 * SLOW)


@case
def only_overlays_are_touched(p):
    folder = p.make("folder")
    p.write("folder/tree/file", "mine")
    before = picture(folder)
    for verb in ("reset", "prune", "digest"):
        expect_refusal(p.run("overlay", verb, folder), f"cannot use '{folder}' as an overlay: it has no overlay.json")
        expect_refusal(p.run("overlay", verb, p.home / "none"), "cannot open the overlay '", "No such file")
    expect_refusal(p.run("overlay", "init", folder, "--size", "1M"), f"cannot make an overlay at '{folder}': something is there")
    assert picture(folder) == before


@case
def wrong_use_is_told(p):
    for words, said in (
            ((), "say what to do with an overlay: init, reset, prune or digest"),
            (("inti", "x"), "overlay knows init, reset, prune and digest, not 'inti'; did you mean init?"),
            (("remove", "x"), "overlay knows init, reset, prune and digest, not 'remove'"),
            (("init", "x"), "cannot make an overlay without a size\nhint: --size 5G"),
            (("init",), "say which overlay: bawn overlay init PATH; bawn keeps no list of them"),
            (("prune",), "say which overlay: bawn overlay prune PATH…; bawn keeps no list of them"),
            (("reset", "x", "y"), "overlay reset takes one path, and not 'y' too"),
            (("reset", "x", "--size", "1M"), "overlay reset takes no --size: a run with root.overlay_size changes the "
                                             "size of an overlay"),
            (("init", "..", "--size", "1M"), "cannot use '..' as an overlay: its path does not end with a name")):
        done = expect(p.run("overlay", *words), 2)
        assert done.stderr == f"bawn: {said}\n" and not done.stdout, done.stderr


# --- above an image ---

@case
def an_image_stays_as_it_is_below_an_overlay(p):
    if not has_tmpfs_attributes():
        expect_refusal(p.sh("true", *spec(p, image=make_image(p))), "a tmpfs has since Linux 6.6")
        raise Skip("a tmpfs has attributes since Linux 6.6")
    image = make_image(p)
    before = picture(image)
    options = spec(p, image=image)
    output(p.sh("""cat /opt/gone /etc/own; rm /opt/gone; echo more >>/opt/changed
        rm -r /data; mkdir /data; echo n >/data/new; ln -s / /data/root
        echo new >/bin/new; echo new >/new; chmod 700 /bin/tool; mv /etc/own /etc/moved; mkdir /usr2""",
                *options), "opt/gone of the image\netc/own of the image\n")
    assert picture(image) == before
    output(p.sh("""test ! -e /opt/gone; cat /opt/changed; cd /data; echo *; cat /bin/new /new /etc/moved
        test ! -e /etc/own; test -d /usr2""", *options),
           "opt/changed of the image\nmore\nnew root\nnew\nnew\netc/own of the image\n")
    assert picture(image) == before
    shutil.rmtree(overlay(p))
    output(p.sh("cat /opt/gone; test ! -e /new", *options), "opt/gone of the image\n")
    assert picture(image) == before


@case
def read_only_stays_read_only_in_a_root_that_can_be_written(p):
    if not has_tmpfs_attributes():
        raise Skip("a tmpfs has attributes since Linux 6.6")
    image = make_image(p)
    p.write("data/file", "mine")
    before = picture(p.home / "data")
    for path in ("/srv/data/file", "/srv/data/new", "/dev/new", "/proc/version", "/dev/null/x"):
        expect(p.run("run", *spec(p, image=image), "-v", "~/data:/srv/data", "--", "/bin/tool", "write", path), 1)
    assert picture(p.home / "data") == before


# --- what a hostile run may have left ---

def plant(p, name, make_it):
    path = overlay(p) / "tree" / name
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)
    make_it(path)
    if path.exists() or path.is_symlink():
        os.chown(path, p.uid, p.uid, follow_symlinks=False)


PLACES = ("etc", "dev", "proc", "tmp", "home", "home/agent", "usr", "bin", "run", "run/shm", "var", "var/tmp",
          "work", "srv", "lib", "opt")


def expect_as_first(p, options):
    """The root is the planned one: nothing that was left changed it."""
    output(p.sh("""for d in /etc /dev /proc /tmp /home/agent /usr /run/shm /var/tmp /work; do
        test -d $d && test ! -L $d || echo bad $d; done
        grep -c agent /etc/passwd; test -c /dev/null; test -d /proc/self; test -x /usr/bin/env; readlink /bin
        stat -c '%a' / /tmp /home/agent /var/tmp; echo x >/tmp/x; echo x >~/x; echo $HOME""", *options),
           "1\nusr/bin\n755\n1777\n700\n1777\n/home/agent\n")


@case
def links_that_were_left_lead_nowhere(p):
    victim = p.make("victim")
    p.write("victim/file", "mine")
    before = picture(victim)
    options = make(p)
    for target in (str(victim), "/", "../../../victim", "/proc/self/root", "nowhere"):
        for name in PLACES:
            plant(p, name, lambda path: path.symlink_to(target))
            if "/" not in name:
                expect_as_first(p, options)
    assert picture(victim) == before


@case
def links_are_in_the_way_if_nobody_removes_them(p):
    """The other half of the case before."""
    options = make(p)
    for name in ("etc", "dev", "tmp", "home"):
        plant(p, name, lambda path: path.symlink_to("/usr"))
        expect_refusal(p.sh("true", *options, program=BREAKABLE, env={"BAWN_TEST_BREAK": "overlay-way"}),
                       "a symlink is in the way")
        expect(p.sh("true", *options, program=BREAKABLE), 0)


@case
def nothing_that_was_left_stops_the_next(p):
    options = make(p)
    kinds = (lambda path: path.write_text("file"), os.mkfifo, lambda path: path.mkdir(mode=0o700),
             lambda path: os.mknod(path, stat.S_IFCHR), lambda path: path.write_bytes(b"#!/bin/sh\necho evil\n"))
    for make_it in kinds:
        for name in PLACES:
            if (overlay(p) / "tree" / name).parent.is_dir():
                plant(p, name, make_it)
        expect_as_first(p, options)
    (overlay(p) / "tree").chmod(0o700)
    expect_as_first(p, options)


@case
def programs_that_were_left_are_not_those_of_the_system(p):
    options = make(p)

    def put_programs(path):
        path.mkdir()
        for name in ("sh", "env", "grep"):
            (path / name).write_text("#!/usr/bin/python3\nprint('evil')\n")
            (path / name).chmod(0o6755)
    for name in ("bin", "usr/bin", "lib", "etc", "sbin"):
        plant(p, name, put_programs)
    expect_as_first(p, options)


@case
def set_user_id_is_not_kept(p):
    """Nobody can set it in a cage; but were it set, it would be with the operator's own id."""
    expect(p.sh("cp /bin/sh /opt/sh; chmod 6755 /opt/sh; mkdir /opt/d; chmod 3777 /opt/d; stat -c %a /opt/sh", *spec(p),
                program=BREAKABLE, env={"BAWN_TEST_BREAK": "syscalls,look"}), 0, "6755")
    tree = overlay(p) / "tree/opt"
    assert stat.S_IMODE((tree / "sh").stat().st_mode) == 0o755 and (tree / "sh").stat().st_uid == p.uid
    assert stat.S_IMODE((tree / "d").stat().st_mode) == 0o1777
    # And nobody else can get there.
    assert stat.S_IMODE(overlay(p).stat().st_mode) == 0o700


@case
def what_is_nested_too_deep_is_not_saved_and_hurts_nobody(p):
    options = make(p, "echo kept >/opt/file")
    deep = "import os\nfor i in range({0}): os.mkdir('d'); os.chdir('d')"
    expect(p.sh(f"cd /opt; python3 -c \"{deep.format(200)}\"; echo deep >/opt/file", *options), 0)
    before = note(p)
    done = expect(p.sh(f"cd /opt; python3 -c \"{deep.format(1500)}\" 2>/dev/null; rm -rf x; mkdir x; cd x; "
                       f"python3 -c \"{deep.format(1500)}\"; echo lost >/opt/file", *options), 125)
    assert f"cannot save the overlay '{overlay(p)}', which is as it was before: cannot copy " in done.stderr
    assert "folders are nested deeper than 256" in done.stderr
    assert note(p) == before and not (overlay(p) / "tree.new").exists()
    output(p.sh("cat /opt/file", *options), "deep\n")


@case
def holes_take_no_time(p):
    options = make(p, "cd /opt; i=0; while test $i -lt 100; do truncate -s 8T $i; i=$((i+1)); done")
    output(p.sh("ls /opt | wc -l; stat -c %s /opt/99", *options), f"100\n{8 << 40}\n")
    expect(p.run("overlay", "digest", overlay(p)), 0)


@case
def what_an_image_run_left_does_not_stop_the_next(p):
    if not has_tmpfs_attributes():
        raise Skip("a tmpfs has attributes since Linux 6.6")
    image = make_image(p)
    options = spec(p, image=image)
    expect(p.sh("""rm -rf /tmp /var /srv; ln -s /etc /tmp; ln -s /bin /var; echo file >/srv
        chmod 0 /home /home/agent; chmod 700 /""", *options), 0)
    output(p.sh("""test -d /tmp && test ! -L /tmp && test -d /var/tmp && test ! -L /var && test -d /srv
        echo x >/tmp/x && echo x >~/x && echo fine""", *options), "fine\n")


# --- faults ---

@case
@of_root
def a_full_disk_leaves_what_was_kept(p):
    """The overlay on a file system that is smaller than what the run writes."""
    p.make("small")

    def run(script):
        return shlex.join(p.words(["run", *spec(p, at="~/small/o"), "--", "sh", "-c", script])) + "; echo $?\n"
    script = (f"mount -t tmpfs -o size=8M,mode=700 none {p.home}/small\n" + run("echo kept >/opt/file")
              + run("echo lost >/opt/file; head -c 12M /dev/urandom >/opt/big") + f"ls {p.home}/small/o\n"
              + run("cat /opt/file; ls /opt"))
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=p.project, env=p.environ(None), text=True,
                          capture_output=True, check=False, timeout=60 * SLOW, stdin=subprocess.DEVNULL)
    if "owner mapped" in done.stderr:
        raise Skip("a tmpfs cannot be id-mapped here")
    assert done.stdout == "0\n125\nlock\noverlay.json\ntree\nkept\nfile\n0\n", done.stdout + done.stderr
    assert (f"bawn: cannot save the overlay '{p.home}/small/o', which is as it was before: cannot copy 'opt/big': "
            "No space left on device\n") in done.stderr, done.stderr


@case
def a_cage_that_loads_nothing_is_not_started(p):
    """The keeper asks the kernel how large the cage's overlay is."""
    options = make(p, "echo kept >/opt/file")
    expect(p.sh("cat /opt/file", *options, program=BREAKABLE), 0, "kept")
    expect_refusal(p.sh("cat /opt/file", *options, program=BREAKABLE, env={"BAWN_TEST_BREAK": "overlay"}),
                   "its overlay is not of the planned size")


if __name__ == "__main__":
    main()
