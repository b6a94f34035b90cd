"""The attacks, with ids by kind: T1 paths and set-up, T2 processes and
side doors, T3 network, T4 system calls and rights, T5 resources and terminals, T6 agents and persistence."""

import contextlib
import ctypes
import os
import pathlib
import platform
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import effects
import resources
import traps
from pair import Each, Nowhere, Outside, Result, Row, broken, opened
from place import as_user, in_shm, inet_servers, open_folder, own_address, spare_port, unix_servers, victim


# What the test build can leave out; `look` is the check from outside, and is always left out with them.
MECHANISMS = ("namespace:pid", "namespace:net", "namespace:ipc", "namespace:uts", "namespace:cgroup", "detach",
              "read-only", "no-dev", "proc", "drop:capabilities", "drop:groups", "drop:keyring",
              "drop:new-privileges", "landlock", "syscalls", "environment", "descriptors", "init", "tty", "ids",
              "project", "protect", "core", "limits")

OUTSIDE = Outside()
# Whoever takes other ids cannot be looked into any more; root's first process does that.
INIT_OF_ROOT = broken("init", "ids")
NO_RIGHT = Nowhere("an ordinary user may not do it outside either")
WRITE = opened("--write", "--allow-degraded", "fs.protect")
DIRECT = broken("protect", options=("--write",))  # the project itself, and nothing of it held
SHOW = opened("-v", "{secret}:{secret}")
CALLS = Each((broken("syscalls"), broken("syscalls", "drop:capabilities", options=("--fakeroot",)), OUTSIDE))
NET = opened("--network", "host")
SOCKETS = opened("-v", "{sockets}:{sockets}:rw")


# --- what the host sees ---

def victim_is_dead(place):
    time.sleep(0.15)
    status = place.values["process"].poll()
    return f"the operator's process is dead: {status}" if status is not None else None


def heard_something(place):
    time.sleep(0.05)
    return "the host's socket heard it" if place.values["heard"] else None


def beat_goes_on(place):
    beat = place.data / "beat"
    size = beat.stat().st_size
    time.sleep(0.2)
    return "it lives on after the run" if beat.stat().st_size > size else None


def canary_changed(place):
    return None if place.canary.read_text(encoding="utf-8") == place.text + "\n" else "the secret was changed"


def data_changed(place):
    names = sorted(os.listdir(place.data))
    text = (place.data / "file").read_text(encoding="utf-8") if "file" in names else ""
    same = names == ["file"] and text == place.text + "\n"
    return None if same else f"the operator's folder was changed: {names}"


def tree_of(folder):
    found = {}
    for path in sorted(pathlib.Path(folder).rglob("*")):
        found[str(path)] = path.read_bytes() if path.is_file() and not path.is_symlink() else None
    return found


@contextlib.contextmanager
def repository(place):
    """A project such as people have, remembered as it is."""
    for name in (".git/HEAD", ".git/config", ".git/hooks/pre-push.sample", ".git/info/exclude",
                 ".git/objects/one", "package.json", "code.py", "bawn.yaml"):
        place.write(place.project / name, "version: 1" if name == "bawn.yaml" else "theirs")
    place.write(place.home / ".config/bawn/policy.yaml", "version: 1", 0o644).parent.chmod(0o755)
    (place.home / ".config").chmod(0o755)
    place.values["before"] = {**tree_of(place.project), **tree_of(place.home / ".config")}
    yield


def home_changed(place):
    before, after = place.values["before"], {**tree_of(place.project), **tree_of(place.home / ".config")}
    changed = [name for name in {**before, **after} if before.get(name, 0) != after.get(name, 0)]
    return f"changed on the host: {sorted(changed)}" if changed else None


@contextlib.contextmanager
def beating(place):
    place.write(place.data / "beat")
    yield


# --- rows that need more than one command ---

def listen(suite, place, pair):
    """T316: the cage listens, and the host tries to come in."""
    port = spare_port()
    stop = threading.Event()

    def knock():
        while not stop.wait(0.05):
            for address in {"127.0.0.1", own_address() or "127.0.0.1"}:
                with contextlib.suppress(OSError):
                    socket.create_connection((address, port), 0.2).close()

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        place.values["port"] = port
        return suite.run(Row("", "", ("listen", "{port}", "700")), place, pair)
    finally:
        stop.set()
        thread.join()


