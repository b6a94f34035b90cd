"""What reaches the operator's terminal: filtered, undone at the end, and recorded by --cast."""

import json
import os

from place import case, decode, expect_refusal
from window import PATIENCE, PROMPT, Host, Window

# What reaches out of the screen; \r\n and text around it must stay.
REACHING = {
    "the clipboard": b"\x1b]52;c;aGVsbG8=\x07",
    "a question for the clipboard": b"\x1b]52;c;?\x1b\\",
    "a report of the title": b"\x1b[21t",
    "a move of the window": b"\x1b[3;0;0t",
    "a question for settings": b"\x1bP$q\"p\x1b\\",
    "a question for capabilities": b"\x1bP+q544e\x1b\\",
    "an enquiry": b"\x05",
    "a picture that reads files": b"\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\",
    "a file": b"\x1b]1337;File=name=eA==:aGVsbG8=\x07",
    "a command of an editor": b"\x1b]51;[\"call\",\"Tapi_x\",[]]\x07",
    "the printer": b"\x1b[5i",
    "a macro": b"\x1bP1;0;0!zx\x1b\\\x1b[1*z",
    "the end of UTF-8": b"\x1b%@",
    "8-bit controls": "\u009b21t".encode()[:2],
}


def shown_by(p, *options, streams=(0, 1, 2)):
    with Window(p, "run", *options, "--", "cat", "/work/reaching", streams=streams) as window:
        return window.end(0)


@case
def what_reaches_out_of_the_screen_is_not_shown(p):
    """And with --raw it is: the twin."""
    text = b"".join(b"<%d:%s>" % (i, part) for i, part in enumerate(REACHING.values()))
    plain = b"".join(b"<%d:>" % i for i in range(len(REACHING)))
    p.write("project/reaching", text)
    for options, streams in (((), (0, 1, 2)), ((), (1, 2)), (("--no-tty",), (0, 1, 2)), (("-t",), (1, 2))):
        shown = shown_by(p, *options, streams=streams)
        assert shown.replace(b"^D\x08\x08", b"") == plain, (options, streams, shown)
        shown = shown_by(p, *options, "--raw", streams=streams)
        assert shown.startswith(text) or text in shown, (options, streams, shown)


@case
def errors_at_a_terminal_are_filtered_too(p):
    p.write("project/reaching", b"<\x1b]52;c;aGVsbG8=\x07>")
    for options, wanted in (((), b"<>"), (("--raw",), b"<\x1b]52;c;aGVsbG8=\x07>")):
        with Window(p, "run", *options, "--", "sh", "-c", "cat /work/reaching >&2", streams=(2,)) as window:
            assert window.end(0) == wanted, window.seen


@case
def what_is_no_terminal_is_not_filtered(p):
    text = b"".join(REACHING.values())
    p.write("project/reaching", text)
    process = p.start("run", "--", "cat", "/work/reaching")
    assert process.communicate(b"", timeout=PATIENCE)[0] == text


@case
def modes_that_a_killed_program_left_on_are_taken_back(p):
    on = b"\x1b[?1049h\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?25l\x1b[?1h\x1b=\x1b[1;31m"
    p.write("project/on", on)
    for options in ((), ("--raw",), ("--no-tty",)):
        with Window(p, "run", *options, "--", "sh", "-c", "cat /work/on; kill -9 $$") as window:
            shown = window.end(137)
            assert shown.startswith(on), shown
            for off in (b"\x1b[?1049l", b"\x1b[?1000l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[?25h", b"\x1b[?1l",
                        b"\x1b>", b"\x1b[0m"):
                assert off in shown[len(on):], (options, off, shown)
    # And when bawn is told to end, or its time is over.
    with Window(p, "run", "--time", "200ms", "--", "sh", "-c", "cat /work/on; exec sleep 60") as window:
        assert b"\x1b[?1049l" in window.end(124)
    # Nothing is added where nothing was left on.
    with Window(p, "run", "--", "printf", "plain") as window:
        assert window.end(0) == b"plain"


