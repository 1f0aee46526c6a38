"""Check and parse numbers from users and files."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

from pytest_lmeval.errors import UsageError
from pytest_lmeval.frozen import dataclass


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a finite number that is not a boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def is_whole(value: object) -> TypeGuard[int]:
    """Return True for an integer that is not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: object) -> TypeGuard[int]:
    """Return True for an integer >= 0 that is not a boolean."""
    return is_whole(value) and value >= 0


def is_share(value: object) -> TypeGuard[float]:
    """Return True for a number in [0, 1], or a boolean."""
    return isinstance(value, int | float) and 0 <= value <= 1


def sound_amounts(usage: object) -> dict[str, float]:
    """Return the valid amounts in ``usage``, which comes from an application or a file."""
    given = usage.items() if isinstance(usage, Mapping) else ()
    return {str(name): amount for name, amount in given if is_number(amount) and amount >= 0}


def total_usage(
    usages: Iterable[Mapping[str, float]], add: Callable[[Iterable[float]], float] = sum
) -> dict[str, float]:
    """Return the sum of each amount over all usages that contain it, in order of first occurrence."""
    amounts: dict[str, list[float]] = {}
    for usage in usages:
        for name in usage:
            amounts.setdefault(name, []).append(usage[name])
    return {name: add(amounts[name]) for name in amounts}


def beside(value: float, least: float, style: str = ".4f") -> str:
    """Format a score for display next to ``least``; do not round a lower score up to ``least``.

    >>> beside(0.79996, 0.8), beside(0.75, 0.8)
    ('0.79996', '0.7500')
    """
    shown = format(value, style)
    return repr(value) if float(shown) >= least > value else shown


@dataclass(frozen=True, slots=True)
class Number:
    """The finite numbers that an option accepts.

    The numbers include the bounds ``low`` and ``high``, and exclude the bounds ``above`` and ``below``. Whole numbers
    must fit into 64 bits. ``str()`` describes the numbers in a form that can follow the word "expected".

    >>> print(Number(0, 1), Number(above=0), Number(above=0, below=1), Number(1, whole=True), sep="; ")
    a number from 0 to 1; a number > 0; a number > 0 and < 1; a whole number >= 1
    """

    low: float = -math.inf
    high: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    whole: bool = False

    def __str__(self) -> str:
        kind = "a whole number" if self.whole else "a number"
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"{kind} from {self.low:g} to {self.high:g}"
        bounds = {">=": self.low, ">": self.above, "<=": self.high, "<": self.below}
        return " ".join([kind, " and ".join(f"{sign} {at:g}" for sign, at in bounds.items() if math.isfinite(at))])

    def allows(self, value: Any) -> bool:
        """Return True if ``value`` is an allowed number."""
        kind = is_whole(value) and abs(value) < 2**63 if self.whole else is_number(value)
        return kind and self.low <= value <= self.high and self.above < value < self.below

    def check(self, value: Any) -> Any:
        """Return ``value`` if it is allowed; otherwise raise a ValueError that describes the allowed numbers."""
        if not self.allows(value):
            raise ValueError(str(self))
        return value

    def parse(self, text: str) -> Any:
        """Parse ``text``; if it is not an allowed number, raise a ValueError that describes the allowed numbers."""
        try:
            number = int(text) if self.whole else float(text)
        except ValueError:
            number = math.nan
        if not self.allows(number):
            raise ValueError(f"expected {self}, got {text!r}")
        return number

    def of_option(self, name: str, given: object) -> Any:
        """Parse ``given``, an ini option's value; raise a UsageError that begins with the option's ``name``."""
        try:
            return self.parse(str(given))
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from None
