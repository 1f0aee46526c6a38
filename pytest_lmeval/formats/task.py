"""The one shape that every format yields: collector, engine, recorder and command line know nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.types import (
    Example,
    ExampleResult,
    Exchange,
    Generate,
    Message,
    RecordError,
    Request,
    Response,
    Score,
)

if TYPE_CHECKING:
    from pytest_lmeval.sandbox import Sandbox

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
]

Prompt = str | tuple[Message, ...]
"""A rendered example: text, or the messages of a conversation."""
FollowUp = Callable[[Sequence[Exchange]], Generate | None]
"""From what was asked and answered so far, one exchange at least, to what is asked next; None at the end."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What scoring may use besides the response; each is made once per run."""

    sandbox: Sandbox | None = None
    judge: Any = None


class BareTask(Protocol):
    """What every task must have: a named set of examples, with how to ask about one and score it."""

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


class Task(BareTask, Protocol):
    """A whole task, one row of the leaderboard: the members below have defaults, in :class:`TaskDefaults`."""

    @property
    def key(self) -> str:
        """What options call the task besides its name; "" for nothing. Variants of one task share it."""

    @property
    def display_name(self) -> str:
        """What people call the task; "" for its name."""

    @property
    def needs(self) -> str:
        """The method that an adapter must have beside one that answers, such as ``loglikelihood``; "" for none."""

    @property
    def random_baseline(self) -> float | None:
        """The score that guessing reaches, in [0, 1), or None where it is not known."""

    @property
    def dataset(self) -> Mapping[str, Any]:
        """Where the examples are from, as JSON: ``path``, ``sha256``, ``revision``."""

    @property
    def config(self) -> Mapping[str, Any]:
        """The values of the task's parameters, as JSON."""

    @property
    def has_score(self) -> bool:
        """Whether the task can have a score, as far as can be told before its examples are scored."""

    @property
    def score_metric(self) -> str:
        """The aggregated metric that is the task's score where its examples have none, or ""."""

    @property
    def aggregates(self) -> bool:
        """Whether :meth:`aggregate` is to be called with the results of all examples."""

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` over the results of the task."""

    def prepared(self, adapter: Any) -> Task:
        """Return the task as it is put to ``adapter``, before its first request; raise UsageError where it cannot."""

    def conversation(self, example: Example) -> FollowUp | None:
        """Return what says how to go on after an answer; None where an example is one request for each response.

        Each response to an example that goes on is one Completion, whose ``exchanges`` are all of its requests.
        """

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return what a judge can be asked before the example is scored; None where the task asks no judge."""

    def unprompted(self, example: Example) -> Mapping[str, Any] | None:
        """Return :meth:`scoring` without what is there for the prompt alone; None where that is nothing."""

    def judges(self, example: Example) -> Sequence[str]:
        """Return the judges that scoring ``example`` asks: "" for the run's, or the adapter that the task names."""

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the registry's names of the metrics that score ``example`` besides its :meth:`metric_name`."""

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return what ``example`` was read from, as ``lmeval test`` shows it."""


def asks_model(task: object) -> bool:
    """Tell whether a task asks the run's model; one that scores the rows of a data set says that it does not."""
    return bool(getattr(task, "asks_model", True))


class TaskDefaults:
    """The members of :class:`Task` that a task need not write; a base class for tasks.

    Every default is a property or a method. A dataclass takes it for the default of a field of the same name: write
    ``name: type = field()`` for a field that is to have none.
    """

    __slots__ = ()

    @property
    def key(self) -> str:
        """None besides the name."""
        return ""

    @property
    def display_name(self) -> str:
        """None besides the name."""
        return ""

    @property
    def needs(self) -> str:
        """No method."""
        return ""

    @property
    def random_baseline(self) -> float | None:
        """Not known."""
        return None

    @property
    def dataset(self) -> Mapping[str, Any]:
        """Nothing known."""
        return {}

    @property
    def config(self) -> Mapping[str, Any]:
        """No parameters."""
        return {}

    @property
    def has_score(self) -> bool:
        """True."""
        return True

    @property
    def score_metric(self) -> str:
        """None: the score is the mean of the examples' scores."""
        return ""

    @property
    def aggregates(self) -> bool:
        """False."""
        return False

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Raise ScoringError: a task that aggregates has a method of its own."""
        raise ScoringError("the task says that it aggregates, and has no method aggregate")

    def prepared(self, adapter: Any) -> Any:
        """Return the task itself: it is put to every adapter alike."""
        return self

    def conversation(self, example: Example) -> FollowUp | None:
        """Return None: one request for each response."""
        return None

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return None: no judge is asked."""
        return None

    def unprompted(self, example: Example) -> Mapping[str, Any] | None:
        """Return None: nothing of what decides the score is there for the prompt alone."""
        return None

    def judges(self, example: Example) -> Sequence[str]:
        """Return none: no judge is asked."""
        return ()

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return none."""
        return ()

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return the prompt, the targets, the metric, and the metadata, if there are any."""
        shown = {"prompt": example.prompt, "targets": list(example.targets), "metric": example.metric}
        return {**shown, **({"metadata": example.metadata} if example.metadata else {})}


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

    ``is_named`` tells that somebody asked for this very file: that it holds no task is then an error. ``is_explicit``
    tells that somebody asked for the files of its folder: what cannot be parsed there is an error.
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

    ``no_task`` says why a file that nobody named was taken for no task; empty where it is none by intent, as a data set
    is. ``is_near_miss`` tells that it is probably meant to be one.
    ``subjects`` are those of each task that has any, by its name; a task of which the wanted subjects leave nothing
    stands here alone. They are looked for only where the run wants some. ``draws_few_shots`` tells whether
    ``LoadOptions.num_fewshot`` means anything to one of the tasks. ``remarks`` are ``(line, sentence)``, for every
    report, of what is no fault and looks like one.
    """

    tasks: Sequence[Task] = ()
    errors: Sequence[RecordError] = field(default_factory=tuple)
    no_task: str = ""
    is_near_miss: bool = False
    subjects: Mapping[str, Subjects] = field(default_factory=dict)
    draws_few_shots: bool = False
    remarks: Sequence[tuple[int, str]] = ()
