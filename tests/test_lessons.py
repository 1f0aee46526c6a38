"""The calls of small harnesses, as docs/coming-from.md maps them: each row of its table is tried."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import pytest_lmeval
from pytest_lmeval import (
    Example,
    ExecutionResult,
    Leaderboard,
    ModelAdapter,
    RecordRefused,
    ToyAdapter,
    UsageError,
    default_registry,
    execute_code,
    load_all_tasks,
    post_process,
    render,
    run_leaderboard,
    run_task,
    validate_file,
    validate_task,
    write_leaderboard,
)
from pytest_lmeval.cli import main

ROOT = Path(__file__).parents[1]
TASKS = ROOT / "tasks"
RECORD = {"id": "a", "prompt": "compute: 2 + 2", "targets": ["4"], "metric": "exact_match"}


def _refused() -> bool:
    with pytest.raises(RecordRefused):
        validate_task({"id": "a"})
    return True


def _written(folder: Path, **options: bool) -> Mapping[str, Any]:
    write_leaderboard(run_leaderboard(load_all_tasks(TASKS), ToyAdapter()), folder / "board.json", **options)
    found: Mapping[str, Any] = json.loads((folder / "board.json").read_text("utf-8"))
    return found


def _option(name: str) -> bool:
    return f"`{name}" in (ROOT / "docs/reference/options.md").read_text("utf-8")


ROWS: Mapping[str, Callable[[Path], bool]] = {
    "TaskSpec": lambda _: isinstance(validate_task(RECORD), Example),
    "validate_task": lambda _: _refused(),
    "validate_file": lambda _: (
        validate_file(TASKS / "arithmetic.jsonl")[1] == [] and main(["validate", str(TASKS / "arithmetic.jsonl")]) == 0
    ),
    "load_fixtures": lambda _: all(isinstance(each, Example) for each in load_all_tasks(TASKS)["arithmetic"]),
    "seed_fixture_tasks": lambda folder: main(["init", str(folder / "new")]) == 0,
    "render": lambda _: render(validate_task(RECORD)) == "compute: 2 + 2",
    "post_process": lambda _: post_process("lower", "A") == "a",
    "METRIC_FNS": lambda _: default_registry().metrics["exact_match"].function("4", ["4"], {}) == 1.0,
    "ModelAdapter": lambda _: isinstance(ToyAdapter(), ModelAdapter),
    "run_task": lambda _: run_task(load_all_tasks(TASKS)["arithmetic"], ToyAdapter()).score == 1.0,
    "run_leaderboard": lambda _: run_leaderboard(load_all_tasks(TASKS), ToyAdapter()).overall_score == 1.0,
    "TaskResult": lambda _: run_task(load_all_tasks(TASKS)["arithmetic"], ToyAdapter()).total > 1,
    "Leaderboard": lambda folder: (
        isinstance(run_leaderboard(load_all_tasks(TASKS), ToyAdapter()), Leaderboard)
        and _written(folder)["overall_score"] == 1.0
    ),
    "--include-per-example": lambda folder: (
        bool(_written(folder, include_per_example=True)["tasks"][0]["per_example"])
        and _option("--lm-include-per-example")
    ),
    "--allow-bad-tasks": lambda _: _option("--lm-allow-bad-tasks"),
    "execute_code": lambda _: isinstance(execute_code("print(1)"), ExecutionResult),
    "run_categorical_eval": lambda _: "`categorical`" in (ROOT / "docs/python-tasks.md").read_text("utf-8"),
    "evaluate_task": lambda _: (ROOT / "docs/many-machines.md").exists(),
}


def test_each_row_of_the_table_has_a_call_that_works(tmp_path: Path) -> None:
    page = (ROOT / "docs/coming-from.md").read_text("utf-8")
    table = page.partition("## A harness of your own")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([\w-]+)", table, re.MULTILINE)

    assert rows == list(ROWS)
    assert [] == [name for name, works in ROWS.items() if not works(tmp_path)]
    named = set(re.findall(r"`(\w+)\(", " ".join(line.rpartition(" | ")[2] for line in table.splitlines())))
    assert [] == [name for name in named if not hasattr(pytest_lmeval, name)]


def test_examples_that_were_changed_are_not_run() -> None:
    examples = load_all_tasks(TASKS)["arithmetic"]
    with pytest.raises(UsageError, match="got another list"):
        run_task(examples[:2], ToyAdapter())
    examples.pop()
    with pytest.raises(UsageError, match="the examples of the task 'arithmetic' were changed"):
        run_task(examples, ToyAdapter())
