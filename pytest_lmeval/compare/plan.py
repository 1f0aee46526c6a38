"""What a suite can show before it is run: the smallest drop that it would detect, and what a smaller one takes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_lmeval.compare.needed import Needed, Variances, overall_level
from pytest_lmeval.stats.power import detectable_drop
from pytest_lmeval.types import ExampleResult

ASSUMED_NOISE = 0.1
"""The share of examples that is taken to flip by chance between two runs where nothing is known of it."""

Suite = Mapping[str, Sequence[str]]
"""The cluster of each example of each task; "" for an example that shares none."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What a task can show, or all of them.

    ``clusters`` counts the independent units. ``noise`` is the share of examples that flips by chance between two runs
    that ask each once. ``detectable`` is the smallest drop that is detected with 80 % power, None where none is.
    """

    task: str
    examples: int
    clusters: int
    noise: float
    detectable: float | None


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """What a suite can show when each example is asked ``repeats`` times, and what it takes to show ``needed.drop``."""

    tasks: tuple[TaskPlan, ...]
    overall: TaskPlan
    needed: Needed
    repeats: int
    alpha: float

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return asdict(self)


def plan(
    suite: Suite, drop: float, noise: Mapping[str, float], *, usual: float, repeats: int = 1, alpha: float = 0.05
) -> SuitePlan:
    """Return what a suite can show; ``noise`` is that of the tasks that are known, ``usual`` that of the others.

    The flips of one cluster are taken to be independent of each other. Tasks are tested at the level of the first step
    of Holm's procedure, and together at half of alpha, as the gate tests them; a single task at alpha.
    """
    count = len(suite)
    level = alpha / 2 / count if count > 1 else alpha
    tasks, spread, weight = [], 0.0, 0.0
    for task, clusters in sorted(suite.items()):
        sizes = _sizes(clusters)
        own = _variances(sizes, noise.get(task, usual), repeats)
        tasks.append(
            TaskPlan(
                task, len(clusters), len(sizes), noise.get(task, usual), detectable_drop(own.spread, own.weight, level)
            )
        )
        spread += own.spread / count**2
        weight += own.weight / count**2
    examples = sum(task.examples for task in tasks)
    whole = Variances(spread, weight, examples, repeats)
    share = overall_level(alpha, count)
    mean_noise = math.fsum(task.noise * task.examples for task in tasks) / examples
    overall = TaskPlan("overall", examples, sum(task.clusters for task in tasks), mean_noise, whole.detectable(share))
    return SuitePlan(tuple(tasks), overall, whole.needed(share, (drop,))[0], repeats, alpha)


def measured_noise(results: Sequence[ExampleResult]) -> dict[str, float]:
    """Return by task the share of examples that would flip between two runs, from one that asked each several times.

    That is twice the variance of an example's scores, over the repeats; a task that was asked once is left out.
    """
    variances: dict[str, list[float]] = {}
    for result in results:
        scores = result.details.get("scores")
        if result.score is not None and isinstance(scores, Sequence) and len(scores) > 1:
            mean = math.fsum(scores) / len(scores)
            variance = math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)
            variances.setdefault(result.task, []).append(2 * variance)
    return {task: min(1.0, math.fsum(found) / len(found)) for task, found in variances.items()}


def _sizes(clusters: Sequence[str]) -> list[int]:
    counted = Counter(name for name in clusters if name)
    return [*counted.values(), *(1 for name in clusters if not name)]


def _variances(sizes: Sequence[int], noise: float, repeats: int) -> Variances:
    count = sum(sizes)
    return Variances(noise / count / repeats, sum(size * size for size in sizes) / count**2, count, repeats)
