"""From an eval function to an engine, one request at a time, and back: each is a step of its example."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pytest_lmeval.adapters.protocol import ANY_OPTION, as_taken
from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.engine import Engine
from pytest_lmeval.asking.limits import Budget
from pytest_lmeval.asking.transport import Job
from pytest_lmeval.errors import AdapterError, BudgetSpent, RecordRefused, UsageError
from pytest_lmeval.functions.example import ExampleState, cut, place
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.steps import Step, usage_of
from pytest_lmeval.hashes import request_hash, with_ordinal
from pytest_lmeval.records.answers import KnownAnswers, Recall
from pytest_lmeval.types import Completion, Exchange, Generate, Message, ToolCall

_LOOK_S = 0.25
_GATHER_S = 0.005
Prompt = str | Sequence[Message | Mapping[str, Any]]
_Result = TypeVar("_Result")
_OF_TOOLS = ("name", "description", "parameters")


class Asker:
    """Asks a model on behalf of examples, within the run's limits; it lives in ``loop``.

    What ``known`` holds an answer to is not asked, once for each time that it was; ``note`` is called with every other
    answer. Requests of one turn of the loop are sent in one message; those for a batch adapter are gathered, for 5 ms
    or until there are as many as a batch has.
    """

    def __init__(
        self, engine: Engine, loop: Loop, known: KnownAnswers | None, note: Callable[[Exchange], None], key: str = ""
    ) -> None:
        self.engine = engine
        self.name, self.key = adapter_name(engine.adapter), key
        self._loop = loop
        self._known = known
        self._note = note
        self._recalls: dict[tuple[str, str], Recall] = {}
        self._seen: dict[tuple[str, str], Counter[tuple[int, str]]] = {}
        self._gathered: list[Job] = []
        self._arrived: deque[Job] = deque()
        self._is_woken = False
        self._settled = asyncio.Event()
        self._options: frozenset[str] = frozenset(getattr(engine.adapter, "request_options", ()))

    async def ask(self, request: Generate, sent: Generate | None = None) -> Completion:
        """Return the answer to a request; raise AdapterError without one, BudgetSpent where the limit forbids it.

        Options that the adapter does not take are an error, unless ``sent`` is what it is asked instead of the
        request: see :meth:`taken`. May be awaited in any event loop.
        """
        if self._loop.is_here():
            return await self._ask(request, sent)
        return await asyncio.wrap_future(self._loop.submit(self._ask(request, sent)))

    def taken(self, request: Generate) -> tuple[Generate, set[str]]:
        """Return a request as far as the adapter takes it, and the names of what it does not take."""
        if ANY_OPTION in self._options:
            return request, set()
        options = {name: value for name, value in request.options.items() if name in self._options}
        tools = tuple({name: tool[name] for name in _OF_TOOLS if name in tool} for tool in request.tools)
        left_out = {f"tools[].{name}" for tool in request.tools for name in tool if name not in _OF_TOOLS}
        return replace(request, options=options, tools=tools), left_out | (request.options.keys() - options.keys())

    def ask_blocking(self, request: Generate) -> Completion:
        """Do as :meth:`ask` and wait; for any thread but the loop's."""
        future: Future[Completion] = self._loop.submit(self._ask(request))
        while True:
            try:
                return future.result(_LOOK_S)
            except NotYet:
                if future.done():
                    raise
                self.engine.look_after()

    async def _ask(self, request: Generate, sent: Generate | None = None) -> Completion:
        if self.engine.caches:
            request = with_ordinal(request, self._seen.setdefault((request.task, request.id), Counter()))
            sent = None if sent is None else replace(sent, nth=request.nth)
        if self._known is not None and (known := self._recalled(self._known, request)) is not None:
            return known
        if request.options and sent is None and ANY_OPTION not in self._options:
            sent = self._with_options_taken(request)
        if self.engine.budget is not None:
            await self._turn(self.engine.budget)
        answer = await self._answer(request if sent is None else sent)
        if self.engine.budget is not None:
            self._settle(self.engine.budget, answer)
        if isinstance(answer, AdapterError):
            raise answer
        assert isinstance(answer, Completion)
        self._note(Exchange(request, answer))
        return answer

    def _with_options_taken(self, request: Generate) -> Generate:
        """Return a request without the wishes that the adapter does not take; raise AdapterError for other options."""
        sent = as_taken(request, self.engine.adapter)
        refused = sent.options.keys() - self._options
        if refused:
            takes = f"it takes {', '.join(sorted(self._options))}" if self._options else "it takes none per request"
            raise AdapterError(f"adapter {self.name} does not take {', '.join(sorted(refused))} from lm.ask; {takes}")
        return sent

    def _settle(self, budget: Budget, answer: Answer) -> None:
        try:
            budget.settle(answer)
        finally:
            self._settled.set()

    def _recalled(self, known: KnownAnswers, request: Generate) -> Completion | None:
        example = (request.task, request.id)
        if example not in self._recalls:
            self._recalls[example] = known.of(*example)
        return self._recalls[example].take(request)

    async def _turn(self, budget: Budget) -> None:
        while not budget.allows(1):
            if not budget.is_waiting:
                budget.check(1)
                raise BudgetSpent("stopped by --lm-max-cost")
            self._settled.clear()
            try:
                # Requests of other tasks settle without a word to this loop.
                await asyncio.wait_for(self._settled.wait(), _LOOK_S)
            except TimeoutError:
                continue
        budget.commit(1)

    async def _answer(self, request: Generate) -> Answer:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        if not self._gathered:
            # At least one turn: every message to another thread or process costs more than a request does.
            loop.call_later(0 if self.engine.streams else _GATHER_S, self._flush)
        if self.engine.streams or not self._gathered:
            self._gathered.append(Job())
        # Its answers are found by the futures that wait for them.
        self._gathered[-1].add(future, [request])
        if len(self._gathered[-1].requests) >= self.engine.together:
            self._flush()
        return await future

    def _flush(self) -> None:
        gathered, self._gathered = self._gathered, []
        if gathered:
            self.engine.ask(gathered, self._arrive)

    def _arrive(self, job: Job) -> None:
        # In a thread of the engine's. One message wakes the loop for all that arrives until it turns.
        self._arrived.append(job)
        if not self._is_woken:
            self._is_woken = True
            try:
                self._loop.events.call_soon_threadsafe(self._hand_out)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._arrived.clear()

    def _hand_out(self) -> None:
        self._is_woken = False
        while self._arrived:
            job = self._arrived.popleft()
            future: Any
            for future, span in job.spans.items():
                if future.done():
                    self._settle_unclaimed(job, span)
                elif job.failure is not None:
                    future.set_exception(job.failure)
                else:
                    assert job.answers is not None
                    future.set_result(job.answers[span.start])

    def _settle_unclaimed(self, job: Job, span: slice) -> None:
        """Count what an answer cost that nobody waits for any more: its request was cancelled."""
        budget = self.engine.budget
        if budget is None:
            return
        if job.failure is None:
            assert job.answers is not None
            with suppress(BudgetSpent):  # the next request meets it
                self._settle(budget, job.answers[span.start])
        else:
            budget.release()
            self._settled.set()


