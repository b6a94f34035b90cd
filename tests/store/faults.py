"""What goes wrong with a store: told in a sentence, and over when its cause is."""

import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import threading

SQLITE, POSTGRES = [], []  # case(folder, start, uid); case(server, start)


def on_sqlite(function):
    SQLITE.append(function)
    return function


def long(function):
    """Tried once, not as root and as a user."""
    function.is_long = True
    return function


def on_postgres(function):
    POSTGRES.append(function)
    return function


# --- SQLite ---

@on_sqlite
def a_file_that_cannot_be_the_store(folder, start, uid):
    path = folder / "store.db"
    with start(f"sqlite:{folder}/missing/store.db") as tool:
        tool.open().failed("ENOENT", "missing/store.db")
    with start("sqlite:") as tool:
        tool.open().failed("EINVAL", "path")
    with start(f"sqlite:{folder}") as tool:
        tool.open().failed("EINVAL", "is not a file")
    path.write_bytes(b"no database" * 1000)
    path.chmod(0o600)
    os.chown(path, uid, uid)
    with start(f"sqlite:{path}") as tool:
        tool.open().failed("EUCLEAN", str(path), "no database", "move it away")
        assert path.read_bytes() == b"no database" * 1000
        path.chmod(0o644)
        tool.open().failed("EPERM", "can be read or written by others")
        path.chmod(0o600)
        os.truncate(path, 0)
        tool.open().gave(0)


@on_sqlite
def a_file_of_another(folder, start, uid):
    path = folder / "store.db"
    path.touch(0o600)
    if uid and os.geteuid() == 0:
        with start(f"sqlite:{path}") as tool:
            tool.open().failed("EPERM", "belongs to user 0")
    os.chown(path, uid, uid)
    with start(f"sqlite:{path}") as tool:
        tool.open().gave(0)
        if uid:
            path.chmod(0)
            tool.open().failed("EACCES", "cannot be opened")


@on_sqlite
def a_url_that_is_none(_folder, start, _uid):
    for url in ("", "store.db", "mysql://u:geheim@h/d", "sqlite", "postgresql:/u:geheim@h/d"):
        with start(url) as tool:
            assert "geheim" not in tool.open().failed("EINVAL", "sqlite:PATH").text


