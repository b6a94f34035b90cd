"""Rows of the escape suite whose project, binds or programs are prepared by an enemy."""

import contextlib
import os
import pathlib
import shutil
import stat
import subprocess
import threading
import time

from pair import NO_CAGE, REFUSED, WORKED, Nowhere, Outside, Result, Row, Trap, broken, opened
from place import own

NAMES = ("a*", "a?", "[ab]", "new\nline", "tab\tand space", "back\\slash", "\\040", "-v", "ümlaut", "$HOME", "~",
         "a,b", "quote'\"", "caf\udce9")


@contextlib.contextmanager
def gone_folder(place):
    (place.top / "gone").mkdir()
    own(place.uid, place.top / "gone")
    yield


@contextlib.contextmanager
def twin(place):
    """A second name in the project for a file outside of it."""
    os.link(place.canary, place.project / "twin")
    yield


def link_out(suite, place, pair):
    if isinstance(pair, Outside):
        return suite.run(Row("", "", ("link", "{data}/file", "{project}/twin")), place, pair)
    return suite.run(Row("", "", ("link", "/data/file", "/work/twin"), options=("-v", "{data}:/data:rw")), place, pair)


def in_group(suite, place, pair):
    """The launcher's word counts, not the attack's: it alone knows whether a signal came out."""
    row = Row("", "", ("kill-group",), before=("{host_probe}", "in-group"))
    return suite.run(row, place, pair)


def setuid(suite, place, pair):
    """T411: a copy of the probe that belongs to root and is setuid."""
    path = place.data / "setuid"
    # By another process: what another thread forks while we write would have the file open, and nobody could start it.
    subprocess.run(["cp", suite.files / "probe", path], check=True)
    os.chown(path, 0, 0)
    path.chmod(0o4755)
    where = path if isinstance(pair, Outside) else "/data/setuid"
    return suite.run(Row("", "", ("setuid", str(where)), options=("-v", "{data}:/data")), place, pair)


def mknod(suite, place, pair):
    where = "{data}/device" if isinstance(pair, Outside) else "/tmp/device"
    return suite.run(Row("", "", ("mknod", where)), place, pair)


def device(suite, place, pair):
    """T455: a device that lies in a folder the operator binds; it is another null."""
    path = place.data / "device"
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    path.chmod(0o666)
    own(place.uid, path)
    return suite.run(Row("", "", ("device", "/data/device"), options=("-v", "{data}:/data:rw")), place, pair)


def second_bawn(suite, place, pair):
    bawn = "{programs}/bawn" if isinstance(pair, Outside) else "/opt/bawn/bawn"
    words = ("execute", bawn, "run", "--network", "host", "-v", "{secret}:{secret}", "-v", "{probe}:/opt/probe", "--",
             "/opt/probe", "read", "{canary}", "{end}")
    return suite.run(Row("", "", words, options=("-v", "{programs}:/opt/bawn")), place, pair)


# --- T201: the moments in which the first process is still what made the cage ---

MOMENTS = 100


def early(suite, place, pair):
    """A command that looks as soon as it lives; a race, so it is run many times."""
    row = Row("", "", ("early", "{end}"), options=("--name", "{text}"))
    for number in range(MOMENTS):
        done = suite.run(row, place, pair)
        if done.verdict != REFUSED:
            return Result(done.verdict, f"{done.sentence}, in run {number}")
    return Result(REFUSED, f"in all {MOMENTS} runs")


def at_startup(suite, place, pair):
    """The project's own startup commands look, before the command is there."""
    probe = "/opt/escape/probe"
    looks = (f"process-file environ {place.end}", f"process-file cmdline {place.end}", f"memory {place.end}")
    place.write(place.project / "bawn.yaml", "version: 1\nstartup_commands:\n" + "\n".join(
        f"  - {probe} {look} >>/tmp/out || true" for look in looks), 0o644)
    return suite.run(Row("", "", ("report", "/tmp/out"), options=("--name", "{text}")), place, pair)


def image_shell(suite, place, pair):
    """The shell of an image is started by a startup command, and looks."""
    image, spec = place.top / "image", place.home / ".config/bawn/image.yaml"
    for name in ("bin", "etc", "opt", "tmp", "proc", "dev", "usr", "home", "work"):
        (image / name).mkdir(parents=True)
        (image / name).chmod(0o777)
        own(place.uid, image, image / name)
    subprocess.run(["cp", suite.files / "probe", image / "bin/sh"], check=True)
    place.write(image / "end", place.end)
    place.write(spec, f"version: 1\nroot: {{image: 'dir:{image}'}}\nstartup_commands: [look]\n", 0o644)
    for folder in (spec.parent, spec.parent.parent):
        folder.chmod(0o755)
    options = ("-f", str(spec), "--name", "{text}")
    return suite.run(Row("", "", ("report", "/tmp/out"), options=options), place, pair)


