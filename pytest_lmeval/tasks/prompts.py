"""From what a task class says of an item to the conversation that a model is asked to go on with."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """The splits as one item sees them: while its few-shots are drawn, it is in none of them itself."""

    leaves_out = False

    @abstractmethod
    def named(self, row: Row) -> Row:
        """Return a copy of ``row`` with the subject of the item."""

    @contextmanager
    def without_item(self) -> Iterator[None]:
        """Leave the item out of the splits."""
        self.leaves_out = True
        try:
            yield
        finally:
            self.leaves_out = False


class Others(Sequence[Row]):
    """All rows but one, none of them copied."""

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
        """Return ``number`` rows as eval-framework draws them: one more of all rows, without the one left out."""
        places = random.sample(range(len(self._rows)), number + 1)
        return [self._rows[place] for place in places if place != self._left_out][:number]


def question_of(task: BaseTask[Any], item: Row) -> list[Message]:
    """Return the messages that ask about an item, its suffix put to the last of the user."""
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
    """Return the system prompt, the worked examples, the question and the cue, whichever of them there are."""
    messages = [*messages_of(task, "_get_example_messages", item), *question_of(task, item)]
    initial = text_of(task, "_get_initial_prompt_text", item)
    if initial:
        first = messages[0]
        if first.role != "user":
            detail = f"the first message is of the {first.role}; it has to come before one of the user"
            raise RecordRefused("bad_value", _field(task, "_get_initial_prompt_text"), detail)
        messages[0] = Message("user", f"{initial}\n\n{first.content}")
    system, cue = text_of(task, "_get_system_prompt_text", item), text_of(task, "_get_cue_text", item)
    begins = [Message("system", system)] if system else []
    ends = [Message("assistant", cue)] if cue else []
    return [*begins, *messages, *ends]


def worked_examples(task: BaseTask[Any], item: Row) -> list[Message]:
    """Return the question and the answer of each few-shot."""
    messages: list[Message] = []
    for shot in _few_shots(task, item):
        messages += messages_of(task, "_get_instruction_messages", shot)
        messages.append(Message("assistant", text_of(task, "_get_fewshot_target_text", shot)))
    return messages


def messages_of(task: BaseTask[Any], method: str, item: Row) -> list[Message]:
    """Return the messages that one of the task's methods gives for an item."""
    field = _field(task, method)
    function: Callable[[Row], Any] = getattr(task, method)
    return checked_messages(field, called(field, function, item))


def checked_messages(field: str, given: Any) -> list[Message]:
    """Return what the task's ``field`` gave as messages; raise RecordRefused where it is something else."""
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
    """Return what one of the task's methods says of an item; None counts as no text."""
    field = _field(task, method)
    value = called(field, getattr(task, method), item)
    if value is None and method != "_get_instruction_text":
        return ""
    if not isinstance(value, str):
        raise RecordRefused("bad_type", field, f"expected text, got {value!r:.80}")
    return value


def texts_of(task: BaseTask[Any], method: str, item: Row) -> tuple[str, ...]:
    """Return the texts that one of the task's methods gives for an item, at least one."""
    field = _field(task, method)
    function: Callable[[Row], Any] = getattr(task, method)
    return checked_texts(field, called(field, function, item))


def checked_texts(field: str, given: Any) -> tuple[str, ...]:
    """Return what the task's ``field`` gave as texts; raise RecordRefused where it gave no text."""
    texts = (given,) if isinstance(given, str) else given
    if texts is None:
        raise RecordRefused("bad_value", field, "expected text or a list of texts, got None")
    if not isinstance(texts, list | tuple) or not texts or not all(isinstance(text, str) for text in texts):
        raise RecordRefused("bad_type", field, f"expected text or a list of texts, got {given!r:.80}")
    return tuple(texts)


def context_of(task: BaseTask[Any], item: Row) -> Any:
    """Return what the task's metrics need of an item besides the ground truth."""
    field = _field(task, "_get_context")
    return checked_context(field, called(field, task._get_context, item))


def checked_context(field: str, given: Any) -> Any:
    """Return what the task's ``field`` gave as a context; raise RecordRefused where it is something else."""
    if not (given is None or isinstance(given, BaseMetricContext | Mapping) or hasattr(given, "model_dump")):
        raise RecordRefused("bad_type", field, f"expected a BaseMetricContext or None, got {given!r:.80}")
    return given


def _few_shots(task: BaseTask[Any], item: Row) -> Sequence[Row]:
    if task.num_fewshot == 0:
        return ()
    field = _field(task, "_sample_fewshot_examples")
    splits = task.dataset
    if not isinstance(splits, ItemSplits):
        raise RecordRefused("bad_value", field, "the items of the run are not in self.dataset any more")
    with splits.without_item():
        shots: Any = called(field, task._sample_fewshot_examples, dict(item))
    if (
        isinstance(shots, str)
        or not isinstance(shots, Sequence)
        or not all(isinstance(shot, Mapping) for shot in shots)
    ):
        raise RecordRefused("bad_type", field, f"expected a list of items, got {shots!r:.80}")
    return [splits.named(dict(shot)) for shot in shots]


def _field(task: object, method: str) -> str:
    return f"{type(task).__name__}.{method}"
