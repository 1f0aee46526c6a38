"""Views of conversations, and what mixes them."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.tasks import Task, TaskMixture, TaskSequence, render_mc


class Numbers(Task):
    """Conversations that are told apart by a number; it notes which were fetched."""

    def __init__(self, name: str, count: int, **view: Any) -> None:
        super().__init__(**view)
        self.name = name
        self.count = count
        self.fetched: list[int] = []

    @property
    def eval_type(self) -> str:
        return "generative"

    def num_examples(self) -> int:
        return self.count

    def get_example(self, index: int) -> dict[str, Any]:
        self.fetched.append(index)
        return {"messages": [], "key": (self.name, index)}

    def evaluate(self, conversation: dict[str, Any], assistant_response: str) -> bool:
        return True


def _keys(task: Task) -> list[tuple[str, int]]:
    return [conversation["key"] for conversation in task]  # type: ignore[attr-defined]


@given(st.integers(0, 30), st.integers(0, 35), st.none() | st.integers(0, 35), st.integers(1, 7))
def test_a_view_is_the_slice_of_the_whole(count: int, start: int, stop: int | None, step: int) -> None:
    view = Numbers("n", count, start=start, stop=stop, step=step)

    assert [("n", index) for index in range(count)[start:stop:step]] == _keys(view)
    assert len(range(count)[start:stop:step]) == len(view)


def test_only_what_is_asked_for_is_fetched() -> None:
    task = Numbers("n", 1_000_000, start=10, step=5)

    assert ("n", 20) == task[2]["key"]
    assert [20] == task.fetched


def test_a_class_that_forgets_the_base_constructor_is_a_whole_view() -> None:
    class Forgetful(Numbers):
        def __init__(self) -> None:
            self.name, self.count, self.fetched = "n", 3, []

    assert 3 == len(Forgetful())


def test_a_step_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="step: expected a whole number >= 1, got 0"):
        Task(step=0)


def test_a_sequence_keeps_the_order() -> None:
    sequence = TaskSequence([Numbers("a", 2), Numbers("b", 4, start=1, step=2)])

    assert [("a", 0), ("a", 1), ("b", 1), ("b", 3)] == _keys(sequence)


def test_a_mixture_holds_every_example_in_an_order_that_never_changes() -> None:
    parts = [Numbers("a", 40), Numbers("b", 20)]
    mixed = _keys(TaskMixture(parts))

    assert mixed == _keys(TaskMixture(parts))
    assert sorted(_keys(TaskSequence(parts))) == sorted(mixed)
    assert _keys(TaskSequence(parts)) != mixed
    assert {"a", "b"} == {name for name, _ in mixed[:10]}


def test_a_task_listed_twice_has_its_examples_twice() -> None:
    rare = Numbers("rare", 3)

    assert {("rare", 0): 2, ("rare", 1): 2, ("rare", 2): 2, ("a", 0): 1} == Counter(
        _keys(TaskMixture([rare, Numbers("a", 1), rare]))
    )


@pytest.mark.parametrize(
    ("bounds", "fault"),
    [
        ({"start": -1}, "start: expected a whole number >= 0, got -1"),
        ({"stop": -2}, "stop: expected a whole number >= 0, got -2"),
        ({"start": 1.5}, "start: expected a whole number >= 0, got 1.5"),
        ({"stop": True}, "stop: expected a whole number >= 0, got True"),
        ({"step": 0}, "step: expected a whole number >= 1, got 0"),
    ],
)
def test_bounds_that_would_leave_examples_out_in_silence_are_refused(bounds: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=re.escape(fault)):
        Numbers("n", 5, **bounds)


def test_a_mixture_can_be_sliced() -> None:
    parts = [Numbers("a", 5), Numbers("b", 5)]

    assert _keys(TaskMixture(parts))[2:8:3] == _keys(TaskMixture(parts, start=2, stop=8, step=3))


def test_a_mixture_leaves_evaluating_to_the_tasks() -> None:
    with pytest.raises(TypeError, match=r"tasks\[order\[index\]\[0\]\]"):
        TaskMixture([Numbers("a", 1)]).evaluate({}, "x")


def test_multiple_choice_puts_the_letter_right_behind_its_choice() -> None:
    expected = (
        "Multiple Choice question: Which is a colour?\n- red=A\n- ten=B\n\n"
        "Respond only with the letter of the correct answer."
    )

    assert expected == render_mc("Which is a colour?", ("A", "B"), ["red", "ten"])
