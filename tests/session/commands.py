#!/usr/bin/env python3
"""bawn session create, list, show, diff, apply, discard, rm and sweep, as root and as a user.

    commands.py BAWN BREAKABLE [PART OF A NAME]        prints TAP
"""

import contextlib
import json
import os
import pathlib
import re
import sqlite3
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cage"))
import place as cage  # noqa: E402
from sessions import Sessions  # noqa: E402

case, of_root, expect, Skip = cage.case, cage.of_root, cage.expect, cage.Skip


# --- making ---

@case
def a_session_is_there_before_its_first_run(place):
    """A-09: and nothing of it is left afterwards."""
    s = Sessions(place)
    id_ = s.create("--name", "web", "--network", "none")
    assert s.names() == [id_] and not (s.root / id_ / "new").exists()
    spec = json.loads((s.root / id_ / "spec.json").read_text())
    assert spec["network.mode"] == "none" if "network.mode" in spec else spec["network"]["mode"] == "none"
    assert s.workspace(id_).stat().st_uid == place.uid
    assert s.events() == [("session_created", id_, None)]
    cage.output(s.run("rm", "web"), id_ + "\n")
    assert s.names() == [] and s.events()[1:] == [("session_removed", id_, "removed")]
    assert s.json("list")["sessions"] == []


@case
def ids_cannot_be_guessed(place):
    s = Sessions(place)
    ids = [s.create() for _ in range(8)]
    assert len({id_[:8] for id_ in ids}) == 8 and len({id_[-8:] for id_ in ids}) == 8


@case
def names_are_checked(place):
    s = Sessions(place)
    for name in ("", ".", "..", "../x", "a/b", "-rf", "a b", "a\nb", "\x1b[2J", "é", "x" * 65, "deadbeef", "a" * 32):
        done = expect(s.run("create", "--name=" + name), 2, "cannot name a session")
        assert len(done.stderr.splitlines()) == 1 and "\x1b" not in done.stderr and not done.stdout, done.stderr
    assert s.names() == [] and not s.state.exists()
    id_ = s.create("--name", "x" * 64)
    expect(s.run("create", "--name", "x" * 64), 1, "cannot create session 'xxx")
    assert s.names() == [id_], "the second left its folder"


@case
def a_spec_that_cannot_be_planned_makes_no_session(place):
    s = Sessions(place)
    expect(s.run("create", "--network", "bogus"), 125, "network.mode: 'bogus'")
    error = s.json("create", "--network", "bogus", status=125)
    assert (error["version"], error["error"]) == (1, "the spec has errors"), error
    expect(s.run("create", "--ttl", "soon"), 125, "is not a duration")
    expect(s.run("create", "make"), 2, "cannot create a session with a command")
    expect(s.run("create", "--project", "/nowhere"), 125, "cannot use the project")
    expect(s.run("create", *place.spec("engine: bogus\n")), 125, "engine")
    expect(s.run("create", env={"BAWN_SANDBOX_NETWROK": "none"}), 2, "did you mean BAWN_SANDBOX_NETWORK?")
    assert s.names() == []


@case
def how_long_it_is_kept_is_said_by_option_setting_or_spec(place):
    s = Sessions(place)
    for words, env, wanted in (((), {}, 3600), (("--ttl", "2h"), {}, 7200),
                               (place.spec("session: {ttl: 3h}\n"), {}, 3 * 3600),
                               ((), {"BAWN_SANDBOX_TTL_SECONDS": "90"}, 90),
                               (("--ttl", "2h"), {"BAWN_SANDBOX_TTL_SECONDS": "90"}, 7200)):
        made = s.json("create", *words, env=env)
        shown = expect(s.run("show", made["session"]), 0).stdout
        seconds = {"1h": 3600, "2h": 7200, "3h": 3 * 3600, "1m30s": 90}[re.search(r"kept for +(\S+)", shown)[1]]
        assert seconds == wanted, (words, env, shown)


@case
def the_root_is_where_it_is_said_to_be(place):
    s = Sessions(place)
    elsewhere = place.make("elsewhere", 0o700)
    id_ = s.create(env={"BAWN_SANDBOX_ROOT": str(elsewhere)})
    assert (elsewhere / id_).exists() and not s.root.exists()
    assert s.json("list")["sessions"][0]["state"] == "elsewhere"
    expect(s.run("rm", id_), 1, "are in another root")
    expect(s.run("diff", id_), 1, "are in another root")
    expect(s.run("rm", id_, env={"BAWN_SANDBOX_ROOT": str(elsewhere)}), 0)
    assert not (elsewhere / id_).exists()


