"""What is said of a board besides its verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_lmeval.compare.remarks import not_in_force
from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.types import ExampleResult

OWN = {"until": "2026-03-01", "reason": "flips"}
FAILED = ExampleResult("sums", "a", "failed", 0.0, 1.0, "exact_match", "h", quarantine=OWN)


@pytest.mark.parametrize(
    ("result", "day", "told"),
    [
        (FAILED, "2026-03-02", "its quarantine ended on 2026-03-01: it counts again"),
        (
            FAILED,
            "2026-03-01",
            "its quarantine takes effect once the baseline contains it: a change cannot excuse itself",
        ),
        (replace(FAILED, status="quarantined"), "2026-03-01", ""),
        (replace(FAILED, status="excluded", score=None), "2026-03-02", ""),
        (replace(FAILED, status="measured", score=None), "2026-03-02", ""),
        (replace(FAILED, quarantine={}), "2026-03-02", ""),
    ],
)
def test_a_quarantine_that_is_not_in_force_is_reported_with_the_reason(
    result: ExampleResult, day: str, told: str
) -> None:
    board = build_board((), [result], RunFacts(f"{day}T10:00:00Z", "stub.v1"))
    assert ([f"sums: a: {told}"] if told else []) == not_in_force(board)
