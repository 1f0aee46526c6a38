"""Provide ``lm``, which lets an eval function query the model and record scores."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.asker import Asker, Asking, Prompt, answered, messages_of, tools_of
from pytest_lmeval.functions.example import ExampleState, allow_failures, as_json, cut, open_request, place, with_extras
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.functions.trajectory import Trajectory
from pytest_lmeval.types import Completion

if TYPE_CHECKING:
    from pytest_lmeval.functions.calls import Finding
    from pytest_lmeval.functions.clients.answering import Clients
    from pytest_lmeval.functions.endpoint import Endpoint
    from pytest_lmeval.functions.judging import Grade, Judgment
    from pytest_lmeval.functions.mcp_server import BlockingMcpServer, McpServer
    from pytest_lmeval.functions.tools import ToolRecords, WithExample
    from pytest_lmeval.functions.user import BlockingUser, User

_YES_NO = ("yes", "no")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Client = TypeVar("_Client")


@dataclass(eq=False)
class Services:
    """The askers for the model, the judge and the simulated user that one model's examples share.

    ``endpoint`` returns the endpoint for an application's clients, and ``tools`` returns the recorded tool calls.
    """

    model: Asker
    judge: Asker | None
    endpoint: Callable[[], Endpoint]
    user: Asker | None
    tools: Callable[[], ToolRecords]

    @cached_property
    def clients(self) -> Clients:
        """The handler for requests from an application's clients, created on first use."""
        from pytest_lmeval.functions.clients.answering import Clients

        return Clients(self.model, self.endpoint())


class _ToolMethods:
    """The methods of ``lm`` that concern tools."""

    def tool(
        self: WithExample, function: Callable[_Given, _Result], *, once: bool = False
    ) -> Callable[_Given, _Result]:
        """Wrap ``function`` so that each of its calls becomes a step of kind ``tool``.

        With ``replay:`` or ``--lm-resume``, the wrapper returns recorded results, which it looks up by name, arguments,
        and the number of earlier equal calls. Arguments and results must be JSON values. If a resumed run has no result
        for an example, the example's tools run again, except recorded calls to tools with ``once``, such as payments
        and mail. A call to a tool with ``once`` is written to disk before it begins and when it ends.
        """
        from pytest_lmeval.functions.tools import example_tools, recorded_tool

        return recorded_tool(example_tools(self), function, once=once)


