"""Scores and thresholds: the rounding of a mean fails no score, and no score is shown as more than it is."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_lmeval
from pytest_lmeval.numbers import beside
from pytest_lmeval.stats.intervals import is_at_least
from tests.conftest import Project

PACKAGE = Path(pytest_lmeval.__file__).parent
shares = st.floats(0, 1)


@pytest.mark.parametrize("scores", [[0.7, 0.8, 0.9], [0.8] * 6, [0.1] * 8])
def test_what_a_sum_of_floats_loses_is_nothing(scores: list[float]) -> None:
    summed = 0.0
    for score in scores:
        summed += score
    exact = round(math.fsum(scores), 3)
    assert is_at_least(summed, exact)
    assert is_at_least(summed / len(scores), exact / len(scores))


MEAN = """
def pytest_lmeval_register(registry):
    registry.add_metric("three", lambda *_: (0.7 + 0.8 + 0.9) / 3, threshold=0.8)
"""


def test_a_mean_that_rounding_lowers_passes_as_a_record_a_check_and_a_turn(project: Project) -> None:
    project.write("conftest.py", MEAN)
    scored = {"metric": "three", "targets": ["x"]}
    project.task("tasks/record.jsonl", {"id": "a", "prompt": "say: x", **scored})
    project.task("tasks/check.jsonl", {"id": "a", "prompt": "say: x", "checks": [scored]})
    project.task("tasks/turn.jsonl", {"id": "a", "turns": [{"user": "say: x", **scored}]})
    assert 0 == project.run().ret
    assert {"record": 1, "check": 1, "turn": 1} == {row["task"]: row["correct"] for row in project.board()["tasks"]}


def test_one_function_compares_scores_with_thresholds() -> None:
    orders = (ast.Gt, ast.GtE, ast.Lt, ast.LtE)
    compared = {
        ast.unparse(node)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare) and any(isinstance(order, orders) for order in node.ops)
    }
    # A threshold is checked to be a share, and how many repeats passed is counted.
    no_score = {"0 <= threshold <= 1", "passed_repeats(scores, threshold) >= policy.passes"}
    assert no_score == {each for each in compared if re.search("threshold|floor|min_score", each)}


@given(shares, shares)
def test_a_score_that_is_lower_by_more_than_rounding_does_not_reach(score: float, least: float) -> None:
    assert (score > least - 2e-9) >= is_at_least(score, least) >= (score >= least)


@given(shares, shares)
def test_a_score_is_never_shown_as_what_it_does_not_reach(score: float, least: float) -> None:
    assert (float(beside(score, least)) >= least) <= (score >= least)
