"""The tables of commands are as wide as the terminal, and whole in a pipe."""

from __future__ import annotations

from itertools import takewhile

import pytest

from pytest_lmeval.report.terminal_text import Screen
from pytest_lmeval.types import ExampleResult
from tests.conftest import Project
from tests.records.run_files import result, write_ledger

NAME = "task_{:02}_of_a_suite_whose_names_are_long_enough_to_need_a_line_of_their_own_x"
LABEL = "provider-of-models-instruct-preview-2026-11-27-with-a-name-of-eighty-characters-"
FITTED = {
    "diff": ("one/ledger.jsonl", "two/ledger.jsonl"),
    "rank": ("one/ledger.jsonl", "two/ledger.jsonl"),
    "calibrate": ("one/ledger.jsonl", "two/ledger.jsonl"),
    "plan": ("--drop=0.05", "--from", "one/ledger.jsonl"),
    "merge": ("shard", "-o", "whole"),
    "tasks": ("tasks",),
}


def _results(tasks: int, score: float) -> list[ExampleResult]:
    return [
        result(NAME.format(task), f"e{number}", score if number % 2 else 1.0)
        for task in range(tasks)
        for number in range(4)
    ]


@pytest.fixture
def runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("COLUMNS", "80")
    for folder, score in (("one", 1.0), ("two", 0.0)):
        (project.path / folder).mkdir()
        write_ledger(project.path / folder, _results(30, score), adapter=f"{LABEL}{folder}")
    project.task(f"tasks/{NAME.format(1)}.jsonl", project.record("a", "a"))
    assert 0 == project.run("tasks", "--lm-shard=1/1", "--lm-report-dir=shard").ret
    return project


def _table(lines: list[str]) -> list[str]:
    """Return the lines of the first table."""
    start = next(number for number, line in enumerate(lines) if line.startswith(("task ", "model ", "name ")))
    return [*takewhile(lambda line: line and not line.startswith(("interval:", "gate ", "took ")), lines[start:])]


def test_a_table_fits_the_terminal_and_is_whole_in_a_pipe(runs: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, arguments in FITTED.items():
        lines = runs.lmeval(command, *arguments).outlines
        assert 2 <= len(_table(lines))
        assert [] == [line for line in _table(lines) if len(line) > 80]
        assert "shortened to 80 columns; in a pipe without COLUMNS, the tables are whole" in lines
    monkeypatch.delenv("COLUMNS")
    for command in ("diff", "rank", "tasks"):
        whole = runs.lmeval(command, *FITTED[command]).stdout.str()
        assert (LABEL if command == "rank" else NAME.format(1)) in whole
        assert "shortened" not in whole


def test_one_task_of_one_example_is_whole(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    project.prompts("say: a", target="a")
    assert 0 == project.run("--lm-cache=cache").ret
    assert "shortened" not in project.lmeval("cache", "list", "cache").stdout.str()
    assert ["name  key  metric       examples  parameters  path"] == project.lmeval("tasks").outlines[:1]


def test_columns_are_dropped_in_their_order_and_differing_names_stay_apart() -> None:
    screen = Screen(30)
    rows = [(f"{LABEL}{end}", "1", "22222222", "3") for end in ("a", "b")]
    lines = screen.cells(("model", "n", "examples", "ms"), rows, drop=("ms", "examples"))
    assert screen.cut
    assert [["model", "n"], True] == [lines[0].split(), lines[1] != lines[2]]
    assert 30 >= max(map(len, lines))
