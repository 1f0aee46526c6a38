"""Rank several models on the same examples, and test the differences between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations, groupby
from operator import itemgetter, sub
from types import MappingProxyType
from typing import Any

from pytest_lmeval.compare.entrants import (
    ENOUGH,
    AskedExamples,
    Entrant,
    Key,
    asked_of,
    check_shared,
    entrants_of,
    why_unranked,
)
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.aggregations import spent
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.stats.bounds import change_bounds, level_of
from pytest_lmeval.stats.intervals import ROUNDING, Values, mean, overall_bounds
from pytest_lmeval.stats.paired import PairedTest, holm, pooled_test

ALPHA = 0.05
"""The probability that a ranking of equal models calls one model worse than another."""
_TOO_FEW = f"at least {ENOUGH:.0%} are needed to name the best, so only pairs are compared"
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Versus:
    """A comparison of two models on the ``n`` examples for which both have a score.

    ``difference`` is the score of ``one`` minus the score of ``other``. ``interval`` bounds the difference, and
    ``level`` is the error probability of each bound. With the default alpha, all intervals of a ranking are right with
    a probability of 95 %. ``p_adjusted`` is the two-sided p value after Holm's procedure over all pairs of models.
    ``is_shown`` is True if the models differ and ``p_adjusted`` is at most alpha; only then does the interval exclude
    0.
    """

    one: str
    other: str
    n: int
    difference: float
    interval: Interval | None
    level: float
    p_adjusted: float
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """A model's place in a ranking; its scores cover the examples for which every ranked model has a score.

    ``score`` is the unweighted mean of ``tasks``. ``win_rate`` is the share of comparisons that the model wins against
    the other models, example by example; a tie counts as half a win. ``difference``, ``difference_ci95``, ``level`` and
    ``p_adjusted`` come from the :class:`Versus` with the best model, on the ``paired`` examples that both models
    scored. For the best model itself, ``p_adjusted`` is 1, and the differences and the level are None. ``is_worse`` is
    True if the model is significantly worse than the best model. ``p95_ms`` and ``cost`` cover the whole run.
    ``cost_is_least`` is True if some answers have no known cost. ``cost_ratio`` is the cost of the answers to the
    paired examples, divided by the cost of the best model's answers. The ratio is None if an answer came from a cache
    or has no known cost, or if one model's answers were free. ``scored`` counts all examples for which this model has a
    score, and ``left_out`` counts the scored examples that the ranking omits.
    """

    name: str
    path: str
    score: float
    ci95: Interval | None
    tasks: Mapping[str, float]
    win_rate: float
    difference: float | None
    difference_ci95: Interval | None
    left_out: int
    p_adjusted: float = 1.0
    is_worse: bool = False
    p95_ms: float | None = None
    cost: float | None = None
    cost_is_least: bool = False
    level: float | None = None
    scored: int = 0
    paired: int = 0
    cost_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Unranked:
    """A model that cannot be ranked, with the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The standings, best model first; ``examples`` counts the shared examples of each task.

    ``alpha`` is the level of the test. If the models share too few examples, the ranking has ``pairs`` but no
    standings, and ``reason`` says why. ``selected`` is the number of all examples. ``not_scored`` contains a line for
    each model that lacks scores.
    """

    standings: tuple[Standing, ...]
    examples: Mapping[str, int]
    alpha: float = ALPHA
    pairs: tuple[Versus, ...] = ()
    unranked: tuple[Unranked, ...] = ()
    selected: int = 0
    not_scored: tuple[str, ...] = ()
    reason: str = ""

    @property
    def not_worse(self) -> list[str]:
        """The names of the best model and of all models that are not significantly worse."""
        return [standing.name for standing in self.standings if not standing.is_worse]

    def to_json(self) -> dict[str, Any]:
        """Return the ranking as JSON values."""
        return {**asdict(self), "not_worse": self.not_worse}


Scores = Mapping[str, Values]
"""The scores and the clusters of a model's examples, by task."""
Spent = Mapping[str, Mapping[str, float | int]]
_SCORE, _CLUSTER, _TASK = itemgetter(0), itemgetter(1), itemgetter(0)


