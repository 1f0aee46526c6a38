"""Record a running example's OpenTelemetry spans as steps.

This module uses only OpenTelemetry modules that the project has already imported.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_lmeval.functions.example import CURRENT, LARGEST, as_json, cut
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.numbers import is_number

if TYPE_CHECKING:
    from pytest_lmeval.functions.example import ExampleState

_API = "opentelemetry.trace"
_OURS = "lmeval-"
_FUNCTIONS = "lmeval-function"
_HERE = ("127.0.0.1", "localhost")
_Key = tuple[int, int]
_OPERATION = "gen_ai.operation.name"
_TOOL = "gen_ai.tool.name"
# This kind is not "request", because a resumed run reuses the answers to requests.
_MODEL = "model"
_KINDS = {
    "chat": _MODEL,
    "text_completion": _MODEL,
    "generate_content": _MODEL,
    "embeddings": _MODEL,
    "execute_tool": "tool",
    "create_agent": "agent",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
}
# The first attribute that is present is used; later attributes come from older versions of the conventions.
_NAMES = {
    _MODEL: ("gen_ai.request.model", "gen_ai.response.model"),
    "tool": (_TOOL,),
    "agent": ("gen_ai.agent.name", "gen_ai.workflow.name"),
}
_INPUTS = {
    _MODEL: ("gen_ai.input.messages", "gen_ai.prompt"),
    "agent": ("gen_ai.input.messages",),
    "tool": ("gen_ai.tool.call.arguments",),
}
_OUTPUTS = {
    _MODEL: ("gen_ai.output.messages", "gen_ai.completion"),
    "agent": ("gen_ai.output.messages",),
    "tool": ("gen_ai.tool.call.result",),
}
_USAGE = {
    "prompt_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "completion_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
}


@dataclass(slots=True)
class _Open:
    """A span of a running example.

    The span may end before its children begin. ``is_counted`` is True if a nested step already counts the span's
    tokens.
    """

    state: ExampleState
    parent: _Key | None
    start_ms: float
    is_counted: bool = False
    has_ended: bool = False


class Spans:
    """The spans of a process, each assigned to the example in which it began.

    A span belongs to the example whose code starts it, or else to the parent span's example. Other spans that begin
    while examples run count as strays. ``own_address`` returns the ``host:port`` of the clients' endpoint, or "" if
    there is no endpoint. ``running`` are examples that are already running.
    """

    def __init__(self, own_address: Callable[[], str], running: Iterable[ExampleState] = ()) -> None:
        self._own_address = own_address
        self._provider: object = None
        self._lock = threading.Lock()
        self._spans: dict[_Key, _Open] = {}
        self._keys: dict[ExampleState, list[_Key]] = {state: [] for state in [*running]}
        self._strays: dict[str, int] = {}
        self._late = 0
        self._before = 0
        self._is_closed = False

    @property
    def running(self) -> Collection[ExampleState]:
        """The examples that have begun but not ended."""
        return self._keys.keys()

    def began(self, state: ExampleState) -> None:
        """Record that an example has begun; listen to spans if a tracer provider is set."""
        self._look()
        with self._lock:
            self._keys[state] = []

    def ended(self, state: ExampleState) -> None:
        """Record that an example has ended."""
        self._look()
        with self._lock:
            for key in self._keys.pop(state, ()):
                self._late += not self._spans.pop(key).has_ended

    def close(self) -> None:
        """Stop listening."""
        self._is_closed = True

    @property
    def notes(self) -> list[str]:
        """Messages for the end of the run about spans that did not become steps."""
        found = []
        if self._strays:
            strays, names = _counted(sum(self._strays.values()), "span"), ", ".join(list(self._strays)[:3])
            found.append(
                f"OpenTelemetry: {strays} of no example ({names}): started in threads without an example's context, "
                "such as threads of loop.run_in_executor; asyncio.to_thread passes it on"
            )
        if self._late:
            found.append(
                f"OpenTelemetry: {_counted(self._late, 'span')} had not ended when the example did, and cannot be steps"
            )
        if self._before:
            found.append(
                f"OpenTelemetry: a tracer provider was set when {_counted(self._before, 'example')} had begun, whose "
                "spans may be missing; set it before, as in conftest.py"
            )
        return found

    def on_start(self, span: Any) -> None:
        """Assign a span to its example; OpenTelemetry calls this in the thread that starts the span."""
        thread = threading.current_thread().name
        if self._is_closed or (thread.startswith(_OURS) and not thread.startswith(_FUNCTIONS)):
            # The request itself is a step already.
            return
        state = CURRENT.get()
        parent = _key(span.parent) if span.parent is not None else None
        with self._lock:
            if state not in self._keys and parent in self._spans:
                state = self._spans[parent].state
            if state is not None and state in self._keys:
                key = _key(span.get_span_context())
                self._spans[key] = _Open(state, parent, state.now_ms)
                self._keys[state].append(key)
            elif self._keys:
                self._strays[span.name] = self._strays.get(span.name, 0) + 1

    def on_end(self, span: Any) -> None:
        """Convert a span to a step of its example."""
        known = self._spans.get(_key(span.get_span_context()))
        if known is None or known.state.has_ended:
            return
        known.has_ended = True
        step = _step_of(span, known.start_ms)
        self._count_once(known, step, span.attributes or {})
        known.state.insert(step)

    def _count_once(self, known: _Open, step: Step, attributes: Mapping[str, Any]) -> None:
        """Drop a step's tokens if a nested span, or a request that the run recorded, already counts them."""
        if not step.usage:
            return
        if known.is_counted or self._is_ours(known.state, step, attributes):
            step.usage = {}
        with self._lock:
            above = self._spans.get(known.parent) if known.parent is not None else None
            while above is not None and not above.is_counted:
                above.is_counted = True
                above = self._spans.get(above.parent) if above.parent is not None else None

    def _is_ours(self, state: ExampleState, step: Step, attributes: Mapping[str, Any]) -> bool:
        host, port = attributes.get("server.address"), attributes.get("server.port")
        if port is not None:
            return host in _HERE and self._own_address().endswith(f":{port}")
        # The instrumentation names no server, so compare times and tokens with the requests that the run recorded.
        end = step.start_ms + (step.ms or 0.0)
        return any(
            each.kind in ("request", "http")
            and step.start_ms <= each.start_ms
            and each.start_ms + (each.ms or 0.0) <= end
            and _tokens(each.usage) == _tokens(step.usage)
            for each in state.steps
        )

    def _look(self) -> None:
        api: Any = sys.modules.get(_API)
        if api is None or self._is_closed:
            return
        try:
            provider = api.get_tracer_provider()
        except AttributeError:  # another thread is importing the module
            return
        if provider is self._provider or not hasattr(provider, "add_span_processor"):
            return
        with self._lock:
            if provider is self._provider:
                return
            self._provider = provider
            self._before = max(self._before, len(self._keys))
        provider.add_span_processor(_processor(self))


