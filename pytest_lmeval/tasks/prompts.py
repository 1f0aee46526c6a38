"""Build the conversation about an item by calling a task class's methods, and check the methods' results."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks.faults import called
from pytest_lmeval.tasks.sample import BaseMetricContext
from pytest_lmeval.types import Message

if TYPE_CHECKING:
    from pytest_lmeval.tasks.base import BaseTask

Row = dict[str, Any]
ROLES = ("system", "user", "assistant")


class ItemSplits(Mapping[str, Sequence[Row]]):
    """A dataset's splits for the methods of one item, which is excluded while its few-shot examples are drawn."""

    leaves_out = False

    @abstractmethod
    def named(self, row: Row) -> Row:
        """Return a copy of ``row`` with the item's subject."""

    @contextmanager
    def without_item(self) -> Iterator[None]:
        """Exclude the item from the splits within a ``with`` block."""
        self.leaves_out = True
        try:
            yield
        finally:
            self.leaves_out = False


class Others(Sequence[Row]):
    """All rows except the row at ``left_out``; rows are not copied."""

    def __init__(self, rows: Sequence[Row], left_out: int) -> None:
        self._rows = rows
        self._left_out = left_out

    def __len__(self) -> int:
        return len(self._rows) - 1

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return self._rows[place if place < self._left_out else place + 1]

    def drawn(self, random: Random, number: int) -> list[Row]:
        """Draw ``number`` rows as eval-framework does: draw one extra, then drop the excluded row or the last one."""
        places = random.sample(range(len(self._rows)), number + 1)
        return [self._rows[place] for place in places if place != self._left_out][:number]


def question_of(task: BaseTask[Any], item: Row) -> list[Message]:
    """Return the question about an item; append the task's suffix to the last user message."""
    messages = messages_of(task, "_get_instruction_messages", item)
    if not any(message.content for message in messages):
        raise RecordRefused("bad_value", _field(task, "_get_instruction_text"), "expected a question, got no text")
    if task.user_prompt_suffix is not None:
        place = max((place for place, each in enumerate(messages) if each.role == "user"), default=None)
        if place is None:
            raise RecordRefused("bad_value", _field(task, "user_prompt_suffix"), "no message of the user")
        messages[place] = Message("user", f"{messages[place].content}{task.user_prompt_suffix}")
    return messages


def conversation(task: BaseTask[Any], item: Row) -> list[Message]:
    """Return the system prompt, the few-shot examples, the question and the cue, omitting any that do not exist."""
    messages = [*messages_of(task, "_get_example_messages", item), *question_of(task, item)]
    initial = text_of(task, "_get_initial_prompt_text", item)
    if initial:
        first = messages[0]
        if first.role != "user":
            detail = f"the first message is of the {first.role}; expected one of the user"
            raise RecordRefused("bad_value", _field(task, "_get_initial_prompt_text"), detail)
        messages[0] = Message("user", f"{initial}\n\n{first.content}")
    system, cue = text_of(task, "_get_system_prompt_text", item), text_of(task, "_get_cue_text", item)
    begins = [Message("system", system)] if system else []
    ends = [Message("assistant", cue)] if cue else []
    return [*begins, *messages, *ends]


def worked_examples(task: BaseTask[Any], item: Row) -> list[Message]:
    """Return the question and answer of each few-shot example."""
    messages: list[Message] = []
    for shot in _few_shots(task, item):
        messages += messages_of(task, "_get_instruction_messages", shot)
        messages.append(Message("assistant", text_of(task, "_get_fewshot_target_text", shot)))
    return messages


def messages_of(task: BaseTask[Any], method: str, item: Row) -> list[Message]:
    """Return the messages that the task's ``method`` returns for an item."""
    return checked_messages(*_result(task, method, item))


def checked_messages(field: str, given: Any) -> list[Message]:
    """Return ``given``, the result of the method ``field``, as messages; raise RecordRefused for any other type."""
    if not isinstance(given, list | tuple):
        raise RecordRefused("bad_type", field, f"expected a list of messages, got {given!r:.80}")
    return [_message(field, each) for each in given]


def _message(field: str, given: Any) -> Message:
    role, content = getattr(given, "role", None), getattr(given, "content", None)
    if not isinstance(role, str) or role not in ROLES or not isinstance(content, str):
        wanted = f"Message(role, content), role one of {', '.join(ROLES)}"
        raise RecordRefused("bad_type", field, f"expected {wanted}, got {given!r:.80}")
    return given if type(given) is Message and type(role) is str else Message(ROLES[ROLES.index(role)], content)


def text_of(task: BaseTask[Any], method: str, item: Row) -> str:
    """Return the text that the task's ``method`` returns for an item; None counts as empty, except for a question."""
    field, value = _result(task, method, item)
    if value is None and method != "_get_instruction_text":
        return ""
    if not isinstance(value, str):
        raise RecordRefused("bad_type", field, f"expected text, got {value!r:.80}")
    return value


def texts_of(task: BaseTask[Any], method: str, item: Row) -> tuple[str, ...]:
    """Return an item's strings from the task's ``method``; raise RecordRefused for an empty list or another type."""
    return checked_texts(*_result(task, method, item))


def truths_of(task: BaseTask[Any], item: Row) -> tuple[str, ...]:
    """Return an item's correct answers; None becomes an empty string if no metric needs a correct answer."""
    field, given = _result(task, "_get_ground_truth", item)
    metrics = getattr(task, "METRICS", ())
    if given is None and all(getattr(metric, "NEEDS_TARGETS", True) is False for metric in metrics):
        return ("",)
    return checked_texts(field, given)


def checked_texts(field: str, given: Any) -> tuple[str, ...]:
    """Return a method's result ``given`` as strings; raise RecordRefused for an empty list or another type."""
    texts = (given,) if isinstance(given, str) else given
    if texts is None:
        raise RecordRefused("bad_value", field, "expected text or a list of texts, got None")
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise RecordRefused("bad_type", field, f"expected text or a list of texts, got {given!r:.80}")
    return tuple(texts)


def context_of(task: BaseTask[Any], item: Row) -> Any:
    """Return an item's metric context."""
    return checked_context(*_result(task, "_get_context", item))


def checked_context(field: str, given: Any) -> Any:
    """Return ``given``, the result of the method ``field``; raise RecordRefused if it is not a metric context."""
    if not (given is None or isinstance(given, BaseMetricContext | Mapping) or hasattr(given, "model_dump")):
        raise RecordRefused("bad_type", field, f"expected a BaseMetricContext or None, got {given!r:.80}")
    return given


def _few_shots(task: BaseTask[Any], item: Row) -> Sequence[Row]:
    if task.num_fewshot == 0:
        return ()
    field = _field(task, "_sample_fewshot_examples")
    splits = task.dataset
    if not isinstance(splits, ItemSplits):
        raise RecordRefused("bad_value", field, "self.dataset no longer has the items of the run")
    with splits.without_item():
        shots: Any = called(field, task._sample_fewshot_examples, dict(item))
    if (
        isinstance(shots, str)
        or not isinstance(shots, Sequence)
        or not all(isinstance(shot, Mapping) for shot in shots)
    ):
        raise RecordRefused("bad_type", field, f"expected a list of items, got {shots!r:.80}")
    return [splits.named(dict(shot)) for shot in shots]


def _result(task: BaseTask[Any], method: str, item: Row) -> tuple[str, Any]:
    field = _field(task, method)
    return field, called(field, getattr(task, method), item)


def _field(task: object, method: str) -> str:
    return f"{type(task).__name__}.{method}"
