"""``lm``: what an eval function asks the model with, and says how it went."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_lmeval.errors import AdapterError, BudgetSpent, RecordRefused, ScoringError, UsageError
from pytest_lmeval.functions.asker import Asker
from pytest_lmeval.functions.example import ExampleState, as_json, cut, place
from pytest_lmeval.functions.steps import Step, usage_of
from pytest_lmeval.hashes import request_hash
from pytest_lmeval.types import Completion, Generate, Message, ToolCall

if TYPE_CHECKING:
    from pytest_lmeval.functions.clients import Clients

Prompt = str | Sequence[Message | Mapping[str, Any]]
_YES_NO = ("yes", "no")
_Result = TypeVar("_Result")
Asking = Generator[tuple[Asker, Generate], Completion, _Result]
"""Work that yields whom to ask what, and is sent the answer: ``lm`` awaits or waits for it."""


class Services:
    """Whom the examples of one model ask, who judges them, and what answers applications' own clients."""

    def __init__(self, model: Asker, judge: Asker | None, open_clients: Callable[[Asker], Clients]) -> None:
        self.model = model
        self.judge = judge
        self._open_clients = open_clients

    @cached_property
    def clients(self) -> Clients:
        """What answers the requests of applications' own clients; most runs have none."""
        return self._open_clients(self.model)


class LmBase:
    """What an eval function records, whether it awaits or blocks."""

    def __init__(self, services: Services | None) -> None:
        self._shared = services
        self.state: ExampleState | None = None
        self._token = ""

    def __repr__(self) -> str:
        state = self.state
        return "<lm>" if state is None else f"<lm of {state.task}: {state.id}>"

    def enter(self, state: ExampleState) -> None:
        """Record for ``state`` from now on: the next repeat of the example."""
        self.state = state
        self._forget_token()

    def leave(self) -> None:
        """Let the example end: nothing more is recorded, and its endpoint is gone."""
        if self.state is not None:
            self.state.end()
        self._forget_token()

    def score(self, name: str, value: Any) -> None:
        """Record the score ``name``: a bool, or a number from 0 to 1.

        The one that ``score=`` names decides, else the first one. Raises ScoringError, and makes the example an error,
        for what is no score, and for another value under a name that has one.
        """
        self._running.score(name, value)

    def note(self, name: str, value: Any) -> None:
        """Keep ``value``, any JSON, with the example's result for whoever reads it."""
        self._running.note(name, value)

    def output(self, value: Any) -> None:
        """Keep what the application answered with the example's result: JSON, else its ``repr``, at most 1 MiB.

        It is kept whatever happens after; of several calls the last one counts. What the function returns, a text, a
        mapping or a sequence, is kept in the same way.
        """
        self._running.give(value)

    @contextmanager
    def may_fail(self) -> Iterator[None]:
        """Let requests of this example that begin within the block go without an answer, and the example be scored."""
        state = self._running
        state.may_fail += 1
        try:
            yield
        finally:
            state.may_fail -= 1

    def step(self, kind: str, name: str, input: Any = None, output: Any = None) -> Step:
        """Add a step to the example's trace, such as the call of a tool: ``step("tool", "search", {"q": q}, hits)``."""
        return self._running.step(kind, name, input, output)

    @contextmanager
    def span(self, name: str, kind: str = "span") -> Iterator[Step]:
        """Add a step that lasts as long as the ``with`` block; its ``output`` may be set within."""
        state = self._running
        step = state.step(kind, name, None, None)
        try:
            yield step
        except BaseException as error:
            step.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            step.ms = state.now_ms - step.start_ms
            step.output = cut(as_json(step.output)[0])

    @property
    def trace(self) -> tuple[Step, ...]:
        """The steps of the example so far, in the order in which they began."""
        return tuple(self._running.steps)

    @property
    def base_url(self) -> str:
        """The address of an endpoint for chat completions that answers for this example, until it ends."""
        return self._services.clients.url(self.token)

    @property
    def token(self) -> str:
        """The key under which the endpoint knows this example, for a client that all examples share."""
        state = self._running
        state.check_is_running("lm.base_url")
        if not self._token:
            self._token = self._services.clients.admit(state)
        return self._token

    @property
    def _services(self) -> Services:
        # Without them it is not handed out: its function has no argument for it.
        assert self._shared is not None
        return self._shared

    def _forget_token(self) -> None:
        if self._token:
            self._services.clients.dismiss(self._token)
        self._token = ""

    @property
    def _running(self) -> ExampleState:
        if self.state is None:
            raise UsageError(f"{place()}: lm was used before its example began")
        return self.state

    def _asking(self, prompt: Prompt, given: dict[str, Any], *, may_fail: bool) -> Asking[Completion]:
        state = self._running
        state.check_is_running("lm.ask")
        given["tools"] = _tools(given["tools"], given["tool_choice"])
        model = self._services.model
        request, step = open_request(state, model.name, messages_of(prompt), given)
        step.may_fail = step.may_fail or may_fail
        return (yield from _answered(state, step, model, request))

    def _judging(self, question: str, text: str, labels: Sequence[str]) -> Asking[str]:
        from pytest_lmeval.functions.judging import dialogue

        talk = dialogue(question, str(text), labels)
        try:
            asked = next(talk)
            while True:
                answer = yield from self._judged(asked)
                asked = talk.send(answer.text)
        except StopIteration as end:
            return str(end.value)
        except ScoringError as error:
            self._running.fail(error)
            raise

    def _judged(self, asked: tuple[Message, ...]) -> Asking[Completion]:
        from pytest_lmeval.functions.judging import NO_JUDGE

        state, judge = self._running, self._services.judge
        state.check_is_running("lm.judge")
        if judge is None:
            raise ScoringError(f"{place()}: {NO_JUDGE}")
        request = Generate(asked, state.task, state.id, state.repeat)
        step = open_step(state, "judge", judge.name, request)
        step.adapter_key = judge.key
        return (yield from _answered(state, step, judge, request))


