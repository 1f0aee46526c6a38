"""The nouns: what a task is made of, what goes to a model, what comes back, and what it was worth.

Every one is a frozen value. An example goes through them in this order::

    Example -> Generate | LogLikelihood -> Completion | LogProb -> Score -> ExampleResult
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from dataclasses import fields as fields_of
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pytest_lmeval.compact_json import compact_encoder
from pytest_lmeval.formatters import concatenation, joined
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.text import printable

OVERALL = "overall"
"""What the score over all tasks is called; no task is."""
Status = Literal["passed", "failed", "below", "measured", "quarantined", "excluded", "error", "timeout"]
UNSCORED = frozenset({"error", "timeout"})
"""The statuses of examples that could not be scored; their tests fail, but for those ``--lm-max-errors`` allows."""
FAILED = UNSCORED | {"failed"}
"""The statuses with which the test of an example fails, whatever the gate."""
WITHOUT_SCORE = frozenset({"measured", "excluded", "error", "timeout"})
"""The statuses of results whose ``score`` is None."""


_set = object.__setattr__


class _Nothing(dict[str, Any]):
    """An empty dict that stays empty, so that all values that need one may share it."""

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("this mapping is shared by values that are frozen: make a new one")

    __setitem__ = __ior__ = setdefault = update = _refuse


NOTHING: Mapping[str, Any] = _Nothing()
"""The empty mapping of every value that has nothing to say: 64 bytes for each of them otherwise."""


@dataclass(frozen=True, slots=True)
class FewShot:
    """One worked example that is shown to the model ahead of the prompt."""

    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class ExamplePolicy:
    """Settings of one example for the run: gate, repeats and selection.

    ``cluster`` names what the example shares with others, such as a text they all ask about. ``passes`` of its
    ``repeats`` have to pass; None leaves either to the run. ``threshold`` is None if the metric's applies.
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
"""The keys of ``metadata``, or ``extras``, that the run reads of every example, in any format."""


def policy_of(metadata: Mapping[str, Any]) -> ExamplePolicy:
    """Return the policy that ``metadata`` sets; ignore values of the wrong type, but for repeats, which are checked."""
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

    ``metric`` is the file's own word for it. ``metadata`` is whatever else decides the score or describes the
    example: ``metadata`` of a spec record, ``extras`` of a compact one. ``line`` counts from 1. ``messages`` is the
    whole conversation, few-shots included, of a task that asks in messages; ``prompt`` then is what a reader is shown.
    ``place`` counts the rows of data before this one, from 0, where several examples are of one line. ``policy`` is
    read from ``metadata`` as the example is made.
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
    policy: ExamplePolicy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set(self, "policy", policy_of(self.metadata) if self.metadata else NO_POLICY)


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


class ToolCall(NamedTuple):
    """A call of a tool that a model asks for; ``arguments`` is the JSON text that it wrote, valid or not.

    ``id`` is what the answer to the call refers to. That of a server differs from run to run: nothing is decided by it.
    """

    id: str
    name: str
    arguments: str

    @property
    def values(self) -> dict[str, Any] | None:
        """The arguments by name; None where the model wrote no JSON object. Nothing and ``null`` are no arguments."""
        if not self.arguments.strip():
            return {}
        try:
            found = json.loads(self.arguments)
            _encode_sorted(found)  # numbers that JSON does not have
        except (ValueError, RecursionError):
            return None
        return {} if found is None else found if isinstance(found, dict) else None


def values_or_text(call: ToolCall) -> Any:
    """Return the arguments of a call by name, or the model's text if it is no JSON object."""
    values = call.values
    return call.arguments if values is None else values


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; ``role`` is ``system``, ``user``, ``assistant`` or ``tool``.

    ``tool_calls`` are those of an assistant; ``tool_call_id`` of a tool's message says which of them it answers.
    """

    role: str
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the message as chat interfaces have it."""
        fields: dict[str, Any] = {"role": self.role, "content": self.content}
        if self.tool_calls:
            fields["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for call in self.tool_calls
            ]
        if self.tool_call_id:
            fields["tool_call_id"] = self.tool_call_id
        return fields


