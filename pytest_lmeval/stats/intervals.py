"""How sure a mean of scores is: standard error and 95 % interval, with nothing but ``math``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Protocol

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


class Scored(Protocol):
    """A row of a leaderboard, as far as :func:`overall_interval` looks at it."""

    @property
    def score(self) -> float | None: ...

    @property
    def ci95(self) -> tuple[float, float] | None: ...


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of a non-empty sequence, exactly rounded whatever the order of the values."""
    return math.fsum(values) / len(values)


def sum_clusters(values: Sequence[float], clusters: Sequence[str] = ()) -> list[float]:
    """Return the sum of the values of each cluster, in order of appearance.

    ``clusters`` names the cluster of each value, or is empty; a value without a name ("") is a cluster of its own.
    """
    groups: dict[str | int, list[float]] = {}
    for index, (value, cluster) in enumerate(zip(values, clusters or [""] * len(values), strict=True)):
        groups.setdefault(cluster or index, []).append(value)
    return [math.fsum(group) for group in groups.values()]


def standard_error(values: Sequence[float], clusters: Sequence[str] = ()) -> float | None:
    """Return the sample standard deviation over the root of n; None below two values, or two clusters.

    With ``clusters`` as in :func:`sum_clusters` it is the error of a mean of whole clusters (linearised ratio
    estimator; W. G. Cochran, Sampling Techniques, 1977, section 9A.5), which does not count what they share twice.
    """
    if not values:
        return None
    n, centre = len(values), mean(values)
    residuals = sum_clusters([value - centre for value in values], clusters)
    if len(residuals) < 2:
        return None
    spread = math.fsum(residual**2 for residual in residuals)
    return math.sqrt(spread / (len(residuals) - 1) / n) * math.sqrt(len(residuals) / n)


def interval(values: Sequence[float], clusters: Sequence[str] = ()) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean: Wilson's for scores of 0 and 1 alone, else Student's t cut to [0, 1].

    Where values share ``clusters``, t takes their standard error and number, and Wilson's interval the number of
    independent values that would be as uncertain (E. L. Korn and B. I. Graubard, Survey Methodology 24, 1998). None
    where nothing can be said: no value, or graded ones of a single cluster.
    """
    if not values:
        return None
    centre, units = mean(values), len(sum_clusters(values, clusters))
    if all(value in (0.0, 1.0) for value in values):
        return _wilson(centre, len(values) if units == len(values) else _effective(values, clusters, units))
    error = standard_error(values, clusters)
    if error is None:
        return None
    half = t_quantile(units - 1) * error
    return max(0.0, centre - half), min(1.0, centre + half)


def overall_interval(rows: Iterable[Scored]) -> tuple[float, float] | None:
    """Return a 95 % interval of the unweighted mean of the rows' scores; None where a row has no score or interval."""
    estimates = []
    for row in rows:
        if row.score is None or row.ci95 is None:
            return None
        estimates.append((row.score, row.ci95))
    if not estimates:
        return None
    low, high = combine(estimates)
    return max(0.0, low), min(1.0, high)


def combine(estimates: Sequence[tuple[float, tuple[float, float]]]) -> tuple[float, float]:
    """Return a 95 % interval of the mean of independent estimates, each with its own 95 % interval around it.

    The distances to the ends are added as variances are, each side for itself (G. Y. Zou and A. Donner, Statistics in
    Medicine 27, 2008), so that the intervals may be lopsided: none vanishes where all of a task's answers are right.
    """
    n, centre = len(estimates), mean([value for value, _ in estimates])
    below = math.sqrt(math.fsum((value - low) ** 2 for value, (low, _) in estimates))
    above = math.sqrt(math.fsum((high - value) ** 2 for value, (_, high) in estimates))
    return centre - below / n, centre + above / n


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % score interval of a proportion, n >= 1 (E. B. Wilson, JASA 22, 1927)."""
    return _wilson(successes / n, n)


def _wilson(share: float, n: float) -> tuple[float, float]:
    scale = 1 + Z95 * Z95 / n
    centre = (share + Z95 * Z95 / (2 * n)) / scale
    half = Z95 / scale * math.sqrt(share * (1 - share) / n + Z95 * Z95 / (4 * n * n))
    # Rounding must not push the ends of an all-or-nothing task off 0 and 1.
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return low, high


def _effective(values: Sequence[float], clusters: Sequence[str], units: int) -> float:
    """Return how many independent 0/1 values would leave as much doubt as these, at least 1."""
    share = mean(values)
    error = standard_error(values, clusters)
    if error is None or share in (0.0, 1.0):
        return units
    if error == 0:
        return len(values)
    few = (Z95 / t_quantile(units - 1)) ** 2
    return min(float(len(values)), max(1.0, share * (1 - share) / error**2 * few))


@lru_cache(maxsize=1024)  # tasks and rounds of a simulation have the same few degrees
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
