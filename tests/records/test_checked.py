"""What cannot be a model's answer is refused with the field and its value; what can be becomes plain values."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pytest_lmeval.records.checked import checked
from pytest_lmeval.types import Completion, Exchange, Generate, LogProb, ToolCall
from tests.tables import each_row

NO_NUMBERS = [math.nan, math.inf, -math.inf, -1, -1e-9, 1e16, 10**400, True, "5", b"5", [], {}, object()]
_CIRCLE: list[Any] = []
_CIRCLE.append(_CIRCLE)


def _made(**fields: Any) -> Completion:
    return Completion(**{"text": "4", **fields})


class Word(str):
    """A text that is more than a text."""


@pytest.mark.parametrize("name", ["latency_ms", "ttft_ms", "cost"])
def test_a_number_is_finite_and_not_negative(name: str) -> None:
    refused = []
    for value in NO_NUMBERS:
        with pytest.raises(ValueError, match=name) as caught:
            checked(_made(**{name: value}))
        refused.append(str(caught.value))
    assert refused[0] == f"{name} nan; expected a finite number from 0 to 1e+15"


@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens", "reasoning_tokens", "retries"])
def test_a_count_is_whole_and_not_negative(name: str) -> None:
    for value in [*NO_NUMBERS, 1.5]:
        with pytest.raises(ValueError, match=f"{name} .*; expected a whole number from 0"):
            checked(_made(**{name: value}))


@pytest.mark.parametrize("name", ["text", "thoughts", "finish_reason"])
def test_a_text_is_text(name: str) -> None:
    for value in [5, b"x", ["x"], 0.5, object()]:
        with pytest.raises(ValueError, match=f"{name} .*; expected text"):
            checked(_made(**{name: value}))


@each_row(
    ("fields", "says"),
    [
        ({"text": None}, "text None; expected text"),
        ({"logprobs": "abc"}, "logprobs 'abc'; expected a list of log-probabilities"),
        ({"logprobs": (-0.1, math.nan)}, "logprobs nan; expected a log-probability that is a finite number"),
        ({"logprobs": [None]}, "logprobs None; expected a log-probability that is a finite number"),
        ({"confidence": 1.5}, "confidence 1.5; expected a number in [0, 1]"),
        ({"confidence": True}, "confidence True; expected a number in [0, 1]"),
        ({"cached": "no"}, "cached 'no'; expected true or false"),
        ({"tool_calls": "add"}, "tool_calls 'add'; expected a list of (id, name, arguments)"),
        ({"tool_calls": {"name": "add"}}, "tool_calls {'name': 'add'}; expected a list of (id, name, arguments)"),
        ({"tool_calls": [None]}, "tool calls that are not (id, name, arguments): None"),
        ({"tool_calls": [("", 3, "{}")]}, "tool calls that are not (id, name, arguments): ('', 3, '{}')"),
        (
            {"tool_calls": [("", "add", _CIRCLE)]},
            "tool calls whose arguments are not JSON: Circular reference detected",
        ),
    ],
)
def test_what_cannot_be_an_answer_is_refused_with_its_value(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        checked(_made(**fields))
    assert says == str(caught.value)


def test_the_requests_of_an_answer_are_the_run_s_to_tell() -> None:
    inner = Exchange(Generate("?"), Completion("4"))
    with pytest.raises(ValueError, match=r"exchanges .*; expected nothing, since the run itself fills it"):
        checked(Completion("4", exchanges=(inner,)))
    with pytest.raises(ValueError, match=r"asides .*; expected nothing, since the run itself fills it"):
        checked(Completion("4", asides=({"user": "mine"},)))


def test_other_types_of_numbers_and_texts_become_plain_ones() -> None:
    found = checked(
        _made(
            text=Word("4"),
            latency_ms=Decimal("7.5"),
            finish_reason=None,
            prompt_tokens=3.0,
            cost=Fraction(1, 2),
            logprobs=[-1],
            thoughts=None,
            tool_calls=[("", Word("add"), {"a": 1})],
        )
    )
    call = ToolCall("call00000", "add", '{"a": 1}')
    assert Completion("4", 7.5, "", 3, cost=0.5, logprobs=(-1.0,), tool_calls=(call,)) == found
    assert isinstance(found, Completion)
    kinds = [type(value) for value in (found.text, found.latency_ms, found.prompt_tokens, found.cost)]
    assert [str, float, int, float] == kinds


def test_an_answer_that_is_right_is_passed_on_as_it_is() -> None:
    answer = Completion("4", 7.5, "stop", 3, 1, 0.5, (-0.1,), 0.5, "2 and 2", 1, ttft_ms=1.0, cached=True, retries=1)
    assert answer == checked(answer)


@each_row(
    ("fields", "says"),
    [
        ({"total": math.nan}, "total nan; expected a log-probability that is a finite number"),
        ({"tokens": "ab"}, "tokens 'ab'; expected a list of log-probabilities"),
        ({"greedy": "yes"}, "greedy 'yes'; expected true or false"),
        ({"latency_ms": -1.0}, "latency_ms -1.0; expected a finite number from 0 to 1e+15"),
        ({"tokens": (-1.0,), "ids": (1, 2)}, "2 ids for 1 tokens of a continuation"),
        ({"ids": 5}, "ids 5; expected a list of numbers or texts"),
    ],
)
def test_a_log_probability_is_checked_likewise(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        checked(LogProb(**{"total": -1.0, **fields}))
    assert says == str(caught.value)
