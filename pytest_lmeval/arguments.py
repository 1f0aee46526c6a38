"""Parse the values of command-line options and ini keys.

Each function raises an argparse.ArgumentTypeError that describes the expected value.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

from pytest_lmeval.numbers import Number


class MaxErrors:
    """The value of ``--lm-max-errors``: a number of examples, or a percentage of the collected examples (``2%``)."""

    def __init__(self, text: str) -> None:
        self.text = text
        digits = text.removesuffix("%")
        try:
            self._number = float(digits) if text.endswith("%") else int(digits)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"expected a count such as 3 or a share such as 2%, got {text!r}"
            ) from None
        if not 0 <= self._number <= (100 if text.endswith("%") else self._number):
            raise argparse.ArgumentTypeError(f"expected a count >= 0 or 0% to 100%, got {text!r}")

    def of(self, collected: int) -> float:
        """Return how many of ``collected`` examples may end in error."""
        return self._number / 100 * collected if self.text.endswith("%") else self._number


def given(text: str) -> str:
    """Return ``text``; raise an error if it is blank, for example because a shell variable is unset."""
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a value, got an empty text")
    return text


def number(
    low: float = -math.inf,
    high: float = math.inf,
    *,
    above: float = -math.inf,
    below: float = math.inf,
    whole: bool = False,
) -> Callable[[str], Any]:
    """Return a parser for the numbers that :class:`pytest_lmeval.numbers.Number` allows with these arguments."""
    allowed = Number(low, high, above=above, below=below, whole=whole)

    def parse(text: str) -> Any:
        try:
            return allowed.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parse


def whole(low: int) -> Callable[[str], int]:
    """Return a parser for whole numbers >= ``low``."""
    return number(low, whole=True)


def named(allowed: Number) -> Callable[[str], tuple[str, float]]:
    """Return a parser for ``NAME=VALUE`` with an ``allowed`` value."""

    def parse(text: str) -> tuple[str, float]:
        name, _, value = text.rpartition("=")
        try:
            return name, allowed.parse(value if name else "")
        except ValueError:
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE with {allowed} as VALUE, got {text!r}") from None

    return parse


level = number(above=0, below=1)
"""Parse the error rate of a test: a number above 0 and below 1."""
share = number(0, below=1)
"""Parse a number >= 0 and < 1."""
positive = number(above=0)
named_share = named(Number(0, 1))
"""Parse ``NAME=VALUE`` with a value from 0 to 1."""
named_amount = named(Number(0))
"""Parse ``NAME=VALUE`` with a finite value >= 0."""


def shard(text: str) -> tuple[int, int]:
    """Parse ``I/N``, which selects the I-th of N parts."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"expected I/N, the I-th of N parts, such as 1/4, got {text!r}")
    return int(part), int(parts)


def key_value(text: str) -> tuple[str, Any]:
    """Parse ``KEY=VALUE``; treat a value that is not valid TOML as text."""
    import tomllib

    key, equals, value = text.partition("=")
    if not equals or not key.isidentifier():
        # Never show the text: it may be a secret.
        raise argparse.ArgumentTypeError("expected KEY=VALUE with a KEY of letters, digits and _, such as base_url=...")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value


def labelled_key_value(text: str) -> tuple[str, Any]:
    """Parse ``KEY=VALUE`` or ``LABEL:KEY=VALUE``; the returned key includes the label."""
    name, equals, rest = text.partition("=")
    label, colon, key = name.rpartition(":")
    parsed, value = key_value(f"{key}{equals}{rest}")
    return f"{label}{colon}{parsed}", value


WORTH_A_PROCESS = 32
"""The lowest concurrency at which a client runs in a separate process.

At a lower concurrency, messages between processes cost more than sharing an interpreter with the items.
"""
THINK_TAGS = ("<think>", "</think>")
"""The tags that most reasoning models write around their thoughts."""


def think_tags(text: str) -> tuple[str, str] | None:
    """Parse ``OPEN,CLOSE``, the tags around a model's thoughts; return None for ``none``."""
    if text == "none":
        return None
    start, _, end = text.partition(",")
    if not start.strip() or not end.strip() or "," in end or start == end:
        raise argparse.ArgumentTypeError(f"expected OPEN,CLOSE, such as <think>,</think>, or none; got {text!r}")
    return start, end
