"""Numbers made of log-probabilities, against scikit-learn, scipy and what can be worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_softmax

from pytest_lmeval.metrics.parts.probability import (
    accuracy_by,
    bits_per_byte,
    expected_calibration_error,
    lowest,
    per_byte,
    per_character,
    perplexity,
    probability_mass,
    softmax,
)
from tests.tables import each_row

totals = st.lists(st.floats(-1e4, 0), min_size=1, max_size=8)


def test_of_several_alike_the_first_is_the_lowest() -> None:
    assert 1 == lowest([2.0, 1.0, 1.0])
    assert 1.0 == accuracy_by([-1.0, -1.0], 0)
    assert 0.0 == accuracy_by([-1.0, -1.0], 1)


@given(totals)
def test_probabilities_are_those_of_scipy(values: list[float]) -> None:
    ours = softmax(values)
    assert pytest.approx(1) == sum(ours)
    assert [pytest.approx(math.exp(value), abs=1e-12) for value in log_softmax(values)] == ours


def test_the_mass_of_several_right_options_is_their_sum() -> None:
    values = [math.log(share) for share in (0.1, 0.2, 0.7)]
    assert pytest.approx(0.3) == probability_mass(values, [0, 1])
    assert pytest.approx(0.2) == probability_mass(values, [1, 1])


def test_a_long_option_is_not_punished_for_its_length() -> None:
    values, texts = [-4.0, -6.0], ["ab", "abcdef"]
    assert 1.0 == accuracy_by(values, 0)
    assert [-2.0, -1.0] == per_character(values, texts)
    assert 1.0 == accuracy_by(per_character(values, texts), 1)


def test_bytes_count_where_letters_have_several() -> None:
    assert [-1.0, -1.0] == per_byte([-4.0, -4.0], ["\u00fc\u00fc", "abcd"])
    assert [-2.0, -1.0] == per_character([-4.0, -4.0], ["\u00fc\u00fc", "abcd"])


def test_an_empty_option_counts_as_one() -> None:
    assert [-3.0] == per_byte([-3.0], [""]) == per_character([-3.0], [""])


def test_perplexity_is_that_of_a_fair_die() -> None:
    assert pytest.approx(6) == perplexity(12 * math.log(1 / 6), 12)
    assert math.inf == perplexity(-1e9, 1)


def test_a_coin_for_every_byte_is_one_bit() -> None:
    assert pytest.approx(1) == bits_per_byte(10 * math.log(0.5), 10)


@each_row(
    ("confidences", "hits", "error"),
    [([1.0, 1.0], [True, True], 0.0), ([0.0], [True], 1.0), ([0.75] * 4, [True, True, True, False], 0.0)],
)
def test_calibration_errors_known_beforehand(confidences: list[float], hits: list[bool], error: float) -> None:
    assert pytest.approx(error) == expected_calibration_error(confidences, hits)


def test_a_confidence_on_a_border_belongs_to_the_bin_below() -> None:
    # Apart the two would be 0.5 and 0.49 off, together they cancel out.
    assert pytest.approx(0.005) == expected_calibration_error([0.5, 0.49], [True, False])
