"""Calibrate the gate with runs of one model: find examples that flip by chance, and estimate false alarms."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import combinations

from pytest_lmeval.compare.baseline import shared_answers
from pytest_lmeval.compare.changes import TaskChange, by_task, overall_change, task_changes
from pytest_lmeval.compare.compare import Comparison, compare
from pytest_lmeval.compare.criteria import Criteria
from pytest_lmeval.compare.needed import Needed, Variances, overall_level
from pytest_lmeval.compare.pairing import Key, Pair
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.passing import reaches
from pytest_lmeval.records.runfile import RunFile, examples_of
from pytest_lmeval.stats.intervals import sum_clusters, wilson_interval
from pytest_lmeval.types import ExampleResult

_WORK = 300_000  # pairs to compare in total; takes a few seconds
_ROUNDS = (100, 1000)  # the fewest and the most rounds
_NAMED = 5
OFTEN = 0.4
"""The flip rate that triggers a quarantine proposal: how often the example passes in only one of two runs."""
_DAYS = 30


@dataclass(frozen=True, slots=True)
class TaskNoise:
    """The differences between two runs in one task, or in all tasks.

    ``examples`` counts the examples that both runs scored, and ``flips`` counts the examples that pass in only one run.
    ``detectable`` is the smallest drop that the test detects with 80 % power, or None if no drop can be detected.
    """

    task: str
    examples: int
    scores: tuple[float, float]
    flips: int
    flip_rate: float
    ci95: tuple[float, float]
    detectable: float | None


@dataclass(frozen=True, slots=True)
class FalseAlarms:
    """The number of simulated rounds, and the number and rate of rounds with a false regression."""

    rounds: int
    alarms: int
    rate: float
    ci95: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The results of :func:`calibrate`, including the number of responses per example in ``repeats``."""

    tasks: tuple[TaskNoise, ...]
    overall: TaskNoise
    false_alarms: FalseAlarms
    needed: tuple[Needed, ...]
    repeats: int
    criteria: Criteria
    notes: tuple[str, ...]


def calibrate(
    one: RunFile,
    other: RunFile,
    criteria: Criteria,
    *,
    more: Sequence[RunFile] = (),
    seed: int = 0,
    rounds: int | None = None,
) -> Calibration:
    """Return the differences between two runs of one model on the same examples, and the gate's false-alarm rate.

    ``rounds`` is the number of simulated gate runs; by default, they take a few seconds. Raise UsageError if both files
    come from the same run, if the contents of an example differ, or if the runs share no scored example. Also raise it
    if any two runs, including the runs in ``more``, share cached answers.
    """
    if one.digest and (one.digest, one.timestamp) == (other.digest, other.timestamp):
        raise UsageError(f"{one.path} and {other.path} are files of the same run; calibrate needs two runs of a model")
    for first, second in combinations((one, other, *more), 2):
        if shared := shared_answers(examples_of(first), examples_of(second)):
            raise UsageError(
                f"{first.path} and {second.path}: {shared} example(s) have the same answers from a cache, which say "
                "nothing about chance; run without --lm-cache, or with --lm-cache-mode=refresh"
            )
    comparison = compare(examples_of(one), examples_of(other), criteria)
    _check_same_content(one, other, comparison)
    pairs = comparison.pairs
    repeats = max(1, *(len(pair.old.outputs) for pair in pairs))
    return Calibration(
        tasks=tuple(_noise(change) for change in comparison.tasks if change.paired),
        overall=_noise(comparison.pooled),
        false_alarms=_false_alarms(pairs, criteria, random.Random(seed), rounds or _rounds(len(pairs))),
        needed=_variances(pairs, repeats).needed(overall_level(criteria.alpha, len(by_task(pairs)))),
        repeats=repeats,
        criteria=criteria,
        notes=tuple(_notes(one, other, comparison)),
    )


def _check_same_content(one: RunFile, other: RunFile, comparison: Comparison) -> None:
    if changed := comparison.of("changed"):
        named = ", ".join(f"{task}:{id}" for task, id in changed[:_NAMED])
        raise UsageError(
            f"{one.path} and {other.path}: {len(changed)} example(s) of different content, such as {named}; run the "
            "same task files twice"
        )
    if not comparison.paired:
        raise UsageError(f"{one.path} and {other.path} share no scored example; run the same task files twice")


def _noise(change: TaskChange) -> TaskNoise:
    flips = change.worse + change.better
    return TaskNoise(
        task=change.task,
        examples=change.paired,
        scores=(change.old or 0.0, change.new or 0.0),
        flips=flips,
        flip_rate=flips / change.paired,
        ci95=wilson_interval(flips, change.paired),
        detectable=change.detectable,
    )


def _false_alarms(pairs: Sequence[Pair], criteria: Criteria, chance: random.Random, rounds: int) -> FalseAlarms:
    """Simulate how often the gate reports a regression if the model did not change.

    Each round draws clusters of each task with replacement, and swaps the old and new results of about half the
    clusters. The swaps preserve the frequency and size of differences, but remove their direction.
    """
    clusters = _clusters(pairs)
    alarms = sum(_alarms(_drawn(clusters, chance), criteria) for _ in range(rounds))
    return FalseAlarms(rounds, alarms, alarms / rounds, wilson_interval(alarms, rounds))


