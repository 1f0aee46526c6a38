"""Means, errors and intervals, against scipy."""

from __future__ import annotations

import math
import random as randomness
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.proportion import proportion_confint

from pytest_lmeval.stats.intervals import (
    combine,
    interval,
    mean,
    overall_interval,
    standard_error,
    sum_clusters,
    t_quantile,
    wilson_interval,
)
from tests.tables import each_row

_SCORES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=40)
_GRADED = [[0.0, 0.5], [0.25, 0.5, 1.0], [0.9, 0.91, 0.92, 0.93], [0.1] * 3 + [1.0], [1 / 3, 2 / 3] * 50]


@each_row("degrees", [*range(1, 121), 500, 1000, 5000, 99_999, 1_000_000])
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


@each_row("scores", _GRADED)
def test_the_standard_error_is_scipy_s(scores: list[float]) -> None:
    assert stats.sem(scores) == pytest.approx(standard_error(scores), rel=1e-12)


@each_row("scores", _GRADED)
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


# Clusters


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("abcd")), min_size=3, max_size=30))
def test_the_error_of_clustered_scores_is_that_of_statsmodels_but_for_its_factor(pairs: list[tuple[int, str]]) -> None:
    scores, clusters = [score / 8 for score, _ in pairs], [cluster for _, cluster in pairs]
    groups = len(set(clusters))
    error = standard_error(scores, clusters)
    if groups < 2:
        assert error is None
        return
    codes = [ord(cluster) for cluster in clusters]
    fit = OLS(scores, [1.0] * len(scores)).fit(cov_type="cluster", cov_kwds={"groups": codes, "use_correction": False})
    assert pytest.approx(float(fit.bse[0]) * math.sqrt(groups / (groups - 1)), abs=1e-9) == error


def test_scores_without_a_cluster_stand_alone() -> None:
    scores = [0.5, 0.25, 1.0, 0.0, 0.75]
    assert standard_error(scores) == standard_error(scores, [""] * 5) == standard_error(scores, list("abcde"))
    assert interval(scores) == interval(scores, [""] * 5)
    assert [1.5, 0.25, 0.75] == sum_clusters(scores, ["a", "", "a", "a", ""])


def test_copies_of_an_example_do_not_make_the_score_surer() -> None:
    scores, copies = [0.5, 0.25, 1.0, 0.0], [0.5, 0.25, 1.0, 0.0] * 3
    clusters = list("abcd") * 3
    assert interval(scores) == pytest.approx(interval(copies, clusters))
    narrow, wide = interval([1.0, 0.0, 1.0, 1.0] * 10), interval([1.0, 0.0, 1.0, 1.0] * 10, list("abcd") * 10)
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_few_clusters_widen_wilson_s_interval_as_they_do_student_s() -> None:
    scores, clusters = [1.0] * 9 + [0.0] * 3 + [1.0, 0.0] * 2, [name for name in "abcd" for _ in range(4)]
    error = standard_error(scores, clusters)
    assert error is not None
    share = 11 / 16
    effective = share * (1 - share) / error**2 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 3)) ** 2
    assert 1 < effective < 16
    reference = proportion_confint(share * effective, effective, method="wilson")
    assert pytest.approx(reference, abs=1e-9) == interval(scores, clusters)


def test_an_all_or_nothing_task_is_as_sure_as_its_clusters_are_many() -> None:
    assert wilson_interval(4, 4) == interval([1.0] * 12, list("abcd") * 3)
    assert wilson_interval(0, 1) == interval([0.0] * 5, ["a"] * 5)


def test_right_and_wrong_ones_of_a_single_cluster_say_as_much_as_one_example() -> None:
    low, high = interval([1.0, 0.0, 1.0], ["a"] * 3) or (1, 0)
    assert low < 0.15
    assert high > 0.95


def test_the_interval_of_clustered_answers_covers_the_truth_where_wilson_s_does_not() -> None:
    toss = randomness.Random(4)
    names = [f"c{n // 5}" for n in range(100)]
    covered = {"clusters": 0, "none": 0}
    for _ in range(400):
        shares = [toss.choice([0.2, 0.95]) for _ in range(20)]
        scores = [float(toss.random() < shares[n // 5]) for n in range(100)]
        for how, clusters in (("clusters", names), ("none", [])):
            low, high = interval(scores, clusters) or (0, 0)
            covered[how] += low <= 0.575 <= high
    assert covered["clusters"] >= 370
    assert covered["none"] <= 345


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from(["", "a", "b"])), min_size=1, max_size=30))
def test_clusters_never_make_an_interval_narrower_and_it_holds_the_mean(pairs: list[tuple[float, str]]) -> None:
    scores = [score for score, _ in pairs]
    narrow, wide = interval(scores), interval(scores, [cluster for _, cluster in pairs])
    assert narrow is not None
    assert wide is not None
    assert 0.0 <= wide[0] <= narrow[0] + 1e-12
    assert narrow[1] - 1e-12 <= wide[1] <= 1.0


def test_clusters_of_another_number_than_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        standard_error([0.5, 1.0], ["a"])


# Overall


@dataclass(frozen=True)
class Row:
    score: float | None
    ci95: tuple[float, float] | None


def test_the_overall_interval_of_one_row_is_its_own() -> None:
    assert pytest.approx((0.2, 0.7)) == overall_interval([Row(0.4, (0.2, 0.7))])


def test_equal_errors_of_rows_shrink_with_the_root_of_their_number() -> None:
    assert pytest.approx((0.5 - 0.1 / 2, 0.5 + 0.1 / 2)) == overall_interval([Row(0.5, (0.4, 0.6))] * 4)


def test_lopsided_rows_stay_lopsided() -> None:
    low, high = combine([(1.0, (0.8, 1.0)), (0.5, (0.4, 0.6))])
    assert pytest.approx((0.75 - math.hypot(0.2, 0.1) / 2, 0.75 + 0.05)) == (low, high)


@each_row("rows", [[], [Row(None, None)], [Row(0.5, None), Row(0.5, (0.4, 0.6))]])
def test_a_row_of_which_nothing_is_known_leaves_the_overall_score_without_an_interval(rows: list[Row]) -> None:
    assert overall_interval(rows) is None


def test_the_overall_interval_covers_the_truth_about_95_times_in_100() -> None:
    toss = randomness.Random(9)
    shares = [0.3, 0.6, 0.9, 0.99, 0.5]
    covered = 0
    for _ in range(400):
        runs = [[float(toss.random() < share) for _ in range(40)] for share in shares]
        low, high = overall_interval([Row(mean(run), interval(run)) for run in runs]) or (0, 0)
        covered += low <= mean(shares) <= high
    assert 370 <= covered <= 395


@settings(deadline=None)
@given(st.lists(_SCORES.filter(lambda scores: interval(scores) is not None), min_size=1, max_size=6))
def test_the_overall_interval_holds_the_overall_score_within_the_unit_interval(tasks: list[list[float]]) -> None:
    ends = overall_interval([Row(mean(scores), interval(scores)) for scores in tasks])
    assert ends is not None
    overall = mean([mean(scores) for scores in tasks])
    assert 0.0 <= ends[0] <= overall <= ends[1] <= 1.0
