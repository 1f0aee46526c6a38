"""Core types: examples, requests, responses, scores and results.

All types are immutable. A run converts each example into these types, in this order::

    Example -> Generate | LogLikelihood -> Completion | LogProb -> Score -> ExampleResult
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from dataclasses import fields as fields_of
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.extra import going_back
from pytest_lmeval.formatters import concatenation, joined
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.numbers import is_count
from pytest_lmeval.text import printable

OVERALL = "overall"
"""The name of the score over all tasks; no task may have this name."""
Status = Literal["passed", "failed", "below", "measured", "quarantined", "excluded", "error", "timeout"]
UNSCORED = frozenset({"error", "timeout"})
"""Statuses without a score; they fail the example's test, unless ``--lm-max-errors`` tolerates them."""
FAILED = UNSCORED | {"failed"}
"""Statuses that fail an example's test under every gate."""
WITHOUT_SCORE = frozenset({"measured", "excluded", "error", "timeout"})
"""Statuses of results whose ``score`` is None."""


_set = object.__setattr__


class _Nothing(dict[str, Any]):
    """An immutable empty dict that many values can share."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("this mapping is shared by frozen values: make a new one")

    __setitem__ = __ior__ = setdefault = update = _refuse


NOTHING: Mapping[str, Any] = _Nothing()
"""The shared empty mapping; each value that uses it saves 64 bytes."""


@dataclass(frozen=True, slots=True)
class FewShot:
    """A worked example shown to the model before the prompt."""

    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class ExamplePolicy:
    """One example's settings for a run: gate, repeats and selection.

    ``cluster`` groups examples that share something, such as a source text. At least ``passes`` of the ``repeats`` must
    pass; if ``passes`` is None, the mean of their scores decides. If ``repeats`` is None, the run's setting applies. If
    ``threshold`` is None, the metric's threshold applies.
    """

    cluster: str = ""
    must_pass: bool = False
    passes: int | None = None
    quarantine: Mapping[str, str] = field(default_factory=dict)
    repeats: int | None = None
    tags: tuple[str, ...] = ()
    threshold: float | None = None


NO_POLICY = ExamplePolicy(quarantine=NOTHING)
POLICY_KEYS = tuple(each.name for each in fields_of(ExamplePolicy))
"""The keys of ``metadata`` (or ``extras``) that every format passes on to the run."""


def policy_of(metadata: Mapping[str, Any]) -> ExamplePolicy:
    """Return the policy in ``metadata``; ignore values of the wrong type, but accept any ``passes`` and ``repeats``."""
    if metadata.keys().isdisjoint(POLICY_KEYS):
        return NO_POLICY
    quarantine, tags, threshold = map(metadata.get, ("quarantine", "tags", "threshold"))
    return ExamplePolicy(
        cluster=str(metadata.get("cluster", "")),
        must_pass=metadata.get("must_pass") is True,
        passes=metadata.get("passes"),
        quarantine=quarantine if isinstance(quarantine, Mapping) else NOTHING,
        repeats=metadata.get("repeats"),
        tags=tuple([tag for tag in tags if isinstance(tag, str)]) if isinstance(tags, list) else (),
        threshold=float(threshold) if isinstance(threshold, int | float) else None,
    )


@dataclass(frozen=True, slots=True)
class Example:
    """One record of a task.

    ``metric`` is the metric's name as the file spells it. ``metadata`` is a spec record's ``metadata`` or a compact
    record's ``extras``: further values that affect the score or describe the example. ``line`` counts from 1. If the
    prompt is a conversation, ``messages`` is the whole conversation, including few-shot examples, and ``prompt`` is its
    text for readers. If several examples share a line, ``place`` is the number of data rows before this example.
    ``media`` lists the kinds of media in the prompts, by default the kinds in ``messages``. The constructor reads
    ``policy`` from ``metadata``.
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
    place: int = 0
    media: tuple[str, ...] = ()
    policy: ExamplePolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, "policy", policy_of(self.metadata) if self.metadata else NO_POLICY)
        if self.messages and not self.media:
            _set(self, "media", kinds_in(self.messages))


