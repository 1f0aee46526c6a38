"""Record a running eval example: its scores, steps and errors."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import inspect
import json
import math
import threading
import time
from bisect import insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from pytest_lmeval.errors import AdapterError, BudgetSpent, LmevalError, ScoringError, UsageError
from pytest_lmeval.functions.steps import Step, usage_of
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.leaderboard.details import CALLED
from pytest_lmeval.text import calling_frame, portable_path
from pytest_lmeval.types import Completion, Generate, Message

if TYPE_CHECKING:
    from pytest_lmeval.functions.tools import ExampleTools

CURRENT: ContextVar[ExampleState | None] = ContextVar("lmeval_example", default=None)
"""The running code's example, also within its tasks and ``asyncio.to_thread`` calls."""
LARGEST = 1 << 20
"""The maximum length of a step's value, in characters."""


class Watcher(Protocol):
    """An object whose methods are called when an example begins and when it ends."""

    @property
    def running(self) -> Collection[ExampleState]:
        """The examples that have begun but not ended."""

    def began(self, state: ExampleState) -> None:
        """Note that an example has begun."""

    def ended(self, state: ExampleState) -> None:
        """Note that an example has ended."""


class Unused:
    """Calls to ``lm`` methods that have no effect until the function uses their results."""

    def __init__(self) -> None:
        self._found: dict[object, tuple[str, str, int]] = {}

    def awaited(self, what: str) -> object:
        """Record a call to ``what`` that must be awaited; return an object for :meth:`mark_used`."""
        return self._record(f"{what} was never awaited, so nothing was asked: write await {what}(...)")

    def block(self, what: str) -> object:
        """Record a call to ``what`` that must be in a ``with`` statement; return an object for :meth:`mark_used`."""
        return self._record(f"{what}(...) has no effect without with: write with {what}(...):")

    def mark_used(self, made: object) -> None:
        """Mark a recorded call as used."""
        self._found.pop(made, None)

    @property
    def messages(self) -> list[str]:
        """A message for each call that was not used."""
        return [f"{portable_path(path)}:{line}: {message}" for message, path, line in self._found.values()]

    def _record(self, message: str) -> object:
        frame, made = calling_frame(), object()
        self._found[made] = message, frame.f_code.co_filename, frame.f_lineno
        return made


