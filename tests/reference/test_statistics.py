"""Means, errors and intervals, against scipy."""

from __future__ import annotations

import math
import random as randomness
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
    mean,
    overall_bounds,
    score_bounds,
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


@settings(deadline=None)
@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
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


def test_scores_of_zero_and_one_alone_get_wilson_s_score_bounds() -> None:
    assert wilson_interval(3, 4) == score_bounds([1.0, 0.0, 1.0, 1.0])
    assert wilson_interval(1, 1) == score_bounds([1.0])


def test_an_all_or_nothing_task_ends_on_the_end() -> None:
    assert [1.0, 0.0] == [wilson_interval(7, 7)[1], wilson_interval(0, 7)[0]]


def test_nothing_is_said_of_no_score() -> None:
    assert (None, None) == (standard_error([]), score_bounds([]))


def test_one_score_has_no_standard_error() -> None:
    assert standard_error([1.0]) is None


@each_row(("scores", "clusters"), [([0.5], []), ([0.5] * 4, []), ([0.5] * 4, list("aabb")), ([0.5, 0.7], ["a", "a"])])
def test_scores_that_do_not_differ_leave_doubt_all_the_same(scores: list[float], clusters: list[str]) -> None:
    low, high = score_bounds(scores, clusters) or (0.5, 0.5)
    assert low + 0.2 < mean(scores) < high - 0.2


def test_three_conversations_of_one_score_are_a_quarter_to_three_quarters() -> None:
    assert pytest.approx((0.22, 0.78), abs=0.005) == score_bounds([0.5] * 3)


def test_many_graded_scores_have_the_interval_of_a_normal_distribution_but_for_what_was_not_seen() -> None:
    scores = [0.3, 0.5, 0.6, 0.9] * 500
    half = stats.norm.ppf(0.975) * stats.sem(scores)
    assert pytest.approx((mean(scores) - half, mean(scores) + half), abs=0.002) == score_bounds(scores)


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
    assert (mean(scores), standard_error(scores), score_bounds(scores)) == (
        mean(shuffled),
        standard_error(shuffled),
        score_bounds(shuffled),
    )


@settings(deadline=None)
@given(_SCORES)
def test_every_interval_lies_in_the_unit_interval_around_the_mean(scores: list[float]) -> None:
    low, high = score_bounds(scores) or (1.0, 0.0)
    assert 0.0 <= low <= mean(scores) <= high <= 1.0
    assert low < high


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
    assert score_bounds(scores) == score_bounds(scores, [""] * 5)
    assert [1.5, 0.25, 0.75] == sum_clusters(scores, ["a", "", "a", "a", ""])


def test_copies_of_an_example_do_not_make_the_score_surer() -> None:
    scores, copies = [0.5, 0.25, 1.0, 0.0], [0.5, 0.25, 1.0, 0.0] * 3
    clusters = list("abcd") * 3
    alone, copied = score_bounds(scores), score_bounds(copies, clusters)
    assert alone is not None
    assert copied is not None
    assert copied[0] < alone[0] < alone[1] < copied[1]  # t in place of the normal distribution
    narrow, wide = score_bounds([1.0, 0.0, 1.0, 1.0] * 10), score_bounds([1.0, 0.0, 1.0, 1.0] * 10, list("abcd") * 10)
    assert narrow is not None
    assert wide is not None
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_few_clusters_widen_wilson_s_interval_as_they_do_student_s() -> None:
    scores, clusters = [1.0] * 9 + [0.0] * 3 + [1.0, 0.0] * 2, [name for name in "abcd" for _ in range(4)]
    error = standard_error(scores, clusters)
    assert error is not None
    share = 11 / 16
    # Four clusters of one size have three degrees of freedom.
    effective = share * (1 - share) / error**2 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 3)) ** 2
    assert 1 < effective < 16
    reference = proportion_confint(share * effective, effective, method="wilson")
    assert pytest.approx(reference, abs=1e-9) == score_bounds(scores, clusters)


