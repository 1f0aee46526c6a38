"""Scores and thresholds: the rounding of a mean fails no score, and no score is shown as more than it is."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.numbers import beside
from pytest_lmeval.stats.intervals import is_at_least

shares = st.floats(0, 1)


@pytest.mark.parametrize("scores", [[0.7, 0.8, 0.9], [0.8] * 6, [0.1] * 8])
def test_what_a_sum_of_floats_loses_is_nothing(scores: list[float]) -> None:
    summed = 0.0
    for score in scores:
        summed += score
    exact = round(math.fsum(scores), 3)
    assert is_at_least(summed, exact)
    assert is_at_least(summed / len(scores), exact / len(scores))


@given(shares, shares)
def test_a_score_that_is_lower_by_more_than_rounding_does_not_reach(score: float, least: float) -> None:
    assert (score > least - 2e-9) >= is_at_least(score, least) >= (score >= least)


@given(shares, shares)
def test_a_score_is_never_shown_as_what_it_does_not_reach(score: float, least: float) -> None:
    assert (float(beside(score, least)) >= least) <= (score >= least)
