"""The history of a suite's scores over finished runs, by task and model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pytest_lmeval.records.runfile import RunFile, board_of
from pytest_lmeval.types import OVERALL

_Suite = tuple[tuple[str, str], ...]
"""The tasks of a suite, each with the hash of its file."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A significant drop since the model's previous run, which began at ``since``."""

    change: float
    p: float
    since: str


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The score of one run with its 95 % interval; both are None for a run without a score.

    ``changed`` is True if the tasks changed since the model's previous run, unless a run of another model already shows
    the same change. ``notes`` say why the score may not cover the whole suite. ``drop`` is None if the score did not
    drop significantly, or if either run lacks per-example records.
    """

    timestamp: str
    model: str
    score: float | None
    interval: tuple[float, float] | None
    examples: int
    changed: bool
    notes: tuple[str, ...]
    path: str
    drop: Drop | None = None


class _Dated(NamedTuple):
    """A run with its board, and the drops since the model's previous run, by task."""

    run: RunFile
    board: Mapping[str, Any]
    drops: Mapping[str, Drop]


@dataclass(frozen=True, slots=True)
class History:
    """The scores of each task and the overall scores over time; ``notes`` name files that repeat a run."""

    series: Mapping[str, tuple[HistoryPoint, ...]]
    notes: tuple[str, ...] = ()


def history(runs: Iterable[RunFile], tasks: Sequence[str] = ()) -> History:
    """Return the scores of ``tasks`` over the runs, or, without ``tasks``, the scores of all tasks and overall.

    If several files contain the same run, use the first file.
    """
    once: dict[tuple[str, str, str], RunFile] = {}
    notes = []
    for run in runs:
        first = once.setdefault((run.digest or str(run.path), run.timestamp, run.adapter), run)
        if first is not run:
            notes.append(f"{run.path}: the same run as {first.path}")
    before: dict[str, RunFile] = {}
    shown = []
    for run in sorted(once.values(), key=lambda run: (run.timestamp, str(run.path))):
        shown.append(_Dated(run, board_json(run), _drops(before.get(run.adapter), run)))
        before[run.adapter] = run
    named = dict.fromkeys(row["task"] for each in shown for row in each.board["tasks"])
    wanted = tasks or [OVERALL, *sorted(named)]
    return History({task: tuple(_points(task, shown)) for task in wanted}, tuple(notes))


def _drops(before: RunFile | None, run: RunFile) -> dict[str, Drop]:
    """Return the regressions that the gate's test finds, by task."""
    if before is None or before.results is None or run.results is None:
        return {}
    from pytest_lmeval.compare.compare import compare

    found = compare(before.results, run.results)
    # With a single task, the overall change equals that task's change.
    changes = [*found.tasks, replace(found.tasks[0], task=OVERALL) if len(found.tasks) == 1 else found.pooled]
    return {
        each.task: Drop(each.change, each.p_adjusted, before.timestamp)
        for each in changes
        if each.verdict == "regression"
    }


def board_json(run: RunFile) -> Mapping[str, Any]:
    """Return a run's board as JSON values; compute the board if the run's file is a ledger."""
    return run.board if run.board is not None else board_of(run).to_json()


def _points(task: str, shown: Iterable[_Dated]) -> Iterator[HistoryPoint]:
    before: dict[str, _Suite] = {}
    marked: set[tuple[_Suite, _Suite]] = set()
    for run, board, drops in shown:
        rows = [row for row in board["tasks"] if task in (OVERALL, row["task"])]
        if not rows:
            continue
        suite = tuple(sorted((row["task"], str(row.get("sha256"))) for row in rows))
        change = before.get(run.adapter, suite), suite
        changed = change[0] != suite and change not in marked
        if changed:
            marked = {*marked, change} - {change[::-1]}
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
            changed=changed,
            notes=tuple(_notes(run, board.get("counts") or {})),
            path=str(run.path),
            drop=drops.get(task),
        )
        before[run.adapter] = suite


def _notes(run: RunFile, counts: Mapping[str, int]) -> Iterator[str]:
    if not run.complete:
        known = "scored" in counts and counts["scored"] < counts.get("collected", 0)
        yield f"not complete, {counts['scored']} of {counts['collected']} scored" if known else "not complete"
    if run.selection:
        yield "a part of the examples"
