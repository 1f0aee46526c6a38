"""Bounds of a change: they say what the test beside them says, and hold what is true."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.stats.bounds import change_bounds, level_of
from pytest_lmeval.stats.paired import PairedTest, holm, p_better, paired_test, pooled_test
from tests.tables import each_row

_LEVELS = st.sampled_from([0.0001, 0.0025, 0.0125, 0.025, 0.05, 0.2, 0.49])
_DIFFERENCES = st.one_of(
    st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=60),
    st.lists(st.integers(-3, 3).map(lambda n: n / 3), min_size=1, max_size=20),
    st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=12),
)
_CLUSTERED = st.lists(
    st.tuples(st.integers(-4, 4).map(lambda n: n / 4), st.sampled_from(["", "a", "b", "c"])), min_size=1, max_size=25
)
_TASKS = st.lists(st.one_of(_DIFFERENCES.map(lambda each: [(d, "") for d in each]), _CLUSTERED), min_size=1, max_size=4)


def bounds(test: PairedTest, level: float) -> tuple[float, float]:
    assert test.sums is not None
    p = test.p if test.change < 0 else p_better(test)
    return change_bounds(test.sums, p, level, is_shown=p <= level)


def pooled(tasks: list[list[tuple[float, str]]]) -> PairedTest:
    return pooled_test([([d for d, _ in task], [cluster for _, cluster in task]) for task in tasks])


@settings(deadline=None)
@given(_TASKS, _LEVELS)
def test_the_bounds_hold_what_was_seen_and_leave_out_zero_where_the_test_finds_a_change(
    tasks: list[list[tuple[float, str]]], level: float
) -> None:
    test = pooled(tasks)
    low, high = bounds(test, level)
    assert -1.0 <= low <= test.change <= high <= 1.0
    assert (high < 0) is (test.change < 0 and test.p <= level)
    assert (low > 0) is (test.change > 0 and p_better(test) <= level)


@settings(deadline=None)
@given(_TASKS, _LEVELS)
def test_the_bounds_of_the_opposite_are_the_opposite(tasks: list[list[tuple[float, str]]], level: float) -> None:
    low, high = bounds(pooled(tasks), level)
    turned = bounds(pooled([[(-d, cluster) for d, cluster in task] for task in tasks]), level)
    assert pytest.approx((-high, -low), abs=1e-9) == turned


@settings(deadline=None)
@given(_TASKS, st.tuples(_LEVELS, _LEVELS).filter(lambda pair: pair[0] < pair[1]))
def test_a_higher_level_gives_bounds_within_those_of_a_lower_one(
    tasks: list[list[tuple[float, str]]], levels: tuple[float, float]
) -> None:
    (low, high), (inner_low, inner_high) = (bounds(pooled(tasks), level) for level in levels)
    assert low <= inner_low + 1e-9
    assert inner_high <= high + 1e-9


@settings(deadline=None)
@given(_CLUSTERED, _LEVELS)
def test_the_bounds_of_one_task_are_those_of_it_alone(task: list[tuple[float, str]], level: float) -> None:
    alone = paired_test([d for d, _ in task], [cluster for _, cluster in task])
    assert bounds(alone, level) == bounds(pooled([task]), level)


@each_row(
    "differences",
    [
        [-1.0] * 9_000 + [1.0] * 1_000,  # a p of nothing at all
        [-0.01] * 9_000 + [0.01] * 1_000,
        [-1.0] + [-0.001] * 60,  # one unit that outweighs all others
        [-1.0] + [0.001] * 60,
        [-1.0] * 5,
        [-0.5],
    ],
)
def test_bounds_and_test_agree_at_the_edges(differences: list[float]) -> None:
    test = paired_test(differences)
    for level in (1e-12, 0.001, 0.025, 0.05, 0.3, 0.49):
        low, high = bounds(test, level)
        assert (test.p <= level) is (high < 0)
        assert low <= test.change <= high


@each_row(
    ("worse", "better", "n", "level", "expected"),
    [(7, 1, 20, 0.05, (-0.512, -0.062)), (0, 0, 20, 0.025, (-0.161, 0.161)), (2, 3, 20, 0.0125, (-0.258, 0.356))],
)
def test_bounds_of_right_or_wrong_scores(
    worse: int, better: int, n: int, level: float, expected: tuple[float, float]
) -> None:
    test = paired_test([-1.0] * worse + [1.0] * better + [0.0] * (n - worse - better))
    assert pytest.approx(expected, abs=0.001) == bounds(test, level)


def test_the_overall_bounds_of_tasks_of_another_size() -> None:
    tasks = [(([-1.0] * 3 + [1.0] * 2 + [0.0] * 15), ()), (([-1.0] * 12 + [1.0] + [0.0] * 17), ())]
    assert pytest.approx((-0.372, -0.050), abs=0.001) == bounds(pooled_test(tasks), 0.025)
    # Half of the small one and a quarter of the large one got worse: p is 0.00098.
    test = pooled_test([([-1.0, 0.0], ()), ([-1.0] * 8 + [0.0] * 22, ())])
    assert pytest.approx((-0.776, -0.084), abs=0.001) == bounds(test, 0.025)


@settings(deadline=None)
@given(st.lists(st.floats(0.0001, 1.0), min_size=1, max_size=10), st.sampled_from([0.0125, 0.025, 0.05]))
def test_the_level_of_a_test_says_what_holm_s_procedure_says(ps: list[float], share: float) -> None:
    adjusted = holm(dict(enumerate(ps)))
    for place, p in enumerate(ps):
        level = level_of(p, adjusted[place], share, len(ps))
        assert level >= share / len(ps) * (1 - 1e-12)
        if abs(adjusted[place] - share) > 1e-12:
            assert (adjusted[place] <= share) is (p <= level)


@each_row(
    ("n", "worse", "better"), [(10, 0.16, 0.01), (50, 0.05, 0.05), (50, 0.15, 0.05), (200, 0.0, 0.0), (200, 0.1, 0.02)]
)
def test_the_bounds_cover_the_truth_at_least_94_times_in_100(n: int, worse: float, better: float) -> None:
    toss = random.Random(n)
    covered = 0
    for _ in range(500):
        run = toss.choices([-1.0, 1.0, 0.0], [worse, better, 1 - worse - better], k=n)
        low, high = bounds(paired_test(run), 0.025)
        covered += low <= better - worse <= high
    assert covered >= 470


@pytest.mark.parametrize("tests", [1, 2, 3, 8])
def test_a_p_value_is_within_its_level_where_holm_s_is_within_the_share_of_alpha(tests: int) -> None:
    for share in (0.0125, 0.05):
        for p in (0.001, 0.004, 0.02, 0.04, 0.3):
            for rank in range(1, tests + 1):
                p_holm = min(1.0, p * rank)
                assert (p <= level_of(p, p_holm, share, tests)) == (p_holm <= share), (share, p, rank)
