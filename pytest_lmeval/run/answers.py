"""From the units of a plan to the answers of one model; each unit is asked at its turn or ahead of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.asking.engine import Engine, Hooks
from pytest_lmeval.asking.rounds import Conversation
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import Example, Exchange, Generate, Joined, Message, Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.run.plan import RunPlan, Unit
    from pytest_lmeval.run.resume import Recorded
    from pytest_lmeval.task import Prompt, Task

Render = Callable[[Example], Any]
"""From an example to its prompt, text or messages."""
Note = Callable[[str, str, Exchange], None]
"""Takes the task and the id of an example with a request that it made and the answer."""


class Model(NamedTuple):
    """The adapter (None until it is made), its name, and a key that differs between adapters of one name."""

    adapter: Any = None
    name: str = ""
    key: str = ""


class ModelAnswers:
    """The answers of ``model`` to the units of ``plan``.

    ``connect`` returns the engine that asks, with what it is to know of the units. ``recorded`` are the answers of an
    earlier run; ``note`` is called with each answer that is a step to a response.
    """

    def __init__(
        self,
        plan: RunPlan,
        model: Model,
        repeats: int,
        connect: Callable[[Hooks], Engine],
        recorded: Recorded | None,
        note: Note,
    ) -> None:
        self.plan = plan
        self.model = model
        self._repeats = repeats
        self._recorded = recorded
        self._note = note
        self._refuses = bool(plan.no_programs or plan.lacking)
        # As they are put to this adapter; the units keep theirs.
        self._tasks = {
            id(task): task.prepared(model.adapter) for task in {id(u.task): u.task for u in plan.units}.values()
        }
        self._asked: dict[Unit, tuple[Prompt, Sequence[Request]]] = {}
        self.engine = connect(Hooks(None if recorded is None else recorded.responses, self._converse))

    def through(self, engine: Any) -> ModelAnswers:
        """Return these answers, asked through ``engine``: an object that a conftest put in place of the engine."""
        others = copy(self)
        others.engine = engine
        return others

    def task(self, unit: Unit) -> Task:
        """Return the task of a unit, as it is put to the model."""
        return self._tasks.get(id(unit.task)) or unit.task

    def respond(self, unit: Unit, render: Render) -> list[Response]:
        """Return the responses to a unit; raise the error if there was no response."""
        if self._refuses and (refusal := self.plan.refusal(unit)):
            raise AdapterError(refusal)
        return self.engine.respond(unit, partial(self._requests, render))

    def asked(self, unit: Unit) -> tuple[Prompt, Sequence[Request]] | None:
        """Return prompt and requests of a unit, those of one repeat, once; None where nothing was rendered."""
        return self._asked.pop(unit, None)

    def forget(self, unit: Unit) -> None:
        """Let go of what was asked for a unit that nobody will take."""
        self._asked.pop(unit, None)
        self.engine.forget(unit)

    def _requests(self, render: Render, unit: Unit) -> Sequence[Request]:
        """Return what to ask about a unit, all repeats of it; nothing where it cannot be scored."""
        if self._refuses and self.plan.refusal(unit):
            return ()
        prompt = _as_prompt(render(unit.example))
        requests = self.task(unit).requests(unit.example, prompt)
        self._asked[unit] = prompt, requests
        if self._repeats == 1:
            return requests
        return [_repeated(request, number) for number in range(self._repeats) for request in requests]

    def _converse(self, unit: Unit, request: Request) -> Conversation | None:
        follow_up = self.task(unit).conversation(unit.example)
        if follow_up is None:
            return None
        recall = None if self._recorded is None else self._recorded.of(unit)
        return Conversation(request, follow_up, recall, partial(self._note, unit.task.name, unit.example.id))


def _as_prompt(rendered: Any) -> Prompt:
    """Return what a render function gave as text or messages; raise AdapterError for anything else."""
    if isinstance(rendered, str):
        return rendered
    if isinstance(rendered, Sequence) and rendered:
        messages = tuple(_message(entry) for entry in rendered)
        return Joined(messages) if isinstance(rendered, Joined) else messages
    raise AdapterError(f"lm_render returned {type(rendered).__name__}; expected text or a sequence of messages")


def _repeated(request: Request, number: int) -> Request:
    """Return ``request`` as the one for repeat ``number``; how probable a text is does not change with repeats."""
    return replace(request, repeat=number) if isinstance(request, Generate) else request


def _message(entry: Any) -> Message:
    if isinstance(entry, Message):
        return entry
    if isinstance(entry, Mapping) and isinstance(entry.get("role"), str) and isinstance(entry.get("content"), str):
        return Message(entry["role"], entry["content"])
    raise AdapterError(f"lm_render returned {entry!r} as a message; expected role and content, both text")
