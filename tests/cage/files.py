#!/usr/bin/env python3
"""What a command sees of the host's files, and what becomes of what it writes.

    files.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys

sys.dont_write_bytecode = True
from place import BREAKABLE, TOOL, Skip, case, expect, expect_refusal, main, of_root, output, picture  # noqa: E402

# --- the system ---


@case
def its_time_zone_has_a_name(p):
    """Or node and others look for it in all files of all zones."""
    output(p.sh("readlink /etc/localtime; date +%Z%z", env={"TZ": "Asia/Tokyo"}),
           "/usr/share/zoneinfo/Etc/UTC\nUTC+0000\n")


@case
def the_root_holds_what_is_declared_and_no_more(p):
    names = set(expect(p.sh("ls -A /"), 0).stdout.split())
    made = {"dev", "etc", "home", "mnt", "opt", "proc", "run", "srv", "tmp", "usr", "var", "work"}
    system = {"bin", "lib", "lib32", "lib64", "libx32", "sbin"}
    assert made <= names and names - made <= system, names
    done = p.sh("ls -A /home /mnt /opt /srv /tmp /var /var/tmp /run/shm")
    output(done, "/home:\nagent\n\n/mnt:\n\n/opt:\n\n/run/shm:\n\n/srv:\n\n/tmp:\n\n/var:\ntmp\n\n/var/tmp:\n")


@case
def the_hosts_files_cannot_be_named(p):
    secret = p.write("secret", "hunter2\n")
    for path in (secret, p.state, "/root", "/etc/shadow", "/boot", "/sys", "/var/lib", "/proc/1/root/etc/shadow"):
        expect(p.run("run", "--", "ls", path), 2)
    expect(p.sh(f"cat ../..{secret} /work/../{secret} /proc/self/cwd/..{secret}"), 1)


@case
def the_system_cannot_be_written(p):
    for path in ("/usr/x", "/bin/x", "/etc/x", "/dev/x", "/x", "/home/x", "/proc/x", "/etc/ssl/x"):
        done = p.sh(f"echo x >{path}")
        assert done.returncode != 0 and not os.path.exists(path), path


@case
def scratch_space_is_private_and_gone_afterwards(p):
    for folder in ("/tmp", "/var/tmp", "/run", "/dev/shm", "/home/agent", "/srv", "/opt", "/mnt"):
        path = f"{folder}/bawn-cage-scratch"
        output(p.sh(f"echo x >{path} && cat {path}"), "x\n")
        assert not os.path.exists(path), path
        expect(p.run("run", "--", "cat", path), 1)
    output(p.sh("stat -c '%a %U' /tmp /var/tmp /dev/shm/. /home/agent"),
           "1777 agent\n1777 agent\n1777 agent\n700 agent\n")


# --- binds ---

@case
def a_bind_is_read_only_unless_it_says_otherwise(p):
    folder = p.make("folder")
    p.write("folder/file", "text\n")
    before = picture(folder)
    for mode in ("", ":ro"):
        bind = ["-v", f"{folder}:/data{mode}"]
        output(p.sh("cat /data/file", *bind), "text\n")
        for attempt in ("echo x >/data/file", "echo x >/data/new", "rm /data/file", "chmod 777 /data/file",
                        "mkdir /data/sub", "mv /data/file /data/other", "touch /data/file", "ln /data/file /data/x"):
            assert p.sh(attempt, *bind).returncode != 0, attempt
    assert picture(folder) == before


@case
def what_is_written_to_a_bind_belongs_to_the_operator(p):
    folder = p.make("folder")
    p.write("folder/file", "text\n")
    expect(p.sh("echo more >>/data/file && echo new >/data/new && mkdir /data/sub && echo x >/data/sub/x && "
                "ln -s file /data/link && rm /data/sub/x && stat -c %U /data /data/new", "-v", f"{folder}:/data:rw"),
           0, "agent\nagent\n")
    assert (folder / "file").read_text() == "text\nmore\n"
    for name in ("file", "new", "sub", "link"):
        st = (folder / name).lstat()
        assert (st.st_uid, st.st_gid) == (p.uid, p.uid), (name, st)


@case
@of_root
def what_roots_cage_writes_belongs_to_the_owner_of_the_bind(p):
    folder = p.make("folder")
    os.chown(folder, 23456, 34567)
    expect(p.sh("echo new >/data/new && stat -c %U:%G /data /data/new", "-v", f"{folder}:/data:rw"), 0,
           "agent:agent\nagent:agent\n")
    st = (folder / "new").stat()
    assert (st.st_uid, st.st_gid) == (23456, 34567), st


@case
def what_is_of_somebody_else_in_a_bind_stays_out_of_reach(p):
    if os.geteuid() != 0:
        raise Skip("only root can make files of others")
    folder = p.make("folder")
    other = p.write("folder/other", "secret\n", mode=0o600)
    os.chown(other, 23456, 23456)
    bind = ["-v", f"{folder}:/data:rw"]
    expect(p.sh("cat /data/other", *bind), 1, "Permission denied")
    expect(p.sh("chmod 644 /data/other || echo x >/data/other", *bind), 2)
    output(p.sh("stat -c %U /data/other", *bind), "nobody\n")
    assert other.read_text() == "secret\n" and other.stat().st_uid == 23456


@case
def single_files_can_be_bound(p):
    readable, writable = p.write("a", "a\n"), p.write("b", "b\n")
    done = p.sh("cat /data/a /b; echo x >/data/a; echo new >/b; rm /b; ls /data", "-v", f"{readable}:/data/a", "-v",
                f"{writable}:/b:rw")
    assert done.stdout == "a\nb\na\n", done
    assert readable.read_text() == "a\n" and writable.read_text() == "new\n"


@case
def one_folder_can_be_bound_twice_with_other_rights(p):
    folder = p.make("folder")
    p.write("folder/file", "text\n")
    output(p.sh("echo x >/data/file; echo new >/data2/file && cat /data/file", "-v", f"{folder}:/data", "-v",
                f"{folder}:/data2:rw"), "new\n")


@case
def binds_lie_in_binds_where_there_is_a_place(p):
    outer, inner = p.make("outer"), p.make("inner")
    p.make("outer/place")
    p.write("inner/file", "text\n")
    output(p.sh("cat /data/place/file", "-v", f"{outer}:/data", "-v", f"{inner}:/data/place"), "text\n")


@case
def links_of_the_project_do_not_lead_out_however_they_are_spelt(p):
    other = p.make("other")
    os.symlink(other, p.project / "link")
    for source in ("./link", "link", f"{p.project}/link", "~/project/link"):
        expect(p.run("run", "-v", f"{source}:/mnt/x:rw", "--", "touch", "/mnt/x/new"), 125, "out of the project")
    assert not list(other.iterdir())
    expect(p.run("run", "-v", "../other:/mnt/x:rw", "--", "touch", "/mnt/x/new"), 0)  # that is said
    assert (other / "new").exists()


@case
def a_socket_or_a_pipe_is_not_bound_read_only(p):
    os.mkfifo(p.home / "fifo")
    p.own(p.home / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(p.home / "socket"))
        p.own(p.home / "socket")
        for name in ("fifo", "socket"):
            expect_refusal(p.run("run", "-v", f"{p.home / name}:/mnt/{name}", "--", "true"), "bind it with :rw")
            expect(p.run("run", "-v", f"{p.home / name}:/mnt/{name}:rw", "--", "true"), 0)


@case
def no_file_of_the_host_gets_a_set_user_id_bit(p):
    folder = p.make("rw")
    script = """import os