# --- T101: a bind's target below a link that leads out ---

@contextlib.contextmanager
def link_to_data(place):
    (place.project / "link").symlink_to(place.data)
    yield


def data_changed(place):
    names = sorted(os.listdir(place.data))
    return None if names == ["file"] else f"the folder behind the link was changed: {names}"


def make_target(place):
    (place.project / "link/target").mkdir()


# --- T102, T104, T105, T106: an image whose own folders are links ---

IMAGE_LINKS = ("dev", "proc", "sys", "tmp", "etc", "run", "home", "work", "var", "opt", "mnt", "srv")


def image_of_links(suite, place, pair):
    """A root of an enemy's: what a cage mounts onto leads out, one folder after the other."""
    image, spec = place.top / "image", place.home / ".config/bawn/image.yaml"
    place.write(spec, f"version: 1\nroot: {{image: 'dir:{image}'}}", 0o644)
    for folder in (spec.parent, spec.parent.parent):
        folder.chmod(0o755)
    row = Row("", "", ("capabilities",), options=("-f", str(spec)))
    ends = {}
    for name in IMAGE_LINKS:
        for other in (*IMAGE_LINKS, "usr", "bin", "lib", "lib64"):
            (image / other).mkdir(parents=True)
            (image / other).chmod(0o777)
            own(place.uid, image, image / other)
        (image / name).rmdir()
        (image / name).symlink_to(place.data)
        if pair:
            (image / name / "null").write_text("")
        done = Result(REFUSED, "") if pair else suite.run(row, place, None)
        if os.listdir(place.data) != ["file"] or done.verdict == WORKED:
            return Result(WORKED, f"/{name} of the image led out: {done}")
        ends[name] = str(done)[:120]
        shutil.rmtree(image)
    return Result(REFUSED, str(ends))


def overlay_of_links(suite, place, pair):
    """The same in a root that was kept: left by an earlier run, in the way of the next, which starts all the same."""
    kept, spec = place.top / "kept/overlay", place.home / ".config/bawn/overlay.yaml"
    place.write(spec, f"version: 1\nroot: {{overlay: '{kept}', overlay_size: 16M}}", 0o644)
    for folder in (spec.parent, spec.parent.parent):
        folder.chmod(0o755)
    kept.parent.mkdir()
    own(place.uid, kept.parent)
    row = Row("", "", ("capabilities",), options=("-f", str(spec)))
    done = suite.run(row, place, None)
    for name in IMAGE_LINKS:
        left = kept / "tree" / name
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
        left.symlink_to(place.data)
        own(place.uid, left)
        if pair:
            (left / "null").write_text("")
        done = Result(REFUSED, "") if pair else suite.run(row, place, None)
        if os.listdir(place.data) != ["file"] or done.verdict != REFUSED:
            return Result(WORKED, f"/{name} of the overlay led out, or stopped the next run: {done}")
    return Result(REFUSED, f"all {len(IMAGE_LINKS)} links; the last: {done}")


# --- T106: binds over what the cage makes, a false /proc first of all ---

def covers(suite, place, pair):
    targets = ("/proc", "/proc/self", "/dev", "/dev/null", "/etc", "/etc/passwd", "/usr", "/usr/bin", "/lib", "/",
               "/work/../proc", "/data/../dev", "//proc", "/opt/./../etc", "/home/agent/../../proc")
    for target in ("/data",) if pair else targets:
        source, file = ("{data}/file", "") if target in ("/dev/null", "/etc/passwd") else ("{data}", "/file")
        row = Row("", "", ("read", target + file, "{end}"), options=("-v", f"{source}:{target}"))
        done = suite.run(row, place, None)
        if done.verdict != NO_CAGE:
            return Result(WORKED if done.verdict == REFUSED else done.verdict, f"a bind at {target}: {done}")
    return Result(REFUSED, f"all {len(targets)} targets")


# --- T103: swapping a folder for a link while the cage is made ---

SWAPS = 60