class Lm(LmBase):
    """The fixture ``lm`` of an ``async def`` function."""

    def ask(  # noqa: PLR0913  # keyword-only, those of one request
        self,
        prompt: Prompt,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str = "",
        stop: str | Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        model: str | None = None,
        may_fail: bool = False,
    ) -> Coroutine[Any, Any, Completion]:
        """Return what the model under test answers to a text, or to messages with ``role`` and ``content``.

        The request goes through the run's engine, with its retries and limits, and becomes a step. Without an answer
        AdapterError is raised, and the example is an error even where that is caught, unless it ``may_fail``, as do all
        requests that begin within ``with lm.may_fail():``.
        ``temperature`` and ``model`` stand in for the adapter's own, where it takes them. ``tools`` are functions that
        the model may call, each with ``name``, ``description`` and ``parameters``, a JSON Schema; the answer's
        ``tool_calls`` are those that it asks for.
        """
        given: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "stop": _stops(stop)}
        given |= {"max_tokens": max_tokens, "options": request_options(temperature, model)}
        return self._awaited(self._running.promise("lm.ask"), self._asking(prompt, given, may_fail=may_fail))

    def judge(self, question: str, text: str, *, labels: Sequence[str] = _YES_NO) -> Coroutine[Any, Any, str]:
        """Return the label that the judge (``--lm-judge``) gives to ``text``; it is asked twice where it says none.

        Raises ScoringError, and makes the example an error, without a judge and where no reply is a label.
        """
        return self._awaited(self._running.promise("lm.judge"), self._judging(question, text, labels))

    async def _awaited(self, made: object, work: Asking[_Result]) -> _Result:
        self._running.keep(made)
        try:
            asker, request = next(work)
            while True:
                try:
                    answer = await asker.ask(request)
                except BaseException as error:
                    asker, request = work.throw(error)
                else:
                    asker, request = work.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result