for make in (lambda: os.close(os.open('/rw/a', os.O_CREAT | os.O_WRONLY, 0o4755)), lambda: os.mknod('/rw/b', 0o104755),
             lambda: os.chmod('/rw/c', 0o4755), lambda: os.chmod('/rw/c', 0o2755),
             lambda: os.close(os.open('/rw', os.O_TMPFILE | os.O_WRONLY, 0o6755))):
    try:
        make()
        print('made')
    except OSError as e:
        print(e.errno)
"""
    p.write("rw/c", "")
    output(p.run("run", "-v", f"{folder}:/rw:rw", "--", "python3", "-c", script), "1\n" * 5)
    assert not any(path.stat().st_mode & 0o6000 for path in folder.iterdir())
    done = p.run("run", "-v", f"{folder}:/rw:rw", "--", "python3", "-c", script, program=BREAKABLE,
                 env={"BAWN_TEST_BREAK": "syscalls,look"})
    output(done, "made\n" * 5)
    assert sum(bool(path.stat().st_mode & 0o6000) for path in folder.iterdir()) == 3


@case
def a_source_that_cannot_be_had_is_refused(p):
    expect_refusal(p.sh("echo ran", "-v", f"{p.home}/missing:/data"), f"cannot show '{p.home}/missing' in the cage",
                   "No such file")
    loop = p.home / "loop"
    loop.symlink_to("loop")
    expect_refusal(p.sh("echo ran", "-v", f"{loop}:/data"), "cannot show")
    if p.uid and os.geteuid() == 0:
        closed = p.make("closed", mode=0o700)
        p.write("closed/file", "secret\n")
        os.chown(closed, 0, 0)
        expect_refusal(p.sh("echo ran", "-v", f"{closed}/file:/data"), "cannot show", "Permission denied")
        expect(p.sh("ls /data", "-v", f"{closed}:/data"), 2, "Permission denied")


@case
def nothing_is_created_on_the_host_for_a_target(p):
    outer, inner = p.make("outer"), p.make("inner")
    file = p.write("file", "")
    before = picture(p.home), sorted(os.listdir("/usr"))
    said = "it does not exist, and bawn creates nothing on the host"
    for source in (inner, file):
        for mode in ("ro", "rw"):
            expect_refusal(p.sh("echo ran", "-v", f"{outer}:/data:{mode}", "-v", f"{source}:/data/new/place"), said)
        expect_refusal(p.sh("echo ran", "--read-only", "-v", f"{source}:/work/new"), said)
        expect(p.sh("echo ran", "-v", f"{source}:/usr/new"), 125, "lies in what the cage makes itself")
    assert (picture(p.home), sorted(os.listdir("/usr"))) == before


@case
def what_is_bound_over_a_folder_of_the_cage_is_the_hosts(p):
    """The cage makes names in its own folders without looking; what is mounted over one is not its own any more."""
    outer, inner, file = p.make("outer"), p.make("inner"), p.write("file", "")
    before = picture(p.home)
    for top in ("/opt", "/srv"):
        for source in (inner, file):
            for mode in ("ro", "rw"):
                expect_refusal(p.sh("echo ran", "-v", f"{outer}:{top}:{mode}", "-v", f"{source}:{top}/new/place"),
                               "it does not exist, and bawn creates nothing on the host")
    assert picture(p.home) == before
    p.make("outer/there")
    p.write("outer/there/file", "outer\n")
    p.write("inner/file", "inner\n")
    before = picture(outer)
    output(p.sh("cat /opt/there/file; echo more >> /opt/there/file; cat /opt/there/file; ls /opt",
                "-v", f"{outer}:/opt:ro", "-v", f"{inner}:/opt/there:rw"), "inner\ninner\nmore\nthere\n")
    assert (inner / "file").read_text() == "inner\nmore\n"
    assert picture(outer) == before


@case
def a_target_in_a_captured_project_is_created_there_only(p):
    folder = p.make("folder")
    p.write("folder/file", "text\n")
    before = picture(p.project)
    output(p.sh("cat new/place/file", "-v", f"{folder}:/work/new/place"), "text\n")
    assert picture(p.project) == before


@case
def a_link_in_the_way_of_a_target_is_not_followed(p):
    folder, outer, other = p.make("folder"), p.make("outer"), p.make("other")
    (outer / "link").symlink_to(other)
    (outer / "own").symlink_to("/tmp")
    (p.project / "link").symlink_to("/tmp")
    before = picture(p.home)
    for target in ("/data/link", "/data/link/x", "/data/own", "/work/link", "/work/link/x"):
        expect_refusal(p.sh("echo ran", "-v", f"{outer}:/data", "-v", f"{folder}:{target}"), "a symlink is in the way")
    assert picture(p.home) == before


@case
def a_file_is_not_bound_over_a_folder_nor_a_folder_over_a_file(p):
    folder, file = p.make("folder"), p.write("file", "")
    p.make("project/folder")
    p.write("project/file", "")
    expect_refusal(p.sh("echo ran", "-v", f"{folder}:/work/file"), "not a directory")
    expect_refusal(p.sh("echo ran", "-v", f"{file}:/work/folder"), "a directory")


@case
def what_lies_in_a_closed_folder_of_the_operators_can_be_shown(p):
    p.home.chmod(0o700)
    p.write("folder/file", "text\n")
    output(p.sh("cat /data/file", "-v", f"{p.home}/folder:/data"), "text\n")
    spec = p.spec(f"project: {{cage: project, read_allowlist: [$PROJECT/**, {p.home}/folder/**]}}\n")
    output(p.run("run", *spec, "--", "cat", p.home / "folder/file"), "text\n")
    output(p.run("run", *image_spec(p, make_image(p)), "--", "/bin/tool", "ids"), "1000 1000 0\n")


@case
def binds_may_lie_in_the_home_and_in_scratch_space(p):
    p.write("folder/file", "text\n")
    for target in ("/home/agent/.cache/deep", "/tmp/x", "/srv/sources", "/opt/x", "/data/a/b"):
        output(p.sh(f"cat {target}/file", "-v", f"{p.home}/folder:{target}"), "text\n")


@case
def sources_have_a_well_known_place(p):
    p.write("folder/file", "text\n")
    ask = "echo ${BAWN_WORKDIR-unset}"
    for target, seen in (("/srv/sources", "/srv/sources"), ("/srv/sources/a/b", "/srv/sources"),
                         ("/srv/sources2", "unset"), ("/srv", "unset"), ("/opt/srv/sources", "unset")):
        output(p.sh(ask, "-v", f"{p.home}/folder:{target}"), f"{seen}\n")
    # Nobody else says what it is.
    output(p.sh(ask, env={"BAWN_WORKDIR": "/x"}), "unset\n")
    expect(p.sh(ask, "-e", "BAWN_WORKDIR=/y"), 125, "names that start with BAWN_ are bawn's own")
    spec = p.spec(f'binds: ["{p.home}/folder:/srv/sources/x"]\nstartup_commands: ["cat $BAWN_WORKDIR/x/file"]\n')
    output(p.sh("cat $BAWN_WORKDIR/x/file", *spec), "text\ntext\n")


@case
def programs_run_from_a_bind(p):
    p.write("folder/program", "#!/bin/sh\necho ran\n", mode=0o755)
    output(p.run("run", "-v", f"{p.home}/folder:/data", "--", "/data/program"), "ran\n")


# --- the project ---

@case
def what_is_written_to_a_captured_project_stays_inside(p):
    p.write("project/file", "text\n")
    p.write("project/sub/old", "old\n")
    p.write("project/gone", "gone\n")
    (p.project / "link").symlink_to("file")
    before = picture(p.project)
    output(p.sh("echo more >>file; echo new >new; rm gone; mv sub/old sub/moved; chmod 700 file; mkdir d; rm -r sub; "
                "ln -sf new link; cat link; cat file; ls; stat -c %U . file"),
           "new\ntext\nmore\nd\nfile\nlink\nnew\nagent\nagent\n")
    assert picture(p.project) == before
    output(p.sh("ls"), "file\ngone\nlink\nsub\n")


@case
def a_project_with_things_that_are_no_files(p):
    os.mkfifo(p.project / "fifo")
    os.chown(p.project / "fifo", p.uid, p.uid)
    p.write("project/closed", "secret\n", mode=0)
    if os.geteuid() == 0:
        os.mknod(p.project / "device", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    before = picture(p.project)
    expect(p.sh("ls -l; cat closed"), 1, "Permission denied")
    if os.geteuid() == 0:
        expect(p.sh("cat device"), 1, "Permission denied")
    output(p.sh("(echo through >fifo &); cat fifo; rm -f *; ls"), "through\n")
    assert picture(p.project) == before


@case
def a_read_only_project_cannot_be_written(p):
    p.write("project/file", "text\n")
    before = picture(p.project)
    output(p.sh("cat file", "--read-only"), "text\n")
    for attempt in ("echo x >>file", "echo x >new", "rm file", "chmod 777 file", "mkdir d"):
        assert p.sh(attempt, "--read-only").returncode != 0, attempt
    assert picture(p.project) == before


@case
def another_project_and_another_place_for_it(p):
    other = p.make("other")
    p.write("other/file", "text\n")
    output(p.sh("pwd; cat file", "--project", other), "/work\ntext\n")
    output(p.sh("pwd; cat file", "--project", other, *p.spec("project: {at: /srv/code}\n")), "/srv/code\ntext\n")


@case
def git_works_in_a_captured_project(p):
    if not shutil.which("git", path="/usr/bin:/bin"):
        raise Skip("git is not in /usr/bin")
    done = p.sh("git init -q . && git config user.email a@b && git config user.name n && echo x >x && git add x && "
                "git commit -qm one && git log --oneline | wc -l && rm -rf .git && ls -A")
    output(done, "1\nx\n")
    assert list(p.project.iterdir()) == []


@case
def cage_project_shows_the_project_at_its_own_path(p):
    p.write("project/file", "text\n")
    p.write("home-file", "secret\n")
    before = picture(p.project)
    spec = p.spec("project: {cage: project}\n")
    done = p.sh(f"pwd; cat {p.project}/file; echo new >new; cat new; echo $BAWN_PROJECT_DIR; ls -A {p.home}", *spec)
    output(done, f"{p.project}\ntext\nnew\n{p.project}\nproject\n")
    expect(p.run("run", *spec, "--", "cat", p.home / "home-file"), 1)
    expect(p.run("run", *spec, "--", "ls", "/work"), 2)
    assert picture(p.project) == before


@case
def cage_project_shows_what_else_is_listed(p):
    other = p.make("other/sub")
    p.write("other/sub/file", "text\n")
    p.write("other/hidden", "secret\n")
    spec = p.spec(f"project: {{cage: project, read_allowlist: [$PROJECT/**, {other}/**]}}\n")
    output(p.sh(f"cat {other}/file; ls -A {other.parent}", *spec), "text\nsub\n")
    assert p.sh(f"echo x >{other}/new", *spec).returncode != 0


@case
def only_listed_parts_of_the_project_are_seen(p):
    for name in ("src/a", "docs/b", "secret/c", "file", "other"):
        p.write(f"project/{name}", f"{name}\n")
    before = picture(p.project)
    spec = p.spec("project: {read_allowlist: [$PROJECT/src/**, $PROJECT/file], write_allowlist: [$PROJECT/src/**]}\n")
    output(p.sh("ls -A; cat src/a file; echo new >src/new && cat src/new", *spec), "file\nsrc\nsrc/a\nfile\nnew\n")
    for attempt in ("cat secret/c", "cat other", "ls docs", "echo x >>file", "echo x >new", "rm -r src", "mv src x"):
        assert p.sh(attempt, *spec).returncode != 0, attempt
    assert picture(p.project) == before


@case
def only_listed_parts_of_the_project_are_written(p):
    for name in ("src/deep/a", "docs/b", "file"):
        p.write(f"project/{name}", f"{name}\n")
    before = picture(p.project)
    spec = p.spec("project: {write_allowlist: [$PROJECT/src/deep/**, $PROJECT/file]}\n")
    output(p.sh("cat docs/b src/deep/a; echo x >src/deep/a && echo y >src/deep/new && echo z >file && "
                "cat src/deep/* file", *spec), "docs/b\nsrc/deep/a\nx\ny\nz\n")
    for attempt in ("echo x >docs/b", "echo x >new", "echo x >src/new", "rm -r src/deep", "mv src x", "rm file"):
        assert p.sh(attempt, *spec).returncode != 0, attempt
    assert picture(p.project) == before


@case
def lists_may_lie_in_each_other(p):
    for name in ("src/gen/a", "src/b"):
        p.write(f"project/{name}", f"{name}\n")
    spec = p.spec("project: {read_allowlist: [$PROJECT/src/**], write_allowlist: [$PROJECT/src/gen/**]}\n")
    done = p.sh("cat src/b; echo new >src/gen/a && cat src/gen/a; echo x >src/b || echo refused", *spec)
    output(done, "src/b\nnew\nrefused\n")
    spec = p.spec("project: {read_allowlist: [$PROJECT/src/gen/**], write_allowlist: [$PROJECT/src/**]}\n")
    output(p.sh("cat src/b; echo new >src/gen/a && echo new >src/b && cat src/gen/a src/b", *spec), "src/b\nnew\nnew\n")
    assert (p.project / "src/b").read_text() == "src/b\n" and (p.project / "src/gen/a").read_text() == "src/gen/a\n"


@case
def nothing_is_writable_where_nothing_is_listed(p):
    p.write("project/file", "text\n")
    spec = p.spec("project: {write_allowlist: []}\n")
    output(p.sh("cat file; echo x >new || echo x >file || echo refused", *spec), "text\nrefused\n")


@case
def a_listed_part_that_is_not_there_is_refused_by_name(p):
    before = picture(p.project)
    expect_refusal(p.sh("echo ran", *p.spec("project: {write_allowlist: [$PROJECT/src/**]}\n")), "src")
    assert picture(p.project) == before


@case
def a_listed_part_that_is_a_link_leads_nowhere(p):
    secret = p.write("secret/file", "hunter2\n").parent
    (p.project / "src").symlink_to(secret)
    for lists in ("read_allowlist: [$PROJECT/src/**], write_allowlist: []", "write_allowlist: [$PROJECT/src/**]"):
        done = p.sh("cat src/file", *p.spec(f"project: {{{lists}}}\n"))
        assert done.returncode != 0 and "hunter2" not in done.stdout + done.stderr, done


# --- images ---

def make_image(p, name="image", has_shell=False):
    """A folder that can be a root: a static program and, if wanted, a shell with its libraries."""
    image = p.make(name)
    p.write(image / "bin/tool", TOOL.read_bytes(), mode=0o755)
    if has_shell:
        files = subprocess.run(["ldd", "/bin/sh"], capture_output=True, check=True, text=True).stdout.split()
        for file in ["/bin/sh", *(word for word in files if word.startswith("/"))]:
            p.write(image / file.lstrip("/"), pathlib.Path(file).read_bytes(), mode=0o755)
    return image


def image_spec(p, image):
    return p.spec(f"root: {{image: 'dir:{image}'}}\n")


@case
def an_image_is_the_root_and_stays_as_it_is(p):
    image = make_image(p, has_shell=True)
    p.write(image / "opt/own", "of the image\n")
    before = picture(image)
    spec = image_spec(p, image)
    output(p.run("run", *spec, "--", "/bin/sh", "-c", "echo in a shell; read a </opt/own; echo $a; echo x >/tmp/x"),
           "in a shell\nof the image\n")
    names = set(expect(p.run("run", *spec, "--", "/bin/tool", "ls", "/"), 0).stdout.split())
    assert "usr" not in names or (image / "usr").exists(), names
    for path in ("/bin/new", "/bin/tool", "/new"):
        expect(p.run("run", *spec, "--", "/bin/tool", "write", path), 1)
    for path in ("/tmp/new", "/home/agent/new", "/work/new", "/var/tmp/new"):
        expect(p.run("run", *spec, "--", "/bin/tool", "write", path), 0)
    assert picture(image) == before


@case
def an_image_without_a_shell_runs(p):
    image = make_image(p)
    output(p.run("run", *image_spec(p, image), "--", "/bin/tool", "ids"), "1000 1000 0\n")
    output(p.run("run", *image_spec(p, image), "--fakeroot", "--", "/bin/tool", "ids"), "0 0 0\n")
    expect(p.run("run", *image_spec(p, image), "--", "sh"), 127)


@case
def an_images_accounts_are_not_used(p):
    image = make_image(p)
    p.write(image / "etc/passwd", "strange:x:1000:1000::/:/bin/sh\n")
    p.write(image / "etc/own", "of the image\n")
    before = picture(image)
    spec = image_spec(p, image)
    done = expect(p.run("run", *spec, "--", "/bin/tool", "cat", "/etc/passwd"), 0, "agent:x:1000")
    assert "strange" not in done.stdout
    output(p.run("run", *spec, "--", "/bin/tool", "cat", "/etc/own"), "of the image\n")
    assert picture(image) == before


@case
def an_image_is_usable_by_its_owner(p):
    if os.geteuid() != 0:
        raise Skip("only root can make an image of root's")
    image = make_image(p)
    for name in ("etc", "tmp", "var/tmp", "home", "dev", "proc", "run"):
        p.make(image / name, mode=0o1777 if "tmp" in name else 0o755)
    p.write(image / "etc/passwd", "root:x:0:0::/:/bin/sh\n")
    for folder, folders, files in os.walk(image):
        for name in [".", *folders, *files]:
            os.chown(os.path.join(folder, name), 0, 0)
    before = picture(image)
    if p.uid:
        expect(p.run("run", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/passwd"), 125, "do not belong to you")
        return
    expect(p.run("run", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/passwd"), 0, "agent:x:1000")
    expect(p.run("run", *image_spec(p, image), "--", "/bin/tool", "write", "/tmp/new"), 0)
    assert picture(image) == before


@case
def links_of_an_image_do_not_lead_to_the_host(p):
    before = picture(p.home)
    for name in ("dev", "proc", "etc", "tmp", "home", "run", "var", "work", "mnt"):
        for target in (f"/{name}", p.make("victim"), "../../../../../../tmp"):
            image = make_image(p)
            (image / name).symlink_to(target)
            done = p.run("run", *image_spec(p, image), "--", "/bin/tool", "ls", "/")
            assert done.returncode in (0, 125), (name, target, done)
            if done.returncode == 125:
                assert "symlink is in the way" in done.stderr, (name, done.stderr)
            shutil.rmtree(image)
            assert list((p.home / "victim").iterdir()) == [], (name, target)
    (p.home / "victim").rmdir()
    (p.home / "spec.yaml").unlink()
    after = picture(p.home)
    assert {path: row[5] for path, row in before.items()} == {path: row[5] for path, row in after.items()}


@case
def links_of_an_image_at_single_files_are_replaced(p):
    victim = p.write("victim", "untouched\n")
    image = make_image(p)
    p.make(image / "etc")
    (image / "etc/passwd").symlink_to(victim)
    (image / "etc/hosts").symlink_to("/etc/hosts")
    before = picture(image)
    expect(p.run("run", *image_spec(p, image), "--", "/bin/tool", "cat", "/etc/passwd"), 0, "agent:x:1000")
    assert victim.read_text() == "untouched\n" and picture(image) == before


@case
def programs_of_an_image_gain_no_rights(p):
    if os.geteuid() != 0:
        raise Skip("only root can make a set-user-id program of root's")
    image = make_image(p)
    os.chown(image / "bin/tool", 0, 0)
    (image / "bin/tool").chmod(0o6755)
    output(p.run("run", *image_spec(p, image), "--", "/bin/tool", "ids"), "1000 1000 0\n")
    assert stat.S_IMODE((image / "bin/tool").stat().st_mode) == 0o6755


@case
def an_image_that_is_not_there_is_refused(p):
    expect_refusal(p.run("run", *image_spec(p, p.home / "missing"), "--", "true"), "missing")
    expect_refusal(p.run("run", *image_spec(p, p.write("file", "")), "--", "true"))


@case
def an_image_of_a_kind_that_this_version_cannot_use_is_refused(p):
    archive = p.write("archive", "")
    for image, what in ((f"oci:{archive}", "images of the kind oci:"), (f"sif:{archive}", "images of the kind sif:"),
                        ("debian", "images that have only a name")):
        expect_refusal(p.run("run", *p.spec(f"root: {{image: '{image}'}}\n"), "--", "true"),
                       f"cannot carry out {what}: this version does not have it")


if __name__ == "__main__":
    main()
