"""How much a template may do: steps, characters, and a guard on time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2.runtime import Undefined

__all__ = ["MAX_CHARS", "MAX_ELEMENTS", "MAX_SECONDS", "MAX_STEPS", "Budget", "LimitReached", "weigh"]

MAX_STEPS = 100_000
MAX_CHARS = 4 << 20
MAX_ELEMENTS = 200_000
MAX_SECONDS = 5.0


class LimitReached(Exception):
    """A template did more than a template may."""


@dataclass(slots=True)
class Budget:
    """What one rendering has left. Steps come first, so that the same template stops at the same place everywhere."""

    steps: int = MAX_STEPS
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)

    def step(self) -> None:
        """Count one iteration, call or operation."""
        self.steps -= 1
        if self.steps < 0:
            raise LimitReached(f"more than {MAX_STEPS:,} steps")
        if time.monotonic() > self.deadline:
            raise LimitReached(f"more than {MAX_SECONDS:g} seconds")

    def iterate(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield ``values``, a step for each."""
        for value in values:
            self.step()
            yield value


def weigh(value: Any) -> int:
    """Return how many characters ``value`` has written out; raise LimitReached beyond MAX_CHARS or MAX_ELEMENTS.

    What stands in it twice counts twice: a list of a list twice, and so on, is small in memory and endless as text.
    """
    total = elements = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Undefined):
            str(each)  # raises what the undefined value has to say
        total += _own_weight(each)
        elements += 1
        if total > MAX_CHARS:
            raise LimitReached(f"more than {MAX_CHARS:,} characters")
        if elements > MAX_ELEMENTS:
            raise LimitReached(f"more than {MAX_ELEMENTS:,} elements")
        if isinstance(each, Mapping):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
    return total


def _own_weight(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, int):
        return 1 + value.bit_length() // 3
    return 1
