"""The board for people: what a reader must see, and what no name may do to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.report.tables import score_text
from pytest_lmeval.report.terminal_text import Screen, terminal_table
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

A = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", category="arithmetic", latency_ms=2.0)
B = replace(A, id="b", status="failed", score=0.0, unparsed=True, latency_ms=3.0)
C = replace(A, task="words", id="c", metric="f1", score=0.5, category="")
ERROR = replace(A, id="d", status="error", score=None, latency_ms=None)


def _board(*results: ExampleResult, **facts: Any) -> Leaderboard:
    return build_board((), results, RunFacts("2026-11-21T08:00:00Z", **{"adapter": "toy.v1"} | facts))


@each_row(("score", "text"), [(None, "-"), (0.0, "0.0000"), (1, "1.0000"), (2 / 3, "0.6667"), (0.99999, "1.0000")])
def test_a_score_has_four_digits_or_a_dash(score: float | None, text: str) -> None:
    assert text == score_text(score)


# The terminal


def test_long_names_lose_their_middle_at_the_middle_unless_they_would_become_equal() -> None:
    assert ["Axxx...xxx1", "Bxxx...xxx2"] == Screen().names(["Axxxxxxxxxxxxx1", "Bxxxxxxxxxxxxx2"], 11)
    assert ["xxxxxA...xx", "xxxxxB...xx"] == Screen().names(["xxxxxAxxxxxxxxx", "xxxxxBxxxxxxxxx"], 11)


def test_the_terminal_table_has_a_row_a_task_and_the_overall_score_last() -> None:
    assert [
        "task     metric        score   95 % interval  correct  errors  unparsed   ms",
        "sums     exact_match  0.5000  0.095 to 0.905      1/2                 1  2.5",
        "words    f1           0.5000  0.103 to 0.897      0/1                    2.0",
        "overall               0.5000  0.126 to 0.874      1/3",
    ] == terminal_table(_board(A, B, C))


def test_an_incomplete_run_shows_a_dash_for_the_overall_score() -> None:
    lines = terminal_table(_board(A, ERROR))
    assert ["overall", "-", "1/2"] == lines[-1].split()
    assert ["1/2", "1", "2.0"] == lines[1].split()[-3:]


def test_a_board_without_tasks_has_its_headings_and_the_overall_line() -> None:
    lines = terminal_table(_board())
    assert 2 == len(lines)
    assert ["overall", "-", "0/0"] == lines[1].split()


@each_row("name", ["a\nb", "a\rb", "a\x1b[2Jb"])
def test_a_name_with_control_characters_stays_in_its_row(name: str) -> None:
    lines = terminal_table(_board(replace(A, task=name)))
    assert 3 == len(lines)
    assert all(line.isprintable() for line in lines)


def test_what_timed_out_is_counted_apart_from_errors() -> None:
    late = replace(ERROR, id="late", status="timeout")
    assert "1 + 1 timed out" in terminal_table(_board(A, ERROR, late))[1]
    assert " 1 timed out" in terminal_table(_board(A, late))[1]
