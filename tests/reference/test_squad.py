"""SQuAD's exact match and F1, the latter against scikit-learn."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from pytest_lmeval.metrics import squad_em, squad_f1
from tests.examples import examples
from tests.tables import each_row

WORDS = [
    *("the", "The", "a", "an", "Denver", "denver", "Broncos."),
    *("(Broncos)", "don't", "an-a", "theory", "—", "\n", "!"),
]
TEXT = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
many = examples(300)


@each_row(
    ("prediction", "targets", "em", "f1"),
    [
        ("The Denver Broncos!", ["Denver Broncos"], 1.0, 1.0),
        ("an apple a day", ["Apple,  day."], 1.0, 1.0),
        ("theory", ["ory"], 0.0, 0.0),
        ("dont", ["don't"], 1.0, 1.0),
        ("well-known", ["wellknown"], 1.0, 1.0),
        ("Denver", ["Denver Broncos"], 0.0, 2 / 3),
        ("Broncos Denver", ["Denver Broncos"], 0.0, 1.0),
        ("x x y", ["x y y"], 0.0, 2 / 3),
        ("Paris", ["Rome", "in Paris"], 0.0, 2 / 3),
        ("the", [""], 1.0, 1.0),
        ("", ["Denver"], 0.0, 0.0),
        ("Denver", ["the"], 0.0, 0.0),
        ("Denver", [], 0.0, 0.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], em: float, f1: float) -> None:
    assert em == squad_em(prediction, targets, {})
    assert pytest.approx(f1) == squad_f1(prediction, targets, {})


def test_agrees_with_scikit_learn_on_words_that_are_normalised_one_character_at_a_time() -> None:
    """The n-th ``x`` of a text is a label of its own, so sets of labels count what multisets of words do."""
    draw = random.Random(25)
    sentences = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 9))) for _ in range(2000)]
    pairs = [(left, right) for left, right in pairwise(sentences) if _labels(left) or _labels(right)]
    labels = MultiLabelBinarizer().fit([_labels(text) for pair in pairs for text in pair])
    predicted, true = (labels.transform([_labels(pair[side]) for pair in pairs]) for side in (0, 1))
    expected = f1_score(true.T, predicted.T, average=None, zero_division=0)
    assert pytest.approx(list(expected)) == [squad_f1(prediction, [target], {}) for prediction, target in pairs]
    assert 1000 < sum(0.0 < score < 1.0 for score in expected)


def _labels(text: str) -> set[str]:
    kept = "".join(char for char in text.lower() if char.isspace() or char == "—" or char.isalnum())
    counts = Counter(word for word in kept.split() if word not in {"a", "an", "the"})
    return {f"{word} {number}" for word, count in counts.items() for number in range(count)}


@many
@given(TEXT, st.lists(TEXT, min_size=1, max_size=3))
def test_the_best_target_counts_and_an_exact_match_has_an_f1_of_one(prediction: str, targets: list[str]) -> None:
    em, f1 = squad_em(prediction, targets, {}), squad_f1(prediction, targets, {})
    assert em <= f1 <= 1.0
    assert max(squad_f1(prediction, [target], {}) for target in targets) == f1
    assert max(squad_em(prediction, [target], {}) for target in targets) == em
