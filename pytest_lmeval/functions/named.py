"""Thresholds and floors of ``eval_task`` that are given to scores by their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_lmeval.errors import UsageError

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_FIELDS = ("threshold", "min_score")


class Named(NamedTuple):
    """The numbers of the score that decides, None where none is given, and those of each score that is named."""

    threshold: Any
    min_score: Any
    scores: Mapping[str, Mapping[str, float]]


def by_name(task: str, decisive: str | None, threshold: Any, min_score: Any) -> Named:
    """Return what two numbers or mappings say; raise UsageError for a mapping that is empty, and for a faulty name.

    ``decisive`` is the name of the score that decides, if it is known.
    """
    given = dict(zip(_FIELDS, (threshold, min_score), strict=True))
    scores: dict[str, dict[str, float]] = {}
    for field, numbers in given.items():
        if isinstance(numbers, Mapping):
            for name, number in _checked(task, field, numbers).items():
                scores.setdefault(name, {})[field] = number
            given[field] = numbers.get(decisive)
    return Named(**given, scores=scores)


def _checked(task: str, field: str, numbers: Mapping[Any, Any]) -> Mapping[str, float]:
    if not numbers:
        raise UsageError(f"eval_task({task!r}): {field}: expected a number from 0 to 1, or names with such numbers")
    for name, number in numbers.items():
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            what = "expected the name of a score, of letters, digits, - and _"
            raise UsageError(f"eval_task({task!r}): {field}: {what}, got {name!r:.60}")
        if isinstance(number, bool) or not (isinstance(number, int | float) and 0 <= number <= 1):
            raise UsageError(
                f"eval_task({task!r}): {field}[{name!r}]: expected a number from 0 to 1, got {number!r:.60}"
            )
    return numbers
