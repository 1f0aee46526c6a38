"""Several models of one run side by side: who is ahead, who is not significantly worse, and what each took."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from pytest_lmeval.atomic import encode_json, write_atomically
from pytest_lmeval.compare.rank import ALPHA, rank
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.details import (
    explanation_of,
    is_function,
    shown_output,
    shown_response,
    wanted_of,
)
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.report.github import add_step_summary
from pytest_lmeval.report.html.report import inert, part, policy
from pytest_lmeval.report.markdown import COMMENT_BYTES, table
from pytest_lmeval.report.ranking_text import STANDING_HEADINGS, comparison_remarks, standing_cells
from pytest_lmeval.report.tables import columns, cut_to, score_text
from pytest_lmeval.report.wording import cost_cell, is_off
from pytest_lmeval.text import cut, escape_markdown
from pytest_lmeval.types import ExampleResult

SCHEMA = "pytest-lmeval/comparison/1"
_REASONS = 20
_MOST_EXAMPLES = 10_000
_HEADINGS = ("model", "verdict", "score", *STANDING_HEADINGS, "p95 ms", "cost")


@dataclass(frozen=True, slots=True)
class Compared:
    """One model of a run: its label, its board, its results with their prompts, and the folder of its files."""

    label: str
    board: Leaderboard
    results: tuple[ExampleResult, ...]
    folder: str


def compared(
    models: Sequence[Compared],
    exit_code: int,
    folder: Path = Path(),
    not_asked: Sequence[str] = (),
    *,
    pair_by: str = "content",
    alpha: float | None = None,
) -> dict[str, Any]:
    """Return the comparison, to be written to ``folder``, as JSON values; ``alpha`` is by default that of the gate.

    ``reason`` says why the models cannot be ranked, where they cannot. ``not_asked`` are the labels of models of which
    no example was selected.
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
    if sum(any(result.is_scored for result in model.results) for model in models) < 2:
        found["reason"] = "fewer than two models have a score"
        return found
    settings = (models[0].board.facts.gate or {}).get("settings", {})
    try:
        level = settings.get("alpha", ALPHA) if alpha is None else alpha
        ranking = rank([_run(model) for model in models], pair_by, level)
        found["ranking"] = ranking.to_json()
    except UsageError as error:
        found["reason"] = str(error)
    return found


def comparison_table(comparison: Mapping[str, Any]) -> list[str]:
    """Return the lines for a terminal: a row a model, the best first, and who is not significantly worse."""
    return [*columns(_HEADINGS, _rows(comparison), texts=2), *comparison_remarks(comparison)]


def comparison_markdown(comparison: Mapping[str, Any]) -> str:
    """Return the comparison as Markdown."""
    lines = ["# Comparison", "", *table(_HEADINGS, _rows(comparison), texts=2)]
    reasons = [
        f"{model['label']}: {_verdict(model)}: {reason}"
        for model in comparison["models"]
        for reason in model["reasons"][:_REASONS]
    ]
    lines += [f"- {escape_markdown(remark)}" for remark in (*comparison_remarks(comparison), *reasons)]
    return cut_to("\n".join([*lines, ""]), COMMENT_BYTES)


def write_comparison(folder: Path, comparison: Mapping[str, Any], models: Sequence[Compared]) -> list[str]:
    """Write comparison.json, comparison.md, report.html and, where it is asked for, the step summary.

    Return what could not be written, and why.
    """
    failures = []
    contents: dict[str, Callable[[], bytes]] = {
        "comparison.md": lambda: comparison_markdown(comparison).encode("utf-8", "backslashreplace"),
        "report.html": lambda: render_comparison(comparison, models).encode("ascii"),
        "comparison.json": lambda: encode_json(dict(comparison)),
    }
    for name, content in contents.items():
        try:
            write_atomically(folder / name, content())
        except Exception as error:  # what one file cannot hold must not cost the others
            failures.append(f"{folder / name}: {error}")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            add_step_summary(comparison_markdown(comparison), Path(summary))
        except OSError as error:
            failures.append(f"{summary}: {error}")
    return failures


