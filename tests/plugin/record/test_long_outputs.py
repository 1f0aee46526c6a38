"""A run that holds more than fits into memory reads long texts from its ledger, and says the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import BOTH, Project

# As if every line were long, and all before it filled the memory.
CONFTEST = """
from pytest_lmeval.plugin.record import records
from pytest_lmeval.records import runfile, stored

records.IN_MEMORY = records.LONG = stored._SHORT = runfile.LARGE = -1


def pytest_lmeval_leaderboard(leaderboard):
    for result in leaderboard.tasks[0].per_example:
        with open("seen.txt", "a") as file:
            print(type(result.answer).__name__, result.prompt, *result.outputs, sep=", ", file=file)
"""
TIMES = {"timestamp", "manifest", "latency_ms", "request_ms", "spent"}


def content(value: Any) -> Any:
    """Return what a board says but for times."""
    if isinstance(value, dict):
        return {name: content(each) for name, each in value.items() if name not in TIMES}
    return [content(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("processes", BOTH)
def test_what_is_read_from_the_ledger_is_what_was_there(project: Project, processes: str) -> None:
    project.task("tasks/t.jsonl", *map(project.record, ("e0", "e1", "e2"), ("one", "two", "three")))
    project.run("--lm-include-per-example", "--lm-repeats=2")
    expected, page = project.board(), project.path / "reports/report.html"
    size = page.stat().st_size
    project.write("conftest.py", CONFTEST)
    assert project.run("--lm-include-per-example", "--lm-repeats=2", processes).ret == 0
    assert content(expected) == content(project.board())
    seen = (project.path / "seen.txt").read_text().splitlines()
    assert [f"StoredExampleAnswer, say: {word}, {word}, {word}" for word in ("one", "two", "three")] == seen
    assert abs(size - page.stat().st_size) < 500
    calls = project.calls()
    assert project.run("--lm-resume", "--lm-include-per-example", "--lm-repeats=2", processes).ret == 0
    assert content(expected)["tasks"] == content(project.board())["tasks"]
    assert (calls, seen) == (project.calls(), (project.path / "seen.txt").read_text().splitlines()[3:])
