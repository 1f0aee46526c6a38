"""The contract of a task: a named set of examples, their requests and their scores."""

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
"""A rendered example: text, or the messages of a conversation."""


@dataclass(frozen=True, slots=True)
class Aside:
    """A request to the model that plays the user; ``take`` turns its reply into the next request."""

    request: Generate
    take: Callable[[str], Generate | Aside | None]


FollowUp = Callable[[Sequence[Exchange]], Generate | Aside | None]
"""Returns the next request after the exchanges so far, at least one; None at the end.

An optional method ``opening`` turns the example's request into the first request.
"""


def render(example: Example) -> Prompt:
    r"""Return the prompt of ``example`` with its few-shot examples in front, blocks joined by a blank line.

    The messages of an example that has any are returned unchanged.

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
    """The helpers of scoring, each made once per run."""

    sandbox: Sandbox | None = None
    judge: Any = None


def name_fault(name: str, taken_by: object = None) -> str:
    """Return why a task cannot have a name, which ``taken_by`` may have already; "" if it can."""
    if name == OVERALL:
        return f"the task name {name!r} is reserved for the score over all tasks: choose another"
    return f"the task name {name!r} is taken by {taken_by}" if taken_by is not None else ""


class Task(ABC):  # noqa: B024  # only type checkers see its abstract members
    """A task, one row of the leaderboard: its required members, and the defaults of the optional ones.

    A task need not inherit from it: :func:`complete` adds the optional members to any object with the required ones.
    Every default is a property or a method, which a dataclass takes for the default of a field with the same name:
    write ``name: type = field()`` for a field without default.
    """

    __slots__ = ()

    asks_user: bool = False
    """True if examples are conversations with a simulated user."""

    # Hidden at run time, when a dataclass would take the properties for defaults of its fields; :func:`complete`
    # reports missing members.
    if TYPE_CHECKING:

        @property
        @abstractmethod
        def name(self) -> str:
            """The row's name, unique in a run."""

        @property
        @abstractmethod
        def path(self) -> Path:
            """The file of the task."""

        @property
        @abstractmethod
        def sha256(self) -> str:
            """A hash of all sources of the task."""

        @property
        @abstractmethod
        def metric(self) -> str:
            """The metric as named in the file; ``mixed`` if examples differ."""

        @property
        @abstractmethod
        def examples(self) -> Sequence[Example]:
            """The valid records, in the file's order."""

        @abstractmethod
        def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
            """Return the requests to the model for one response to ``example``."""

        @abstractmethod
        def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
            """Return the score of the responses to the requests of ``example``."""

        @abstractmethod
        def threshold(self, example: Example) -> float | None:
            """Return the threshold of ``example``, or None for the metric's."""

        @abstractmethod
        def metric_name(self, example: Example) -> str:
            """Return the registry's name of the example's metric."""

        @abstractmethod
        def scoring(self, example: Example) -> Mapping[str, Any]:
            """Return everything else that affects the example's score, as JSON for the content hash."""

    @property
    def key(self) -> str:
        """A further name of the task in options, which its variants share. By default "": only the name."""
        return ""

    @property
    def numbered(self) -> bool:
        """True if examples are called by the number of their row or line. By default False: each has its own id."""
        return False

    @property
    def display_name(self) -> str:
        """The title of the task. By default "": its name."""
        return ""

    @property
    def needs(self) -> str:
        """The method, such as ``loglikelihood``, that an adapter must have. By default "": any adapter will do."""
        return ""

    @property
    def asks_model(self) -> bool:
        """True if the task asks the run's model, as by default; False if it scores the rows of a data set."""
        return True

    @property
    def random_baseline(self) -> float | None:
        """The score of guessing, in [0, 1). By default None: unknown, so there is no centred score."""
        return None

    @property
    def dataset(self) -> Mapping[str, Any]:
        """The source of the examples, as JSON: ``path``, ``sha256``, ``revision``. By default empty."""
        return {}

    @property
    def config(self) -> Mapping[str, Any]:
        """The values of the task's parameters, as JSON. By default empty."""
        return {}

    @property
    def has_score(self) -> bool:
        """False if it is known in advance that the task cannot have a score. By default True."""
        return True

    @property
    def score_metric(self) -> str:
        """The aggregated metric that is the task's score if its examples have none. By default "": none."""
        return ""

    @property
    def aggregates(self) -> bool:
        """True if :meth:`aggregate` is called with all results. By default False: the row has only means."""
        return False

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` over the results of the task.

        Raises ScoringError by default: a task that aggregates has a method of its own.
        """
        raise ScoringError("the task says that it aggregates, and has no method aggregate")

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The task's own metrics by name, which take precedence over the registry. By default none."""
        return {}

    def prepared(self, adapter: Any) -> Task:
        """Return the task for ``adapter``, before its first request. By default the task itself.

        Raise UsageError if ``adapter`` does not support the task: its examples are not asked then.
        """
        return self

    def conversation(self, example: Example) -> FollowUp | None:
        """Return the function that continues after an answer. By default None: one request for each response.

        The response is then one Completion, whose ``exchanges`` are all of its requests.
        """
        return None

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return the questions to the judge that are known before scoring. By default None."""
        return None

    def unprompted(self, example: Example) -> Mapping[str, Any] | None:
        """Return :meth:`scoring` without parts that only affect the prompt. By default None: it has no such part."""
        return None

    def judges(self, example: Example) -> Sequence[str]:
        """Return the judges of ``example``: "" for the run's, or an adapter that the task names. By default none."""
        return ()

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the registry's names of further metrics of ``example``, besides :meth:`metric_name`."""
        return ()

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return the record of ``example``, as ``lmeval test`` shows it.

        By default the prompt, the targets, the metric, and any metadata.
        """
        shown = {"prompt": example.prompt, "targets": list(example.targets), "metric": example.metric}
        return {**shown, **({"metadata": example.metadata} if example.metadata else {})}


REQUIRED_MEMBERS = (
    *("name", "path", "sha256", "metric", "examples"),
    *("requests", "score", "threshold", "metric_name", "scoring"),
)
OPTIONAL_MEMBERS = tuple(name for name in vars(Task) if not name.startswith("_"))


def complete(task: Any) -> Task:
    """Return ``task`` with defaults for its missing optional members, or itself if none is missing.

    Every foreign task passes here once, and has all members then. Raises UsageError that names the missing required
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
    """A foreign task with defaults for its missing members."""

    def __init__(self, task: Any, missing: Sequence[str]) -> None:
        defaults: Any = Task()  # type: ignore[abstract]  # only for its defaults
        self._task = task
        vars(self).update({name: getattr(defaults, name) for name in missing if name != "prepared"})

    def __getattr__(self, name: str) -> Any:
        if name == "_task":  # not set yet, as in a copy
            raise AttributeError(name)
        return getattr(self._task, name)

    def prepared(self, adapter: Any) -> Task:
        own: Any = getattr(self._task, "prepared", None)
        task = self._task if own is None else own(adapter)
        return cast(Task, self) if task is self._task else complete(task)


def _called(task: object) -> str:
    kind, name, path = type(task).__name__, getattr(task, "name", ""), getattr(task, "path", "")
    return f"{path}{': ' if path else ''}the task {f'{name!r} ' if name else ''}({kind})"
