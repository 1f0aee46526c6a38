"""Describe a ranking's result: the best model, the models that may be as good, and their costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pytest_lmeval.stats.intervals import ROUNDING

SELECTION = "a selection of the examples: the ranking of all of them may differ"
"""The reason for naming no best model if ``-k``, ``--lf`` or another option selected the examples."""
_NAMED = 3
_Standings = Sequence[Mapping[str, Any]]


def decision(comparison: Mapping[str, Any]) -> str:
    """Return a comparison's conclusion: the best model, or the reason for naming no best model."""
    ranking = comparison["ranking"]
    if reason := why_no_best(comparison):
        return f"no model is named best: {reason}"
    best, *others = ranking["standings"]
    same = [best["name"], *(each["name"] for each in others if abs(each["score"] - best["score"]) <= ROUNDING)]
    parts = [
        f"{same[0]} is best" if len(same) == 1 else f"{listed(same)} have the same score",
        _group([each for each in others if not each["is_worse"]], "not shown to be worse", _within),
        _group([each for each in others if each["is_worse"]], "worse", _by_at_least),
        _clause([each["name"] for each in ranking["unranked"]], "not ranked"),
        _clause(comparison.get("not_asked", ()), "not asked", ("was", "were")),
    ]
    return "; ".join(filter(None, parts))


def why_no_best(comparison: Mapping[str, Any]) -> str:
    """Return the reason why a comparison names no best model, or an empty string."""
    if comparison["ranking"] is None:
        return str(comparison["reason"])
    if any("selection" in model for model in comparison["models"]):
        return SELECTION
    return str(comparison["ranking"]["reason"])


def _group(standings: _Standings, what: str, how_far: Callable[[_Standings], str]) -> str:
    clause = _clause([each["name"] for each in standings], what)
    return f"{clause}{how_far(standings)}{_at_cost(standings)}" if clause else ""


def _clause(names: Sequence[str], what: str, verbs: tuple[str, str] = ("is", "are")) -> str:
    return f"{listed(names)} {verbs[len(names) > 1]} {what}" if names else ""


def listed(names: Sequence[str]) -> str:
    """Join up to four names into a phrase; for five or more names, join the first three and count the rest.

    >>> [listed(["a", "b"]), listed(["a", "b", "c", "d"]), listed(["a", "b", "c", "d", "e"])]
    ['a and b', 'a, b, c and d', 'a, b, c and 2 more']
    """
    shown = list(names) if len(names) == _NAMED + 1 else list(names[:_NAMED])
    if len(names) > len(shown):
        return f"{', '.join(shown)} and {len(names) - _NAMED} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _within(standings: _Standings) -> str:
    """Return a phrase that says by how many points, at most, each model is worse than the best model."""
    ends = [None if (ends := each["difference_ci95"]) is None else -ends[0] for each in standings]
    return _bound("within", ends, max)


def _by_at_least(standings: _Standings) -> str:
    ends = [None if (ends := each["difference_ci95"]) is None else -ends[1] for each in standings]
    return _bound("by at least", ends, min)


def _bound(word: str, shares: Sequence[float | None], outermost: Callable[[Iterable[float]], float]) -> str:
    """Return a phrase with the bounds in points, or only the outermost bound if there are more than three.

    Return an empty string if a bound is unknown, or if a lower bound is 0.
    """
    known = [share for share in shares if share is not None]
    rounded = math.ceil if outermost is max else math.floor
    if len(known) < len(shares) or not known:
        return ""
    each = "each " if len(known) > _NAMED else ""
    points = [_points(share, rounded) for share in ([outermost(known)] if each else known)]
    unit = "point" if points == ["1"] else "points"
    return "" if "0" in points and outermost is min else f" ({each}{word} {listed(points)} {unit})"


def _points(share: float, rounded: Callable[[float], int]) -> str:
    """Convert a score difference to points; ``rounded`` rounds to whole points, or, below one point, to tenths.

    >>> [_points(0.083, math.ceil), _points(0.083, math.floor), _points(0.0042, math.floor), _points(0.01, math.ceil)]
    ['9', '8', '0.4', '1']
    """
    points = round(100 * max(0.0, share), 9)
    return f"{rounded(points) if points >= 1 else rounded(10 * points) / 10:g}"


def _at_cost(standings: _Standings) -> str:
    ratios = [each["cost_ratio"] for each in standings]
    if not ratios or len(ratios) > _NAMED or None in ratios:
        return ""
    texts = [f"{ratio:.2g}" if ratio < 100 else f"{ratio:.0f}" for ratio in ratios]
    if set(texts) == {"1"}:
        return " at the same cost"
    return f" at {listed(texts)} {'of' if max(ratios) < 1 else 'times'} the cost"
