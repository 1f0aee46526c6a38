"""Send eval functions' requests to an engine, and record each request as a step of its example."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, TypeVar

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name
from pytest_lmeval.adapters.protocol import ANY_OPTION, without_best_effort
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, RecordRefused, RequestRefused, UsageError
from pytest_lmeval.extra import OF_MESSAGES, of_message, only
from pytest_lmeval.functions.example import CURRENT, ExampleState, close_answered, close_failed, place
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.hashes import with_ordinal
from pytest_lmeval.records.answers import KnownAnswers, Recall
from pytest_lmeval.types import Completion, Exchange, Generate, Media, Message, ToolCall

_LOOK_S = 0.25
_GATHER_S = 0.005
Prompt = str | Sequence[str | Media | PathLike[str] | Message | Completion | Mapping[str, Any]]
Note = Callable[[str, str, Exchange], None]
"""A function that takes an example's task and id, and a request with its answer."""
Outcome = Answer | BaseException
_Result = TypeVar("_Result")
_OF_TOOLS = ("name", "description", "parameters")


class _Seat(threading.Event):
    """An event for a thread that waits for the outcome of its request."""

    outcome: Outcome | None = None


class Asker:
    """Sends examples' requests, within the run's limits, for coroutines in ``loop`` and for threads.

    Each answer in ``known`` replaces one request to the model. For every other answer, the thread that sent the request
    calls ``note``. The requests from one turn of the loop are sent together, and so are requests that threads add while
    another thread is sending. Requests to a batch adapter wait for 5 ms or until the batch is full, unless no other
    example can send a request.
    """

    def __init__(
        self, engine: Engine, loop: Loop, known: KnownAnswers | None, note: Note | None, key: str = ""
    ) -> None:
        self.engine = engine
        self.name, self.key = adapter_name(engine.adapter), key
        self._loop = loop
        self._known = known
        self._note = note
        # The lock guards the next three attributes.
        self._lock = threading.Lock()
        self._recalls: dict[tuple[str, str], Recall] = {}
        self._seen: dict[tuple[str, str], Counter[tuple[int, str]]] = {}
        self._gathered: list[Job] = []
        self._sending = threading.Lock()
        self._arrived: deque[tuple[asyncio.Future[Outcome], Outcome]] = deque()
        self._is_woken = False
        self.facts = AdapterFacts.of(engine.adapter)

    def passes(self, model: str) -> bool:
        """Return True if a request that names ``model`` goes to this model instead of the adapter's own model."""
        # A recording may contain answers from several models, and looks up an answer by its request.
        facts = self.facts
        return bool(model) and (facts.model_by_request or model in (facts.recorded_models or ()))

    def answering(self, model: str) -> str:
        """Return the name of the model that answers a request for ``model``; ``model`` may be ""."""
        recorded = self.facts.recorded_models
        is_there = recorded is None or model in recorded
        return model if model and is_there else self.name

    async def ask(self, request: Generate, sent: Generate | None = None) -> Completion:
        """Return the answer to a request; raise AdapterError or BudgetSpent if there is no answer.

        An option that the adapter rejects is an error, unless ``sent``, the request from :meth:`taken`, replaces the
        request. This method works in any event loop.
        """
        if self._loop.thread is threading.current_thread():
            return await self._ask(request, sent)
        return await asyncio.wrap_future(self._loop.submit(self._ask(request, sent)))

    def taken(self, request: Generate) -> tuple[Generate, set[str]]:
        """Return a request without options that the adapter rejects, and the names of these options."""
        if ANY_OPTION in self.facts.request_options:
            return request, set()
        options = {name: value for name, value in request.options.items() if name in self.facts.request_options}
        tools = tuple({name: tool[name] for name in _OF_TOOLS if name in tool} for tool in request.tools)
        left_out = {f"tools[].{name}" for tool in request.tools for name in tool if name not in _OF_TOOLS}
        left_out |= request.options.keys() - options.keys()
        prompt = request.prompt
        if not isinstance(prompt, str) and any(each.extra for each in prompt):
            found = [only(each.extra, OF_MESSAGES if self.facts.takes_messages else ()) for each in prompt]
            left_out |= {name for _, names in found for name in names}
            prompt = tuple(replace(each, extra=extra) for each, (extra, _) in zip(prompt, found, strict=True))
        return replace(request, prompt=prompt, options=options, tools=tools), left_out

    def ask_blocking(self, request: Generate) -> Completion:
        """Work like :meth:`ask`, but block until the answer arrives; do not call this in the loop's thread."""
        known, request, sent = self._prepared(request)
        if known is not None:
            return known
        seat = _Seat()
        first = self._gather(seat, sent)
        if self.engine.streams:
            self._send_all()
        elif first is not None:
            self._send_in_time(first, seat)
        if seat.outcome is None:
            self._wait(seat)
        return self._finished(request, seat.outcome)

    async def _ask(self, request: Generate, sent: Generate | None) -> Completion:
        known, request, sent = self._prepared(request, sent)
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        if (first := self._gather(future, sent)) is not None:
            # Wait at least one turn to collect requests, because each message to another thread or process takes time.
            loop.call_later(0 if self.engine.streams else _GATHER_S, self._send, first)
        return self._finished(request, await future)

    def _prepared(
        self, request: Generate, sent: Generate | None = None
    ) -> tuple[Completion | None, Generate, Generate]:
        """Return a known answer or None, the request to store with the answer, and the request to send.

        Raise RequestRefused for media that the adapter does not accept.
        """
        if not isinstance(request.prompt, str):
            self._check_media(request.prompt)
        # An example's threads share these counts.
        with self._lock:
            example = (request.task, request.id)
            if self.engine.caches:
                request = with_ordinal(request, self._seen.setdefault(example, Counter()))
                sent = None if sent is None else replace(sent, nth=request.nth)
            if self._known is not None:
                if example not in self._recalls:
                    self._recalls[example] = self._known.of(*example)
                if (known := self._recalls[example].take(request)) is not None:
                    return known, request, request
        if request.options and sent is None and ANY_OPTION not in self.facts.request_options:
            sent = self._with_options_taken(request)
        return None, request, request if sent is None else sent

    def _check_media(self, prompt: Sequence[Message]) -> None:
        for message in prompt:
            for media in message.media:
                if media.kind not in self.facts.media:
                    error = RequestRefused(f"adapter {self.name} accepts no {media.kind}: {media}")
                    error.status, error.said = 400, {"message": str(error)}
                    raise error

    def _with_options_taken(self, request: Generate) -> Generate:
        """Drop best-effort options that the adapter rejects; raise AdapterError for other rejected options."""
        own = self.facts.request_options
        sent = without_best_effort(request, own)
        if refused := sent.options.keys() - own:
            takes = f"it takes {', '.join(sorted(own))}" if own else "it takes none per request"
            raise AdapterError(f"adapter {self.name} does not take {', '.join(sorted(refused))} from lm.ask; {takes}")
        return sent

    def _finished(self, request: Generate, outcome: Outcome | None) -> Completion:
        """Return an answer after recording it, or raise the outcome if it is an exception."""
        if isinstance(outcome, BaseException):
            raise outcome
        assert isinstance(outcome, Completion)
        if self._note is not None:
            self._note(request.task, request.id, Exchange(request, outcome))
        return outcome

    def _wait(self, seat: _Seat) -> None:
        while not seat.wait(_LOOK_S):
            if self._loop.is_closing:
                raise AdapterError(f"the run ended before {self.name} answered")
            self.engine.look_after()

    def _gather(self, waiting: asyncio.Future[Outcome] | _Seat, request: Generate) -> Job | None:
        """Queue a request, and send the batch if it is full; return the new job if the caller must send it later."""
        with self._lock:
            is_first = not self._gathered
            # A streaming engine receives a separate job for each request.
            if is_first or self.engine.streams:
                job = Job([request], {waiting: slice(0, 1)})
                self._gathered.append(job)
            else:
                job = self._gathered[-1]
                job.add(waiting, [request])
            is_full = len(job.requests) >= self.engine.together
        if is_full:
            self._send()
        return job if is_first and not is_full else None

    def _send(self, first: Job | None = None) -> None:
        """Send the queued requests; if ``first`` is given, send them only if it is still the first queued job."""
        with self._lock:
            if not self._gathered or first not in (None, self._gathered[0]):
                return
            gathered, self._gathered = self._gathered, []
        try:
            self.engine.ask(gathered, self._arrive)
        except Exception as error:  # several callers share the requests: each must receive the error
            for job in gathered:
                job.failure = error
                self._arrive(job)

    def _send_all(self) -> None:
        """Send the queued requests, and all requests that other threads add in the meantime."""
        while self._gathered and self._sending.acquire(blocking=False):
            try:
                self._send()
            finally:
                self._sending.release()

    def _send_in_time(self, first: Job, seat: _Seat) -> None:
        """Send the queued requests after other running examples have had time to add requests."""
        try:
            state = CURRENT.get()
            if state is None or not state.is_alone:
                seat.wait(_GATHER_S)
        finally:
            self._send(first)

    def _arrive(self, job: Job) -> None:
        # The engine calls this in one of its threads.
        with self._lock:
            waiting: dict[Any, slice] = job.spans
            job.spans = {}
        outcomes = (job.answers or ()) if job.failure is None else [job.failure] * len(waiting)
        # After the run ends, outcomes may be missing.
        for one, outcome in zip(waiting, outcomes, strict=False):
            if isinstance(one, _Seat):
                one.outcome = outcome
                one.set()
            else:
                self._arrived.append((one, outcome))
        # Wake the loop once for all outcomes that arrive before its next turn.
        if self._arrived and not self._is_woken:
            self._is_woken = True
            try:
                self._loop.events.call_soon_threadsafe(self._hand_out)
            except RuntimeError:  # the run is over and its loop is closed
                self._arrived.clear()

    def _hand_out(self) -> None:
        self._is_woken = False
        while self._arrived:
            future, outcome = self._arrived.popleft()
            if not future.done():
                future.set_result(outcome)


