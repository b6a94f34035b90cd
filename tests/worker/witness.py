"""What the database itself saw, and where it can be made to wait.

Triggers of the tests write down every change of a run, a lease and a workspace, with what the session's
row says at that moment. So it is not the store's code alone that says what the store did.

A gate is a place in a transaction of the store's where it waits while a test has closed it.
"""

import re
import subprocess
import time

# By name: the table, when, and whose transaction it is.
GATES = {
    "taking": ("bawn_runs", "OLD.state = 0 AND NEW.state = 1", "NEW.worker"),
    "reporting": ("bawn_runs", "OLD.state = 1 AND NEW.state IN (2, 3)", "NEW.worker"),
    "moving": ("bawn_sessions", "OLD.workspace <> NEW.workspace", "NEW.worker"),
    "releasing": ("bawn_sessions", "OLD.worker <> '' AND NEW.worker = '' AND OLD.running = 0", "OLD.worker"),
    "renewing": ("bawn_workers", "OLD.seen_ms < NEW.seen_ms", "NEW.name"),
}

SQL = """
CREATE TABLE test_runs (seq SERIAL, run TEXT, was BIGINT, is_now BIGINT, token BIGINT, worker TEXT,
                        newest BIGINT, holder TEXT);
CREATE FUNCTION test_see_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO test_runs (run, was, is_now, token, worker, newest, holder)
        SELECT NEW.id, OLD.state, NEW.state, NEW.token, NEW.worker, s.token, s.worker
        FROM bawn_sessions s WHERE s.id = NEW.session;
    RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER test_see_run AFTER UPDATE ON bawn_runs DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION test_see_run();
CREATE TABLE test_leases (seq SERIAL, session TEXT, was BIGINT, is_now BIGINT, workspace BIGINT, moved BIGINT);
CREATE FUNCTION test_see_lease() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO test_leases (session, was, is_now, workspace, moved)
        VALUES (NEW.id, OLD.token, NEW.token, OLD.workspace, NEW.workspace);
    RETURN NULL; END $$;
CREATE TRIGGER test_see_lease AFTER UPDATE ON bawn_sessions FOR EACH ROW
    WHEN (OLD.token <> NEW.token OR OLD.workspace <> NEW.workspace) EXECUTE FUNCTION test_see_lease();
"""

GATE = """
CREATE FUNCTION test_gate_{name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    PERFORM set_config('application_name', 'at {name} ' || {whose}, false);
    PERFORM pg_advisory_xact_lock_shared({number});
    PERFORM set_config('application_name', 'bawn', false);
    RETURN NEW; END $$;
CREATE TRIGGER test_gate_{name} BEFORE UPDATE ON {table} FOR EACH ROW WHEN ({when})
    EXECUTE FUNCTION test_gate_{name}();
"""

NUMBERS = {name: number for number, name in enumerate(GATES, 1)}


class Cut(Exception):
    """The database is not there."""


class Client:
    """A connection; made anew when it is needed and was lost."""

    def __init__(self, server, url):
        self.server, self.url, self.psql = server, url, None

    def ask(self, text):
        """Rows, each a list of texts. A connection that was lost meanwhile is made anew, and asked again."""
        was_there = self.psql is not None
        try:
            return self.ask_once(text)
        except Cut:
            if not was_there:
                raise
        return self.ask_once(text)

    def ask_once(self, text):
        if self.psql is None:
            words = [*self.server.psql(self.url), "-F", "\t"]
            self.psql = subprocess.Popen(self.server.words(*words), env=self.server.environ(),
                                         cwd=self.server.folder, text=True, stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        rows = []
        try:
            self.psql.stdin.write(f"{text};\n\\echo all-of-it\n")
            self.psql.stdin.flush()
            for line in self.psql.stdout:
                if line == "all-of-it\n":
                    return [row.split("\t") for row in rows]
                rows.append(line.rstrip("\n"))
        except BrokenPipeError:
            pass
        self.close()
        raise Cut("\n".join(rows))

    def ask_one(self, text):
        return self.ask(text)[0][0]

    def close(self):
        if self.psql:
            self.psql.kill()
            self.psql.communicate()
            self.psql = None


def install(client):
    client.ask(SQL)
    for name, (table, when, whose) in GATES.items():
        client.ask(GATE.format(name=name, number=NUMBERS[name], table=table, when=when, whose=whose))


class Gate:
    """Closed while one is in it. What comes meanwhile waits, as long as the store lets it: ten seconds."""

    def __init__(self, server, url, name):
        self.name, self.client = name, Client(server, url)

    def __enter__(self):
        self.client.ask_once(f"SELECT pg_advisory_lock({NUMBERS[self.name]})")
        return self

    def who_waits(self):
        """The name of a worker, or None."""
        rows = self.client.ask("SELECT application_name FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid "
                               f"WHERE datname = current_database() AND application_name LIKE 'at {self.name} %' AND "
                               "locktype = 'advisory' AND NOT granted LIMIT 1")
        return re.sub("^at [a-z]+ ", "", rows[0][0]) if rows else None

    def wait_for(self, seconds):
        """Who waits, or None where nobody does in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = self.who_waits()
            if name:
                return name
            time.sleep(0.005)
        return None

    def __exit__(self, *_):
        self.client.close()