def _step_of(span: Any, start_ms: float) -> Step:
    """Convert a span, which began ``start_ms`` after its example did, to a step by the GenAI semantic conventions.

    Messages, arguments and results become the input and the output. If a span has no messages, arguments or results,
    its attributes become the input. Values larger than 1 MiB are cut.
    """
    attributes = dict(span.attributes or {})
    kind = "tool" if _TOOL in attributes else _KINDS.get(str(attributes.get(_OPERATION)), "span")
    found = {**attributes, **dict(_of_events(span.events))}
    input, output = _first(found, _INPUTS.get(kind, ())), _first(found, _OUTPUTS.get(kind, ()))
    return Step(
        kind,
        str(_first(attributes, _NAMES.get(kind, ())) or span.name),
        _small(attributes if input is None and output is None else _read(input)),
        _small(_read(output)),
        start_ms,
        max(0, (span.end_time or 0) - (span.start_time or 0)) / 1e6,
        # An agent's usage is the sum over the models below it.
        usage=_usage(attributes) if kind == _MODEL else {},
        error=cut(_error(span, attributes)),
    )


def _tokens(usage: Mapping[str, float]) -> tuple[float, float]:
    return usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)


def _first(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _of_events(events: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    known = {name for sides in (_INPUTS, _OUTPUTS) for names in sides.values() for name in names}
    for event in events or ():
        yield from ((name, value) for name, value in (event.attributes or {}).items() if name in known)


def _usage(attributes: Mapping[str, Any]) -> dict[str, float]:
    found = {name: _first(attributes, names) for name, names in _USAGE.items()}
    return {name: amount for name, amount in found.items() if is_number(amount) and 0 <= amount < 1e15}


def _read(value: Any) -> Any:
    """Return an attribute's value; parse JSON, because attributes cannot have structured values."""
    if isinstance(value, str) and value[:1] in ("{", "[") and len(value) <= LARGEST:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, list) and value and all(map(_is_message, value)):
        return [_plain(message) for message in value]
    return value


def _is_message(given: Any) -> bool:
    parts = given.get("parts") if isinstance(given, Mapping) else None
    return isinstance(parts, list) and all(
        isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("content"), str)
        for part in parts
    )


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in message.items() if name not in ("role", "parts")}
    return {"role": message.get("role"), "content": "".join(part["content"] for part in message["parts"]), **rest}


def _error(span: Any, attributes: Mapping[str, Any]) -> str:
    if span.status.status_code.name != "ERROR":
        return ""
    raised = next((event.attributes for event in span.events or () if event.name == "exception"), None) or {}
    parts = [str(raised[name]) for name in ("exception.type", "exception.message") if raised.get(name)]
    return str(span.status.description or ": ".join(parts) or attributes.get("error.type") or "error")


def _small(value: Any) -> Any:
    kept, size = as_json(value)
    if size <= LARGEST:
        return kept
    return cut(kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False))


def _key(context: Any) -> _Key:
    return context.trace_id, context.span_id


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def _processor(spans: Spans) -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    class Processor(SpanProcessor):  # type: ignore[misc]  # the SDK has no checked types
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            spans.on_start(span)

        def on_end(self, span: Any) -> None:
            spans.on_end(span)

    return Processor()
