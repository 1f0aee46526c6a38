"""How long the model took: quantiles and a histogram."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

_BINS = 24
# From this ratio of the slowest to the fastest on, equal bins would put almost everything into the first.
_WIDE = 20.0
_QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}


def latency_facts(values: Sequence[float]) -> dict[str, Any] | None:
    """Return count, quantiles in ms and ``bins`` of [low, high, count]; None without a value.

    Bins are of equal width, or of equal ratio where the values span more than a factor of 20.
    """
    if not values:
        return None
    ordered = sorted(values)
    quantiles = {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in _QUANTILES.items()}
    wide = ordered[0] > 0 and ordered[-1] / ordered[0] > _WIDE
    edges = _edges(ordered[0], ordered[-1], wide)
    return {"n": len(ordered), **quantiles, "max": ordered[-1], "log": wide, "bins": _bins(ordered, edges)}


def _edges(low: float, high: float, wide: bool) -> list[float]:
    if low == high:
        return [low, high]
    if wide:
        inner = [low * (high / low) ** (number / _BINS) for number in range(1, _BINS)]
    else:
        inner = [low + (high - low) * number / _BINS for number in range(1, _BINS)]
    return [low, *inner, high]


def _bins(ordered: Sequence[float], edges: Sequence[float]) -> list[tuple[float, float, int]]:
    counts = [0] * (len(edges) - 1)
    place = 0
    for value in ordered:
        while place < len(counts) - 1 and value >= edges[place + 1]:
            place += 1
        counts[place] += 1
    return [(low, high, count) for low, high, count in zip(edges, edges[1:], counts, strict=False)]
