"""Run regular expressions that users provide, with a time limit.

A search runs in the current process if no text of the same length can make it take many steps. Other searches run in
the process that runs worker_child.py, which executes this file without the package.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

_MOST_STEPS = 10_000_000  # half a second of the slowest steps
_SINGLE = frozenset({"ANY", "AT", "FAILURE", "IN", "LITERAL", "NOT_LITERAL"})


class Pattern:
    """A regular expression as in ``re``, except that searches raise TookTooLong, a ScoringError, at the time limit."""

    __slots__ = ("_compiled", "_quick", "_slow")

    def __init__(self, text: str, flags: int) -> None:
        self._compiled = re.compile(text, flags)
        # The length of the longest text known to take few steps, and of the shortest text that may take many.
        self._quick, self._slow = -1, float("inf")

    def search(self, text: str) -> bool:
        """Return True if the pattern matches anywhere in ``text``."""
        return bool(self._apply("search", text))

    def findall(self, texts: Sequence[str]) -> list[list[Any]]:
        """Return the matches in each text, as strings or, if the pattern has several groups, as sequences of groups."""
        return list(self._apply("findall", texts))

    def sub(self, new: str, text: str, count: int = 0) -> str:
        """Replace the first ``count`` matches in ``text``, or all matches if ``count`` is 0, with ``new``."""
        return str(self._apply("sub", text, new, count))

    def _is_quick(self, text: str) -> bool:
        length = len(text)
        if self._quick < length < self._slow:
            if _most_steps(self._compiled, length) <= _MOST_STEPS:
                self._quick = length
            else:
                self._slow = length
        return length <= self._quick

    def _apply(self, method: str, given: Any, *more: Any) -> Any:
        if self._is_quick(given if isinstance(given, str) else max(given, key=len, default="")):
            return _METHODS[method](self._compiled, given, *more)
        from pytest_lmeval.metrics.parts.worker import shared_worker

        return shared_worker().ask("pattern", self._compiled.pattern, self._compiled.flags, method, given, *more)


@lru_cache(maxsize=512)
def compiled(text: str, flags: int = 0) -> Pattern:
    """Compile the pattern ``text``; raise ValueError, with the reason, if the pattern is invalid."""
    try:
        return Pattern(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


def without(patterns: Iterable[str] | None, text: str) -> str:
    """Remove each pattern's matches from ``text``, one pattern after another."""
    for pattern in patterns or ():
        text = compiled(pattern).sub("", text)
    return text


def applied(pattern: str, flags: int, method: str, *given: Any) -> Any:
    """Call a method of `Pattern` without a time limit, and return the result."""
    return _METHODS[method](re.compile(pattern, flags), *given)


_METHODS: Mapping[str, Callable[..., Any]] = {
    "search": lambda own, text: own.search(text) is not None,
    "findall": lambda own, texts: [own.findall(text) for text in texts],
    "sub": lambda own, text, new, count: own.sub(new, text, count),
}


def _most_steps(pattern: re.Pattern[str], length: int) -> float:
    """Return an upper bound on the steps needed to find all matches in a text of ``length`` characters."""
    try:
        # Only this private module gives the parts of a pattern.
        parts = import_module("re._parser").parse(pattern.pattern, pattern.flags)
    except (ImportError, RecursionError):
        return float("inf")
    return (length + 1) * _tried(parts, length, is_end=True)[1]


def _tried(parts: Any, length: int, *, is_end: bool) -> tuple[float, float]:
    """Return the number of ways in which ``parts`` may match at one position, and the steps to try them all.

    At the end of a pattern, the first way to match completes the match, and the search continues after the match.
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
    if code.startswith("ASSERT"):  # once it holds, the search tries no other way
        return 1, _tried(given[1], length, is_end=False)[1]
    if code in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeated(given, length, is_end=is_end)
    return 1, float("inf")  # such as a reference to a group


def _repeated(given: Any, length: int, *, is_end: bool) -> tuple[float, float]:
    least, most, parts = given
    ways, steps = _tried(parts, length, is_end=is_end and most == 1)
    rounds = max(least, min(most, length + 1))
    if ways == 1 and is_end:  # all matches together have no more rounds than the text has characters
        return 1, max(least, 1) * steps + 1
    # More than 24 rounds change nothing, because 2 ** 24 steps are already too many.
    before = rounds if ways == 1 else sum(min(ways, _MOST_STEPS) ** number for number in range(min(rounds, 24)))
    return before * ways + 1, before * steps + 1
