"""The paired test and Holm's correction, against scipy, statsmodels and counting it out."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from pytest_lmeval.stats.paired import holm, paired_test, pooled_test
from pytest_lmeval.stats.signflip import sign_flip_p
from tests.tables import each_row

_FLIPS = st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60)
_COUNTS = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40)).filter(any)


def flips(worse: int, better: int, same: int = 0) -> list[float]:
    return [-1.0] * worse + [1.0] * better + [0.0] * same


# p


@each_row(("worse", "better"), [(1, 0), (9, 2), (12, 3), (30, 21), (5, 5), (40, 80), (700, 610)])
def test_right_or_wrong_pairs_give_mcnemar_s_mid_p(worse: int, better: int) -> None:
    n = worse + better
    # Exact, two-sided and without mid-p is all that statsmodels has: half of it counts the observed table in full.
    two_sided = mcnemar([[10, worse], [better, 20]], exact=True).pvalue
    observed = stats.binom.pmf(better, n, 0.5)
    test = paired_test(flips(worse, better, 30))
    assert test.exact
    if worse > better:
        assert pytest.approx(two_sided / 2 - observed / 2, rel=1e-9, abs=1e-15) == test.p
    reference = stats.binomtest(better, n, alternative="less").pvalue - observed / 2
    assert pytest.approx(reference, rel=1e-9, abs=1e-15) == test.p


def test_pairs_that_do_not_differ_say_nothing_for_or_against() -> None:
    assert paired_test(flips(6, 1)).p == paired_test(flips(6, 1, 500)).p


@each_row("differences", [[], [0.0] * 20, [1e-12, -1e-13], [0.1 + 0.2 - 0.3, 0.0]])
def test_p_is_one_where_nothing_differs(differences: list[float]) -> None:
    test = paired_test(differences)
    assert (1.0, True, 0.0) == (test.p, test.exact, test.change)


def test_no_pairs_give_no_sums_and_nothing_detectable() -> None:
    test = paired_test([])
    assert (0, 0, None, None) == (test.n, test.clusters, test.sums, test.detectable)


@settings(deadline=None)
@given(_FLIPS)
def test_the_sides_mirror_each_other(differences: list[float]) -> None:
    one, other = paired_test(differences), paired_test([-difference for difference in differences])
    assert one.change == -other.change
    assert pytest.approx(1.0 if any(differences) else 2.0) == one.p + other.p


@settings(deadline=None)
@given(_COUNTS, st.integers(1, 5))
def test_more_examples_that_get_worse_never_raise_p(counts: tuple[int, int, int], more: int) -> None:
    worse, better, same = counts
    assert paired_test(flips(worse + more, better, same)).p <= paired_test(flips(worse, better, same)).p + 1e-12


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-4, 4), st.sampled_from(["", "a", "b", "c"])), min_size=1, max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_pairs_never_matters(pairs: list[tuple[int, str]], toss: random.Random) -> None:
    shuffled = list(pairs)
    toss.shuffle(shuffled)
    tests = [paired_test([d / 4 for d, _ in each], [cluster for _, cluster in each]) for each in (pairs, shuffled)]
    assert tests[0] == tests[1]


# Clusters


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.sampled_from(["", "a", "b"])), min_size=1, max_size=10))
def test_the_signs_of_a_cluster_are_tossed_together(pairs: list[tuple[int, str]]) -> None:
    names = [cluster or str(index) for index, (_, cluster) in enumerate(pairs)]
    sums = {name: sum(d for (d, _), at in zip(pairs, names, strict=True) if at == name) for name in names}
    observed = sum(sums.values())
    tossed = [
        sum(sign * total for sign, total in zip(signs, sums.values(), strict=True))
        for signs in product((-1, 1), repeat=len(sums))
    ]
    expected = sum((total < observed) + (total == observed) / 2 for total in tossed) / len(tossed)
    test = paired_test([d / 4 for d, _ in pairs], [cluster for _, cluster in pairs])
    assert (len(pairs), len(sums)) == (test.n, test.clusters)
    assert pytest.approx(expected if any(sums.values()) else 1.0) == test.p


def test_ten_questions_about_one_text_are_no_more_evidence_than_one() -> None:
    together = paired_test(flips(10, 0, 20), ["text"] * 10 + [""] * 20)
    assert (0.25, 21) == (together.p, together.clusters)
    assert pytest.approx(0.5**11) == paired_test(flips(10, 0, 20)).p


def test_a_cluster_that_evens_out_is_no_difference() -> None:
    assert 1.0 == paired_test([0.1, 0.2, -0.3, 0.0], ["a", "a", "a", "b"]).p


def test_larger_clusters_can_show_less() -> None:
    alone = paired_test([0.0] * 120)
    by_three = paired_test([0.0] * 120, [f"c{n // 3}" for n in range(120)])
    assert alone.detectable is not None
    assert by_three.detectable is not None
    assert alone.detectable * 2 < by_three.detectable


# Pooled


def test_tasks_weigh_equally_whatever_their_size() -> None:
    small, large = flips(2, 0, 2), flips(1, 5, 4)
    test = pooled_test([(small, ()), (large, ())])
    assert pytest.approx((-0.5 + 0.4) / 2) == test.change
    assert pytest.approx(sign_flip_p([-1 / 4] * 2 + [-1 / 10] + [1 / 10] * 5)[0]) == test.p


def test_tasks_of_one_size_pool_to_the_test_of_all_their_pairs() -> None:
    tasks = [flips(3, 1, 6), flips(0, 2, 8), flips(5, 0, 5)]
    together = paired_test([difference for task in tasks for difference in task])
    pooled = pooled_test([(task, ()) for task in tasks])
    assert pytest.approx((together.p, together.change)) == (pooled.p, pooled.change)


def test_one_task_alone_pools_to_itself() -> None:
    differences, clusters = [-0.5, 0.25, -1.0, 0.0], ["a", "a", "", ""]
    assert paired_test(differences, clusters) == pooled_test([(differences, clusters)])


def test_a_cluster_may_reach_over_tasks() -> None:
    tasks = [(flips(3, 0), ["text"] * 3), (flips(3, 0), ["text"] * 3)]
    assert (1, 0.25) == (pooled_test(tasks).clusters, pooled_test(tasks).p)


# What could be shown


def test_twenty_pairs_show_only_large_drops_and_five_none() -> None:
    twenty, five = paired_test([0.0] * 20).detectable, paired_test([0.0] * 5, alpha=0.0025).detectable
    assert twenty is not None
    assert 0.2 < twenty < 0.3
    assert five is None


def test_a_stricter_alpha_shows_less() -> None:
    loose, strict = (paired_test(flips(2, 2, 96), alpha=alpha).detectable for alpha in (0.05, 0.0025))
    assert loose is not None
    assert strict is not None
    assert loose < strict


def test_the_detectable_drop_of_graded_scores_is_found_about_four_times_in_five() -> None:
    toss = random.Random(11)
    noise = [toss.choice([-0.5, 0.5, 0.0, 0.0]) for _ in range(150)]
    drop = paired_test(noise, alpha=0.025).detectable
    assert drop is not None
    found = 0
    for _ in range(400):
        run = [-1.0 if toss.random() < drop else toss.choice([-0.5, 0.5, 0.0, 0.0]) for _ in range(150)]
        found += sign_flip_p(run)[0] <= 0.025
    assert pytest.approx(0.8, abs=0.1) == found / 400


# Refused


@each_row("bad", [1.5, -2.0, math.nan, math.inf])
def test_a_difference_out_of_range_is_refused_by_its_place(bad: float) -> None:
    with pytest.raises(ValueError, match=r"differences\[1\] is .*: expected a number from -1 to 1"):
        paired_test([0.0, bad])


def test_clusters_of_another_number_are_refused() -> None:
    with pytest.raises(ValueError, match="1 clusters for 2 differences"):
        paired_test([0.0, 1.0], ["a"])


# Holm


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_s_correction_is_statsmodels(p_values: list[float]) -> None:
    named = {f"t{n}": p for n, p in enumerate(p_values)}
    reference = multipletests(p_values, method="holm")[1]
    assert dict(zip(named, reference, strict=True)) == pytest.approx(holm(named))
    assert list(named) == list(holm(named))


def test_nothing_to_correct_stays_nothing() -> None:
    assert {} == holm({})
