"""Means, errors and intervals, against scipy."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_lmeval.leaderboard.statistics import interval, mean, standard_error, t_quantile, wilson_interval

_SCORES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=40)
_GRADED = [[0.0, 0.5], [0.25, 0.5, 1.0], [0.9, 0.91, 0.92, 0.93], [0.1] * 3 + [1.0], [1 / 3, 2 / 3] * 50]


@pytest.mark.parametrize("degrees", [*range(1, 121), 500, 1000, 5000, 99_999, 1_000_000])
def test_the_t_quantile_is_scipy_s(degrees: int) -> None:
    assert stats.t.ppf(0.975, degrees) == pytest.approx(t_quantile(degrees), rel=1e-8)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 100_000))
def test_any_t_quantile_is_scipy_s(degrees: int) -> None:
    assert stats.t.ppf(0.975, degrees) == pytest.approx(t_quantile(degrees), rel=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 10_000])
@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 1])
def test_the_wilson_interval_is_scipy_s(n: int, share: float) -> None:
    successes = round(share * n)
    reference = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert (reference.low, reference.high) == pytest.approx(wilson_interval(successes, n), abs=1e-12)


@settings(deadline=None)
@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_any_wilson_interval_is_scipy_s_and_holds_the_share(pair: tuple[int, int]) -> None:
    successes, n = pair
    low, high = wilson_interval(successes, n)
    reference = stats.binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert (reference.low, reference.high) == pytest.approx((low, high), abs=1e-12)
    assert 0.0 <= low <= successes / n <= high <= 1.0
    assert low < high


@pytest.mark.parametrize("scores", _GRADED)
def test_the_standard_error_is_scipy_s(scores: list[float]) -> None:
    assert stats.sem(scores) == pytest.approx(standard_error(scores), rel=1e-12)


@pytest.mark.parametrize("scores", _GRADED)
def test_the_interval_of_graded_scores_is_student_s_cut_to_the_unit_interval(scores: list[float]) -> None:
    low, high = stats.t.interval(0.95, len(scores) - 1, loc=sum(scores) / len(scores), scale=stats.sem(scores))
    assert (max(0.0, low), min(1.0, high)) == pytest.approx(interval(scores), abs=1e-9)


def test_scores_of_zero_and_one_alone_get_wilson_s_interval() -> None:
    assert wilson_interval(3, 4) == interval([1.0, 0.0, 1.0, 1.0])
    assert wilson_interval(1, 1) == interval([1.0])


def test_an_all_or_nothing_task_ends_on_the_end() -> None:
    assert [1.0, 0.0] == [wilson_interval(7, 7)[1], wilson_interval(0, 7)[0]]


@pytest.mark.parametrize("scores", [[], [0.5]])
def test_nothing_is_said_of_no_score_or_one_graded_score(scores: list[float]) -> None:
    assert (None, None) == (standard_error(scores), interval(scores))


def test_one_score_has_no_standard_error() -> None:
    assert standard_error([1.0]) is None


def test_equal_graded_scores_leave_no_doubt() -> None:
    assert (0.0, (0.5, 0.5)) == (standard_error([0.5] * 4), interval([0.5] * 4))


@settings(deadline=None)
@given(_SCORES)
@example([0.1] * 10)
@example([1.0, 1e-16] * 20)
def test_the_mean_is_the_exact_sum_rounded_and_divided(scores: list[float]) -> None:
    assert float(sum(map(Fraction, scores))) / len(scores) == mean(scores)
    assert 0.0 <= mean(scores) <= 1.0


@settings(deadline=None)
@given(_SCORES, st.randoms(use_true_random=False))
def test_the_order_of_the_scores_never_matters(scores: list[float], random: Any) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    assert (mean(scores), standard_error(scores), interval(scores)) == (
        mean(shuffled),
        standard_error(shuffled),
        interval(shuffled),
    )


@settings(deadline=None)
@given(_SCORES)
def test_every_interval_lies_in_the_unit_interval_around_the_mean(scores: list[float]) -> None:
    ends = interval(scores)
    if ends is None:
        assert 1 == len(scores)
    else:
        assert 0.0 <= ends[0] <= mean(scores) <= ends[1] <= 1.0
        assert all(map(math.isfinite, ends))
