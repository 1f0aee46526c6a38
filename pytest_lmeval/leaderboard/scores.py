"""Build a task's sub-rows, one for each named score of its examples."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NotRequired, TypedDict

from pytest_lmeval.leaderboard.details import BY_NAME, DECIDED_BY, details_of
from pytest_lmeval.leaderboard.passing import thresholds_of
from pytest_lmeval.stats.intervals import mean, score_bounds
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.rows import TaskInfo


class ScoreRow(TypedDict):
    """A sub-row for a named score: the mean over the ``n`` scored examples that have it; ``missing`` examples lack it.

    ``threshold`` is None if the examples have no threshold or different thresholds. ``decides`` is True if the named
    score is the task's score.
    """

    score: float | None
    n: int
    missing: int
    ci95: tuple[float, float] | None
    threshold: float | None
    min_score: float | None
    decides: NotRequired[bool]


NAME = re.compile(r"[A-Za-z0-9_-]+")
"""The names of scores that options can refer to."""


def score_rows(info: TaskInfo, results: Iterable[ExampleResult]) -> dict[str, ScoreRow]:
    """Return a task's sub-rows by score name, with the decisive score first."""
    scored = [result for result in results if result.outcome.score is not None]
    decisive = _decisive(scored)
    names = {name for result in scored for name in result.outcome.metrics} | info.scores.keys()
    return {
        name: _row(name, info, scored, decisive) for name in sorted(names, key=lambda name: (name != decisive, name))
    }


def with_floors(info: TaskInfo, floors: Mapping[str, float], tasks: Collection[str]) -> TaskInfo:
    """Return a task's info with its scores' floors, which ``floors`` lists under ``TASK.SCORE``.

    If a task in ``tasks``, which lists all names, is called ``TASK.SCORE``, the floor belongs to that task.
    """
    own = {name: floor for name, floor in floors.items() if name not in tasks and split(name)[0] == info.name}
    if not own:
        return info
    scores = {name: dict(each) for name, each in info.scores.items()}
    for name, floor in own.items():
        scores.setdefault(split(name)[1], {})["min_score"] = floor
    return replace(info, scores=scores)


def split(name: str) -> tuple[str, str]:
    """Split a sub-row's name into task and score; for any other name, return two empty strings."""
    task, _, score = name.rpartition(".")
    return (task, score) if task and NAME.fullmatch(score) else ("", "")


def is_score_of(name: str, tasks: Mapping[str, TaskInfo]) -> bool:
    """Return True if ``name`` may be the name of a score of one of the tasks."""
    task = tasks.get(split(name)[0])
    return task is not None and task.metric in BY_NAME


def _decisive(scored: Iterable[ExampleResult]) -> str:
    """Return the name of the decisive score, or "" if no score or several scores decide."""
    names = {str(each.get(DECIDED_BY, "")) for result in scored for each in details_of(result)} - {""}
    return names.pop() if len(names) == 1 else ""


def _row(name: str, info: TaskInfo, scored: Sequence[ExampleResult], decisive: str) -> ScoreRow:
    having = [result for result in scored if name in result.outcome.metrics]
    values = [result.outcome.metrics[name] for result in having]
    clusters = [result.question.cluster for result in having]
    own = info.scores.get(name, {})
    row: ScoreRow = {
        "score": mean(values) if values else None,
        "n": len(values),
        "missing": len(scored) - len(values),
        "ci95": score_bounds(values, clusters if any(clusters) else ()),
        "threshold": _threshold(name, having, is_decisive=name == decisive) if having else own.get("threshold"),
        "min_score": own.get("min_score"),
    }
    return {**row, "decides": True} if name == decisive else row


def _threshold(name: str, having: Iterable[ExampleResult], *, is_decisive: bool) -> float | None:
    found = {result.outcome.threshold if is_decisive else thresholds_of(result).get(name) for result in having}
    return found.pop() if len(found) == 1 else None
