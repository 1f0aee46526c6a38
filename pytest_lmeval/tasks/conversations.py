"""Define the base class for tasks that are sliceable lists of conversations, and classes that combine such tasks."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from pytest_lmeval.numbers import is_whole


class Dialogues:
    """A slice of conversations: every ``step``-th conversation from ``start`` up to, but not including, ``stop``.

    A subclass defines ``eval_type``, ``num_examples``, ``get_example`` and ``evaluate``. The class fetches examples on
    demand. ``subject_key`` is the key of a conversation by which results are grouped. The default ``subject_key`` is
    the first existing key among ``subject``, ``specialty``, ``category`` and ``topic``. ``name`` is the task's name on
    the leaderboard, by default the name of the class. ``threshold`` is the score at which an example passes.
    """

    name: str = ""
    subject_key: str | None = None
    threshold: float = 1.0
    stop_sequences: Sequence[str] | None = None
    max_tokens: int | None = None
    start: int = 0
    stop: int | None = None
    step: int = 1

    def __init__(self, start: int = 0, stop: int | None = None, step: int = 1) -> None:
        for name, given, least in (("start", start, 0), ("stop", 0 if stop is None else stop, 0), ("step", step, 1)):
            if not is_whole(given) or given < least:
                raise ValueError(f"{name}: expected a whole number >= {least}, got {given!r}")
        self.start = start
        self.stop = stop
        self.step = step

    @property
    def eval_type(self) -> str:
        """The response type, ``generative`` for text or ``categorical`` for one of a conversation's ``letters``."""
        raise NotImplementedError

    def num_examples(self) -> int:
        """Return the number of conversations before slicing."""
        raise NotImplementedError

    def get_example(self, index: int) -> dict[str, Any]:
        """Return a conversation whose ``messages`` have ``role`` and ``content`` and end with the correct answer."""
        raise NotImplementedError

    def evaluate(self, conversation: dict[str, Any], assistant_response: str) -> bool | float:
        """Return the score of a response: a bool, or a number in [0, 1]."""
        raise NotImplementedError

    @property
    def indices(self) -> range:
        """The positions of the slice's conversations among all conversations."""
        return range(self.num_examples())[self.start : self.stop : self.step]

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.get_example(self.indices[index])


Task = Dialogues
"""The name of ``Dialogues`` in task files."""


class TaskSequence(Dialogues):
    """Several tasks in sequence, as in a curriculum."""

    def __init__(self, tasks: Iterable[Dialogues], *, start: int = 0, stop: int | None = None, step: int = 1) -> None:
        super().__init__(start, stop, step)
        self.tasks = tuple(tasks)
        self.order = self._ordered(
            [(part, index) for part, task in enumerate(self.tasks) for index in range(len(task))]
        )

    @property
    def eval_type(self) -> str:
        """The type of all tasks, or ``mixed`` if their types differ; each example then has its task's type."""
        kinds = {task.eval_type for task in self.tasks}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    def num_examples(self) -> int:
        """Return the total number of conversations in all tasks."""
        return len(self.order)

    def get_example(self, index: int) -> dict[str, Any]:
        """Return the conversation at ``index`` from the task that contributes it."""
        part, place = self.order[index]
        return self.tasks[part][place]

    def evaluate(self, conversation: dict[str, Any], assistant_response: str) -> bool | float:
        """Raise TypeError, because only a conversation's own task can evaluate it."""
        raise TypeError("a conversation of several tasks is evaluated by its own: tasks[order[index][0]].evaluate(...)")

    def _ordered(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return places


class TaskMixture(TaskSequence):
    """Several tasks, shuffled together in a fixed order; a task that is listed twice contributes its examples twice."""

    SEED = 42

    def _ordered(self, places: list[tuple[int, int]]) -> list[tuple[int, int]]:
        random.Random(self.SEED).shuffle(places)
        return places


def render_mc(question: str, letters: Sequence[str], choices: Sequence[str]) -> str:
    r"""Return a multiple-choice question with each letter directly after its choice.

    >>> print(render_mc("2 + 2?", "AB", ["three", "four"]))
    Multiple Choice question: 2 + 2?
    - three=A
    - four=B
    <BLANKLINE>
    Respond only with the letter of the correct answer.
    """
    options = "".join(f"- {choice}={letter}\n" for letter, choice in zip(letters, choices, strict=False))
    return f"Multiple Choice question: {question}\n{options}\nRespond only with the letter of the correct answer."
