"""A small simulation of the gate: it seldom fails a model that did not change, and finds what McNemar's test finds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.compare.conftest import few_and_all

BENCHMARK = "gate"
pytestmark = pytest.mark.again
ROOT = Path(__file__).parents[2]
GATE_PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("rounds", few_and_all(25, 100))
def test_a_model_that_did_not_change_is_failed_in_at_most_one_run_in_twenty(simulation: Any, rounds: int) -> None:
    # A gate that fails one run in five would be found by 25 rounds with a chance of 97 %, by 100 nearly surely.
    found = simulation.simulate(simulation.NULL[0], rounds, seed=1)
    assert found["the gate"] <= 0.05
    # What the gate is there for: without a test nearly every run would be red.
    assert found["any task's score fell"] > 0.95


@pytest.mark.parametrize("rounds", few_and_all(12, 40))
@pytest.mark.parametrize("number", [0, 2])
def test_a_drop_is_found_at_least_as_often_as_by_mcnemar_s_test_with_the_same_alpha(
    simulation: Any, number: int, rounds: int
) -> None:
    found = simulation.simulate(simulation.POWER[number], rounds, seed=2)
    assert found["the gate"] >= found["McNemar, all pairs, at 2.5 %"]
    assert found["the gate"] >= found["McNemar, tasks, Holm, at 2.5 %"]
    assert found["the gate"] > 0.5


def test_a_single_task_is_tested_once_with_all_of_alpha(simulation: Any) -> None:
    found = simulation.simulate(simulation.POWER[-1], 40, seed=3)
    assert found["McNemar, all pairs, at 5 %"] == found["the gate"] > found["McNemar, all pairs, at 2.5 %"]


@pytest.mark.parametrize("rounds", few_and_all(20, 60))
def test_clusters_that_flip_as_one_raise_no_alarm_where_single_examples_would(simulation: Any, rounds: int) -> None:
    found = simulation.simulate(simulation.NULL[-1], rounds, seed=4)
    assert found["the gate"] <= 0.06
    assert found["McNemar, all pairs, at 5 %"] > 0.15


def test_the_simulation_is_the_same_for_the_same_seed(simulation: Any) -> None:
    small = simulation.Scenario("small", 2, 20, 0.2)
    lines = simulation.render([small], 20, 7)
    assert lines == simulation.render([small], 20, 7)
    assert 3 == len(lines)


@pytest.mark.parametrize("noise", [0.1, 0.02])
def test_the_tables_of_power_in_the_docs_are_the_computed_ones(simulation: Any, noise: float) -> None:
    table = "\n".join(simulation.power_table(noise))
    assert table in re.sub(r" +", " ", GATE_PAGE)
