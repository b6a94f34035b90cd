"""Rows of the escape suite about what a run leaves for its operator: a layer that is shown, applied, or trusted.

In each a cage plants something in its captured project, the host does what hosts do, and then the effects are shown
or applied. The pair is a careless tool that does the same by names.
"""

import contextlib
import ctypes
import os
import pathlib
import pty
import select
import shutil
import stat
import subprocess
import threading
import time

from pair import NO_CAGE, REFUSED, WORKED, Nowhere, Result, Row, Trap
from place import as_user, own

ESCAPES = "\x1b]52;c;eA==\x07"
LIBC = ctypes.CDLL(None)
AT_FDCWD, RENAME_EXCHANGE = -100, 2


def environ(place):
    return {"HOME": str(place.home), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(place.top / "state")}


def bawn(suite, place, *words, **how):
    return subprocess.run([*as_user(place.uid), suite.programs / "bawn", *words], cwd=place.project, check=False,
                          env=environ(place), stdin=subprocess.DEVNULL, capture_output=True, timeout=40, **how)


def layer_of(place):
    (layer,) = (place.top / "state/bawn/runs").glob("*/layer/upper")
    return layer


# --- careless tools ---

def apply_by_names(place):
    """As a script would: every name of the layer, opened by its path in the project."""
    layer = layer_of(place)
    for folder, folders, files in os.walk(layer):
        for name in [*folders, *files]:
            source = pathlib.Path(folder, name)
            target = place.project / source.relative_to(layer)
            mode = source.lstat().st_mode
            with contextlib.suppress(OSError):
                if stat.S_ISLNK(mode):
                    target.unlink(missing_ok=True)
                    os.symlink(os.readlink(source), target)
                elif stat.S_ISDIR(mode):
                    target.mkdir(exist_ok=True)
                elif stat.S_ISCHR(mode) and source.lstat().st_rdev == 0:
                    target.unlink()
                elif stat.S_ISREG(mode):
                    target.write_bytes(source.read_bytes())
                    target.chmod(stat.S_IMODE(mode))
                else:
                    os.mkfifo(target)


# --- what the host sees ---

def secret_changed(place):
    names = sorted(os.listdir(place.secret))
    if names != ["canary"]:
        return f"in the secret folder there is now {names}"
    same = place.canary.read_text(encoding="utf-8") == place.text + "\n"
    return None if same else "the secret was changed"


def mode_is_raised(place):
    found = [path.name for path in place.project.rglob("*") if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)
             and not path.is_symlink() and path.is_file()]
    return f"set-user-id on the host: {found}" if found else None


def is_special(place):
    found = [path.name for path in place.project.rglob("*")
             if not stat.S_ISREG(path.lstat().st_mode) and not path.is_dir() and not path.is_symlink()]
    return f"special files on the host: {found}" if found else None


def hook_is_there(place):
    return "the hook is on the host" if (place.project / ".git/hooks/pre-commit").exists() else None


def hosts_work_is_lost(place):
    text = (place.project / "d/file").read_text(encoding="utf-8")
    return None if text == "the host's own work\n" else f"the host's file is now {text!r}"


# --- what the host does between the run and the look at it ---

def link_in_place_of_folder(place):
    shutil.rmtree(place.project / "d")
    os.symlink(place.secret, place.project / "d")
    own(place.uid, place.project / "d")


def link_in_place_of_file(place):
    (place.project / "d/file").unlink()
    os.symlink(place.canary, place.project / "d/file")
    own(place.uid, place.project / "d/file")


def work_of_its_own(place):
    place.write(place.project / "d/file", "the host's own work")


def raised_in_layer(place):
    """The filter lets no cage set these bits; a layer may have them in another way, and nobody told of it."""
    layer = layer_of(place)
    for name in ("d/true", "d/file"):
        (layer / name).chmod(0o6755)
    (layer.parents[1] / "effects.json").unlink()


