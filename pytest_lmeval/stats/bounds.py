"""What a score, or a change of scores, may truly be: bounds that say the same as the test beside them.

Each bound is where a score test stops rejecting (E. B. Wilson, JASA 22, 1927): the variance is that of the value which
is asked about, not of the value which was seen. Of a change the variance at 0 is the one that tossed signs give,
and near 0 the bound is bent so that it reaches 0 exactly where the p of the sign-flip test reaches the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_lmeval.stats.intervals import Z95, combine, mean, t_quantile, wilson_interval
from pytest_lmeval.stats.power import normal_quantile

Values = tuple[Sequence[float], Sequence[str]]
"""A task's scores or differences, and the cluster of each, or nothing where none has one."""
Interval = tuple[float, float]

_NOTHING = 1e-9  # a score is in [0, 1]: a smaller difference is the rounding of a mean
_ROUNDING = 1e-15  # of a sum whose parts cancel
_HALVINGS = 45  # of the range that an end is looked for in: to the last digits of a float
_LEAST_P = 1e-16  # below, the normal point of p cannot be told
_MOST_BENT = 1.25  # what few pairs need is 1.04 to 1.23
_HIGHEST_LEVEL = 0.499  # at one half a bound is the value itself


@dataclass(frozen=True, slots=True)
class Unit:
    """What varies as one: its part of the mean, what of it is left about the tasks' means, and its weight."""

    part: float
    residual: float
    weight: float


@dataclass(frozen=True, slots=True)
class Sums:
    """What the units of a mean add up to.

    ``tossed`` is the variance of ``value`` that tossed signs give, ``seen`` the one about what was seen. ``weight`` is
    the sum of the squared weights, ``unseen`` what one unit that was not seen could weigh: 1/n for n plain pairs.
    """

    value: float
    tossed: float
    seen: float
    weight: float
    unseen: float

    @property
    def turned(self) -> Sums:
        """The same of the values with all their signs turned."""
        return replace(self, value=-self.value)


def units_of(tasks: Sequence[Values], *, are_scores: bool = False) -> list[Unit]:
    """Return the units of the unweighted mean of the tasks' means: clusters by name, whatever task they stand in.

    Of a task's one value nothing is left about its mean; as a difference, it is about 0. Raises ValueError where a task
    has clusters, and not one for each value.
    """
    groups: dict[str | tuple[int, int], list[Unit]] = {}
    for number, (values, clusters) in enumerate(tasks):
        if clusters and len(clusters) != len(values):
            raise ValueError(f"{len(clusters)} clusters for {len(values)} differences")
        for index, unit in enumerate(_single_units(values, len(tasks), are_scores)):
            groups.setdefault((clusters[index] if clusters else "") or (number, index), []).append(unit)
    return [members[0] if len(members) == 1 else _joined(members) for members in groups.values()]


def _single_units(values: Sequence[float], tasks: int, are_scores: bool) -> list[Unit]:
    n, centre = len(values), mean(values)
    weight = 1 / (n * tasks)
    if n == 1:
        return [Unit(values[0] * weight, 0.0 if are_scores else values[0] * weight, weight)]
    freed = weight * math.sqrt(n / (n - 1))
    return [Unit(value * weight, (value - centre) * freed, weight) for value in values]


def _joined(members: Sequence[Unit]) -> Unit:
    part = math.fsum(unit.part for unit in members)
    weight = math.fsum(unit.weight for unit in members)
    part = part if abs(part) > _NOTHING * weight else 0.0
    return Unit(part, math.fsum(unit.residual for unit in members), weight)


def sums(units: Sequence[Unit], value: float) -> Sums:
    """Return what the units, one at least, add up to; ``value`` is the sum of their parts, worked out exactly."""
    tossed = math.fsum(unit.part**2 for unit in units)
    weight = math.fsum(unit.weight**2 for unit in units)
    return Sums(
        value=value if abs(value) > _ROUNDING else 0.0,
        tossed=tossed,
        seen=math.fsum(unit.residual**2 for unit in units) if len(units) > 1 else tossed,
        weight=weight,
        unseen=(weight + max(unit.weight for unit in units)) / 2,
    )


def variance(of: Sums, x: float) -> float:
    """Return the variance of the change ``of.value`` <= 0 if the truth were ``x``, in [-1, 1]."""
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
    """Return the last point from ``start`` to ``limit`` that is inside, or ``start``."""
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
    """Return what a change in [-1, 1] may be, each end at ``level``, in (0, 0.5).

    ``p`` is the one-sided p of the change in the direction that was seen. ``is_shown`` is the test's verdict, p <=
    level: 0 is left out where it is true, and only there.
    """
    if of.value > 0:
        low, high = change_bounds(of.turned, p, level, is_shown=is_shown)
        return -high, -low
    z, change = normal_quantile(1 - min(level, _HIGHEST_LEVEL)), of.value

    def is_inside(x: float) -> bool:
        return (x - change) ** 2 <= z * z * variance(of, x)

    low = end(change, -1.0, is_inside) if change > -1 else -1.0
    return (low, _near_end(of, p, z)) if is_shown else (low, end(0.0, 1.0, is_inside))