def groups_of_a_user(suite, place, pair):
    """T452: an ordinary user cannot always drop groups; then the plan has to say so."""
    row = Row("", "", ("groups",), group=4321)
    done = suite.run(row, place, pair)
    if pair or done.verdict != "worked":
        return done
    bawn, _, *rest = suite.command(row, place, None)[0]
    plan = subprocess.run([*as_user(place.uid, 4321), bawn, "plan", *rest], cwd=place.project,
                          env={"HOME": str(place.home), "PATH": os.environ["PATH"]}, capture_output=True, text=True,
                          check=False)
    told = any(line.split()[:2] == ["no", "groups"] for line in plan.stdout.splitlines())
    return Result("refused", "kept, and the plan says so") if told else done


def own_cgroup():
    """The first part of the name of the cgroup we are in, which a cage's shares; None in the root."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        name = line.split(":", 2)[2].strip("/")
        if name and ".." not in name:
            return name.split("/", maxsplit=1)[0]
    return None


def is_ext4():
    """Whether the probe knows how the root of the file system is called by its number."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", "/usr"], capture_output=True, text=True, check=False).stdout
    return kind.strip() == "ext2/ext3" and os.stat("/usr").st_dev == os.stat(tempfile.gettempdir()).st_dev


def has_x32():
    """Whether the kernel answers to getpid by its x32 number."""
    return ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 | 39)) > 0


def write_paths(*names):
    return ("write", *("/work/" + name for name in names))


PRIVATE = "/etc/ssl/private"  # bound with /etc/ssl, and for root only
BWRAP = shutil.which("bwrap")
CGROUP = own_cgroup()
X32 = Each((broken("syscalls"), OUTSIDE)) if has_x32() else Nowhere("this kernel has no x32")

