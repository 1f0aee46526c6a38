"""The one shape that every format yields: collector, engine, recorder and command line know nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_lmeval.types import Example, Message, RecordError, Request, Response, Score

if TYPE_CHECKING:
    from pytest_lmeval.sandbox import Sandbox

__all__ = ["LoadOptions", "LoadedFile", "Prompt", "Subjects", "Task", "TaskSource", "Tools"]

Prompt = str | tuple[Message, ...]
"""A rendered example: text, or the messages of a conversation."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What scoring may use besides the response; each is made once per run."""

    sandbox: Sandbox | None = None
    judge: Any = None


class Task(Protocol):
    """A named set of examples with how to ask, score and aggregate; one row of the leaderboard."""

    @property
    def name(self) -> str:
        """The row's name, unique in a run."""

    @property
    def path(self) -> Path:
        """The file the task comes from."""

    @property
    def sha256(self) -> str:
        """Hash of everything the task was read from."""

    @property
    def metric(self) -> str:
        """The metric as the file words it; ``mixed`` where its examples differ."""

    @property
    def examples(self) -> Sequence[Example]:
        """The valid records, in the file's order."""

    def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
        """Return what to ask the model for one response to ``example``."""

    def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
        """Return what the responses to the requests of ``example`` are worth."""

    def threshold(self, example: Example) -> float | None:
        """Return the threshold that ``example`` itself asks for, if it does."""

    def metric_name(self, example: Example) -> str:
        """Return the registry's name of the example's metric."""

    def scoring(self, example: Example) -> Mapping[str, Any]:
        """Return what else decides the example's score, as JSON: it goes into the content hash."""


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """What a run asks of every task that it loads.

    ``num_fewshot`` is for tasks that draw few-shots, None for their own number; ``subjects`` are the only ones wanted,
    empty for all; ``configs`` are the values for declarative tasks, one mapping for each time a task is to run. Of more
    than ``limit`` good examples the others will not be used, and need not be made. ``trusted`` are the only folders
    whose declarative tasks may run Python of their own, None for all.
    """

    max_line_bytes: int = 1 << 20
    num_fewshot: int | None = None
    subjects: tuple[str, ...] = ()
    configs: tuple[Mapping[str, Any], ...] = ()
    trusted: tuple[Path, ...] | None = None
    limit: int | None = None

    def trusts(self, path: Path) -> bool:
        """Tell whether a declarative task in ``path`` may run Python of its own."""
        return self.trusted is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.trusted)


@dataclass(frozen=True, slots=True)
class TaskSource:
    """A task file as it was read: a format turns it into a :class:`LoadedFile`.

    ``is_named`` tells that somebody asked for this very file: that it holds no task is then an error.
    """

    path: Path
    data: bytes
    name: str
    options: LoadOptions = field(default_factory=LoadOptions)
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Subjects:
    """The subjects of a task's examples, and how many examples are ``available`` before any subject is chosen."""

    names: frozenset[str]
    available: int


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """What a task file holds: its tasks, and its bad records.

    ``no_task`` says why a file that nobody named was taken for no task; empty where it is none by intent, as a data set
    is. ``is_near_miss`` tells that it is probably meant to be one.
    ``subjects`` are those of each task that has any, by its name; a task of which the wanted subjects leave nothing
    stands here alone. They are looked for only where the run wants some. ``draws_few_shots`` tells whether
    ``LoadOptions.num_fewshot`` means anything to one of the tasks.
    """

    tasks: Sequence[Task] = ()
    errors: Sequence[RecordError] = field(default_factory=tuple)
    no_task: str = ""
    is_near_miss: bool = False
    subjects: Mapping[str, Subjects] = field(default_factory=dict)
    draws_few_shots: bool = False
