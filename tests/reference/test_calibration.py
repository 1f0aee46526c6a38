"""Rows of tasks scored by log-probabilities, against scikit-learn and scipy: from the numbers of a model to the row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from pytest_lmeval.formats.loglikelihood import ranked
from pytest_lmeval.leaderboard.rows import TaskInfo, make_row
from pytest_lmeval.types import ExampleResult, LogProb

LETTERS = "ABCD"
BINS = 10
totals = st.lists(st.floats(-6, 0), min_size=4, max_size=4)
answers = st.lists(st.tuples(totals, st.sampled_from(LETTERS)), min_size=1, max_size=40)


def result_of(number: int, losses: Sequence[float], target: str) -> ExampleResult:
    options = ranked([LogProb(total) for total in losses], LETTERS)
    chosen = options.best("total")
    said = LETTERS[chosen]
    plain = ExampleResult("t", str(number), "passed", float(said == target), 1.0, "evaluate", "h")
    return replace(plain, predictions=(said,), targets=(target,), details=options.record(chosen), category="a subject")


@settings(deadline=None)
@given(answers)
def test_a_row_has_the_numbers_of_scikit_learn(rows: list[tuple[list[float], str]]) -> None:
    row = make_row(TaskInfo("t", "t.py"), [result_of(number, *each) for number, each in enumerate(rows)])
    shares = np.array([softmax(losses) for losses, _ in rows])
    said = [LETTERS[int(np.argmax(losses))] for losses, _ in rows]
    true = [target for _, target in rows]
    sure = shares[range(len(rows)), [LETTERS.index(letter) for letter in said]]
    hits = [letter == target for letter, target in zip(said, true, strict=True)]

    assert len(rows) == row.calibration["n"]
    assert pytest.approx(brier_score_loss(hits, sure, labels=[False, True])) == row.calibration["brier"]
    share, mean = calibration_curve(hits, sure, n_bins=BINS, strategy="uniform")
    counts = np.bincount(np.minimum((sure * BINS).astype(int), BINS - 1), minlength=BINS)
    # On a border the rounding of a softmax decides to which bin a confidence belongs.
    if not any(math.isclose(each * BINS, round(each * BINS)) for each in sure):
        expected = float(np.sum(np.abs(share - mean) * counts[counts > 0]) / len(rows))
        assert pytest.approx(expected) == row.calibration["ece"]
