"""Test whether scores changed between two runs, in each task and overall."""

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
    """The change in one task's score, or in the overall score, between two runs.

    ``old`` and ``new`` are the mean scores of the pairs (for the overall score, unweighted means over tasks), and
    ``change`` is the difference. ``p`` is the one-sided mid-p value of the test for a drop. ``p_adjusted`` corrects p
    for all tests of the run and for the number of models, so that it can be compared with alpha. ``p_alone`` is
    ``p_adjusted`` for a run with only this model. ``interval`` bounds the change; ``level`` is the error probability of
    each bound. The interval excludes 0 if and only if the test finds a change. ``detectable`` is the smallest drop that
    the test detects with 80 % power. ``worse`` counts the pairs that pass only in the old run, and ``better`` those
    that pass only in the new run. ``exact`` is False if p is an approximation. ``decided_by`` is ``strict`` or
    ``exact`` if individual examples make the change a regression, and empty if the test decides. The verdict on a task
    without pairs is ``uncompared``.
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
    """Return the change for each task in ``tasks`` and for each task with pairs, ordered by name.

    The tasks' tests share half of alpha by Holm's procedure, and the test of the overall change uses the other half.
    With a single task, the task's test is also the overall test and uses the full alpha.
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
    """Return the change in the unweighted mean of the tasks' scores.

    All tasks have equal weight, as in the overall score. The test is exact for any weights, because it flips the signs
    of weighted differences. ``others`` are pairs of named scores, which share alpha but do not count towards the mean.
    """
    from pytest_lmeval.stats.paired import p_better, pooled_test

    groups = by_task(pairs)
    if not groups:
        return _uncompared(OVERALL)
    tested = [*pairs, *others]
    share = overall_alpha(tested, criteria)
    test = pooled_test([_differences(group) for group in groups.values()], alpha=share)
    # A single flip affects only the verdict on its task.
    by_test = replace(criteria, strict=False, exact=False)
    family = _Family(share, 1, _families(by_task(tested)), criteria.models)
    judged = _judged(test, (test.p, p_better(test)), family)
    return _change(pairs, test, judged, by_test, OVERALL)


def overall_alpha(pairs: Iterable[Pair], criteria: Criteria) -> float:
    """Return the overall test's level: the model's share of alpha for a single task, or else half of that share."""
    return overall_level(criteria.alpha / criteria.models, len(by_task(pairs)))


def by_task(pairs: Iterable[Pair]) -> Mapping[str, list[Pair]]:
    """Group the pairs by row, which is a task or a named score."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.row, []).append(pair)
    return groups


def _families(groups: Mapping[str, Sequence[Pair]]) -> int:
    """Return 2 if the tasks and the overall change share alpha, or 1 for a single task."""
    return 2 if len(groups) > 1 else 1


@dataclass(frozen=True, slots=True)
class _Family:
    """A family of ``tests`` tests; their common level, ``share``, is alpha divided by ``models`` and by ``parts``."""

    share: float
    tests: int
    parts: int
    models: int


@dataclass(frozen=True, slots=True)
class _Judged:
    """A test's result after adjustment; ``p_alone`` is ``p`` for a run with only this model.

    ``is_shown`` is True if the change is significant. The interval excludes 0 if and only if ``is_shown`` is True.
    """

    p: float
    p_alone: float
    is_shown: bool
    level: float
    interval: tuple[float, float] | None


def _judged(test: PairedTest, by_holm: tuple[float, float], family: _Family) -> _Judged:
    """Adjust a test for its family; ``by_holm`` contains Holm's p values for a decline and for an improvement."""
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
