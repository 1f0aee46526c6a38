"""The contract for tasks: a task provides examples, requests and scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pytest_lmeval.errors import ScoringError, UsageError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.types import (
    OVERALL,
    Example,
    ExampleResult,
    Exchange,
    Generate,
    Message,
    Metric,
    Request,
    Response,
    Score,
)

if TYPE_CHECKING:
    from pytest_lmeval.sandbox import Sandbox

__all__ = ["OPTIONAL_MEMBERS", "REQUIRED_MEMBERS", "FollowUp", "Prompt", "Task", "Tools", "complete", "render"]

Prompt = str | tuple[Message, ...]
"""A rendered prompt: text, or the messages of a conversation."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A request to the model that simulates the user; ``take`` converts the reply into the next request."""

    request: Generate
    take: Callable[[str], Generate | Aside | None]


FollowUp = Callable[[Sequence[Exchange]], Generate | Aside | None]
"""Returns the request that follows one or more exchanges, or None at the end.

The optional method ``opening`` converts the example's request into the first request.
"""


class ExamplesOfTask(list[Example]):
    """A list of a task's examples that stores the task, so that a run accepts the list in place of the task."""

    def __init__(self, task: Task) -> None:
        super().__init__(task.examples)
        self._task = task

    @property
    def task(self) -> Task:
        """The examples' task; raise UsageError if the list has changed."""
        if self != [*self._task.examples]:
            raise UsageError(f"the examples of the task {self._task.name!r} were changed: run the task of load_tasks")
        return self._task


def render(example: Example) -> Prompt:
    r"""Return the prompt of ``example``: few-shot examples first, with a blank line between blocks.

    If the example has messages, return them unchanged.

    >>> from pytest_lmeval.types import FewShot
    >>> render(Example("a", "3 + 3 =", ("6",), "exact_match", few_shot_examples=(FewShot("1 + 1 =", "2"),)))
    '1 + 1 = 2\n\n3 + 3 ='
    """
    if example.messages:
        return example.messages
    blocks = [f"{shot.prompt} {shot.completion}" for shot in example.few_shot_examples]
    return "\n\n".join([*blocks, example.prompt])


@dataclass(frozen=True, slots=True)
class Tools:
    """Helpers for scoring, created once per run."""

    sandbox: Sandbox | None = None
    judge: Any = None


def name_fault(name: str, taken_by: object = None) -> str:
    """Explain why a task cannot have this ``name``, for example because ``taken_by`` has it; return "" if it can."""
    if name == OVERALL:
        return f"the task name {name!r} is reserved for the score over all tasks: choose another"
    return f"the task name {name!r} is taken by {taken_by}" if taken_by is not None else ""


