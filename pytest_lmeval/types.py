"""The nouns: what a task is made of, what goes to a model, what comes back, and what it was worth.

Every one is a frozen value. An example goes through them in this order::

    Example -> Generate | LogLikelihood -> Completion | LogProb -> Score -> ExampleResult
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_lmeval.formatters import concatenation, joined
from pytest_lmeval.text import printable

__all__ = [
    "FAILED",
    "UNSCORED",
    "WITHOUT_SCORE",
    "Completion",
    "Example",
    "ExampleResult",
    "FewShot",
    "Generate",
    "Joined",
    "LogLikelihood",
    "LogProb",
    "Message",
    "Metric",
    "MetricFunction",
    "RecordError",
    "Request",
    "Response",
    "Score",
    "Status",
]

Status = Literal["passed", "failed", "below", "measured", "excluded", "error", "timeout"]
UNSCORED = frozenset({"error", "timeout"})
"""The statuses of examples that could not be scored; their tests fail, but for those ``--lm-max-errors`` allows."""
FAILED = UNSCORED | {"failed"}
"""The statuses with which the test of an example fails, whatever the gate."""
WITHOUT_SCORE = frozenset({"measured", "excluded", "error", "timeout"})
"""The statuses of results whose ``score`` is None."""


@dataclass(frozen=True, slots=True)
class FewShot:
    """One worked example that is shown to the model ahead of the prompt."""

    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class Example:
    """One record of a task.

    ``metric`` is the file's own word for it. ``metadata`` is whatever else decides the score or describes the
    example: ``metadata`` of a spec record, ``extras`` of a compact one. ``line`` counts from 1. ``messages`` is the
    whole conversation, few-shots included, of a task that asks in messages; ``prompt`` then is what a reader is shown.
    """

    id: str
    prompt: str
    targets: tuple[str, ...]
    metric: str
    post_process: str = "none"
    category: str = ""
    few_shot_examples: tuple[FewShot, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordError:
    """One bad record of a task file: where it is, the rule it breaks and the field at fault."""

    line_number: int
    task_id: str | None
    rule: str
    field: str
    detail: str

    def at(self, path: object) -> str:
        """Return the one-line form that every report of a bad record uses."""
        # A field may be named by the record itself: nothing in it may start a line of its own.
        return printable(f"{path}:{self.line_number}: {self.rule} {self.field}: {self.detail}", keep="")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; ``role`` is ``system``, ``user`` or ``assistant``."""

    role: str
    content: str


