"""Parse tool calls in a model's text, in the formats of several model families."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pytest_lmeval.types import ToolCall

Found = tuple[str, list[tuple[str, str]]]
"""The text without the calls, and the name and arguments of each call."""

_HERMES = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_NAME = re.compile(r'"name"\s*:\s*"((?:[^"\\]|\\.)*)"')
_NAMED = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*(?:\[ARGS\])?\s*(?=\{)")
_decoder = json.JSONDecoder()


class Family(NamedTuple):
    """A format for tool calls, with ``marks`` in chat templates, and ``special`` tokens that decoding keeps."""

    parse: Callable[[str], Found]
    marks: tuple[str, ...]
    special: tuple[str, ...]


def _hermes(text: str) -> Found:
    """Read ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, as Hermes and Qwen write it."""
    return _HERMES.sub("", text).strip(), [_call(body) for body in _HERMES.findall(text)]


def _llama(text: str) -> Found:
    """Read ``{"name": ..., "parameters": {...}}``, repeated after semicolons or whitespace, as Llama 3 writes it."""
    before, mark, behind = text.partition("<|python_tag|>")
    body = (behind if mark else before).strip()
    if not body.startswith("{"):
        return text, []
    return before.strip() if mark else "", [_call(part) for part in _objects(body)]


def _mistral(text: str) -> Found:
    """Read ``[TOOL_CALLS]`` before an array of calls, or before each name and its arguments, as Mistral writes it."""
    before, *bodies = text.split("[TOOL_CALLS]")
    calls: list[tuple[str, str]] = []
    for body in bodies:
        if body.lstrip().startswith("["):
            calls += [_call(part) for part in _objects(body.strip()[1:])]
            continue
        named = _NAMED.match(body)
        calls.append((named[1], body[named.end() :].strip()) if named else _call(body))
    return before.strip() if bodies else text, calls


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "hermes": Family(_hermes, ("<tool_call>",), ("<tool_call>", "</tool_call>")),
        "mistral": Family(_mistral, ("[TOOL_CALLS]",), ("[TOOL_CALLS]", "[ARGS]")),
        "llama": Family(_llama, ("<|python_tag|>", '"parameters"'), ("<|python_tag|>",)),
    }
)


def family_of(template: str) -> str:
    """Return the name of the first family whose marks occur in the chat template, or ""."""
    return next((name for name, each in FAMILIES.items() if any(mark in template for mark in each.marks)), "")


def parse_calls(text: str, family: str) -> tuple[str, tuple[ToolCall, ...]]:
    """Separate tool calls from the text; return the rest of the text, and all calls, including malformed calls."""
    rest, calls = FAMILIES[family].parse(text)
    if not calls:
        return text, ()
    return rest, tuple(ToolCall(f"call{number:05}", *call) for number, call in enumerate(calls))


def _objects(body: str) -> Iterator[str]:
    """Yield the JSON objects at the start of ``body``, and then the rest of it."""
    while body := body.lstrip(" \t\r\n;,"):
        try:
            _, end = _decoder.raw_decode(body)
        except (ValueError, RecursionError):
            if body.rstrip("] \n"):
                yield body
            return
        yield body[:end]
        body = body[end:]


def _call(body: str) -> tuple[str, str]:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        named = _NAME.search(body)
        return (named[1] if named else ""), body.strip()
    arguments = found.get("arguments", found.get("parameters", {}))
    return found["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)
