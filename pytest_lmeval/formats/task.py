"""The input of a format, a task file, and its result; tasks themselves are in :mod:`pytest_lmeval.task`."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.task import FollowUp, Prompt, Task, Tools, complete
from pytest_lmeval.types import RecordError

__all__ = [
    "BareTask",
    "FollowUp",
    "LoadOptions",
    "LoadedFile",
    "Prompt",
    "Subjects",
    "Task",
    "TaskDefaults",
    "TaskSource",
    "Tools",
    "complete",
]

# Names for task files that others wrote.
BareTask = TaskDefaults = Task


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """The options of a run for every task that it loads.

    ``num_fewshot`` is for tasks that draw few-shots, None for their own number. ``subjects`` selects subjects, () for
    all. ``configs`` are values for declarative tasks, one mapping for each variant. Only the examples that :meth:`used`
    returns need be made. ``trusted`` are the folders whose task files may run Python, None for all: files in Python,
    and the snippets of declarative ones.
    """

    max_line_bytes: int = 1 << 20
    num_fewshot: int | None = None
    subjects: tuple[str, ...] = ()
    configs: tuple[Mapping[str, Any], ...] = ()
    trusted: tuple[Path, ...] | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0

    def used(self, task: str, available: int) -> Sequence[int]:
        """Return the places of the examples that the run uses, out of ``available`` valid ones of a task."""
        if self.sample is not None and self.sample < available:
            return sorted(random.Random(f"{self.seed}:{task}").sample(range(available), self.sample))
        return range(available)[: self.limit]

    def trusts(self, path: Path) -> bool:
        """Return True if the task file ``path`` may run Python."""
        return self.trusted is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.trusted)


@dataclass(frozen=True, slots=True)
class TaskSource:
    """The content of a task file, which a format turns into a :class:`LoadedFile`.

    ``is_named``: the command names this file, so it is an error if it holds no task. ``is_explicit``: the command names
    its folder, so it is an error if it cannot be parsed.
    """

    path: Path
    data: bytes
    name: str
    options: LoadOptions = field(default_factory=LoadOptions)
    is_named: bool = False
    is_explicit: bool = False


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a task's examples, and the number of examples ``available`` before subjects are selected."""

    names: frozenset[str]
    available: int


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """The tasks of a task file, and its bad records.

    ``no_task`` is the reason that an unnamed file is not a task; "" if it is not meant to be one, such as a data set.
    ``is_near_miss``: it is probably meant to be one. ``subjects`` has the subjects of each task by its name, if the run
    selects subjects; no other field lists a task without selected examples. ``draws_few_shots``:
    ``LoadOptions.num_fewshot`` applies to one of the tasks. ``remarks`` are pairs ``(line, sentence)`` for every
    report: likely mistakes that are allowed.
    """

    tasks: Sequence[Task] = ()
    errors: Sequence[RecordError] = field(default_factory=tuple)
    no_task: str = ""
    is_near_miss: bool = False
    subjects: Mapping[str, Subjects] = field(default_factory=dict)
    draws_few_shots: bool = False
    remarks: Sequence[tuple[int, str]] = ()
