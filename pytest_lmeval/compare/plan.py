"""Compute the smallest drop that a suite would detect, and the number of examples needed to detect a smaller drop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_lmeval.compare.needed import Needed, Variances, overall_level
from pytest_lmeval.compare.noise import NO_NOISE, Noise
from pytest_lmeval.types import OVERALL

ASSUMED_NOISE = 0.1
"""The assumed share of examples that flip by chance between two runs, if no run measured it."""


class Planned(NamedTuple):
    """An example of a suite; ``is_graded`` is True if its score may be between 0 and 1."""

    cluster: str = ""
    responses: int = 1
    is_graded: bool = False


Suite = Mapping[str, Sequence[Planned]]
"""The examples of each task."""


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """The power of a task, or of all tasks.

    ``clusters`` counts the clusters; an example without a cluster counts as one. ``noise`` is the share of examples
    that flip by chance between two runs with one response per example. ``shared`` is 0.0 if the flips in a cluster are
    independent, 1.0 if they happen together, and None without clusters. ``detectable`` is the smallest drop that the
    gate detects with 80 % power, or None if it detects no drop.
    """

    task: str
    examples: int
    responses: int
    clusters: int
    noise: float
    shared: float | None
    detectable: float | None


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The power of a suite with ``repeats`` responses per example; ``needed`` refers to the drop to detect.

    If the number of responses differs between examples, ``repeats`` is 1, and ``needed.repeats`` multiplies each number
    of responses.
    """

    tasks: tuple[TaskPlan, ...]
    overall: TaskPlan
    needed: Needed
    repeats: int
    alpha: float


@dataclass(slots=True)
class _Unit:
    """A cluster, or an example without a cluster, with sums over its examples.

    ``weight`` sums the weights of the examples in the mean score. ``independent`` sums the variances of independent
    noise, and ``together`` sums the standard deviations of noise that the examples share.
    """

    weight: float = 0.0
    independent: float = 0.0
    together: float = 0.0


@dataclass(slots=True)
class _Units:
    """The independent units of one or several tasks, with the tasks' mean loss."""

    by_name: dict[object, _Unit] = field(default_factory=dict)
    examples: int = 0
    loss: float = 1.0

    def add(self, example: Planned, weight: float, noise: Noise) -> None:
        """Add an example with its weight in the mean score; missing fields of ``noise`` count as 0."""
        self.examples += 1
        unit = self.by_name.setdefault(example.cluster or self.examples, _Unit())
        variance = (noise.flips or 0.0) / example.responses * weight * weight
        shared = noise.shared or 0.0
        unit.weight += weight
        unit.independent += (1 - shared) * variance
        unit.together += math.sqrt(shared * variance)

    @property
    def weight(self) -> float:
        """The sum of the squared weights of the units."""
        return math.fsum(unit.weight**2 for unit in self.by_name.values())

    def variances(self, repeats: int = 1) -> Variances:
        """Return the variances that determine the power of these units."""
        spread = math.fsum(unit.independent + unit.together**2 for unit in self.by_name.values())
        return Variances(spread, self.weight, self.examples, repeats, self.loss)


def plan(suite: Suite, drop: float, noise: Mapping[str, Noise], *, usual: float, alpha: float = 0.05) -> SuitePlan:
    """Return the power of a suite; ``noise`` contains the measured noise of some tasks.

    For noise that was not measured, assume that the share ``usual`` of the examples flips, that flips in a cluster
    happen together, and that a lost score was 1. In a drop, some examples or whole clusters lose their entire score. As
    in the gate, a single task is tested at alpha. With several tasks, the overall test uses half of alpha, and each
    task's test uses the level of Holm's first step.
    """
    count = len(suite)
    share = overall_level(alpha, count)
    tasks, together, losses, weights = [], _Units(), [], []
    for task, examples in sorted(suite.items()):
        own, of = _Units(), _known(noise.get(task, NO_NOISE), usual)
        for example in examples:
            own.add(example, 1 / len(examples), of)
            together.add(example, 1 / len(examples) / count, of)
        own.loss = of.loss or 1.0
        losses.append(own.loss * own.weight)
        weights.append(own.weight)
        tasks.append(_planned(task, examples, own, of, share / count))
    together.loss = math.fsum(losses) / math.fsum(weights)
    everything = [example for examples in suite.values() for example in examples]
    mean = Noise(math.fsum(task.noise * task.examples for task in tasks) / len(everything))
    overall = _planned(OVERALL, everything, together, mean, share)
    counts = {example.responses for example in everything}
    repeats = counts.pop() if len(counts) == 1 else 1
    return SuitePlan(tuple(tasks), overall, together.variances(repeats).needed(share, (drop,))[0], repeats, alpha)


def _known(noise: Noise, usual: float) -> Noise:
    """Return the noise, with ``usual`` for unmeasured flips and cautious assumptions for other missing values."""
    return Noise(
        usual if noise.flips is None else noise.flips,
        1.0 if noise.shared is None else noise.shared,
        1.0 if noise.loss is None else noise.loss,
    )


def _planned(task: str, examples: Sequence[Planned], units: _Units, noise: Noise, alpha: float) -> TaskPlan:
    clusters = len(units.by_name)
    return TaskPlan(
        task,
        len(examples),
        sum(example.responses for example in examples),
        clusters,
        noise.flips or 0.0,
        noise.shared if clusters < len(examples) else None,
        units.variances().detectable(alpha),
    )
