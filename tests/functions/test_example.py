"""What one example records while it runs, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest

from pytest_lmeval.errors import LmevalError, ScoringError, UsageError
from pytest_lmeval.functions.example import ExampleState, as_json, cut
from tests.tables import each_row


def state(said: list[str] | None = None) -> ExampleState:
    heard: list[str] = [] if said is None else said
    return ExampleState("task", "a", 0, lambda state, message: heard.append(message))


class Odd:
    def __float__(self) -> float:
        raise TypeError("no number")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@each_row(
    ("value", "kept"),
    [(0, 0.0), (1, 1.0), (True, 1.0), (False, 0.0), (0.25, 0.25), (1.0000001, None), (2, None), (-0.1, None),
     (float("nan"), None), (float("inf"), None), ("1", None), (Odd, None), (1j, None)],
)  # fmt: skip
def test_a_score_is_a_number_from_0_to_1(value: object, kept: float | None) -> None:
    example = state()
    if kept is not None:
        example.score("ok", value)
        assert {"ok": kept} == example.scores
        return
    with pytest.raises(ScoringError, match="expected a bool, a number from 0 to 1, or None"):
        example.score("ok", value)
    assert {} == example.scores
    assert isinstance(example.failure, ScoringError)


@each_row(
    ("value", "kept"),
    [(None, None), ("", ""), (0.5, 0.5), ({"a": (1, 2)}, {"a": [1, 2]}), ({1: 2}, {"1": 2}),
     (MappingProxyType({"a": 1}), {"a": 1}), ([{1, 2}], ["{1, 2}"]), (float("nan"), "nan"),
     ({(1, 2): 3}, "{(1, 2): 3}"), (b"x", "b'x'")],
)  # fmt: skip
def test_an_output_is_json_or_else_its_repr(value: object, kept: object) -> None:
    example = state()
    example.record_output(value)
    assert kept == example.output


def test_what_has_neither_json_nor_a_repr_is_named_by_its_type() -> None:
    assert "a Odd without a repr (RuntimeError)" == as_json(Odd())[0]


def test_a_value_of_more_than_1_mib_makes_the_example_an_error() -> None:
    uses: list[Callable[[ExampleState, Any], object]] = [
        ExampleState.record_output,
        lambda example, text: example.note("name", text),
        lambda example, text: example.step("tool", "x", text, None),
        lambda example, text: example.step("tool", "x", None, text),
    ]
    for use in uses:
        example = state()
        use(example, "x" * (1 << 20))
        with pytest.raises(UsageError, match="1,048,577 characters; a step holds at most 1,048,576"):
            use(example, "x" * ((1 << 20) + 1))
        assert isinstance(example.failure, UsageError)


def test_text_is_cut_at_1_mib_and_what_is_left_counted() -> None:
    whole = "x" * (1 << 20)
    assert whole == cut(whole)
    assert [{"content": f"{whole} [1 more characters]"}] == cut([{"content": f"{whole}y"}])


def test_after_its_end_nothing_is_recorded_and_the_example_is_an_error() -> None:
    said: list[str] = []
    uses: list[Callable[[ExampleState], object]] = [
        lambda example: example.score("ok", 0),
        lambda example: example.record_output("late"),
        lambda example: example.note("late", 1),
        lambda example: example.step("tool", "late", None, None),
    ]
    for use in uses:
        example = state(said)
        example.score("ok", 1)
        example.end()
        with pytest.raises(UsageError, match=r"after its example had ended \(task: a\)"):
            use(example)
        assert ({"ok": 1.0}, None, {}, []) == (example.scores, example.output, example.notes, example.steps)
        assert isinstance(example.failure, LmevalError)
    assert len(uses) == len(said)


def test_what_was_called_and_never_awaited_is_left_undone() -> None:
    example = state()
    kept, left = example.unused.awaited("lm.ask"), example.unused.awaited("lm.judge")
    example.unused.mark_used(kept)
    example.end()
    assert "lm.judge was never awaited, so nothing was asked: write await lm.judge(...)" in example.left
    assert "test_example.py:" in example.left
    example = state()
    example.unused.mark_used(example.unused.awaited("lm.ask"))
    example.end()
    assert "" == example.left
    assert left is not kept
