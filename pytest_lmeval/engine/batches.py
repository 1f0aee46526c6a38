"""Which examples are asked together: decided once, before the run, from the order of the selected examples alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

_Key = TypeVar("_Key")


def plan_batches(keyed: Iterable[tuple[Hashable, _Key]], size: int) -> list[list[_Key]]:
    """Return batches of at most ``size`` keys; ``keyed`` yields ``(group, key)`` and a batch never mixes groups.

    A group is a task file: its examples share fixtures, so they can be rendered together. Keys of one group fill its
    batches in order even where other groups come in between.

    >>> plan_batches([("a", 1), ("b", 2), ("a", 3), ("a", 4)], 2)
    [[1, 3], [2], [4]]
    """
    batches: list[list[_Key]] = []
    filling: dict[Hashable, list[_Key]] = {}
    for group, key in keyed:
        batch = filling.get(group)
        if batch is None or len(batch) >= size:
            batch = filling[group] = []
            batches.append(batch)
        batch.append(key)
    return batches
