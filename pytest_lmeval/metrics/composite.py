"""Declare the metrics for records with checks or turns, and for records that a judge grades."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.types import Score

Grade = Callable[[str, Sequence[str], Extras], Score]
"""Asks the run's judge to grade an example."""


@metric(threshold=0.0, extras=("tools", "tool_choice"), takes_calls=True)
def checks(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Score a record by the mean of its checks; the record passes if each check reaches its own threshold.

    Each check has its own metric, so calling this function raises ScoringError.
    """
    raise ScoringError("checks is the metric of records with checks; it cannot score another record")


@metric(extras=("tools", "tool_choice", "responses", "max_rounds"), takes_calls=True)
def turns(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Score a conversation by the share of its scored turns that pass.

    Each turn has its own metric, so calling this function raises ScoringError.
    """
    raise ScoringError("turns is the metric of records with turns; it cannot score another record")


def check_rubric(targets: Sequence[str], extras: Extras) -> None:
    """Raise RecordRefused for targets or extras that a judge cannot use for grading."""
    from pytest_lmeval.judging.rubric import check_rubric as check

    check(targets, extras)


@metric(extras=("rubric", "levels", "human_label"), needs_targets=False, asks_judge=True, check=check_rubric)
def rubric(prediction: str, targets: Sequence[str], extras: Extras, grade: Grade) -> Score:
    """Return the level, one of ``extras.levels``, that the judge gives the prediction according to ``extras.rubric``.

    Levels are numbers from 0 to 1, by default 0 and 1. The optional targets are right answers that the judge compares
    with the prediction. The details contain the judge's ``reason``. If ``extras.not`` is true, the score is 1 minus the
    level.
    """
    return grade(prediction, targets, extras)
