"""Compute standard errors and 95 % intervals of mean scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from pytest_lmeval.frozen import dataclass

Values = tuple[Sequence[float], Sequence[str]]
"""A task's scores or differences, and the cluster of each value, or () without clusters."""
Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""
ROUNDING = 1e-9
"""The largest difference between scores, which are in [0, 1], that may come from the rounding of a mean."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An independent unit's part of the mean, its residual from its task's mean, and its weight."""

    part: float
    residual: float
    weight: float


def units_of(tasks: Sequence[Values], *, are_scores: bool = False) -> list[Piece]:
    """Return the independent units of the unweighted mean of the tasks' means.

    Values whose clusters have the same name form one unit, even across tasks. If a task has only one value, the
    residual of a score is 0, and the residual of a difference is the difference itself. Raise ValueError if a task has
    clusters, but not one per value.
    """
    groups: dict[str | tuple[int, int], list[Piece]] = {}
    for number, (values, clusters) in enumerate(tasks):
        if clusters and len(clusters) != len(values):
            raise ValueError(f"{len(clusters)} clusters for {len(values)} differences")
        for index, unit in enumerate(_single_units(values, len(tasks), are_scores)):
            groups.setdefault((clusters[index] if clusters else "") or (number, index), []).append(unit)
    return [members[0] if len(members) == 1 else _joined(members) for members in groups.values()]


def _single_units(values: Sequence[float], tasks: int, are_scores: bool) -> list[Piece]:
    n, centre = len(values), math.fsum(values) / len(values)
    weight = 1 / (n * tasks)
    if n == 1:
        return [Piece(values[0] * weight, 0.0 if are_scores else values[0] * weight, weight)]
    freed = weight * math.sqrt(n / (n - 1))
    return [Piece(value * weight, (value - centre) * freed, weight) for value in values]


def _joined(members: Sequence[Piece]) -> Piece:
    part = math.fsum(unit.part for unit in members)
    weight = math.fsum(unit.weight for unit in members)
    part = part if abs(part) > ROUNDING * weight else 0.0
    return Piece(part, math.fsum(unit.residual for unit in members), weight)


