"""Whether a result passes: by its score, and by the further scores that have thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_lmeval.numbers import beside
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.types import ExampleResult

PASSES = "passes"
"""The detail that says how many repeats are ``needed`` and how many ``passed``, where that decides."""
THRESHOLDS = "thresholds"
"""The detail that has the thresholds of further scores, by name."""


def missed(scores: Mapping[str, float], thresholds: Mapping[str, Any]) -> list[str]:
    """Return the names of the scores that are under their thresholds; one that was not recorded is none of them."""
    return [
        name
        for name, least in thresholds.items()
        if _is_number(least) and not is_at_least(scores.get(name, 1.0), least)
    ]


def reaches(result: ExampleResult) -> bool:
    """Tell whether a result has a score that reaches its threshold, as each further score does that has one.

    Where so many repeats have to pass, whether they did.
    """
    outcome = result.outcome
    if outcome.score is None or not outcome.details:
        return outcome.score is not None and is_at_least(outcome.score, outcome.threshold)
    if (counted := passes_of(result)) is not None:
        return counted[1] >= counted[0]
    return is_at_least(outcome.score, outcome.threshold) and not _missed(result)


def missed_lines(result: ExampleResult) -> list[str]:
    """Return a text where too few repeats passed, and one for each further score that is under its threshold."""
    counted, named = passes_of(result), thresholds_of(result)
    repeats = [] if counted is None else [f"{counted[1]} of its repeats passed, and {counted[0]} have to"]
    # Of repeats a metric is the mean.
    under = [
        f"{name} {beside(result.metrics[name], named[name], '.4g')} is under its threshold {named[name]:.4g}"
        for name in _missed(result)
    ]
    return repeats + under


def thresholds_of(result: ExampleResult) -> Mapping[str, float]:
    """Return the thresholds of a result's further scores; none where a file has something else in their place."""
    given = result.outcome.details.get(THRESHOLDS) if result.outcome.details else None
    if not isinstance(given, Mapping):
        return {}
    return {str(name): float(least) for name, least in given.items() if _is_number(least)}


def passes_of(result: ExampleResult) -> tuple[float, float] | None:
    """Return how many repeats of a result have to pass, and how many did; None where its score decides."""
    given = result.outcome.details.get(PASSES) if result.outcome.details else None
    if not isinstance(given, Mapping):
        return None
    needed, passed = given.get("needed"), given.get("passed")
    # mypy does not follow _is_number, which takes bools out.
    return (needed, passed) if _is_number(needed) and _is_number(passed) else None  # type: ignore[return-value]


def _missed(result: ExampleResult) -> list[str]:
    named = thresholds_of(result)
    return missed(result.outcome.metrics, named) if named else []


def _is_number(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)
