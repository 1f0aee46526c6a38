"""ROUGE-1 and ROUGE-2 against rouge-score."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from rouge_score.rouge_scorer import RougeScorer

from pytest_lmeval.metrics import f1, rouge_1, rouge_2
from tests.examples import examples, share_of
from tests.reference.texts import TEXT, sentence
from tests.tables import each_row

many = examples(200)


@each_row(
    ("prediction", "targets", "unigrams", "bigrams"),
    [
        ("the cat sat", ["the cat sat"], 1.0, 1.0),
        ("The cat, sat!", ["the CAT sat"], 1.0, 1.0),
        ("sat cat the", ["the cat sat"], 1.0, 0.0),
        ("a b c", ["a b d"], 2 / 3, 0.5),
        ("a a a", ["a a"], 0.8, 2 / 3),
        ("a b", ["x y", "a c"], 0.5, 0.0),
        ("a", ["a"], 1.0, 0.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], unigrams: float, bigrams: float) -> None:
    assert pytest.approx(unigrams) == rouge_1(prediction, targets, {})
    assert pytest.approx(bigrams) == rouge_2(prediction, targets, {})


def test_agrees_with_rouge_score_on_random_pairs() -> None:
    """Without stemming, on ASCII words without underscores, which rouge-score splits on."""
    reference = RougeScorer(["rouge1", "rouge2"], use_stemmer=False)
    draw = random.Random(24)
    pairs = [(sentence(draw), sentence(draw)) for _ in range(share_of(2000))]
    expected = [reference.score(target, prediction) for prediction, target in pairs]
    for name, metric in (("rouge1", rouge_1), ("rouge2", rouge_2)):
        theirs = [score[name].fmeasure for score in expected]
        assert pytest.approx(theirs, abs=1e-12) == [metric(prediction, [target], {}) for prediction, target in pairs]
        assert share_of(700) < sum(0.0 < score < 1.0 for score in theirs)


@many
@given(TEXT, TEXT)
def test_rouge_1_is_token_f1(prediction: str, target: str) -> None:
    assert f1(prediction, [target], {}) == rouge_1(prediction, [target], {})
