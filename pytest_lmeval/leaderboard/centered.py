"""Scores centred on what guessing reaches, and the one number that they sum up to."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from typing import Protocol

from pytest_lmeval.stats.intervals import mean

CENTERED = "centered"
"""The name of a row's metric that only tasks with a random baseline have."""


class Row(Protocol):
    """A row of a leaderboard, as far as it is looked at here."""

    @property
    def task(self) -> str: ...

    @property
    def score(self) -> float | None: ...

    @property
    def metrics(self) -> Mapping[str, float | None]: ...


def centered(score: float, baseline: float) -> float:
    """Return 0 for the ``baseline``, in [0, 1), and 1 for a perfect score; below 0 for what is worse than guessing.

    >>> centered(0.625, 0.25)
    0.5
    """
    return (score - baseline) / (1 - baseline)


def centered_metric(score: float | None, baseline: float | None) -> dict[str, float | None]:
    """Return the row's metric of that name; empty for a task without a baseline."""
    if baseline is None:
        return {}
    return {CENTERED: None if score is None else centered(score, baseline)}


def core_score(rows: Iterable[Row]) -> float | None:
    """Return the mean of the centred scores; None where no task has one, or one of them has no score."""
    values = [row.metrics[CENTERED] for row in rows if CENTERED in row.metrics]
    known = [value for value in values if value is not None]
    return mean(known) if known and len(known) == len(values) else None


def core_csv(rows: Iterable[Row]) -> bytes:
    """Return a CSV file, UTF-8, of the tasks with a centred score, and ``CORE`` on its last line.

    A score that there is not is an empty field. Empty where there is no such task.
    """
    chosen = [row for row in rows if CENTERED in row.metrics]
    if not chosen:
        return b""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("Task", "Accuracy", "Centered"))
    table.writerows((row.task, _number(row.score), _number(row.metrics[CENTERED])) for row in chosen)
    table.writerow(("CORE", "", _number(core_score(chosen))))
    return out.getvalue().encode("utf-8", "backslashreplace")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
