"""The words of the table in rows.py: what a row is, and how the protection is taken out for its pair."""

import contextlib
import dataclasses
import re
import typing

WORKED, REFUSED, UNTRIED, NO_CAGE = "worked", "refused", "untried", "no cage"


@dataclasses.dataclass(frozen=True)
class Result:
    verdict: str
    sentence: str
    stdout: str = ""

    def __str__(self):
        return f"{self.verdict}: {self.sentence}"

    def but_not(self, verdict):
        return dataclasses.replace(self, verdict=REFUSED) if self.verdict == verdict else self

    def calls(self):
        """Of a probe that tried many things: each one's name, and whether it got through."""
        found = re.findall(r"^call: (\S+) (through|refused)\b", self.stdout, re.M)
        return {name: how == "through" for name, how in found}


# --- how a pair is opened ---

@dataclasses.dataclass(frozen=True)
class Opened:
    """The same cage with other options: the operator's word."""
    options: tuple

    def __str__(self):
        return "opened by " + (" ".join(self.options) or "no option")


@dataclasses.dataclass(frozen=True)
class Broken:
    """The test build, without the named mechanisms and without the look from outside."""
    names: tuple
    options: tuple = ()

    def __str__(self):
        return "without " + ", ".join(self.names)

    def without(self, name):
        """With this one back in place."""
        return Broken(tuple(n for n in self.names if n != name), self.options)


@dataclasses.dataclass(frozen=True)
class Outside:
    """No cage at all, as the same user or another."""
    uid: typing.Optional[int] = None

    def __str__(self):
        return "outside of any cage"


@dataclasses.dataclass(frozen=True)
class Trap:
    """What a careless tool would do with the same input; shows that the host's check notices it."""
    spring: typing.Callable

    def __str__(self):
        return "a careless tool"


@dataclasses.dataclass(frozen=True)
class Each:
    """For a probe that tries many things: several pairs, of which one must open each of them."""
    pairs: tuple


@dataclasses.dataclass(frozen=True)
class Nowhere:
    """It cannot be shown."""
    why: str


def opened(*options):
    return Opened(options)


def broken(*names, options=()):
    return Broken(names, tuple(options))


@dataclasses.dataclass
class Row:
    id: str
    name: str
    probe: tuple
    pair: typing.Any = None
    user: typing.Any = None  # the pair in a user's cage, where it differs
    options: tuple = ()
    before: tuple = ()  # a command that starts bawn, outside
    prepare: typing.Callable = contextlib.nullcontext
    check: typing.Optional[typing.Callable] = None  # what the host sees; a sentence if the attack worked
    who: str = "both"
    may_refuse: bool = False  # bawn may refuse to make such a cage at all
    variables: dict = dataclasses.field(default_factory=dict)
    stdin: str = "/dev/null"
    group: int = 0  # a supplementary group of the operator's
    in_group: bool = False  # started in a cgroup that is the operator's to divide
    custom: typing.Optional[typing.Callable] = None  # (suite, place, pair) -> Result, instead of all this

    def pair_of(self, uid):
        return self.user if uid and self.user else self.pair
