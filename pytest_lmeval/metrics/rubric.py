"""Have the judge grade an answer by a rubric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.types import Score

__all__ = ["rubric"]

Grade = Callable[[str, Sequence[str], Mapping[str, Any]], Score]
"""Asks the run's judge to grade an example."""


def check(targets: Sequence[str], extras: Mapping[str, Any]) -> None:
    """Raise RecordRefused for extras that no judge could grade by."""
    from pytest_lmeval.judging.rubric import check_rubric

    check_rubric(targets, extras)


@metric(extras=("rubric", "levels", "human_label"), needs_targets=False, asks_judge=True, check=check)
def rubric(prediction: str, targets: Sequence[str], extras: Mapping[str, Any], grade: Grade) -> Score:
    """Return the level of ``extras.levels`` that the judge gives the prediction by ``extras.rubric``.

    Levels are numbers from 0 to 1, by default 0 and 1. The targets, which may be absent, are right answers for the
    judge to compare with. The details have its ``reason``. ``extras.not`` makes the score 1 minus the level.
    """
    return grade(prediction, targets, extras)