@case
def an_answer_after_the_end_is_not_typed_into_the_shell(p):
    """The terminal answers what the command asked last, when the command is gone."""
    with Host(p) as host:
        for _ in range(3):
            host.start("$bawn run -- printf '\\033[6n'")
            host.expect(b"\x1b[6n")
            host.type(b"\x1b[12;34R")
            host.expect(PROMPT)
            shown = host.order("echo li\"\"ne")
            assert b"line" in shown and b"34R" not in shown, (shown, host.seen[-200:])
        host.leave()


@case
def an_answer_reaches_who_asked(p):
    ask = "stty raw -echo; printf '\\033[6n'; dd bs=1 count=8 2>/dev/null | od -An -c"
    with Window(p, "run", "--", "sh", "-c", ask) as window:
        window.expect(b"\x1b[6n")
        window.type(b"\x1b[12;34R")
        window.expect(b"R")
        assert window.end(0).split()[-7:] == [b"[", b"1", b"2", b";", b"3", b"4", b"R"], window.seen


# --- casts ---

def read_cast(path):
    """The header and the events, which are as the format wants them."""
    text = path.read_bytes()
    assert text.endswith(b"\n"), text[-40:]
    header, *events = [json.loads(line) for line in text.decode("utf-8", "strict").splitlines()]
    assert header["version"] == 2 and header["width"] > 0 and header["height"] > 0, header
    last = 0
    for when, code, what in events:
        assert isinstance(when, float) and when >= last and code in "or" and isinstance(what, str), (when, code, what)
        last = when
    return header, events


def printed(events):
    return "".join(what for _, code, what in events if code == "o")


@case
def a_cast_holds_what_was_shown(p):
    line = "grüße ✓ \x1b[31mred\x1b[0m \x1b]52;c;eA==\x07\"quoted\\\" \x01\n"
    p.write("project/shown", line.encode() * 300 + b"\xff\xc3")
    with Window(p, "run", "--cast", p.home / "cast", "--", "sh", "-c", "cat /work/shown; echo; echo over",
                rows=30, columns=90) as window:
        shown = decode(window.end(0)).replace("\r\r\n", "\r\n")
    header, events = read_cast(p.home / "cast")
    assert (header["width"], header["height"]) == (90, 30), header
    assert printed(events) == shown, (printed(events)[-80:], shown[-80:])
    assert "]52" not in printed(events)


@case
def a_cast_holds_the_windows_sizes(p):
    with Window(p, "run", "--cast", p.home / "cast", "--", "sh", "-c", "echo ready; read x") as window:
        window.ready()
        window.resize(11, 22)
        window.resize(33, 44)
        window.type(b"\r")
        window.end(0)
    sizes = [what for _, code, what in read_cast(p.home / "cast")[1] if code == "r"]
    assert sizes and sizes[-1] == "44x33" and set(sizes) <= {"80x24", "22x11", "44x33"}, sizes


@case
def a_cast_of_pipes_is_one_too(p):
    process = p.start("run", "--cast", p.home / "cast", "--", "sh", "-c", "echo one; echo two >&2; printf 'half \\303'")
    out, err = process.communicate(b"", timeout=PATIENCE)
    assert (out, err, process.returncode) == (b"one\nhalf \xc3", b"two\n", 0)
    _, events = read_cast(p.home / "cast")
    text = printed(events)
    assert "one\r\n" in text and "two\r\n" in text and text.count("\r\n") == 2, text
    assert text.endswith("half \ufffd") or text.endswith("two\r\n"), text
    assert "half \ufffd" in text, text


@case
def a_cast_is_not_written_through_links_or_where_it_cannot_be(p):
    p.write("precious", "precious")
    os.symlink(p.home / "precious", p.home / "link")
    os.mkfifo(p.home / "fifo")
    p.own(p.home / "fifo")
    for name, part in (("link", "it is a link"), ("fifo", "No such device"), ("no/such", "No such file"),
                       (".", "s a directory")):
        path = p.home / name
        expect_refusal(p.run("run", "--cast", path, "--", "echo", "ran"), "cannot write the cast to", part)
    assert (p.home / "precious").read_text() == "precious"
