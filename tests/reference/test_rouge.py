"""ROUGE-L against rouge-score."""

from __future__ import annotations

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics import rouge, rouge_l
from pytest_lmeval.metrics.parts.worker import MetricWorker
from tests.examples import share_of
from tests.reference.texts import sentence
from tests.tables import each_row


@each_row(
    ("prediction", "targets", "expected"),
    [
        ("the cat sat", ["the cat sat"], 1.0),
        ("The cat, sat!", ["the CAT sat"], 1.0),
        ("the cat", ["the cat sat on"], 2 / 3),
        ("sat cat the", ["the cat sat"], 1 / 3),
        ("a b", ["x y", "a c"], 0.5),
        ("a_b", ["a b"], 0.0),
        ("été", ["ÉTÉ"], 1.0),
    ],
)
def test_known_scores(prediction: str, targets: list[str], expected: float) -> None:
    assert pytest.approx(expected) == rouge_l(prediction, targets, {})


def test_agrees_with_rouge_score_on_random_pairs() -> None:
    """Without stemming, on ASCII words without underscores, which rouge-score splits on."""
    reference = RougeScorer(["rougeL"], use_stemmer=False)
    draw = random.Random(20)
    pairs = [(sentence(draw), sentence(draw)) for _ in range(share_of(3000))]
    expected = [reference.score(target, prediction)["rougeL"].fmeasure for prediction, target in pairs]
    assert pytest.approx(expected, abs=1e-12) == [rouge_l(prediction, [target], {}) for prediction, target in pairs]
    assert share_of(100) < sum(score == 0.0 for score in expected)
    assert share_of(2000) < sum(0.0 < score < 1.0 for score in expected)


def test_long_texts_are_compared_in_a_process_that_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = "a b c d " * 10, ["b d " * 10]
    here = rouge_l(*sides, {})
    worker = MetricWorker()
    monkeypatch.setattr(rouge, "_MOST_PAIRS", 799)
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    assert here == rouge_l(*sides, {})
    assert worker._process is not None


def test_the_longest_texts_are_an_error_and_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = MetricWorker(cpu_limit_s=0.1)
    monkeypatch.setattr("pytest_lmeval.metrics.parts.worker.shared_worker", lambda: worker)
    text = " ".join(map(str, range(100_000)))
    with pytest.raises(ScoringError, match=r"rouge_l took more than 0\.1 s of CPU time"):
        rouge_l(text, [text], {})