class Joined(tuple[Message, ...]):
    """A conversation whose text is that of :func:`formatters.joined`: its messages bring their own line ends."""

    __slots__ = ()


class Wish(dict[str, Any]):
    """The value of an option of a request that is left out if the adapter, or its server, does not take it."""


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask for a completion of ``prompt``, text or a conversation, on behalf of example ``id`` of ``task``.

    ``repeat`` numbers the independent responses to one prompt, from 0. ``options`` are what one request has in
    place of the adapter's options, such as ``temperature``; an adapter says which it takes in its ``request_options``.
    ``tools`` are the functions that the model may call: ``name``, ``description`` and ``parameters``, a JSON Schema.
    ``tool_choice`` is ``auto``, ``none``, ``required`` or the name of the one to call; empty leaves it to the server.
    ``nth`` counts, where answers are cached, the equal requests of the same repeat that came before.
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
    chat template writes the messages by it and leaves ``context`` alone. ``rolling`` asks for a whole text without a
    context: one longer than the model reads at once is read in windows, each token once. ``moves_blanks``: blanks at
    the end of the context are read, and counted, as the beginning of the continuation.
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
    """What a model wrote, and what the adapter knows of how.

    ``latency_ms`` is the time of this request alone, ``ttft_ms`` that until its first token. ``logprobs`` are the
    natural log-probabilities of its tokens. ``confidence`` is how probable the model says that its answer is right, in
    [0, 1]. Numbers of tokens are the server's own; ``cost`` is in the currency of the prices that the adapter was
    given. ``thoughts`` are what a reasoning model wrote before its answer: they are never scored, nor sent back.
    ``reasoning_tokens`` are those of ``completion_tokens`` that went into them. ``tool_calls`` are the calls that the
    model asks for. ``exchanges`` are, where one response took several requests, all of them in order, this one's last.
    ``cached`` says that it was asked for in another run: nothing was paid for it now, and no time taken.
    ``retries`` are the attempts before this one; whoever asks the adapter counts them. ``served_by`` is what the server
    itself says of the model that answered. ``asides`` are, of a talk with a simulated user, the records of its replies.
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

    def __repr__(self) -> str:
        """Return its fields that are not at their defaults, so that a failed assert shows little beside the text."""
        given = ((each.name, getattr(self, each.name), each.default) for each in fields_of(self))
        return f"Completion({', '.join(f'{name}={value!r}' for name, value, default in given if value != default)})"

    @property
    def has_no_answer(self) -> bool:
        """Whether the model thought, and then neither said nor called anything."""
        return bool(self.thoughts) and not self.text and not self.tool_calls

    @property
    def is_cut_off(self) -> bool:
        """Whether the answer is cut off: at the limit of tokens, or before it began."""
        if self.exchanges:
            return any(
                each.response.finish_reason == "length" or each.response.has_no_answer for each in self.exchanges
            )
        return self.finish_reason == "length" or self.has_no_answer

    @property
    def output(self) -> str:
        """The response as ledger, replay and digest have it.

        That is the text, or, of one with tool calls, the compact JSON of text and calls. What took several requests is
        the JSON array of their outputs.
        """
        if self.exchanges:
            return _encode([each.response.output for each in self.exchanges])
        # A text that looks like the JSON of calls must not be read as that.
        if self.tool_calls or _calls_in(self.text) is not None:
            calls = [{"name": call.name, "arguments": values_or_text(call)} for call in self.tool_calls]
            return _encode_sorted({"text": self.text, "tool_calls": calls})
        return self.text

    @classmethod
    def of_output(cls, output: str, *, number: int = 0, **fields: Any) -> Completion:
        """Return the completion of which ``output`` is the output; the calls get ids of their own.

        Those of answers to one example are told apart by the answer's ``number``, from 0.
        """
        found = _calls_in(output, number)
        if found is None:
            return cls(output, **fields)
        text, calls = found
        return cls(text, tool_calls=calls, **fields)


@dataclass(frozen=True, slots=True)
class LogProb:
    """Natural log-probability of a continuation: in total, per token, and whether it is the greedy one.

    ``ids`` identify the continuation's tokens themselves, one entry for each of ``tokens``, where the adapter can.
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
    """One of several requests for an example, and the response to it."""

    request: Generate
    response: Completion