class LmBase(_ToolMethods, Trajectory):
    """The methods of ``lm`` that neither await nor block."""

    def __init__(self, services: Services | None) -> None:
        self._shared = services
        self.state: ExampleState | None = None
        self.on_enter: Callable[[LmBase], None] | None = None
        self._token = ""

    def __repr__(self) -> str:
        state = self.state
        return "<lm>" if state is None else f"<lm of {state.task}: {state.id}>"

    def enter(self, state: ExampleState) -> None:
        """Start recording in ``state``, the example's next repeat."""
        self.state = state
        self._forget_token()
        if self.on_enter is not None:
            self.on_enter(self)

    def leave(self) -> None:
        """Stop recording, and end the example's address at the endpoint."""
        if self.state is not None:
            self.state.end()
        self._forget_token()

    def score(self, name: str, value: bool | float | Finding | None, why: str = "") -> None:
        """Record ``value``, a bool or a number from 0 to 1, as the score ``name``; reports show the reason ``why``.

        A check of calls, such as ``lm.called("search")``, scores 1 or 0, and its text is the reason. If ``value`` is
        None, the score does not apply, and the example does not count towards the score's mean and floor. The decisive
        score (named by ``score=``, or else the first number) cannot be None. An invalid score, or a second, different
        value of the same score, raises ScoringError and marks the example as an error.
        """
        if value is not None and not isinstance(value, int | float):
            from pytest_lmeval.functions.calls import as_score

            value, why = as_score(value, why)
        self._running.score(name, value, why)

    def note(self, name: str, value: Any) -> None:
        """Store a JSON value with the example's result, for readers of the report."""
        self._running.note(name, value)

    def output(self, value: Any) -> None:
        """Store the application's answer with the example's result, as JSON or, if that is impossible, as its ``repr``.

        An answer larger than 1 MiB raises UsageError and marks the example as an error. The answer is kept even if the
        function fails later; a later call replaces it. A string, mapping or sequence that the function returns is
        stored in the same way.
        """
        self._running.record_output(value)

    def step(self, kind: str, name: str, input: Any = None, output: Any = None) -> Step:
        """Add a step to the example's trace, such as the tool call ``step("tool", "search", {"q": q}, hits)``."""
        return self._running.step(kind, name, input, output)

    def span(self, name: str, kind: str = "span") -> AbstractContextManager[Step]:
        """Add a step that measures the ``with`` block; the block may set the step's ``output``."""
        return _span(self._running, self._running.unused.block("lm.span"), kind, name)

    @property
    def trace(self) -> tuple[Step, ...]:
        """The example's steps so far, ordered by start time."""
        return tuple(self._running.steps)

    def may_fail(self) -> AbstractContextManager[None]:
        """Allow requests that begin within the ``with`` block to fail; the example is still scored."""
        return allow_failures(self._running, self._running.unused.block("lm.may_fail"))

    @property
    def base_url(self) -> str:
        """The base URL for clients of the application; requests to this URL belong to the example until it ends."""
        return self._services.clients.endpoint.url(self.token)

    @property
    def token(self) -> str:
        """The API key that assigns a request to this example, for a client that several examples share."""
        state = self._running
        state.check_is_running("lm.base_url")
        if not self._token:
            clients = self._services.clients
            # The environment belongs to one example at a time: pytest's current item.
            self._token = clients.endpoint.register(state, clients, has_turn=self.on_enter is not None)
        return self._token

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP headers for requests to a service, which must pass the ``baggage`` header on in its own requests.

        Requests to ``lm_base_url`` with this header belong to the example until it ends.
        """
        from pytest_lmeval.functions.clients.baggage import header_of

        return header_of(self.token)

    def client(self, shared: _Client) -> _Client:
        """Return a copy of a client, such as OpenAI's or Anthropic's, whose requests belong to this example.

        Raise TypeError if the client has no ``with_options(base_url=...)``.
        """
        __tracebackhide__ = True
        make = getattr(shared, "with_options", None)
        if not callable(make):
            kind = f"{type(shared).__module__}.{type(shared).__qualname__}"
            raise TypeError(f"lm.client: {kind} has no with_options(base_url=...); make one with base_url=lm.base_url")
        found: _Client = make(base_url=self.base_url)
        return found

    @property
    def _services(self) -> Services:
        # Only functions with the argument ``lm`` use this property.
        assert self._shared is not None
        return self._shared

    def _forget_token(self) -> None:
        if self._token:
            self._services.clients.endpoint.forget(self._token)
        self._token = ""

    @property
    def _running(self) -> ExampleState:
        if self.state is None:
            raise UsageError(f"{place()}: lm was used before its example began")
        return self.state


@contextmanager
def _span(state: ExampleState, made: object, kind: str, name: str) -> Iterator[Step]:
    state.unused.mark_used(made)
    step = state.step(kind, name, None, None)
    try:
        yield step
    except BaseException as error:
        step.error = f"{type(error).__name__}: {error}"
        raise
    finally:
        step.ms = state.now_ms - step.start_ms
        step.output = cut(as_json(step.output)[0])


def _awaited(
    work: Callable[Concatenate[Lm, _Given], Asking[_Result]],
) -> Callable[Concatenate[Lm, _Given], Coroutine[Any, Any, _Result]]:
    """Return a method that awaits the answers to the requests that ``work`` yields."""

    @wraps(work)
    def method(lm: Lm, /, *args: _Given.args, **kwargs: _Given.kwargs) -> Coroutine[Any, Any, _Result]:
        asking = work(lm, *args, **kwargs)
        return lm._awaited(lm._running.unused.awaited(f"lm.{work.__name__}"), asking)

    return method


def _waited(
    awaited: Callable[Concatenate[Lm, _Given], Coroutine[Any, Any, _Result]],
) -> Callable[Concatenate[BlockingLm, _Given], _Result]:
    """Return a variant of a method of :class:`Lm` that blocks until the answers arrive."""
    work: Callable[Concatenate[BlockingLm, _Given], Asking[_Result]] = unwrap(awaited)

    @wraps(work)
    def method(lm: BlockingLm, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return lm._waited(work(lm, *args, **kwargs))

    return method


class Lm(LmBase):
    """The ``lm`` fixture of an ``async def`` function."""

    @_awaited
    def ask(  # noqa: PLR0913  # keyword-only, the fields of a request
        self,
        prompt: Prompt,
        *,
        tools: Sequence[Mapping[str, Any] | Callable[..., Any]] = (),
        tool_choice: str = "",
        stop: str | Sequence[str] = (),
        max_tokens: int | None = None,
        temperature: float | None = None,
        model: str | None = None,
        options: Mapping[str, Any] | None = None,
        may_fail: bool = False,
    ) -> Asking[Completion]:
        """Send a string, or messages with ``role`` and ``content``, to the model under test; return its answer.

        The request follows the run's settings for retries and limits, and becomes a step. If no answer arrives, this
        raises AdapterError and marks the example as an error, even if the function catches the exception. The example
        is not an error if the request has ``may_fail``, or begins within ``with lm.may_fail():``. ``temperature``,
        ``model`` and ``options``, such as ``{"seed": 1}``, override the adapter's settings, if the adapter accepts
        these options. ``tools`` are the tools that the model may call. Each tool is a function from ``lm.tool``, or a
        mapping with ``name``, ``description`` and ``parameters``; the parameters are a JSON Schema. The answer's
        ``tool_calls`` are the calls that the model requests.
        """
        state = self._running
        state.check_is_running("lm.ask")
        asker = self._services.model
        fields = {
            "tools": tools_of(tools, tool_choice) if tools or tool_choice else (),
            "tool_choice": tool_choice,
            "stop": (stop,) if isinstance(stop, str) else tuple(stop),
            "max_tokens": max_tokens,
            "options": _options(options, temperature=temperature, model=model),
        }
        named = model or ""
        if asker.facts.model_by_request and not named:
            error = UsageError(
                f"{place()}: lm.ask: {asker.name}: has no model of its own; name one, lm.ask(..., model=NAME), or pass "
                f"--lm-adapter={asker.name}:MODEL"
            )
            state.fail(error)
            raise error
        talk = with_extras(state, messages_of(prompt))
        request, step = open_request(state, asker.answering(named), talk, fields)
        step.client = {"model": named} if named else {}
        step.may_fail = step.may_fail or may_fail
        return (yield from answered(state, step, asker, request))

    @_awaited
    def judge(
        self,
        question: str,
        text: object,
        *,
        labels: Sequence[str] = _YES_NO,
        reason: bool = False,
        human_label: str | None = None,
    ) -> Asking[Judgment]:
        """Return the label that the judge (``--lm-judge``) assigns to ``text``; ask once more if a reply has no label.

        The :class:`Judgment` is the label as a string, with the attributes ``label`` and ``reason``. With
        ``reason=True``, the judge gives a reason before the label. ``human_label`` is the label that a person gave the
        text. If the run has no judge, or neither reply has a label, this raises ScoringError and marks the example as
        an error.
        """
        from pytest_lmeval.functions.judging import consulting, labelling

        inquire = partial(labelling, question, text, labels, human_label, reason=reason)
        return consulting(self._running, self._services.judge, inquire)

    @_awaited
    def grade(
        self,
        rubric: str,
        text: object,
        *,
        reference: str = "",
        levels: Mapping[Any, str] | None = None,
        human_label: object = None,
    ) -> Asking[Grade]:
        """Return the grade that the judge (``--lm-judge``) gives ``text`` according to ``rubric``, with the reason.

        ``levels`` maps two or more increasing numbers in [0, 1] to their meanings; the default levels are 0 and 1.
        ``reference`` is a correct answer for comparison, and ``human_label`` is the grade that a person gave the text.
        If a reply has no level, this asks the judge once more. If the second reply has no level either, this raises
        ScoringError and marks the example as an error.
        """
        from pytest_lmeval.functions.judging import consulting, grading

        inquire = partial(grading, rubric, text, reference=reference, levels=levels, human_label=human_label)
        return consulting(self._running, self._services.judge, inquire)

    def user(self, persona: str, goal: str = "", max_turns: int = 8) -> User:
        """Return a user simulated by the ``--lm-user`` model, which defaults to the judge.

        The loop ``async for said in user: user.reply(await answer(said))`` runs until the user is done, or has sent
        ``max_turns`` messages. The simulated user sees only the replies. If a message of the simulated user is
        unreadable, this asks the model once more. A second unreadable message, or a loop body that does not call
        ``reply``, raises ScoringError and marks the example as an error.
        """
        from pytest_lmeval.formats.persona import Persona
        from pytest_lmeval.functions.user import User

        return User(self, Persona(persona, goal, max_turns))

    def mcp(
        self,
        server: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = 30,
        shared: bool = False,
    ) -> Coroutine[Any, Any, McpServer]:
        """Return a Model Context Protocol server, with ``tools`` for ``lm.ask`` and a coroutine ``call``.

        ``server`` is an http address, or a command as a string or as a list of its parts. Calls to the server's tools
        are recorded as steps, like calls to a function from :meth:`tool`. With ``replay:``, no server starts. The
        command receives only the variables in ``env``, and a few environment variables that the SDK passes on. The
        server ends with the example. With ``shared``, all examples in a process that name the same command or address
        use one server, which ends with the run. If a server does not reply within ``timeout`` seconds, this raises
        ScoringError and marks the example as an error.
        """
        from pytest_lmeval.functions.mcp_server import McpServer
        from pytest_lmeval.functions.tools import example_tools

        made = McpServer(example_tools(self), server, env, timeout, shared)
        return made.opened(self._running.unused.awaited("lm.mcp"))

    async def _awaited(self, made: object, work: Asking[_Result]) -> _Result:
        self._running.unused.mark_used(made)
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


def _options(given: Mapping[str, Any] | None, **named: object) -> dict[str, Any]:
    """Return a request's options; raise UsageError for an option that is also an argument."""
    options = dict(given or {})
    known = {name: value for name, value in named.items() if value is not None}
    if twice := sorted(options.keys() & known.keys()):
        raise UsageError(f"{place()}: lm.ask: {twice[0]} is given twice, also in options")
    return {**options, **known}


class BlockingLm(LmBase):
    """The ``lm`` fixture of a ``def`` function, whose methods block."""

    ask = _waited(Lm.ask)
    judge = _waited(Lm.judge)
    grade = _waited(Lm.grade)

    def user(self, persona: str, goal: str = "", max_turns: int = 8) -> BlockingUser:
        """Return a simulated user for the loop ``for said in user``; see :meth:`Lm.user`."""
        from pytest_lmeval.formats.persona import Persona
        from pytest_lmeval.functions.user import BlockingUser

        return BlockingUser(self, Persona(persona, goal, max_turns))

    def mcp(
        self,
        server: str | Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = 30,
        shared: bool = False,
    ) -> BlockingMcpServer:
        """Return a Model Context Protocol server; see :meth:`Lm.mcp`."""
        from pytest_lmeval.functions.mcp_server import BlockingMcpServer
        from pytest_lmeval.functions.tools import example_tools

        return BlockingMcpServer(example_tools(self), server, env, timeout, shared).opened()

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
