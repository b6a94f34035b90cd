"""A PostgreSQL server of the tests' own, from Debian's package, gone afterwards whatever happens.

    with postgres.Server() as server:
        url = server.make_database()

It is an unprivileged user's, in a temporary folder, and listens on a socket in it only. Any user of this
machine may connect: what is in it is the tests'.
"""

import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

SETTINGS = ["fsync=off", "synchronous_commit=on", "full_page_writes=off", "listen_addresses=", "max_connections=60",
            "shared_buffers=32MB", "logging_collector=off", "autovacuum=on", "timezone=UTC"]


class Missing(Exception):
    """Why there is no server here."""


def find_programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
    if found:
        return pathlib.Path(found[-1]).parent
    program = shutil.which("postgres")
    if not program:
        raise Missing("there is no PostgreSQL server: Debian's package is postgresql")
    return pathlib.Path(program).resolve().parent


class Server:
    def __init__(self):
        self.programs = find_programs()
        # Root's cannot be the server's own, and the server wants to know its user by name.
        self.user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="bawn-pg-"))
        self.folder = self.top / "pg"
        self.process, self.databases = None, 0

    def words(self, name, *args):
        command = [str(self.programs / name), *map(str, args)]
        if os.geteuid() == 0:
            return ["setpriv", "--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid),
                    "--clear-groups", *command]
        return command

    def environ(self):
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "PGUSER": "bawn", "HOME": str(self.folder)}

    def run(self, name, *args):
        done = subprocess.run(self.words(name, *args), env=self.environ(), cwd=self.folder, capture_output=True,
                              text=True, check=False, timeout=120)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        return done.stdout

    def __enter__(self):
        try:
            self.make()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def make(self):
        self.top.chmod(0o755)
        self.folder.mkdir(mode=0o755)
        if os.geteuid() == 0:
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)
        self.run("initdb", "-D", self.folder / "data", "-U", "bawn", "-A", "trust", "--no-sync", "-E", "UTF8")

    def start(self):
        """Also after stop, with what was in it."""
        words = self.words("postgres", "-D", self.folder / "data", "-k", self.folder)
        for setting in SETTINGS:
            words += ["-c", setting]
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(words, env=self.environ(), cwd=self.folder, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log)
        end = time.monotonic() + 60
        while not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < end, \
                "the server does not start: " + (self.folder / "log").read_text(errors="replace")[-2000:]
            time.sleep(0.02)

    def is_ready(self):
        ready = subprocess.run(self.words("pg_isready", "-q", "-h", self.folder), env=self.environ(), check=False)
        return ready.returncode == 0

    def stop(self, how=signal.SIGINT):
        """SIGINT ends connections and then the server; SIGQUIT ends it as a crash would."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def url(self, database="postgres"):
        return f"postgresql://bawn@/{database}?host={self.folder}"

    def psql(self, database):
        database = database if "://" in database else self.url(database)
        return ["psql", "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1"]

    def sql(self, text, database="postgres"):
        return self.run(*self.psql(database), "-c", text)

    def start_sql(self, database, text):
        """A client that has said this, and keeps the connection."""
        client = subprocess.Popen(self.words(*self.psql(database)), env=self.environ(), cwd=self.folder, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        client.stdin.write(text + " SELECT 'said';\n")
        client.stdin.flush()
        for line in client.stdout:
            if line == "said\n":
                break
        return client

    def make_database(self):
        self.databases += 1
        name = f"test{self.databases}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url(name)

    def __exit__(self, *_):
        self.stop()
        shutil.rmtree(self.top)