class ExampleState:
    """The record of one call to an eval function, which is one repeat of an example.

    ``scores`` are in the order of recording, and ``reasons`` maps score names to explanations. ``failure`` is the first
    error that the application cannot undo, such as a request without an answer or an invalid score. ``not_applicable``
    names the scores that were recorded as None, in order. ``output`` is the application's answer as JSON values, or
    None if it recorded no answer. ``may_fail`` counts the open blocks that allow requests to fail. After the end,
    ``left`` describes unfinished work, and ``unfinished`` holds the requests without an answer. ``unanswered`` is the
    error to report if the example ends while a simulated user waits for a reply. ``tasks`` are the example's tasks in
    the loop that may have an unretrieved exception. ``lost`` describes the first exception in a task or thread that the
    function did not retrieve. ``is_beside`` is True if the example runs concurrently; ``printed`` then contains its
    output, as pairs of a source (``stdout``, ``stderr`` or ``log``) and text. ``broken`` is the failure of a subtest
    after which the function continued. ``is_taken`` is True once the result exists. ``thread`` identifies the example's
    thread. ``on_late`` is called if any code uses the example after its end, and ``watcher`` is called when the example
    begins and ends. ``given_ids`` maps the tool-call ids given to the application to the ids from the model's server.
    ``given_extras`` maps the call ids in an answer to the answer's unknown fields. ``tools`` are the example's tools,
    if their calls are recorded. ``unused`` contains ``lm`` calls that have no effect yet.
    """

    def __init__(
        self,
        task: str,
        id: str,
        repeat: int,
        on_late: Callable[[ExampleState, str], None],
        watcher: Watcher | None = None,
    ) -> None:
        self.task = task
        self.id = id
        self.repeat = repeat
        self.steps: list[Step] = []
        self.scores: dict[str, float] = {}
        self.not_applicable: dict[str, None] = {}
        self.reasons: dict[str, str] = {}
        self.notes: dict[str, Any] = {}
        self.failure: LmevalError | None = None
        self.output: Any = None
        self.may_fail = 0
        self.left = ""
        self.lost = ""
        self.tasks: set[asyncio.Task[Any]] = set()
        self.unanswered = ""
        self.printed: list[tuple[str, str]] = []
        self.is_beside = False
        self.has_ended = False
        self.broken = ""
        self.is_taken = False
        self.thread = 0
        self.given_ids: dict[str, str] = {}
        self.given_extras: dict[tuple[str, ...], str] = {}
        self.tools: ExampleTools | None = None
        self.unused = Unused()
        self.unfinished: list[Step] = []
        self.on_late = on_late
        self._watcher = watcher
        self._started = time.perf_counter()
        self._lock = threading.Lock()

    def begin(self, *, beside: bool = False) -> None:
        """Start the example's clock."""
        self.is_beside = beside
        self.thread = threading.get_ident()
        self._started = time.perf_counter()
        if self._watcher is not None:
            self._watcher.began(self)

    def end(self) -> None:
        """End the example; record unfinished work, except requests that the application cancelled."""
        if not self.has_ended:
            stop(self)
        if self.unused.messages or self.unfinished or self.unanswered:
            self.left = self._undone()
        if self._watcher is not None:
            self._watcher.ended(self)

    @property
    def is_alone(self) -> bool:
        """True if the example is pytest's current item, runs in the calling thread, and is the only example running."""
        others = self._watcher is not None and len(self._watcher.running) > 1
        return not (self.is_beside or others) and self.thread == threading.get_ident()

    @property
    def now_ms(self) -> float:
        """Milliseconds since the example's start."""
        return (time.perf_counter() - self._started) * 1000

    def check_is_running(self, what: str) -> None:
        """Raise UsageError if the example has ended: tasks and threads that outlive it must not change its result."""
        if self.has_ended:
            message = f"{place()}: {what} after its example had ended ({self.task}: {self.id})"
            self.fail(ScoringError(f"{message}: await the task, or join the thread, that it is in"))
            self.on_late(self, message)
            raise UsageError(message)

    def score(self, name: object, value: object, why: object = "") -> None:
        """Record a score; raise ScoringError for an invalid value, or for a second, different value of the same score.

        None means that the score does not apply to the example.
        """
        self.check_is_running(f"lm.score({name!r:.60})")
        if not isinstance(name, str) or not name.strip():
            self.refuse(f"lm.score: expected a name for the score, got {name!r:.60}")
        number = None if value is None else _number(value)
        if number is not None and not (math.isfinite(number) and 0.0 <= number <= 1.0):
            expected = "a bool, a number from 0 to 1, or None for a score that does not apply"
            self.refuse(f"lm.score({name!r}): expected {expected}, got {value!r:.60}")
        if why != "":
            self._explain(str(name), why)
        with self._lock:
            before = None if name in self.not_applicable else self.scores.get(name, number)
            if number is None:
                self.not_applicable[str(name)] = None
            else:
                self.scores.setdefault(str(name), number)
        if before != number:
            now, then = ("None" if each is None else f"{each:g}" for each in (number, before))
            self.refuse(f"lm.score({name!r}) is {now}, and was {then} before; a name has one score")

    def _explain(self, name: str, why: object) -> None:
        if not isinstance(why, str):
            self.refuse(f"lm.score({name!r}): why: expected a text, got {why!r:.60}")
        self.reasons[name] = self._small(why, f"lm.score({name!r:.60})")

    def note(self, name: str, value: object) -> None:
        """Record a note for readers of the result."""
        self.check_is_running(f"lm.note({name!r:.60})")
        self.notes[str(name)] = self._small(value, f"lm.note({name!r:.60})")

    def record_output(self, value: object) -> None:
        """Record the application's answer; a later call replaces it."""
        self.check_is_running("lm.output(...)")
        self.output = self._small(value, "lm.output(...)")

    def record_returned(self, returned: object) -> None:
        """Record the function's return value as the output; raise ScoringError if the value has an unsuitable type."""
        if isinstance(returned, str | Mapping | Sequence):
            self.record_output(returned)
            return
        raise ScoringError(f"the function returned {_shown(returned)}")

    def step(self, kind: str, name: str, input: object, output: object) -> Step:
        """Record a step of the application; raise UsageError if it exceeds 1 MiB."""
        what = f"lm.step({kind!r:.60}, {name!r:.60})"
        self.check_is_running(what)
        if not (isinstance(kind, str) and kind and isinstance(name, str)):
            self.refuse(f"{what}: expected a kind and a name, both text")
        step = Step(kind, name, self._small(input, what), self._small(output, what), self.now_ms)
        self.steps.append(step)
        return step

    def insert(self, step: Step) -> None:
        """Insert a step, sorted by start time."""
        insort(self.steps, step, key=lambda each: each.start_ms)

    def break_off(self, reason: str, *, is_failure: bool) -> None:
        """Record that part of the example failed or could not be scored, but that the function continues."""
        if is_failure:
            self.broken = self.broken or reason
        else:
            self.fail(ScoringError(reason))

    def fail(self, error: LmevalError) -> None:
        """Mark the example as an error that the application cannot undo."""
        if self.failure is None:
            self.failure = error

    def _undone(self) -> str:
        for message in self.unused.messages:
            return message
        for step in self.unfinished:
            if not step.cancelled:
                what = f"a {step.kind} to {step.name} was still unanswered"
                if step.kind in CALLED:
                    what = f"the tool {step.name} was still running"
                return f"{what} when the function had ended: await it before the function returns"
        return self.unanswered

    def refuse(self, message: str) -> NoReturn:
        """Mark the example as an error, and raise a ScoringError that names the caller's position."""
        error = ScoringError(f"{place()}: {message}")
        self.fail(error)
        raise error

    def _small(self, value: object, what: str) -> Any:
        kept, size = as_json(value)
        if size > LARGEST:
            error = UsageError(f"{place()}: {what}: {size:,} characters; a step holds at most {LARGEST:,}")
            self.fail(error)
            raise error
        return kept


