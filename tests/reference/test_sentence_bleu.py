"""BLEU of one example against sacrebleu."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu import corpus_bleu, sentence_bleu

from pytest_lmeval.metrics import bleu
from tests.examples import examples
from tests.tables import each_row

PIECES = [
    *("the", "cat", "Cat", " sat", "on,", "3.5", "1,000", "a-b", "9-10"),
    *("&amp;", "&quot;", "&lt;", "&gt;", "don't", "(x)", ". ", "\n"),
]
TEXT = st.lists(st.sampled_from(PIECES), max_size=20).map(" ".join)
ANY = st.text(st.sampled_from("ab c19.,-\n&;'()_ß"), max_size=20)
many = examples(400)


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("The cat sat on the mat.", ["The cat sat on the mat."], 1.0),
        ("the cat", ["the cat"], 1.0),
        ("the cat", ["The Cat"], 0.0),
        ("the dog", ["the cat"], math.sqrt(1 / 2 * 1 / 2)),
        ("cat", ["the cat sat"], math.exp(-2)),
        ("a b c d", ["a x c y"], (2 / 4 * 1 / 6 * 1 / 8 * 1 / 8) ** 0.25),
        ("a b", ["x y", "a b"], 1.0),
        ("costs 1,000.", ["costs 1,000 ."], 1.0),
        ("&quot;a&quot; &amp; &lt;b&gt;", ['"a" & <b>'], 1.0),
        ("wrong", ["right"], 0.0),
        ("", ["a"], 0.0),
        ("a", [""], 0.0),
        ("", [""], 0.0),
        ("a", [], 0.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], expected: float) -> None:
    assert pytest.approx(expected) == bleu(prediction, targets, {})


@many
@given(TEXT | ANY, TEXT | ANY)
def test_agrees_with_sacrebleu_sentence_bleu(prediction: str, target: str) -> None:
    expected = sentence_bleu(prediction, [target]).score / 100
    assert pytest.approx(expected, rel=1e-9) == bleu(prediction, [target], {})


@many
@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=4, max_size=9), TEXT | st.just("a b c a b"))
def test_of_four_tokens_or_more_it_is_the_bleu_of_a_corpus_of_one(tokens: list[str], target: str) -> None:
    prediction = " ".join(tokens)
    expected = corpus_bleu([prediction], [[target]], force=True).score / 100
    assert pytest.approx(expected, rel=1e-9) == bleu(prediction, [target], {})


@many
@given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
def test_the_best_target_counts_and_the_score_stays_in_range(prediction: str, targets: list[str]) -> None:
    score = bleu(prediction, targets, {})
    assert 0.0 <= score <= 1.0
    assert max(bleu(prediction, [target], {}) for target in targets) == score
