"""The page of several models: every example with what each of them answered."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.details import shown_response, wanted_of
from pytest_lmeval.report.html.report import inert, part, policy
from pytest_lmeval.report.ranking_text import comparison_remarks
from pytest_lmeval.text import cut
from pytest_lmeval.types import ExampleResult

MAX_EXAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Compared:
    """One model of a run: its label, its board, its results with their prompts, and the folder of its files."""

    label: str
    board: Leaderboard
    results: tuple[ExampleResult, ...]
    folder: str


def render_comparison(comparison: Mapping[str, Any], models: Sequence[Compared]) -> str:
    """Return the page as the text of one HTML file, all ASCII; it holds at most MAX_EXAMPLES, and says so."""
    style, script = part("compare.css"), f'\n"use strict";\n(() => {{\n{part("compare.js")}\n}})();\n'
    examples = _examples(models)
    data = {
        "comparison": comparison,
        "remarks": comparison_remarks(comparison),
        "examples": examples[:MAX_EXAMPLES],
        "left_out": max(0, len(examples) - MAX_EXAMPLES),
    }
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    labels = ", ".join(model.label for model in models)
    return Template(part("compare.html")).substitute(
        policy=policy(style, script), title=html.escape(labels), style=style, script=script, data=inert(text)
    )


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
    prediction = result.predictions[number] if number < len(result.predictions) else ""
    same = prediction == output
    answer = {"status": result.status, "score": result.score, "output": cut(output), "ms": result.latency_ms}
    return answer if same else {**answer, "prediction": cut(prediction)}
