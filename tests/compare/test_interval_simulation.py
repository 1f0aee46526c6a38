"""A small simulation of runs of several models, and of how often intervals hold what is true."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.compare.conftest import few_and_all

BENCHMARK = "intervals"
pytestmark = pytest.mark.again


def by_chance(share: float, runs: int) -> float:
    """Return how far a share of so many runs may be off: three times its standard error."""
    return 3 * math.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize("runs", few_and_all(40, 500))
@pytest.mark.parametrize(
    "models", [pytest.param(1, marks=pytest.mark.again), 4, pytest.param(8, marks=pytest.mark.again)]
)
def test_a_run_of_unchanged_models_is_red_in_at_most_alpha_of_the_runs(simulation: Any, models: int, runs: int) -> None:
    # Without a share of alpha for each, a third of the runs of eight would be red.
    assert simulation.false_alarms(models, 1, 60, runs, seed=5) <= 0.05 + by_chance(0.05, runs)
    assert simulation.false_alarms(models, 3, 20, runs, seed=6) <= 0.05 + by_chance(0.05, runs)


@pytest.mark.parametrize("runs", few_and_all(60, 500))
@pytest.mark.parametrize(
    "n", [5, 10, pytest.param(30, marks=pytest.mark.again), pytest.param(200, marks=pytest.mark.slow)]
)
def test_intervals_hold_what_is_true(simulation: Any, n: int, runs: int) -> None:
    # Wilson's interval of few examples is below its level for some shares: that is known, and on average it holds.
    least = {"right in 7 of 10": 0.91, "right in 95 of 100": 0.91}
    for cases, coverage in (
        (simulation.SCORES, simulation.score_coverage),
        (simulation.CHANGES, simulation.change_coverage),
    ):
        for name, (draw, mean) in cases.items():
            nominal = least.get(name, 0.94)
            assert coverage(draw, mean, n, runs, seed=7) >= nominal - by_chance(nominal, runs), name
