"""From what a task class says of an item to the conversation that a model is asked to go on with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.data.splits import Row
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.python.faults import called
from pytest_lmeval.formats.python.items import Items, Place
from pytest_lmeval.tasks.base import BaseTask
from pytest_lmeval.types import Message


def conversation(task: BaseTask[Any], items: Items, place: Place) -> tuple[Message, ...]:
    """Return the system prompt, the worked examples, the question and the cue, whichever of them there are."""
    item = items.item(place)
    messages = []
    system = text_of(task, "_get_system_prompt_text", item)
    for shot in _few_shots(task, items, place):
        messages.append(Message("user", text_of(task, "_get_instruction_text", shot)))
        messages.append(Message("assistant", text_of(task, "_get_fewshot_target_text", shot)))
    question = text_of(task, "_get_instruction_text", item)
    if not question:
        raise RecordRefused("bad_value", f"{_name(task)}._get_instruction_text", "expected a question, got no text")
    messages.append(Message("user", question))
    initial = text_of(task, "_get_initial_prompt_text", item)
    if initial:
        messages[0] = Message("user", f"{initial}\n\n{messages[0].content}")
    cue = text_of(task, "_get_cue_text", item)
    ends = [Message("assistant", cue)] if cue else []
    return (*([Message("system", system)] if system else []), *messages, *ends)


def text_of(task: BaseTask[Any], method: str, item: Row) -> str:
    """Return what one of the task's methods says of an item; None counts as no text."""
    field = f"{_name(task)}.{method}"
    value = called(field, getattr(task, method), item)
    if value is None and method != "_get_instruction_text":
        return ""
    if not isinstance(value, str):
        raise RecordRefused("bad_type", field, f"expected text, got {value!r:.80}")
    return value


def texts_of(task: BaseTask[Any], method: str, item: Row) -> tuple[str, ...]:
    """Return the texts that one of the task's methods gives for an item, at least one."""
    field = f"{_name(task)}.{method}"
    function: Callable[[Row], Any] = getattr(task, method)
    value = called(field, function, item)
    texts = (value,) if isinstance(value, str) else value
    if texts is None:
        raise RecordRefused("bad_value", field, "expected text or a list of texts, got None")
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise RecordRefused("bad_type", field, f"expected text or a list of texts, got {value!r:.80}")
    return tuple(texts)


def _few_shots(task: BaseTask[Any], items: Items, place: Place) -> Sequence[Row]:
    if task.num_fewshot == 0:
        return ()
    field = f"{_name(task)}._sample_fewshot_examples"
    dataset = items.drawn(place)
    dataset.leaves_out = True
    task.dataset = dataset
    try:
        shots: Any = called(field, task._sample_fewshot_examples, items.item(place))
    finally:
        dataset.leaves_out = False
    if (
        isinstance(shots, str)
        or not isinstance(shots, Sequence)
        or not all(isinstance(shot, Mapping) for shot in shots)
    ):
        raise RecordRefused("bad_type", field, f"expected a list of items, got {shots!r:.80}")
    return [items.named(dict(shot), place) for shot in shots]


def _name(task: object) -> str:
    return type(task).__name__