class BlockingLm(LmBase):
    """The fixture ``lm`` of a ``def`` function: the same, with methods that wait."""

    def ask(  # noqa: PLR0913  # keyword-only, as those of Lm.ask
        self,
        prompt: Prompt,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        tool_choice: str = "",
        stop: str | Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        model: str | None = None,
        may_fail: bool = False,
    ) -> Completion:
        """Return what the model under test answers; see :meth:`Lm.ask`."""
        given: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "stop": _stops(stop)}
        given |= {"max_tokens": max_tokens, "options": request_options(temperature, model)}
        return self._waited(self._asking(prompt, given, may_fail=may_fail))

    def judge(self, question: str, text: str, *, labels: Sequence[str] = _YES_NO) -> str:
        """Return the label that the judge gives to ``text``; see :meth:`Lm.judge`."""
        return self._waited(self._judging(question, text, labels))

    def _waited(self, work: Asking[_Result]) -> _Result:
        try:
            asker, request = next(work)
            while True:
                try:
                    answer = asker.ask_blocking(request)
                except BaseException as error:
                    asker, request = work.throw(error)
                else:
                    asker, request = work.send(answer)
        except StopIteration as end:
            result: _Result = end.value
            return result


def _answered(state: ExampleState, step: Step, asker: Asker, request: Generate) -> Asking[Completion]:
    """Have the request of a step asked, and note in it what came of that."""
    try:
        answer = yield asker, request
    except BaseException as error:
        close_failed(state, step, error)
        raise
    return close_answered(state, step, answer)


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


def messages_of(prompt: Prompt) -> str | tuple[Message, ...]:
    """Return a prompt as requests have it; raise UsageError for what is neither text nor messages."""
    if isinstance(prompt, str):
        return str(prompt)
    if not isinstance(prompt, Sequence) or not prompt:
        raise UsageError(f"{place()}: lm.ask: expected a text or a list of messages, got {prompt!r:.80}")
    return tuple(_message(each) for each in prompt)


def request_options(temperature: float | None, model: str | None) -> dict[str, Any]:
    """Return the options of one request that were given."""
    given = {"temperature": temperature, "model": model}
    return {name: value for name, value in given.items() if value is not None}


def _message(given: object) -> Message:
    if isinstance(given, Message):
        return given
    if isinstance(given, Mapping) and isinstance(given.get("role"), str):
        content, calls = given.get("content"), given.get("tool_calls") or ()
        if isinstance(content, str) or (content is None and calls):
            answers = given.get("tool_call_id") or ""
            return Message(given["role"], content or "", tuple(map(_call, calls)), str(answers))
    raise UsageError(f"{place()}: lm.ask: expected a message with role and content, both text, got {given!r:.80}")


def open_step(state: ExampleState, kind: str, name: str, request: Generate) -> Step:
    """Return a new step of an example, for a request of its."""
    shown = request.prompt if isinstance(request.prompt, str) else [each.to_json() for each in request.prompt]
    key, may_fail = request_hash([request]), state.may_fail > 0
    return state.add(Step(kind, name, cut(shown), start_ms=state.now_ms, key=key, may_fail=may_fail))


def _call(given: object) -> ToolCall:
    if isinstance(given, ToolCall):
        return given
    function = given.get("function") if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise UsageError(f"{place()}: lm.ask: expected a call with id and function, got {given!r:.80}")
    return ToolCall(str(given.get("id", "")), function["name"], str(function.get("arguments", "")))


def _tools(given: Sequence[Mapping[str, Any]], choice: str) -> tuple[Mapping[str, Any], ...]:
    if not given and not choice:
        return ()
    # Most examples are asked without.
    from pytest_lmeval.formats.tools import check_choice, tools_of

    try:
        tools = tools_of([*given] if isinstance(given, tuple) else given, "tools") if given else ()
        check_choice({"tool_choice": choice or "auto"}, "lm.ask", tools)
    except RecordRefused as refused:
        raise UsageError(f"{place()}: lm.ask: {refused.field.removeprefix('lm.ask.')}: {refused.detail}") from None
    return tools


def _stops(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)
