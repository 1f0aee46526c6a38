"""Record calls to an application's tools as steps, and return recorded results.

A recorded call is looked up by the tool's name, the arguments, and the number of equal calls before it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from copy import deepcopy
from dataclasses import dataclass
from functools import partial, wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar, cast

from pytest_lmeval.adapters.facts import adapter_name, method
from pytest_lmeval.errors import UsageError
from pytest_lmeval.functions.example import LARGEST, as_json, place
from pytest_lmeval.records.tool_calls import TOOL, KnownCalls, Place, RecordedCall, call_key, call_line
from pytest_lmeval.text import error_text, portable_path

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pytest_lmeval.functions.example import ExampleState
    from pytest_lmeval.functions.lm import Services
    from pytest_lmeval.functions.loop import Loop
    from pytest_lmeval.functions.steps import Step
    from pytest_lmeval.records.answers import Journal
    from pytest_lmeval.run.resume import HeldResults

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_WITHIN: ContextVar[str] = ContextVar("lmeval_tool", default="")
"""The key and the number of the tool call in which the code runs."""
_FUNCTION, _SCHEMA = "__lmeval_tool__", "__lmeval_schema__"
_CLOSES_S = 8.0
_JSON = "expected JSON values: dict, list, str, int, float, bool, None"


class WithExample(Protocol):
    """The attributes of ``lm`` that tools need."""

    @property
    def _running(self) -> ExampleState: ...

    @property
    def _services(self) -> Services: ...


class ToolServer(Protocol):
    """A server that ends with the example."""

    def close(self) -> Future[None]:
        """End the server."""


@dataclass(frozen=True)
class ToolRecords:
    """The recorded tool calls of one model's examples; ``loop`` runs the connections to servers.

    The calls come from the ``adapter`` if it is a recording, or else from ``held``, the results from which the run
    resumes.
    """

    adapter: object
    held: HeldResults | None
    journal: Journal | None
    loop: Loop

    def known(self, task: str, example: str) -> KnownCalls:
        """Return an example's recorded calls."""
        if (recorded := method(self.adapter, "recorded_calls")) is not None:
            return KnownCalls(recorded(task, example), adapter_name(self.adapter))
        return KnownCalls() if self.held is None else self.held.known_calls(task, example)


class ExampleTools:
    """The tools of one example: their names, recorded calls, and servers."""

    def __init__(self, state: ExampleState, records: ToolRecords) -> None:
        self.state = state
        self.records = records
        self.known = records.known(state.task, state.id)
        self.servers: list[ToolServer] = []
        self._owners: dict[str, tuple[object, str]] = {}
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def claim(self, name: str, owner: object, shown: str) -> None:
        """Reserve a tool's name; raise ScoringError if the example has another tool with that name."""
        other, of_other = self._owners.setdefault(name, (owner, shown))
        if other != owner:
            self.state.refuse(
                f"two tools of the example are called {name!r}: {of_other} and {shown}; give each a different name"
            )

    def open_step(self, kind: str, name: str, arguments: object, key: str) -> tuple[Step, Place]:
        """Record the beginning of a call; return the step, and the repeat, key and number that identify the call."""
        # Equal calls in several threads are numbered in the order of their steps.
        with self._lock:
            step = self.state.step(kind, name, arguments, None)
            step.key = key
            number = self._counts[key]
            self._counts[key] += 1
        return step, (self.state.repeat, key, number)

    def add_to_journal(self, place: Place, name: str, call: RecordedCall) -> bool:
        """Write a call's beginning or end to the journal; return False if the journal cannot be written."""
        journal, state = self.records.journal, self.state
        return journal is not None and journal.add_call(state.task, state.id, call_line(place, name, call))

    def close(self) -> None:
        """End the servers; call this in a thread without a loop."""
        for ending in [server.close() for server in self.servers]:
            with suppress(Exception):
                ending.result(_CLOSES_S)

    async def aclose(self) -> None:
        """End the servers; await this in the functions' loop."""
        if endings := [asyncio.wrap_future(server.close()) for server in self.servers]:
            await asyncio.wait(endings, timeout=_CLOSES_S)


