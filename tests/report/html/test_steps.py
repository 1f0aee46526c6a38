"""What the page is given of an eval function's example: every step, within one budget of text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.compact_json import encode
from pytest_lmeval.report.html import steps
from pytest_lmeval.report.html.examples import example_fields
from pytest_lmeval.report.html.steps import MOST_TEXT, function_fields
from tests.report.html.samples import function_result
from tests.tables import each_row


def _shown(*runs: dict[str, Any], **fields: Any) -> dict[str, Any]:
    given = function_result("a", *runs, **fields)
    shown: dict[str, Any] = json.loads(encode(example_fields(given)))
    return shown


def test_a_function_has_runs_in_place_of_details() -> None:
    step = {"kind": "request", "name": "m", "input": "?", "output": "", "ms": 0.0, "key": "abc", "nth": 1}
    shown = _shown({"steps": [step], "notes": {"n": 1}, "decided_by": "label"}, metrics={"label": 1.0})
    kept = {"kind": "request", "name": "m", "input": "?", "output": "", "ms": 0.0}
    assert [{"decided_by": "label", "notes": {"n": 1}, "steps": [kept]}] == shown["runs"]
    assert ("test_ticket", {"label": 1.0}) == (shown["function"], shown["metrics"])
    assert "details" not in shown


def test_repeats_are_runs_of_their_own() -> None:
    shown = _shown({"decided_by": "label"}, {"reason": "assert 0"})
    assert [{"decided_by": "label"}, {"reason": "assert 0"}] == shown["runs"]
    assert {"scores": [1.0, 0.0]} == shown["details"]


@each_row(
    "given",
    [
        {"steps": 3, "notes": []},
        {"steps": [None, "x"]},
        {"repeats": [None]},
        {"reason": None, "decided_by": []},
    ],
)
def test_what_no_run_of_ours_wrote_is_left_out(given: dict[str, Any]) -> None:
    assert [{}] == function_fields(function_result("a", given))["runs"]


def test_numbers_that_no_clock_gives_are_left_out() -> None:
    step = {"kind": 1, "start_ms": "1", "ms": -1, "usage": {"cost": True, "prompt_tokens": 10**400}}
    assert [{"kind": "1"}] == _shown({"steps": [step]})["runs"][0]["steps"]


def test_long_texts_of_steps_are_shortened_alike_and_conversations_stay_such() -> None:
    talk = [{"role": "user", "content": "x" * 1_000} for _ in range(8)]
    many = [{"kind": "request", "input": talk, "output": {"text": ["y" * 9_000]}} for _ in range(1_500)]
    (run,) = _shown({"steps": [*many, {"kind": "tool", "output": "short"}]})["runs"]
    assert len(json.dumps(run)) < 3 * MOST_TEXT
    assert "short" == run["steps"][-1]["output"]
    assert "characters are left out" in run["steps"][0]["output"]
    (one,) = _shown({"steps": [{"kind": "request", "input": [{**talk[0], "content": "x" * 70_000}] * 2}]})["runs"]
    assert ["user", "user"] == [message["role"] for message in one["steps"][0]["input"]]
    assert all(29_000 < len(message["content"]) < 31_000 for message in one["steps"][0]["input"])


def test_of_too_many_steps_the_first_and_the_last_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MOST_STEPS", 4)
    (run,) = _shown({"steps": [{"kind": "tool", "name": str(number)} for number in range(10)]})["runs"]
    assert (["0", "1", "8", "9"], 6) == ([step["name"] for step in run["steps"]], run["left_out"])


@each_row(
    ("id", "item", "named"),
    [
        ("b c", "", "b-c"),
        ("b", "", None),
        ("b c", "TestA::test_x[b-c]", "TestA::test_x[b-c]"),
        ("b", "test_x[a b\x1b\n]", "test_x[a b\\x1b\\n]"),
    ],
)
def test_an_item_is_named_as_pytest_names_it(id: str, item: str, named: str | None) -> None:
    given = function_result(id, {}, item=item)
    assert named == example_fields(given).get("item")
