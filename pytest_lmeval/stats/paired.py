"""Did the model get worse? A paired, one-sided, exact test of two runs over the same examples."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_lmeval.stats.intervals import Z95, combine, mean, standard_error, sum_clusters, t_quantile
from pytest_lmeval.stats.power import detectable_drop
from pytest_lmeval.stats.signflip import sign_flip_p

Differences = tuple[Sequence[float], Sequence[str]]
"""The differences ``new - old`` of a task's pairs, and the cluster of each, or nothing where none has one."""

_NOTHING = 1e-9  # a score is in [0, 1]: a smaller difference is the rounding of a mean
_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What the paired differences ``new - old`` of two runs say.

    ``n`` counts the pairs, ``clusters`` the independent units they form. ``change`` is the mean difference. ``p`` is
    the one-sided mid-p that the new run is worse, 1.0 where nothing differs; ``exact`` is False where it is an
    approximation. ``interval`` holds the change with 95 % confidence; None where nothing can be said. ``detectable`` is
    the smallest drop, as a positive number, that such pairs would have shown four times in five; None where no drop
    would.
    """

    n: int
    clusters: int
    change: float
    p: float
    exact: bool
    interval: tuple[float, float] | None
    detectable: float | None


@dataclass(frozen=True, slots=True)
class _Unit:
    """What varies as one: its part of the change, and of all that could have changed."""

    part: float
    weight: float


def paired_test(differences: Sequence[float], clusters: Sequence[str] = (), *, alpha: float = 0.05) -> PairedTest:
    """Return what the differences ``new - old`` of scores in [0, 1], one a pair, say of the new run.

    ``clusters`` names the cluster of each pair, or is empty; "" is a cluster of its own. Differences are summed within
    clusters, then the exact sign-flip test judges the sums (:func:`sign_flip_p`): with one response to each example
    and scores of 0 and 1 its p is McNemar's mid-p. ``alpha`` only decides what is ``detectable``. Raises ValueError
    for clusters of another number or a difference that is not in [-1, 1].
    """
    return pooled_test([(differences, clusters)], alpha=alpha)


def pooled_test(tasks: Sequence[Differences], *, alpha: float = 0.05) -> PairedTest:
    """Return what several tasks' differences say together of the unweighted mean of the tasks' changes.

    A difference counts as one over the number of its task's pairs, as it does in an overall score. Clusters of one
    name are one unit, whatever task they stand in.
    """
    tasks = [(_snapped(differences), clusters) for differences, clusters in tasks if differences]
    units = _units(tasks)
    p, exact = sign_flip_p([unit.part for unit in units])
    changes = [mean(differences) for differences, _ in tasks]
    return PairedTest(
        n=sum(len(differences) for differences, _ in tasks),
        clusters=len(units),
        change=mean(changes) if changes else 0.0,
        p=p,
        exact=exact,
        interval=_pooled_interval(tasks, changes),
        detectable=_detectable(units, alpha),
    )


def change_interval(differences: Sequence[float], clusters: Sequence[str] = ()) -> tuple[float, float] | None:
    """Return a 95 % interval of the mean difference, cut to [-1, 1]; None for no pair, or graded ones of one cluster.

    Independent pairs of right-or-wrong scores, and pairs that do not differ at all, get the adjusted Wald interval (D.
    G. Bonett and R. M. Price, Journal of Educational and Behavioral Statistics 37, 2012), which leaves doubt even where
    nothing differs; all others Student's t over the clusters.
    """
    if not differences:
        return None
    units = sum_clusters(differences, clusters)
    independent = len(units) == len(differences)
    if not any(differences) or (independent and all(unit in (-1.0, 0.0, 1.0) for unit in units)):
        return _adjusted_wald(units)
    error = standard_error(differences, clusters)
    if error is None:
        return None
    return _cut(mean(differences), t_quantile(len(units) - 1) * error)


def holm(p_values: Mapping[_Name, float]) -> dict[_Name, float]:
    """Return p-values that may be compared with alpha one by one: the chance of any false one among them is alpha.

    The smallest is multiplied by their number, the next by one less, and so on, none below its predecessor or above 1
    (S. Holm, Scandinavian Journal of Statistics 6, 1979). Keys keep their order.
    """
    adjusted: dict[_Name, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: (p_values[name], str(name)))):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def _snapped(differences: Sequence[float]) -> list[float]:
    for index, difference in enumerate(differences):
        if not -1.0 <= difference <= 1.0:
            raise ValueError(f"differences[{index}] is {difference!r}: expected a number from -1 to 1")
    return [difference if abs(difference) > _NOTHING else 0.0 for difference in differences]


def _units(tasks: Sequence[Differences]) -> list[_Unit]:
    parts: list[float] = []
    weights: list[float] = []
    names: list[str] = []
    for differences, clusters in tasks:
        if clusters and len(clusters) != len(differences):
            raise ValueError(f"{len(clusters)} clusters for {len(differences)} differences")
        weight = 1 / (len(differences) * len(tasks))
        parts += [difference * weight for difference in differences]
        weights += [weight] * len(differences)
        names += clusters or [""] * len(differences)
    units = zip(sum_clusters(parts, names), sum_clusters(weights, names), strict=True)
    return [_Unit(part if abs(part) > _NOTHING * weight else 0.0, weight) for part, weight in units]


def _pooled_interval(tasks: Sequence[Differences], changes: Sequence[float]) -> tuple[float, float] | None:
    intervals = [change_interval(differences, clusters) for differences, clusters in tasks]
    known = [ends for ends in intervals if ends is not None]
    if not known or len(known) < len(tasks):
        return None
    low, high = combine(list(zip(changes, known, strict=True)))
    return max(-1.0, low), min(1.0, high)


def _detectable(units: Sequence[_Unit], alpha: float) -> float | None:
    if not units:
        return None
    spread = math.fsum(unit.part**2 for unit in units)
    return detectable_drop(spread, math.fsum(unit.weight**2 for unit in units), alpha)


def _adjusted_wald(units: Sequence[float]) -> tuple[float, float]:
    # One more pair each way than there is.
    n = len(units) + 2
    worse = (units.count(-1.0) + 1) / n
    better = (units.count(1.0) + 1) / n
    return _cut(better - worse, Z95 * math.sqrt((worse + better - (better - worse) ** 2) / n))


def _cut(centre: float, half: float) -> tuple[float, float]:
    return max(-1.0, centre - half), min(1.0, centre + half)