Asking = Generator[tuple[Asker, Generate], Completion, _Result]
"""A generator that yields an asker and a request, and receives the answer that ``lm`` awaits or waits for."""


def answered(state: ExampleState, step: Step, asker: Asker, request: Generate) -> Asking[Completion]:
    """Send a step's request, and record the outcome in the step."""
    try:
        answer = yield asker, request
    except BaseException as error:
        close_failed(state, step, error)
        raise
    return close_answered(state, step, answer)


def messages_of(prompt: Prompt) -> str | tuple[Message, ...]:
    """Return a prompt in the format of requests; raise UsageError if it is neither text, parts nor messages."""
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, Sequence) or not prompt:
        raise UsageError(f"{place()}: lm.ask: expected a text or a list of messages, got {prompt!r:.80}")
    if isinstance(prompt[0], str | Media | PathLike):
        return (_of_parts("user", prompt),)
    return tuple(_message(each) for each in prompt)


def _of_parts(role: str, given: Sequence[object]) -> Message:
    from pytest_lmeval.media.given import message_from

    try:
        return message_from(role, given)
    except UsageError as error:
        raise UsageError(f"{place()}: lm.ask: {error}") from None


def _message(given: object) -> Message:
    if isinstance(given, Message | Completion):
        return given if isinstance(given, Message) else given.message
    if isinstance(given, Mapping) and isinstance(given.get("role"), str):
        content, calls = given.get("content"), tuple(map(_call, given.get("tool_calls") or ()))
        content = given.get("refusal") if content is None else content
        answers = str(given.get("tool_call_id") or "")
        if isinstance(content, str) or (content is None and calls):
            return Message(given["role"], content or "", calls, answers, of_message(given))
        if isinstance(content, list | tuple) and content:
            read = _of_parts(given["role"], content)
            return replace(read, tool_calls=calls, tool_call_id=answers, extra=of_message(given))
    raise UsageError(f"{place()}: lm.ask: expected a message with role and content, got {given!r:.80}")


def _call(given: object) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UsageError(f"{place()}: lm.ask: expected a call with id and function, got {given!r:.80}")
    return ToolCall(str(given.get("id", "")), function["name"], str(function.get("arguments", "")))


def tools_of(given: Sequence[Mapping[str, Any] | Callable[..., Any]], choice: str) -> tuple[Mapping[str, Any], ...]:
    """Validate tools and the tool choice; raise UsageError for an invalid tool or choice."""
    if isinstance(given, list | tuple) and any(map(callable, given)):
        from pytest_lmeval.functions.tools import described_tool

        named = [(f"lm.ask: tools[{number}]", each) for number, each in enumerate(given)]
        given = [described_tool(each, where) if callable(each) else each for where, each in named]
    # Import this only here, because most requests have no tools.
    from pytest_lmeval.formats.tools import check_choice
    from pytest_lmeval.formats.tools import tools_of as read

    try:
        tools = read([*given] if isinstance(given, tuple) else given, "tools") if given else ()
        check_choice({"tool_choice": choice or "auto"}, "lm.ask", tools)
    except RecordRefused as refused:
        raise UsageError(f"{place()}: lm.ask: {refused.field.removeprefix('lm.ask.')}: {refused.detail}") from None
    return tools
