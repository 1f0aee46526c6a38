"""The history of a suite's scores over finished runs, by task and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.records.runfile import RunFile, board_of
from pytest_lmeval.types import OVERALL


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The score of one run, and its 95 % interval; both are None for a run without a score.

    ``changed`` is True if the tasks differ from the previous run's. ``notes`` say why the score may not cover the whole
    suite.
    """

    timestamp: str
    model: str
    score: float | None
    interval: tuple[float, float] | None
    examples: int
    changed: bool
    notes: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class History:
    """The points of the overall score and of each task's score over time; ``notes`` name duplicate runs."""

    series: Mapping[str, tuple[HistoryPoint, ...]]
    notes: tuple[str, ...] = ()


def history(runs: Iterable[RunFile], tasks: Sequence[str] = ()) -> History:
    """Return the history of the runs' scores for ``tasks``, or for all tasks if that is empty.

    If several files contain the same run, use the first one.
    """
    once: dict[tuple[str, str, str], RunFile] = {}
    notes = []
    for run in runs:
        first = once.setdefault((run.digest or str(run.path), run.timestamp, run.adapter), run)
        if first is not run:
            notes.append(f"{run.path}: the same run as {first.path}")
    boards = [(run, board_json(run)) for run in sorted(once.values(), key=lambda run: (run.timestamp, str(run.path)))]
    named = dict.fromkeys(row["task"] for _, board in boards for row in board["tasks"])
    wanted = tasks or [OVERALL, *sorted(named)]
    return History({task: tuple(_points(task, boards)) for task in wanted}, tuple(notes))


def board_json(run: RunFile) -> Mapping[str, Any]:
    """Return a run's board as JSON values from its file, or compute it from the results."""
    return run.board if run.board is not None else board_of(run).to_json()


def _points(task: str, boards: Iterable[tuple[RunFile, Mapping[str, Any]]]) -> Iterator[HistoryPoint]:
    before: object = None
    for run, board in boards:
        rows = [row for row in board["tasks"] if task in (OVERALL, row["task"])]
        if not rows:
            continue
        asked = sorted((row["task"], str(row.get("sha256"))) for row in rows)
        if task == OVERALL:
            score, interval = board.get("overall_score"), board.get("overall_ci95")
        else:
            score, interval = rows[0].get("score"), rows[0].get("ci95")
        yield HistoryPoint(
            timestamp=run.timestamp,
            model=run.adapter,
            score=score,
            interval=None if interval is None or score is None else (interval[0], interval[1]),
            examples=sum(row.get("total", 0) for row in rows),
            changed=before not in (None, asked),
            notes=tuple(_notes(run)),
            path=str(run.path),
        )
        before = asked


def _notes(run: RunFile) -> Iterator[str]:
    if not run.complete:
        yield "not complete"
    if run.selection:
        yield "a part of the examples"