def rank(
    runs: Sequence[RunFile], pair_by: str = "content", alpha: float = ALPHA, took: Spent = MappingProxyType({})
) -> Ranking:
    """Rank two or more runs; raise UsageError if fewer than two runs can be ranked.

    A run can be ranked if it is complete and has a score for at least 80 % of the examples of all runs. Two examples
    are the same if their task, id and content hash are equal; if ``pair_by`` is "id", the hash ignores the prompt.
    Models with equal scores are sorted by name. ``took`` maps adapter names to spending that is already known.
    """
    everyone = entrants_of(runs, pair_by)
    asked = asked_of(everyone)
    reasons = {entrant.name: why_unranked(entrant, asked) for entrant in everyone}
    ranked = [entrant for entrant in everyone if not reasons[entrant.name]]
    unranked = tuple(Unranked(name, reason) for name, reason in reasons.items() if reason)
    if len(ranked) < 2:
        check_shared(everyone)
        why = "; ".join(f"{each.name}: {each.reason}" for each in unranked)
        raise UsageError(f"fewer than two models can be ranked: {why}")
    shared = sorted(asked.scored.intersection(*(entrant.scores for entrant in ranked)))
    tasks = {entrant.name: _by_task(entrant, shared or sorted(entrant.scores)) for entrant in ranked}
    ranked.sort(key=lambda entrant: (-_score(tasks[entrant.name]), entrant.name))
    pairs = _pairs(ranked, asked, alpha)
    total = len(asked.scored) + len(asked.failed)
    is_enough = len(shared) >= ENOUGH * total
    return Ranking(
        standings=_standings(ranked, tasks, pairs, took) if is_enough else (),
        examples={task: len(values) for task, (values, _) in tasks[ranked[0].name].items()} if shared else {},
        alpha=alpha,
        pairs=pairs,
        unranked=unranked,
        selected=total,
        not_scored=tuple(_not_scored(everyone, ranked, asked)),
        reason="" if is_enough else f"all ranked models have a score for {len(shared)} of {total} examples; {_TOO_FEW}",
    )


def _by_task(entrant: Entrant, keys: Sequence[Key]) -> Scores:
    tasks = {}
    for task, own in groupby(keys, _TASK):
        held = [*map(entrant.scores.__getitem__, own)]
        tasks[task] = [*map(_SCORE, held)], [*map(_CLUSTER, held)]
    return tasks


def _score(tasks: Scores) -> float:
    return mean([mean(scores) for scores, _ in tasks.values()])


def _pairs(ranked: Sequence[Entrant], asked: AskedExamples, alpha: float) -> tuple[Versus, ...]:
    """Compare every model with each model before it in ``ranked``, which begins with the best model."""
    tests = {(one.name, other.name): _test(other, one, asked) for one, other in combinations(ranked, 2)}
    adjusted = holm({names: _two_sided(test) for names, test in tests.items()})
    return tuple(_versus(names, test, (adjusted[names], alpha, len(tests))) for names, test in tests.items())


def _versus(names: tuple[str, str], test: PairedTest, judged: tuple[float, float, int]) -> Versus:
    """Compare the second model with the first; ``judged`` contains Holm's p, alpha and the number of tests."""
    p_holm, alpha, tests = judged
    p, is_shown = _two_sided(test), test.change != 0 and p_holm <= alpha
    level = level_of(p, p_holm, alpha, tests) / 2
    ends = None if test.sums is None else change_bounds(test.sums, p / 2, level, is_shown=is_shown)
    return Versus(names[1], names[0], test.n, test.change, ends, level, p_holm, is_shown)


def _test(one: Entrant, other: Entrant, asked: AskedExamples) -> PairedTest:
    both = sorted(asked.scored.intersection(one.scores, other.scores))
    own, theirs = _by_task(one, both), _by_task(other, both)
    return pooled_test([([*map(sub, scores, theirs[task][0])], clusters) for task, (scores, clusters) in own.items()])