@case
def no_cage_sees_the_folders_of_sessions(place):
    """C-01: what one session has is in no other's cage, nor in a run's, by whatever path."""
    s = Sessions(place)
    elsewhere = place.make("elsewhere/root", 0o700)
    env = {"BAWN_SANDBOX_ROOT": str(elsewhere)}
    link = place.home / "link"
    link.symlink_to(elsewhere)
    for source in (elsewhere, elsewhere.parent, elsewhere / "x", link):
        bind = ["-v", f"{source}:/mnt/x"]
        if source.name == "x":
            place.make(source)
        expect(s.run("create", *bind, env=env), 125, "the folders of all sessions")
        expect(s.run("create", *bind), 0)
    expect(s.run("create", "--project", elsewhere, env=env), 125, "the folders of all sessions")
    id_ = s.create()
    expect(s.run("create", "-v", f"{s.root / id_}:/mnt/x"), 125, "bawn's own state")


# --- finding ---

@case
def a_session_is_found_by_id_by_its_beginning_and_by_name(place):
    s = Sessions(place)
    ids = [s.create("--name", name) for name in ("web", "db")]
    for word, wanted in ((ids[0], ids[0]), (ids[0][:12], ids[0]), ("web", ids[0]), ("db", ids[1])):
        assert s.json("show", word)["session"] == wanted
    for word in ("nope", "0" * 32, "../web", "\x1b[2J", ""):
        done = expect(s.run("show", word), 1, "cannot find session '")
        assert "\x1b" not in done.stderr
    listed = s.json("list")["sessions"]
    assert [(x["session"], x["name"], x["state"]) for x in listed] == [
        (ids[0], "web", "open"), (ids[1], "db", "open")], listed
    text = expect(s.run("list"), 0).stdout.splitlines()
    assert len(text) == 2 and text[0].startswith(ids[0] + "  web ") and str(place.project) in text[0]


@case
def a_session_shows_its_runs_the_newest_first(place):
    s = Sessions(place)
    id_, other = s.create("--name", "web"), s.create("--name", "db")
    expect(s.run("exec", "web", "--", "sh", "-c", "echo new >made"), 0)
    expect(s.run("exec", "db", "--", "true"), 0)
    expect(s.run("exec", "web", "--", "false"), 1)
    queued = expect(s.run("exec", "--queue", "web", "--", "true"), 0).stdout.strip()
    text = expect(s.run("show", "web"), 0).stdout
    assert re.search(r"^created +\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", text, re.M) and "place" not in text, text
    rows = re.findall(r"^\S+  (exit \d) +\S+ +(\+\d ~\d -\d) +(.*)$", text, re.M)
    assert rows == [("exit 1", "+1 ~0 -0", "false"), ("exit 0", "+1 ~0 -0", "sh -c 'echo new >made'")], text
    assert re.search(rf"^# queued runs\n{queued}  queued$", text, re.M), text
    shown = s.json("show", "web")
    assert [(x["session"], x["command"]) for x in shown["records"]] == [(id_, rows[0][2]), (id_, rows[1][2])], shown
    assert [x["run"] for x in shown["runs"]] == [queued], shown
    assert [x["session"] for x in s.json("show", "db")["records"]] == [other]
    # On a terminal columns have names, and a row is as long as the terminal is wide.
    text = expect(s.run("list", "--color", "always"), 0).stdout.splitlines()
    assert "name" in text[0] and text[1].startswith(id_[:12] + "  web "), text


@case
def without_a_store_there_is_none_and_none_is_made(place):
    s = Sessions(place)
    expect(s.run("list"), 0, "there is no session")
    assert s.json("list") == {"version": 1, "sessions": []}
    expect(s.run("show", "web"), 1, "cannot find session 'web'")
    expect(s.run("rm", "web"), 1, "cannot find session 'web'")
    expect(s.run("sweep"), 0, "removed 0 sessions, 0 failed")
    expect(place.run("diff", "web"), 0)
    assert not s.state.exists()


@case
def a_row_without_a_folder_says_so(place):
    s = Sessions(place)
    id_ = s.create()
    (s.root / id_).rename(place.home / "aside")
    assert s.json("show", id_)["state"] == "no folder"
    assert s.json("list")["sessions"][0]["state"] == "no folder"
    expect(s.run("diff", id_), 1, "is not here")
    done = expect(s.run("exec", id_, "--", "true"), 125, "are not on this machine")
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["bawn:", "hint:"], done.stderr
    expect(s.run("rm", id_), 0)
    assert s.json("list")["sessions"] == []