Asking = Generator[tuple[Asker, Generate], Completion, _Result]
"""Work that yields whom to ask what, and is sent the answer: ``lm`` awaits or waits for it."""


def open_request(
    state: ExampleState, adapter: str, prompt: str | tuple[Message, ...], options: Mapping[str, Any]
) -> tuple[Generate, Step]:
    """Return the request of an example with these fields of :class:`Generate`, and the step that it has become."""
    request = Generate(prompt, state.task, state.id, state.repeat, **options)
    return request, open_step(state, "request", adapter, request)


def close_answered(state: ExampleState, step: Step, answer: Completion) -> Completion:
    """Note the answer to a step's request, and return it."""
    step.ms = answer.latency_ms if answer.latency_ms is not None else state.now_ms - step.start_ms
    step.output = answer.output
    step.thoughts = answer.thoughts
    step.served_by = answer.served_by
    step.cached = answer.cached
    step.usage = usage_of(answer)
    return answer


def close_failed(state: ExampleState, step: Step, error: BaseException) -> None:
    """Note that a step's request has no answer; unless it may fail or was cancelled, the example is an error for it."""
    step.ms = state.now_ms - step.start_ms
    step.cancelled = isinstance(error, asyncio.CancelledError | GeneratorExit)
    step.error = "" if step.cancelled else str(error) or type(error).__name__
    if isinstance(error, BudgetSpent) or (isinstance(error, AdapterError) and not step.may_fail):
        state.fail(error)


