"""What ``eval_task`` takes, and which functions it goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from pytest_lmeval import eval_task
from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.declare import declared
from tests.tables import each_row


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return function(*arguments, **named)

    return call


def plain() -> None:
    """Do nothing."""


async def waits() -> None:
    """Do nothing."""


@each_row(
    ("arguments", "said"),
    [
        ({"tags": [""]}, "tags: expected a list of texts"),
        ({"tags": "fast"}, "tags: expected a list of texts"),
        ({"tags": [1]}, "tags: expected a list of texts"),
        ({"score": " "}, "score: expected a text that is not empty"),
        ({"threshold": True}, "threshold: expected a number from 0 to 1, got True"),
        ({"min_score": -0.1}, "min_score: expected a number from 0 to 1, got -0.1"),
        ({"timeout": float("-inf")}, "timeout: expected seconds above 0"),
    ],
)
def test_a_value_out_of_range_is_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        eval_task("x", **arguments)


@each_row(
    ("function", "is_async"),
    [(plain, False), (waits, True), (wrapped(waits), True), (wrapped(wrapped(waits)), True), (wrapped(plain), False)],
)
def test_a_function_is_async_if_what_it_wraps_is(function: Callable[..., Any], is_async: bool) -> None:
    found = declared(eval_task("x")(function))
    assert found is not None
    assert is_async == found.is_async


def test_threads_are_for_functions_that_wrap_no_async_one() -> None:
    with pytest.raises(UsageError, match="threads=True is for def functions"):
        eval_task("x", threads=True)(wrapped(waits))
    assert declared(eval_task("x", threads=True)(wrapped(plain))) is not None


@each_row("given", [object(), functools.partial(plain), type("Called", (), {"__call__": plain})()])
def test_what_is_no_function_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="decorates a function, not"):
        eval_task("x")(given)
