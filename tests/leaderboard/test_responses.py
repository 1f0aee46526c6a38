"""What is shown of a result: what was wanted, and what was answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_lmeval.leaderboard.explained import answers_in, wanted_of, wanted_text
from pytest_lmeval.types import ExampleResult


def result(targets: Sequence[str] = (), metric: str = "tool_calls", **details: Any) -> ExampleResult:
    return ExampleResult("t", "a", "failed", 0.0, 1.0, metric, "h", targets=tuple(targets), details=details)


@pytest.mark.parametrize(
    ("shown", "wanted", "text", "plain"),
    [
        (result(["a", "b"], "f1"), ["a", "b"], "'a' | 'b'", "a | b"),
        (result(expected=["f(a=1)", "g()"]), ["f(a=1)", "g()"], "f(a=1), g()", "f(a=1), g()"),
        (result(expected=[]), ["no call"], "no call", "no call"),
        (result(repeats=[{"expected": ["g()"]}, {}]), ["g()"], "g()", "g()"),
        (result(["a"], expected=["g()"]), ["a"], "'a'", "a"),
        (result(metric="own", expected=["g()"]), [], "", ""),
        (result(expected="g()"), [], "", ""),
        (result(expected=[1]), [], "", ""),
        (result(), [], "", ""),
    ],
)
def test_what_was_wanted_are_targets_or_calls(shown: ExampleResult, wanted: list[str], text: str, plain: str) -> None:
    assert (wanted, text, plain) == (list(wanted_of(shown)), wanted_text(shown), wanted_text(shown, quoted=False))


@pytest.mark.parametrize(
    ("output", "answers"),
    [('["a","b"]', ["a", "b"]), ("a", ["a"]), ("[1]", ["[1]"]), ('{"a": 1}', ['{"a": 1}']), ("[" * 100_000, None)],
)
def test_the_answers_of_a_conversation_are_told_apart(output: str, answers: list[str] | None) -> None:
    assert (answers or [output]) == list(answers_in(output))