def render_comparison(comparison: Mapping[str, Any], models: Sequence[Compared]) -> str:
    """Return the page as the text of one HTML file, all ASCII; it holds at most 10,000 examples, and says so."""
    style, script = part("compare.css"), f'\n"use strict";\n(() => {{\n{part("compare.js")}\n}})();\n'
    examples = _examples(models)
    data = {
        "comparison": comparison,
        "remarks": comparison_remarks(comparison),
        "examples": examples[:_MOST_EXAMPLES],
        "left_out": max(0, len(examples) - _MOST_EXAMPLES),
    }
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    labels = ", ".join(model.label for model in models)
    return Template(part("compare.html")).substitute(
        policy=policy(style, script), title=_title(labels), style=style, script=script, data=inert(text)
    )


def _title(labels: str) -> str:
    """Return the title, escaped, ASCII."""
    return html.escape(labels).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _examples(models: Sequence[Compared]) -> list[dict[str, Any]]:
    held = [{(result.task, result.id): result for result in model.results} for model in models]
    keys = dict.fromkeys(key for results in held for key in results)
    found = [_example(key, [results.get(key) for results in held]) for key in keys]
    # Those that tell the models apart come first.
    return sorted(found, key=lambda example: not example["differs"])


def _example(key: tuple[str, str], results: Sequence[ExampleResult | None]) -> dict[str, Any]:
    some = next(result for result in results if result is not None)
    return {
        "task": key[0],
        "id": key[1],
        "prompt": cut(some.prompt),
        "targets": [cut(wanted) for wanted in wanted_of(some)],
        "differs": len({None if result is None else result.status for result in results}) > 1,
        "answers": [None if result is None else _answer(result) for result in results],
    }


def _answer(result: ExampleResult) -> dict[str, Any]:
    number = shown_response(result)
    output = result.outputs[number] if result.outputs else result.error
    if is_function(result):
        said = result.error or shown_output(result)
        explained = {} if result.error else {"prediction": cut(explanation_of(result))}
        return {
            "status": result.status,
            "score": result.score,
            "output": cut(said),
            "ms": result.latency_ms,
            **explained,
        }
    prediction = result.predictions[number] if number < len(result.predictions) else ""
    same = prediction == output
    answer = {"status": result.status, "score": result.score, "output": cut(output), "ms": result.latency_ms}
    return answer if same else {**answer, "prediction": cut(prediction)}


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
        **({"selection": dict(board.facts.selection)} if board.facts.selection else {}),
    }


def _run(model: Compared) -> RunFile:
    facts = model.board.facts
    return RunFile(
        path=Path(model.folder),
        kind="leaderboard",
        facts=replace(facts, adapter=model.label),
        complete=model.board.complete,
        infos={},
        results=model.results,
    )


def _rows(comparison: Mapping[str, Any]) -> list[tuple[str, ...]]:
    models = {model["label"]: model for model in comparison["models"]}
    standings = {each["name"]: each for each in (comparison["ranking"] or {}).get("standings", ())}
    return [
        _row(models[label], standings.get(label))
        for label in [*standings, *(each for each in models if each not in standings)]
    ]


def _row(model: Mapping[str, Any], standing: Mapping[str, Any] | None) -> tuple[str, ...]:
    scored, took = model["counts"]["scored"], model["spent"]
    score = model["overall_score"] if standing is None else standing["score"]
    place = ("-", str(scored), "-", "-", "-", "-") if standing is None else standing_cells(standing, scored)
    spent = (
        cost_cell(took.get("p95_ms"), is_least=False),
        cost_cell(took.get("cost"), is_least="cost_known" in took),
    )
    return (model["label"], _verdict(model), score_text(score), *place, *spent)


def _verdict(model: Mapping[str, Any]) -> str:
    if not model["complete"]:
        return "incomplete"
    return str(model["verdict"]) if model["gated"] else "not gated"
