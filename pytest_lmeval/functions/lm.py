"""``lm``: what an eval function asks the model with, and says how it went."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from inspect import unwrap
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.asker import Asker, Asking, Prompt, answered, fields_of, messages_of
from pytest_lmeval.functions.example import ExampleState, as_json, cut, open_request, place
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.types import Completion

if TYPE_CHECKING:
    from pytest_lmeval.functions.calls import Finding
    from pytest_lmeval.functions.clients.answering import Clients
    from pytest_lmeval.functions.endpoint import Endpoint
    from pytest_lmeval.functions.judging import Grade, Judgment
    from pytest_lmeval.functions.user import BlockingUser, User
    from pytest_lmeval.metrics.parts.call import Call

_YES_NO = ("yes", "no")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Client = TypeVar("_Client")


@dataclass(eq=False)
class Services:
    """Whom the examples of one model ask, who judges them, and who plays users.

    ``endpoint`` returns that for applications' clients.
    """

    model: Asker
    judge: Asker | None
    endpoint: Callable[[], Endpoint]
    user: Asker | None

    @cached_property
    def clients(self) -> Clients:
        """What answers the requests of applications' own clients; most runs have none."""
        from pytest_lmeval.functions.clients.answering import Clients

        return Clients(self.model, self.endpoint())


