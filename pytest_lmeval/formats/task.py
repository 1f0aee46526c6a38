"""A task file as a format gets it, and what it makes of it; the tasks themselves are in :mod:`pytest_lmeval.task`."""

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

# The names that task files of others may have.
BareTask = TaskDefaults = Task


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a run asks of every task that it loads.

    ``num_fewshot`` is for tasks that draw few-shots, None for their own number; ``subjects`` are the only ones wanted,
    empty for all; ``configs`` are the values for declarative tasks, one mapping for each time a task is to run.
    Examples that :meth:`used` does not name need not be made. ``trusted`` are the only folders whose task files may run
    Python: those in Python at all, declarative ones their snippets; None for all.
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
        """Return the places of the examples that the run uses, of ``available`` good ones of a task."""
        if self.sample is not None and self.sample < available:
            return sorted(random.Random(f"{self.seed}:{task}").sample(range(available), self.sample))
        return range(available)[: self.limit]

    def trusts(self, path: Path) -> bool:
        """Tell whether the task file ``path`` may run Python."""
        return self.trusted is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.trusted)


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task file as it was read: a format turns it into a :class:`LoadedFile`.

    ``is_named``: somebody asked for this very file, so it is an error that it holds no task. ``is_explicit``: somebody
    asked for the files of its folder, so it is an error that it cannot be parsed.
    """

    path: Path
    data: bytes
    name: str
    options: LoadOptions = field(default_factory=LoadOptions)
    is_named: bool = False
    is_explicit: bool = False


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a task's examples, and how many examples are ``available`` before any subject is chosen."""

    names: frozenset[str]
    available: int


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """What a task file holds: its tasks, and its bad records.

    ``no_task`` says why a file that nobody named is not a task; empty where it is not meant to be one, as a data set.
    ``is_near_miss``: it is probably meant to be one. ``subjects`` are those of each task that has any, by its name; a
    task of which the wanted subjects leave nothing is only here. They are looked for only where the run wants some.
    ``draws_few_shots``: ``LoadOptions.num_fewshot`` applies to one of the tasks. ``remarks`` are ``(line, sentence)``,
    for every report, about what looks like a fault and is not one.
    """

    tasks: Sequence[Task] = ()
    errors: Sequence[RecordError] = field(default_factory=tuple)
    no_task: str = ""
    is_near_miss: bool = False
    subjects: Mapping[str, Subjects] = field(default_factory=dict)
    draws_few_shots: bool = False
    remarks: Sequence[tuple[int, str]] = ()
