"""A finished span as a step, by the GenAI semantic conventions as far as it follows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.functions.example import LARGEST, as_json, cut
from pytest_lmeval.functions.steps import Step
from pytest_lmeval.numbers import is_number

_OPERATION = "gen_ai.operation.name"
_TOOL = "gen_ai.tool.name"
# Not "request": that is what the run's own model was asked, and what a resumed run takes answers from.
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
# The first that is there counts; the later ones are those of older versions.
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


def step_of(span: Any, start_ms: float) -> Step:
    """Return the step that a span is which began ``start_ms`` after its example.

    What its messages, arguments and results are is its input and output; without them its attributes are the input.
    What is larger than 1 MiB is cut off.
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
        # An agent's is the sum of what the models below it used.
        usage=_usage(attributes) if kind == _MODEL else {},
        error=cut(_error(span, attributes)),
    )


def tokens(usage: Mapping[str, float]) -> tuple[float, float]:
    """Return how many tokens went in and out."""
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
    """Return what an attribute holds, which is JSON where attributes can have no structure."""
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
