#!/usr/bin/env python3
"""Each agent's own terminal program, typed to from outside: no question, a turn, an end, and a terminal as before.

    terminals.py BUILD BAWN BREAKABLE [--all] [PART OF A NAME]        prints TAP
"""

import contextlib
import re
import time

from world import DONE, PROMPT, bawn, cage, each, in_short, main, model_that, path, shell
import programs

programs.PATIENCE = PATIENCE = 120
cage.CASES.clear()  # those of the programs that are not agents
WROTE = "written-at-a-terminal"
ASKED = "bawn"  # Claude asks about any other key, once; this is what stands for one that is a secret
DIGEST = re.compile("^[0-9a-f]{32}", re.M)
FLAGS = ("alternate_on", "mouse_any_flag", "cursor_flag", "keypad_flag", "keypad_cursor_flag")


def press_until(screen, is_so, what):
    """Enter, until it has done what it should: what comes with other keys may be taken for a pasted line's end."""
    pressed = [0.0]

    def is_done():
        if is_so(screen.screen()):
            return True
        if time.monotonic() > pressed[0] + 3:
            pressed[0] = time.monotonic()
            screen.keys("Enter")
        return False
    try:
        cage.wait_until(is_done, PATIENCE, what)
    except AssertionError:
        raise AssertionError(f"not {what}:\n{screen.screen()}") from None


def modes(screen):
    screen.order("clear; stty -a | md5sum")
    cage.wait_until(lambda: DIGEST.search(screen.screen()), PATIENCE, "the terminal's modes are told")
    return DIGEST.search(screen.screen()).group(), [screen.flag(name) for name in FLAGS]


def is_at_prompt(text):
    rows = text.rstrip().splitlines()
    return bool(rows) and rows[-1].startswith("host>")


@contextlib.contextmanager
def started(screen, agent, model):
    """The agent on a screen, waiting for a word; it is told to quit afterwards, and the terminal is as before."""
    screen.tmux("resize-window", "-x", "110", "-y", "40")
    before = modes(screen)
    screen.order(f"clear; PATH={path()} $bawn run " + " ".join(agent.options(model, ASKED)))
    screen.shows(agent.ready)
    yield
    screen.type(agent.quit)
    screen.shows(agent.quit)
    press_until(screen, is_at_prompt, "back at the host's prompt")
    screen.order("echo was-$?")
    screen.shows("was-0")
    after = modes(screen)
    assert after == before, (before, after)


@each()
@in_short()
def works_a_turn_at_a_terminal(place, agent):
    # The model ends first: a screen waits for the end of all that was started with it.
    with programs.screen_of(place) as screen, model_that(shell(f"echo {WROTE} > made")) as model:
        with started(screen, agent, model):
            screen.type(PROMPT)
            screen.shows(PROMPT)
            press_until(screen, lambda text: DONE in text, "answered")
        assert WROTE in model.heard()
    cage.expect(bawn(place, "diff"), 0, "made", WROTE)


if __name__ == "__main__":
    main()
