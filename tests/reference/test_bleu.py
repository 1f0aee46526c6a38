"""Sentence BLEU against sacrebleu, and against exact fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from pytest_lmeval.metrics import bleu_4
from tests.examples import examples, share_of
from tests.reference.texts import sentence
from tests.tables import each_row

VOCABULARY = ["the", "cat", "sat", "on", "a", "mat"]
TOKENS = st.lists(st.sampled_from(VOCABULARY), max_size=20)
TEXT = TOKENS.map(" ".join)
many = examples(300)


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("the cat sat on the mat", ["The cat sat, on the mat."], 1.0),
        ("wrong", ["right"], 0.5**0.25),
        ("cat", ["the cat sat"], math.exp(-2)),
        ("the the", ["the"], (2 / 3 * 1 / 2) ** 0.25),
        ("a b", ["x y", "a c"], (2 / 3 * 1 / 2) ** 0.25),
    ],
)
def test_known_scores(prediction: str, targets: list[str], expected: float) -> None:
    assert pytest.approx(expected) == bleu_4(prediction, targets, {})


def test_agrees_with_sacrebleu_on_random_pairs() -> None:
    """Its ``add-k`` smooths orders 2 to 4 only: the first precision is exchanged before scores are compared.

    It also gives 0 where no word matches, so those pairs are left to the next test.
    """
    reference = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, force=True)
    draw = random.Random(22)
    compared = 0
    for _ in range(share_of(3000)):
        prediction, target = sentence(draw, VOCABULARY), sentence(draw, VOCABULARY)
        theirs = reference.sentence_score(prediction, [target])
        if matches := theirs.counts[0]:
            exchanged = (matches + 1) / (theirs.totals[0] + 1) / (matches / theirs.totals[0])
            expected = theirs.score / 100 * exchanged**0.25
            assert pytest.approx(expected, rel=1e-9) == bleu_4(prediction, [target], {})
            compared += 1
    assert share_of(2000) < compared


@examples(1000)
@given(TOKENS.filter(bool), TOKENS.filter(bool))
def test_agrees_with_exact_fractions(prediction: list[str], target: list[str]) -> None:
    product = math.prod((_precision(prediction, target, order) for order in (1, 2, 3, 4)), start=Fraction(1))
    shortage = Fraction(max(0, len(target) - len(prediction)), len(prediction))
    expected = math.exp(-shortage) * math.sqrt(math.sqrt(product))
    assert pytest.approx(expected, rel=1e-12) == bleu_4(" ".join(prediction), [" ".join(target)], {})


def _precision(prediction: list[str], target: list[str], order: int) -> Fraction:
    grams = [prediction[start : start + order] for start in range(len(prediction) - order + 1)]
    left = [target[start : start + order] for start in range(len(target) - order + 1)]
    matches = 0
    for gram in grams:
        if gram in left:
            left.remove(gram)
            matches += 1
    return Fraction(matches + 1, len(grams) + 1)


@many
@given(TOKENS, TEXT, st.lists(st.sampled_from([" ", ". ", "\n\n", "! "]), min_size=20, max_size=20))
def test_the_number_of_sentences_does_not_matter(tokens: list[str], target: str, ends: list[str]) -> None:
    sentences = "".join(token + end for token, end in zip(tokens, ends, strict=False))
    assert bleu_4(" ".join(tokens), [target], {}) == bleu_4(sentences, [target], {})
    assert bleu_4(target, [" ".join(tokens)], {}) == bleu_4(target, [sentences], {})
