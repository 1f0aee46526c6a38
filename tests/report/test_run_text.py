"""What a run took, and how to go on with it."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.wording import amount, duration, resume_line, totals_line
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row


def _result(id: str, status: Any = "passed", *, ms: float | None = None, **usage: float) -> ExampleResult:
    score = 1.0 if status == "passed" else None
    return ExampleResult("t", id, status, score, 1.0, "m", "", usage=usage, latency_ms=ms)


def _line(result: ExampleResult, **manifest: Any) -> str:
    return totals_line(build_board([], [result], RunFacts("2026-01-01T00:00:00Z", "x", manifest=manifest)))


@each_row(
    ("usage", "manifest", "line"),
    [
        ({}, {}, ""),
        ({}, {"wall_s": 0.25}, "took 0.2 s"),
        (
            {"prompt_tokens": 1234, "completion_tokens": 56, "cost": 0.5, "retries": 2},
            {"wall_s": 61.0},
            "took 61.0 s, 1,234 prompt and 56 completion tokens, cost 0.5000, 2 retries",
        ),
        ({"completion_tokens": 7}, {}, "7 completion tokens"),
        ({"cost": 0.5, "cost_unknown": 2}, {}, "cost at least 0.5000"),
        # Where nothing was timed, nothing was asked.
        ({}, {"wall_s": 1.0, "harness_ms": 0.4}, "took 1.0 s"),
        (
            {"ms": 1812.0, "cost": 0.019},
            {"harness_ms": 0.412},
            "cost 0.0190; per example: harness 0.4 ms, model 1,812 ms, cost 0.0190",
        ),
        ({"ms": 0.04}, {}, "per example: model 0.0 ms"),
        ({"ms": 99.94}, {"harness_ms": "fast"}, "per example: model 99.9 ms"),
    ],
)
def test_what_a_run_took_is_one_line_of_what_is_known(
    usage: dict[str, Any], manifest: dict[str, Any], line: str
) -> None:
    assert line == _line(_result("a", **usage), **manifest)


@each_row(("seconds", "text"), [(3.14, "3.1 s"), (123, "2 min 3 s"), (7200, "2 h 0 min")])
def test_a_time_is_said_as_people_say_it(seconds: float, text: str) -> None:
    assert text == duration(seconds)


@each_row(("cost", "text"), [(12.3456789, "12.3457"), (0.0000123, "1.2e-05"), (1 / 3, "0.3333")])
def test_a_cost_has_the_digits_that_count(cost: float, text: str) -> None:
    assert text == amount(cost)


def test_a_run_without_all_scores_says_how_to_go_on() -> None:
    facts = RunFacts("2026-01-01T00:00:00Z", "x", manifest={"argv": ["pytest"]}, missing=["t::c"])
    board = build_board([], [_result("a"), _result("b", "error")], facts)
    assert "to retry the 2 unscored examples: the same command with --lm-resume" == resume_line(board)
    assert "" == resume_line(build_board([], [_result("a")], RunFacts("", "x", manifest={"argv": ["pytest"]})))