def test_an_all_or_nothing_task_is_as_sure_as_its_clusters_are_many() -> None:
    t = stats.t.ppf(0.975, 3)
    # Wilson's lower end of 4 of 4, with t in place of the normal point.
    assert pytest.approx((4 / (4 + t * t), 1.0)) == score_bounds([1.0] * 12, list("abcd") * 3)
    assert wilson_interval(0, 1) == pytest.approx(score_bounds([0.0] * 5, ["a"] * 5))


def test_right_and_wrong_ones_of_a_single_cluster_say_as_much_as_one_example() -> None:
    low, high = score_bounds([1.0, 0.0, 1.0], ["a"] * 3) or (1, 0)
    assert low < 0.15
    assert high > 0.9


def test_the_interval_of_clustered_answers_covers_the_truth_where_wilson_s_does_not() -> None:
    toss = randomness.Random(4)
    names = [f"c{n // 5}" for n in range(100)]
    covered = {"clusters": 0, "none": 0}
    for _ in range(400):
        shares = [toss.choice([0.2, 0.95]) for _ in range(20)]
        scores = [float(toss.random() < shares[n // 5]) for n in range(100)]
        for how, clusters in (("clusters", names), ("none", [])):
            low, high = score_bounds(scores, clusters) or (0, 0)
            covered[how] += low <= 0.575 <= high
    assert covered["clusters"] >= 370
    assert covered["none"] <= 345


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from(["", "a", "b"])), min_size=1, max_size=30))
def test_clusters_never_make_an_interval_narrower_and_it_holds_the_mean(pairs: list[tuple[float, str]]) -> None:
    scores = [score for score, _ in pairs]
    narrow, wide = score_bounds(scores), score_bounds(scores, [cluster for _, cluster in pairs])
    assert narrow is not None
    assert wide is not None
    assert 0.0 <= wide[0] <= narrow[0] + 1e-12
    assert narrow[1] - 1e-12 <= wide[1] <= 1.0


def test_clusters_of_another_number_than_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        standard_error([0.5, 1.0], ["a"])


# Overall


def test_the_overall_interval_of_one_task_is_its_own() -> None:
    assert score_bounds([0.2, 0.7, 1.0]) == overall_bounds([([0.2, 0.7, 1.0], ())])
    assert wilson_interval(3, 4) == overall_bounds([([1.0, 0.0, 1.0, 1.0], ())])


def test_lopsided_rows_stay_lopsided() -> None:
    low, high = combine([(1.0, (0.8, 1.0)), (0.5, (0.4, 0.6))])
    assert pytest.approx((0.75 - math.hypot(0.2, 0.1) / 2, 0.75 + 0.05)) == (low, high)


@each_row("tasks", [[], [([], ())], [([0.5], ()), ([], ())]])
def test_a_task_without_a_score_leaves_the_overall_score_without_an_interval(tasks: list[Any]) -> None:
    assert overall_bounds(tasks) is None


def test_the_overall_interval_covers_the_truth_about_95_times_in_100() -> None:
    toss = randomness.Random(9)
    shares = [0.3, 0.6, 0.9, 0.99, 0.5]
    covered = 0
    for _ in range(400):
        runs = [[float(toss.random() < share) for _ in range(40)] for share in shares]
        low, high = overall_bounds([(run, ()) for run in runs]) or (0, 0)
        covered += low <= mean(shares) <= high
    assert 370 <= covered <= 395


@settings(deadline=None)
@given(st.lists(_SCORES, min_size=1, max_size=6))
def test_the_overall_interval_holds_the_overall_score_within_the_unit_score_bounds(tasks: list[list[float]]) -> None:
    ends = overall_bounds([(scores, ()) for scores in tasks])
    assert ends is not None
    overall = mean([mean(scores) for scores in tasks])
    assert 0.0 <= ends[0] <= overall <= ends[1] <= 1.0