class ToolUse:
    """One tool call, as a context manager.

    If ``is_live`` is True, the block must call the tool and set ``result``; otherwise, ``result`` is the recorded
    result. A recorded exception is raised again. A call with ``once`` is written to the journal before it begins and
    when it ends.
    """

    def __init__(self, tools: ExampleTools, kind: str, name: str, arguments: object, *, once: bool = False) -> None:
        self.is_live = True
        self.result: Any = None
        self._tools = tools
        self._kind, self._name, self._once = kind, name, once
        self._arguments = arguments

    def __enter__(self) -> ToolUse:
        tools, state = self._tools, self._tools.state
        state.check_is_running(f"a call of {self._name}")
        try:
            arguments = json.loads(json.dumps(self._arguments, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            state.refuse(f"the arguments of {self._name} are not JSON ({error}); {_JSON}")
        key = call_key(self._name, arguments, _WITHIN.get())
        self._step, self._place = tools.open_step(self._kind, self._name, arguments, key)
        self._shown = self._name if arguments is None else f"{self._name}({json.dumps(arguments):.200})"
        recorded = self._recorded()
        if recorded is not None:
            self._take(recorded)
        elif self._once and not tools.add_to_journal(self._place, self._name, RecordedCall(has_ended=False)):
            self._refuse(f"{self._shown} must run once, and its begin cannot be recorded in underway.jsonl")
        self._token: Token[str] = _WITHIN.set(f"{key} {self._place[2]}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with suppress(ValueError):  # a coroutine may be closed in another context
            _WITHIN.reset(self._token)
        if not self.is_live:
            return
        step = self._step
        took = self._tools.state.now_ms - step.start_ms
        if error is None:
            step.output = self._checked(self.result)
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            step.cancelled, step.ms = True, took
            return
        else:
            step.error, step.output = error_text(error), _described(error)
        call = RecordedCall(step.output, step.error, took)
        if self._once and not self._tools.add_to_journal(self._place, self._name, call):
            self._refuse(f"{self._shown} must run once, and its end cannot be recorded in underway.jsonl")
        step.ms = took

    def _recorded(self) -> RecordedCall | None:
        """Return the recorded call that replaces a live call, or None."""
        known = self._tools.known
        found = known.calls.get(self._place)
        if known.source:
            if found is None or not found.has_ended:
                held = "no call" if found is None else "no result of the call"
                self._refuse(f"{known.source} holds {held} {self._shown}, number {self._place[2] + 1}: {_CHANGED}")
            return found
        if found is None or not (self._once or (known.all and _can_be_taken(found))):
            return None
        if not found.has_ended:
            self._refuse(f"an earlier run began {self._shown} and did not record its end: {_BEGUN}")
        return found

    def _take(self, recorded: RecordedCall) -> None:
        step = self._step
        self.is_live = False
        self.result, step.output = deepcopy(recorded.output), recorded.output
        step.error, step.ms = recorded.error, recorded.ms or 0.0
        if recorded.error:
            raised = _raised(recorded.output)
            if raised is None:
                self._refuse(f"{self._shown} raised {recorded.error}, and a recording cannot raise it again")
            raise raised

    def _checked(self, result: object) -> object:
        """Return a copy of a result; raise ScoringError for a result that a recording would change."""
        kept, size = as_json(result)
        if not _is_json(result, kept):
            if inspect.iscoroutine(result):
                result.close()  # otherwise Python warns elsewhere
            hint = "; wrap the async def function itself" if inspect.isawaitable(result) else ""
            self._refuse(f"{self._name} returned {result!r:.80}, which is not JSON{hint}; {_JSON}")
        if size > LARGEST:
            self._refuse(f"{self._name} returned {size:,} characters; a step holds at most {LARGEST:,}")
        return kept

    def _refuse(self, message: str) -> NoReturn:
        self._step.error, self._step.ms = message, self._tools.state.now_ms - self._step.start_ms
        self._tools.state.refuse(message)


_CHANGED = "the application, a tool or an earlier answer has changed; record it again with a run that asks a model"
_BEGUN = "check whether it took effect; without --lm-resume it is called again"


def example_tools(lm: WithExample) -> ExampleTools:
    """Return the tools of the running example."""
    state = lm._running
    if state.tools is None:
        state.tools = ExampleTools(state, lm._services.tools())
    return state.tools


def recorded_tool(tools: ExampleTools, function: Callable[_Given, _Result], *, once: bool) -> Callable[_Given, _Result]:
    """Wrap ``function`` so that its calls are recorded as steps; raise ScoringError if it cannot be a tool."""
    name, signature = _checked_tool(tools.state, function)
    tools.claim(name, function, _where(function))

    def used(args: Sequence[object], kwargs: Mapping[str, object]) -> ToolUse:
        return ToolUse(tools, TOOL, name, _arguments(tools.state, name, signature, args, kwargs), once=once)

    async def awaited(*args: _Given.args, **kwargs: _Given.kwargs) -> Any:
        with used(args, kwargs) as use:
            if use.is_live:
                use.result = await cast(Callable[_Given, Awaitable[Any]], function)(*args, **kwargs)
        return use.result

    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> Any:
        with used(args, kwargs) as use:
            if use.is_live:
                use.result = function(*args, **kwargs)
        return use.result

    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))
    found = wraps(function)(awaited if is_async else called)
    found.__name__ = name
    vars(found)[_FUNCTION] = function
    return cast(Callable[_Given, _Result], found)


def described_tool(given: object, where: str) -> Mapping[str, object]:
    """Describe a function from ``lm.tool`` by its name, its docstring, and the JSON Schema of its parameters."""
    of_given: dict[str, Any] = getattr(given, "__dict__", {})
    if _FUNCTION not in of_given:
        raise UsageError(f"{place()}: {where}: expected a mapping, or a function from lm.tool, got {given!r:.80}")
    if _SCHEMA not in of_given:
        function = of_given[_FUNCTION]
        documented = function.func if isinstance(function, partial) else function
        try:
            parameters = _schema_of(function)
        except Exception as error:  # annotations are the project's code
            reason = f"its parameters have no JSON Schema ({error_text(error):.300})"
            raise UsageError(f"{place()}: {where}: {reason}; pass name, description and parameters") from None
        described = {"name": getattr(given, "__name__", ""), "description": inspect.getdoc(documented) or ""}
        of_given[_SCHEMA] = {**described, "parameters": parameters}
    found: Mapping[str, object] = of_given[_SCHEMA]
    return found


def _schema_of(function: Callable[..., object]) -> Mapping[str, object]:
    # Import pydantic only here, because it is large and few functions describe tools.
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    adapter: Any = TypeAdapter(cast(Any, function))
    found: Mapping[str, object] = adapter.json_schema(schema_generator=Untitled)
    return found


def _checked_tool(state: ExampleState, function: object) -> tuple[str, inspect.Signature]:
    if not callable(function):
        state.refuse(f"lm.tool: expected a function, got {function!r:.80}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        state.refuse(f"lm.tool: {_where(function)} is a generator, whose values cannot be recorded; return a list")
    name = getattr(function.func if isinstance(function, partial) else function, "__name__", None)
    if not isinstance(name, str) or not name or name == "<lambda>":
        state.refuse(f"lm.tool: {function!r:.80} has no name: wrap a function made by def")
    try:
        return name, inspect.signature(function)
    except (TypeError, ValueError):
        state.refuse(f"lm.tool: {name} has no signature: wrap it in a function made by def")


def _where(function: object) -> str:
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None:
        return f"{function!r:.80}"
    return f"{code.co_name} ({portable_path(code.co_filename)}:{code.co_firstlineno})"


def _arguments(
    state: ExampleState, name: str, signature: inspect.Signature, args: Sequence[object], kwargs: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the arguments by name; if they do not fit the function, record the call and raise TypeError."""
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        step = state.step(TOOL, name, [*args, dict(kwargs)] if args else dict(kwargs), None)
        step.error, step.ms = str(error), 0.0
        raise TypeError(f"{name}(): {error}") from None
    found = dict(bound.arguments)
    for parameter in signature.parameters.values():
        rest = found.get(parameter.name)
        if parameter.kind is parameter.VAR_KEYWORD and isinstance(rest, dict) and not rest.keys() & found.keys():
            found.update(found.pop(parameter.name))
    return found


def _is_json(value: object, copy: object) -> bool:
    """Return True if a JSON copy of a value equals the value."""
    if isinstance(copy, dict) and isinstance(value, dict):
        return copy.keys() == value.keys() and all(_is_json(value[name], each) for name, each in copy.items())
    if isinstance(copy, list) and isinstance(value, list):
        return len(copy) == len(value) and all(map(_is_json, value, copy))
    return copy is value or (isinstance(value, str | int | float) and copy == value)


def _described(error: BaseException) -> Mapping[str, object] | None:
    """Describe an exception as JSON values from which it can be raised again; return None if that is impossible."""
    found: dict[str, object] = {"raised": f"{type(error).__module__}:{type(error).__qualname__}", "args": [*error.args]}
    if own := getattr(error, "__dict__", None):
        found["attributes"] = own
    kept, size = as_json(found)
    is_same = isinstance(error, Exception) and _is_json(found, kept) and size <= LARGEST
    return kept if is_same else None


def _can_be_taken(recorded: RecordedCall) -> bool:
    return recorded.has_ended and not (recorded.error and _raised(recorded.output) is None)


def _raised(output: object) -> Exception | None:
    """Return the exception in a recorded output, or None if the exception's type is unknown in this process."""
    if not isinstance(output, dict) or not isinstance(output.get("args"), list):
        return None
    module, _, qualname = str(output.get("raised")).partition(":")
    kind: Any = sys.modules.get(module)
    for part in qualname.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        # The __init__ of the type may take other arguments.
        error = kind.__new__(kind, *output["args"])
        error.args = tuple(output["args"])
        vars(error).update(output.get("attributes", {}))
    except Exception:  # the project's code
        return None
    return error
