"""Token F1 against scikit-learn."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from pytest_lmeval.metrics import f1
from tests.examples import examples, share_of
from tests.tables import each_row

WORDS = ["the", "cat", "sat", "on", "a", "mat", "The", "CAT,", "don't", "42", "3.5", "é_e", "end.\n", "!?"]
TEXT = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)
many = examples(300)


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("the cat sat", ["sat THE, cat!"], 1.0),
        ("a a a", ["a"], 0.5),
        ("a a b", ["a b b"], 2 / 3),
        ("a b", ["x y", "a c"], 0.5),
        ("a", ["b"], 0.0),
        ("", ["a"], 0.0),
        ("a", [""], 0.0),
        ("", [""], 0.0),
        ("?!", ["?!"], 0.0),
        ("a", [], 0.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], expected: float) -> None:
    assert pytest.approx(expected) == f1(prediction, targets, {})


def test_agrees_with_scikit_learn_on_random_pairs() -> None:
    """The n-th ``the`` of a text is a label of its own, so sets of labels count what multisets of tokens do."""
    draw = random.Random(21)
    pairs = [(_sentence(draw), _sentence(draw)) for _ in range(share_of(3000))]
    labels = MultiLabelBinarizer().fit([_labels(text) for pair in pairs for text in pair])
    predicted, true = (labels.transform([_labels(pair[side]) for pair in pairs]) for side in (0, 1))
    expected = f1_score(true.T, predicted.T, average=None, zero_division=0)
    assert pytest.approx(list(expected), abs=1e-12) == [f1(prediction, [target], {}) for prediction, target in pairs]
    assert any(score == 0.0 for score in expected)
    assert share_of(2000) < sum(0.0 < score < 1.0 for score in expected)


def _sentence(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randrange(16)))


def _labels(text: str) -> set[str]:
    counts = Counter(re.findall(r"\w+", text.lower()))
    return {f"{token} {number}" for token, count in counts.items() for number in range(count)}


@many
@given(TEXT, TEXT)
def test_stays_in_range_and_is_symmetric(left: str, right: str) -> None:
    score = f1(left, [right], {})
    assert 0.0 <= score <= 1.0
    assert score == f1(right, [left], {})


@many
@given(st.lists(st.sampled_from(WORDS), max_size=25), TEXT, st.randoms(use_true_random=False))
def test_word_order_does_not_matter(words: list[str], target: str, random: random.Random) -> None:
    shuffled = random.sample(words, len(words))
    assert f1(" ".join(words), [target], {}) == f1(" ".join(shuffled), [target], {})


@given(st.text(min_size=1).map(lambda text: f"word {text}"))
@settings(deadline=None)
def test_a_text_with_a_token_scores_one_against_itself(text: str) -> None:
    assert 1.0 == f1(text, [text], {})


@many
@given(TEXT, st.lists(TEXT, min_size=1, max_size=4))
def test_the_best_target_counts_whatever_the_order(prediction: str, targets: list[str]) -> None:
    score = f1(prediction, targets, {})
    assert max(f1(prediction, [target], {}) for target in targets) == score
    assert score == f1(prediction, targets[::-1], {})