@case
def wrong_use_is_said_in_a_sentence(place):
    s = Sessions(place)
    for words, said in (((), "say what to do"), (("crate",), "did you mean create?"), (("x",), "session --help"),
                        (("show",), "name one session"), (("show", "a", "b"), "name one session"),
                        (("rm",), "wants the sessions"), (("diff",), "wants a session"),
                        (("list", "x"), "takes no 'x'"), (("sweep", "x"), "takes no 'x'"),
                        (("list", "--all"), "bawn session list --help")):
        done = expect(s.run(*words), 2, said)
        assert len([line for line in done.stderr.splitlines() if not line.startswith("hint: ")]) == 1, done.stderr
    for word in ("show", "diff", "apply", "discard", "stop", "rm"):
        expect(s.run(word), 2, "hint: ", "bawn session list")
    for word in ("create", "exec", "list", "show", "diff", "apply", "discard", "stop", "rm", "sweep"):
        assert f"bawn session {word}" in expect(s.run("--help"), 0).stdout
        assert expect(s.run(word, "--help"), 0).stdout.startswith(f"bawn session {word} "), word


# --- what it wrote ---

@case
def what_a_session_wrote_is_shown_applied_and_shown_again(place):
    s = Sessions(place)
    place.write("project/old", "old\n")
    id_ = s.create("--name", "web")
    s.fake(id_, {"new": "new\n", "old": "changed\n"})
    for words in (("session", "diff", "web"), ("diff", "web"), ("diff", id_), ("diff", id_[:10])):
        done = expect(place.run(*words), 0, "+new", "-old", "+changed", f"# session {id_}")
        assert "interrupted" not in done.stdout + done.stderr
    assert expect(s.run("diff", "web", "--name-only", "new"), 0).stdout == "new\n"
    assert not (s.workspace(id_) / "effects.json").exists(), "the session goes on"
    expect(s.run("apply", "web", "new"), 0)
    assert (place.project / "new").read_text() == "new\n" and (place.project / "old").read_text() == "old\n"
    assert expect(s.run("diff", "web", "--name-only"), 0).stdout == "old\n"
    told = s.json("apply", "web")
    assert told["session"] == id_ and (place.project / "old").read_text() == "changed\n"
    assert not (s.workspace(id_) / "layer").exists() and (s.workspace(id_) / "home").exists()
    expect(s.run("diff", "web"), 0, f"session {id_} changed nothing")
    assert s.events()[1:] == [("apply", id_, None)] * 2
    # And on from there: what was applied is what the project is.
    s.fake(id_, {"old": "changed again\n"})
    expect(s.run("apply", "web"), 0)
    assert (place.project / "old").read_text() == "changed again\n"


@case
def what_a_session_wrote_is_dropped(place):
    s = Sessions(place)
    id_ = s.create("--name", "web")
    for words in (("session", "discard", "web"), ("discard", "web"), ("discard", id_)):
        s.fake(id_, {"new": "new\n"})
        place.write(s.workspace(id_) / "home" / "kept", "kept")
        expect(place.run(*words), 0, f"discarded what session {id_} wrote: 1 file")
        assert not (s.workspace(id_) / "layer").exists() and (s.workspace(id_) / "home" / "kept").exists()
    assert not (place.project / "new").exists()
    expect(s.run("discard", "web"), 0, f"nothing that session {id_} wrote is kept any more")
    assert s.events()[1:] == [("discard", id_, None)] * 3


@case
def a_path_of_the_same_name_is_a_path(place):
    s = Sessions(place)
    id_ = s.create("--name", "new")
    s.fake(id_, {"new": "new\n"})
    expect(place.run("diff", "new"), 0, f"# session {id_}")
    place.write("project/new", "mine\n")
    done = expect(place.run("diff", "new"), 0)
    assert id_ not in done.stdout, "a file that is there is meant"


@case
def what_is_at_work_is_seen_and_not_touched(place):
    s = Sessions(place)
    id_ = s.create("--name", "web")
    s.fake(id_, {"new": "new\n"})
    with s.busy(id_):
        expect(s.run("diff", "web"), 0, "it is still going on")
        for verb in ("apply", "discard"):
            expect(s.run(verb, "web"), 1, f"session {id_}: a command is running in it")
        expect(s.run("rm", "web", "--yes"), 125, "cannot stop the runs of the session")
        assert s.json("show", "web")["state"] == "stopped", "it is a session still"
    assert (s.workspace(id_) / "layer" / "upper" / "new").exists()
    expect(s.run("rm", "web", "--yes"), 0)