@contextmanager
def allow_failures(state: ExampleState, made: object) -> Iterator[None]:
    """Allow requests that begin within the block to fail; ``made`` comes from :meth:`Unused.block`."""
    state.unused.mark_used(made)
    state.may_fail += 1
    try:
        yield
    finally:
        state.may_fail -= 1


def stop(state: ExampleState) -> list[Step]:
    """Stop recording; return the requests without an answer.

    The application may have just cancelled some of these requests, which its clients and tasks report a moment later.
    """
    state.has_ended = True
    state.unfinished = [step for step in state.steps if step.is_open]
    return state.unfinished


def open_request(
    state: ExampleState, adapter: str, prompt: str | tuple[Message, ...], options: Mapping[str, Any]
) -> tuple[Generate, Step]:
    """Create an example's request and its step; ``options`` are additional fields of :class:`Generate`."""
    request = Generate(prompt, state.task, state.id, state.repeat, **options)
    step = open_step(state, "request", adapter, request)
    if state.given_ids and not isinstance(prompt, str):
        request = replace(request, prompt=tuple(_as_given(each, state.given_ids) for each in prompt))
    return request, step


def close_answered(state: ExampleState, step: Step, answer: Completion) -> Completion:
    """Record the answer to a step's request; return the answer with this run's tool-call ids."""
    if answer.tool_calls:
        answer = _with_own_ids(state, step, answer)
    step.ms = answer.latency_ms if answer.latency_ms is not None else state.now_ms - step.start_ms
    step.output = answer.output
    step.thoughts = answer.thoughts
    step.served_by = answer.served_by
    step.extra = answer.extra
    step.cached = answer.cached
    step.usage = usage_of(answer)
    return answer


def _with_own_ids(state: ExampleState, step: Step, answer: Completion) -> Completion:
    """Replace an answer's call ids with ids that are derived from the request.

    Later requests contain the ids, and recorded answers are looked up by a request's text. Each id is therefore unique
    in its example, and is the same whether the answer comes from the model, a ledger or the cache.
    """
    asked = f"{state.repeat} {step.key} {_equal_before(state, step)}"
    calls = []
    for number, call in enumerate(answer.tool_calls):
        # Some servers accept only nine letters and digits.
        id = base64.b32encode(hashlib.sha256(f"{asked} {number}".encode("ascii")).digest())[:9].decode("ascii").lower()
        state.given_ids[id] = call.id
        calls.append(call._replace(id=id))
    if answer.extra:
        state.given_extras[tuple([call.id for call in calls])] = answer.message.extra
    return replace(answer, tool_calls=tuple(calls))


