"""How sure a mean of scores is: standard error and 95 % interval, with nothing but ``math``."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["interval", "mean", "standard_error", "t_quantile", "wilson_interval"]

_Z = 1.959963984540054  # 97.5 % point of the normal distribution


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of a non-empty sequence, exactly rounded whatever the order of the values."""
    return math.fsum(values) / len(values)


def standard_error(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation over the root of n; None below two values."""
    n = len(values)
    if n < 2:
        return None
    centre = mean(values)
    return math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (n - 1) / n)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean: Wilson's for scores of 0 and 1 alone, else Student's t cut to [0, 1].

    None where nothing can be said: no value, or a single graded one.
    """
    if not values:
        return None
    if all(value in (0.0, 1.0) for value in values):
        return wilson_interval(round(math.fsum(values)), len(values))
    error = standard_error(values)
    if error is None:
        return None
    centre = mean(values)
    half = t_quantile(len(values) - 1) * error
    return max(0.0, centre - half), min(1.0, centre + half)


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion, n >= 1 (E. B. Wilson, JASA 22, 1927)."""
    share = successes / n
    scale = 1 + _Z * _Z / n
    centre = (share + _Z * _Z / (2 * n)) / scale
    half = _Z / scale * math.sqrt(share * (1 - share) / n + _Z * _Z / (4 * n * n))
    # Rounding must not push the ends of an all-or-nothing task off 0 and 1.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return low, high


def t_quantile(degrees: int) -> float:
    """Return the 97.5 % point of Student's t distribution with ``degrees`` >= 1 degrees of freedom, by bisection."""
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        if _t_tail(middle, degrees) > 0.025:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_tail(t: float, degrees: int) -> float:
    return 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function (continued fraction, DLMF 8.17.22)."""
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(b, a, 1.0 - x)
    log_front = a * math.log(x) + b * math.log1p(-x) - math.log(a)
    log_front += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(log_front) * _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    # Lentz's method; 300 terms suffice for every a and b that a t distribution brings.
    c, d = 1.0, 1.0 / _nonzero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return fraction


def _nonzero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