class LmBase:
    """What an eval function records, whether it awaits or blocks."""

    def __init__(self, services: Services | None) -> None:
        self._shared = services
        self.state: ExampleState | None = None
        self.on_enter: Callable[[LmBase], None] | None = None
        self._token = ""

    def __repr__(self) -> str:
        state = self.state
        return "<lm>" if state is None else f"<lm of {state.task}: {state.id}>"

    def enter(self, state: ExampleState) -> None:
        """Record for ``state`` from now on: the next repeat of the example."""
        self.state = state
        self._forget_token()
        if self.on_enter is not None:
            self.on_enter(self)

    def leave(self) -> None:
        """Let the example end: nothing more is recorded, and its endpoint is gone."""
        if self.state is not None:
            self.state.end()
        self._forget_token()

    def score(self, name: str, value: Any, why: str = "") -> None:
        """Record the score ``name``: a bool, or a number from 0 to 1; ``why`` is shown where it is looked at.

        The one that ``score=`` names decides, else the first one. Raises ScoringError, and makes the example an error,
        for what is no score, and for another value under a name that has one.
        """
        self._running.score(name, value, why)

    def note(self, name: str, value: Any) -> None:
        """Keep ``value``, any JSON, with the example's result for whoever reads it."""
        self._running.note(name, value)

    def output(self, value: Any) -> None:
        """Keep what the application answered with the example's result: JSON, else its ``repr``, at most 1 MiB.

        It is kept whatever happens after; of several calls the last one counts. What the function returns, a text, a
        mapping or a sequence, is kept in the same way.
        """
        self._running.give(value)

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
    def calls(self) -> list[Call]:
        """The calls of tools that the model asked for so far, in order, each a pair of name and arguments."""
        from pytest_lmeval.functions.calls import asked_in

        return [call for step in self.trace for call in asked_in(step)]

    def called(self, name: str, *, times: int | None = None, arguments: Mapping[str, Any] | None = None) -> Finding:
        """Find whether a tool was called; see :func:`~pytest_lmeval.trajectory.called`."""
        from pytest_lmeval.functions.calls import called

        return called(self.trace, name, times=times, arguments=arguments)

    @contextmanager
    def may_fail(self) -> Iterator[None]:
        """Let requests of this example that begin within the block go without an answer, and the example be scored."""
        state = self._running
        state.may_fail += 1
        try:
            yield
        finally:
            state.may_fail -= 1

    @property
    def base_url(self) -> str:
        """The address of an endpoint for clients that answers for this example, until it ends."""
        return self._services.clients.endpoint.url(self.token)

    @property
    def token(self) -> str:
        """The key under which the endpoint knows this example, for a client that all examples share."""
        state = self._running
        state.check_is_running("lm.base_url")
        if not self._token:
            clients = self._services.clients
            # The environment is one example's at a time, that at its turn.
            self._token = clients.endpoint.register(state, clients, has_turn=self.on_enter is not None)
        return self._token

    def client(self, shared: _Client) -> _Client:
        """Return a client as ``shared`` whose requests are this example's: one of OpenAI's, Anthropic's or their like.

        Raise TypeError for what has no ``with_options(base_url=...)``.
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
        # Without them it is not handed out: its function has no argument for it.
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


def _awaited(
    work: Callable[Concatenate[Lm, _Given], Asking[_Result]],
) -> Callable[Concatenate[Lm, _Given], Coroutine[Any, Any, _Result]]:
    """Return the method that awaits the answers to what ``work`` asks."""

    @wraps(work)
    def method(lm: Lm, /, *args: _Given.args, **kwargs: _Given.kwargs) -> Coroutine[Any, Any, _Result]:
        asking = work(lm, *args, **kwargs)
        return lm._awaited(lm._running.promise(f"lm.{work.__name__}"), asking)

    return method


def _waited(
    awaited: Callable[Concatenate[Lm, _Given], Coroutine[Any, Any, _Result]],
) -> Callable[Concatenate[BlockingLm, _Given], _Result]:
    """Return the method of :class:`Lm` as one that waits for the answers."""
    work: Callable[Concatenate[BlockingLm, _Given], Asking[_Result]] = unwrap(awaited)

    @wraps(work)
    def method(lm: BlockingLm, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        return lm._waited(work(lm, *args, **kwargs))

    return method


class Lm(LmBase):
    """The fixture ``lm`` of an ``async def`` function."""

    @_awaited
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
    ) -> Asking[Completion]:
        """Return what the model under test answers to a text, or to messages with ``role`` and ``content``.

        The request goes through the run's engine, with its retries and limits, and becomes a step. Without an answer
        AdapterError is raised, and the example is an error even where that is caught, unless it ``may_fail``, as do all
        requests that begin within ``with lm.may_fail():``.
        ``temperature`` and ``model`` replace the adapter's own, where it takes them. ``tools`` are functions that
        the model may call, each with ``name``, ``description`` and ``parameters``, a JSON Schema; the answer's
        ``tool_calls`` are those that it asks for.
        """
        given: dict[str, Any] = {"tools": tools, "tool_choice": tool_choice, "stop": stop}
        given |= {"max_tokens": max_tokens, "temperature": temperature, "model": model}
        state = self._running
        state.check_is_running("lm.ask")
        asker = self._services.model
        fields = fields_of(given)
        named = fields["options"].get("model", "")
        if asker.facts.model_by_request and not named:
            error = UsageError(
                f"{place()}: lm.ask: {asker.name}: has no model of its own; name one, lm.ask(..., model=NAME), or say "
                f"--lm-adapter={asker.name}:MODEL"
            )
            state.fail(error)
            raise error
        request, step = open_request(state, asker.answering(named), messages_of(prompt), fields)
        step.client = {"model": named} if named else {}
        step.may_fail = step.may_fail or may_fail
        return (yield from answered(state, step, asker, request))

    @overload
    @_awaited
    def judge(
        self, question: str, text: str, *, labels: Sequence[str] = _YES_NO, reason: Literal[False] = False
    ) -> Asking[str]: ...

    @overload
    @_awaited
    def judge(
        self, question: str, text: str, *, labels: Sequence[str] = _YES_NO, reason: Literal[True]
    ) -> Asking[Judgment]: ...

    @_awaited
    def judge(self, question: str, text: str, *, labels: Sequence[str] = _YES_NO, reason: bool = False) -> Asking[Any]:
        """Return the label that the judge (``--lm-judge``) gives to ``text``; it is asked twice where it says none.

        With ``reason`` it says first why: a :class:`Judgment` with ``label`` and ``reason``. Raises ScoringError, and
        makes the example an error, without a judge and where no reply is a label.
        """
        from pytest_lmeval.functions.judging import consulting, labelling

        inquire = partial(labelling, question, str(text), labels, reason=reason)
        return consulting(self._running, self._services.judge, inquire)

    @_awaited
    def grade(
        self,
        rubric: str,
        text: str,
        *,
        reference: str = "",
        levels: Mapping[Any, str] | None = None,
        human_label: object = None,
    ) -> Asking[Grade]:
        """Return the level that the judge (``--lm-judge``) gives ``text`` by ``rubric``, with its reason.

        ``levels`` are two numbers in [0, 1] or more, increasing, each with what it means; without any, 0 and 1.
        ``reference`` is a right answer that it may compare with, ``human_label`` what a person said of the text. A
        reply without a level is asked for once more; raises ScoringError, and makes the example an error, after that.
        """
        from pytest_lmeval.functions.judging import consulting, grading

        inquire = partial(grading, rubric, str(text), reference=reference, levels=levels, human_label=human_label)
        return consulting(self._running, self._services.judge, inquire)

    def user(self, persona: str, goal: str = "", max_turns: int = 8) -> User:
        """Return a user whom the model of ``--lm-user`` plays, by default the judge's, to be talked with.

        ``async for said in user: user.reply(await answer(said))`` goes on until the user is done, or has said
        ``max_turns`` messages. It sees what it is replied, and nothing else. A reply of its model that cannot be read
        is asked for once more. Raises ScoringError, and makes the example an error, after that, and for a body that
        does not reply.
        """
        from pytest_lmeval.formats.persona import Persona
        from pytest_lmeval.functions.user import User

        return User(self, Persona(persona, goal, max_turns))

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

    ask = _waited(Lm.ask)
    judge = _waited(Lm.judge)
    grade = _waited(Lm.grade)

    def user(self, persona: str, goal: str = "", max_turns: int = 8) -> BlockingUser:
        """Return a user to be talked with, ``for said in user``; see :meth:`Lm.user`."""
        from pytest_lmeval.formats.persona import Persona
        from pytest_lmeval.functions.user import BlockingUser

        return BlockingUser(self, Persona(persona, goal, max_turns))

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