@case
def commands_and_what_becomes_of_their_work_take_turns(place):
    """Real ones: each goes on from the project as the last apply, or discard, left it."""
    s = Sessions(place)
    place.write("project/old", "old\n")
    id_ = s.create("--name", "web")

    def do(script, wanted="", said=None):
        done = expect(s.run("exec", "web", "--", "sh", "-c", script), 0)
        assert done.stdout == wanted, done.stdout + done.stderr
        if said is not None:
            told = " in session web; see: bawn session diff web, then: bawn session apply web"
            assert done.stderr == (f"bawn: files: {said}{told}\n" if said else ""), done.stderr

    do("echo k >~/kept; echo t >/tmp/t", said="")
    do("echo new >new; echo one >old; mkdir d; touch d/f d/g", said="1 changed, 3 added")
    # It is said after those commands that changed something.
    do("cat new d/* ~/kept; echo l >~/kept; echo k >~/kept", "new\nk\n", said="")
    do("rm d/g", said="1 changed, 2 added")
    expect(s.run("exec", "-q", "web", "--", "touch", "d/f"), 0)
    do("rm -r d", said="1 changed, 1 added")
    done = expect(place.run("diff"), 0, "no changes of a run", "hint: session web has changes: bawn session diff web")
    assert not expect(place.run("diff", "-q"), 0).stderr
    assert expect(s.run("diff", "web", "--name-only"), 0).stdout == "new\nold\n"
    assert (place.project / "old").read_text() == "old\n"
    expect(s.run("apply", "web"), 0)
    assert "hint: " not in expect(place.run("diff"), 0).stderr
    do("cat old ~/kept /tmp/t; echo two >old", "one\nk\nt\n")
    expect(s.run("apply", "web"), 0, "1 applied")
    do("echo three >old")
    expect(s.run("discard", "web"), 0)
    do("cat old ~/kept; rm new", "two\nk\n")
    (place.project / "old").write_text("mine\n")
    expect(s.run("apply", "web"), 0)
    assert (place.project / "old").read_text() == "mine\n" and not (place.project / "new").exists()
    expect(s.run("rm", id_), 0)
    assert s.names() == []


@case
def what_runs_is_ended_before_it_is_removed(place):
    s = Sessions(place)
    ids = [s.create(), s.create()]
    script = "echo up >up; trap '' TERM; while :; do sleep 1; done"
    running = [place.start("session", "exec", id_, "--", "sh", "-c", script) for id_ in ids]
    cage.wait_until(lambda: all((s.workspace(id_) / "layer/upper/up").exists() for id_ in ids), 10, "both run")
    expect(s.run("rm", ids[0], "--yes"), 0)
    s.expire(ids[1])
    cage.output(s.run("sweep", "--discard"), "removed 1 session, 0 failed\n")
    for process in running:
        process.communicate(timeout=20)
        assert process.returncode != 0
    cage.wait_until(lambda: not (cage.reap(), cage.descendants())[1], 5, "nothing of them runs any more")
    assert s.names() == [] and s.json("list")["sessions"] == []


# --- removing ---

@case
def each_that_is_named_is_removed_whatever_the_others_do(place):
    s = Sessions(place)
    ids = [s.create() for _ in range(3)]
    with s.busy(ids[1]):
        done = expect(s.run("rm", ids[0], "nope", ids[1], ids[2]), 125, "cannot find session 'nope'", "does not end")
    assert done.stdout == f"{ids[0]}\n{ids[2]}\n" and s.names() == [ids[1]]
    assert s.json("rm", ids[1]) == {"version": 1, "removed": [ids[1]]}


@case
def a_sweep_removes_what_is_expired_and_nothing_else(place):
    s = Sessions(place)
    ids = [s.create() for _ in range(4)]
    s.expire(*ids[:2])
    assert [x["state"] for x in s.json("list")["sessions"]] == ["expired", "expired", "open", "open"]
    done = expect(s.run("sweep", "--dry-run"), 0, "would remove 2 sessions, 0 failed")
    assert all(id_ in done.stdout for id_ in ids[:2]) and len(s.names()) == 4
    cage.output(s.run("sweep"), "removed 2 sessions, 0 failed\n")
    assert s.names() == sorted(ids[2:])
    assert s.events()[4:] == [("session_removed", id_, "expired") for id_ in ids[:2]]
    assert s.json("sweep")["removed"] == 0