Request = Generate | LogLikelihood
Response = Completion | LogProb


@dataclass(frozen=True, slots=True)
class Score:
    """What one prediction was worth, in [0, 1], and what a reader wants to know about how it came about.

    ``details`` holds JSON values only, e.g. ``code_status``. ``unparsed`` says that the post-process rule found
    nothing to extract: counted apart from a wrong answer. ``metrics`` are further scores of the same prediction by
    the name of their metric, each in [0, 1]. ``excluded`` is why the task itself leaves the example out of its scores.
    ``measured`` says that only the task's aggregations score the example: ``value`` is then not looked at. ``usage``
    sums up what scoring itself used of a model, under the names of :class:`ExampleResult`. ``thresholds`` are those
    that further scores must reach, too, by the names that they have in ``metrics``.
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
    """A per-example metric with the threshold its examples must reach unless something else is said.

    A metric that runs code takes the sandbox as a fourth argument. ``extras`` are the keys of a record's ``extras``
    that it reads. ``package`` is what it imports when it scores and not every installation has, ``install`` what pip
    installs to get it. ``needs_targets`` is False where a record may be without. A metric that ``takes_calls`` gets the
    output as it is in the ledger, tool calls included, and its examples are asked with ``extras.tools``. ``check``
    raises RecordRefused for targets and extras that no answer could be scored by. ``binary`` says that it gives 1 or 0
    and nothing between: ``extras.not`` may turn it round, as it may one that ``asks_judge``. That one takes as a fourth
    argument what asks the run's judge.
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
"""In the usage of an example: how many of its requests do not tell their cost, where others of it do."""


