"""Compute the power of the paired test: the smallest detectable drop, and the chance of detecting a given drop."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

POWER = 0.8
"""The power at the smallest detectable drop."""

_COUNTED = 20  # up to this many pairs that differ by chance alone, power is exact; for more, approximate
_UNDERFLOW = -600  # a logarithm whose exponential is almost nothing
_NEVER = 1e-7  # a negligible chance
_PRECISION = 10  # halvings of a range whose end is twice its start: accurate to 0.1 %


@lru_cache(maxsize=1024)  # a simulation repeats the same few calls in every round
def detectable_drop(spread: float, weight: float, alpha: float) -> float | None:
    """Return the smallest drop in a mean score, in (0, 1], that the test detects four times in five, or None.

    ``spread`` is the variance of the change under randomly tossed signs, which is the sum of the squared parts of the
    independent units. ``weight`` is the value that this sum would have if each unit changed from right to wrong. The
    result is the drop for 1 / ``weight`` right-or-wrong examples, of which the share ``spread / weight`` differs by
    chance alone. If at most 20 of these examples differ, the power is exact, as in :func:`flip_power`. Otherwise, the
    power comes from a normal approximation.
    """
    n, noise = max(1, round(1 / weight)), min(1.0, spread / weight)
    if n * noise > _COUNTED:
        return _smallest(1.0, lambda drop: _normally_shown(drop, spread, weight, alpha))
    needed = _needed(n, noise / 2, alpha)
    return _smallest(1.0 - noise, lambda drop: _power(n, drop, noise / 2, needed) >= POWER)


def flip_power(n: int, drop: float, noise: float, alpha: float) -> float:
    """Return the exact chance that the paired test detects a drop in ``n`` independent right-or-wrong examples.

    By chance alone, the share ``noise`` of the examples changes between two runs, half of them for the better. A
    further share of the examples, ``drop``, changes from right to wrong. ``noise + drop`` is at most 1.
    """
    return _power(n, drop, noise / 2, _needed(n, noise / 2, alpha))


def normal_quantile(share: float) -> float:
    """Return the quantile of the standard normal distribution for ``share``, in (0, 1)."""
    from statistics import NormalDist  # slow to import, and only large comparisons need it

    return NormalDist().inv_cdf(share)


def _smallest(most: float, is_shown: Callable[[float], bool]) -> float | None:
    if not is_shown(most):
        return None
    while is_shown(most / 2):
        most /= 2
    low, high = most / 2, most
    for _ in range(_PRECISION):
        middle = (low + high) / 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high


def _normally_shown(drop: float, spread: float, weight: float, alpha: float) -> bool:
    variance = spread + drop * weight
    by_chance = normal_quantile(1 - alpha) * math.sqrt(variance)
    return drop >= by_chance + normal_quantile(POWER) * math.sqrt(max(0.0, variance - drop * drop * weight))


def _power(n: int, drop: float, better: float, needed: Sequence[int]) -> float:
    """Return the chance, summed over all b, that b examples get better and at least ``needed[b]`` get worse."""
    worse = min(1.0, (better + drop) / (1 - better))
    return math.fsum(
        chance * (1.0 - math.fsum(_binomial(n - fixed, worse, needed[fixed])))
        for fixed, chance in enumerate(_binomial(n, better, len(needed)))
        if chance > _NEVER
    )


def _needed(n: int, better: float, alpha: float) -> list[int]:
    """Return the smallest significant number of worse examples, or n + 1, for 0, 1, 2, ... better examples.

    The list ends at a number of better examples that chance practically never reaches.
    """
    most = min(n, math.ceil(n * better + 5 * math.sqrt(n * better) + 5 * (better > 0)))
    needed: list[int] = []
    for fixed in range(most + 1):
        broken = needed[-1] if needed else 0
        while broken <= n and _sign_test(fixed, broken) > alpha:
            broken += 1
        needed.append(broken)
    return needed


def _sign_test(better: int, worse: int) -> float:
    chances = _binomial(better + worse, 0.5, better + 1)
    return math.fsum(chances) - chances[-1] / 2


def _binomial(n: int, share: float, terms: int) -> list[float]:
    """Return the chances of 0, 1, 2, ... successes in ``n`` trials, limited to ``terms`` values."""
    terms = min(terms, n + 1)
    if share in (0.0, 1.0):
        return [float(k == round(n * share)) for k in range(terms)]
    yes, no = math.log(share), math.log1p(-share)
    if n * no < _UNDERFLOW:
        whole = math.lgamma(n + 1)
        logs = (whole - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * yes + (n - k) * no for k in range(terms))
        return [math.exp(log) for log in logs]
    chance, odds = math.exp(n * no), share / (1 - share)
    chances = []
    for k in range(terms):
        chances.append(chance)
        chance *= odds * (n - k) / (k + 1)
    return chances
