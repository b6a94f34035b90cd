#!/usr/bin/env python3
"""Debian's own kernels in virtual machines: the suites of real cages on kernels that people have.

    run.py BUILD [--slice] [--kernel RELEASE]... [--suite NAME]...        prints TAP

A guest is made by image.py: a kernel, an initramfs whose init finds the disk, and on that a small
Debian with the tests and the programs under test. There cgroups are as systemd makes them, which is
not so in the containers that many tests run in. guest.py runs the suites, and its lines come back over
a serial port. No guest has a network, and none can write to this machine. All is in BUILD/vm.

With KVM where a kernel gets through its boot under it, for many machines have a /dev/kvm that does not
work; else emulated, and fifty times slower.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

sys.dont_write_bytecode = True
from image import Skip, find_kernel, make_disk, make_initramfs  # noqa: E402

QEMU = "qemu-system-x86_64"

EVERYWHERE = {"cgroup_version": 2, "cgroup.memory": True, "cgroup.cpu": True, "cgroup.pids": True, "landlock": True,
              "ns.user": True, "mount.api": True, "mount.overlay": True, "proc.subset": True, "seccomp.notify": True}
# Release: the package that stands for the newest of its series, and what `bawn doctor` must find there.
KERNELS = {
    "6.1": ("linux-image-cloud-amd64", {**EVERYWHERE, "landlock_abi": 2}),
    "6.12": ("linux-image-6.12-cloud-amd64", {**EVERYWHERE, "landlock_abi": 6}),
}

BAWN, BREAKABLE = "src/cli/bawn", "src/cli/bawn-breakable"


@dataclasses.dataclass(frozen=True)
class Suite:
    """A script below tests with programs of the build as its arguments, and who runs it, with which words more."""
    script: str
    programs: tuple
    all: dict
    slice: dict = dataclasses.field(default_factory=dict)
    seconds: int = 600  # after which it is ended
    timed: str = "$^"  # cases that measure time: told, but not judged where a machine is emulated

    @property
    def name(self):
        return self.script.removesuffix(".py").replace("/", "-")


# Root's runs test cages of root's and of a user's without cgroups; a user's own has those of a login. The whole
# takes two processors less than ten minutes when it is emulated.
SUITES = [
    Suite("cage/preflight.py", (BAWN, BREAKABLE, "src/cage/init/init"), {"root": [], "user": []}, slice={"root": [], "user": []}),
    Suite("cage/look.py", (BAWN, BREAKABLE), {"root": ["noticed"]}, slice={"user": ["hosts"]}),
    Suite("cage/files.py", (BAWN, BREAKABLE), {"root": ["bind"], "user": []}, slice={"user": ["captured"]}),
    Suite("cage/protect.py", (BAWN, BREAKABLE), {"root": ["cannot"], "user": ["host"]}, slice={"user": ["replaces"]}),
    Suite("cage/run.py", (BAWN, BREAKABLE), {"user": []}, timed="time_limit|clock|orphans"),
    Suite("escape/run.py", (BAWN, BREAKABLE, "tests/escape/probe"), {"root": ["T116"]}),
    Suite("limits/run.py", (BAWN, BREAKABLE), {"root": []}, slice={"user": ["memory|disk_is_one|next_run_removes", "user"]},
          timed="time|asked|stop|request|processors|neither_another|every_limit|survives"),
]
# Why a case means nothing here: in any of these guests, or to a user. Root's part of it is tried by other tests.
NOT_HERE = re.compile("no freezer of version 1|only root can")
# What bawn cannot do yet: release, part of a case's name, and why.
KNOWN = []  # (release, part of a name, why)


# --- what comes back ---

class Tap:
    """Cases of several guests, as they come."""

    def __init__(self):
        self.count = self.failed = 0
        self.lock = threading.Lock()

    def case(self, is_good, name, *notes, skip=None, todo=None):
        with self.lock:
            self.count += 1
            self.failed += not is_good and not todo
            more = f" # SKIP {skip}" if skip else f" # TODO {todo}" if todo and not is_good else ""
            print(f"{'ok' if is_good else 'not ok'} {self.count} - {name}{more}")
            self.print_notes(*notes)

    def note(self, *lines):
        with self.lock:
            self.print_notes(*lines)

    @staticmethod
    def print_notes(*lines):
        for line in lines:
            print("# " + line)
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.count}")


TAP_CASE = re.compile(r"(not )?ok\b(?: *\d+)?(?: *-)? *(.*?)(?: *# *SKIP\b *(.*))?$", re.I)


class Job:
    """One suite as one user: what the guest is told, and what is made of its lines."""

    def __init__(self, suite, who, words):
        self.suite, self.who, self.words = suite, who, words
        self.name = f"{suite.name} by {who}"

    def for_guest(self):
        programs = [f"/bawn/build/{name}" for name in self.suite.programs]
        command = ["/usr/bin/python3", f"/bawn/tests/{self.suite.script}", *programs, *self.words]
        return {"name": self.name, "who": self.who, "command": command, "seconds": self.suite.seconds}

    def reader(self, guest):
        return TapReader(guest, self)


class Doctor(Job):
    """What bawn says about the guest."""

    def __init__(self, who):
        super().__init__(Suite("doctor", (BAWN,), {}, seconds=30), who, ())

    def for_guest(self):
        return {**super().for_guest(), "command": [f"/bawn/build/{BAWN}", "doctor", "--json"]}

    def reader(self, guest):
        return DoctorReader(guest, self)


class Reader:
    def __init__(self, guest, job):
        self.guest, self.job, self.lines = guest, job, []

    def case(self, is_good, name, *notes, **more):
        self.guest.tap.case(is_good, f"{self.guest.release} {self.job.name}: {name}", *notes, **more)


class TapReader(Reader):
    def __init__(self, guest, job):
        super().__init__(guest, job)
        self.plan, self.seen, self.failed = None, 0, 0
        self.last = None  # the case that comments are about

    def read(self, line):
        self.lines = [*self.lines[-20:], line]
        plan, case = re.match(r"1\.\.(\d+)", line), TAP_CASE.match(line)
        if plan:
            self.plan = int(plan[1])
        elif case:
            self.tell_last()
            self.last = (*case.groups(), [])
        elif self.last and line.startswith("#"):
            self.last[-1].append(line[1:].strip())

    def tell_last(self):
        if not self.last:
            return
        has_failed, name, skip, notes = self.last
        self.seen += 1
        self.failed += bool(has_failed)
        if not skip or not NOT_HERE.search(skip):
            self.case(not has_failed, name, *(notes if has_failed else ()), skip=skip, todo=self.why_not_judged(name))

    def why_not_judged(self, name):
        if self.guest.is_emulated and re.search(self.job.suite.timed, name):
            return "it measures time, and the machine is emulated"
        return next((why for release, part, why in KNOWN if release == self.guest.release and part in name), None)

    def end(self, status):
        self.tell_last()
        if self.seen != self.plan or bool(status) != bool(self.failed):
            self.case(False, f"ends as planned: status {status}, {self.seen} cases of {self.plan}", *self.lines)


class DoctorReader(Reader):
    def read(self, line):
        self.lines.append(line)

    def end(self, status):
        try:
            host = json.loads("\n".join(self.lines))["host"]
        except (ValueError, KeyError):
            self.case(False, f"speaks JSON, status {status}", *self.lines)
            return
        self.guest.tap.note(f"{host['kernel']}: " + " ".join(
            f"{name}={value}" for name, value in host.items() if not isinstance(value, dict)))
        seen = {**host, **{name: row["can"] for name, row in host["abilities"].items()}}
        for name, wanted in KERNELS[self.guest.release][1].items():
            self.case(seen.get(name) == wanted, f"{name} is {wanted}", *(
                [] if seen.get(name) == wanted else [f"it is {seen.get(name)}: {host['abilities'].get(name)}"]))


# --- a guest ---

class Guest:
    def __init__(self, release, folder, tap, processors=2):
        self.release, self.tap, self.processors = release, tap, processors
        self.kernel, modules = find_kernel(folder, release, KERNELS[release][0])
        self.initramfs = folder / f"initramfs-{release}"
        self.console = folder / f"console-{release}.log"
        self.is_emulated = False
        make_initramfs(self.initramfs, modules)

    def command(self, accel, *more):
        # Emulated, an instruction that copies bytes is no faster than a loop that copies words.
        cpu = "host" if accel == "kvm" else "max,erms=off,fsrm=off,la57=off"
        return [QEMU, "-accel", accel, "-cpu", cpu, "-smp", str(self.processors), "-m", "2G", "-nodefaults",
                "-no-user-config", "-display", "none", "-no-reboot", "-kernel", str(self.kernel),
                "-initrd", str(self.initramfs),
                "-append", "console=ttyS0 quiet panic=-1 oops=panic mitigations=off",
                "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console", *more]

    def boots_with(self, accel):
        """Whether a kernel gets as far as missing its disk, and ends."""
        try:
            subprocess.run(self.command(accel), check=True, capture_output=True, timeout=6)
        except (subprocess.SubprocessError, OSError):
            return False
        return b"Kernel panic" in self.console.read_bytes()

    def run(self, accel, disk, jobs, seconds):
        self.is_emulated = accel != "kvm"
        drive = f"if=virtio,format=raw,file={disk},snapshot=on,cache=unsafe"
        command = self.command(accel, "-drive", drive, "-chardev", "stdio,id=port", "-serial", "chardev:port")
        readers = {job.name: job.reader(self) for job in jobs}
        errors = tempfile.TemporaryFile("w+")
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as qemu:
            watch = threading.Timer(seconds, qemu.kill)
            watch.start()
            for line in qemu.stdout:
                self.read(line, readers)
            watch.cancel()
        if readers:
            errors.seek(0)
            console = self.console.read_text(encoding="utf-8", errors="replace").splitlines()[-60:]
            self.tap.case(False, f"{self.release} runs all suites in {seconds} s; left: {', '.join(readers)}",
                          *errors.read().splitlines(), *console)

    def read(self, line, readers):
        try:
            said = json.loads(line)
        except ValueError:
            self.tap.note(f"{self.release} said {line!r}")
            return
        if "booted" in said:
            self.tap.note(f"{self.release}: {said['booted']} has booted")
        elif "line" in said:
            readers[said["job"]].read(said["line"])
        else:
            readers.pop(said["job"]).end(said["status"])
            self.tap.note(f"{self.release} {said['job']}: {said['seconds']} s")


def choose_jobs(suites, is_slice):
    jobs = [Doctor("root"), Doctor("user")]
    for suite in suites:
        for who, words in (suite.slice if is_slice else suite.all).items():
            jobs.append(Job(suite, who, words))
    return jobs


def check_tools():
    if os.uname().machine != "x86_64":
        raise Skip(f"the guests are x86_64, and this is {os.uname().machine}")
    for tool in (QEMU, "busybox", "cpio", "dpkg", "apt-cache", "tar"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}: tools/install-deps.sh vm")


def run_guests(options, tap):
    check_tools()
    build = options.build.resolve()
    folder = build / "vm"
    folder.mkdir(exist_ok=True)
    suites = [suite for suite in SUITES if not options.suite or suite.name in options.suite]
    jobs = choose_jobs(suites, options.slice)
    releases = options.kernel or list(KERNELS)[:1 if options.slice else None]
    # Emulated processors that are more than the real ones wait for each other.
    processors = max(1, os.cpu_count() // len(releases))
    guests = [Guest(release, folder, tap, processors) for release in releases]
    programs = {name for job in jobs for name in job.suite.programs}
    make_disk(folder / "disk", build, programs, [job.for_guest() for job in jobs])
    accel = "kvm" if os.access("/dev/kvm", os.W_OK) and guests[0].boots_with("kvm") else "tcg,thread=multi"
    tap.note(f"accelerator: {accel}")
    threads = [threading.Thread(target=guest.run, args=(accel, folder / "disk", jobs, options.seconds))
               for guest in guests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tap.note(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f} s of processor time")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--slice", action="store_true", help="only what takes a minute")
    parser.add_argument("--kernel", action="append", choices=KERNELS, help="only this; may be repeated")
    parser.add_argument("--suite", action="append", choices=[suite.name for suite in SUITES],
                        help="only this; may be repeated")
    parser.add_argument("--seconds", type=int, default=1500, help="after which a guest is ended")
    options = parser.parse_args()
    tap = Tap()
    try:
        run_guests(options, tap)
    except Skip as reason:
        tap.case(True, "guests", skip=str(reason))
    tap.end()
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
