"""What ``lm`` does without a run: messages and tools in, errors out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_lmeval.errors import AdapterError, BudgetSpent, UsageError
from pytest_lmeval.functions.asker import messages_of
from pytest_lmeval.functions.example import ExampleState, close_failed, open_request
from pytest_lmeval.functions.lm import LmBase
from pytest_lmeval.types import Completion, Message, ToolCall
from tests.tables import each_row

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}


def state() -> ExampleState:
    return ExampleState("task", "a", 0, lambda state, message: None)


def test_a_completion_shows_only_the_fields_that_were_given() -> None:
    assert "Completion(text='Riga', cost=0.5)" == repr(Completion("Riga", cost=0.5))


def test_it_says_whose_it_is() -> None:
    lm = LmBase(None)
    assert "<lm>" == repr(lm)
    lm.enter(state())
    assert "<lm of task: a>" == repr(lm)


def test_before_its_example_it_records_nothing() -> None:
    with pytest.raises(UsageError, match="lm was used before its example began"):
        LmBase(None).score("ok", 1)


@each_row(
    ("prompt", "expected"),
    [
        ("text", "text"),
        ([{"role": "user", "content": "hi"}], (Message("user", "hi"),)),
        ([Message("user", "hi")], (Message("user", "hi"),)),
        (
            [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
            (Message("assistant", "", (ToolCall("c1", "search", "{}"),)),),
        ),
        (
            [{"role": "assistant", "content": ["x"], "tool_calls": [CALL]}],
            (Message("assistant", "x", (ToolCall("c1", "search", "{}"),)),),
        ),
        ([{"role": "tool", "content": "x", "tool_call_id": "c1"}], (Message("tool", "x", (), "c1"),)),
        ([], None),
        (5, None),
        ([5], None),
        ([{"role": "user"}], None),
        ([{"role": 1, "content": "x"}], None),
        ([{"role": "assistant", "content": [{"type": "text"}], "tool_calls": [CALL]}], None),
        ([{"role": "assistant", "content": 5, "tool_calls": [CALL]}], None),
        ([{"role": "assistant", "content": None, "tool_calls": [5]}], None),
        ([{"role": "assistant", "content": None, "tool_calls": [{"function": {"name": 5}}]}], None),
    ],
)
def test_a_prompt_is_text_or_messages(prompt: Any, expected: object) -> None:
    if expected is not None:
        assert expected == messages_of(prompt)
        return
    with pytest.raises(UsageError, match=r"lm\.ask: expected"):
        messages_of(prompt)


@each_row(
    ("error", "allowed", "fails", "cancelled"),
    [
        (AdapterError("no answer"), False, True, False),
        (AdapterError("no answer"), True, False, False),
        (BudgetSpent("spent"), True, True, False),
        (asyncio.CancelledError(), False, False, True),
        (GeneratorExit(), False, False, True),
        (KeyboardInterrupt(), False, False, False),
    ],
)
def test_a_request_without_an_answer_makes_an_error_unless_it_may_fail_or_was_cancelled(
    error: BaseException, allowed: bool, fails: bool, cancelled: bool
) -> None:
    example, lm = state(), LmBase(None)
    lm.enter(example)
    if allowed:
        with lm.may_fail():
            _, step = open_request(example, "stub", "hi", {})
    else:
        _, step = open_request(example, "stub", "hi", {})
    # Whether it may fail is settled where it begins.
    assert (True, 0) == (step.is_open, example.may_fail)
    close_failed(example, step, error)
    assert (fails, cancelled) == (example.failure is not None, step.cancelled)
    assert ("" if cancelled else str(error) or type(error).__name__) == step.error
    assert not step.is_open


def test_blocks_within_which_requests_may_fail_nest_and_end_with_an_exception() -> None:
    example, lm = state(), LmBase(None)
    lm.enter(example)
    seen = []

    def fail() -> None:
        with lm.may_fail():
            with lm.may_fail():
                seen.append(example.may_fail)
            seen.append(example.may_fail)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert ([2, 1], 0) == (seen, example.may_fail)


def test_a_span_lasts_as_long_as_its_block_and_keeps_why_it_ended() -> None:
    example, lm = state(), LmBase(None)
    lm.enter(example)
    with lm.span("one") as step:
        step.output = {1}
    with pytest.raises(KeyError), lm.span("two", kind="tool"):
        raise KeyError("x")
    one, two = lm.trace
    assert ("span", "one", "{1}", "") == (one.kind, one.name, one.output, one.error)
    assert ("tool", "two", "KeyError: 'x'") == (two.kind, two.name, two.error)
    assert all(each.ms is not None for each in lm.trace)
