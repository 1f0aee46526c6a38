"""What an interrupted run's ledger still answers: all that it holds, and nothing that would be asked otherwise now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.hashes import request_hash
from pytest_lmeval.run.resume import HeldResults, Query, read_held
from pytest_lmeval.run.settings import fingerprint
from pytest_lmeval.types import Completion, ExampleResult, Generate, LogLikelihood, LogProb, Message, Response, ToolCall
from tests.tables import each_row

RESULT = ExampleResult(
    "sums", "a", "passed", 1.0, 1.0, "exact_match", "h1", outputs=("5",), latency_ms=12.5, adapter="m", request="asked"
)

NOW = Query("asked", "m", 1)


def header(asking: str = "now") -> str:
    return json.dumps({"header": {"schema": "pytest-lmeval/ledger/1", "asking": asking}})


def end(complete: bool = True) -> list[str]:
    return [json.dumps({"run": {"tasks": []}}), json.dumps({"footer": {"complete": complete}})]


def read(folder: Path, *lines: str, tail: str = "") -> HeldResults:
    path = folder / "ledger.jsonl"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("ascii") + tail.encode("ascii"))
    return read_held(path, "now")


def texts(held: HeldResults, request: str = "asked", adapter: str = "m", repeats: int = 1) -> list[str] | None:
    responses = held.responses("sums", "a", Query(request, adapter, repeats))
    return None if responses is None else [response.text for response in completions(responses)]


def completions(responses: Sequence[Response] | None) -> list[Completion]:
    return [response for response in responses or () if isinstance(response, Completion)]


def test_a_response_is_given_back_with_its_latency(tmp_path: Path) -> None:
    (response,) = completions(read(tmp_path, header(), RESULT.to_json()).responses("sums", "a", NOW))
    assert ("5", 12.5) == (response.text, response.latency_ms)


def test_what_responses_cost_is_given_back_in_sum(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 7, "cost": 0.25}
    result = replace(RESULT, outputs=("5", "6", "7"), usage=usage)
    held = read(tmp_path, header(), result.to_json())
    responses = completions(held.responses("sums", "a", Query("asked", "m", 3)))
    assert ["5", "6", "7"] == [response.text for response in responses]
    for name, amount in usage.items():
        assert amount == sum(getattr(response, name) or 0 for response in responses)


def test_the_complete_ledger_of_runs_that_asked_otherwise_is_not_gone_on_with(tmp_path: Path) -> None:
    other = read(tmp_path, header("otherwise"), RESULT.to_json(), *end())
    assert (False, frozenset({("sums", "a")})) == (other.goes_on, other.keys)
    assert read(tmp_path, header("otherwise"), RESULT.to_json()).goes_on
    assert read(tmp_path, header(), RESULT.to_json(), header("otherwise"), *end()).goes_on


def test_only_parts_of_runs_that_asked_alike_are_held(tmp_path: Path) -> None:
    other = replace(RESULT, outputs=("6",)).to_json()
    assert ["5"] == texts(read(tmp_path, header(), RESULT.to_json(), header("otherwise"), other))
    assert texts(read(tmp_path, header("otherwise"), other)) is None


@given(st.integers(1, len(RESULT.to_json()) - 1))
def test_a_torn_last_line_costs_that_line_alone(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    torn = replace(RESULT, id="b").to_json()[:length]
    held = read(tmp_path_factory.getbasetemp(), header(), RESULT.to_json(), tail=torn)
    assert ["5"] == texts(held)
    assert (1, 1) == (len(held.results), held.damaged)


@each_row(
    "other",
    [
        ("toy2", {"seed": 1}, 1),
        ("toy", {"seed": 2}, 1),
        ("toy", {"seed": 1, "more": None}, 1),
        ("toy", {}, 1),
        ("toy", {"seed": 1}, 2),
    ],
)
def test_adapter_options_and_repeats_decide_the_fingerprint(other: tuple[str, dict[str, Any], int]) -> None:
    mine = fingerprint("toy", {"seed": 1}, 1)
    assert mine == fingerprint("toy", {"seed": 1}, 1)
    assert mine != fingerprint(*other)


def test_the_order_of_options_does_not_matter_and_secrets_are_not_in_the_fingerprint() -> None:
    mine = fingerprint("toy", {"a": 1, "api_key": "CANARY"}, 1)
    assert mine == fingerprint("toy", {"api_key": "CANARY", "a": 1}, 1)
    assert "CANARY" not in mine


REQUEST = Generate("2 + 3 =", "sums", "a")


def test_thoughts_calls_and_a_cut_are_given_back_with_the_output(tmp_path: Path) -> None:
    call = Completion("", tool_calls=(ToolCall("", "add", '{"a":1}'),)).output
    result = replace(RESULT, outputs=(call,), thoughts=("hm",), cut_off=True, usage={"reasoning_tokens": 7.0})
    (found,) = read(tmp_path, header(), result.to_json()).responses("sums", "a", NOW) or ()
    assert isinstance(found, Completion)
    assert ("hm", "add") == (found.thoughts, found.tool_calls[0].name)
    assert (7, True) == (found.reasoning_tokens, found.is_cut_off)


@each_row("same", [replace(REQUEST, task="words"), replace(REQUEST, id="b"), replace(REQUEST, repeat=3)])
def test_what_is_asked_does_not_depend_on_whose_question_it_is(same: Generate) -> None:
    assert request_hash([REQUEST]) == request_hash([same])


@each_row(
    "others",
    [
        [replace(REQUEST, prompt="2 + 4 =")],
        [replace(REQUEST, prompt=(Message("user", "2 + 3 ="),))],
        [replace(REQUEST, prompt=(Message("system", "2 + 3 ="),))],
        [replace(REQUEST, stop=("\n",))],
        [replace(REQUEST, max_tokens=5)],
        [REQUEST, REQUEST],
        [LogLikelihood("2 + 3 =", "5")],
        [],
    ],
)
def test_everything_the_model_sees_decides_the_request_hash(others: Sequence[Any]) -> None:
    assert request_hash([REQUEST]) != request_hash(others)


def test_log_probabilities_are_given_back_as_they_were_compared(tmp_path: Path) -> None:
    options = [{"total": -3.0, "loss": 1.5, "tokens": 2, "greedy": True}]
    result = replace(RESULT, outputs=(), predictions=("5",), details={"options": options})
    held = read(tmp_path, header(), result.to_json())
    assert [LogProb(-3.0, (-1.5, -1.5), True, 12.5)] == held.responses("sums", "a", NOW)
    assert held.responses("sums", "a", Query("asked", "m", 2)) is None


def test_log_probabilities_of_repeats_are_given_back_for_each(tmp_path: Path) -> None:
    option = {"total": -3.0, "loss": 1.5, "tokens": 2, "greedy": True}
    details = {"scores": [1.0, 1.0], "repeats": [{"options": [option, option]}] * 2}
    result = replace(RESULT, outputs=(), predictions=("5", "5"), details=details)
    held = read(tmp_path, header(), result.to_json())
    assert 4 == len(held.responses("sums", "a", Query("asked", "m", 2)) or ())
