"""Token F1 against scikit-learn."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from pytest_lmeval.metrics import f1
from tests.examples import examples, share_of
from tests.reference import texts
from tests.reference.texts import TEXT
from tests.tables import each_row

WORDS = [*texts.WORDS, "é_e"]
many = examples(300)


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("the cat sat", ["sat THE, cat!"], 1.0),
        ("a a a", ["a"], 0.5),
        ("a a b", ["a b b"], 2 / 3),
        ("a b", ["x y", "a c"], 0.5),
        ("a", ["b"], 0.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], expected: float) -> None:
    assert pytest.approx(expected) == f1(prediction, targets, {})


def test_agrees_with_scikit_learn_on_random_pairs() -> None:
    """The n-th ``the`` of a text is a label of its own, so sets of labels count what multisets of tokens do."""
    draw = random.Random(21)
    pairs = [(texts.sentence(draw, WORDS), texts.sentence(draw, WORDS)) for _ in range(share_of(3000))]
    labels = MultiLabelBinarizer().fit([_labels(text) for pair in pairs for text in pair])
    predicted, true = (labels.transform([_labels(pair[side]) for pair in pairs]) for side in (0, 1))
    expected = f1_score(true.T, predicted.T, average=None, zero_division=0)
    assert pytest.approx(list(expected), abs=1e-12) == [f1(prediction, [target], {}) for prediction, target in pairs]
    assert any(score == 0.0 for score in expected)
    assert share_of(2000) < sum(0.0 < score < 1.0 for score in expected)


def _labels(text: str) -> set[str]:
    counts = Counter(re.findall(r"\w+", text.lower()))
    return {f"{token} {number}" for token, count in counts.items() for number in range(count)}


@many
@given(st.lists(st.sampled_from(WORDS), max_size=25), TEXT, st.randoms(use_true_random=False))
def test_word_order_does_not_matter(words: list[str], target: str, random: random.Random) -> None:
    shuffled = random.sample(words, len(words))
    assert f1(" ".join(words), [target], {}) == f1(" ".join(shuffled), [target], {})
