"""Power of the paired test: the smallest drop it would detect, and how often it detects a given one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

POWER = 0.8
"""The chance that the test finds the smallest detectable drop."""

_COUNTED = 20  # power is exact up to this many pairs that differ by chance alone, and a normal's beyond
_UNDERFLOW = -600  # of a logarithm whose exponential is next to nothing
_NEVER = 1e-7  # a negligible chance
_PRECISION = 10  # halvings of a range that ends at double its start: the result is right to 0.1 %


@lru_cache(maxsize=1024)  # a simulation asks for the same few again in every round
def detectable_drop(spread: float, weight: float, alpha: float) -> float | None:
    """Return the smallest drop of a mean score, in (0, 1], that the test finds four times in five; None for none.

    ``spread`` is the variance that tossed signs give the change: the sum of the squared parts that the independent
    units contributed to it. ``weight`` is the sum of the squared parts that they would contribute if each went from
    right to wrong. It is the drop of 1 / ``weight`` right-or-wrong examples, of which the share ``spread / weight``
    differs by chance alone: by :func:`flip_power` if up to 20 of them do, by a normal distribution beyond.
    """
    n, noise = max(1, round(1 / weight)), min(1.0, spread / weight)
    if n * noise > _COUNTED:
        return _smallest(1.0, lambda drop: _normally_shown(drop, spread, weight, alpha))
    needed = _needed(n, noise / 2, alpha)
    return _smallest(1.0 - noise, lambda drop: _power(n, drop, noise / 2, needed) >= POWER)


def flip_power(n: int, drop: float, noise: float, alpha: float) -> float:
    """Return the exact chance that the paired test of ``n`` independent right-or-wrong examples finds a drop.

    By chance alone a share ``noise`` of the examples changes between two runs, half of them for the better; another
    share ``drop`` goes from right to wrong. ``noise + drop`` is at most 1.
    """
    return _power(n, drop, noise / 2, _needed(n, noise / 2, alpha))


def normal_quantile(share: float) -> float:
    """Return the point below which ``share``, in (0, 1), of the standard normal distribution is."""
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
    """Return the chance that at least ``needed[b]`` examples get worse while b get better, over all b."""
    worse = min(1.0, (better + drop) / (1 - better))
    return math.fsum(
        chance * (1.0 - math.fsum(_binomial(n - fixed, worse, needed[fixed])))
        for fixed, chance in enumerate(_binomial(n, better, len(needed)))
        if chance > _NEVER
    )


def _needed(n: int, better: float, alpha: float) -> list[int]:
    """Return how many examples must get worse to be significant if 0, 1, 2 ... get better; n + 1 if no number would do.

    The list ends at a number that practically never get better.
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
    """Return the chances of 0, 1, 2 ... of n, ``terms`` of them or as many as there are."""
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