def race(row):
    def run(suite, place, pair):
        """Starts many cages while a folder of the project and a link that leads out change places."""
        real, link = place.project / "real", place.project / "link"
        place.write(real / "canary", "nothing")
        link.symlink_to(place.secret)
        if pair:  # without a race: the link, taken for what it leads to
            found = (link / "canary").read_text(encoding="utf-8").strip()
            return Result(WORKED if found == place.text else REFUSED, "the link leads to the secret")
        ends = {}
        with subprocess.Popen([suite.files / "probe", "swap", real, link], stdout=subprocess.DEVNULL) as swapping:
            try:
                for _ in range(SWAPS):
                    done = suite.run(row, place, None)
                    if done.verdict == WORKED or os.listdir(place.secret) != ["canary"]:
                        return Result(WORKED, done.sentence)
                    ends[str(done)[:100]] = ends.get(str(done)[:100], 0) + 1
            finally:
                # The probe's own child does it; both are in the way until they are gone.
                subprocess.run(["kill", *children_of(swapping.pid)], check=False)
                swapping.kill()
        return Result(REFUSED, f"in all {SWAPS} races: {ends}")
    return run


def children_of(pid):
    return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()


RACE_SOURCE = Row("", "", ("read", "/data/canary", "{end}"), options=("-v", "./real:/data"))
RACE_TARGET = Row("", "", ("read", "/work/real/in/file", "{end}0"), options=("-v", "{data}:/work/real/in"))


# --- T109: programs of the project's in front of the system's ---

@contextlib.contextmanager
def false_programs(place):
    for name in ("sh", "bash", "mount", "umount", "newuidmap", "newgidmap", "ip", "cp", "bwrap", "git", "nft",
                 "unshare", "slirp4netns", "pasta", "fusermount3", "systemd-run", "crun", "true"):
        place.write(place.project / name, f"#!/bin/sh\necho ran > '{place.data}/ran'", 0o755)
    yield


def run_by_path(place):
    subprocess.run(["newuidmap"], env={"PATH": str(place.project)}, check=False)


# --- T113: names that mean something to somebody ---

def odd_names(suite, place, pair):
    """Binding a folder with an odd name shows that folder, or is refused; never its neighbour."""
    for number, name in enumerate(NAMES):
        folder = place.top / "odd" / str(number) / name
        neighbour = {"a*": "ab", "a?": "ab", "[ab]": "a", "\\040": " ", "a,b": "a"}.get(name, "other")
        place.write(folder / "here", "nothing")
        place.write(folder.parent / neighbour / "canary", place.text)
        source = folder.parent / neighbour if pair else folder
        row = Row("", "", ("read", "/data/canary", "{end}"), options=("-v", f"{source}:/data"))
        done = suite.run(row, place, None)
        if done.verdict == WORKED:
            return Result(WORKED, f"{source.name!r} shows its neighbour" if not pair else "the neighbour, by its name")
        if done.verdict == NO_CAGE and done.sentence.startswith("status -"):
            return Result(WORKED, f"{name!r}: bawn was killed: {done.sentence}")
    return Result(REFUSED, f"all {len(NAMES)} names")


# --- T117: mounts made later, on either side ---

PROPAGATION = r"""
set -e
mount -t tmpfs none "$1"; mount --make-shared "$1"; chmod 777 "$1"; mkdir -m 777 "$1/sub"
shift; dir=$1; out=$2; shift 2
"$@" >"$out" 2>&1 &
i=0; while [ ! -e "$dir/ready" ] && [ $i -lt 100 ]; do sleep 0.02; i=$((i+1)); done
mount -t tmpfs none "$dir/sub"; cp "$dir/../secret/canary" "$dir/sub/canary"; chmod 666 "$dir/sub/canary"
: >"$dir/go"; wait $! || true
umount "$dir/sub"
"""


def propagation(suite, place, pair):
    """A mount the host makes below a bind while the cage runs; in a mount namespace of its own."""
    data = str(place.data)
    inside = data if isinstance(pair, Outside) else "/data"
    probe = str(suite.files / "probe") if isinstance(pair, Outside) else "/opt/escape/probe"
    script = (f"touch {inside}/ready; i=0; while [ ! -e {inside}/go ] && [ $i -lt 100 ]; do sleep 0.02; "
              f"i=$((i+1)); done; exec {probe} read {inside}/sub/canary {place.end}")
    cage = [str(suite.programs / "bawn"), "run", "-v", f"{suite.files}:/opt/escape", "-v", f"{data}:/data:rw", "--"]
    cage = [] if isinstance(pair, Outside) else cage
    out = place.top / "out"
    subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", PROPAGATION, "sh", data, data, str(out),
                    *cage, "/bin/sh", "-c", script], cwd=place.project, check=False, timeout=30,
                   capture_output=True, env={"HOME": str(place.home), "PATH": os.environ["PATH"],
                                             "XDG_STATE_HOME": str(place.top / "state")})
    said = out.read_text(encoding="utf-8") if out.exists() else ""
    for verdict in (WORKED, REFUSED):
        if f"probe: {verdict}: " in said:
            return Result(verdict, "a mount of the host's, made later")
    return Result(NO_CAGE, said[:300])


