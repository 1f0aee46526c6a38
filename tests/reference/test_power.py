"""What a comparison could have shown, against counting it out and against tossing it."""

from __future__ import annotations

import random

import pytest
from scipy import stats

from pytest_lmeval.stats.power import POWER, detectable_drop, flip_power, normal_quantile
from pytest_lmeval.stats.signflip import sign_flip_p
from tests.tables import each_row


@each_row("share", [1e-6, 0.0025, 0.05, 0.5, 0.8, 0.975, 1 - 1e-6])
def test_the_normal_quantile_is_scipy_s(share: float) -> None:
    assert pytest.approx(stats.norm.ppf(share), abs=1e-8) == normal_quantile(share)


@pytest.mark.parametrize(
    ("n", "drop", "noise", "alpha"), [(20, 0.3, 0.1, 0.05), (60, 0.1, 0.1, 0.025), (200, 0.05, 0.04, 0.025)]
)
def test_the_power_is_the_share_of_tossed_runs_that_the_test_finds(
    n: int, drop: float, noise: float, alpha: float
) -> None:
    toss = random.Random(n)
    weights = [noise / 2 + drop, noise / 2, 1 - noise - drop]
    runs = [toss.choices([-1.0, 1.0, 0.0], weights, k=n) for _ in range(2000)]
    found = sum(sign_flip_p(run)[0] <= alpha for run in runs) / len(runs)
    assert pytest.approx(found, abs=0.04) == flip_power(n, drop, noise, alpha)


def test_four_examples_that_break_are_significant_at_five_percent_and_three_are_not() -> None:
    broken = [(n, flip_power(n, 1.0, 0.0, 0.05)) for n in (3, 4)]
    assert [(3, 0.0), (4, 1.0)] == broken


def test_without_a_drop_the_power_is_no_more_than_alpha_and_a_little() -> None:
    assert 0.0 == flip_power(100, 0.0, 0.0, 0.05)
    assert flip_power(500, 0.0, 0.1, 0.05) <= 0.055


@pytest.mark.parametrize("n", [50, 100, 300, 1319])
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("alpha", [0.025, 0.0025])
def test_the_smallest_detectable_drop_is_found_about_four_times_in_five(n: int, noise: float, alpha: float) -> None:
    drop = detectable_drop(noise / n, 1 / n, alpha)
    assert drop is not None
    assert pytest.approx(POWER, abs=0.12) == flip_power(n, drop, noise, alpha)


def test_more_pairs_show_smaller_drops_and_more_noise_only_larger_ones() -> None:
    by_size = [detectable_drop(0.1 / n, 1 / n, 0.025) or 1.0 for n in (20, 50, 100, 1000, 10_000)]
    by_noise = [detectable_drop(noise / 100, 0.01, 0.025) or 1.0 for noise in (0.0, 0.05, 0.1, 0.3)]
    assert by_size == sorted(by_size, reverse=True)
    assert by_noise == sorted(by_noise)


def test_too_few_pairs_show_no_drop_at_all() -> None:
    assert detectable_drop(0.0, 1 / 3, 0.025) is None