def _rounds(pairs: int) -> int:
    return min(max(_WORK // pairs, _ROUNDS[0]), _ROUNDS[1])


def _clusters(pairs: Sequence[Pair]) -> list[list[list[Pair]]]:
    tasks: dict[str, dict[str | int, list[Pair]]] = {}
    for number, pair in enumerate(pairs):
        tasks.setdefault(pair.new.task, {}).setdefault(pair.cluster or number, []).append(pair)
    return [list(members.values()) for members in tasks.values()]


def _drawn(tasks: Sequence[Sequence[Sequence[Pair]]], chance: random.Random) -> list[Pair]:
    drawn = []
    for clusters in tasks:
        for number, members in enumerate(chance.choices(clusters, k=len(clusters))):
            is_swapped = chance.random() < 0.5
            drawn += [_as_drawn(pair, number, is_swapped) for pair in members]
    return drawn


def _as_drawn(pair: Pair, number: int, is_swapped: bool) -> Pair:
    old, new = (pair.new, pair.old) if is_swapped else (pair.old, pair.new)
    # A cluster that is drawn twice counts as two clusters.
    return Pair(old, replace(new, cluster=f"{number}:{pair.cluster}")) if pair.cluster else Pair(old, new)


def _alarms(pairs: Sequence[Pair], criteria: Criteria) -> bool:
    """Return True if :func:`compare` would call these pairs a regression."""
    changes = (overall_change(pairs, criteria), *task_changes((), pairs, criteria))
    return any(change.verdict == "regression" for change in changes)


def _variances(pairs: Sequence[Pair], repeats: int) -> Variances:
    tasks = by_task(pairs)
    spread = weight = 0.0
    for members in tasks.values():
        names = [pair.cluster for pair in members]
        share = 1 / (len(members) * len(tasks))
        parts = sum_clusters([share * (pair.new_score - pair.old_score) for pair in members], names)
        weights = sum_clusters([share] * len(members), names)
        spread += math.fsum(part * part for part in parts)
        weight += math.fsum(part * part for part in weights)
    return Variances(spread, weight, len(pairs), repeats)


def _notes(one: RunFile, other: RunFile, comparison: Comparison) -> list[str]:
    notes = [f"{run.path}: not complete" for run in (one, other) if not run.complete]
    if one.adapter != other.adapter:
        notes.append(f"the adapters are {one.adapter} and {other.adapter}: the numbers hold only if it is one model")
    elif one.facts.adapter_options != other.facts.adapter_options:
        notes.append("the adapter options differ: the numbers hold only if they do not change the answers")
    unpaired = len(comparison.of("new")) + len(comparison.of("removed"))
    if unpaired:
        notes.append(f"skipped {unpaired} example(s) that are in one run only")
    if not comparison.worse and not comparison.better:
        notes.append("no example flipped: if the model's answers never vary, strict costs nothing")
    return notes


@dataclass(frozen=True, slots=True)
class Flipping:
    """An example that flips; ``rate`` is the share of pairs of runs in which the example passed only once."""

    task: str
    id: str
    runs: int
    passed: int
    rate: float
    quarantine: dict[str, str]

    @property
    def line(self) -> str:
        """A line that describes the example and shows how to quarantine it."""
        return (
            f"{self.task}: {self.id}: passed in {self.passed} of {self.runs} runs, flip rate {self.rate:.2f}; "
            f"to set it aside: {json.dumps({'quarantine': self.quarantine})}"
        )


def flipping(runs: Sequence[RunFile], least: float = OFTEN) -> tuple[Flipping, ...]:
    """Return the examples whose flip rate is at least ``least``, highest rate first.

    Skip examples that some runs did not score, or whose content differs between the runs. The proposed quarantine ends
    30 days after the latest run.
    """
    until = _until(run.timestamp for run in runs)
    held: dict[Key, list[ExampleResult]] = {}
    for run in runs:
        for result in examples_of(run):
            if result.score is not None:
                held.setdefault((result.task, result.id), []).append(result)
    found = [
        _flipping(key, results, until)
        for key, results in held.items()
        if len(results) == len(runs) and len({result.hash for result in results}) == 1
    ]
    often = [each for each in found if each.rate >= least]
    return tuple(sorted(often, key=lambda each: (-each.rate, each.task, each.id)))


def _flipping(key: Key, results: Sequence[ExampleResult], until: str) -> Flipping:
    count = len(results)
    passed = sum(map(reaches, results))
    rate = 2 * passed * (count - passed) / (count * (count - 1))
    reason = f"passed in {passed} of {count} runs of one model"
    return Flipping(*key, count, passed, rate, {"until": until, "reason": reason})


def _until(timestamps: Iterable[str]) -> str:
    latest = max(timestamps)[:10]
    try:
        return (date.fromisoformat(latest) + timedelta(days=_DAYS)).isoformat()
    except ValueError:
        return latest
