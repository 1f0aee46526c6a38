"""The YAML in the docs is read as it stands there, and runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.formats.declarative.actions import Action
from pytest_lmeval.formats.declarative.models.base import ReadContext
from pytest_lmeval.formats.declarative.task import DeclarativeTask
from pytest_lmeval.formats.task import LoadOptions, TaskSource
from pytest_lmeval.formats.yaml import load
from pytest_lmeval.formats.yaml.configs import read_configs
from pytest_lmeval.formats.yaml.parse import parse_yaml
from tests.formats.declarative.making import EQUALS, REGISTRY, SOLVER, StubJudge, document, make, read, score

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "yaml-tasks.md").read_text("utf-8")
YAML = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
TASKS = [block for block in YAML if "\ndefinition:" in block]
CSV = re.search(r"`tasks/countries.csv`:\n\n```text\n(.*?)```", PAGE, re.DOTALL)
JUDGES = re.findall(r"```yaml\n(.*?)```", (DOCS / "judges.md").read_text("utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert CSV is not None
    (tmp_path / "countries.csv").write_text(CSV[1])
    (tmp_path / "countries.yaml").write_text(next(block for block in YAML if "file_path" in block))
    return tmp_path


def _load(folder: Path, text: str, **options: Any) -> list[DeclarativeTask]:
    source = TaskSource(folder / "task.yaml", text.encode(), "task", LoadOptions(**options))
    loaded = load(source, REGISTRY)
    assert [] == [error.at("task.yaml") for error in loaded.errors]
    return [task for task in loaded.tasks if isinstance(task, DeclarativeTask)]


def test_the_first_task_runs(folder: Path) -> None:
    (task,) = _load(folder, TASKS[0])
    assert ["passed", "failed"] == [result.status for result in score(task, "Paris", "Kyoto")]
    assert "What is the capital of France? Reply with its name alone." == task.examples[0].messages[0].content


def test_the_task_with_a_parameter_runs_with_every_config_there(folder: Path) -> None:
    for block in (block for block in YAML if "asked_for: " in block and "definition" not in block):
        (folder / "config.yaml").write_text(block)
        for task in _load(folder, TASKS[1], configs=read_configs(folder / "config.yaml")):
            capital = "capital" in task.name or "capital" in str(task.config)
            answers = ("Paris", "Tokyo") if capital and "continents" not in task.name else ("Europe", "Asia")
            assert ["passed", "passed"] == [result.status for result in score(task, *answers)]


def test_the_actions_and_the_snippet_are_of_use(folder: Path) -> None:
    block = next(block for block in YAML if block.startswith("actions:"))
    (action,) = parse_yaml(block.encode())["actions"]
    Action.model_validate(action, context=ReadContext(REGISTRY))
    snippet = re.search(r"```python\n# tasks/score.py\n(.*?)```", PAGE, re.DOTALL)
    assert snippet is not None
    (folder / "score.py").write_text(snippet[1])
    scorers = next(block for block in YAML if block.startswith("scorers:"))
    indented = "".join(f"  {line}\n" for line in scorers.splitlines())
    (task,) = _load(folder, TASKS[0].partition("  scorers:")[0] + indented)
    results = score(task, " paris", "Kyoto")
    assert [1.0, 0.0] == [result.score for result in results]
    assert 0.5 == task.aggregate(results)["metrics"]["is_correct_mean"]


def test_the_error_that_is_shown_is_the_real_one(folder: Path) -> None:
    shown = re.search(r"```text\n(tasks/capitals.yaml:.*?)\n```", PAGE, re.DOTALL)
    assert shown is not None
    text = TASKS[0].replace("ground_truth", "ground_thruth")
    source = TaskSource(folder / "capitals.yaml", text.encode(), "capitals")
    assert [shown[1]] == [error.at("tasks/capitals.yaml") for error in load(source, REGISTRY).errors]


@pytest.mark.parametrize("block", JUDGES, ids=range(len(JUDGES)))
def test_the_judges_of_the_docs_judge(tmp_path: Path, block: str) -> None:
    (scorer,) = parse_yaml(block.encode())
    row = {"q": "?", "capital": "Paris", "answer": "Paris", "reviewer": "correct"}
    grade = '{"reason": "It says so.", "score": 1}'
    answers = {"labeler_via_model": "english", "model_as_a_judge_scorer": "5", "rubric": grade}
    answer = answers.get(scorer["type"], "correct")
    # A labeler alone scores nothing.
    others = [EQUALS] if scorer.get("purpose") == "qa" else []
    task = make(tmp_path, [*others, scorer], [{**row, "a": "Paris"}])
    (result,) = score(task, "Paris", judge=StubJudge(answer))
    assert "passed" == result.status


def test_every_type_of_scorer_and_parameter_is_in_the_docs(tmp_path: Path) -> None:
    (error,) = read(tmp_path, document([{"type": "nope"}], solver=SOLVER)).errors
    built_in = {"string_equals", "string_equals_mcqa", "rouge", "json_schema", "python", "labeler_via_model"}
    built_in |= {"model_as_a_judge_classifier", "model_as_a_judge_scorer"}
    assert all(f"`{name}`" in PAGE and name in error.detail for name in built_in)
