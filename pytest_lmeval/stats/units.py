"""What varies as one in the mean of several tasks: a value, or a cluster of them, and what it weighs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Values = tuple[Sequence[float], Sequence[str]]
"""A task's scores or differences, and the cluster of each, or nothing where none has one."""
_NOTHING = 1e-9  # a score is in [0, 1]: a smaller difference is the rounding of a mean


@dataclass(frozen=True, slots=True)
class Piece:
    """What varies as one: its part of the mean, what of it is left about the tasks' means, and its weight."""

    part: float
    residual: float
    weight: float


def units_of(tasks: Sequence[Values], *, are_scores: bool = False) -> list[Piece]:
    """Return the units of the unweighted mean of the tasks' means: clusters by name, whatever task they are in.

    Of a task's one value nothing is left about its mean; as a difference, it is about 0. Raises ValueError where a task
    has clusters, and not one for each value.
    """
    groups: dict[str | tuple[int, int], list[Piece]] = {}
    for number, (values, clusters) in enumerate(tasks):
        if clusters and len(clusters) != len(values):
            raise ValueError(f"{len(clusters)} clusters for {len(values)} differences")
        for index, unit in enumerate(_single_units(values, len(tasks), are_scores)):
            groups.setdefault((clusters[index] if clusters else "") or (number, index), []).append(unit)
    return [members[0] if len(members) == 1 else _joined(members) for members in groups.values()]


def _single_units(values: Sequence[float], tasks: int, are_scores: bool) -> list[Piece]:
    n, centre = len(values), math.fsum(values) / len(values)
    weight = 1 / (n * tasks)
    if n == 1:
        return [Piece(values[0] * weight, 0.0 if are_scores else values[0] * weight, weight)]
    freed = weight * math.sqrt(n / (n - 1))
    return [Piece(value * weight, (value - centre) * freed, weight) for value in values]


def _joined(members: Sequence[Piece]) -> Piece:
    part = math.fsum(unit.part for unit in members)
    weight = math.fsum(unit.weight for unit in members)
    part = part if abs(part) > _NOTHING * weight else 0.0
    return Piece(part, math.fsum(unit.residual for unit in members), weight)
