"""What the page is given: every example, or the most telling of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pytest_lmeval.report.html import data
from pytest_lmeval.report.html.data import report_data
from pytest_lmeval.text import LONGEST_SHOWN
from pytest_lmeval.types import ExampleResult
from tests.report.html.samples import board_of, compared_run, result
from tests.tables import each_row


def _examples(results: list[ExampleResult], **more: Any) -> dict[str, dict[str, Any]]:
    given = report_data(board_of(results), results, more.get("comparison"), more.get("baseline", {}))
    return {example["id"]: example for task in given.tasks for example in json.loads(task)["examples"]}


def test_an_example_has_everything_that_is_not_empty() -> None:
    one = result("a", " so B ", "B", post_process="extract_letter", category="mcq", must_pass=True, line=3)
    expected = {
        "id": "a",
        "status": "passed",
        "score": 1.0,
        "threshold": 1.0,
        "metric": "exact_match",
        "rule": "extract_letter",
        "prompt": "Question a: what is 2 + 2?",
        "targets": ["B"],
        "answers": [{"output": " so B ", "prediction": "B", "span": [4, 5]}],
        "category": "mcq",
        "ms": 120.0,
        "line": 3,
        "must_pass": True,
    }
    assert {"a": expected} == _examples([one])


def test_a_score_of_zero_is_kept_and_no_score_is_none() -> None:
    examples = _examples([result("zero", "5"), result("none", score=None, status="error")])
    assert 0.0 == examples["zero"]["score"]
    assert "score" not in examples["none"]


def test_examples_stand_in_the_order_of_their_file() -> None:
    assert ["b", "c", "a"] == list(_examples([result("a", line=3), result("c", line=2), result("b", line=1)]))
    assert ["b", "c", "a"] == list(
        _examples([result("a", line=9, place=2), result("c", line=9, place=1), result("b", line=9)])
    )
    # A ledger of an earlier version has neither.
    assert ["e2", "e10", "e11"] == list(_examples([result("e11"), result("e10"), result("e2")]))


def test_what_all_prompts_of_a_task_begin_with_is_held_once() -> None:
    shots = "2 + 2 = 4\n" * 30
    results = [result("a", prompt=shots + "1 + 1 ="), result("b", prompt=shots + "1 + 2 =")]
    (task,) = map(json.loads, report_data(board_of(results), results, None, {}).tasks)
    assert shots == task["prefix"]
    assert ["1 + 1 =", "1 + 2 ="] == [example["prompt"] for example in task["examples"]]


def test_a_long_text_loses_its_middle_and_says_so() -> None:
    (example,) = _examples([result("a", "x" * 200_000)]).values()
    text = example["answers"][0]["output"]
    assert f"{200_000 - LONGEST_SHOWN:,} characters are left out" in text
    assert len(text) < LONGEST_SHOWN + 200


def test_flips_are_the_ones_that_the_comparison_names() -> None:
    board, results, comparison, baseline = compared_run()
    given = report_data(board, results, comparison, baseline)
    sums = next(tally for tally in given.overview["examples"] if tally["task"] == "sums")
    assert (1, 1) == (sums["worse"], sums["better"])


@each_row(
    ("before", "flip"),
    [
        (result("a", "4"), "worse"),
        (result("a", "6"), None),
        (result("a", "4", hash="another"), None),
        (result("a", score=None, status="error"), None),
    ],
)
def test_without_a_comparison_equal_examples_flip_at_the_threshold(before: ExampleResult, flip: str | None) -> None:
    examples = _examples([result("a", "5")], baseline={("sums", "a"): before})
    assert flip == examples["a"].get("flip")


def test_what_the_comparison_recorded_stands_in_for_a_baseline_that_is_not_at_hand() -> None:
    old = {"output": "it is 4", "prediction": "4", "score": 1.0, "status": "passed"}
    comparison = {"worse": [{"task": "sums", "id": "a", "old": old}], "better": []}
    before = _examples([result("a", "5")], comparison=comparison)["a"]["before"]
    answer = {"output": "it is 4", "prediction": "4", "span": [6, 7]}
    assert {"status": "passed", "score": 1.0, "answers": [answer]} == before


def test_an_equal_output_of_the_baseline_is_not_repeated() -> None:
    before = _examples([result("a")], baseline={("sums", "a"): result("a")})["a"]["before"]
    assert {"status": "passed", "score": 1.0, "same": True} == before


def test_of_a_run_too_large_the_most_telling_examples_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MAX_EXAMPLES", 6)
    fates = [
        result("wrong", "5"),
        result("error", score=None, status="error"),
        result("flipped", "5"),
        result("must", "5", must_pass=True),
    ]
    results = [*(result(f"ok-{n}", task=task) for task in ("sums", "more") for n in range(5)), *fates]
    baseline = {("sums", "flipped"): result("flipped")}
    given = report_data(board_of(results), results, None, baseline)
    kept = {example["id"] for task in given.tasks for example in json.loads(task)["examples"]}
    # The two places that are left go to both tasks.
    assert {"wrong", "error", "flipped", "must", "ok-0"} == kept
    assert [{"passed": 4}, {"passed": 4}] == [tally["left_out"] for tally in given.overview["examples"]]


def test_no_more_text_is_taken_than_a_page_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "MAX_CHARACTERS", 5_000)
    given = report_data(board_of([]), [result(f"{n}", "5" * 1_000) for n in range(10)], None, {})
    assert sum(map(len, given.tasks)) < 5_200
    assert 4 == len(json.loads(given.tasks[0])["examples"])


def test_the_comparison_of_the_gate_is_used_and_not_embedded_twice() -> None:
    board, results, comparison, _ = compared_run()
    board["gate"]["comparison"] = comparison
    overview = report_data(board, results, None, {}).overview
    assert "comparison" not in overview["board"]["gate"]
    assert ["sums"] == [entry["task"] for entry in overview["comparison"]["tasks"]]


def test_the_examples_of_the_board_are_not_embedded_a_second_time() -> None:
    one = result("a")
    board = board_of([one])
    board["tasks"][0]["per_example"] = [{"id": "a"}]
    assert "per_example" not in report_data(board, [one], None, {}).overview["board"]["tasks"][0]


def test_a_result_of_a_task_without_a_row_is_still_there() -> None:
    assert {"a", "b"} == _examples([result("a"), replace(result("b"), task="new")]).keys()
