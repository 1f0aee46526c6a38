"""Decide whether a result passes, based on its score, its repeats and the thresholds of further scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.numbers import beside, is_number
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

PASSES = "passes"
"""The detail with the numbers of ``needed`` and ``passed`` repeats, if they decide."""
THRESHOLDS = "thresholds"
"""The detail with the thresholds of further scores, by name."""


def missed(scores: Mapping[str, float], thresholds: Mapping[str, Any]) -> list[str]:
    """Return the names of the scores that are below their thresholds; ignore missing scores."""
    return [
        name for name, least in thresholds.items() if is_number(least) and not is_at_least(scores.get(name, 1.0), least)
    ]


def reaches(result: ExampleResult) -> bool:
    """Return True if a result's score, and each further score with a threshold, reaches its threshold.

    If the example requires a number of passing repeats, only that number decides.
    """
    outcome = result.outcome
    if outcome.score is None or not outcome.details:
        return outcome.score is not None and is_at_least(outcome.score, outcome.threshold)
    if (counted := passes_of(result)) is not None:
        return counted[1] >= counted[0]
    return is_at_least(outcome.score, outcome.threshold) and not _missed(result)


def missed_lines(result: ExampleResult) -> list[str]:
    """Return a line on passing repeats if their number decides, and one for each further score below its threshold."""
    counted, named = passes_of(result), thresholds_of(result)
    repeats = [] if counted is None else [f"{counted[1]} of its repeats passed, but {counted[0]} must pass"]
    # With several repeats, the value of a metric is the mean over the repeats.
    under = [
        f"{name} {beside(result.metrics[name], named[name], '.4g')} is under its threshold {named[name]:.4g}"
        for name in _missed(result)
    ]
    return repeats + under


def thresholds_of(result: ExampleResult) -> Mapping[str, float]:
    """Return the thresholds of a result's further scores; ignore malformed values, which a ledger may contain."""
    given = result.outcome.details.get(THRESHOLDS)
    if not isinstance(given, Mapping):
        return {}
    return {str(name): float(least) for name, least in given.items() if is_number(least)}


def passes_of(result: ExampleResult) -> tuple[float, float] | None:
    """Return the number of repeats that must pass and the number that passed, or None if the score decides."""
    given = result.outcome.details.get(PASSES)
    if not isinstance(given, Mapping):
        return None
    needed, passed = given.get("needed"), given.get("passed")
    return (needed, passed) if is_number(needed) and is_number(passed) else None


def _missed(result: ExampleResult) -> list[str]:
    return missed(result.outcome.metrics, thresholds_of(result))
