"""The global generators of random numbers while functions of a task run: seeded as the harness does, and put back."""

from __future__ import annotations

import hashlib
import json
import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

SEED, OTHER_SEED = 0, 1234
"""The harness's own seeds, of ``random``, and of numpy and torch."""
_State = list[tuple[Callable[[Any], object], Any]]


@contextmanager
def seeded(seed: int = SEED, other: int = OTHER_SEED, start: Any = None) -> Iterator[Callable[[], bool]]:
    """Seed the generators for the block; yield a function that says if one of them was drawn from since.

    ``start`` is a state of ``random`` to begin with.
    """
    before = _states()
    try:
        random.seed(seed)
        if start is not None:
            random.setstate(start)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(other)
        if "torch" in sys.modules:
            sys.modules["torch"].default_generator.manual_seed(other)
        fresh = _marks()
        # One that was imported since was not seeded.
        yield lambda: _marks()[: len(fresh)] != fresh
    finally:
        for put_back, state in before:
            put_back(state)


def seed_of(row: Mapping[str, Any]) -> int:
    """Return a number of 32 bits that follows from the content of a row."""
    content = json.dumps(row, sort_keys=True, default=str)
    return int.from_bytes(hashlib.sha256(content.encode("utf-8", "surrogatepass")).digest()[:4], "big")


def _states() -> _State:
    """Return the states of the generators that are imported, each with what puts it back."""
    states: _State = [(random.setstate, random.getstate())]
    if "numpy" in sys.modules:
        numpy = sys.modules["numpy"]
        states.append((numpy.random.set_state, numpy.random.get_state()))
    if "torch" in sys.modules:
        generator = sys.modules["torch"].default_generator
        states.append((generator.set_state, generator.get_state()))
    return states


def _marks() -> list[bytes]:
    """Return the states as values that can be compared."""
    return [pickle.dumps(state) for _, state in _states()]
