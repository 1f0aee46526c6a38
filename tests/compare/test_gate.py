"""The gate's verdict from a board: which reason counts in which mode, and which comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.compare.gate import LET_PASS, MODES, GateSettings, decide, renewed
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.records.runfile import RunFile
from pytest_lmeval.report.wording import is_off
from pytest_lmeval.types import ExampleResult
from tests.tables import each_row

PASSED = ExampleResult("sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", outputs=("4",), predictions=("4",))
FAILED = replace(PASSED, id="b", status="failed", score=0.0)
BELOW = replace(FAILED, status="below")
MUST = replace(BELOW, id="m", must_pass=True)
ERROR = replace(PASSED, id="e", status="error", score=None)


def _board(*results: ExampleResult, **facts: Any) -> Leaderboard:
    return build_board((), results, RunFacts("t", "stub.v1", **facts))


def _decide(board: Leaderboard, mode: str = "tasks", **settings: Any) -> dict[str, Any]:
    results = [result for row in board.tasks for result in row.per_example]
    is_compared = mode == "baseline" and "shard" not in board.facts.selection
    baseline = _baseline(results) if is_compared else None
    return decide(board, baseline, GateSettings(mode=mode, **settings)).to_json()


def _baseline(results: Sequence[ExampleResult]) -> RunFile:
    facts = RunFacts("t", "stub.v1")
    return RunFile(
        path=Path("base.json"), kind="leaderboard", facts=facts, complete=True, infos={}, results=tuple(results)
    )


@each_row("mode", ["tasks", "baseline", "none"])
def test_in_the_other_modes_an_example_under_its_threshold_fails_nothing(mode: str) -> None:
    assert "pass" == _decide(_board(PASSED, BELOW), mode)["verdict"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["sums", "overall"])
def test_a_floor_binds_in_every_mode_but_none(mode: str, name: str) -> None:
    gate = _decide(_board(PASSED, BELOW), mode, floors={name: 0.51})
    reason = f"{name}: 0.5000 is below its floor 0.51"
    off = ("pass", [f"{reason}; the gate is off ('none'): this does not fail the run"])
    expected = off if mode == "none" else ("floor", [reason])
    assert expected == (gate["verdict"], [reason for reason in gate["reasons"] if "floor" in reason])


def test_a_floor_that_is_reached_exactly_is_reached() -> None:
    assert "pass" == _decide(_board(PASSED, BELOW), floors={"sums": 0.5, "overall": 0.5})["verdict"]


def test_a_floor_of_a_task_that_the_run_does_not_have_fails_nothing_and_is_said() -> None:
    gate = _decide(_board(PASSED), floors={"words": 1.0})
    assert ("pass", ["floor not checked, this run has no task of that name: words"]) == (
        gate["verdict"],
        gate["warnings"],
    )


def test_a_floor_without_a_score_is_not_reached() -> None:
    excluded = replace(PASSED, status="excluded", score=None)
    gate = _decide(_board(excluded), floors={"sums": 0.0})
    assert "sums: no score, and the floor is 0" in gate["reasons"]
    assert gate["verdict"] not in LET_PASS


def test_the_floors_of_a_shard_wait_for_the_others() -> None:
    board = _board(BELOW, selection={"shard": "1/2"})
    assert "pass" == _decide(board, floors={"sums": 1.0, "overall": 1.0})["verdict"]


@each_row("mode", MODES)
def test_an_example_that_must_pass_binds_in_every_mode_but_none(mode: str) -> None:
    gate = _decide(_board(PASSED, MUST), mode)
    expected = "pass" if mode == "none" else "must_pass"
    assert expected == gate["verdict"]
    assert mode == "none" or "sums: m must pass, but its status is below" in gate["reasons"]


def test_one_that_must_pass_and_was_excluded_by_its_task_is_no_reason() -> None:
    assert "pass" == _decide(_board(PASSED, replace(MUST, status="excluded", score=None)))["verdict"]


@each_row("mode", MODES)
def test_an_incomplete_run_fails_in_every_mode(mode: str) -> None:
    gate = _decide(_board(PASSED, ERROR, missing=["x::y"]), mode)
    assert "incomplete" == gate["verdict"]
    assert {"no result: x::y", "1 example(s) could not be scored; --lm-max-errors allows 0"} <= {*gate["reasons"]}


def test_a_run_of_errors_alone_is_incomplete_however_many_are_allowed() -> None:
    assert "incomplete" == _decide(_board(ERROR, max_errors=1))["verdict"]


@each_row(
    ("results", "floors", "decided_by"),
    [
        ([PASSED], {}, []),
        ([PASSED], {"nowhere": 0.5}, []),
        ([PASSED], {"overall": 0.5}, ["floors"]),
        ([PASSED, replace(MUST, status="passed")], {}, ["must_pass"]),
    ],
)
def test_a_gate_says_what_it_decided_by(
    results: list[ExampleResult], floors: dict[str, float], decided_by: list[str]
) -> None:
    gate = _decide(_board(*results), "tasks", floors=floors)
    assert decided_by == gate["decided_by"]
    assert (not decided_by) == any("no result can fail this run" in reason for reason in gate["reasons"])
    assert is_off(gate) is not bool(decided_by)


def test_the_gravest_verdict_stands_and_every_reason_is_told() -> None:
    gate = _decide(_board(FAILED, replace(MUST, status="failed")), "examples", floors={"overall": 1.0})
    assert "floor" == gate["verdict"]
    assert 3 == len(gate["reasons"])


def _many(*scores: float) -> list[ExampleResult]:
    status = {1.0: "passed", 0.0: "below"}
    return [
        replace(PASSED, id=f"e{n}", score=score, status=status[score])  # type: ignore[arg-type]  # of the two above
        for n, score in enumerate(scores)
    ]


OLD = _many(*[1.0] * 40)
WORSE = _many(*[0.0] * 20, *[1.0] * 20)


@each_row(("mode", "verdict"), [("baseline", "regression"), ("tasks", "pass"), ("none", "pass")])
def test_a_regression_fails_the_run_in_mode_baseline_alone(mode: str, verdict: str) -> None:
    gate = decide(_board(*WORSE), _baseline(OLD), GateSettings(mode=mode)).to_json()
    assert verdict == gate["verdict"]
    assert "regression" == gate["comparison"]["verdict"]
    assert any(reason.startswith("sums: regression") for reason in gate["reasons"]) == (mode == "baseline")


@each_row(("written", "passes"), [("new", True), ("pass", True), ("stale", False)])
def test_what_became_of_the_baseline_is_the_verdict_of_a_run_that_becomes_it_even_where_it_got_worse(
    written: str, passes: bool
) -> None:
    settings = GateSettings(mode="baseline", baseline="base.json", update=True)
    gate = renewed(decide(_board(*WORSE), _baseline(OLD), settings), written, "why").to_json()
    assert (written, passes, "why") == (gate["verdict"], gate["verdict"] in LET_PASS, gate["reasons"][0])


def test_a_run_that_fails_is_never_new_and_its_own_reason_is_told_first() -> None:
    settings = GateSettings(baseline="base.json", update=True, floors={"sums": 1.0})
    gate = renewed(decide(_board(*WORSE), settings=settings), "new", "baseline written").to_json()
    assert ("floor", "baseline written") == (gate["verdict"], gate["reasons"][1])
    assert gate["reasons"][0].endswith("is below its floor 1")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("update", [False, True])
@pytest.mark.parametrize("missing", [(), [f"x::{n}" for n in range(30)]])
def test_every_verdict_says_near_its_top_what_was_not_compared(mode: str, update: bool, missing: list[str]) -> None:
    settings = GateSettings(mode=mode, baseline="base.json", update=update)
    gate = decide(_board(*OLD[:36], missing=missing), _baseline(OLD), settings).to_json()
    gone = "removed, skipped or lost" if missing else "removed"
    said = f"not compared: 4 {gone} (4 passed before); compared: 36 of the baseline's 40 examples"
    assert said in gate["reasons"][:2]


def test_a_shard_says_that_it_was_not_compared() -> None:
    gate = _decide(_board(PASSED, selection={"shard": "1/2"}), "baseline", baseline="base.json")
    assert ["not compared: a shard of a run; lmeval merge compares the whole run with the baseline"] == gate["reasons"]


@each_row(
    ("wrong", "message"),
    [
        ({"mode": "exampels"}, "unknown gate 'exampels'; did you mean 'examples'"),
        ({"alpha": 7.0}, "gate.settings.alpha: expected a number > 0 and < 1, got 7.0"),
        ({"tolerance": -0.1}, "gate.settings.tolerance: expected a number >= 0 and < 1, got -0.1"),
        ({"floors": {"sums": 5.0}}, "gate.settings.floors.sums: expected a number from 0 to 1, got 5.0"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        GateSettings(**wrong)


def test_a_board_whose_examples_were_judged_for_another_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="judged for the gate 'none': none of them is failed"):
        decide(_board(PASSED, BELOW, mode="none"))


def test_a_baseline_that_did_not_finish_is_doubtful() -> None:
    torn = replace(_baseline(OLD), complete=False)
    warnings = decide(_board(*OLD), torn, GateSettings(mode="baseline")).warnings
    assert "the baseline comes from a run that did not finish" in warnings


# What makes a run doubtful


@each_row(
    ("outputs", "warnings"),
    [
        (["", " ", "", "", ""], ["sums: all 5 outputs are empty"]),
        (["A"] * 5, ["sums: all 5 outputs are identical"]),
        (["A", "B", "A", "A", "A"], []),
        (["A"] * 4, []),
    ],
)
def test_outputs_that_are_all_empty_or_all_the_same_are_doubtful(outputs: list[str], warnings: list[str]) -> None:
    results = [replace(PASSED, id=str(n), outputs=(output,), targets=(str(n),)) for n, output in enumerate(outputs)]
    assert warnings == _decide(_board(*results))["warnings"]


def test_one_output_among_examples_that_have_none_is_not_identical_to_them() -> None:
    results = [replace(PASSED, id=str(n), outputs=("A",) * (not n), targets=(str(n),)) for n in range(5)]
    assert [] == _decide(_board(*results))["warnings"]


@each_row(
    "begin",
    [
        "<thinking>",
        " [THINK]",
        "\n◁think▷",
        "<|channel|>analysis<|message|>",
        "<seed:think>",
        "<REASONING>",
        "analysis. assistantfinal",
    ],
)
def test_outputs_that_begin_with_thoughts_by_other_tags_are_doubtful(begin: str) -> None:
    said = [f"{begin if n < 1 else ''}{n}" for n in range(3)]
    results = [replace(PASSED, id=str(n), outputs=(output,)) for n, output in enumerate(said)]
    (warning,) = _decide(_board(*results))["warnings"]
    tag = begin.strip().removesuffix("<|message|>").removesuffix(". assistantfinal")
    assert warning.startswith(f"sums: 1 of 3 outputs begin with {tag}: these thoughts are scored as part of the answer")
    assert "--lm-think-tags=OPEN,CLOSE" in warning
    fewer = [replace(each, outputs=("4",)) if n == 0 else each for n, each in enumerate(results)]
    assert [] == _decide(_board(*fewer))["warnings"]


def test_outputs_that_are_all_the_same_because_the_targets_are_raise_no_doubt() -> None:
    results = [replace(PASSED, id=str(n), outputs=("yes",), targets=("yes",)) for n in range(9)]
    assert [] == _decide(_board(*results))["warnings"]


def test_a_task_of_which_nothing_is_right_or_nothing_could_be_extracted_is_doubtful() -> None:
    wrong = [replace(BELOW, id=str(n), outputs=(str(n),)) for n in range(5)]
    assert ["sums: all 5 scores are 0"] == _decide(_board(*wrong))["warnings"]
    unparsed = [replace(result, unparsed=True) for result in wrong]
    assert ["sums: no answer could be extracted from any of 5 outputs"] == _decide(_board(*unparsed))["warnings"]
