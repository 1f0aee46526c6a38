"""Plan a suite before running it: the smallest drop that it would detect, and the examples needed for a smaller one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_lmeval.compare.needed import Needed, Variances, overall_level
from pytest_lmeval.types import OVERALL, ExampleResult

ASSUMED_NOISE = 0.1
"""The assumed share of examples that flip by chance between two runs, if no run measured it."""

Suite = Mapping[str, Sequence[str]]
"""The cluster of each example, by task; "" if an example has no cluster."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The power of a task, or of all tasks.

    ``clusters`` is the number of independent units. ``noise`` is the share of examples that flip by chance between two
    runs with one response per example. ``detectable`` is the smallest drop detected with 80 % power, or None.
    """

    task: str
    examples: int
    clusters: int
    noise: float
    detectable: float | None


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The power of a suite with ``repeats`` responses per example; ``needed`` is for the drop that the user wants."""

    tasks: tuple[TaskPlan, ...]
    overall: TaskPlan
    needed: Needed
    repeats: int
    alpha: float


def plan(
    suite: Suite, drop: float, noise: Mapping[str, float], *, usual: float, repeats: int = 1, alpha: float = 0.05
) -> SuitePlan:
    """Return the power of a suite; ``noise`` has the noise of some tasks, and ``usual`` is the noise of other tasks.

    The plan assumes that flips in a cluster are independent. As in the gate, a task's test has the level of Holm's
    first step, and the overall test has half of alpha; the test of a single task has alpha.
    """
    count = len(suite)
    share = overall_level(alpha, count)
    tasks, spread, weight = [], 0.0, 0.0
    for task, clusters in sorted(suite.items()):
        sizes = [*Counter(filter(None, clusters)).values(), *(1 for name in clusters if not name)]
        flips = noise.get(task, usual)
        own = _variances(sizes, flips, repeats)
        tasks.append(TaskPlan(task, len(clusters), len(sizes), flips, own.detectable(share / count)))
        spread += own.spread / count**2
        weight += own.weight / count**2
    examples = sum(task.examples for task in tasks)
    whole = Variances(spread, weight, examples, repeats)
    mean_noise = math.fsum(task.noise * task.examples for task in tasks) / examples
    overall = TaskPlan(OVERALL, examples, sum(task.clusters for task in tasks), mean_noise, whole.detectable(share))
    return SuitePlan(tuple(tasks), overall, whole.needed(share, (drop,))[0], repeats, alpha)


def measured_noise(results: Sequence[ExampleResult]) -> dict[str, float]:
    """Estimate, for each task with repeats, the share of examples that would flip between two runs.

    The estimate is twice the variance of an example's scores over its repeats.
    """
    variances: dict[str, list[float]] = {}
    for result in results:
        scores = result.details.get("scores")
        if result.score is not None and isinstance(scores, Sequence) and len(scores) > 1:
            mean = math.fsum(scores) / len(scores)
            variance = math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)
            variances.setdefault(result.task, []).append(2 * variance)
    return {task: min(1.0, math.fsum(found) / len(found)) for task, found in variances.items()}


def _variances(sizes: Sequence[int], noise: float, repeats: int) -> Variances:
    count = sum(sizes)
    return Variances(noise / count / repeats, sum(size * size for size in sizes) / count**2, count, repeats)