def _two_sided(test: PairedTest) -> float:
    # If no example differs, the one-sided p is 1, and so is the two-sided p.
    return 1.0 if test.p >= 1.0 else min(1.0, 2 * min(test.p, 1.0 - test.p))


def _standings(
    ranked: Sequence[Entrant], tasks: Mapping[str, Scores], pairs: Sequence[Versus], took: Spent
) -> tuple[Standing, ...]:
    wins, best = _win_rates(ranked, tasks), ranked[0]
    beside = {pair.one: pair for pair in pairs if pair.other == best.name}
    standings = []
    for each in ranked:
        known = took.get(each.run.adapter)
        used = spent(examples_of(each.run)) if known is None else known
        standing = _standing(each, tasks[each.name], wins[each.name], beside.get(each.name), used)
        standings.append(replace(standing, cost_ratio=_cost_ratio(each, best)) if standing.cost else standing)
    return tuple(standings)


def _cost_ratio(entrant: Entrant, best: Entrant) -> float | None:
    """Return the cost of the entrant's answers to shared examples, divided by the cost of the best model's answers."""
    both = {key[:2] for key in entrant.scores.keys() & best.scores.keys()}
    own, other = (
        spent([result for result in examples_of(each.run) if (result.task, result.id) in both])
        for each in (entrant, best)
    )
    # A cached answer is free, which reveals nothing about its price.
    if any("cost_known" in took or "cached" in took for took in (own, other)) or not other.get("cost"):
        return None
    return own["cost"] / other["cost"] if "cost" in own else None


def _standing(
    entrant: Entrant, tasks: Scores, wins: float, pair: Versus | None, took: Mapping[str, float | int]
) -> Standing:
    return Standing(
        name=entrant.name,
        path=str(entrant.run.path),
        score=_score(tasks),
        ci95=overall_bounds([*tasks.values()]),
        tasks={task: mean(scores) for task, (scores, _) in tasks.items()},
        win_rate=wins,
        difference=None if pair is None else pair.difference,
        difference_ci95=None if pair is None else pair.interval,
        left_out=len(entrant.scores) - sum(len(scores) for scores, _ in tasks.values()),
        p_adjusted=1.0 if pair is None else pair.p_adjusted,
        is_worse=pair is not None and pair.is_shown and pair.difference < 0,
        p95_ms=took.get("p95_ms"),
        cost=took.get("cost"),
        cost_is_least="cost_known" in took,
        level=None if pair is None else pair.level,
        scored=len(entrant.scores),
        paired=0 if pair is None else pair.n,
    )


def _not_scored(everyone: Sequence[Entrant], ranked: Sequence[Entrant], asked: AskedExamples) -> list[str]:
    """Return a line for each model with unscored examples, because errors rarely affect examples at random."""
    found = []
    for entrant in everyone:
        missing = asked.missing(entrant)
        if missing:
            other = next(each for each in ranked if each is not entrant)
            right = sum(key in other.scores and other.scores[key].is_right for key in missing)
            found.append(f"{entrant.name}: {len(missing)} not scored, {right} of which {other.name} got right")
    return found


def _win_rates(ranked: Sequence[Entrant], tasks: Mapping[str, Scores]) -> dict[str, float]:
    scores = {entrant.name: [*chain.from_iterable(map(_SCORE, tasks[entrant.name].values()))] for entrant in ranked}
    points = dict.fromkeys(scores, 0.0)
    for one, other in combinations(scores, 2):
        won = math.fsum(map(_points, scores[one], scores[other]))
        points[one] += won
        points[other] += len(scores[one]) - won
    return {name: won / (len(ranked) - 1) / len(scores[name]) for name, won in points.items()}


def _points(own: float, other: float) -> float:
    return 0.5 if abs(own - other) <= ROUNDING else float(own > other)