# --- T120: the project changes while the cage runs ---

def live(suite, place, pair):
    """Observed only: whether what the operator writes meanwhile is seen in the cage."""
    script = ("touch /data/ready; i=0; while [ ! -e /data/go ] && [ $i -lt 100 ]; do sleep 0.02; i=$((i+1)); done; "
              f"{{probe}} read /work/live {place.end}")

    def write_later():
        for _ in range(100):
            if (place.data / "ready").exists():
                break
            time.sleep(0.02)
        place.write(place.project / "live", place.text)
        place.write(place.data / "go")

    writer = threading.Thread(target=write_later)
    writer.start()
    done = suite.run(Row("", "", ("execute", "/bin/sh", "-c", script), options=("-v", "{data}:/data:rw")), place, pair)
    writer.join()
    return Result(REFUSED if done.verdict == WORKED else done.verdict,
                  "seen in the cage" if done.verdict == WORKED else f"not seen in the cage: {done.sentence}")


# --- T119: attributes that mean something to an overlay ---

def forged_attributes(suite, place, pair):
    """A folder that claims to be another one of the layer."""
    place.write(place.secret / "real/canary", place.text)
    false = place.project / "false"
    false.mkdir()
    for name in ("user.overlay.redirect", "trusted.overlay.redirect"):
        with contextlib.suppress(OSError):
            os.setxattr(false, name, b"/real")
    if not pair:
        return suite.run(Row("", "", ("read", "/work/false/canary", "{end}")), place, None)
    for name in ("upper", "work", "merged"):
        (place.top / name).mkdir()
    options = (f"lowerdir={place.project}:{place.secret},upperdir={place.top}/upper,workdir={place.top}/work,"
               "redirect_dir=on")
    done = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t overlay -o {options} none {place.top}/merged && "
                           f"cat {place.top}/merged/false/canary"], capture_output=True, text=True, check=False)
    return Result(WORKED if place.text in done.stdout else REFUSED, "an overlay that follows it" + done.stderr)


ROWS = [
    Row("T101", "a bind's target below a link", ("read", "/work/link/target/file", "{end}0"), Trap(make_target),
        options=("-v", "{secret}:/work/link/target"), prepare=link_to_data, check=data_changed, may_refuse=True),
    Row("T101", "a bind's target below a link, in a writable project", ("read", "/work/link/target/file", "{end}0"),
        Trap(make_target), options=("--write", "--allow-degraded", "fs.protect", "-v", "{secret}:/work/link/target"),
        prepare=link_to_data, check=data_changed, may_refuse=True),
    Row("T102 T104 T105", "an image whose folders are links", (), Trap(None), custom=image_of_links),
    Row("T102 T104 T105", "an overlay whose folders are links", (), Trap(None), custom=overlay_of_links),
    Row("T106", "binds over what the cage makes", (), opened("a place of its own"), custom=covers),
    Row("T103", "swapping a bind's source", (), Trap(None), custom=race(RACE_SOURCE)),
    Row("T103", "swapping a bind's target", (), Trap(None), custom=race(RACE_TARGET)),
    Row("T109", "programs of the project's first in PATH", ("capabilities",), Trap(run_by_path),
        prepare=false_programs, check=data_changed, variables={"PATH": "{project}:" + os.environ["PATH"]}),
    Row("T201", "the first process in the first moment", (), broken("init"), custom=early),
    Row("T201", "the first process at startup commands", (), broken("init"), custom=at_startup),
    Row("T201", "the first process at startup commands of an image", (), broken("init"), custom=image_shell, who="user"),
    Row("T201", "the first process at startup commands of an image of root's", (), broken("init"), custom=image_shell,
        who="root"),
    Row("T113", "odd names", (), opened("the neighbour itself"), custom=odd_names),
    Row("T117", "mounts that come later", (), Outside(), custom=propagation, who="root"),
    Row("T120", "a project that changes meanwhile", (), Nowhere("observed only"), custom=live),
    Row("T119", "forged attributes of an overlay", (), Outside(), Nowhere("only root may mount such an overlay"),
        custom=forged_attributes),
]
