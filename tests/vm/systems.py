#!/usr/bin/env python3
"""Whole Debian systems in virtual machines: an account made by adduser logs in and does the tour.

    systems.py BUILD [--system NAME]...        prints TAP

A guest has systemd, cgroups of version 2 only, and AppArmor, as an installed Debian has. This script types at its
serial console: a name, a password, and then tour.sh, which prints TAP. So the session is one that PAM and logind
made, and a user's systemd manager runs. Then root logs in and becomes another user by su, for whom no manager runs.

The system comes from Debian's packages by mmdebstrap, once, and stays in BUILD/vm; the programs under test are on a
second disk. No guest has a network, and none can write to this machine.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
from image import ENVIRON, HERE, Skip, make_initramfs, output  # noqa: E402
from run import BAWN, KERNELS, Guest, Tap, check_tools  # noqa: E402

# Name: what mmdebstrap calls it, and the kernel of it.
SYSTEMS = {"12": ("bookworm", "6.1"), "13": ("trixie", "6.12")}
PACKAGES = "adduser,apparmor,dbus,git,libpam-systemd,login,passwd,systemd-sysv,util-linux"
PASSWORD = "a long way home"
USERS = ("alice", "carol")
UNREAD = ("doc", "info", "locale", "man")
BOOT_SECONDS, TOUR_SECONDS = 240, 400


# --- what a guest is made of ---

def recipe(suite):
    """The words that make a system; the folder is the last."""
    hooks = [f'chroot "$1" adduser --quiet --disabled-password --gecos "" {user}' for user in USERS]
    hooks += [f'echo "{user}:{PASSWORD}" | chroot "$1" chpasswd' for user in ("root", *USERS)]
    # A serial console without udev, which would have to find the port first; and nothing that only takes time.
    hooks += ['sed "s/dev-%i.device//" <"$1/usr/lib/systemd/system/serial-getty@.service" '
              '>"$1/etc/systemd/system/serial-getty@.service"',
              'chroot "$1" systemctl enable serial-getty@ttyS0.service',
              'chroot "$1" systemctl mask getty@tty1.service e2scrub_reap.service',
              'mkdir "$1/bawn"; echo guest >"$1/etc/hostname"; : >"$1/etc/fstab"']
    return ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--format=directory", f"--include={PACKAGES}",
            '--aptopt=APT::Install-Recommends "false"',
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNREAD),
            *(f"--customize-hook={hook}" for hook in hooks), suite]


def make_system(folder, suite):
    words = recipe(suite)
    disk = folder / f"system-{suite}-{hashlib.sha256(repr(words).encode()).hexdigest()[:12]}"
    if disk.exists():
        return disk
    if os.geteuid() != 0:
        raise Skip("only root can make a system by mmdebstrap")
    for old in folder.glob(f"system-{suite}-*"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=folder) as work:
        done = subprocess.run([*words, f"{work}/root"], env=ENVIRON, check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode:
            raise Skip(f"mmdebstrap cannot make {suite}: {' '.join(done.stdout.split())[-400:]}")
        output("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", f"{work}/root", f"{work}/disk", "1G")
        pathlib.Path(work, "disk").rename(disk)
    return disk


def make_programs(folder, build):
    """The disk that is /bawn in a guest."""
    disk = folder / "programs"
    with tempfile.TemporaryDirectory() as work:
        shutil.copy(build / BAWN, work)
        shutil.copy(HERE / "tour.sh", work)
        output("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", work, disk, "64M")
    return disk


# --- a guest, and who types at its console ---

class Lost(Exception):
    """The guest does not say what is waited for."""


class System(Guest):
    def __init__(self, name, folder, tap, processors):
        self.name, (self.suite, release) = name, SYSTEMS[name]
        super().__init__(release, folder, tap, processors)
        self.disk = make_system(folder, self.suite)
        self.initramfs = folder / f"initramfs-system-{release}"
        make_initramfs(self.initramfs, next(folder.glob(f"lib/modules/{release}.*")), init="init-system")
        self.log = folder / f"console-{self.suite}.log"
        self.heard, self.change = "", threading.Condition()

    def case(self, is_good, what, *notes, **more):
        self.tap.case(is_good, f"Debian {self.name}: {what}", *notes, **more)

    def listen(self, stream):
        with open(self.log, "wb", buffering=0) as log:
            while piece := stream.read(4096):
                log.write(piece)
                with self.change:
                    self.heard += piece.decode("utf-8", "replace").replace("\r", "")
                    self.change.notify()
        with self.change:
            self.heard += "\n[the guest ended]\n"
            self.change.notify()

    def await_text(self, pattern, seconds):
        """What was said before the pattern, which is taken too."""
        until = time.monotonic() + seconds
        with self.change:
            while not (found := re.search(pattern, self.heard)):
                if "[the guest ended]" in self.heard or not self.change.wait(until - time.monotonic()):
                    raise Lost(f"no {pattern!r} in {seconds} s; the last it said: {self.heard[-2000:]}")
            before, self.heard = self.heard[:found.start()], self.heard[found.end():]
        return before

    def type(self, text):
        self.keyboard.write((text + "\n").encode())
        self.keyboard.flush()

    def log_in(self, user, seconds):
        self.await_text(r"\nguest login: ", seconds)
        self.type(user)
        self.await_text(r"Password: ", 120)
        self.type(PASSWORD)
        self.await_text(r"[$#] $", 120)

    def tour(self, words):
        """The cases that tour.sh prints."""
        self.type(f"sh /bawn/tour.sh {words}; echo THE-''END")
        said = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", self.await_text(r"THE-END", TOUR_SECONDS))
        cases = re.findall(r"^(not )?ok - (.*)((?:\n# .*)*)", said, re.M)
        for has_failed, name, notes in cases:
            self.case(not has_failed, name, *(line[2:] for line in notes.split("\n") if line))
        if not re.search(rf"^1\.\.{len(cases)}$", said, re.M):
            self.case(False, f"the tour of {words} ends as planned", *said.splitlines()[-30:])

    def run_all(self, accel, programs):
        # The tour's console is the only one: what the kernel and systemd would say is not said.
        drives = [f"if=virtio,format=raw,file={disk},snapshot=on,cache=unsafe" for disk in (self.disk, programs)]
        words = self.command(accel)
        words[words.index("-append") + 1] += " loglevel=0 systemd.show_status=no systemd.getty_auto=no"
        words[words.index("-chardev") + 1] = "stdio,id=console"
        for drive in drives:
            words += ["-drive", drive]
        began = time.monotonic()
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              bufsize=0) as qemu:
            self.keyboard = qemu.stdin
            listener = threading.Thread(target=self.listen, args=(qemu.stdout,))
            listener.start()
            try:
                self.log_in(USERS[0], BOOT_SECONDS)
                self.tap.note(f"Debian {self.name}: logged in after {time.monotonic() - began:.0f} s")
                self.tour("login")
                self.type("exit")
                self.log_in("root", 120)
                self.tour(f"su {USERS[1]}")
            except Lost as why:
                self.case(False, "is talked to", *str(why).splitlines())
            finally:
                qemu.kill()
                listener.join()
        self.tap.note(f"Debian {self.name}: {time.monotonic() - began:.0f} s")


def run_systems(options, tap):
    check_tools()
    if not shutil.which("mmdebstrap"):
        raise Skip("there is no mmdebstrap: tools/install-deps.sh test")
    build = options.build.resolve()
    folder = build / "vm"
    folder.mkdir(exist_ok=True)
    names = options.system or list(SYSTEMS)
    systems = [System(name, folder, tap, max(1, os.cpu_count() // len(names))) for name in names]
    programs = make_programs(folder, build)
    accel = "kvm" if os.access("/dev/kvm", os.W_OK) and systems[0].boots_with("kvm") else "tcg,thread=multi"
    tap.note(f"accelerator: {accel}")
    threads = [threading.Thread(target=system.run_all, args=(accel, programs)) for system in systems]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--system", action="append", choices=SYSTEMS, help="only this; may be repeated")
    options = parser.parse_args()
    assert all(release in KERNELS for _, release in SYSTEMS.values())
    tap = Tap()
    try:
        run_systems(options, tap)
    except Skip as reason:
        tap.case(True, "systems", skip=str(reason))
    tap.end()
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