def is_at_least(value: float, least: float) -> bool:
    """Return True if a score reaches a threshold or a floor, or is below it only because of rounding.

    For example, the mean of 0.7, 0.8 and 0.9 is 0.7999999999999999.
    """
    return value >= least or math.isclose(value, least, rel_tol=ROUNDING, abs_tol=ROUNDING)


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean of a non-empty sequence; the order of the values does not affect the result."""
    return float(values[0]) if len(values) == 1 else math.fsum(values) / len(values)


def sum_clusters(values: Sequence[float], clusters: Sequence[str] = ()) -> list[float]:
    """Return the sum of the values in each cluster, in order of appearance.

    ``clusters`` lists the name of each value's cluster, or is empty. Each value with the name "" forms its own cluster.
    """
    return [math.fsum(group) for group in _clusters(values, clusters)]


def _clusters(values: Sequence[float], clusters: Sequence[str]) -> list[list[float]]:
    groups: dict[str | int, list[float]] = {}
    for index, (value, cluster) in enumerate(zip(values, clusters or [""] * len(values), strict=True)):
        groups.setdefault(cluster or index, []).append(value)
    return list(groups.values())


def standard_error(values: Sequence[float], clusters: Sequence[str] = ()) -> float | None:
    """Return the sample standard deviation divided by the root of n, or None for fewer than two values or clusters.

    With ``clusters`` as in :func:`sum_clusters`, this is the standard error of a mean of whole clusters, by the
    linearised ratio estimator of Cochran (Sampling Techniques, 1977, section 9A.5).
    """
    if not values:
        return None
    n, centre = len(values), mean(values)
    residuals = [math.fsum(group) for group in _clusters([value - centre for value in values], clusters)]
    if len(residuals) < 2:
        return None
    spread = math.fsum(residual**2 for residual in residuals)
    return math.sqrt(spread / (len(residuals) - 1) / n) * math.sqrt(len(residuals) / n)


def score_bounds(values: Sequence[float], clusters: Sequence[str] = ()) -> tuple[float, float] | None:
    """Return a 95 % interval for the mean of scores in [0, 1], or None without scores.

    For scores of 0 and 1 without shared clusters, this is Wilson's interval. For other scores, the interval similarly
    allows for a share of unobserved scores at the far end of the scale. Therefore, the interval has a width even if all
    scores are equal. With shared clusters, Student's t replaces the normal distribution, and the design effect reduces
    n. The variance and the degrees of freedom follow Bell and McCaffrey (Survey Methodology 28, 2002).
    """
    if not values:
        return None
    if clusters and len(groups := _clusters(values, clusters)) < len(values):
        return _clustered(values, groups)
    n, centre = len(values), mean(values)
    if all(value in (0.0, 1.0) for value in values):
        return wilson_interval(round(math.fsum(values)), n)
    squares = math.fsum((value - centre) ** 2 for value in values)
    return _ends(centre, squares / n / max(1, n - 1), 1 / n)


def _clustered(values: Sequence[float], groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    n, centre = len(values), mean(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    if len(groups) == 1:
        return _ends(centre, squares / n**2, 1.0)
    weights = [len(group) / n for group in groups]
    residuals = [math.fsum(value - centre for value in group) / n for group in groups]
    spread = math.fsum(residual**2 / (1 - weight) for residual, weight in zip(residuals, weights, strict=True))
    # If scores happen to cancel out within clusters, their mean is no more certain than without clusters.
    spread = max(spread, squares / n**2)
    most = math.fsum(weight**2 for weight in weights)
    unseen = min(most, max(1 / n, spread * n / squares)) if squares > ROUNDING**2 else most
    degrees = max(1.0, most**2 / math.fsum(weight**4 for weight in weights) - 1)
    return _ends(centre, spread, unseen, t_quantile(degrees))


def overall_bounds(tasks: Sequence[Values]) -> tuple[float, float] | None:
    """Return a 95 % interval for the unweighted mean of the tasks' scores, or None if any task has no score.

    For several tasks, each end is the more distant of two ends: one from combining the tasks' intervals, the other from
    pooling all weighted scores.
    """
    if len(tasks) == 1:
        return score_bounds(*tasks[0])
    ends = [score_bounds(values, clusters) for values, clusters in tasks]
    known = [each for each in ends if each is not None]
    if not known or len(known) < len(tasks):
        return None
    low, high = combine([(mean(values), each) for (values, _), each in zip(tasks, known, strict=True)])
    units = units_of(tasks, are_scores=True)
    spread = math.fsum(unit.residual**2 for unit in units)
    score = mean([mean(values) for values, _ in tasks])
    unseen = (math.fsum(unit.weight**2 for unit in units) + max(unit.weight for unit in units)) / 2
    pooled = _ends(score, spread, unseen)
    return max(0.0, min(low, pooled[0])), min(1.0, max(high, pooled[1]))


def _ends(centre: float, spread: float, unseen: float, z: float = Z95) -> tuple[float, float]:
    low, high = centre - _distance(centre, spread, unseen, z), centre + _distance(1 - centre, spread, unseen, z)
    return max(0.0, low), min(1.0, high)


def _distance(room: float, spread: float, unseen: float, z: float) -> float:
    """Return how far the true mean may be from the observed mean, towards an end of the scale at distance ``room``."""
    if room <= ROUNDING:
        return max(0.0, room)
    k = z * z
    square, linear = room * room * (1 + k * unseen), k * (room * room * unseen - spread)
    return room * min(1.0, (linear + math.sqrt(linear * linear + 4 * square * k * spread)) / (2 * square))


def combine(estimates: Sequence[tuple[float, tuple[float, float]]]) -> tuple[float, float]:
    """Return a 95 % interval for the mean of independent estimates from their 95 % intervals.

    On each side, the squared distances from the estimates to their ends are summed, as variances are (Zou and Donner,
    Statistics in Medicine 27, 2008). The interval may be asymmetric, and its width is never 0, even if all answers are
    right.
    """
    n, centre = len(estimates), mean([value for value, _ in estimates])
    below = math.sqrt(math.fsum((value - low) ** 2 for value, (low, _) in estimates))
    above = math.sqrt(math.fsum((high - value) ** 2 for value, (_, high) in estimates))
    return centre - below / n, centre + above / n


def wilson_interval(successes: int, n: int) -> tuple[float, float]:
    """Return the 95 % score interval for a proportion of ``n`` >= 1 trials (Wilson, JASA 22, 1927)."""
    share, scale = successes / n, 1 + Z95 * Z95 / n
    centre = (share + Z95 * Z95 / (2 * n)) / scale
    half = Z95 / scale * math.sqrt(share * (1 - share) / n + Z95 * Z95 / (4 * n * n))
    # If all answers are right or all are wrong, rounding must not move the end away from 1 or 0.
    low = 0.0 if share == 0 else centre - half
    high = 1.0 if share == 1 else centre + half
    return low, high


@lru_cache(maxsize=1024)  # tasks and rounds of a simulation share a few degrees
def t_quantile(degrees: float) -> float:
    """Return the 97.5 % point of Student's t distribution with ``degrees`` >= 1 degrees of freedom, by bisection."""
    low, high = 0.0, 13.0
    for _ in range(60):
        middle = (low + high) / 2
        # The tail above ``middle`` is half of this value.
        if _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + middle * middle)) > 0.05:
            low = middle
        else:
            high = middle
    return (low + high) / 2


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
    # Lentz's method; 300 terms suffice for all a and b from a t distribution.
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
