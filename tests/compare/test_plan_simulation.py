"""A small simulation of plans: the gate finds a drop of the planned size about as often as the plan promises."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

from tests.compare.conftest import few_and_all

BENCHMARK = "plan"
pytestmark = pytest.mark.again
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "gate-test.md"
LEAST, MOST = 0.78, 0.88


def by_chance(rounds: int) -> float:
    """Return three times the standard error of a share of 80 % of so many rounds."""
    return 3 * math.sqrt(0.8 * 0.2 / rounds)


@pytest.mark.parametrize("rounds", few_and_all(40, 400))
def test_a_drop_of_the_planned_size_is_found_four_times_in_five(simulation: Any, rounds: int) -> None:
    scenarios = simulation.SCENARIOS[::5] if rounds < 100 else simulation.SCENARIOS
    found = {of.name: simulation.power(of, rounds, seed=1) for of in scenarios}
    slack = by_chance(rounds)

    assert {} == {name: share for name, share in found.items() if not LEAST - slack <= share <= MOST + slack}


@pytest.mark.parametrize("rounds", few_and_all(20, 200))
def test_a_careful_plan_is_kept_more_often(simulation: Any, rounds: int) -> None:
    for of in simulation.CAREFUL:
        assert simulation.power(of, rounds, seed=2) > MOST - by_chance(rounds), of.name


def test_the_docs_have_a_row_for_each_scenario(simulation: Any) -> None:
    rows = re.findall(r"^\| (.* planned .*) \| (\d+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)

    assert [of.name for of in (*simulation.SCENARIOS, *simulation.CAREFUL)] == [name for name, _ in rows]
    within = [name for name, share in rows if LEAST * 100 <= int(share) <= MOST * 100]
    assert [of.name for of in simulation.SCENARIOS] == within
