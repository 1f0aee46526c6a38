"""What holds for every metric of words in common: its range, its symmetry, the best of several targets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_lmeval.metrics import bleu_4, f1, rouge_1, rouge_2, rouge_l
from tests.examples import examples
from tests.reference.texts import TEXT
from tests.tables import each_row

many = examples(300)
METRICS = [bleu_4, f1, rouge_1, rouge_2, rouge_l]


@pytest.mark.parametrize("metric", METRICS)
@many
@given(TEXT, TEXT)
def test_stays_in_range_and_is_symmetric(metric: Any, left: str, right: str) -> None:
    score = metric(left, [right], {})
    assert 0.0 <= score <= 1.0
    # BLEU counts what the prediction has too much, not what it lacks.
    assert metric is bleu_4 or score == metric(right, [left], {})


@pytest.mark.parametrize("metric", [bleu_4, f1, rouge_l])
@given(st.text(min_size=1).map(lambda text: f"word {text}"))
@settings(deadline=None)
def test_a_text_with_a_token_scores_one_against_itself(metric: Any, text: str) -> None:
    assert 1.0 == metric(text, [text], {})


@pytest.mark.parametrize("metric", METRICS)
@many
@given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
def test_the_best_target_counts_whatever_the_order(metric: Any, prediction: str, targets: list[str]) -> None:
    score = metric(prediction, targets, {})
    assert max(metric(prediction, [target], {}) for target in targets) == score
    assert score == metric(prediction, targets[::-1], {})


@each_row(("prediction", "targets"), [("", ["a"]), ("a", [""]), ("", [""]), ("?!", ["?!"]), ("a", [])])
def test_nothing_has_nothing_in_common(prediction: str, targets: list[str]) -> None:
    assert [0.0] * len(METRICS) == [metric(prediction, targets, {}) for metric in METRICS]
