"""Percentiles of times against numpy's: the smallest value that enough of them do not exceed."""

from __future__ import annotations

import random

import numpy

from pytest_lmeval.leaderboard.aggregations import percentile
from tests.tables import each_row


@each_row("share", [0.5, 0.9, 0.95, 0.99])
def test_percentiles_are_numpys(share: float) -> None:
    chance = random.Random(5)
    for count in (1, 2, 3, 19, 20, 21, 100, 999, 1000):
        ordered = sorted(chance.expovariate(1.0) for _ in range(count))
        assert numpy.percentile(ordered, 100 * share, method="inverted_cdf") == percentile(ordered, share)
