"""The input and the result of a format that loads task files; :mod:`pytest_lmeval.task` defines the tasks."""

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

# Aliases for code outside this package that uses these names.
BareTask = TaskDefaults = Task


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """A run's options that apply to every loaded task.

    ``num_fewshot``, unless it is None, replaces the number of few-shot examples that tasks draw. ``subjects`` selects
    subjects; () selects all. ``configs`` contains values for declarative tasks, one mapping for each variant. A format
    need only make the examples that :meth:`used` returns. ``trusted`` lists the folders whose files may run Python, or
    is None for all folders.
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
        """Return the positions of the examples that the run uses, given the number of a task's valid examples."""
        if self.sample is not None and self.sample < available:
            return sorted(random.Random(f"{self.seed}:{task}").sample(range(available), self.sample))
        return range(available)[: self.limit]

    def trusts(self, path: Path) -> bool:
        """Return True if the task file ``path`` may run Python."""
        return self.trusted is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.trusted)


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task file's content, which a format turns into a :class:`LoadedFile`.

    If the command line names this file, ``is_named`` is true, and a file without a task is an error. If the command
    line names the file's folder, ``is_explicit`` is true, and a file that cannot be parsed is an error.
    """

    path: Path
    data: bytes
    name: str
    options: LoadOptions = field(default_factory=LoadOptions)
    is_named: bool = False
    is_explicit: bool = False


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a task's examples, and the number of examples before the run selects subjects."""

    names: frozenset[str]
    available: int


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A task file's tasks and bad records.

    ``no_task`` says why a file that the command line does not name is not a task, or is "" for an obvious case such as
    a data set. ``is_near_miss`` is true if the file was probably meant as a task. If the run selects subjects,
    ``subjects`` maps each task to its subjects, even if no example is selected. ``draws_few_shots`` is true if
    ``LoadOptions.num_fewshot`` applies to a task. ``remarks`` lists pairs ``(line, sentence)`` about likely mistakes,
    which every report shows.
    """

    tasks: Sequence[Task] = ()
    errors: Sequence[RecordError] = field(default_factory=tuple)
    no_task: str = ""
    is_near_miss: bool = False
    subjects: Mapping[str, Subjects] = field(default_factory=dict)
    draws_few_shots: bool = False
    remarks: Sequence[tuple[int, str]] = ()
