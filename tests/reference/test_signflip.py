"""The sign-flip test against every way to toss the signs, and against scipy where there are too many."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from pytest_lmeval.stats.signflip import sign_flip_p
from tests.tables import each_row

_SIXTIETHS = st.lists(st.integers(-60, 60), min_size=1, max_size=10)
_GRADED = st.lists(st.floats(-1, 1, allow_subnormal=False), min_size=1, max_size=10)


def enumerated(units: Sequence[int | float], slack: float = 0.0) -> Fraction:
    """Return the mid-p over all tosses; a sum within ``slack`` of the observed one counts as lower."""
    observed = sum(units)
    sums = [
        sum(sign * unit for sign, unit in zip(signs, units, strict=True))
        for signs in product((-1, 1), repeat=len(units))
    ]
    if slack:
        return Fraction(sum(total < observed + slack for total in sums), len(sums))
    lower, equal = sum(total < observed for total in sums), sum(total == observed for total in sums)
    return Fraction(2 * lower + equal, 2 * len(sums))


@settings(deadline=None)
@given(_SIXTIETHS)
@example([-60])
@example([20, -15, -12, 10, 6, -30])
def test_whole_multiples_of_a_measure_give_the_p_of_all_tosses(numerators: list[int]) -> None:
    expected = enumerated([numerator for numerator in numerators if numerator]) if any(numerators) else 1
    p, exact = sign_flip_p([number / 60 for number in numerators])
    assert exact
    assert pytest.approx(float(expected), abs=1e-12) == p


@settings(deadline=None, max_examples=40)
@given(_GRADED)
@example([0.40931893956835697, -1, 0.5, -1, 0.5, -1])
def test_few_units_give_the_p_of_all_tosses(units: list[float]) -> None:
    p, exact = sign_flip_p(units)
    assert exact
    if not any(units):
        assert p == 1.0
        return
    slack = 1e-8 * math.sqrt(sum(unit * unit for unit in units))
    assert float(enumerated(units, -slack)) - 1e-12 <= p <= float(enumerated(units, slack)) + 1e-12


@each_row(("worse", "better"), [(1, 0), (0, 1), (5, 0), (7, 3), (3, 7), (50, 50), (640, 560), (5200, 4800)])
def test_units_of_one_size_give_the_binomial_mid_p_of_scipy(worse: int, better: int) -> None:
    n = worse + better
    reference = stats.binomtest(better, n, 0.5, alternative="less").pvalue - stats.binom.pmf(better, n, 0.5) / 2
    p, exact = sign_flip_p([-0.3] * worse + [0.3] * better)
    assert exact
    assert pytest.approx(reference, rel=1e-9) == p


def test_the_chance_of_a_sum_this_low_or_lower_is_scipy_s_permutation_test() -> None:
    units = np.array([-0.5, 0.25, -0.75, -0.25, 1.0, -1.0, -0.5, 0.5, -0.25, -0.75])
    reference = stats.permutation_test(
        (units,), np.sum, permutation_type="samples", alternative="less", n_resamples=np.inf, vectorized=False
    )
    at_most = 2 * sign_flip_p(units.tolist())[0] - float(np.mean(reference.null_distribution < units.sum() - 1e-12))
    assert pytest.approx(reference.pvalue, abs=1e-12) == at_most


@pytest.mark.parametrize(("n", "expected"), [(14, True), (15, False)])
def test_only_a_p_of_all_tosses_of_what_was_measured_is_called_exact(n: int, expected: bool) -> None:
    units = [-math.sqrt(k + 0.5) if k % 3 else math.sqrt(k + 0.5) for k in range(n)]
    p, exact = sign_flip_p(units)
    assert expected == exact
    assert pytest.approx(float(enumerated(units)), abs=1e-12 if expected else 0.01) == p


@pytest.mark.parametrize("tosses", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("n", [100, 250])
def test_units_rounded_to_a_grid_agree_with_scipy_s_random_tosses(n: int, tosses: int) -> None:
    units = np.random.default_rng(n).beta(0.5, 0.5, n) - np.random.default_rng(n + 1).beta(0.45, 0.5, n)
    reference = stats.permutation_test(
        (units,), lambda x, axis: x.sum(axis), permutation_type="samples", alternative="less", n_resamples=tosses, rng=3
    )
    p, exact = sign_flip_p(units.tolist())
    assert not exact
    assert pytest.approx(reference.pvalue, abs=4 * math.sqrt(p * (1 - p) / tosses)) == p


def test_beyond_the_stated_size_the_normal_distribution_has_the_variance_of_tossed_signs() -> None:
    units = [(-0.9) ** (k % 7) * math.sin(k) for k in range(5000)]
    reference = stats.norm.cdf(sum(units) / math.sqrt(sum(unit**2 for unit in units)))
    p, exact = sign_flip_p(units)
    assert not exact
    assert pytest.approx(reference, rel=1e-9) == p


def test_the_rounded_and_the_normal_p_meet_where_one_takes_over() -> None:
    toss = random.Random(5)
    units = [toss.uniform(-1, 0.92) for _ in range(230)]
    p, exact = sign_flip_p(units)
    assert not exact
    assert pytest.approx(stats.norm.cdf(sum(units) / math.sqrt(sum(unit**2 for unit in units))), abs=0.004) == p


def test_three_responses_to_each_of_1319_examples_stay_exact() -> None:
    toss = random.Random(2)
    units = [toss.choice([-1, 1]) * toss.choice([1, 2, 3]) / 3 for _ in range(1319)]
    p, exact = sign_flip_p(units)
    assert exact
    assert pytest.approx(stats.norm.cdf(sum(units) / math.sqrt(sum(unit**2 for unit in units))), abs=1e-3) == p


def test_what_rounding_leaves_of_a_difference_is_none() -> None:
    assert sign_flip_p([-1.0, -1.0]) == sign_flip_p([-1.0, -1.0, -1e-16, 0.0])


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from([-1, -0.5, -1 / 3, 0.25, 1, 0.1]), min_size=1, max_size=30),
    st.randoms(use_true_random=False),
)
def test_neither_order_nor_unit_of_measure_matters_and_the_sides_add_up(
    units: list[float], toss: random.Random
) -> None:
    shuffled = list(units)
    toss.shuffle(shuffled)
    p = sign_flip_p(units)[0]
    assert p == sign_flip_p(shuffled)[0]
    assert pytest.approx(p, abs=1e-12) == sign_flip_p([unit / 128 for unit in units])[0]
    assert pytest.approx(1.0, abs=1e-12) == p + sign_flip_p([-unit for unit in units])[0]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.sampled_from([-1, -0.5, 0.25, 1]), min_size=1, max_size=25), st.data())
def test_a_unit_that_turns_for_the_worse_never_raises_p(units: list[float], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(units) - 1))
    worse = [-abs(unit) if at == index else unit for at, unit in enumerate(units)]
    assert sign_flip_p(worse)[0] <= sign_flip_p(units)[0] + 1e-12


def test_a_rare_size_among_thousands_is_exact_as_well() -> None:
    p, exact = sign_flip_p([-1.0] * 1020 + [1.0] * 980 + [-0.5])
    assert exact
    # Two whole units apart, with half of one between them: what is lower is lower by half a unit at least.
    lower = stats.binom.cdf(979, 2000, 0.5) + stats.binom.pmf(980, 2000, 0.5) / 2
    upper = stats.binom.cdf(980, 2000, 0.5)
    assert lower - 0.01 <= p <= upper