def open_step(state: ExampleState, kind: str, name: str, request: Generate) -> Step:
    """Return a new step of an example, for a request of its."""
    shown = request.prompt if isinstance(request.prompt, str) else [each.to_json() for each in request.prompt]
    key, may_fail = request_hash([request]), state.may_fail > 0
    step = Step(kind, name, cut(shown), start_ms=state.now_ms, key=key, may_fail=may_fail)
    state.steps.append(step)
    return step


def answered(state: ExampleState, step: Step, asker: Asker, request: Generate) -> Asking[Completion]:
    """Have the request of a step asked, and note in it what came of that."""
    try:
        answer = yield asker, request
    except BaseException as error:
        close_failed(state, step, error)
        raise
    return close_answered(state, step, answer)


def messages_of(prompt: Prompt) -> str | tuple[Message, ...]:
    """Return a prompt as requests have it; raise UsageError for what is neither text nor messages."""
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, Sequence) or not prompt:
        raise UsageError(f"{place()}: lm.ask: expected a text or a list of messages, got {prompt!r:.80}")
    return tuple(_message(each) for each in prompt)


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of :class:`Generate` for the arguments of ``lm.ask``; raise UsageError for invalid tools."""
    tools, choice, stop = given["tools"], given["tool_choice"], given["stop"]
    return {
        "tools": tools_of(tools, choice) if tools or choice else (),
        "tool_choice": choice,
        "stop": (stop,) if isinstance(stop, str) else tuple(stop),
        "max_tokens": given["max_tokens"],
        "options": {name: given[name] for name in ("temperature", "model") if given[name] is not None},
    }


def _message(given: object) -> Message:
    if isinstance(given, Message):
        return given
    if isinstance(given, Mapping) and isinstance(given.get("role"), str):
        content, calls = given.get("content"), given.get("tool_calls") or ()
        if isinstance(content, str) or (content is None and calls):
            answers = given.get("tool_call_id") or ""
            return Message(given["role"], content or "", tuple(map(_call, calls)), str(answers))
    raise UsageError(f"{place()}: lm.ask: expected a message with role and content, both text, got {given!r:.80}")


def _call(given: object) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UsageError(f"{place()}: lm.ask: expected a call with id and function, got {given!r:.80}")
    return ToolCall(str(given.get("id", "")), function["name"], str(function.get("arguments", "")))


def tools_of(given: Sequence[Mapping[str, Any]], choice: str) -> tuple[Mapping[str, Any], ...]:
    """Return checked tools; raise UsageError for a value that is not a tool, or a choice that names no tool."""
    # Most examples are asked without.
    from pytest_lmeval.formats.tools import check_choice
    from pytest_lmeval.formats.tools import tools_of as read

    try:
        tools = read([*given] if isinstance(given, tuple) else given, "tools") if given else ()
        check_choice({"tool_choice": choice or "auto"}, "lm.ask", tools)
    except RecordRefused as refused:
        raise UsageError(f"{place()}: lm.ask: {refused.field.removeprefix('lm.ask.')}: {refused.detail}") from None
    return tools
