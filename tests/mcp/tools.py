#!/usr/bin/env python3
"""The six tools of bawn mcp: what they do, and that a shell and a file tool meet one and the same wall.

    tools.py BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import json
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server import LEGACY, TOOLS, Server, cage, expect, sessions  # noqa: E402

case, for_root = sessions.case, sessions.for_root
SECRET = "the-secret-of-the-host"


# --- what they do ---

@for_root
@case
def each_tool_does_what_it_says(place):
    place.write("project/src/a.c", "int a;\nint b;\n")
    for era in (LEGACY[0], "2026-07-28"):
        with Server(place, era=era) as s:
            assert re.fullmatch(r"\s*1\tint a;\n\s*2\tint b;\n", s.call("read", path="src/a.c").good())
            assert re.fullmatch(r"\s*2\tint b;\n", s.call("read", path="/work/src/a.c", offset=2, limit=1).good())
            s.call("write", path="new/deep/file", content="é\n\"\\\u2028\n").good()
            assert s.sh("cat new/deep/file").good() == "é\n\"\\\u2028\n"
            s.call("edit", path="src/a.c", old_string="int b;", new_string="long c;").good()
            assert s.sh("cat src/a.c").good() == "int a;\nlong c;\n"
            assert "src/a.c" in s.call("glob", pattern="**/*.c").good()
            assert "src/a.c" in s.call("grep", pattern="lo.g c", output_mode="files_with_matches").good()
            assert "2:long c;" in s.call("grep", pattern="LONG", path="src", output_mode="content", **{"-i": True}).good()
    assert (place.project / "src" / "a.c").read_text() == "int a;\nint b;\n"


@case
def what_they_cannot_do_is_said_in_a_sentence(place):
    place.write("project/a", "x x\n")
    with Server(place) as s:
        rows = [("read", {"path": "none"}, "none"), ("read", {}, "path"), ("write", {"path": "x"}, "content"),
                ("edit", {"path": "a", "old_string": "x", "new_string": "y"}, "replace_all"),
                ("edit", {"path": "a", "old_string": "z", "new_string": "y"}, "is not in it"),
                ("glob", {}, "pattern"), ("grep", {"pattern": "("}, "("), ("read", {"path": "a", "pth": 1}, "pth")]
        for tool, arguments, part in rows:
            result = s.call(tool, **arguments)
            assert result.run and result.status in (1, 2) and result.bad(part), (tool, arguments)
        assert s.sh("cat a; ls").good() == "x x\na\n"


@case
def large_arguments_and_results_pass_whole(place):
    text = "".join(f"{i:09}\n" for i in range(500000))
    with Server(place) as s:
        s.call("write", path="large", content=text).good()
        assert s.sh("wc -c <large; tail -1 large").good() == "5000000\n000499999\n"
        assert s.call("read", path="large", offset=499999, limit=5).good().endswith("000499999\n")
        assert len(s.call("grep", pattern="9$", path="large", output_mode="content").text) > 100000


@for_root
@case
def edits_beside_each_other_lose_nothing(place):
    place.write("project/sub/a", "".join(f"line {i}\n" for i in range(16)))
    for keys in ("", "project: {mode: writable}\n", "session: {background: true}\n"):
        with Server(place, *place.spec(keys)) as s:
            numbers = [s.begin("edit", path="sub/a", old_string=f"line {i}\n", new_string=f"changed {i}\n")
                       for i in range(16)]
            for number in numbers:
                said = s.answer(number)["result"]
                assert not said["isError"], (keys, said)
            assert s.sh("cat sub/a").good() == "".join(f"changed {i}\n" for i in range(16)), keys
            place.write("project/sub/a", "".join(f"line {i}\n" for i in range(16)))


# --- attacks, each with its twin ---

def attack(s, tool, folder):
    """What a tool can get out of a folder, or do to it: what it said."""
    arguments = {
        "bash": {"command": f"cat {folder}/secret; echo broken >{folder}/bash"},
        "read": {"path": f"{folder}/secret"},
        "write": {"path": f"{folder}/write", "content": "broken\n"},
        "edit": {"path": f"{folder}/secret", "old_string": SECRET, "new_string": "broken"},
        "glob": {"pattern": "s*t", "path": folder},
        "grep": {"pattern": SECRET[:10] + ".*", "path": folder, "output_mode": "content"},
    }[tool]
    return s.call(tool, **arguments).text


def ways(place, outside):
    """Names by which it may be tried to get there."""
    place.project.joinpath("link").symlink_to(outside)
    return [str(outside), f"/work/../{outside}", f"/proc/self/root{outside}", "/work/link", "link",
            f"/proc/1/root{outside}"]


def fell(tool, text, outside):
    """Has the attack done what it was for?"""
    if tool in ("write", "bash") and (outside / tool).exists():
        return True
    if (outside / "secret").read_text() != SECRET + "\n":
        return True
    return SECRET in text if tool != "glob" else "secret" in text


def try_all(place, *options):
    """Which tools got through, by which way."""
    outside = place.make("outside")
    through = set()
    with Server(place, *options) as s:
        for way in ways(place, outside):
            for tool in TOOLS:
                for path in outside.iterdir():
                    path.unlink()
                place.write("outside/secret", SECRET + "\n")
                if fell(tool, attack(s, tool, way), outside):
                    through.add((tool, way))
    place.project.joinpath("link").unlink()
    return through


@for_root
@case
def no_tool_gets_at_what_is_outside(place):
    assert try_all(place) == set()


@for_root
@case
def where_a_bind_declares_it_every_tool_does(place):
    outside = place.make("outside")
    through = try_all(place, "-v", f"{outside}:{outside}:rw")
    assert {tool for tool, way in through if way == str(outside)} == set(TOOLS), through
    assert {tool for tool, way in through if way == "/work/link"} == set(TOOLS), through


# --- one policy ---

# The same deed by a shell and by a tool.
DEEDS = {
    "read": [("bash", {"command": "cat {path}"}), ("read", {"path": "{path}"}),
             ("grep", {"pattern": "text", "path": "{path}", "output_mode": "content"})],
    "write": [("bash", {"command": "echo new >{path}"}), ("write", {"path": "{path}", "content": "new\n"})],
    "edit": [("bash", {"command": "sed -i s/text/new/ {path}"}),
             ("edit", {"path": "{path}", "old_string": "text", "new_string": "new"})],
    "list": [("bash", {"command": "ls -d {path}"}), ("glob", {"pattern": "{path}"})],
}
PROTECT = "project: {mode: writable, protect: [kept]}\n"
READ = "project: {read_allowlist: [$PROJECT/shown/**], write_allowlist: [$PROJECT/shown/gen/**]}\n"
WRITE = "project: {write_allowlist: [$PROJECT/shown/**]}\n"

# What the spec says, what is tried, with which path, and whether it may be done.
POLICIES = [
    ("", "read", "a", True), ("", "write", "a", True), ("", "edit", "shown/a", True), ("", "list", "kept/a", True),
    ("", "write", ".git/hooks/pre-commit", True),  # captured: it is held when it is applied
    ("", "read", "/etc/shadow", False), ("", "write", "/etc/passwd", False), ("", "write", "/usr/bin/x", False),
    ("", "edit", "/etc/passwd", False), ("", "write", "/run/bawn/bawn", False), ("", "write", "/tmp/a", True),
    ("project: {mode: read_only}\n", "read", "a", True), ("project: {mode: read_only}\n", "write", "a", False),
    ("project: {mode: read_only}\n", "edit", "shown/a", False),
    ("project: {mode: read_only}\n", "write", "shown/new", False),
    (PROTECT, "write", "a", True), (PROTECT, "write", "kept/a", False), (PROTECT, "edit", "kept/a", False),
    (PROTECT, "read", "kept/a", True), (PROTECT, "write", ".git/hooks/pre-commit", False),
    (READ, "read", "a", False), (READ, "list", "a", False), (READ, "read", "shown/a", True),
    (READ, "write", "shown/a", False), (READ, "write", "shown/gen/a", True),
    (WRITE, "read", "a", True), (WRITE, "write", "a", False), (WRITE, "write", "shown/a", True),
    (WRITE, "edit", "kept/a", False),
    ("binds: ['OUT:/srv/out']\n", "read", "/srv/out/a", True),
    ("binds: ['OUT:/srv/out']\n", "write", "/srv/out/a", False),
    ("binds: ['OUT:/srv/out']\n", "edit", "/srv/out/a", False),
    ("binds: ['OUT:/srv/out:rw']\n", "write", "/srv/out/a", True),
    ("binds: ['OUT:/srv/out:rw']\n", "edit", "/srv/out/a", True),
]


def fill(place):
    for name in ("project/a", "project/shown/a", "project/shown/gen/a", "project/kept/a", "out/a",
                 "project/.git/hooks/pre-commit"):
        place.write(name, "text\n")
    place.write("project/.git/HEAD", "ref: refs/heads/main\n")


def do(s, tool, arguments, path):
    arguments = {key: value.replace("{path}", path) for key, value in arguments.items()}
    result = s.call(tool, **arguments)
    # A search that finds nothing is a good answer to a question.
    return not result.is_error and not result.text.startswith("(nothing matches")


@for_root
@case
def a_shell_and_a_file_tool_may_do_the_same(place):
    wrong = []
    for text in dict.fromkeys(row[0] for row in POLICIES):
        out = place.make("out")
        with Server(place, *place.spec(text.replace("OUT", str(out)))) as s:
            for _, deed, path, may in (row for row in POLICIES if row[0] == text):
                for tool, arguments in DEEDS[deed]:
                    fill(place)
                    if deed == "edit":  # what was edited before has another text
                        s.sh(f"test ! -w {path} || echo text >{path}")
                    if do(s, tool, arguments, path) != may:
                        wrong.append((text, deed, path, tool, may))
    assert not wrong, "\n".join(map(str, wrong))


@for_root
@case
def a_refusal_is_explained_to_the_model(place):
    with Server(place, *place.spec(PROTECT)) as s:
        fill(place)
        for tool, arguments, part in (("read", {"path": "/root/.ssh/id_rsa"}, "is not in this cage"),
                                      ("write", {"path": "kept/a", "content": ""}, "protected"),
                                      ("write", {"path": "/etc/passwd", "content": ""}, "/etc/passwd")):
            s.call(tool, **arguments).bad(part)
        assert json.loads(s.sh("cat /etc/bawn/cage.json").good())["project"] == "/work"


if __name__ == "__main__":
    sessions.main()
