"""Programs that people use at terminals, driven by tmux from outside."""

import contextlib
import subprocess

from place import BAWN, case, descendants, reap, wait_until
from window import PATIENCE, end_descendants


class Screen:
    """A tmux of the person's own, with a shell in it; what is on its screen."""

    def __init__(self, p):
        self.p = p
        self.socket = str(p.top / "home" / "tmux")
        self.env = {**p.environ(None), "LC_ALL": "C.UTF-8", "bawn": str(BAWN), "HISTFILE": "",
                    "INPUTRC": "/dev/null", "SHELL": "/bin/bash", "TERM": "xterm-256color"}

    def start(self):
        self.tmux("new-session", "-d", "-x", "80", "-y", "24", "env PS1='host> ' bash --norc --noprofile -i")
        self.last_line_is("host>")

    def tmux(self, *args):
        words = self.p.words(("-u", "-S", self.socket, "-f", "/dev/null", *args), program="tmux")
        done = subprocess.run(words, env=self.env, cwd=self.p.project, capture_output=True, check=True,
                              timeout=PATIENCE, start_new_session=True)
        return done.stdout.decode()

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def order(self, line):
        self.type(line)
        self.keys("Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, *parts, but=()):
        seen = [""]

        def is_shown():
            seen[0] = self.screen()
            return all(part in seen[0] for part in parts) and not any(part in seen[0] for part in but)

        try:
            wait_until(is_shown, PATIENCE, parts)
        except AssertionError:
            raise AssertionError(f"{parts} (and not {but}) is not shown but:\n{seen[0]}") from None
        return seen[0]

    def last_line_is(self, wanted):
        def is_so():
            rows = self.screen().rstrip().splitlines()
            return bool(rows) and rows[-1].startswith(wanted)
        try:
            wait_until(is_so, PATIENCE, "")
        except AssertionError:
            raise AssertionError(f"the last line is not {wanted!r}:\n{self.screen()}") from None

    def flag(self, name):
        return self.tmux("display-message", "-p", f"#{{{name}}}").strip()

    def end(self):
        self.tmux("kill-server")
        wait_until(lambda: reap() or not descendants(), PATIENCE, "everything has ended")


@contextlib.contextmanager
def screen_of(p):
    screen = Screen(p)
    try:
        screen.start()
        yield screen
    except BaseException:
        with contextlib.suppress(subprocess.SubprocessError):
            screen.tmux("kill-server")
        end_descendants()
        raise
    screen.end()


@case
def bash_in_the_cage(p):
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -e PS1='caged> ' -- bash --norc --noprofile -i")
        screen.last_line_is("caged>")
        screen.type("echo abX")
        screen.keys("BSpace", "Left", "Left", "C-a", "C-e")
        screen.order("c; sleep 62")
        screen.shows("abc\n")
        screen.keys("C-z")
        screen.shows("Stopped", "sleep 62")
        screen.order("fg")
        screen.shows("\nsleep 62\n")
        screen.keys("C-c")
        screen.last_line_is("caged>")
        screen.keys("Up", "Up", "Up", "C-u")
        screen.order("exit 9")
        screen.last_line_is("host>")
        screen.order("echo was-$?")
        screen.shows("was-9")


@case
def vim_in_the_cage(p):
    with screen_of(p) as screen:
        screen.order("clear; echo be\"\"fore; $bawn run -- vim -u NONE -N /tmp/text")
        screen.shows("/tmp/text", "~\n")
        assert screen.flag("alternate_on") == "1"
        screen.type("ihello in the cage")
        screen.keys("Escape")
        screen.tmux("resize-window", "-x", "100", "-y", "40")
        screen.type(":echo 'size' &lines 'by' &columns")
        screen.keys("Enter")
        screen.shows("size 40 by 100", "hello in the cage")
        screen.keys("C-z")
        screen.shows("before", "Stopped")
        assert screen.flag("alternate_on") == "0"
        screen.tmux("resize-window", "-x", "90", "-y", "20")
        screen.order("clear; fg")
        screen.shows("hello in the cage", "~\n")
        screen.type(":echo 'size' &lines 'by' &columns")
        screen.keys("Enter")
        screen.shows("size 20 by 90")
        screen.type(":w | !wc -w %")
        screen.keys("Enter")
        screen.shows("4 /tmp/text")
        screen.keys("Enter")
        screen.type(":q")
        screen.keys("Enter")
        screen.last_line_is("host>")
        screen.order("echo was-$?")
        screen.shows("was-0")
        assert screen.flag("alternate_on") == "0"


@case
def a_killed_vim_leaves_a_good_terminal(p):
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -- sh -c 'vim -u NONE -N --cmd \"set mouse=a\" /tmp/text & vim=$!; "
                     "sleep 0.3; kill -9 $$'")
        screen.last_line_is("host>")
        screen.order("echo was-$?")
        screen.shows("was-137")
        assert [screen.flag(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")] == ["0", "0", "1"]


@case
def less_in_the_cage(p):
    p.write("project/long", "".join(f"line {i}\n" for i in range(1000)))
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -- less /work/long")
        screen.shows("line 22\n")
        screen.keys("Space")
        screen.shows("line 40\n", but=("line 3\n",))
        screen.type("/line 777")
        screen.keys("Enter")
        screen.shows("line 777\n", "line 790\n")
        screen.tmux("resize-window", "-x", "60", "-y", "12")
        # A key that comes with the new size is lost on less.
        wait_until(lambda: screen.keys("G") or "line 999\n" in screen.screen(), PATIENCE, "the last line is shown")
        screen.shows("line 990\n", but=("line 980\n",))
        screen.keys("q")
        screen.last_line_is("host>")


@case
def htop_in_the_cage(p):
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -- htop -d 2")
        shown = screen.shows("PID", "F10")
        assert "systemd" not in shown
        screen.tmux("resize-window", "-x", "110", "-y", "30")
        wait_until(lambda: "F10" in (screen.screen().rstrip().splitlines() or [""])[-1] and
                   len(screen.screen().rstrip().splitlines()) == 30, PATIENCE, "htop is as large as the window")
        screen.keys("q")
        screen.last_line_is("host>")


@case
def tmux_in_the_cage(p):
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -- tmux -u -S /tmp/socket -f /dev/null new-session "
                     "\"env PS1='inner> ' bash --norc --noprofile -i\"")
        screen.shows("inner>", "[0]")
        screen.keys("C-b", "%")
        screen.shows("│")
        screen.keys("C-b", "x")
        screen.shows("kill-pane")
        screen.keys("y")
        screen.shows("inner>", but=("│",))
        screen.order("exit")
        screen.last_line_is("host>")
        assert screen.flag("alternate_on") == "0"


@case
def pythons_lines_in_the_cage(p):
    with screen_of(p) as screen:
        screen.order("clear; $bawn run -- python3 -q")
        screen.last_line_is(">>>")
        screen.type("print('abX")
        screen.keys("BSpace")
        screen.order("c' * 2)")
        screen.shows("abcabc")
        screen.keys("Up", "Enter")
        wait_until(lambda: screen.screen().count("\nabcabc\n") == 2, PATIENCE, "the line before comes again")
        screen.type("half")
        screen.keys("C-c")
        screen.shows("KeyboardInterrupt")
        screen.order("import time; print('as' + 'leep'); time.sleep(60)")
        screen.shows("asleep")
        screen.keys("C-c")
        screen.shows("Traceback")
        screen.last_line_is(">>>")
        screen.keys("C-d")
        screen.last_line_is("host>")