def with_extras(state: ExampleState, prompt: str | tuple[Message, ...]) -> str | tuple[Message, ...]:
    """Add the unknown fields of an answer to a message in the prompt that repeats the answer's tool calls."""
    known = state.given_extras
    if not known or isinstance(prompt, str):
        return prompt
    return tuple(_with_extra(each, known.get(tuple([call.id for call in each.tool_calls]), "")) for each in prompt)


def _with_extra(message: Message, extra: str) -> Message:
    return replace(message, extra=extra) if extra and not message.extra else message


def _equal_before(state: ExampleState, step: Step) -> int:
    return sum(each.key == step.key for each in takewhile(lambda each: each is not step, state.steps))


def _as_given(message: Message, ids: Mapping[str, str]) -> Message:
    """Replace the call ids in a message with the ids from the model's server, which may have a meaning there."""
    calls = tuple(call._replace(id=ids.get(call.id, call.id)) for call in message.tool_calls)
    return replace(message, tool_calls=calls, tool_call_id=ids.get(message.tool_call_id, message.tool_call_id))


def close_failed(state: ExampleState, step: Step, error: BaseException) -> None:
    """Record that a step's request failed or was cancelled; unless allowed, a failure marks the example as an error."""
    step.ms = state.now_ms - step.start_ms
    step.cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
    step.error = "" if step.cancelled else str(error) or type(error).__name__
    if isinstance(error, BudgetSpent) or (isinstance(error, AdapterError) and not step.may_fail):
        state.fail(error)


def open_step(state: ExampleState, kind: str, name: str, request: Generate) -> Step:
    """Create a step for an example's request."""
    shown = request.prompt if isinstance(request.prompt, str) else [each.to_json() for each in request.prompt]
    key, may_fail = request_hash([request]), state.may_fail > 0
    step = Step(kind, name, cut(shown), start_ms=state.now_ms, key=key, may_fail=may_fail)
    state.steps.append(step)
    return step


def as_json(value: object) -> tuple[Any, int]:
    """Return a JSON copy of ``value``, or its ``repr`` if JSON cannot represent it, and the size in characters."""
    if value is None or isinstance(value, bool):
        return value, 4
    if isinstance(value, str):
        return str(value), len(value)
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError, RecursionError):
        shown = _repr(value)
        return shown, len(shown)
    return json.loads(text), len(text)


def cut(value: Any) -> Any:
    """Cut text longer than 1 MiB in a step's ``value``, which is for display only."""
    if isinstance(value, str):
        return value if len(value) <= LARGEST else f"{value[:LARGEST]} [{len(value) - LARGEST:,} more characters]"
    if isinstance(value, list):
        return [cut(each) for each in value]
    return {name: cut(each) for name, each in value.items()} if isinstance(value, dict) else value


def place() -> str:
    """Return ``file:line`` of the innermost call outside this package."""
    frame = calling_frame()
    return f"{portable_path(frame.f_code.co_filename)}:{frame.f_lineno}"


def _number(value: Any) -> float:
    try:
        return float(value) if hasattr(value, "__float__") else math.nan
    except Exception:  # some number-like values cannot be converted: an array, a signaling NaN
        return math.nan


def _shown(returned: object) -> str:
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()  # otherwise Python warns elsewhere
        return "an awaitable, so nothing in it ran: make the function async def, or await it there"
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        return "a generator, so nothing in it ran: remove the yield"
    return f"{_repr(returned):.80}, which decides nothing: assert it, record it by lm.score, or keep it by lm.output"


def _plain(value: object) -> Any:
    return dict(value) if isinstance(value, Mapping) else _repr(value)


_ENCODER = json.JSONEncoder(default=_plain, allow_nan=False)


def _repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"a {type(value).__name__} without a repr ({type(error).__name__})"
