"""The programs of the corpus, read from the text files beside this module.

A file is one class of programs. ``%% name`` starts a program, lines ``% trait: words`` after it say what is to be
known about it, and the rest is its source. The traits:

- ``noticed``: ``always`` or ``root``, where at level ``process`` the attempt succeeds, so that an oracle that says
  nothing is dead; ``sometimes``, where it succeeds there, and may be killed before it can say so;
- ``granted``: levels that allow the attempt, so that the program's own word for its success is no escape;
- ``ends``: the statuses that are right; ``at most``: the highest score that is;
- ``needs``: what the machine or the scene has to have; ``alone``: nothing else may run meanwhile;
- ``limits``, ``calls``, ``argument``, ``forms``, ``pairs``, ``tests``: how it is run;
- ``text``, ``lying``, ``floods``: what its source is made of.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_lmeval.sandbox import Limits

__all__ = ["CLASSES", "Program", "load_programs", "parse_programs"]

CLASSES = ("forge", "filesystem", "network", "resource", "signal", "honest", "nondeterministic")
# These have no use for what the others share.
PLAIN = ("forge", "honest", "nondeterministic")
TRAITS = frozenset(
    {"alone", "argument", "at most", "calls", "ends", "floods", "forms", "granted", "limits", "lying", "needs"}
    | {"noticed", "pairs", "tests", "text"}
)
MIB = 1024 * 1024
LIMITS: Mapping[str, Mapping[str, float]] = {
    "filesystem": {"cpu_s": 2, "wall_s": 20},
    "forge": {"cpu_s": 2, "wall_s": 20},
    "honest": {},
    "network": {"cpu_s": 2, "wall_s": 20},
    "nondeterministic": {},
    "resource": {"cpu_s": 2, "wall_s": 20, "memory_bytes": 128 * MIB},
    "signal": {"cpu_s": 2, "wall_s": 20},
}
# Where to end by it is right, the limit is low, for the sake of time; elsewhere a slow machine must not reach it.
QUICK_CPU_S = 0.15
LYING = """
def __eq__(self, other): return True
def __ne__(self, other): return False
def __hash__(self): return 0
def __lt__(self, other): return True
def __gt__(self, other): return True
def __le__(self, other): return True
def __ge__(self, other): return True
def __bool__(self): return True
def __contains__(self, item): return True
def __instancecheck__(self, item): return True
members = {name: value for name, value in globals().items() if name.startswith("__") and callable(value)}
"""
TEXTS: Mapping[str, Callable[[str], str]] = {
    "bom": lambda source: "\ufeff" + source,
    "brackets": lambda source: "(" * 5_000_000,
    "crlf": lambda source: source.replace("\n", "\r\n"),
    "large": lambda source: "x = '''" + "spam\n" * 10**6 + "'''\ndef f(): return len(x) - 4999958",
    "table": lambda source: "x = [" + "1, " * 100_000 + "]\ndef f(): return len(x) - 99958",
}


@dataclass(frozen=True, slots=True)
class Program:
    """One program: its class, its name, what is to be known about it and its source."""

    kind: str
    name: str
    traits: Mapping[str, str] = field(default_factory=dict)
    source: str = ""

    def words(self, trait: str) -> frozenset[str]:
        """Return the words of a trait; none if the program does not have it."""
        return frozenset(self.traits.get(trait, "").split())

    def data(self, trait: str, default: Any) -> Any:
        """Return the value of a trait that is JSON."""
        return json.loads(self.traits[trait]) if trait in self.traits else default

    @property
    def limits(self) -> Limits:
        """What the program may use."""
        own = (setting.partition("=") for setting in self.words("limits"))
        quick = {"cpu_s": QUICK_CPU_S} if self.kind == "resource" and "timeout" in self.words("ends") else {}
        values: dict[str, Any] = {**LIMITS[self.kind], **quick, **{name: float(value) for name, _, value in own}}
        return Limits(**values)


def load_programs() -> tuple[Program, ...]:
    """Return every program of the corpus, class by class."""
    return tuple(program for kind in CLASSES for program in parse_programs(kind, _text(kind)))


def parse_programs(kind: str, text: str) -> Iterator[Program]:
    """Yield the programs in the text of a file; raise ValueError at a trait that means nothing."""
    for part in text.split("\n%% ")[1:] if text.startswith("\n") else ("\n" + text).split("\n%% ")[1:]:
        name, *lines = part.split("\n")
        count = next((index for index, line in enumerate(lines) if not line.startswith("% ")), len(lines))
        traits = {trait: words for trait, _, words in (line[2:].partition(": ") for line in lines[:count])}
        if traits.keys() - TRAITS:
            raise ValueError(f"{kind}.txt: {name}: unknown traits {sorted(traits.keys() - TRAITS)}")
        yield Program(kind, name, traits, _source(kind, traits, "\n".join(lines[count:]) + "\n"))


def _source(kind: str, traits: Mapping[str, str], source: str) -> str:
    if "text" in traits:
        return TEXTS[traits["text"]](source)
    if "lying" in traits:
        return _lying(traits["lying"])
    if "floods" in traits:
        return f"{_text('prelude')}\nflood({traits['floods'].encode()!r}, 20)\n{source}"
    return source if kind in PLAIN else f"{_text('prelude')}\n{source}"


def _lying(base: str) -> str:
    # A value that is like nothing else, so that no answer is right by accident.
    made = {"bytes": "b'?'", "float": "0.5", "int": "12345", "str": "'?'", "type": "'Odd', (), {}"}.get(base, "")
    return f"{LYING}\nOdd = type('Odd', ({base},), members)\ndef f(x): return Odd({made})\n"


def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8")