@on_sqlite
@long
def a_database_that_is_locked(folder, start, _uid):
    with start(f"sqlite:{folder}/store.db") as tool:
        tool.open().gave(0)
        tool.add(1).gave(0)
        other = sqlite3.connect(folder / "store.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        # One may read meanwhile, and to find nothing is no reason to wait.
        tool.take("a").gave(0)
        tool.queue(1, 1, 10).failed("EBUSY", "locked", "10 s")
        other.execute("ROLLBACK")
        other.close()
        tool.queue(1, 1, 10).gave(0)
        tool.take("a").gave(1, "1-1")


@on_sqlite
def a_file_that_may_not_grow(folder, start, _uid):
    with start(f"sqlite:{folder}/store.db") as tool:
        tool.open().gave(0)
        tool.add(1).gave(0)
        tool.limit(1 << 20)
        tool.queue(1, 1, 2 << 20).failed("EIO", "disk I/O error")
        tool.queue(1, 2, 10).gave(0)
        tool.take("a").gave(1, "1-2")


@on_sqlite
def a_disk_that_is_full(folder, start, uid):
    if os.geteuid() != 0:
        return
    mount = f"mount -t tmpfs -o size=512k,uid={uid},mode=700 none '{folder}' && exec \"$@\""
    with start(f"sqlite:{folder}/store.db", before=["unshare", "-m", "sh", "-c", mount, "sh"]) as tool:
        inside = pathlib.Path(f"/proc/{tool.process.pid}/root{folder}")
        tool.open().gave(0)
        tool.add(1).gave(0)
        tool.queue(1, 1, 10).gave(0)
        with open(inside / "ballast", "wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)):
                    pass
            except OSError:
                pass
        tool.take("a").failed("ENOSPC", "cannot take a run", "the disk is full")
        tool.state("1-1").gave(0)
        (inside / "ballast").unlink()
        tool.take("a").gave(1, "1-1")
        tool.queue(1, 2, 600000).failed("ENOSPC", "cannot queue a run", "the disk is full")
        tool.state("1-2").failed("ENOENT")
        tool.end().gave(0)


@on_sqlite
def tables_of_another_version(folder, start, _uid):
    path = folder / "store.db"
    with start(f"sqlite:{path}") as tool:
        tool.open().gave(0)
        tool.add(1).gave(0)
        database = sqlite3.connect(path, isolation_level=None)
        # As the version before had them.
        database.executescript("DROP TABLE bawn_workers; DROP TABLE bawn_saved; "
                               "DELETE FROM bawn_schema WHERE version = 2")
        tool.take("a").failed("EIO", "bawn_workers")
        tool.open().gave(0)
        tool.queue(1, 1, 10).gave(0)
        tool.take("a").gave(1, "1-1")
        database.execute("INSERT INTO bawn_schema VALUES (99, 0)")
        tool.open().failed("EPROTO", "version 99, and this bawn knows")
        database.close()


@on_sqlite
def a_bell_that_is_gone(folder, start, _uid):
    """Both have it open: that its name is gone changes nothing, and who comes later makes a new one."""
    with start(f"sqlite:{folder}/store.db") as tool, start(f"sqlite:{folder}/store.db") as other:
        tool.open().gave(0)
        other.open().gave(0)
        tool.listen().gave(0)
        (folder / "store.db-bell").unlink()
        other.add(1).gave(0)
        other.queue(1, 1, 10).gave(0)
        tool.wait().gave(1)


# --- PostgreSQL ---

class Proxy:
    """Between a client and the server. It can be told to break off at a COMMIT, before or after it arrives."""

    def __init__(self, server):
        self.folder = server.top / "proxy"
        self.folder.mkdir(exist_ok=True)
        self.folder.chmod(0o755)
        self.target = str(server.folder / ".s.PGSQL.5432")
        self.name = self.folder / ".s.PGSQL.5432"
        self.breaks = None  # "before" or "after"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.name))
        self.name.chmod(0o777)
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        shutil.rmtree(self.folder)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for pair in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def carry(self, source, target, is_client):
        try:
            while True:
                sent = source.recv(65536)
                if not sent:
                    break
                if is_client and self.breaks and b"COMMIT" in sent:
                    self.cut(source, target, sent)
                    return
                target.sendall(sent)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self, client, server, sent):
        how, self.breaks = self.breaks, None
        client.shutdown(socket.SHUT_RDWR)
        if how == "after":
            server.sendall(sent)
            # Its end is the server's answer that nobody reads, and a connection that it closes itself.
            server.shutdown(socket.SHUT_WR)
            return
        server.shutdown(socket.SHUT_RDWR)

    def url(self, url, server):
        return url.replace(str(server.folder), str(self.folder))


@on_postgres
def an_answer_that_never_came(server, start):
    """What was taken when the connection broke is the worker's, and what was not, is not; and nothing is done twice."""
    url = server.make_database()
    with Proxy(server) as proxy, start(proxy.url(url, server)) as tool, start(url) as other:
        other.open().gave(0)
        tool.open().gave(0)
        other.add(1).gave(0)
        for number, breaks in ((1, "after"), (2, "before"), (3, None)):
            other.queue(1, number, 10).gave(0)
            proxy.breaks = breaks
            if breaks:
                tool.take("a").failed("EPIPE", "cannot take a run: the connection to PostgreSQL at ", " is lost")
            tool.take("a").gave(1, f"1-{number}")
            tool.take("a").gave(0)
            proxy.breaks = breaks
            if breaks:
                tool.end().failed("EPIPE", "cannot report the end of a run")
            tool.end().gave(0)
            other.state(f"1-{number}").gave(2)


@on_postgres
def a_server_that_goes_and_comes(server, start):
    url = server.make_database()
    with start(url) as tool, start(url) as other:
        for each in (tool, other):
            each.open().gave(0)
        tool.listen().gave(0)
        tool.hear().gave(0)
        other.add(1).gave(0)
        server.stop()
        # The server says that it goes, before it does.
        tool.wait().gave(1)
        heard = tool.hear()
        if heard.number == 0:
            tool.wait().gave(1)
            heard = tool.hear()
        heard.failed("EPIPE", "cannot listen", "is lost")
        tool.now().failed("EPIPE", "cannot read the clock", "connection to server")
        other.queue(1, 1, 10).failed("EPIPE", "cannot queue a run")
        other.queue(1, 1, 10).failed("EPIPE", "cannot queue a run")
        server.start()
        other.queue(1, 1, 10).gave(0)
        tool.take("a").gave(1, "1-1")
        # It listens again, and looks: something may have happened meanwhile.
        tool.wait().gave(1)
        tool.hear().gave(0)
        tool.wait().gave(0)
        other.queue(1, 2, 10).gave(0)
        tool.wait().gave(1)


@on_postgres
def a_connection_that_the_server_ends(server, start):
    url = server.make_database()
    with start(url) as tool:
        tool.open().gave(0)
        tool.add(1).gave(0)
        tool.listen().gave(0)
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'bawn'")
        tool.queue(1, 1, 10).failed("EPIPE", "terminating connection")
        tool.queue(1, 1, 10).gave(0)
        tool.take("a").gave(1, "1-1")


@on_postgres
def a_password_is_not_repeated(server, start):
    server.sql("CREATE ROLE somebody LOGIN PASSWORD 'geheim'")
    hba = server.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text("local all somebody scram-sha-256\n" + before)
    server.process.send_signal(signal.SIGHUP)
    socket_at = f"?host={server.folder}"
    try:
        for url in (f"postgresql://somebody:geheimnis@/postgres{socket_at}",
                    "postgresql://somebody:geheim@nowhere.invalid/postgres", "postgresql://somebody:geheim@[::1/d",
                    "postgresql://somebody:geheim@h:port/d", "postgresql://somebody:geheim%zz@h/d",
                    "postgresql://somebody:geheim@h/d?what=geheim", "postgresql://h/d?password=geheim&x",
                    f"postgresql://somebody:geheim@/geheim{socket_at}", "postgres://somebody:geheim@/d?host=/geheim"):
            with start(url) as tool:
                said = tool.open()
                assert said.number < 0 and said.text.startswith("cannot open the store: "), said.text
                assert "geheim" not in said.text, said.text
        with start(f"postgresql://somebody:geheim@/postgres{socket_at}") as tool:
            # The right one is let in, as far as the tables.
            tool.open().failed("EACCES", "permission denied")
    finally:
        hba.write_text(before)
        server.process.send_signal(signal.SIGHUP)


@on_postgres
def a_row_that_is_locked(server, start):
    url = server.make_database()
    with start(url) as tool:
        tool.open().gave(0)
        for number in (1, 2):
            tool.add(number).gave(0)
            tool.queue(number, 1, 10).gave(0)
        locker = server.start_sql(url, "BEGIN; SELECT 1 FROM bawn_sessions ORDER BY seq LIMIT 1 FOR UPDATE;")
        try:
            # The older run's is passed over; nobody waits.
            tool.take("a").gave(1, "2-1")
            tool.take("b").gave(0)
            tool.queue(1, 2, 10).failed("EBUSY", "locked")
        finally:
            locker.communicate("ROLLBACK;")
        tool.take("b").gave(1, "1-1")


@on_postgres
def tables_of_a_newer_version(server, start):
    url = server.make_database()
    with start(url) as tool:
        tool.open().gave(0)
        server.sql("INSERT INTO bawn_schema VALUES (99, 0)", url)
        tool.open().failed("EPROTO", "version 99, and this bawn knows")
