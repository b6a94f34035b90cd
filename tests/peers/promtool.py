"""Prometheus' own tool: this machine's, or that of Debian's package, which is not installed.

    tool = promtool.find(build)      its path; the package is fetched once, into the build folder

The package would start a service, open a port and bring a web interface along; of all that is in it, one program is
taken. Who fetches it is apt, which checks what it gets as for any package.
"""

import fcntl
import os
import pathlib
import shutil
import subprocess
import tempfile

PACKAGE, MEMBER = "prometheus", "./usr/bin/promtool"


class Missing(Exception):
    """Why there is none here."""


def download(work):
    """The package's file; where the lists of packages are old or missing, they are fetched first."""
    said = ""
    for is_updated in (False, True):
        if is_updated:
            subprocess.run([*([] if os.geteuid() == 0 else ["sudo", "-n"]), "apt-get", "-qq", "update"], check=False,
                           timeout=300, capture_output=True)
        done = subprocess.run(["apt-get", "-qq", "download", PACKAGE], cwd=work, check=False, timeout=300, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for path in work.glob("*.deb"):
            return path
        said = done.stdout
    raise Missing(f"Debian's package {PACKAGE} cannot be downloaded: {' '.join(said.split())[:300]}")


def fetch(tool):
    """Whole or not at all: it gets its name when it is complete."""
    with tempfile.TemporaryDirectory(prefix="draft-", dir=tool.parent) as draft:
        try:
            package = download(pathlib.Path(draft))
            with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
                subprocess.run(["tar", "-x", MEMBER], cwd=draft, stdin=files.stdout, check=True)
        except FileNotFoundError as problem:
            raise Missing(f"there is no promtool, and no {problem.filename} to fetch Debian's with") from problem
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as problem:
            raise Missing(f"promtool could not be fetched: {problem}") from problem
        (pathlib.Path(draft) / MEMBER).rename(tool)


def find(build):
    here = shutil.which("promtool")
    if here:
        return here
    top = pathlib.Path(build).resolve() / "peers"
    top.mkdir(exist_ok=True)
    with open(top / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (top / "promtool").exists():
            fetch(top / "promtool")
    return str(top / "promtool")
