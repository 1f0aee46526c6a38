"""What every format yields: a named set of examples, with how to ask about one and score it."""

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
    """What the model that plays the user is asked first; ``take`` returns what its reply leads to."""

    request: Generate
    take: Callable[[str], Generate | Aside | None]


FollowUp = Callable[[Sequence[Exchange]], Generate | Aside | None]
"""From what was asked and answered so far, one exchange at least, to what is asked next; None at the end.

Where it has a method ``opening``, that returns from the request that the example has what is asked in its place.
"""


def render(example: Example) -> Prompt:
    r"""Return the prompt of ``example`` with its few-shot examples in front, blocks joined by a blank line.

    A task that asks in messages has made its conversation itself; it is returned as it is.

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
    """What scoring may use besides the response; each is made once per run."""

    sandbox: Sandbox | None = None
    judge: Any = None


def name_fault(name: str, taken_by: object = None) -> str:
    """Return why a task cannot have a name, which another one may have already; "" where it can."""
    if name == OVERALL:
        return f"the task name {name!r} is that of the score over all tasks: give it another one"
    return f"the task name {name!r} is taken by {taken_by}" if taken_by is not None else ""


class Task(ABC):  # noqa: B024  # what is abstract of it is for type checkers alone
    """A task, one row of the leaderboard: what it must have, and the defaults of what it may have.

    A task of others need not inherit from it: :func:`complete` gives any object with the required members the others.
    Every default is a property or a method. A dataclass takes it for the default of a field of the same name: write
    ``name: type = field()`` for a field that is to have none.
    """

    __slots__ = ()

    asks_user: bool = False
    """Whether examples are talks with a simulated user, whom a further model plays."""

    # Only a type checker sees these. At run time a dataclass would take the properties for defaults of its fields;
    # whoever lacks one learns its name from :func:`complete`.
    if TYPE_CHECKING:

        @property
        @abstractmethod
        def name(self) -> str:
            """The row's name, unique in a run."""

        @property
        @abstractmethod
        def path(self) -> Path:
            """The file the task comes from."""

        @property
        @abstractmethod
        def sha256(self) -> str:
            """Hash of everything the task was read from."""

        @property
        @abstractmethod
        def metric(self) -> str:
            """The metric as the file words it; ``mixed`` where its examples differ."""

        @property
        @abstractmethod
        def examples(self) -> Sequence[Example]:
            """The valid records, in the file's order."""

        @abstractmethod
        def requests(self, example: Example, prompt: Prompt) -> Sequence[Request]:
            """Return what to ask the model for one response to ``example``."""

        @abstractmethod
        def score(self, example: Example, responses: Sequence[Response], tools: Tools) -> Score:
            """Return what the responses to the requests of ``example`` are worth."""

        @abstractmethod
        def threshold(self, example: Example) -> float | None:
            """Return the threshold that ``example`` itself asks for, if it does."""

        @abstractmethod
        def metric_name(self, example: Example) -> str:
            """Return the registry's name of the example's metric."""

        @abstractmethod
        def scoring(self, example: Example) -> Mapping[str, Any]:
            """Return what else decides the example's score, as JSON: it goes into the content hash."""

    @property
    def key(self) -> str:
        """What options call the task besides its name; variants of one task share it. By default "": the name alone."""
        return ""

    @property
    def numbered(self) -> bool:
        """Whether an example is called by the number of its row or line. By default no: each has an id of its own."""
        return False

    @property
    def display_name(self) -> str:
        """What people call the task. By default "": its name."""
        return ""

    @property
    def needs(self) -> str:
        """The method, such as ``loglikelihood``, that an adapter must have. By default "": any adapter will do."""
        return ""

    @property
    def asks_model(self) -> bool:
        """Whether the task asks the run's model. By default True; False of one that scores the rows of a data set."""
        return True

    @property
    def random_baseline(self) -> float | None:
        """The score that guessing reaches, in [0, 1). By default None: not known, and no centred score."""
        return None

    @property
    def dataset(self) -> Mapping[str, Any]:
        """Where the examples are from, as JSON: ``path``, ``sha256``, ``revision``. By default empty."""
        return {}

    @property
    def config(self) -> Mapping[str, Any]:
        """The values of the task's parameters, as JSON. By default empty: it has none."""
        return {}

    @property
    def has_score(self) -> bool:
        """Whether the task can have a score, as far as is known before its examples are scored. By default True."""
        return True

    @property
    def score_metric(self) -> str:
        """The aggregated metric that is the task's score where its examples have none. By default "": none is."""
        return ""

    @property
    def aggregates(self) -> bool:
        """Whether :meth:`aggregate` is to be called with all results. By default False: the row has means alone."""
        return False

    def aggregate(self, results: Sequence[ExampleResult]) -> Mapping[str, Any]:
        """Return ``{"metrics", "score"?, "classes"?, "confusion"?, "notes"?}`` over the results of the task.

        Raises ScoringError by default: a task that aggregates has a method of its own.
        """
        raise ScoringError("the task says that it aggregates, and has no method aggregate")

    @property
    def own_metrics(self) -> Mapping[str, Metric]:
        """The metrics that the task brings itself, by name: they go before those of the registry. By default none."""
        return {}

    def prepared(self, adapter: Any) -> Task:
        """Return the task as it is put to ``adapter``, before its first request.

        Raise UsageError if ``adapter`` cannot do what the task asks: its examples are not asked then. By default the
        task itself: it is put to every adapter alike.
        """
        return self

    def conversation(self, example: Example) -> FollowUp | None:
        """Return what says how to go on after an answer. By default None: one request for each response.

        Each response to an example that goes on is one Completion, whose ``exchanges`` are all of its requests.
        """
        return None

    def judge_requests(self, example: Example, responses: Sequence[Response]) -> Sequence[Generate] | None:
        """Return what a judge can be asked before the example is scored. By default None: nothing is."""
        return None

    def unprompted(self, example: Example) -> Mapping[str, Any] | None:
        """Return :meth:`scoring` without what is there for the prompt alone. By default None: nothing of it is."""
        return None

    def judges(self, example: Example) -> Sequence[str]:
        """Return the judges that scoring ``example`` asks: "" for the run's, or the adapter that the task names.

        By default none.
        """
        return ()

    def further_metrics(self, example: Example) -> Sequence[str]:
        """Return the registry's names of the metrics that score ``example`` besides :meth:`metric_name`, if any do."""
        return ()

    def record(self, example: Example) -> Mapping[str, Any]:
        """Return what ``example`` was read from, as ``lmeval test`` shows it.

        By default the prompt, the targets, the metric, and the metadata, if there are any.
        """
        shown = {"prompt": example.prompt, "targets": list(example.targets), "metric": example.metric}
        return {**shown, **({"metadata": example.metadata} if example.metadata else {})}


