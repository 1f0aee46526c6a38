"""Decide whether a result passes: by its score, its repeats, and further scores with thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.numbers import beside, is_number
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

PASSES = "passes"
"""The detail with the numbers of repeats ``needed`` and ``passed``, if they decide."""
THRESHOLDS = "thresholds"
"""The detail with the thresholds of further scores, by name."""


def missed(scores: Mapping[str, float], thresholds: Mapping[str, Any]) -> list[str]:
    """Return the names of the scores below their thresholds; ignore scores that were not recorded."""
    return [
        name for name, least in thresholds.items() if is_number(least) and not is_at_least(scores.get(name, 1.0), least)
    ]


def reaches(result: ExampleResult) -> bool:
    """Return True if a result's score reaches its threshold, and so does each further score with a threshold.

    If a number of repeats must pass, return True if they did.
    """
    outcome = result.outcome
    if outcome.score is None or not outcome.details:
        return outcome.score is not None and is_at_least(outcome.score, outcome.threshold)
    if (counted := passes_of(result)) is not None:
        return counted[1] >= counted[0]
    return is_at_least(outcome.score, outcome.threshold) and not _missed(result)


def missed_lines(result: ExampleResult) -> list[str]:
    """Return a text if too few repeats passed, and one for each further score below its threshold."""
    counted, named = passes_of(result), thresholds_of(result)
    repeats = [] if counted is None else [f"{counted[1]} of its repeats passed, and {counted[0]} have to"]
    # With several repeats, a metric is their mean.
    under = [
        f"{name} {beside(result.metrics[name], named[name], '.4g')} is under its threshold {named[name]:.4g}"
        for name in _missed(result)
    ]
    return repeats + under


def thresholds_of(result: ExampleResult) -> Mapping[str, float]:
    """Return the thresholds of a result's further scores; empty if that part of a file is malformed."""
    given = result.outcome.details.get(THRESHOLDS)
    if not isinstance(given, Mapping):
        return {}
    return {str(name): float(least) for name, least in given.items() if is_number(least)}


def passes_of(result: ExampleResult) -> tuple[float, float] | None:
    """Return how many repeats of a result must pass, and how many did; None if the score decides."""
    given = result.outcome.details.get(PASSES)
    if not isinstance(given, Mapping):
        return None
    needed, passed = given.get("needed"), given.get("passed")
    return (needed, passed) if is_number(needed) and is_number(passed) else None


def _missed(result: ExampleResult) -> list[str]:
    return missed(result.outcome.metrics, thresholds_of(result))
