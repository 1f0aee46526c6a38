"""The command that a run's last line names: only where a user has something to learn."""

from __future__ import annotations

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.wording import next_step
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

KEEP = "the same command with --lm-baseline=baseline.json --lm-update-baseline"
COMPARE = "to compare later runs with this one: "
WORSE = "to fail only if a later run is worse: "


def _after(
    mode: str, verdict: str, baseline: str = "", *, is_first: bool = False, is_complete: bool = True, part: bool = False
) -> str:
    result = ExampleResult("t", "a", "passed" if is_complete else "error", 1.0 if is_complete else None, 1.0, "f1", "h")
    facts = RunFacts(
        "2026-11-21T08:00:00Z",
        adapter="toy.v1",
        manifest={"argv": ["tasks"]},
        selection={"tasks": {"t": {"selected": 1, "available": 2}}} if part else {},
        gate={"mode": mode, "verdict": verdict},
    )
    return next_step(build_board((), [result], facts), "reports", baseline, is_first=is_first)


@each_row(
    ("mode", "verdict", "baseline", "expected"),
    [
        ("examples", "pass", "", COMPARE + KEEP),
        ("tasks", "pass", "", COMPARE + KEEP),
        ("examples", "examples", "", WORSE + KEEP),
        ("none", "pass", "", COMPARE + KEEP.replace("--lm-b", "--lm-gate=baseline --lm-b", 1)),
        ("examples", "pass", "b.json", "to compare with b.json: the same command with --lm-baseline=b.json"),
        ("tasks", "floor", "", ""),
        ("examples", "limit", "", ""),
    ],
)
def test_a_first_run_without_a_baseline_says_how_to_keep_its_scores(
    mode: str, verdict: str, baseline: str, expected: str
) -> None:
    assert expected == _after(mode, verdict, baseline, is_first=True)
    assert "" == _after(mode, verdict, baseline)


@each_row(
    ("verdict", "expected"),
    [
        ("new", "to compare with it: commit b.json, then the same command without --lm-update-baseline"),
        ("regression", "to see the answers then and now: lmeval diff b.json reports/leaderboard.json"),
        ("pass", ""),
        ("stale", ""),
        ("inconclusive", ""),
    ],
)
def test_a_run_with_a_baseline_says_what_a_new_one_and_a_drop_ask_for(verdict: str, expected: str) -> None:
    assert expected == _after("baseline", verdict, "b.json")


def test_a_part_of_the_examples_and_an_incomplete_run_name_no_next_command() -> None:
    assert "" == _after("examples", "pass", is_first=True, part=True)
    assert "" == _after("examples", "incomplete", is_first=True, is_complete=False)
