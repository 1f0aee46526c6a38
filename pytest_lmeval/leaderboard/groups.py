"""Compute the scores of task groups from the notes on the tasks' rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_lmeval.leaderboard.rows import TaskRow

MEASURES, GROUPS, LEFT_OUT = "harness", "groups", "left_out"
"""The keys of notes on a row: its measures by metric and filter, its groups, and the reasons for missing metrics."""


def shown(name: str) -> str:
    """Return a metric's name and filter as reports show them, omitting the filter ``none``."""
    return name.removesuffix(",none")


def finite(number: Any) -> float | None:
    """Return ``number``, or None if it is unknown, infinite or not a number."""
    return float(number) if number is not None and math.isfinite(number) else None


def group_scores(rows: Iterable[TaskRow]) -> dict[str, dict[str, Any]]:
    """Return each group's ``metrics`` by name, its ``tasks`` that have a row, and its ``missing`` tasks.

    A metric's ``stderr`` is None if any task's standard error is unknown. ``metrics`` is empty if no row has any of the
    group's metrics.
    """
    members: dict[str, list[TaskRow]] = {}
    defined: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        for name, group in row.notes.get(GROUPS, {}).items():
            members.setdefault(name, []).append(row)
            defined[name] = group
    return {name: _group(defined[name], own) for name, own in sorted(members.items())}


def _group(group: Mapping[str, Any], rows: Sequence[TaskRow]) -> dict[str, Any]:
    metrics = {}
    for metric in group["metrics"]:
        for name in _names(metric, rows):
            of = [(row, row.notes[MEASURES][name]) for row in rows if name in row.notes.get(MEASURES, {})]
            values = [row.metrics.get(shown(name)) for row, _ in of]
            if of and all(value is not None for value in values):
                metrics[name] = _score(values, [note for _, note in of], metric.get("weight_by_size", True))
    there = [row.task for row in rows]
    missing = [name for name in group["tasks"] if name not in there]
    return {"tasks": there, **({"missing": missing} if missing else {}), "metrics": metrics}


def _names(metric: Mapping[str, Any], rows: Sequence[TaskRow]) -> list[str]:
    """Return ``METRIC,FILTER`` for each filter that ``metric`` lists or, without a list, each of its tasks' filters."""
    filters = metric.get("filter_list")
    if filters is None:
        known = {name for row in rows for name in row.notes.get(MEASURES, {})}
        return sorted(name for name in known if name.rpartition(",")[0] == metric["metric"])
    return [f"{metric['metric']},{each}" for each in ([filters] if isinstance(filters, str) else filters)]


def _score(values: Sequence[Any], notes: Sequence[Mapping[str, Any]], by_size: Any) -> dict[str, Any]:
    sizes, errors = [note["n"] for note in notes], [note["stderr"] for note in notes]
    is_known = all(error is not None for error in errors)
    return {
        "value": finite(group_mean(values, sizes, bool(by_size))),
        "stderr": finite(group_error(errors, sizes, bool(by_size))) if is_known else None,
        "n": sum(sizes),
        "higher_is_better": all(note["higher_is_better"] for note in notes),
    }


def group_mean(values: Sequence[float], sizes: Sequence[int], by_size: bool) -> float:
    """Return the mean of the tasks' scores; with ``by_size``, weight each score by its task's number of documents."""
    weights = sizes if by_size else [1] * len(sizes)
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def group_error(errors: Sequence[float], sizes: Sequence[int], by_size: bool) -> float:
    """Return the standard error of :func:`group_mean`; with ``by_size``, pool the errors over all documents."""
    if not by_size:
        return math.sqrt(sum(error * error for error in errors)) / len(errors)
    pooled = sum((size - 1) * error * error * size for error, size in zip(errors, sizes, strict=True))
    return math.sqrt(pooled / (sum(sizes) - len(sizes)) / sum(sizes))