class Task(ABC):  # noqa: B024  # only type checkers see its abstract members
    """A task, which becomes one row of the leaderboard.

    This class declares the required members, and defines defaults for the optional members.

    Tasks need not inherit from this class: :func:`complete` adds the optional members to any object that has the
    required members. Every default is a property or a method. If a subclass is a dataclass, the property or method
    becomes the default for a field with the same name. To declare such a field without a default, write
    ``name: type = field()``.
    """

    __slots__ = ()

    asks_user: bool = False
    """True if examples are conversations with a simulated user."""

    # Hidden at run time, because a dataclass would take the properties for field defaults; :func:`complete` reports
    # missing members.
    if TYPE_CHECKING:

        @property
        @abstractmethod
        def name(self) -> str:
            """The name of the task, which is unique within a run."""

        @property
        @abstractmethod
        def path(self) -> Path:
            """The task's file."""

        @property
        @abstractmethod
        def sha256(self) -> str:
            """A SHA-256 of all the task's sources."""

        @property
        @abstractmethod
        def metric(self) -> str:
            """The metric's name as the file spells it, or ``mixed`` if the examples have different metrics."""

        @property
        @abstractmethod
        def examples(self) -> Sequence[Example]:
            """The examples, in the order of the file."""

        @abstractmethod
        def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
            """Return the requests for one response to ``example``."""

        @abstractmethod
        def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
            """Score the responses to the requests of ``example``."""

        @abstractmethod
        def threshold(self, example: Example) -> float | None:
            """Return the threshold for ``example``, or None to use the metric's threshold."""

        @abstractmethod
        def metric_name(self, example: Example) -> str:
            """Return the registered name of the example's metric."""

        @abstractmethod
        def scoring(self, example: Example) -> Mapping[str, Any]:
            """Return all other values that affect the example's score, as JSON for the content hash."""

    @property
    def key(self) -> str:
        """A second name for the task in options, shared by all its variants, or "" (the default) for no second name."""
        return ""

    @property
    def numbered(self) -> bool:
        """True if row or line numbers serve as example ids, False (the default) if each example declares an id."""
        return False

    @property
    def display_name(self) -> str:
        """The task's title, or "" (the default) if reports show the name instead."""
        return ""

    @property
    def needs(self) -> str:
        """The method that an adapter must have, such as ``loglikelihood``; "" (the default) allows any adapter."""
        return ""

    @property
    def asks_model(self) -> bool:
        """True (the default) if the task queries the run's model, False if it only scores the rows of a data set."""
        return True

    @property
    def random_baseline(self) -> float | None:
        """The score of random guessing, in [0, 1); if None (the default), the row has no centred score."""
        return None

    @property
    def dataset(self) -> Mapping[str, Any]:
        """The ``path``, ``sha256`` and ``revision`` of the task's data, as JSON; empty by default."""
        return {}

    @property
    def config(self) -> Mapping[str, Any]:
        """The values of the task's parameters, as JSON; empty by default."""
        return {}

    @property
    def has_score(self) -> bool:
        """False if the task can never have a score (the default is True)."""
        return True

    @property
    def score_metric(self) -> str:
        """The aggregated metric that becomes the task's score if its examples have no scores; "" by default."""
        return ""

    @property
    def aggregates(self) -> bool:
        """True if a run calls :meth:`aggregate` with all results, False (the default) if the row has only means."""
        return False

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` for all of the task's results.

        The default raises ScoringError; a task that aggregates must override this method.
        """
        raise ScoringError("the task says that it aggregates, and has no method aggregate")

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The task's own metrics by name, which take precedence over the registry's metrics; empty by default."""
        return {}

    def prepared(self, adapter: Any) -> Task:
        """Return the task adapted to ``adapter``, by default the task itself; called before the task's first request.

        Raise UsageError if ``adapter`` does not support the task; the run then sends none of the task's requests.
        """
        return self

    def conversation(self, example: Example) -> FollowUp | None:
        """Return a function that produces follow-up requests, or None (the default) if each response takes one request.

        A conversation's response is one Completion whose ``exchanges`` are all requests and their responses.
        """
        return None

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return the requests to the judge that are known before scoring, or None (the default)."""
        return None

    def unprompted(self, example: Example) -> Mapping[str, Any] | None:
        """Return :meth:`scoring` without parts that affect only the prompt; the default, None, means no such parts."""
        return None

    def judges(self, example: Example) -> Sequence[str]:
        """Return the specs of the judges for ``example``, with "" for the run's judge; empty by default."""
        return ()

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the registered names of further metrics for ``example``, in addition to :meth:`metric_name`."""
        return ()

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return the record of ``example`` that ``lmeval test`` shows.

        By default, the record has the prompt, the targets, the metric, and any metadata.
        """
        shown = {"prompt": example.prompt, "targets": list(example.targets), "metric": example.metric}
        return {**shown, **({"metadata": example.metadata} if example.metadata else {})}


REQUIRED_MEMBERS = (
    *("name", "path", "sha256", "metric", "examples"),
    *("requests", "score", "threshold", "metric_name", "scoring"),
)
OPTIONAL_MEMBERS = tuple(name for name in vars(Task) if not name.startswith("_"))


def complete(task: Any) -> Task:
    """Return ``task`` with defaults for its missing optional members; return a complete task unchanged.

    Call this function once for every task from outside this package. Raise a UsageError that names missing required
    members.
    """
    lacking = [name for name in REQUIRED_MEMBERS if not hasattr(task, name)]
    if lacking:
        raise UsageError(
            f"{_called(task)} has no {', '.join(lacking)}; a task needs {', '.join(REQUIRED_MEMBERS)}; "
            "load_tasks(FILE) returns the tasks of the classes in a file"
        )
    if isinstance(task, Task):
        return task
    missing = [name for name in OPTIONAL_MEMBERS if not hasattr(task, name)]
    if "aggregate" in missing and getattr(task, "aggregates", False):
        raise UsageError(f"{_called(task)} has no aggregate; a task that aggregates needs it")
    return cast(Task, _Completed(task, missing) if missing else task)


class _Completed:
    """A task from outside this package, with defaults for its missing members."""

    def __init__(self, task: Any, missing: Sequence[str]) -> None:
        defaults: Any = Task()  # type: ignore[abstract]  # only for its defaults
        self._task = task
        vars(self).update({name: getattr(defaults, name) for name in missing if name != "prepared"})

    def __getattr__(self, name: str) -> Any:
        if name == "_task":  # not set yet, for example in a copy
            raise AttributeError(name)
        return getattr(self._task, name)

    def prepared(self, adapter: Any) -> Task:
        own: Any = getattr(self._task, "prepared", None)
        task = self._task if own is None else own(adapter)
        return cast(Task, self) if task is self._task else complete(task)


def _called(task: object) -> str:
    kind, name, path = type(task).__name__, getattr(task, "name", ""), getattr(task, "path", "")
    return f"{path}{': ' if path else ''}the task {f'{name!r} ' if name else ''}({kind})"
