"""Seed the global random generators as the harness does while functions of a task run, and restore them."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

_State = list[tuple[Callable[[Any], object], Any]]


@contextmanager
def seeded(seed: int = 0, other: int = 1234, start: Any = None) -> Iterator[Callable[[], bool]]:
    """Seed the generators for the block; yield a function that returns True after a draw from one of them.

    ``seed`` seeds ``random``, ``other`` numpy and torch; the defaults are the harness's. ``start`` is a state of
    ``random`` to begin with.
    """
    before = _states()

    def marks() -> list[bytes]:
        return [pickle.dumps(state) for _, state in _states()]

    try:
        random.seed(seed)
        if start is not None:
            random.setstate(start)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(other)
        if "torch" in sys.modules:
            sys.modules["torch"].default_generator.manual_seed(other)
        fresh = marks()
        # A generator that was imported since was not seeded.
        yield lambda: marks()[: len(fresh)] != fresh
    finally:
        for restore, state in before:
            restore(state)


def seed_of(row: Mapping[str, Any]) -> int:
    """Return a number of 32 bits that depends on the content of a row alone."""
    content = json.dumps(row, sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _states() -> _State:
    """Return the states of the imported generators, each with the function that restores it."""
    states: _State = [(random.setstate, random.getstate())]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        states.append((generator.set_state, generator.get_state()))
    return states
