"""How much a template may do: steps, characters, memory, and a guard on time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2.runtime import Undefined

ROOM = " room"
"""What the memory of an example's templates is called among their variables: no template can spell it."""

MAX_STEPS = 100_000
MAX_CHARS = 4 << 20
MAX_ELEMENTS = 200_000
MAX_SECONDS = 5.0
MAX_BYTES = 64 << 20
_ELEMENT_BYTES = 50
_WIDEST_CHARACTER = 4


class LimitReached(Exception):
    """A template did more than a template may."""


@dataclass(slots=True)
class Room:
    """The memory that all templates of one example have left, for what they make and may keep until their end."""

    bytes: int = MAX_BYTES

    def take(self, size: int) -> None:
        """Count a value of so many bytes."""
        self.bytes -= size
        if self.bytes < 0:
            raise LimitReached(f"more than {MAX_BYTES >> 20} MiB of text and lists in the templates of one example")


@dataclass(slots=True)
class RenderBudget:
    """What one rendering has left. Steps come first, so that the same template stops at the same place everywhere."""

    room: Room = field(default_factory=Room)
    steps: int = MAX_STEPS
    deadline: float = field(default_factory=lambda: time.monotonic() + MAX_SECONDS)

    def step(self) -> None:
        """Count one iteration, call or operation."""
        self.steps -= 1
        if self.steps < 0:
            raise LimitReached(f"more than {MAX_STEPS:,} steps")
        if time.monotonic() > self.deadline:
            raise LimitReached(f"more than {MAX_SECONDS:g} seconds")

    def made(self, value: Any) -> Any:
        """Count a value that is new, but not what is in it; return it."""
        if isinstance(value, str):
            self.room.take(_text_bytes(value))
        elif isinstance(value, Mapping | list | tuple):
            self.room.take(_ELEMENT_BYTES * len(value))
        return value

    def made_throughout(self, value: Any) -> Any:
        """Count a value that is new, and so is what is in it; return it."""
        self.room.take(sum(_text_bytes(each) if isinstance(each, str) else _ELEMENT_BYTES for each in _parts(value)))
        return value

    def iterate(self, values: Iterable[Any]) -> Iterator[Any]:
        """Yield ``values``, a step for each."""
        for value in values:
            self.step()
            yield value


def weigh(value: Any) -> int:
    """Return how many characters ``value`` has written out; raise LimitReached beyond MAX_CHARS or MAX_ELEMENTS.

    A value that occurs twice counts twice: a list of a list twice, and so on, is small in memory and endless as text.
    """
    total = 0
    for elements, each in enumerate(_parts(value), 1):
        if isinstance(each, Undefined):
            str(each)  # raises what the undefined value has to say
        total += _own_weight(each)
        if total > MAX_CHARS:
            raise LimitReached(f"more than {MAX_CHARS:,} characters")
        if elements > MAX_ELEMENTS:
            raise LimitReached(f"more than {MAX_ELEMENTS:,} elements")
    return total


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value, and what is in it on all levels."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Mapping):
            waiting.extend(each.keys())
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)


def _own_weight(value: Any) -> int:
    if isinstance(value, str):
        return 1 + len(value)
    if isinstance(value, int):
        return 1 + value.bit_length() // 3
    return 1


def _text_bytes(text: str) -> int:
    return _ELEMENT_BYTES + len(text) * (1 if text.isascii() else _WIDEST_CHARACTER)