@dataclass(frozen=True, slots=True)
class RecordError:
    """An invalid record in a task file, with its line, the rule that it breaks, and the field at fault."""

    line_number: int
    task_id: str | None
    rule: str
    field: str
    detail: str

    def at(self, path: object) -> str:
        """Return the error as one line of text that begins with ``path``."""
        # The name of a field may come from the record, and must not break the line.
        return printable(f"{path}:{self.line_number}: {self.rule} {self.field}: {self.detail}", keep="")


class ToolCall(NamedTuple):
    """A model's tool call; ``arguments`` is the text that the model wrote, which may be invalid JSON.

    ``id`` links the call to its result. Hashes ignore ``id``, because servers choose new ids in every run.
    """

    id: str
    name: str
    arguments: str

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments by name, or None if the text is not a JSON object; empty for blank text and ``null``."""
        if not self.arguments.strip():
            return {}
        try:
            found = json.loads(self.arguments)
            _encode_sorted(found)  # rejects numbers that JSON lacks
        except (ValueError, RecursionError):
            return None
        return {} if found is None else found if isinstance(found, dict) else None


def values_or_text(call: ToolCall) -> Any:
    """Return a call's arguments by name, or the model's text if it is not a JSON object."""
    values = call.values
    return call.arguments if values is None else values


MEDIA_KINDS = ("image", "audio", "file")
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "image/png": "PNG",
        "image/jpeg": "JPEG",
        "image/gif": "GIF",
        "image/webp": "WebP",
        "audio/wav": "WAV",
        "audio/mpeg": "MP3",
        "audio/flac": "FLAC",
        "audio/ogg": "Ogg",
        "audio/mp4": "M4A",
        "application/pdf": "PDF",
        "application/zip": "ZIP",
        "application/octet-stream": "binary",
        "text/plain": "text",
    }
)
"""Media types with the names of their formats: all image and audio types, and common file types."""


@dataclass(frozen=True, slots=True)
class Media:
    """A description of an image, audio or other file in a prompt; :mod:`pytest_lmeval.media` reads its bytes.

    ``kind`` is ``image``, ``audio`` or ``file``. ``type`` is the MIME type that the content indicates, and ``size`` is
    the number of bytes. ``source`` describes the origin of the bytes for readers: a path, ``data:``, or a column.
    ``path`` is the file that contains the bytes. If ``source`` is an address that only the model's server reads,
    ``type``, ``sha256`` and ``path`` are empty. ``detail`` is the resolution at which the model should read an image,
    as in OpenAI's interfaces.
    """

    kind: str
    type: str
    sha256: str
    size: int
    source: str
    path: str = field(default="", compare=False, repr=False)
    detail: str = ""

    def __str__(self) -> str:
        return f"[{', '.join([f'{self.kind} {self.source}', *self.facts])}]"

    @property
    def facts(self) -> list[str]:
        """The format and the size for readers, such as ``PNG`` and ``12 kB``; empty for an address."""
        if not self.sha256:
            return []
        units = [(10**6, "MB"), (10**3, "kB"), (1, "B")]
        unit, name = next((each for each in units if self.size >= each[0]), units[-1])
        count = self.size / unit
        digits = 1 if count < 10 and unit > 1 else 0
        return [MEDIA_TYPES.get(self.type) or self.type.rpartition("/")[2], f"{count:.{digits}f} {name}"]

    @property
    def identity(self) -> list[str]:
        """The values that affect a model's answers."""
        return [self.kind, self.sha256 or self.source, *([self.detail] if self.detail else [])]

    def to_json(self) -> Mapping[str, object]:
        """Return the medium as a record for the ledger."""
        detail = {"detail": self.detail} if self.detail else {}
        if not self.sha256:
            return {self.kind: self.source, **detail}
        return {self.kind: self.source, "type": self.type, "sha256": self.sha256, "size": self.size, **detail}

    @classmethod
    def from_json(cls, fields: Mapping[str, object]) -> Media:
        """Create a medium, without readable bytes, from a record that :meth:`to_json` returned."""
        kind = next(name for name in MEDIA_KINDS if name in fields)
        known: Any = {name: fields[name] for name in ("type", "sha256", "size", "detail") if name in fields}
        return cls(**{"kind": kind, "type": "", "sha256": "", "size": 0, "source": fields[kind], **known})