REQUIRED_MEMBERS = (
    *("name", "path", "sha256", "metric", "examples"),
    *("requests", "score", "threshold", "metric_name", "scoring"),
)
OPTIONAL_MEMBERS = tuple(name for name in vars(Task) if not name.startswith("_"))


def complete(task: Any) -> Task:
    """Return ``task`` with the default of every optional member that it lacks: itself where it lacks none.

    Every task that others made passes here once; behind it a member is an attribute. Raises UsageError that names the
    required members that a task lacks.
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
    """A task of somebody else's, with defaults for the members that it lacks."""

    def __init__(self, task: Any, missing: Sequence[str]) -> None:
        defaults: Any = Task()  # type: ignore[abstract]  # its defaults alone are asked for
        self._task = task
        vars(self).update({name: getattr(defaults, name) for name in missing if name != "prepared"})

    def __getattr__(self, name: str) -> Any:
        if name == "_task":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self._task, name)

    def prepared(self, adapter: Any) -> Task:
        own: Any = getattr(self._task, "prepared", None)
        task = self._task if own is None else own(adapter)
        return cast(Task, self) if task is self._task else complete(task)


def _called(task: object) -> str:
    kind, name, path = type(task).__name__, getattr(task, "name", ""), getattr(task, "path", "")
    return f"{path}{': ' if path else ''}the task {f'{name!r} ' if name else ''}({kind})"
