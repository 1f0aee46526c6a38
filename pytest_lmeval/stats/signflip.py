"""Compute the sign-flip test, which finds the chance that a sum of paired differences is as low as observed.

If two runs are equally good, each difference could just as well have the opposite sign. The sums for all
assignments of signs form the distribution of the sum (Fisher, The Design of Experiments, 1935).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

_NOTHING = 1e-9  # the remainder of float sums that should cancel, relative to the largest difference
_DENOMINATOR = 10_000  # the largest denominator of a difference that is a fraction
_COMMON_DENOMINATOR = 1_000_000
_STEPS = 2_000_000  # additions for a grid that contains every difference exactly; about 50 ms
_ROUNDED_STEPS = 800_000  # additions for a grid to which differences are rounded
_FINE = 32  # steps in the root mean square of the rounded values, so that the sum is off by 1 % of its deviation
_COUNTED = 14  # units for which all 16,384 ways to toss the signs are counted; about 5 ms
_FINEST = 4096  # a grid with more steps in the root mean square gains nothing


def sign_flip_p(units: Sequence[float]) -> tuple[float, bool]:
    """Return the one-sided mid-p-value of the units' sum s, P(S < s) + P(S = s) / 2, and whether it is exact.

    ``units`` are independent differences; only their ratios matter. If all units are 0, the p-value is 1.0. The
    function uses the first affordable method of these four:

    - If the units are multiples of a common measure, build the distribution of their sum unit by unit. The method takes
      up to 2 million additions, enough for 1,000 to 2,000 differing units, such as means of three responses. For units
      of one size, the result is exact for any number of units, because they have a binomial distribution.
    - Count all ways to toss the signs of up to 14 units.
    - Round the units to the finest grid that 800,000 additions can handle, if its step is at most 1/32 of the units'
      root mean square. This method handles up to about 250 differing graded units, and is not exact.
    - Use the normal distribution whose variance is the sum of the units' squares. This method is not exact either.
    """
    largest = max(map(abs, units), default=0.0)
    ratios = [unit / largest for unit in units if abs(unit) > _NOTHING * largest]
    if not ratios:
        return 1.0, True
    measure = _affordable_measure(ratios)
    if measure is not None:
        return _p_on_grid([round(ratio / measure) for ratio in ratios]), True
    if len(ratios) <= _COUNTED:
        return _p_of_all(ratios), True
    step = _step(ratios)
    if step is not None:
        return _p_on_grid([round(ratio / step) for ratio in ratios]), False
    deviations = math.fsum(ratios) / math.sqrt(math.fsum(ratio * ratio for ratio in ratios))
    return math.erfc(-deviations / math.sqrt(2)) / 2, False


def _affordable_measure(ratios: Sequence[float]) -> float | None:
    """Return the ratios' common measure, or None if there is no such measure or its grid is too large."""
    sizes = Counter(round(abs(ratio), 12) for ratio in ratios)
    measure = _common_measure(sizes)
    # Units of the commonest size need no additions: they have a binomial distribution.
    others = len(ratios) - max(sizes.values())
    return measure if measure and others * math.fsum(map(abs, ratios)) / measure <= 2 * _STEPS else None


def _p_of_all(ratios: Sequence[float]) -> float:
    sums = [0.0]
    for ratio in ratios:
        sums = [total + sign * ratio for total in sums for sign in (1, -1)]
    observed = math.fsum(ratios)
    lower = sum(total < observed - _NOTHING for total in sums)
    equal = sum(abs(total - observed) <= _NOTHING for total in sums)
    return (lower + equal / 2) / len(sums)


def _step(ratios: Sequence[float]) -> float | None:
    """Return the step of the rounding grid, or None if no sufficiently fine grid is affordable."""
    total = math.fsum(map(abs, ratios))
    root_mean_square = math.sqrt(math.fsum(ratio * ratio for ratio in ratios) / len(ratios))
    step = max(len(ratios) * total / (2 * _ROUNDED_STEPS), root_mean_square / _FINEST)
    return step if step <= root_mean_square / _FINE else None


def _common_measure(sizes: Mapping[float, int]) -> float | None:
    """Return the largest number of which all ``sizes``, in (0, 1], are whole multiples, or None."""
    denominator = 1
    for size in sizes:
        fraction = Fraction(size).limit_denominator(_DENOMINATOR)
        denominator = math.lcm(denominator, fraction.denominator)
        if abs(float(fraction) - size) > _NOTHING or denominator > _COMMON_DENOMINATOR:
            return None
    return math.gcd(*(round(size * denominator) for size in sizes)) / denominator


def _p_on_grid(units: Sequence[int]) -> float:
    # A sum of tossed signs is twice the sum of its positive units minus the total, so count that sum instead.
    weights = Counter(map(abs, units))
    del weights[0]
    return _mid_p(weights, sum(unit for unit in units if unit > 0))


def _mid_p(weights: Counter[int], x: int) -> float:
    """Return P(X < x) + P(X = x) / 2 for the sum X of ``weights``, each included with a chance of one half."""
    total = sum(weight * count for weight, count in weights.items())
    if 2 * x > total:
        return 1.0 - _mid_p(weights, total - x)
    # Sort first, so that rounding does not depend on the order of the pairs.
    (commonest, count), *others = sorted(weights.items(), key=lambda item: (-item[1], item[0]))
    chances = [0.0] * (x + 1)
    chances[::commonest] = [_binomial_half(count, k) for k in range(x // commonest + 1)]
    for weight, count in others:
        for _ in range(count):
            shifted = [0.0] * min(weight, x + 1) + chances[:-weight]
            chances = [(stay + come) * 0.5 for stay, come in zip(chances, shifted, strict=False)]
    return math.fsum(chances[:x]) + chances[x] / 2


def _binomial_half(n: int, k: int) -> float:
    if k > n:
        return 0.0
    return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
