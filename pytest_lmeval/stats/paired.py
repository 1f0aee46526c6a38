"""Test whether a model got worse, by a paired, one-sided test over the examples that two runs share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_lmeval.stats.bounds import Sums, sums
from pytest_lmeval.stats.intervals import ROUNDING, Values, mean, units_of
from pytest_lmeval.stats.power import detectable_drop
from pytest_lmeval.stats.signflip import sign_flip_p

_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The result of the paired test on the differences ``new - old`` between two runs.

    ``n`` is the number of pairs, and ``clusters`` is the number of independent units. ``change`` is the mean
    difference. ``p`` is the one-sided mid-p-value for the new run being worse, or 1.0 if no pair differs. ``exact`` is
    False if ``p`` is an approximation. ``sums``, which determines the bounds of the change, is None without pairs.
    ``detectable`` is the smallest drop, as a positive number, that such pairs would reveal four times in five, or None
    if they would reveal no drop that often.
    """

    n: int
    clusters: int
    change: float
    p: float
    exact: bool
    sums: Sums | None
    detectable: float | None


def paired_test(differences: Sequence[float], clusters: Sequence[str] = (), *, alpha: float = 0.05) -> PairedTest:
    """Test the differences ``new - old`` of scores in [0, 1], one per pair.

    ``clusters`` lists the name of each pair's cluster, or is empty. Each pair with the name "" forms its own cluster.
    The sign-flip test (:func:`sign_flip_p`) uses the sum of the differences in each cluster. For one response per
    example and scores of 0 and 1, the p-value is McNemar's mid-p-value. ``alpha`` affects only ``detectable``. Raise
    ValueError for the wrong number of clusters, and for a difference outside [-1, 1].
    """
    return pooled_test([(differences, clusters)], alpha=alpha)


def pooled_test(tasks: Sequence[Values], *, alpha: float = 0.05) -> PairedTest:
    """Test the unweighted mean of several tasks' changes.

    In a task with n pairs, each difference has the weight 1/n, as in an overall score. Clusters with the same name form
    one unit, even across tasks.
    """
    tasks = [(_snapped(differences), clusters) for differences, clusters in tasks if differences]
    units = units_of(tasks)
    added = sums(units, mean([mean(differences) for differences, _ in tasks])) if units else None
    p, exact = sign_flip_p([unit.part for unit in units])
    return PairedTest(
        n=sum(len(differences) for differences, _ in tasks),
        clusters=len(units),
        change=added.value if added else 0.0,
        p=p,
        exact=exact,
        sums=added,
        detectable=detectable_drop(added.tossed, added.weight, alpha) if added else None,
    )


def p_better(test: PairedTest) -> float:
    """Return the one-sided mid-p-value for the new run being better, or 1.0 if no pair differs."""
    # The mid-p values of both sides add up to one if any pair differs.
    return 1.0 - test.p if test.change > 0 else 1.0


def holm(p_values: Mapping[_Name, float]) -> dict[_Name, float]:
    """Adjust p-values so that alpha limits the chance of any false alarm among them; keep the order of the keys.

    Multiply the smallest p-value by the number of p-values, the next by one less, and so on. No adjusted value is below
    the previous adjusted value, or above 1 (Holm, Scandinavian Journal of Statistics 6, 1979).
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
    return [difference if abs(difference) > ROUNDING else 0.0 for difference in differences]
