"""Regular expressions that are no literals of this package: none runs without a limit of time.

A search runs here if no text can make it take many steps. Any other runs in the process of
worker_child.py, which executes this file by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

_MOST_STEPS = 10_000_000  # half a second if all of them are of the slowest kind
_SINGLE = frozenset({"ANY", "AT", "FAILURE", "IN", "LITERAL", "NOT_LITERAL"})


class Pattern:
    """A regular expression, searched for as ``re`` does; raises TookTooLong, a ScoringError, at the limit."""

    __slots__ = ("_compiled", "_quick", "_slow")

    def __init__(self, text: str, flags: int) -> None:
        self._compiled = re.compile(text, flags)
        # Lengths of texts: up to the first one a search takes few steps, from the second one on it may take many.
        self._quick, self._slow = -1, float("inf")

    def search(self, text: str) -> bool:
        """Tell whether the pattern is found in ``text``."""
        if self._is_quick(text):
            return self._compiled.search(text) is not None
        return bool(self._ask(text, "search"))

    def findall(self, texts: Sequence[str]) -> list[list[Any]]:
        """Return what is found in each text: texts, or sequences of the groups if there are several."""
        if self._is_quick(max(texts, key=len, default="")):
            return [self._compiled.findall(text) for text in texts]
        return list(self._ask(texts, "findall"))

    def sub(self, new: str, text: str, count: int = 0) -> str:
        """Return ``text`` with ``new`` for what is found: for the first ``count``, or for all if that is 0."""
        if self._is_quick(text):
            return self._compiled.sub(new, text, count)
        return str(self._ask(text, "sub", new, count))

    def _is_quick(self, text: str) -> bool:
        length = len(text)
        if self._quick < length < self._slow:
            if _most_steps(self._compiled, length) <= _MOST_STEPS:
                self._quick = length
            else:
                self._slow = length
        return length <= self._quick

    def _ask(self, given: Any, method: str, *more: Any) -> Any:
        from pytest_lmeval.metrics.parts.worker import shared_worker

        return shared_worker().ask("pattern", self._compiled.pattern, given, method, self._compiled.flags, *more)


@lru_cache(maxsize=512)
def compiled(text: str, flags: int = 0) -> Pattern:
    """Return the pattern written as ``text``; raise ValueError, with the reason, for a text that cannot be one."""
    try:
        return Pattern(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


def without(patterns: Iterable[str] | None, text: str) -> str:
    """Return ``text`` without what the patterns find, one after the other."""
    for pattern in patterns or ():
        text = compiled(pattern).sub("", text)
    return text


def applied(pattern: str, given: Any, method: str = "search", flags: int = 0, *more: Any) -> Any:
    """Return what a method of `Pattern` does, however long it takes."""
    own = re.compile(pattern, flags)
    if method == "search":
        return own.search(given) is not None
    return own.sub(more[0], given, more[1]) if method == "sub" else [own.findall(text) for text in given]


def _most_steps(pattern: re.Pattern[str], length: int) -> float:
    """Return how many steps it takes at most to find all matches in a text of so many characters."""
    try:
        # A private module: there is no other way to learn what a pattern is made of.
        parts = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    except (ImportError, RecursionError):
        return float("inf")
    return (length + 1) * _tried(parts, length, is_end=True)[1]


def _tried(parts: Any, length: int, *, is_end: bool) -> tuple[float, float]:
    """Return in how many ways ``parts`` may match from one place on, and how many steps it takes to try them all.

    At the end of a pattern the first way is a match, and the search goes on behind it.
    """
    ways, steps = 1.0, 1.0
    for number, (code, given) in enumerate(parts, 1):
        of_part, more = _tried_part(str(code), given, length, is_end=is_end and number == len(parts))
        ways, steps = ways * of_part, steps + ways * more
    return ways, steps


def _tried_part(code: str, given: Any, length: int, *, is_end: bool) -> tuple[float, float]:
    if code in _SINGLE:
        return 1, 1
    if code == "SUBPATTERN":
        return _tried(given[-1], length, is_end=is_end)
    if code == "BRANCH":
        each = [_tried(branch, length, is_end=is_end) for branch in given[1]]
        return sum(ways for ways, _ in each), sum(steps for _, steps in each)
    if code.startswith("ASSERT"):  # once it holds, no other way is tried
        return 1, _tried(given[1], length, is_end=False)[1]
    if code in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(given, length, is_end=is_end)
    return 1, float("inf")  # such as one that looks back at a group


def _repeated(given: Any, length: int, *, is_end: bool) -> tuple[float, float]:
    least, most, parts = given
    ways, steps = _tried(parts, length, is_end=is_end and most == 1)
    rounds = max(least, min(most, length + 1))
    if ways == 1 and is_end:  # all rounds of all matches are no more than characters
        return 1, max(least, 1) * steps + 1
    # 2 ** 24 are too many already.
    before = rounds if ways == 1 else sum(min(ways, _MOST_STEPS) ** number for number in range(min(rounds, 24)))
    return before * ways + 1, before * steps + 1