def read_as_own(kind: type, group: str, of: type) -> None:
    """Make every field of the class ``of``, which the field ``group`` of ``kind`` holds, an attribute of ``kind``."""
    for each in fields_of(of):
        setattr(kind, each.name, property(attrgetter(f"{group}.{each.name}")))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleQuestion:
    """Which example a result is of, and what it asked.

    ``hash`` is the content hash, ``scoring_hash`` that of all in it but the prompt, ``request`` that of what the model
    was asked. ``cluster`` names what the example shares with others, such as a text they all ask about; ``must_pass``
    says that the run fails if this example fails. ``line`` is the example's in its file, from 1; ``place`` counts the
    rows of the task's data before it, from 0, where its line does not say in which order they are. ``item`` is the name
    of the example's test item where that is not simply made of its id. ``tags`` are the words it can be chosen by.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleAnswer:
    """What the model answered, and what that took.

    ``outputs`` hold one text per repeat, ``thoughts`` those before each of them, and are empty without any;
    ``cut_off`` says that an output is cut off at the limit of tokens, or that none came after thoughts. ``exchanges``
    are the records of all requests for an example that took several a response; see
    :mod:`~pytest_lmeval.records.answers`. ``usage`` sums up ``prompt_tokens``, ``completion_tokens`` and ``cost``, as
    far as known, COST_UNKNOWN where only some requests tell theirs. ``request_ms`` are the times of its requests where
    there are several, ``ttft_ms`` those until a first token. ``cached`` counts the answers that came out of the cache:
    they cost nothing, and times are of the others. ``served_by`` counts the answers by what servers said of the model
    that gave them. ``adapter_key`` distinguishes a project's own adapter from others of its name: its answers are not
    used again in their place.
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
    """What the answer was worth.

    ``score`` is None exactly when the example was not scored (``error``, ``timeout``, ``excluded``) or only the task's
    aggregations score it (``measured``): it then counts as scored, and ``threshold`` does not apply. ``predictions``
    hold one text per repeat. ``metrics`` are the means of the further scores, and empty where the metric is the only
    one. ``quarantine`` says ``until`` when, and for what ``reason``, the example is ``quarantined``: whatever came of
    it decides nothing.
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

    class _Fields(ExampleQuestion, ExampleAnswer, ExampleOutcome):  # type: ignore[misc]  # none is ever made
        """The fields of all groups, as a type checker sees those of a result."""

else:
    _Fields = object


@dataclass(frozen=True, slots=True, init=False)
class ExampleResult(_Fields):
    """Everything a run knows about one example; one ledger line.

    Each field of a group is one of the result, too: ``result.score`` is ``result.outcome.score``. A result is made of
    groups or of fields, in the order of RESULT_FIELDS or by name; :func:`dataclasses.replace` takes either.
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
        # Not by `None in (question, ...)`, which would compare each group field by field.
        if values or fields or question is None or answer is None or outcome is None:
            fields.update(zip(RESULT_FIELDS, values, strict=False))
            given = (question, answer, outcome)
            question, answer, outcome = map(_with_fields, _GROUPS.values(), given, _by_group(fields))
        _set(self, "question", question)
        _set(self, "answer", answer)
        _set(self, "outcome", outcome)

    @property
    def times(self) -> tuple[float, ...]:
        """The milliseconds of each request that is known to have been asked."""
        ms = self.answer.latency_ms
        return self.answer.request_ms or (() if ms is None else (ms,))

    @property
    def decides(self) -> bool:
        """Whether the result counts for scores: it is not in quarantine."""
        return self.outcome.status != "quarantined"

    @property
    def is_scored(self) -> bool:
        """Whether the example counts as scored: it has a score that decides, or is ``measured``."""
        status = self.outcome.status
        return (self.outcome.score is not None and status != "quarantined") or status == "measured"

    @property
    def is_failed(self) -> bool:
        """Whether the example's test fails."""
        return self.status in FAILED

    @property
    def is_error(self) -> bool:
        """Whether the example could not be scored: it ended in an error or a timeout."""
        return self.outcome.status in UNSCORED

    def to_json(self) -> str:
        """Return the result as one line of ASCII JSON, whatever text the model wrote."""
        values = _question_values(self.question) + _answer_values(self.answer) + _outcome_values(self.outcome)
        fields = dict(zip(RESULT_FIELDS, _as_in_a_line(values), strict=True))
        for name in _IF_ANY:
            if not fields[name]:
                del fields[name]
        return _encode(fields)

    @classmethod
    def from_json(cls, line: str | bytes) -> ExampleResult:
        """Return the result that :meth:`to_json` wrote."""
        fields = {**_IF_ANY, **json.loads(line)}
        for name in _TUPLES:
            fields[name] = tuple(fields[name])
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
    *("request_ms", "ttft_ms", "cached", "quarantine", "served_by", "adapter_key", "place", "tags"),
)
"""The fields of a result in the order in which a ledger's line has them."""
_IF_ANY: Mapping[str, Any] = {"place": 0, "tags": ()}
"""Fields that a ledger's line has only where they say something, and what they are elsewhere."""
_question_values, _answer_values, _outcome_values = (attrgetter(*names) for names in _NAMES)
_question_items, _answer_items, _outcome_items = (itemgetter(*names) for names in _NAMES)
_as_in_a_line = itemgetter(*[(*_QUESTION, *_ANSWER, *_OUTCOME).index(name) for name in RESULT_FIELDS])
for _group, _kind in _GROUPS.items():
    read_as_own(ExampleResult, _group, _kind)


def _by_group(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of each group of a result; raise TypeError for one that there is not."""
    groups: list[dict[str, Any]] = [{} for _ in _GROUPS]
    for name, value in fields.items():
        if name not in _GROUP_OF:
            raise TypeError(f"a result has no field {name!r}")
        groups[_GROUP_OF[name]][name] = value
    return groups


def _with_fields(kind: type, group: Any, fields: Mapping[str, Any]) -> Any:
    if group is None or not fields:
        return kind(**fields) if group is None else group
    # Not by `replace`: a group that was read from a ledger may be of a class of its own.
    return kind(**{**{each.name: getattr(group, each.name) for each in fields_of(kind)}, **fields})


def _calls_in(output: str, answer: int = 0) -> tuple[str, tuple[ToolCall, ...]] | None:
    """Return text and calls of an output that is the JSON of both, else None."""
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
        # Nine letters and digits: some servers take no others.
        id = f"call{answer:03}{len(calls):02}"
        calls.append(ToolCall(id, call["name"], given if isinstance(given, str) else _encode_sorted(given)))
    return found["text"], tuple(calls)


_encode = compact_encoder()
_encode_sorted = compact_encoder(sort_keys=True)
