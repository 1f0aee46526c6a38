"""Test pairs of results for changes, per task and overall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.needed import overall_level
from pytest_lmeval.compare.pairing import Pair
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.stats.intervals import ROUNDING, mean
from pytest_lmeval.types import OVERALL

if TYPE_CHECKING:
    from pytest_lmeval.stats.intervals import Values
    from pytest_lmeval.stats.paired import PairedTest

NOTEWORTHY = 0.05
"""Reports mention a drop of this size even if it is not significant."""

Verdict = Literal["pass", "regression", "improvement", "inconclusive", "stale", "uncompared"]


@dataclass(frozen=True, slots=True)
class TaskChange:
    """The change of one task, or of all tasks ("overall", their unweighted mean), over the pairs of both runs.

    ``old`` and ``new`` are mean scores of the pairs, and ``change`` is their difference. ``p`` is the one-sided mid-p
    for the new run being worse. ``p_adjusted`` allows for all tests of the run; the verdict compares it with alpha. It
    is twice p for "overall", twice Holm's p for a task, or p for a single task, each multiplied by the number of
    models. ``p_alone`` is the value of ``p_adjusted`` in a run of one model. ``interval`` bounds the change, with each
    end at ``level``, the level of this row's test: it excludes 0 exactly if the test finds a change. ``detectable`` is
    the smallest drop that would have been significant four times in five. ``worse`` counts the pairs that passed before
    but not now, ``better`` the pairs that pass now but not before. ``exact`` is False if p is an approximation.
    ``decided_by`` names the rule that makes the row a regression regardless of its interval: ``strict``, ``exact`` (for
    the adapter), or "". The verdict on a task without pairs is ``uncompared``.
    """

    task: str
    paired: int
    old: float | None
    new: float | None
    change: float
    interval: tuple[float, float] | None
    p: float
    p_adjusted: float
    verdict: Verdict
    detectable: float | None
    worse: int
    better: int
    exact: bool
    level: float | None = None
    decided_by: str = ""
    p_alone: float | None = None


def task_changes(tasks: Iterable[str], pairs: Sequence[Pair], criteria: Criteria) -> tuple[TaskChange, ...]:
    """Return the change of each task in ``tasks`` and of each task with pairs, ordered by name.

    Holm's procedure over the tasks with pairs spends half of alpha; the overall change spends the other half. For a
    single task, the overall test is the task's own test, and spends all of alpha.
    """
    from pytest_lmeval.stats.paired import holm, p_better, paired_test

    groups = by_task(pairs)
    share = overall_alpha(pairs, criteria)
    each = share / max(1, len(groups))
    tests = {task: paired_test(*_differences(group), alpha=each) for task, group in groups.items()}
    worse = holm({task: test.p for task, test in tests.items()})
    better = holm({task: p_better(test) for task, test in tests.items()})
    family = _Family(share, len(tests), _families(groups), criteria.models)
    return tuple(
        _change(groups[task], tests[task], _judged(tests[task], (worse[task], better[task]), family), criteria, task)
        if task in groups
        else _uncompared(task)
        for task in sorted({*tasks, *groups})
    )


def overall_change(pairs: Sequence[Pair], criteria: Criteria, others: Sequence[Pair] = ()) -> TaskChange:
    """Return the change of the unweighted mean of the tasks' scores.

    All tasks have equal weight, as in the overall score. The test is exact for any weights, because it tosses the signs
    of weighted differences. ``others`` are the pairs of named scores: they share alpha, but are not part of the mean.
    """
    from pytest_lmeval.stats.paired import p_better, pooled_test

    groups = by_task(pairs)
    if not groups:
        return _uncompared(OVERALL)
    tested = [*pairs, *others]
    share = overall_alpha(tested, criteria)
    test = pooled_test([_differences(group) for group in groups.values()], alpha=share)
    # A single flip only concerns its task.
    by_test = replace(criteria, strict=False, exact=False)
    family = _Family(share, 1, _families(by_task(tested)), criteria.models)
    judged = _judged(test, (test.p, p_better(test)), family)
    return _change(pairs, test, judged, by_test, OVERALL)


def overall_alpha(pairs: Iterable[Pair], criteria: Criteria) -> float:
    """Return the level of the overall change: half of alpha, or alpha for a single task, over the number of models."""
    return overall_level(criteria.alpha / criteria.models, len(by_task(pairs)))


def by_task(pairs: Iterable[Pair]) -> Mapping[str, list[Pair]]:
    """Group the pairs by row: by task, or by named score."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.row, []).append(pair)
    return groups


