"""Compute confidence bounds, consistent with the sign-flip test, for a change in scores.

Each bound is the value at which a score test stops rejecting (Wilson, JASA 22, 1927). The test uses the variance under
the hypothetical value, not under the observed value. If the hypothetical change is 0, the variance comes from randomly
tossed signs. Near 0, a correction makes the bound reach 0 exactly when the p-value of the sign-flip test reaches the
level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pytest_lmeval.stats.intervals import ROUNDING, Piece
from pytest_lmeval.stats.power import normal_quantile

Interval = tuple[float, float]

_CANCELLED = 1e-15  # the largest rounding error of a sum of parts that cancel
_HALVINGS = 45  # halvings of the search range of an end: exact to the last digits of a float
_LEAST_P = 1e-16  # below this, the normal point of p is imprecise
_MOST_BENT = 1.25  # bounds of few pairs need 1.04 to 1.23
_HIGHEST_LEVEL = 0.499  # at one half a bound is the value itself


@dataclass(frozen=True, slots=True)
class Sums:
    """Sums over the units of a mean.

    ``tossed`` is the variance of ``value`` under randomly tossed signs, and ``seen`` is its variance about the observed
    value. ``weight`` is the sum of the squared weights. ``unseen`` is the weight that an unobserved unit could have,
    which is 1/n for n plain pairs.
    """

    value: float
    tossed: float
    seen: float
    weight: float
    unseen: float


def sums(units: Sequence[Piece], value: float) -> Sums:
    """Return the sums over one or more units; ``value`` is the exact sum of their parts."""
    tossed = math.fsum(unit.part**2 for unit in units)
    weight = math.fsum(unit.weight**2 for unit in units)
    return Sums(
        value=value if abs(value) > _CANCELLED else 0.0,
        tossed=tossed,
        seen=math.fsum(unit.residual**2 for unit in units) if len(units) > 1 else tossed,
        weight=weight,
        unseen=(weight + max(unit.weight for unit in units)) / 2,
    )


def variance(of: Sums, x: float) -> float:
    """Return the variance of the change ``of.value``, which is at most 0, for a true change ``x`` in [-1, 1]."""
    change = of.value
    if x > 0 or change == 0 == x:
        return (1 - x) * (of.tossed + x * of.unseen)
    if x >= change:
        return of.tossed - (of.tossed - of.seen) * (x / change) ** 2
    room = 1 + change
    far = (change - x) / room
    seen = of.seen if change else of.tossed
    return (1 - far) * (seen + far * room * room * of.unseen)


def end(start: float, limit: float, is_inside: Callable[[float], bool]) -> float:
    """Return the last point between ``start`` and ``limit`` for which ``is_inside`` is True, or else ``start``."""
    if is_inside(limit):
        return limit
    for _ in range(_HALVINGS):
        middle = (start + limit) / 2
        if is_inside(middle):
            start = middle
        else:
            limit = middle
    return start


def change_bounds(of: Sums, p: float, level: float, *, is_shown: bool) -> Interval:
    """Return the bounds of a change in [-1, 1], each at the one-sided ``level`` in (0, 0.5).

    ``p`` is the one-sided p-value of the change in its observed direction. ``is_shown`` is True if the test is
    significant, p <= level; the bounds exclude 0 exactly in this case.
    """
    if of.value > 0:
        low, high = change_bounds(replace(of, value=-of.value), p, level, is_shown=is_shown)
        return -high, -low
    z, change = normal_quantile(1 - min(level, _HIGHEST_LEVEL)), of.value

    def is_inside(x: float) -> bool:
        return (x - change) ** 2 <= z * z * variance(of, x)

    low = end(change, -1.0, is_inside) if change > -1 else -1.0
    return (low, _near_end(of, p, z)) if is_shown else (low, end(0.0, 1.0, is_inside))


def _near_end(of: Sums, p: float, z: float) -> float:
    """Return a significant drop's bound nearer to 0, which reaches 0 when ``p`` reaches the level of ``z``."""
    change = of.value
    bent = abs(change) / math.sqrt(of.tossed) / max(normal_quantile(1 - max(p, _LEAST_P)), ROUNDING)
    bent = min(_MOST_BENT, bent)

    def is_inside(x: float) -> bool:
        point = z * (bent + max(0.0, 1 - bent) * x / change)
        return (x - change) ** 2 <= point * point * variance(of, x)

    # If p equals the level, rounding might put the bound at 0 although the change is significant.
    return min(end(change, 0.0, is_inside), max(change, -ROUNDING))


def level_of(p: float, p_holm: float, share: float, tests: int) -> float:
    """Return a test's level, so that p <= level exactly if p_holm <= ``share``, the part of alpha for all ``tests``."""
    level = share / tests if p * tests <= share or p_holm > share else share * p / p_holm
    return min(level, _HIGHEST_LEVEL)
