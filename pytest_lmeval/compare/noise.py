"""Measure, from a run's repeats, how much a task's scores vary by chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_lmeval.types import ExampleResult

Repeats = Sequence[float]
"""The scores of an example's repeats."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A task's noise; a field is None if the run did not measure it.

    ``flips`` is the expected share of examples that flip by chance between two runs with one response per example. It
    is twice the variance of an example's scores. ``shared`` is 0.0 if the scores in a cluster vary independently, and
    1.0 if they vary together. ``loss`` estimates the score that an example loses in a drop: the mean of the squared
    scores, divided by the mean score. For scores that are only 0 or 1, ``loss`` is 1.0.
    """

    flips: float | None = None
    shared: float | None = None
    loss: float | None = None


NO_NOISE = Noise()


def measured_noise(results: Iterable[ExampleResult]) -> dict[str, Noise]:
    """Return the noise of each task of a run."""
    tasks: dict[str, dict[str, list[Repeats]]] = {}
    for number, result in enumerate(results):
        if result.decides and result.score is not None:
            clusters = tasks.setdefault(result.task, {})
            clusters.setdefault(result.cluster or f"\0{number}", []).append(repeats_of(result) or [result.score])
    return {task: _noise([*clusters.values()]) for task, clusters in tasks.items()}


def repeats_of(result: ExampleResult) -> Repeats:
    """Return the scores of an example's repeats, or an empty sequence if it has one response or no score."""
    scores = result.details.get("scores")
    return scores if result.score is not None and isinstance(scores, list | tuple) and len(scores) > 1 else ()


def _noise(clusters: Sequence[Sequence[Repeats]]) -> Noise:
    examples = [repeats for cluster in clusters for repeats in cluster]
    variances = [_variance(repeats) for repeats in examples if len(repeats) > 1]
    flips = min(1.0, 2 * math.fsum(variances) / len(variances)) if variances else None
    return Noise(flips, _shared(clusters), _loss(clusters))


def _shared(clusters: Sequence[Sequence[Repeats]]) -> float | None:
    """Return the covariance within clusters as a share of its maximum, or None without clusters or repeats."""
    found, most = [], []
    for cluster in clusters:
        if len(cluster) > 1 and min(map(len, cluster)) > 1:
            own = [_variance(repeats) for repeats in cluster]
            found.append(_variance(_totals(cluster)) - math.fsum(own))
            most.append(math.fsum(map(math.sqrt, own)) ** 2 - math.fsum(own))
    if not found:
        return None
    total = math.fsum(most)
    return min(1.0, max(0.0, math.fsum(found) / total)) if total > 0 else 0.0


def _loss(clusters: Sequence[Sequence[Repeats]]) -> float | None:
    scores, squares = [], []
    for cluster in clusters:
        score = math.fsum(math.fsum(repeats) / len(repeats) for repeats in cluster)
        totals = _totals(cluster)
        by_chance = _variance(totals) / len(totals) if len(totals) > 1 else 0.0
        scores.append(score)
        squares.append(max(0.0, score * score - by_chance))
    largest = math.fsum(scores) * sum(len(cluster) ** 2 for cluster in clusters)
    loss = sum(map(len, clusters)) * math.fsum(squares) / largest if largest > 0 else 0.0
    return min(1.0, loss) or None


def _totals(cluster: Sequence[Repeats]) -> Repeats:
    """Return the sum of a cluster's scores for each repeat; ignore repeats that only some of its examples have."""
    return [math.fsum(scores) for scores in zip(*cluster, strict=False)]


def _variance(values: Repeats) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
