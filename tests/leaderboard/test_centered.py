"""Scores above what guessing reaches, and their mean."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.leaderboard.aggregations import centered, centered_metric, core_csv, core_score
from pytest_lmeval.leaderboard.rows import TaskInfo, TaskRow, make_row
from pytest_lmeval.types import ExampleResult


def row(task: str, score: float | None, value: float | None = None, *, is_core: bool = True) -> TaskRow:
    results = [] if score is None else [ExampleResult(task, "a", "passed", score, 1.0, "accuracy", "h")]
    plain = make_row(TaskInfo(task, "core.yaml"), results)
    metrics = {**plain.metrics, "centered": value} if is_core else plain.metrics
    return replace(plain, numbers=replace(plain.numbers, metrics=metrics))


@given(st.floats(0, 0.99))
def test_guessing_is_nought_and_perfect_is_one(baseline: float) -> None:
    assert 0.0 == centered(baseline, baseline)
    assert pytest.approx(1.0) == centered(1.0, baseline)


def test_worse_than_guessing_is_below_nought() -> None:
    assert pytest.approx(-1.0) == centered(0.0, 0.5)


def test_only_a_task_with_a_baseline_has_the_metric() -> None:
    assert {} == centered_metric(0.5, None)
    assert {"centered": None} == centered_metric(None, 0.25)
    assert {"centered": 0.5} == centered_metric(0.625, 0.25)
    assert {"centered": 0.625} == centered_metric(0.625, 0.0)


def test_the_core_score_is_the_mean_over_core_tasks() -> None:
    rows = [row("a", 0.75, 0.5), row("b", 0.5, -0.25), row("plain", 0.1, is_core=False)]
    assert 0.125 == core_score(rows)


def test_there_is_no_core_score_where_a_task_has_none() -> None:
    assert core_score([row("a", 0.75, 0.5), row("b", None)]) is None
    assert core_score([row("plain", 0.1, is_core=False)]) is None


def test_the_table_has_a_line_per_core_task_and_the_mean_last() -> None:
    rows = [row("a, b", 0.75, 0.5), row("plain", 1.0, is_core=False), row("c", 0.5, 1 / 3)]
    table = list(csv.reader(io.StringIO(core_csv(rows).decode())))
    assert [
        ["Task", "Accuracy", "Centered"],
        ["a, b", "0.750000", "0.500000"],
        ["c", "0.500000", "0.333333"],
        ["CORE", "", "0.416667"],
    ] == table


def test_a_task_without_a_score_has_empty_fields() -> None:
    assert b"Task,Accuracy,Centered\na,,\nCORE,,\n" == core_csv([row("a", None)])
    assert b"" == core_csv([row("plain", 1.0, is_core=False)])
