"""What a guest is made of: a kernel of Debian's, an initramfs with modules, and a disk.

The disk is a small Debian made of files of this one, with the tests and the programs under test at
/bawn. Nothing is installed here, and nothing of a person's is copied.
"""

import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

MODULES = ("virtio_pci", "virtio_blk", "overlay")
# What the suites call; all that it depends on comes with it.
PACKAGES = ("base-files", "bash", "bubblewrap", "coreutils", "dash", "findutils", "git", "grep", "hostname", "libc-bin",
            "mount", "python3", "sed", "util-linux")
UNUSED_PACKAGES = re.compile(r"perl|dpkg|debconf|git-man")
UNUSED_FILES = re.compile(r"/usr/share/(doc|info|locale|man|lintian)/.")
ENVIRON = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


class Skip(Exception):
    """Why nothing can be tried here."""


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, env=ENVIRON, **more)
    return done.stdout


# --- the kernel ---

def fetch_kernel(folder, package):
    """Unpacks the kernel that a package stands for, which is the newest of its series."""
    said = ""
    for is_updated in (False, True):
        if is_updated:
            subprocess.run([*([] if os.geteuid() == 0 else ["sudo", "-n"]), "apt-get", "-qq", "update"], check=False)
        names = re.findall(r"Depends: (linux-image-\S+)", output("apt-cache", "depends", package).decode())
        with tempfile.TemporaryDirectory() as work:
            done = subprocess.run(["apt-get", "-qq", "download", *names[:1]], cwd=work, check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            said = done.stdout
            for path in pathlib.Path(work).glob("*.deb"):
                output("dpkg-deb", "-x", path, folder)
                return
    raise Skip(f"{package} cannot be downloaded: {' '.join(said.split())}")


def find_kernel(folder, release, package):
    """The image of a kernel of a release, and its modules; downloads one if there is none."""
    for is_fetched in (False, True):
        if is_fetched:
            fetch_kernel(folder, package)
        for image in folder.glob(f"boot/vmlinuz-{release}.*"):
            return image, folder / "lib/modules" / image.name.removeprefix("vmlinuz-")
    raise Skip(f"{package} has no kernel {release}")


# --- the initramfs ---

def read_module(path):
    return lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()


def modules_in_order(folder):
    """The {name: content} of the modules that are no part of the kernel, each after those it needs."""
    files = {path.name.split(".")[0].replace("-", "_"): path for path in folder.glob("kernel/**/*.ko*")}
    found = {}

    def add(name):
        if name in files and name not in found:
            content = read_module(files[name])
            for needed in re.search(rb"\0depends=([^\0]*)\0", content)[1].decode().split(","):
                add(needed)
            found[name] = content
    for name in MODULES:
        add(name)
    return found


def make_initramfs(target, modules, init="init"):
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name in ("bin", "modules"):
            (top / name).mkdir()
        shutil.copy(shutil.which("busybox"), top / "bin/busybox")
        shutil.copy(HERE / init, top / "init")
        for number, (name, content) in enumerate(modules_in_order(modules).items()):
            (top / f"modules/{number:02}-{name}.ko").write_bytes(content)
        names = "\n".join(str(path.relative_to(top)) for path in sorted(top.rglob("*")))
        target.write_bytes(output("cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0", cwd=top, input=names.encode()))


# --- the disk ---

def system_files():
    """The files of the packages, without what is only for reading."""
    kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
    said = output("apt-cache", "depends", "--recurse", "--installed", *(f"--no-{kind}" for kind in kinds), *PACKAGES)
    names = {line for line in said.decode().splitlines() if re.match(r"\w", line) and not UNUSED_PACKAGES.search(line)}
    # Some are only named and not installed: dpkg lists the others all the same.
    done = subprocess.run(["dpkg", "-L", *sorted(names)], capture_output=True, text=True, check=False)
    files = {line for line in done.stdout.splitlines() if line.startswith("/") and not UNUSED_FILES.match(line)}
    files |= {str(path) for path in pathlib.Path("/etc/alternatives").glob("*")}
    # Compiled once, and not by each python in the guest.
    files |= {str(path) for path in pathlib.Path("/usr/lib").glob("python3.*/**/__pycache__/*")}
    return sorted(path for path in files if path != "/." and os.path.lexists(path))


def make_system(top):
    for name in ("bin", "lib", "lib64", "sbin"):
        (top / "usr" / name).mkdir(parents=True)
        (top / name).symlink_to(f"usr/{name}")
    with tempfile.TemporaryFile() as archive:
        names = "\0".join(path[1:] for path in system_files())
        subprocess.run(["tar", "-C", "/", "--no-recursion", "--null", "-T-", "-c"], check=True, stdout=archive,
                       input=names.encode())
        archive.seek(0)
        output("tar", "-C", top, "--keep-directory-symlink", "-x", stdin=archive)
    for name in ("bawn", "dev", "etc", "home", "proc", "root", "run", "sys", "tmp"):
        (top / name).mkdir(exist_ok=True)
    (top / "tmp").chmod(0o1777)
    for name, text in (("passwd", "root:x:0:0::/root:/bin/sh\ntester:x:1000:1000::/home/1000:/bin/sh\n"),
                       ("group", "root:x:0:\ntty:x:5:\ntester:x:1000:\n"), ("hostname", "guest\n"),
                       ("hosts", "127.0.0.1 localhost guest\n")):
        (top / "etc" / name).write_text(text, encoding="ascii")
    output("ldconfig", "-r", top)


# Stands in for the compiler: what a suite compiles was compiled here, beside its source.
CC = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
exec cp "${3%.c}" "$2"
"""


def make_project(top, build, programs, jobs):
    """The tests and the programs, at /bawn as they lie here."""
    shutil.copytree(ROOT / "tests", top / "tests", ignore=shutil.ignore_patterns("fuzz", "golden", "unit"))
    shutil.copytree(ROOT / "data", top / "data")
    (top / "docs").mkdir()
    shutil.copy(ROOT / "docs/guarantees.md", top / "docs")  # tests/cage/records.py reads records with it
    for name in programs:
        (top / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(build / name, top / "build" / name)
    for source in top.glob("tests/*/tool.c"):
        output(*os.environ.get("CC", "cc").split(), "-O1", "-D_GNU_SOURCE", "-I", ROOT / "src", "-static",
               "-o", source.with_suffix(""), source)
    (top / "cc").write_text(CC, encoding="ascii")
    (top / "cc").chmod(0o755)
    (top / "jobs.json").write_text(json.dumps(jobs), encoding="utf-8")


def make_disk(target, build, programs, jobs):
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder, "disk")
        top.mkdir()
        make_system(top)
        make_project(top / "bawn", build, programs, jobs)
        # In a namespace whose root we are, what we own is root's on the disk too.
        own = [] if os.geteuid() == 0 else ["unshare", "--map-root-user"]
        output(*own, "mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", top, target, "1G")