def _near_end(of: Sums, p: float, z: float) -> float:
    """Return the end towards 0 of a drop that is shown: it reaches 0 where p reaches the level of ``z``."""
    change = of.value
    bent = abs(change) / math.sqrt(of.tossed) / max(normal_quantile(1 - max(p, _LEAST_P)), _NOTHING)
    bent = min(_MOST_BENT, bent)

    def is_inside(x: float) -> bool:
        point = z * (bent + max(0.0, 1 - bent) * x / change)
        return (x - change) ** 2 <= point * point * variance(of, x)

    # At the level itself it is 0 but for rounding: the verdict decides.
    return min(end(change, 0.0, is_inside), max(change, -_NOTHING))


def level_of(p: float, p_holm: float, share: float, tests: int) -> float:
    """Return the level of one of so many ``tests`` that have a ``share`` of alpha: p <= level where p_holm <= share."""
    level = share / tests if p * tests <= share or p_holm > share else share * p / p_holm
    return min(level, _HIGHEST_LEVEL)


def score_bounds(values: Sequence[float], clusters: Sequence[str] = ()) -> Interval | None:
    """Return a 95 % interval of the mean of scores in [0, 1]; None of none.

    For scores of 0 and 1 that share no cluster it is Wilson's interval, and by the same idea for any others: what was
    seen, plus a share that was not seen at the far end. It has a width also where all scores are alike. Where clusters
    are shared, Student's t is taken in place of the normal distribution, with the degrees of freedom and the variance
    of R. M. Bell and D. F. McCaffrey (Survey Methodology 28, 2002), and the design effect in place of n.
    """
    if not values:
        return None
    groups = _clusters(values, clusters)
    if len(groups) < len(values):
        return _clustered(values, list(groups.values()))
    n, centre = len(values), mean(values)
    if all(value in (0.0, 1.0) for value in values):
        return wilson_interval(round(math.fsum(values)), n)
    squares = math.fsum((value - centre) ** 2 for value in values)
    return _ends(centre, squares / n / max(1, n - 1), 1 / n)


def _clusters(values: Sequence[float], clusters: Sequence[str]) -> Mapping[str | int, list[float]]:
    groups: dict[str | int, list[float]] = {}
    for index, (value, cluster) in enumerate(zip(values, clusters or [""] * len(values), strict=True)):
        groups.setdefault(cluster or index, []).append(value)
    return groups


def _clustered(values: Sequence[float], groups: Sequence[Sequence[float]]) -> Interval:
    n, centre = len(values), mean(values)
    squares = math.fsum((value - centre) ** 2 for value in values)
    if len(groups) == 1:
        return _ends(centre, squares / n**2, 1.0)
    weights = [len(group) / n for group in groups]
    residuals = [math.fsum(value - centre for value in group) / n for group in groups]
    spread = math.fsum(residual**2 / (1 - weight) for residual, weight in zip(residuals, weights, strict=True))
    # Answers that cancel out within clusters by chance are no surer than ones without clusters.
    spread = max(spread, squares / n**2)
    most = math.fsum(weight**2 for weight in weights)
    unseen = min(most, max(1 / n, spread * n / squares)) if squares > _NOTHING**2 else most
    degrees = max(1.0, most**2 / math.fsum(weight**4 for weight in weights) - 1)
    return _ends(centre, spread, unseen, t_quantile(degrees))


def overall_bounds(tasks: Sequence[Values]) -> Interval | None:
    """Return a 95 % interval of the unweighted mean of the tasks' scores; None where a task, or all, have none.

    Of several tasks each end is the farther one of two: that of the tasks' intervals, combined, and that of all their
    scores with the weights they have.
    """
    ends = [score_bounds(values, clusters) for values, clusters in tasks]
    known = [each for each in ends if each is not None]
    if not known or len(known) < len(tasks):
        return None
    if len(known) == 1:
        return known[0]
    low, high = combine([(mean(values), each) for (values, _), each in zip(tasks, known, strict=True)])
    units = units_of(tasks, are_scores=True)
    spread = math.fsum(unit.residual**2 for unit in units)
    score = mean([mean(values) for values, _ in tasks])
    pooled = _ends(score, spread, sums(units, score).unseen)
    return max(0.0, min(low, pooled[0])), min(1.0, max(high, pooled[1]))


def _ends(centre: float, spread: float, unseen: float, z: float = Z95) -> Interval:
    low, high = centre - _distance(centre, spread, unseen, z), centre + _distance(1 - centre, spread, unseen, z)
    return max(0.0, low), min(1.0, high)


def _distance(room: float, spread: float, unseen: float, z: float) -> float:
    """Return how far the mean may be off towards an end that is ``room`` away."""
    if room <= _NOTHING:
        return max(0.0, room)
    k = z * z
    square, linear = room * room * (1 + k * unseen), k * (room * room * unseen - spread)
    return room * min(1.0, (linear + math.sqrt(linear * linear + 4 * square * k * spread)) / (2 * square))