class Joined(tuple[Message, ...]):
    """A conversation whose text is that of :func:`formatters.joined`: its messages bring their own line ends."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask for a completion of ``prompt``, text or a conversation, on behalf of example ``id`` of ``task``.

    ``repeat`` tells the independent responses to one prompt apart, from 0.
    """

    prompt: str | tuple[Message, ...]
    task: str = ""
    id: str = ""
    repeat: int = 0
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None

    @property
    def text(self) -> str:
        """The prompt as one string; of a conversation the contents, by :func:`formatters.concatenation`.

        Those of :class:`Joined` by :func:`formatters.joined`.
        """
        if isinstance(self.prompt, str):
            return self.prompt
        return joined(self.prompt) if isinstance(self.prompt, Joined) else concatenation(self.prompt)


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """Ask how probable ``continuation`` is after ``context``.

    ``messages`` is the conversation that ``context`` is the text of, empty if it is no conversation: an adapter with a
    chat template writes the messages by it and leaves ``context`` alone.
    """

    context: str
    continuation: str
    task: str = ""
    id: str = ""
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote, and what the adapter knows of how.

    ``latency_ms`` is the time of this request alone. ``logprobs`` are the natural log-probabilities of its tokens.
    ``confidence`` is how probable the model says that its answer is right, in [0, 1].
    Numbers of tokens are the server's own; ``cost`` is in the currency of the prices that the adapter was given.
    """

    text: str
    latency_ms: float | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    logprobs: tuple[float, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class LogProb:
    """Natural log-probability of a continuation: in total, per token, and whether it is the greedy one.

    ``ids`` tells the continuation's tokens themselves apart, one entry for each of ``tokens``, where the adapter can.
    """

    total: float
    tokens: tuple[float, ...] = ()
    greedy: bool = False
    latency_ms: float | None = None
    ids: tuple[int | str, ...] = ()


Request = Generate | LogLikelihood
Response = Completion | LogProb


@dataclass(frozen=True, slots=True)
class Score:
    """What one prediction was worth, in [0, 1], and what a reader wants to know about how it came about.

    ``details`` holds JSON values only, e.g. ``code_status``. ``unparsed`` says that the post-process rule found
    nothing to extract: counted apart from a wrong answer. ``metrics`` are further scores of the same prediction by
    the name of their metric, each in [0, 1]. ``excluded`` is why the task itself leaves the example out of its scores.
    ``measured`` says that only the task's aggregations score the example: ``value`` is then not looked at. ``usage``
    sums up what scoring itself used of a model, under the names of :class:`ExampleResult`.
    """

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    prediction: str = ""
    unparsed: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    excluded: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False


MetricFunction = Callable[..., Any]
"""``(prediction, targets, extras) -> float in [0, 1]`` or a :class:`Score`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A per-example metric with the threshold its examples must reach unless something else is said.

    A metric that runs code takes the sandbox as a fourth argument. ``extras`` are the keys of a record's ``extras``
    that it reads.
    """

    name: str
    function: MetricFunction
    threshold: float = 1.0
    needs_sandbox: bool = False
    extras: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExampleResult:
    """Everything a run knows about one example; one ledger line.

    ``score`` is None exactly when the example was not scored (``error``, ``timeout``, ``excluded``) or only the task's
    aggregations score it (``measured``): it then counts as scored, and ``threshold`` does not apply.
    ``outputs`` and ``predictions`` hold one text per repeat. ``hash`` is the content hash, ``request`` that of what
    the model was asked. ``usage`` sums up ``prompt_tokens``, ``completion_tokens`` and ``cost``, as far as known.
    ``cluster`` names what the example shares with others, such as a text they all ask about; ``must_pass`` says that
    the gate lets no run through that fails it. ``line`` is the example's in its file, from 1. ``metrics`` are the means
    of the further scores, and empty where the metric is the only one. ``item`` is the name of the example's test item
    where that is not simply made of its id.
    """

    task: str
    id: str
    status: Status
    score: float | None
    threshold: float
    metric: str
    hash: str
    prompt: str = ""
    outputs: tuple[str, ...] = ()
    predictions: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    post_process: str = "none"
    category: str = ""
    latency_ms: float | None = None
    unparsed: bool = False
    error: str = ""
    adapter: str = ""
    request: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    must_pass: bool = False
    line: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    item: str = ""

    @property
    def is_scored(self) -> bool:
        """Whether the example counts as scored: it has a score, or is ``measured``."""
        return self.score is not None or self.status == "measured"

    @property
    def is_failed(self) -> bool:
        """Whether the example's test fails."""
        return self.status in FAILED

    @property
    def is_error(self) -> bool:
        """Whether the example could not be scored: it ended in an error or a timeout."""
        return self.status in UNSCORED

    def to_json(self) -> str:
        """Return the result as one line of ASCII JSON, whatever text the model wrote."""
        return _encode({name: getattr(self, name) for name in _RESULT_FIELDS})

    @classmethod
    def from_json(cls, line: str | bytes) -> ExampleResult:
        """Return the result that :meth:`to_json` wrote."""
        fields = json.loads(line)
        for name in ("outputs", "predictions", "targets"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


_RESULT_FIELDS = tuple(ExampleResult.__dataclass_fields__)
_encode = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode
