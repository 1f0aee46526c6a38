"""Did the model get worse? A paired, one-sided, exact test of two runs over the same examples."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pytest_lmeval.stats.bounds import Sums, sums
from pytest_lmeval.stats.intervals import Values, mean, units_of
from pytest_lmeval.stats.power import detectable_drop
from pytest_lmeval.stats.signflip import sign_flip_p

Differences = Values
"""The differences ``new - old`` of a task's pairs, and the cluster of each, or nothing where none has one."""

_NOTHING = 1e-9  # a score is in [0, 1]: a smaller difference is the rounding of a mean
_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PairedTest:
    """What the paired differences ``new - old`` of two runs say.

    ``n`` counts the pairs, ``clusters`` the independent units they form. ``change`` is the mean difference. ``p`` is
    the one-sided mid-p that the new run is worse, 1.0 where nothing differs; ``exact`` is False where it is an
    approximation. ``sums`` are what bounds of the change are made of, None without a pair. ``detectable`` is the
    smallest drop, as a positive number, that such pairs would have shown four times in five; None where no drop would.
    """

    n: int
    clusters: int
    change: float
    p: float
    exact: bool
    sums: Sums | None
    detectable: float | None


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
    name are one unit, whatever task they are in.
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
    """Return the one-sided mid-p that the new run is better, 1.0 where nothing differs."""
    # The mid-p values of both sides add up to one, unless nothing differs at all.
    return 1.0 - test.p if test.change > 0 else 1.0


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
