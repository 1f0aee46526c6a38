"""Small declarative tasks, loaded and scored without a run around them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.task import LoadedFile, LoadOptions, TaskSource
from pytest_lmeval.formats.yaml import load
from pytest_lmeval.loading import default_registry
from pytest_lmeval.scoring.evaluate import ScoringRules, Thresholds, evaluate, question_of
from pytest_lmeval.task import Tools, render
from pytest_lmeval.types import Completion, ExampleResult, Generate

REGISTRY = default_registry(entry_points=False)
ROWS = [{"q": "one?", "a": "1", "n": 3, "human": "good"}, {"q": "two?", "a": "2", "n": 5, "human": "bad"}]
SOLVER: dict[str, Any] = {
    "type": "single_turn_solver",
    "input_builder": {"type": "chat_completion", "input_messages": [{"role": "user", "content": "{{ sample.q }}"}]},
}
EQUALS: dict[str, Any] = {"type": "string_equals", "ground_truth": "{{ sample.a }}"}


class StubJudge:
    """Gives the answers it was made with, in turn."""

    name = "stub judge"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[Generate] = []
        self.models: list[str] = []

    def ask(self, requests: Sequence[Generate]) -> list[Completion]:
        self.asked += requests
        return [Completion(self.answers.pop(0), prompt_tokens=10, cost=0.5) for _ in requests]

    def key(self, request: Generate) -> str:
        return ""

    def model(self, key: str) -> StubJudge:
        self.models.append(key)
        return self


def document(scorers: Sequence[Mapping[str, Any]] = (EQUALS,), **parts: Any) -> dict[str, Any]:
    """Return a task over rows.jsonl; ``parts`` are those of its definition, ``root`` keys beside that."""
    root = parts.pop("root", {})
    definition = {"dataset": {"path": "rows.jsonl"}, "solver": SOLVER, "scorers": list(scorers), **parts}
    definition = {key: value for key, value in definition.items() if value is not None}
    return {"key": "small", "display_name": "Small", **root, "definition": definition}


def read(folder: Path, task: Mapping[str, Any] | str, rows: Sequence[Any] = ROWS, **options: Any) -> LoadedFile:
    """Return what a task file with rows.jsonl beside it holds."""
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    text = task if isinstance(task, str) else json.dumps(task, indent=1)
    path = folder / "small.yaml"
    path.write_text(text, "utf-8")
    source = TaskSource(path, text.encode(), "small", LoadOptions(**options), is_named=True)
    return load(source, REGISTRY)


def make(
    folder: Path, scorers: Sequence[Mapping[str, Any]] = (EQUALS,), rows: Sequence[Any] = ROWS, **parts: Any
) -> DeclarativeTask:
    """Return the task of such a file."""
    loaded = read(folder, document(scorers, **parts), rows)
    assert [] == [error.at("small.yaml") for error in loaded.errors]
    (task,) = loaded.tasks
    assert isinstance(task, DeclarativeTask)
    return task


def faults(folder: Path, task: Mapping[str, Any] | str, **options: Any) -> list[str]:
    """Return ``rule field: detail`` of everything that is wrong with a task, without the columns."""
    loaded = read(folder, task, **options)
    assert not loaded.tasks or not loaded.errors
    return [f"{error.rule} {error.field}: {error.detail.partition(': ')[2]}" for error in loaded.errors]


def score(task: DeclarativeTask, *outputs: str | Sequence[str], judge: Any = None) -> list[ExampleResult]:
    """Return the results of the examples that answer with ``outputs``; a list of texts is one repeat each."""
    results = []
    for example, output in zip(task.examples, outputs, strict=True):
        texts = [output] if isinstance(output, str) else output
        asked = task.requests(example, render(example))
        responses = [Completion(text) for text in texts] if asked else []
        judgement = ScoringRules(Thresholds(REGISTRY), Tools(None, judge), repeats=len(texts))
        results.append(evaluate(task, example, question_of(task, example, render(example)), responses, judgement))
    return results