def _families(groups: Mapping[str, Sequence[Pair]]) -> int:
    """Return the number of parts to split alpha into."""
    return 2 if len(groups) > 1 else 1


@dataclass(frozen=True, slots=True)
class _Family:
    """Tests that share a part of alpha: the part, the number of tests, and the number of parts per model."""

    share: float
    tests: int
    parts: int
    models: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """The result of a test: ``p`` to compare with alpha, and ``p_alone``, its value if the run had no other models.

    ``is_shown`` is True if chance does not explain the change; the interval excludes 0 exactly in this case.
    """

    p: float
    p_alone: float
    is_shown: bool
    level: float
    interval: tuple[float, float] | None


def _judged(test: PairedTest, by_holm: tuple[float, float], family: _Family) -> _Judged:
    """Adjust a test for its family; ``by_holm`` has Holm's p for getting worse, and for getting better."""
    from pytest_lmeval.stats.bounds import change_bounds, level_of
    from pytest_lmeval.stats.paired import p_better

    p, p_holm = (test.p, by_holm[0]) if test.change < 0 else (p_better(test), by_holm[1])
    is_shown = abs(test.change) > ROUNDING and p_holm <= family.share
    level = level_of(p, p_holm, family.share, family.tests)
    ends = None if test.sums is None else change_bounds(test.sums, p, level, is_shown=is_shown)
    alone = min(1.0, family.parts * by_holm[0])
    return _Judged(min(1.0, family.models * family.parts * by_holm[0]), alone, is_shown, level, ends)


def _change(pairs: Sequence[Pair], test: PairedTest, judged: _Judged, criteria: Criteria, task: str) -> TaskChange:
    groups = by_task(pairs).values()
    by_one = any(map(criteria.is_enough, pairs))
    return TaskChange(
        task=task,
        paired=len(pairs),
        old=mean([mean([pair.old_score for pair in group]) for group in groups]),
        new=mean([mean([pair.new_score for pair in group]) for group in groups]),
        change=test.change,
        interval=judged.interval,
        p=test.p,
        p_adjusted=judged.p,
        verdict=_verdict(test.change, judged, by_one, criteria),
        detectable=test.detectable,
        worse=sum(pair.worse for pair in pairs),
        better=sum(pair.better for pair in pairs),
        exact=test.exact,
        level=judged.level,
        decided_by=("strict" if criteria.strict else "exact") if by_one else "",
        p_alone=judged.p_alone if criteria.models > 1 else None,
    )


def _verdict(change: float, judged: _Judged, by_one: bool, criteria: Criteria) -> Verdict:
    is_larger = -change > criteria.tolerance + ROUNDING
    if by_one or (is_larger and judged.is_shown):
        return "regression"
    if is_larger and (-change >= NOTEWORTHY - ROUNDING or judged.p_alone <= criteria.alpha):
        return "inconclusive"
    return "improvement" if judged.is_shown and change > 0 else "pass"


def _differences(pairs: Sequence[Pair]) -> Values:
    return [pair.new_score - pair.old_score for pair in pairs], [pair.cluster for pair in pairs]


def _uncompared(task: str) -> TaskChange:
    return TaskChange(task, 0, None, None, 0.0, None, 1.0, 1.0, "uncompared", None, 0, 0, True)