@case
def what_nobody_applied_is_not_swept_in_silence(place):
    s = Sessions(place)
    lost, empty, applied = ids = [s.create() for _ in range(3)]
    for id_ in (lost, applied):
        expect(s.run("exec", id_, "--", "sh", "-c", "echo work >work"), 0)
    expect(s.run("exec", empty, "--", "true"), 0)
    expect(s.run("apply", applied), 0)
    s.expire(*ids)
    done = expect(s.run("sweep"), 0, f"session {lost[:8]} has expired, and is kept", "not applied: work", "--discard")
    assert "removed 2 sessions" in done.stdout and s.names() == [lost], done.stdout
    told = s.json("sweep")
    assert told["kept"] == 1 and told["removed"] == 0 and told["sessions"][0]["why"] == "kept", told
    (place.project / "work").unlink()
    expect(s.run("apply", lost), 0)
    assert (place.project / "work").read_text() == "work\n"
    expect(s.run("exec", s.create("--name", "web"), "--", "sh", "-c", "echo more >more"), 0)
    done = expect(s.run("rm", "web"), 1, "cannot remove session ", "it has changes that were not applied (more)", "hint: --yes")
    assert not done.stdout and len(s.names()) == 2
    expect(s.run("diff", "web"), 0, "+more")
    expect(s.run("rm", "web", "--yes"), 0, "with changes that were not applied: more")
    told = s.create()
    expect(s.run("exec", told, "--", "sh", "-c", "echo more >more"), 0)
    s.expire(told)
    assert s.json("sweep", "--discard")["removed"] == 2 and s.names() == []


@case
def a_failure_never_stops_the_sweep(place):
    s = Sessions(place)
    ids = [s.create() for _ in range(5)]
    s.expire(*ids)
    with s.busy(ids[0]), s.busy(ids[3]):
        done = expect(s.run("sweep"), 1, "removed 3 sessions, 2 failed", f"cannot remove session {ids[0]}",
                      f"cannot remove session {ids[3]}")
        assert len(done.stderr.splitlines()) == 2, done.stderr
        assert s.names() == sorted([ids[0], ids[3]])
        assert s.json("show", ids[0])["state"] == "removing"
    told = s.json("sweep")
    assert told["removed"] == 2 and told["failed"] == 0 and s.names() == []


@case
def what_a_crash_left_is_swept(place):
    """A folder whose row was never written, after an hour; and one whose removal was cut short."""
    s = Sessions(place)
    kept, began, orphan = s.create(), s.create(), s.create()
    foreign = s.create()  # of another store: it was confirmed there
    with contextlib.closing(sqlite3.connect(s.state / "store.db")) as store:
        store.execute("delete from bawn_sessions where id in (?, ?)", (orphan, foreign))
        store.execute("update bawn_sessions set state = 2 where id = ?", (began,))
        store.commit()
    s.own()
    (s.root / began / "spec.json").unlink()
    half = place.make(s.root / ("ab" * 16 + ".new") / "w", 0o700).parent
    marks = [place.write(s.root / id_ / "new", "") for id_ in (orphan, kept)]
    cage.output(s.run("sweep"), "removed 1 session, 0 failed\n")
    assert s.names() == sorted([kept, orphan, foreign, half.name]), "somebody may be making them just now"
    for path in (half, *marks):
        os.utime(path, (0, 0))
    expect(s.run("sweep", "--dry-run"), 0, "would remove 1 session", orphan)
    cage.output(s.run("sweep"), "removed 1 session, 0 failed\n")
    assert s.names() == sorted([kept, foreign]), "a session of another store was removed, or one of this"
    assert not marks[1].exists(), "it is confirmed"


@case
def two_sweeps_at_once_count_each_session_once(place):
    s = Sessions(place)
    ids = [s.create() for _ in range(12)]
    s.expire(*ids)
    started = [place.start("session", "sweep", "--json") for _ in range(4)]
    told = [process.communicate()[0] for process in started]
    assert sum(json.loads(text)["removed"] for text in told) == 12, told
    assert sum(json.loads(text)["failed"] for text in told) == 0 and s.names() == []
    assert sorted(s.events()[12:]) == sorted(("session_removed", id_, "expired") for id_ in ids)


if __name__ == "__main__":
    cage.main()