def is_media(part: Any) -> bool:
    """Return True if ``part`` has the form that :meth:`Media.to_json` returns."""
    if not isinstance(part, dict):
        return False
    texts = [part[name] for name in (*MEDIA_KINDS, "type", "sha256", "detail") if name in part]
    is_named = any(name in part for name in MEDIA_KINDS) and is_count(part.get("size", 0))
    return is_named and all(isinstance(text, str) for text in texts)


def with_placeholder(part: Any) -> Any:
    """Return the placeholder of a recorded medium, or any other ``part`` unchanged."""
    return str(Media.from_json(part)) if is_media(part) else part


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a conversation, with the ``role`` ``system``, ``user``, ``assistant`` or ``tool``.

    Only an assistant message has ``tool_calls``. Only a tool message has ``tool_call_id``, the id of the call that it
    answers. ``extra`` is JSON text with fields of the message and its calls that this package does not recognize; see
    :mod:`~pytest_lmeval.extra`. If the message has media, ``parts`` lists its text and media in order, and ``content``
    is text for readers, with a placeholder for each medium.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    extra: str = ""
    parts: tuple[str | Media, ...] = ()

    @classmethod
    def of_parts(cls, role: str, parts: Sequence[str | Media], **fields: Any) -> Message:
        """Create a message from text and media, with further ``fields``."""
        has_media = any(isinstance(part, Media) for part in parts)
        return cls(role, "\n".join(map(str, parts)), parts=tuple(parts) if has_media else (), **fields)

    @property
    def media(self) -> list[Media]:
        """The media in the message."""
        return [part for part in self.parts if isinstance(part, Media)]

    def to_json(self) -> dict[str, Any]:
        """Return the message in the format that chat interfaces use, without ``extra``.

        If the message has media, its content is a list of strings and media records, as in the ledger.
        """
        fields: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.parts:
            fields["content"] = [part if isinstance(part, str) else part.to_json() for part in self.parts]
        if self.tool_calls:
            fields["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.tool_call_id:
            fields["tool_call_id"] = self.tool_call_id
        return fields

    @classmethod
    def from_json(cls, fields: Any) -> Message:
        """Create a message from ``fields`` in the format of :meth:`to_json`."""
        calls = [(each["id"], each["function"]) for each in fields.get("tool_calls", ())]
        tool_calls = tuple([ToolCall(id, function["name"], function["arguments"]) for id, function in calls])
        content, more = fields["content"], {"tool_calls": tool_calls, "tool_call_id": fields.get("tool_call_id", "")}
        if isinstance(content, str):
            return cls(fields["role"], content, **more)
        parts = [part if isinstance(part, str) else Media.from_json(part) for part in content]
        return cls.of_parts(fields["role"], parts, **more)


def kinds_in(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the kinds of media in ``messages``, sorted."""
    return tuple(sorted({media.kind for message in messages for media in message.media}))


class Joined(tuple[Message, ...]):
    """A conversation whose messages include their line endings; only :func:`formatters.joined` renders it correctly."""

    __slots__ = ()


class BestEffort(dict[str, Any]):
    """The value of an option that a request drops if the adapter or its server rejects the option."""


@dataclass(frozen=True, slots=True)
class Generate:
    """A request for a completion of ``prompt`` (text or a conversation), for the example ``id`` of ``task``.

    ``repeat`` numbers the independent responses to one prompt, from 0. ``options``, such as ``temperature``, override
    the adapter's options for this request. The adapter's ``request_options`` lists the options that a request may set.
    ``tools`` are the functions that the model may call, each with ``name``, ``description`` and ``parameters`` (a JSON
    Schema). ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of the tool to call; "" leaves the choice
    to the server. If the run has a cache, ``nth`` is the number of equal requests before this one in the same repeat.
    """

    prompt: str | tuple[Message, ...]
    task: str = ""
    id: str = ""
    repeat: int = 0
    stop: tuple[str, ...] = ()
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_choice: str = ""
    nth: int = field(default=0, compare=False)

    @property
    def text(self) -> str:
        """The prompt as text; :func:`formatters.concatenation` renders a conversation.

        :func:`formatters.joined` renders a :class:`Joined` conversation.
        """
        if isinstance(self.prompt, str):
            return self.prompt
        return joined(self.prompt) if isinstance(self.prompt, Joined) else concatenation(self.prompt)


@dataclass(frozen=True, slots=True)
class LogLikelihood:
    """A request for the probability of ``continuation`` after ``context``.

    If ``context`` is a rendered conversation, ``messages`` is that conversation. An adapter with a chat template
    formats the messages and ignores ``context``. If ``rolling`` is True, ``continuation`` is the whole text and has no
    context. If the text is longer than the model's window, the adapter reads it in several windows, and scores each
    token once. If ``moves_blanks`` is True, the context's trailing whitespace counts as the beginning of the
    continuation.
    """

    context: str
    continuation: str
    task: str = ""
    id: str = ""
    messages: tuple[Message, ...] = ()
    rolling: bool = False
    moves_blanks: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Completion:
    """A model's answer, with metadata.

    ``latency_ms`` is the duration of this request alone, and ``ttft_ms`` is the time to the first token. ``logprobs``
    are the natural log-probabilities of the answer's tokens. ``confidence`` is the probability, from 0 to 1, with which
    the model expects its answer to be right. Token counts come from the server. ``cost`` is in the currency of the
    adapter's prices. ``thoughts`` is the text that a reasoning model writes before its answer, and is never scored.
    ``reasoning_tokens`` is the part of ``completion_tokens`` that the model spent on thoughts. ``tool_calls`` are the
    calls that the model requests. If a response took several requests, ``exchanges`` lists all requests and answers in
    order, including the last. A ``cached`` answer comes from the cache, and costs neither money nor time. ``retries``
    counts the attempts before this answer; the engine sets it. ``served_by`` is the server's name for the model that
    answered. ``asides`` records a simulated user's replies. ``extra`` is JSON text with fields of the server's reply
    that this package does not recognize; see :mod:`~pytest_lmeval.extra`.
    """

    text: str
    latency_ms: float | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    logprobs: tuple[float, ...] = ()
    confidence: float | None = None
    thoughts: str = ""
    reasoning_tokens: int | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    exchanges: tuple[Exchange, ...] = ()
    ttft_ms: float | None = None
    cached: bool = False
    retries: int | None = None
    served_by: str = ""
    asides: tuple[Mapping[str, Any], ...] = ()
    extra: str = ""

    def __repr__(self) -> str:
        """Show only the fields that differ from their defaults, to keep the messages of failed assertions short."""
        given = ((each.name, getattr(self, each.name), each.default) for each in fields_of(self))
        return f"Completion({', '.join(f'{name}={value!r}' for name, value, default in given if value != default)})"

    @property
    def message(self) -> Message:
        """The answer as a message of the conversation, with the fields that its server expects back."""
        extra = going_back(self.extra, self.thoughts) if self.extra else ""
        return Message("assistant", self.text, self.tool_calls, extra=extra)

    @property
    def has_no_answer(self) -> bool:
        """True if the model produced thoughts, but neither text nor calls."""
        return bool(self.thoughts) and not self.text and not self.tool_calls

    @property
    def is_cut_off(self) -> bool:
        """True if an answer hit the token limit, or consists only of thoughts."""
        if self.exchanges:
            return any(
                each.response.finish_reason == "length" or each.response.has_no_answer for each in self.exchanges
            )
        return self.finish_reason == "length" or self.has_no_answer

    @property
    def output(self) -> str:
        """The response in the format that ledgers, replays and digests use.

        The output is the text or, if there are tool calls, a JSON object with text and calls. If the response took
        several requests, the output is a JSON array with each request's output.
        """
        if self.exchanges:
            return _encode([each.response.output for each in self.exchanges])
        # Escape text that looks like the JSON of calls, so that it is not parsed as such.
        if self.tool_calls or _calls_in(self.text) is not None:
            calls = [{"name": call.name, "arguments": values_or_text(call)} for call in self.tool_calls]
            return _encode_sorted({"text": self.text, "tool_calls": calls})
        return self.text

    @classmethod
    def of_output(cls, output: str, *, number: int = 0, **fields: Any) -> Completion:
        """Parse ``output`` into a completion, with new ids for its calls.

        ``number`` counts the answers to one example from 0, and keeps the ids of their calls distinct.
        """
        found = _calls_in(output, number)
        if found is None:
            return cls(output, **fields)
        text, calls = found
        return cls(text, tool_calls=calls, **fields)


@dataclass(frozen=True, slots=True)
class LogProb:
    """The natural log-probability of a continuation; ``greedy`` is True if greedy decoding would produce it.

    If the adapter provides ``ids``, they identify the continuation's tokens, with one id per entry in ``tokens``.
    """

    total: float
    tokens: tuple[float, ...] = ()
    greedy: bool = False
    latency_ms: float | None = None
    ids: tuple[int | str, ...] = ()
    cached: bool = False
    retries: int | None = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """One of several requests for an example, and its response."""

    request: Generate
    response: Completion


Request = Generate | LogLikelihood
Response = Completion | LogProb


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a prediction, in [0, 1], with details for readers.

    ``details`` holds JSON values, such as ``code_status``. ``unparsed`` is True if the post-process rule extracted
    nothing; reports count such answers separately from wrong answers. ``metrics`` holds further scores of the
    prediction by metric, each in [0, 1]. ``excluded`` is the task's reason for excluding the example from its scores.
    If ``measured`` is True, only the task's aggregations score the example, and the run ignores ``value``. ``usage``
    holds the tokens and costs of scoring, with the same keys as in :class:`ExampleResult`. ``thresholds`` are minimum
    values for scores in ``metrics``.
    """

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    prediction: str = ""
    unparsed: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    excluded: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    measured: bool = False
    thresholds: Mapping[str, float] = field(default_factory=dict)


MetricFunction = Callable[..., Any]
"""``(prediction, targets, extras) -> float in [0, 1]`` or a :class:`Score`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A per-example metric, with a default threshold for its examples.

    If ``needs_sandbox`` is True, the function takes the sandbox as a fourth argument. ``extras`` lists the keys of a
    record's ``extras`` that the metric reads. ``package`` is an optional dependency that the metric imports for
    scoring, and ``install`` is the pip requirement for that package. If ``needs_targets`` is False, records need no
    targets. If ``takes_calls`` is True, the function receives the output in ledger format, including tool calls, and
    requests offer ``extras.tools`` to the model. ``check`` raises RecordRefused for targets and extras with which the
    metric cannot score any answer. A ``binary`` metric returns only 1 or 0, so ``extras.not`` may negate it.
    ``extras.not`` may also negate a metric with ``asks_judge``, whose fourth argument is a function that queries the
    run's judge.
    """

    name: str
    function: MetricFunction
    threshold: float = 1.0
    needs_sandbox: bool = False
    extras: tuple[str, ...] = ()
    package: str = ""
    install: str = ""
    needs_targets: bool = True
    takes_calls: bool = False
    check: Callable[[Sequence[str], Mapping[str, Any]], None] | None = None
    binary: bool = False
    asks_judge: bool = False


COST_UNKNOWN = "cost_unknown"
"""The usage key for the number of an example's requests with unknown cost, if the cost of other requests is known."""


def read_as_own(kind: type, group: str, of: type) -> None:
    """Give ``kind`` a property for every field of the class ``of``, which is the type of its field ``group``."""
    for each in fields_of(of):
        setattr(kind, each.name, property(attrgetter(f"{group}.{each.name}")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleQuestion:
    """Identifies a result's example and its prompt.

    ``hash`` is the content hash, ``scoring_hash`` is the same hash without the prompt, and ``request`` is a hash of the
    requests to the model. ``cluster`` groups examples that share something, such as a source text. If a ``must_pass``
    example fails, the run fails. ``line`` is the example's line in the file, from 1. If lines do not determine the
    order of examples, ``place`` is the number of data rows before this example. ``item`` is the test item's name, or ""
    if the name follows from the example's id. ``tags`` are words by which a run can select the example. If the prompt
    is a conversation, ``messages`` holds its messages with their roles, and ``prompt`` is the text of all messages.
    """

    task: str
    id: str
    metric: str
    hash: str
    prompt: str = ""
    targets: tuple[str, ...] = ()
    post_process: str = "none"
    category: str = ""
    request: str = ""
    cluster: str = ""
    must_pass: bool = False
    line: int = 0
    item: str = ""
    scoring_hash: str = ""
    place: int = 0
    tags: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleAnswer:
    """The model's answer, with its duration and usage.

    ``outputs`` has one string per repeat. If the model produced thoughts, ``thoughts`` has the text before each output.
    ``cut_off`` is True if an answer hit the token limit, or consists only of thoughts. If a response took several
    requests, ``exchanges`` records all requests and answers; see :mod:`~pytest_lmeval.records.answers`. ``usage`` sums
    the known ``prompt_tokens``, ``completion_tokens`` and ``cost``. If only some requests report a cost, ``usage`` also
    has the key COST_UNKNOWN. ``request_ms`` lists the duration of each request in milliseconds, if there are several
    requests. ``ttft_ms`` lists the times to the first token. ``cached`` counts the answers from the cache, which cost
    nothing and have no durations. ``served_by`` maps the server's name for each model to the number of its answers.
    ``adapter_key`` distinguishes a project's adapters with the same name, which must not share answers.
    """

    outputs: tuple[str, ...] = ()
    latency_ms: float | None = None
    adapter: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    thoughts: tuple[str, ...] = ()
    cut_off: bool = False
    exchanges: tuple[Mapping[str, Any], ...] = ()
    request_ms: tuple[float, ...] = ()
    ttft_ms: tuple[float, ...] = ()
    cached: int = 0
    served_by: Mapping[str, int] = field(default_factory=dict)
    adapter_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleOutcome:
    """The score and status of the answer.

    ``score`` is None only if ``status`` is ``error``, ``timeout``, ``excluded`` or ``measured``. Only the task's
    aggregations score a ``measured`` example; it counts as scored, and ``threshold`` does not apply. ``predictions``
    has one string per repeat. ``metrics`` holds the mean of each further metric over the repeats. ``quarantine`` holds
    the ``until`` and ``reason`` of a ``quarantined`` example, which cannot affect the run's outcome.
    """

    status: Status
    score: float | None
    threshold: float
    predictions: tuple[str, ...] = ()
    unparsed: bool = False
    error: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    quarantine: Mapping[str, str] = field(default_factory=dict)


if TYPE_CHECKING:

    class _Fields(ExampleQuestion, ExampleAnswer, ExampleOutcome):  # type: ignore[misc]  # never instantiated
        """The fields of all groups, for type checkers."""

else:
    _Fields = object


@dataclass(frozen=True, slots=True, init=False)
class ExampleResult(_Fields):
    """Everything that a run knows about one example, stored as one line of the ledger.

    Every field of a group is also an attribute of the result; for example, ``result.score`` is
    ``result.outcome.score``. Create a result from groups, or from fields given by name or in the order of
    RESULT_FIELDS. :func:`dataclasses.replace` accepts groups and fields.
    """

    question: ExampleQuestion
    answer: ExampleAnswer
    outcome: ExampleOutcome

    def __init__(
        self,
        *values: Any,
        question: ExampleQuestion | None = None,
        answer: ExampleAnswer | None = None,
        outcome: ExampleOutcome | None = None,
        **fields: Any,
    ) -> None:
        # `None in (question, ...)` would compare every field of each group.
        if values or fields or question is None or answer is None or outcome is None:
            fields.update(zip(RESULT_FIELDS, values, strict=False))
            given = (question, answer, outcome)
            question, answer, outcome = map(_with_fields, _GROUPS.values(), given, _by_group(fields))
        _set(self, "question", question)
        _set(self, "answer", answer)
        _set(self, "outcome", outcome)

    @property
    def times(self) -> tuple[float, ...]:
        """The duration in milliseconds of each request that the model, not the cache, answered."""
        ms = self.answer.latency_ms
        return self.answer.request_ms or (() if ms is None else (ms,))

    @property
    def decides(self) -> bool:
        """True if the example is not in quarantine, so that its result counts towards scores."""
        return self.outcome.status != "quarantined"

    @property
    def is_scored(self) -> bool:
        """True if the example counts as scored: it has a score outside quarantine, or is ``measured``."""
        status = self.outcome.status
        return (self.outcome.score is not None and status != "quarantined") or status == "measured"

    @property
    def is_failed(self) -> bool:
        """True if the status fails the example's test, unless ``--lm-max-errors`` tolerates the error."""
        return self.status in FAILED

    @property
    def is_error(self) -> bool:
        """True if the example ended in an error or a timeout."""
        return self.outcome.status in UNSCORED

    def to_json(self) -> str:
        """Return the result as one line of ASCII JSON."""
        values = _question_values(self.question) + _answer_values(self.answer) + _outcome_values(self.outcome)
        fields = dict(zip(RESULT_FIELDS, _as_in_a_line(values), strict=True))
        for name in _IF_ANY:
            if not fields[name]:
                del fields[name]
        return _encode(fields)

    @classmethod
    def from_json(cls, line: str | bytes) -> ExampleResult:
        """Create a result from a line that :meth:`to_json` returned."""
        fields = {**_IF_ANY, **json.loads(line)}
        for name in _TUPLES:
            fields[name] = tuple(fields[name])
        fields["messages"] = tuple(map(Message.from_json, fields["messages"]))
        return cls(
            question=ExampleQuestion(**dict(zip(_QUESTION, _question_items(fields), strict=True))),
            answer=ExampleAnswer(**dict(zip(_ANSWER, _answer_items(fields), strict=True))),
            outcome=ExampleOutcome(**dict(zip(_OUTCOME, _outcome_items(fields), strict=True))),
        )


_GROUPS: Mapping[str, type] = {
    "question": ExampleQuestion,
    "answer": ExampleAnswer,
    "outcome": ExampleOutcome,
}
_QUESTION, _ANSWER, _OUTCOME = _NAMES = [tuple(each.name for each in fields_of(kind)) for kind in _GROUPS.values()]
_TUPLES = [each.name for kind in _GROUPS.values() for each in fields_of(kind) if each.type.startswith("tuple[")]
_GROUP_OF = {name: number for number, names in enumerate(_NAMES) for name in names}
RESULT_FIELDS = (
    *("task", "id", "status", "score", "threshold", "metric", "hash", "prompt", "outputs", "predictions", "targets"),
    *("post_process", "category", "latency_ms", "unparsed", "error", "adapter", "request", "usage", "details"),
    *("cluster", "must_pass", "line", "metrics", "item", "thoughts", "cut_off", "exchanges", "scoring_hash"),
    *("request_ms", "ttft_ms", "cached", "quarantine", "served_by", "adapter_key", "place", "tags", "messages"),
)
"""The fields of a result in ledger order."""
_IF_ANY: Mapping[str, Any] = {"place": 0, "tags": (), "messages": ()}
"""The values at which a ledger line omits a field."""
_question_values, _answer_values, _outcome_values = (attrgetter(*names) for names in _NAMES)
_question_items, _answer_items, _outcome_items = (itemgetter(*names) for names in _NAMES)
_as_in_a_line = itemgetter(*[(*_QUESTION, *_ANSWER, *_OUTCOME).index(name) for name in RESULT_FIELDS])
for _group, _kind in _GROUPS.items():
    read_as_own(ExampleResult, _group, _kind)


def _by_group(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = [{} for _ in _GROUPS]
    for name, value in fields.items():
        if name not in _GROUP_OF:
            raise TypeError(f"a result has no field {name!r}")
        groups[_GROUP_OF[name]][name] = value
    return groups


def _with_fields(kind: type, group: Any, fields: Mapping[str, Any]) -> Any:
    if group is None or not fields:
        return kind(**fields) if group is None else group
    # `replace` keeps the class of a group; a result from a ledger has a special class.
    return kind(**{**{each.name: getattr(group, each.name) for each in fields_of(kind)}, **fields})


def _calls_in(output: str, answer: int = 0) -> tuple[str, tuple[ToolCall, ...]] | None:
    if not output.startswith("{") or '"tool_calls"' not in output:
        return None
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):
        return None
    if found.keys() != {"text", "tool_calls"} or not isinstance(found["text"], str):
        return None
    calls: list[ToolCall] = []
    for call in found["tool_calls"] if isinstance(found["tool_calls"], list) else [None]:
        if not isinstance(call, dict) or call.keys() != {"name", "arguments"} or not isinstance(call["name"], str):
            return None
        given = call["arguments"]
        # Some servers accept only nine letters and digits.
        id = f"call{answer:03}{len(calls):02}"
        calls.append(ToolCall(id, call["name"], given if isinstance(given, str) else _encode_sorted(given)))
    return found["text"], tuple(calls)


def _as_json(value: object) -> object:
    if isinstance(value, Message):
        return value.to_json()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


_encode = compact_encoder(default=_as_json)
_encode_sorted = compact_encoder(sort_keys=True)
