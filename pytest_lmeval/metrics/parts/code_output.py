"""Compare a program's output with the expected output."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pytest_lmeval.sandbox.values import close


def prints(printed: str, targets: Iterable[str], tolerance: float | None) -> bool:
    """Return True if the output equals a target, ignoring whitespace at the end of each line and of the text.

    With a ``tolerance``, compare lines word by word; words that are numbers may differ by the tolerance.
    """
    lines = _lines(printed)
    return any(_equal(lines, _lines(target), tolerance) for target in targets)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _equal(printed: list[str], target: list[str], tolerance: float | None) -> bool:
    if printed == target:
        return True
    if tolerance is None or len(printed) != len(target):
        return False
    pairs = [(ours.split(), theirs.split()) for ours, theirs in zip(printed, target, strict=True)]
    return all(
        len(ours) == len(theirs) and all(_near(*words, tolerance) for words in zip(ours, theirs, strict=True))
        for ours, theirs in pairs
    )


def _near(printed: str, target: str, tolerance: float) -> bool:
    if printed == target:
        return True
    try:
        numbers = float(printed), float(target)
    except ValueError:
        return False
    return all(map(math.isfinite, numbers)) and close(*numbers, tolerance)
