"""How sure and how surprised a model was, from the details of its results."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.leaderboard.aggregations import calibration, confidence_metrics, text_metrics
from pytest_lmeval.types import ExampleResult

RESULT = ExampleResult("core", "a", "passed", 1.0, 1.0, "accuracy", "h")


def sure(confidence: Any, score: float | None = 1.0) -> ExampleResult:
    return replace(RESULT, score=score, details={"confidence": confidence, "options": []})


def text(total: float, tokens: int, size: int) -> ExampleResult:
    option = {"total": total, "loss": -total / tokens, "tokens": tokens, "greedy": False}
    return replace(RESULT, score=0.0, details={"options": [option], "bytes": size})


def test_nothing_is_told_of_results_without_confidences() -> None:
    assert {} == calibration([]) == calibration([RESULT, replace(RESULT, details={"code_status": "pass"})])
    assert {} == text_metrics([RESULT])


def test_confidences_are_held_against_scores() -> None:
    found = calibration([sure(0.8), sure(0.8, 0.0), RESULT])
    assert {"ece": pytest.approx(0.3), "brier": pytest.approx((0.04 + 0.64) / 2), "n": 2} == found


def test_an_example_that_was_not_scored_does_not_count() -> None:
    assert 1 == calibration([sure(0.8), sure(0.1, None)])["n"]


@pytest.mark.parametrize("strange", [None, True, "0.5", -0.1, 1.1, math.nan, [0.5]])
def test_what_is_no_share_is_no_confidence(strange: Any) -> None:
    assert {} == calibration([sure(strange)])


def test_texts_are_put_together_by_their_tokens_and_bytes() -> None:
    results = [text(-2.0, 1, 4), text(-4.0, 3, 12)]
    assert pytest.approx(math.exp(6 / 4)) == text_metrics(results)["perplexity"]
    assert pytest.approx(6 / math.log(2) / 16) == text_metrics(results)["bits_per_byte"]
    assert {"perplexity": pytest.approx(math.exp(1.5))} == calibration(results)


def test_options_to_choose_from_are_no_text() -> None:
    two = text(-2.0, 1, 4).details["options"] * 2
    assert {} == text_metrics([replace(RESULT, details={"options": two, "bytes": 4})])


def test_an_answer_is_right_where_its_score_reaches_the_threshold() -> None:
    rouge = [replace(sure(0.75, score), threshold=0.5) for score in (0.5, 0.4)]
    assert pytest.approx((0.25**2 + 0.75**2) / 2) == confidence_metrics(rouge)["brier"]


def test_of_repeats_the_first_score_is_held_against_the_first_confidence() -> None:
    repeats = {"scores": [1.0, 0.0], "repeats": [{"confidence": 0.75}, {"confidence": 0.25}]}
    result = replace(RESULT, score=0.5, predictions=("a", "b"), details=repeats)
    assert pytest.approx(0.0625) == confidence_metrics([result])["brier"]
    assert {} == confidence_metrics([replace(result, details={**repeats, "repeats": [{}, {"confidence": 0.25}]})])


def test_what_no_float_can_hold_is_left_out() -> None:
    assert {} == text_metrics([text(-1e9, 1, 4)])


@pytest.mark.parametrize("details", [{"options": 5}, {"options": [5], "bytes": 1}, {"repeats": [5]}, {"repeats": []}])
def test_details_of_another_kind_are_passed_over(details: dict[str, Any]) -> None:
    assert {} == calibration([replace(RESULT, details=details)])