@contextlib.contextmanager
def swapping(place):
    """A folder of the project and a link to the secret, exchanged as fast as it goes."""
    folder, other = place.project / "d", place.project / "other"
    os.symlink(place.secret, other)
    stop = threading.Event()

    def swap():
        names = os.fsencode(folder), os.fsencode(other)
        while not stop.is_set():
            assert LIBC.renameat2(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# --- the frame of a row ---

def planted(script, check, between=None, words=("apply", "--all", "--force"), careless=apply_by_names, times=1,
            during=None):
    """A row's attempt: plant in a cage, change on the host, apply, look."""
    def attempt(suite, place, pair):
        place.write(place.project / "d/file", "text")
        done = bawn(suite, place, "run", "--", "sh", "-c", script)
        if done.returncode != 0:
            return Result(NO_CAGE, done.stderr.decode("utf-8", "replace"))
        if between:
            between(place)
        with during(place) if during else contextlib.nullcontext():
            for _ in range(times):
                if isinstance(pair, Trap):
                    pair.spring(place)
                else:
                    done = bawn(suite, place, *words)
                    if done.returncode not in (0, 1):
                        return Result(NO_CAGE, done.stderr.decode("utf-8", "replace"))
                seen = check(place)
                if seen:
                    return Result(WORKED, seen)
                if not list((place.top / "state/bawn/runs").glob("*/layer")):
                    break
        return Result(REFUSED, done.stderr.decode("utf-8", "replace").strip() or "nothing of it is on the host")

    return attempt, Trap(careless)


def shown(script, is_told, careless):
    """A row's attempt: plant in a cage, and look at the diff; what reaches the terminal decides."""
    def attempt(suite, place, pair):
        place.write(place.project / "d/file", "text")
        done = bawn(suite, place, "run", "--", "sh", "-c", script.format(secret=place.canary))
        if done.returncode != 0:
            return Result(NO_CAGE, done.stderr.decode("utf-8", "replace"))
        words = careless(place) if isinstance(pair, Trap) else [suite.programs / "bawn", "diff"]
        text = on_terminal(place, words)
        return Result(WORKED if is_told(place, text) else REFUSED, repr(text[:300]))

    return attempt, Trap(lambda place: None)


def on_terminal(place, words):
    """All that a command prints on a terminal."""
    near, far = pty.openpty()
    own(place.uid, os.ttyname(far))
    seen, end = b"", time.monotonic() + 30
    with subprocess.Popen([*as_user(place.uid), *words], cwd=place.project, env={**environ(place), "PAGER": "cat"},
                          stdin=far, stdout=far, stderr=far, start_new_session=True) as process:
        os.close(far)
        with contextlib.suppress(OSError):
            while time.monotonic() < end and select.select([near], [], [], 30)[0]:
                seen += os.read(near, 65536)
        process.kill()
    os.close(near)
    return seen


def row(number, name, made, **more):
    custom, pair = made
    return Row(number, name, (), pair, custom=custom, **more)


def hosts_layer(place):
    return str(layer_of(place))


MANY = "i=0; while [ $i -lt 300 ]; do echo planted >d/canary$i; i=$((i+1)); done; echo planted >d/canary"
NAMED = f"name=$(printf '{ESCAPES}'); echo x >\"$name\"; printf '{ESCAPES}\\n' >d/file"
# As many lines as a diff may look at, of which none is like another on the other side.
EXPLOSIVE = ("awk 'BEGIN { for (i = 0; i < 1500000; i++) print (i * 7919) % 1000003 }' >d/a; "
             "awk 'BEGIN { for (i = 0; i < 1500000; i++) print (i * 104729) % 1000003 }' >d/file")


def takes_long(suite, place, pair):
    """A diff made to explode: it is a trap for a tool that tries all pairs of lines."""
    place.write(place.project / "d/file", "\n".join(str(i * 104723 % 1000003) for i in range(1_000_000)))
    done = bawn(suite, place, "run", "--", "sh", "-c", EXPLOSIVE)
    if done.returncode != 0:
        return Result(NO_CAGE, done.stderr.decode("utf-8", "replace"))
    words = ["timeout", "15", "diff", "--minimal", place.project / "d/file", layer_of(place) / "d/file"]
    if not isinstance(pair, Trap):
        words = ["timeout", "15", suite.programs / "bawn", "diff", "--color", "never"]
    done = subprocess.run([*as_user(place.uid), *words], cwd=place.project, env=environ(place), check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return Result(WORKED if done.returncode == 124 else REFUSED, f"status {done.returncode}")


ROWS = [
    row("T151", "applying through a link where a folder was",
        planted("echo planted >d/canary; echo planted >d/file", secret_changed, link_in_place_of_folder)),
    row("T151", "applying while a folder and a link are swapped",
        planted(MANY, secret_changed, during=swapping, times=50)),
    row("T152", "reading what a planted link leads to",
        shown("ln -s {secret} link; rm d/file; ln -s {secret} d/file",
              lambda place, text: place.text.encode() in text,
              lambda place: ["cat", *(str(path) for path in layer_of(place).rglob("*") if path.is_file())])),
    row("T153", "applying to a file that is a link now",
        planted("echo planted >d/file", secret_changed, link_in_place_of_file)),
    row("T155", "a set-user-id program, applied",
        planted("cp /bin/true d/true; echo more >>d/file", mode_is_raised, raised_in_layer)),
    row("T155", "a pipe, applied", planted("mkfifo d/pipe", is_special)),
    row("T156", "names and lines that a terminal obeys",
        shown(NAMED, lambda place, text: b"\x1b]52" in text,
              lambda place: ["sh", "-c", 'cd "$1" && printf "%s\\n" * && cat d/file', "sh", hosts_layer(place)])),
    row("T154", "a diff made to explode", (takes_long, Trap(lambda place: None))),
    row("T120", "what the host did meanwhile, overwritten",
        planted("echo theirs >>d/file", hosts_work_is_lost, work_of_its_own, words=("apply",))),
    row("T601", "a hook, applied with the rest",
        planted("mkdir -p .git/hooks; printf '#!/bin/sh\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
                "echo more >>d/file", hook_is_there, words=("apply",))),
]
