"""Compare the models of one run: their ranking, their scores by task, time and cost."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import encode_json, write_atomically
from pytest_lmeval.compare.decision import decision, why_no_best
from pytest_lmeval.compare.rank import ALPHA, rank
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.report.comparison_text import comparison_markdown
from pytest_lmeval.report.github import add_step_summary
from pytest_lmeval.report.html.comparison_page import render_comparison
from pytest_lmeval.report.wording import is_off
from pytest_lmeval.types import ExampleResult

SCHEMA = "pytest-lmeval/comparison/1"
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Compared:
    """One model of a run: its label, its leaderboard, its results with prompts, and the folder with its files.

    On this model's own page, task names end with ``suffix``, such as ``@CONFIG``.
    """

    label: str
    board: Leaderboard
    results: tuple[ExampleResult, ...]
    folder: str
    suffix: str = ""


def compared(
    models: Sequence[Compared],
    exit_code: int,
    folder: Path = Path(),
    not_asked: Sequence[str] = (),
    *,
    pair_by: str = "content",
    alpha: float | None = None,
) -> dict[str, Any]:
    """Return the comparison as a JSON object with paths relative to ``folder``; ``alpha`` defaults to the gate's.

    In these values, ``reason`` explains why the models cannot be ranked, or is "" if they are ranked. ``not_asked``
    lists the labels of models without a selected example.
    """
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "timestamp": min((model.board.facts.timestamp for model in models), default=""),
        "exit_code": exit_code,
        "models": [_model(model, folder) for model in models],
        "ranking": None,
        "reason": "",
    }
    if not_asked:
        found["not_asked"] = list(not_asked)
    run_ids = {model.board.facts.manifest.get("run_id") for model in models} - {None}
    if len(run_ids) == 1:
        found["run_id"] = run_ids.pop()
    found |= _ranked(models, pair_by, alpha)
    return {**found, "decision": decision(found), "tasks": _tasks(models, found)}


def _ranked(models: Sequence[Compared], pair_by: str, alpha: float | None) -> dict[str, Any]:
    if sum(any(result.is_scored for result in model.results) for model in models) < 2:
        return {"reason": "fewer than two models have a score"}
    settings = (models[0].board.facts.gate or {}).get("settings", {})
    try:
        level = settings.get("alpha", ALPHA) if alpha is None else alpha
        took = {model.label: model.board.spent for model in models}
        return {"ranking": rank([_run(model) for model in models], pair_by, level, took).to_json()}
    except UsageError as error:
        return {"reason": str(error)}


def _tasks(models: Sequence[Compared], comparison: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each task with its score for each model, and with its best models if the comparison names a best model.

    A score covers the ``n`` examples that all ranked models share. The score of an unranked model, and any score for
    a task without shared examples, covers all examples that the model scored.
    """
    ranking = comparison["ranking"] or {"standings": (), "examples": {}}
    shared = {each["name"]: each["tasks"] for each in ranking["standings"]}
    own = {model.label: _own_scores(model) for model in models}
    names_best = not why_no_best(comparison)
    found = []
    for task in sorted({task for scores in own.values() for task in scores}):
        scores = {label: held[task] for label, held in own.items() if task in held}
        ranked = {label: held[task] for label, held in shared.items() if task in held}
        scores |= {label: {"score": score, "n": ranking["examples"][task]} for label, score in ranked.items()}
        most = max(ranked.values(), default=0.0)
        best = [label for label, score in ranked.items() if names_best and score >= most - _SAME]
        # If all models have the same score, no model is the best.
        best = best if len(best) < len(ranked) else []
        found.append({"task": task, "scores": scores, "best": best})
    return found


def _own_scores(model: Compared) -> dict[str, dict[str, Any]]:
    counts = Counter(
        result.question.task for result in model.results if result.outcome.score is not None and result.is_scored
    )
    return {
        row.task: {"score": row.score, "n": row.measured["examples"] if row.measured else counts[row.task]}
        for row in model.board.tasks
    }


def write_comparison(folder: Path, comparison: Mapping[str, Any], models: Sequence[Compared]) -> list[str]:
    """Write the comparison as JSON, Markdown, HTML and GitHub's step summary; return a line for each failure."""
    failures = []
    contents: dict[str, Callable[[], bytes]] = {
        "comparison.md": lambda: comparison_markdown(comparison).encode("utf-8", "backslashreplace"),
        "report.html": lambda: render_comparison(comparison, models, folder).encode("ascii"),
        "comparison.json": lambda: encode_json(dict(comparison)),
    }
    for name, content in contents.items():
        try:
            write_atomically(folder / name, content())
        except Exception as error:  # still write the other files
            failures.append(f"{folder / name}: {error}")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            add_step_summary(comparison_markdown(comparison), Path(summary))
        except OSError as error:
            failures.append(f"{summary}: {error}")
    return failures


def _model(model: Compared, folder: Path) -> dict[str, Any]:
    board, gate = model.board, model.board.facts.gate or {}
    return {
        "label": model.label,
        "adapter": board.facts.adapter,
        "folder": Path(os.path.relpath(model.folder, folder)).as_posix(),
        "complete": board.complete,
        "overall_score": board.overall_score,
        "verdict": gate.get("verdict", ""),
        "gated": not is_off(gate),
        "reasons": list(gate.get("reasons", ())),
        "digest": board.digest,
        "counts": dict(board.counts),
        "spent": dict(board.spent),
        "warnings": list(gate.get("warnings", ())),
        "quarantined": board.quarantined(),
        **({"selection": dict(board.facts.selection)} if board.facts.selection else {}),
    }


def _run(model: Compared) -> RunFile:
    facts = model.board.facts
    return RunFile(
        # A run's variants share a folder, so the label makes the path unique.
        path=Path(model.folder, model.label),
        kind="leaderboard",
        facts=replace(facts, adapter=model.label),
        complete=model.board.complete,
        infos={},
        results=model.results,
    )
