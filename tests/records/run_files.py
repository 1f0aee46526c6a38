"""Ledgers and boards on disk, written by what writes those of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.records.boardfile import write_leaderboard
from pytest_lmeval.records.ledger import Ledger
from pytest_lmeval.records.runfile import RunFile, read_run
from pytest_lmeval.types import ExampleResult, Status

FACTS = RunFacts("2026-11-21T08:00:00Z", "stub.v1", manifest={"repeats": 1, "sandbox": "process"})


def result(task: str, id: str, score: float | None = 1.0, **fields: Any) -> ExampleResult:
    """Return a result as a run under the gate ``tasks`` gives it; its content hash is of task and id."""
    status: Status = "error" if score is None else "passed" if score >= 1.0 else "below"
    given = {
        "status": status,
        "threshold": 1.0,
        "metric": "exact_match",
        "hash": sha256(f"{task}:{id}".encode("utf-8", "backslashreplace")).hexdigest(),
        "prompt": f"say: {id}",
        "outputs": () if score is None else (f"{id} {score}",),
        "targets": (id,),
        "adapter": "stub.v1",
        "error": "broken" if score is None else "",
    }
    return ExampleResult(task=task, id=id, score=score, **{**given, **fields})


def results_of(scores: Mapping[str, Sequence[float | None]], **fields: Any) -> list[ExampleResult]:
    """Return a result for every score, by task; the ids count from 0."""
    return [
        result(task, f"{task}-{number}", score, **fields)
        for task, values in scores.items()
        for number, score in enumerate(values)
    ]


def infos_of(results: Iterable[ExampleResult], **fields: Any) -> list[TaskInfo]:
    """Return what a run knows of the tasks of ``results``."""
    counts: dict[str, int] = {}
    for each in results:
        counts[each.task] = counts.get(each.task, 0) + 1
    fixed = {"sha256": "a" * 64, "metric": "exact_match"}
    return [
        TaskInfo(task, f"tasks/{task}.jsonl", **{**fixed, "available": count, "selected": count, **fields})
        for task, count in counts.items()
    ]


def board_of_results(results: Sequence[ExampleResult], **facts: Any) -> Leaderboard:
    return build_board(infos_of(results), results, replace(FACTS, **facts))


def write_ledger(
    folder: Path, results: Sequence[ExampleResult], *, infos: Sequence[TaskInfo] | None = None, **facts: Any
) -> Path:
    """Write the ledger of a run with these results that came to its end."""
    known = infos_of(results) if infos is None else infos
    board = build_board(known, results, replace(FACTS, **facts))
    ledger = Ledger(folder)
    ledger.open({"timestamp": board.facts.timestamp, "asking": "b" * 64, "manifest": dict(board.facts.manifest)})
    for each in results:
        ledger.append(each.to_json())
    run = {"tasks": [asdict(info) for info in known], "facts": json.loads(json.dumps(asdict(board.facts)))}
    ledger.close({"complete": board.complete, "digest": board.digest, "counts": dict(board.counts)}, run)
    return ledger.path


def write_board(folder: Path, results: Sequence[ExampleResult], *, per_example: bool = True, **facts: Any) -> Path:
    path = folder / "leaderboard.json"
    write_leaderboard(board_of_results(results, **facts), path, include_per_example=per_example)
    return path


def ledger_run(folder: Path, scores: Mapping[str, Sequence[float | None]], **facts: Any) -> RunFile:
    """Return the run that a ledger of these scores, by task, holds."""
    return read_run(write_ledger(folder, results_of(scores), **facts))