ROWS = [
    # --- T1: paths, and the time when the cage is made ---
    *traps.ROWS,
    *effects.ROWS,
    Row("T104", "replacing /dev/null", ("unlink", "/dev/null"), Nowhere("not on the machine's own /dev")),
    Row("T104", "new files in /dev", ("write", "/dev/escape"), broken("read-only", "landlock")),
    Row("T107", "a current directory behind a descriptor", ("walk", "{canary}", "{end}"), OUTSIDE,
        options=("-w", "/proc/self/fd/{fd}"), prepare=open_folder, may_refuse=True),
    Row("T107", "a current directory that is gone", ("walk", "{canary}", "{end}"), OUTSIDE,
        before=("{host_probe}", "in-removed", "{top}/gone"), options=("--project", "{project}"),
        prepare=traps.gone_folder, may_refuse=True),
    Row("T110", "replacing a folder that leads to something protected", (
        "replace", "/work/.git", "/work/.git/hooks/", "/work/.git/hooks/pre-commit"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T110", "swapping it", ("exchange", "/work/.git/info", "/work/.git/objects"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T111", "making what is protected and missing", write_paths(
        ".claude/", ".claude/settings.json", ".mcp.json", ".vscode/", ".vscode/tasks.json", ".envrc", ".bashrc",
        ".gitmodules", ".git/commondir", ".git/config.worktree", ".git/info/attributes"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T111", "making it as a link", ("symlink", "code.py", "/work/.envrc"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T111", "making it by moving something there", ("rename", "/work/code.py", "/work/.mcp.json"),
        broken("protect"), options=("--write",), prepare=repository, check=home_changed),
    Row("T114", "a second name of something protected", ("link", "/work/.git/config", "/work/twin"),
        broken("protect"), options=("--write",), prepare=repository, check=home_changed),
    Row("T114", "writing to a file that has a second name outside", ("write", "/work/twin"), WRITE,
        prepare=traps.twin, check=canary_changed),
    Row("T114", "making a second name", ("link", "/data/file", "/work/twin"), OUTSIDE,
        options=("-v", "{data}:/data:rw"), custom=traps.link_out),
    Row("T115", "writing to a read-only bind", ("write", "/data/file"), opened("-v", "{data}:/data:rw"),
        options=("-v", "{data}:/data"), check=data_changed),
    Row("T115", "writing to it without the mounts' word", ("write", "/data/file"), broken("read-only", "landlock"),
        options=("-v", "{data}:/data"), check=data_changed),
    Row("T115", "moving in a read-only bind", ("rename", "/data/file", "/data/moved"),
        opened("-v", "{data}:/data:rw"), options=("-v", "{data}:/data"), check=data_changed),
    Row("T115", "new names in the root", ("write", "/escape"), broken("landlock")),
    Row("T115", "changing the accounts", ("write", "/etc/passwd", "/etc/escape"), broken("read-only", "landlock")),
    Row("T115", "changing programs", ("write", "/usr/bin/bawn-escape", "/bin/bawn-escape", "/usr/lib/bawn-escape"),
        Nowhere("not on the machine's own /usr; the binds' rows show it")),
    Row("T116", "reading by its path", ("read", "{canary}", "{end}"), SHOW),
    Row("T116", "going up", ("walk", "{canary}", "{end}"), OUTSIDE),
    Row("T116", "the old root below a mount", ("mounts", "{canary}", "{end}"), broken("detach")),
    Row("T116", "links of /proc", ("links", "{canary}", "{end}"), broken("descriptors", "landlock"),
        prepare=open_folder),
    Row("T116", "chroot, and out of it", ("chroot", "{canary}", "{end}"), broken("syscalls", "drop:capabilities"),
        options=("--fakeroot",)),
    Row("T116", "making a mount writable", ("remount", "/usr"),
        broken("syscalls", "drop:capabilities", "landlock"), options=("--fakeroot",)),
    Row("T116", "taking a mount away", ("unmount", "/proc"),
        broken("syscalls", "drop:capabilities", "landlock"), options=("--fakeroot",)),
    Row("T116", "a mount of our own", ("mount", "/tmp"),
        broken("syscalls", "drop:capabilities", "landlock"), options=("--fakeroot",)),
    Row("T116", "the project's name on the host", ("names", "{top}"), DIRECT),
    Row("T116", "the name of a bind's source", ("names", "{top}"), opened("-v", "{data}:/data:rw"),
        options=("-v", "{data}:/data")),

    # --- T2: processes ---
    Row("T201", "a variable of the operator's", ("environment", "{end}"), opened("-e", "TOKEN")),
    Row("T201", "all of the operator's variables", ("environment", "{end}"), broken("environment")),
    Row("T201", "variables of other processes", ("process-file", "environ", "{end}"), INIT_OF_ROOT, broken("init")),
    Row("T201", "arguments of other processes", ("process-file", "cmdline", "{end}"), broken("init"),
        options=("--name", "{text}")),
    Row("T202", "memory of other processes", ("memory", "{end}"), INIT_OF_ROOT, broken("init")),
    Row("T203", "writing to the program of another process", ("program",), broken("init", "ids", "landlock"),
        broken("init", "landlock")),
    Row("T204", "descriptors left open", ("descriptors", "{canary}", "{end}"), broken("descriptors"),
        prepare=open_folder),
    Row("T205", "descriptors sent through one left open", ("receive", "{canary}", "{end}"),
        broken("descriptors", "landlock"), prepare=open_folder),
    Row("T204", "writing to what was given to be read", ("reopen",), broken("tty", "landlock"), stdin="{data}/file",
        check=data_changed),
    Row("T206", "tracing the first process", ("trace",), broken("init", "ids", "syscalls"), broken("init", "syscalls")),
    Row("T206", "copying from its memory", ("copy",), broken("init", "ids", "syscalls"), broken("init", "syscalls")),
    Row("T206", "taking its descriptors", ("take",), broken("init", "ids", "syscalls"), broken("init", "syscalls")),
    Row("T207", "seeing a process of the host", ("see", "{pid}"), broken("namespace:pid"), prepare=victim),
    # Not in a cage without its own pids: its init ends by killing everybody whom it can reach.
    Row("T207", "killing it", ("kill", "{pid}"), OUTSIDE, prepare=victim, check=victim_is_dead),
    Row("T207", "signalling everybody", ("kill-all",), Nowhere("it would reach every process of the machine"),
        OUTSIDE, prepare=victim, check=victim_is_dead),
    Row("T207", "signalling the operator's process group", ("kill-group",), OUTSIDE,
        before=("{host_probe}", "in-group"), custom=traps.in_group),
    Row("T207", "the highest priority", ("nice",), OUTSIDE, NO_RIGHT),
    Row("T208", "reading settings of the kernel", ("proc-read",), broken("proc")),
    Row("T208", "changing settings of the kernel", ("proc-write",), broken("proc")),
    Row("T208", "/sys and the cgroups in it", ("sys",), OUTSIDE),
    Row("T208", "a fresh /proc", ("mount-proc", "/tmp"),
        broken("syscalls", "drop:capabilities", "landlock"), options=("--fakeroot",)),
    Row("T208", "the host's name", ("host-name", platform.node()), broken("namespace:uts")),
    Row("T208", "names of the host's cgroups", ("cgroup", CGROUP or "none"),
        broken("namespace:cgroup") if CGROUP else Nowhere("this suite runs in the root cgroup")),
    Row("T209", "a key of the operator's session", ("keyring", "{end}"), broken("drop:keyring", "syscalls"),
        before=("{host_probe}", "with-key", "{end}")),
    *(Row("T210", f"{what} of the host", (attack, "{end}"), broken("namespace:ipc"),
          before=("{host_probe}", "with-ipc", "{end}"))
      for attack, what in (("shm", "shared memory"), ("semaphore", "semaphores"), ("message", "message queues"))),
    Row("T210", "POSIX message queues of the host", ("mq", "{end}"), broken("namespace:ipc", "landlock"),
        before=("{host_probe}", "with-ipc", "{end}")),
    Row("T210", "files in /dev/shm", ("read", "{shm}", "{end}"), OUTSIDE, prepare=in_shm),

    # --- T25: services of the operator's ---
    *(Row(number, f"the socket of {what}", ("connect", "{end}", "{sockets}/" + name), SOCKETS,
          prepare=unix_servers, variables={variable: "{sockets}/" + name})
      for number, what, name, variable in (
          ("T251", "a session bus", "bus", "DBUS_SESSION_BUS_ADDRESS"),
          ("T252", "a container daemon", "docker", "DOCKER_HOST"),
          ("T253", "an ssh agent", "agent", "SSH_AUTH_SOCK"),
          ("T253", "a display", "x11", "DISPLAY"),
          ("T254", "a terminal multiplexer", "tmux", "TMUX"))),
    Row("T253", "an abstract socket of a display", ("connect", "{end}", "{name}"), broken("namespace:net", "landlock"),
        prepare=unix_servers),
    Row("T255", "an abstract socket, in packets", ("seqpacket", "{end}", "@seq-{end}"),
        broken("namespace:net", "landlock"), prepare=unix_servers),
    Row("T256", "sending to a socket", ("datagram", "{sockets}/log"), SOCKETS, prepare=unix_servers,
        check=heard_something),
    Row("T256", "sending to an abstract socket", ("datagram", "@log-{end}"), broken("namespace:net", "landlock"),
        prepare=unix_servers, check=heard_something),
    Row("T257", "a socket in a read-only bind", ("connect", "{end}", "/data/agent"),
        opened("-v", "{sockets}:/data:rw"), options=("-v", "{sockets}:/data"), prepare=unix_servers),
    Row("T257", "a socket in the project", ("connect", "{end}", "/work/listener"), DIRECT,
        prepare=unix_servers),
    Row("T258", "sockets of every family", ("families",), broken("syscalls")),
    Row("T258", "every netlink protocol", ("netlink",), broken("syscalls")),
    Row("T258", "a socket to the hypervisor", ("vsock",),
        broken("syscalls") if os.path.exists("/dev/vsock") else Nowhere("there is no hypervisor to talk to")),

    # --- T3: network ---
    Row("T301", "TCP to the host's loopback", ("tcp", "{end}", "127.0.0.1", "{port}"), NET, prepare=inet_servers),
    Row("T301", "TCP without a network of the cage's own", ("tcp", "{end}", "127.0.0.1", "{port}"),
        broken("namespace:net"), prepare=inet_servers),
    Row("T301", "UDP to the host's loopback", ("udp", "{end}", "127.0.0.1", "{port}"), NET, prepare=inet_servers),
    Row("T301", "raw ICMP", ("raw", "icmp"), broken("drop:capabilities"), options=("--fakeroot",)),
    Row("T301", "raw IP", ("raw", "ip"), broken("syscalls", "drop:capabilities"), options=("--fakeroot",)),
    Row("T301", "packets", ("raw", "packet"), broken("syscalls", "drop:capabilities"), options=("--fakeroot",)),
    Row("T301", "interfaces of the host", ("interfaces",), NET),
    Row("T302", "TCP over IPv6", ("tcp", "{end}", "::1", "{port}"), NET, prepare=inet_servers),
    Row("T302", "UDP over IPv6", ("udp", "{end}", "::1", "{port}"), NET, prepare=inet_servers),
    Row("T302", "IPv4 in IPv6", ("tcp", "{end}", "::ffff:127.0.0.1", "{port}"), NET, prepare=inet_servers),
    Row("T303", "MPTCP", ("mptcp", "{end}", "127.0.0.1", "{port}"), broken("namespace:net", "syscalls"),
        prepare=inet_servers),
    Row("T303", "UDP-Lite", ("udplite", "{end}", "127.0.0.1", "{port}"),
        broken("namespace:net", "syscalls"), prepare=inet_servers),
    Row("T304", "TCP to an address of the host", ("tcp", "{end}", "{address}", "{port}"), NET, prepare=inet_servers),
    Row("T304", "TCP to every address", ("tcp", "{end}", "0.0.0.0", "{port}"), NET, prepare=inet_servers),
    Row("T304", "a route to metadata services", ("route", "169.254.169.254", "100.100.100.200", "168.63.129.16",
                                               "fd00:ec2::254"), NET),
    Row("T304", "a route to the internet", ("route", "198.51.100.1", "2001:db8::1", "64:ff9b::c633:6401"), NET),
    Row("T316", "being reached from the host", (), NET, custom=listen),

    # --- T4: system calls ---
    Row("T401", "system calls by int 0x80", ("calls", "i386"),
        CALLS),
    Row("T401", "system calls by x32 numbers", ("calls", "x32"),
        X32),
    Row("T402 T404 T406 T407", "system calls outside the profile", ("calls", "native"),
        CALLS),
    Row("T403", "commands for terminals", ("ioctls",), Each((broken("syscalls"),))),
    Row("T405", "namespaces of our own", ("namespaces",),
        CALLS),
    Row("T405", "namespaces, and mounts in them", ("nested",), broken("syscalls")),
    Row("T406", "opening by handle", ("handle", "/usr", "{canary}", "{end}"),
        OUTSIDE if is_ext4() else Nowhere("the handle is made for one ext4 with both /usr and our folder"), NO_RIGHT),
    Row("T409", "a seccomp listener", ("listener",), broken("syscalls")),
    Row("T411", "a setuid program", ("setuid", "/data/setuid"), Outside(12345), OUTSIDE, custom=traps.setuid,
        who="both" if os.geteuid() == 0 else "root"),
    Row("T412", "system calls of the future", ("unknown",), Nowhere("no kernel knows them yet")),

    # --- T45: rights ---
    Row("T451", "capabilities", ("capabilities",), broken("drop:capabilities")),
    Row("T451", "capabilities of uid 0 in the cage", ("capabilities",), broken("drop:capabilities"),
        options=("--fakeroot",)),
    Row("T451", "privileges of programs", ("new-privileges",), broken("drop:new-privileges", "syscalls", "landlock")),
    Row("T451", "the host's root behind an id", ("host-root",), broken("ids"), OUTSIDE),
    *([Row("T451", "folders of the host's root", ("list", PRIVATE), broken("ids"), who="root")]
      if os.path.isdir(PRIVATE) else []),
    Row("T451", "becoming root", ("become-root",), OUTSIDE, NO_RIGHT),
    Row("T452", "supplementary groups", ("groups",), broken("drop:groups"), group=4321, who="root"),
    Row("T452", "supplementary groups of a user", (), OUTSIDE, custom=groups_of_a_user,
        who="user" if os.geteuid() == 0 else "root"),
    Row("T454", "the host's handler of crashes", ("core-limit",), broken("core")),
    Row("T454", "another limit for crashes", ("core-limit",), broken("syscalls")),
    Row("T455", "making a device", ("mknod", "{probe}.dev"), Outside(0), NO_RIGHT, custom=traps.mknod),
    Row("T455", "devices of the host", ("devices",), OUTSIDE),
    Row("T455", "a device in a bind", ("device", "/data/device"), broken("no-dev"), custom=traps.device,
        who="both" if os.geteuid() == 0 else "root"),

    # --- T5: resources; outliving the run; the terminal ---
    *resources.ROWS,
    Row("T507", "outliving the run", ("daemon", "{data}/beat"), OUTSIDE, options=("-v", "{data}:{data}:rw"),
        prepare=beating, check=beat_goes_on),
    Row("T551", "typing into the operator's terminal", ("type", "escape-{end}"), OUTSIDE,
        before=("{host_probe}", "on-terminal", "escape-{end}")),
    Row("T551", "the operator's terminal as a descriptor", ("terminal",), broken("tty"),
        before=("{host_probe}", "on-terminal", "-")),
    Row("T554", "taking a terminal over that has no session", ("steal", "escape-{end}"), broken("tty", "syscalls"),
        before=("{host_probe}", "on-free", "escape-{end}")),
    Row("T554", "taking over the terminal of a session", ("steal", "escape-{end}"), OUTSIDE,
        Nowhere("only root may take a terminal from another session"),
        before=("{host_probe}", "on-terminal", "escape-{end}")),

    # --- T6: what runs on the host later ---
    Row("T601", "git's hooks and settings", write_paths(
        ".git/hooks/pre-commit", ".git/config", ".git/info/attributes", ".gitmodules", ".git/commondir"),
        broken("project"), prepare=repository, check=home_changed),
    Row("T601", "another .git", ("rename", "/work/.git", "/work/git"), broken("project"), prepare=repository,
        check=home_changed),
    Row("T601", "git's hooks and settings of a writable project", write_paths(
        ".git/hooks/pre-commit", ".git/hooks/pre-push.sample", ".git/config", "bawn.yaml"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T601", "their place in a writable project", ("unlink", "/work/.git/config"), broken("protect"),
        options=("--write",), prepare=repository, check=home_changed),
    Row("T602", "settings of editors, shells and agents", write_paths(
        ".claude/", ".claude/settings.json", ".mcp.json", ".vscode/", ".vscode/tasks.json", ".envrc", ".bashrc",
        "package.json", "node_modules/", "node_modules/.bin/"), WRITE, prepare=repository,
        check=home_changed),
    Row("T602", "a project that is read-only", ("write", "/work/new", "/work/code.py"), WRITE,
        options=("--read-only",), prepare=repository),
    Row("T603", "its own spec", ("write", "/work/bawn.yaml"), broken("project"), prepare=repository,
        check=home_changed),
    Row("T603", "the operator's policy", ("write", "{home}/.config/bawn/policy.yaml"), OUTSIDE, prepare=repository,
        check=home_changed),
    Row("T604", "a second bawn, without a cage", (
        "execute", "/opt/escape/bawn", "run", "--relaxed", "--network", "host", "-v", "{secret}:{secret}", "--",
        "{probe}", "read", "{canary}", "{end}"), OUTSIDE, custom=traps.second_bawn),
    Row("T604", "asking the real program to break", ("capabilities",), broken("drop:capabilities"),
        variables={"BAWN_TEST_BREAK": ",".join((*MECHANISMS, "look"))}),
    Row("T605", "another name of the root", ("read", "/proc/self/root{canary}", "{end}"), SHOW),
    Row("T605", "the loader as program", ("execute", "/lib64/ld-linux-x86-64.so.2", "/bin/cat", "{canary}"), SHOW),
    *([Row("T606", "a sandbox in the cage", (
        "execute", BWRAP, "--dev-bind", "/", "/", "{probe}", "read", "{canary}", "{end}"), OUTSIDE)] if BWRAP else []),
    Row("T607", "the same from a shell's child", (
        "execute", "/bin/sh", "-c", "setsid {probe} read {canary} {end}"), SHOW),
]
