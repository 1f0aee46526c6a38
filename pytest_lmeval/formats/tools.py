"""Check a record's tools: their schemas, the expected calls, and the tools' responses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, UnknownName
from pytest_lmeval.formats import checks
from pytest_lmeval.metrics.parts.tool_schema import BY_NAME, IN_LISTS, NUMBERS, TYPES, schema_of, within
from pytest_lmeval.metrics.parts.wanted_call import TEXTS, WantedCall, wanted_calls
from pytest_lmeval.numbers import is_number

_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_CHOICES = ("auto", "none", "required")
_COMPARED = {"text": TEXTS, "order": ("any", "exact"), "arguments": ("exact", "subset")}
_DEEPEST = 50
_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "required": (
        lambda given: isinstance(given, list) and all(isinstance(name, str) for name in given),
        "an array of names",
    ),
    "pattern": (lambda given: isinstance(given, str), "a text"),
    **dict.fromkeys(("enum", *IN_LISTS), (lambda given: isinstance(given, list), "an array")),
    **dict.fromkeys(BY_NAME, (lambda given: isinstance(given, dict), "an object")),
    **dict.fromkeys(NUMBERS, (is_number, "a number")),
    "multipleOf": (lambda given: is_number(given) and given > 0, "a number above 0"),
}


def tools_of(given: Any, field: str) -> tuple[Mapping[str, Any], ...]:
    """Return functions with ``name``, ``description`` and ``parameters``; raise RecordRefused for other values.

    As in chat interfaces, ``{"type": "function", "function": ...}`` may wrap a function.
    """
    if not isinstance(given, list) or not given:
        raise RecordRefused("bad_type", field, f"expected a non-empty array of functions, got {_got(given)}")
    tools = tuple(_tool(entry, f"{field}[{number}]") for number, entry in enumerate(given))
    names = [tool["name"] for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RecordRefused("bad_value", field, f"two tools are called {twice!r}")
    return tools


def check_call_extras(extras: Mapping[str, Any], prefix: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused unless ``extras`` have expected calls to ``tools``, and valid rules for the comparison."""
    if "calls" not in extras:
        detail = "the metric tool_calls needs the expected calls; [] if no call may be made"
        raise RecordRefused("missing_required", f"{prefix}.calls", detail)
    schemas = {tool["name"]: schema_of(tool) for tool in tools}
    calls = wanted_calls(extras["calls"], schemas, f"{prefix}.calls", subset=extras.get("arguments") == "subset")
    for number, call in enumerate(calls):
        if call.name not in schemas:
            detail = str(UnknownName("tool", call.name, schemas))
            raise RecordRefused("bad_value", f"{prefix}.calls[{number}].name", detail)
    for name, choices in _COMPARED.items():
        if name in extras:
            checks.one_of(extras[name], f"{prefix}.{name}", choices)


def check_choice(extras: Mapping[str, Any], prefix: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused unless ``tool_choice`` is auto, none, required or the name of a tool."""
    if "tool_choice" in extras:
        checks.one_of(extras["tool_choice"], f"{prefix}.tool_choice", [*_CHOICES, *(tool["name"] for tool in tools)])


def check_responses(given: Any, field: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused unless ``given`` maps tool names to a response, or to a list of responses by arguments."""
    if not isinstance(given, dict):
        raise RecordRefused("bad_type", field, f"expected an object, got {_got(given)}")
    if not tools:
        raise RecordRefused("missing_required", "extras.tools", f"{field} has answers of tools, but there are no tools")
    by_name = {tool["name"]: tool for tool in tools}
    for name, response in given.items():
        checks.one_of(name, field, by_name)
        for number, entry in enumerate(response if isinstance(response, list) else ()):
            where = f"{field}.{name}[{number}]"
            if not isinstance(entry, dict) or "response" not in entry or entry.keys() - {"arguments", "response"}:
                raise RecordRefused("bad_type", where, "expected an object with response and, before it, arguments")
            check_arguments(checks.optional_object(entry, "arguments", where), where, by_name[name])


def check_arguments(arguments: Mapping[str, Any], field: str, tool: Mapping[str, Any]) -> None:
    """Raise RecordRefused unless the tool's schema allows a call with ``arguments``."""
    WantedCall(tool["name"], arguments).check(schema_of(tool), field, partial=True)


def names_only(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of the tool that accepts any value for each argument."""
    schema = schema_of(tool)
    kept = {word: schema[word] for word in ("required", "additionalProperties", "patternProperties") if word in schema}
    if "properties" in schema:
        kept["properties"] = dict.fromkeys(schema["properties"], True)
    return {"name": tool["name"], "parameters": kept}


def _tool(entry: Any, field: str) -> Mapping[str, Any]:
    if isinstance(entry, dict) and entry.get("type") == "function" and "function" in entry:
        entry, field = entry["function"], f"{field}.function"
    if not isinstance(entry, dict) or "name" not in entry:
        raise RecordRefused("bad_type", field, f"expected a function with a name and parameters, got {_got(entry)}")
    name = checks.string(entry["name"], f"{field}.name")
    if not _NAME.fullmatch(name):
        raise RecordRefused("bad_value", f"{field}.name", f"{name!r} has characters other than A-Z a-z 0-9 _ - . : /")
    if not isinstance(entry.get("description", ""), str):
        raise RecordRefused("bad_type", f"{field}.description", f"expected text, got {_got(entry['description'])}")
    if "parameters" in entry:
        schema = entry["parameters"]
        _check_schema(schema, f"{field}.parameters")
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            raise RecordRefused("bad_value", f"{field}.parameters", "expected the JSON Schema of an object")
    return entry


def _check_schema(schema: Any, field: str, depth: int = 0) -> None:
    """Raise RecordRefused unless ``schema`` has the form of a JSON Schema; unknown keywords are allowed."""
    if isinstance(schema, bool) and depth:
        return
    if not isinstance(schema, dict):
        raise RecordRefused("bad_type", field, f"expected a JSON Schema, got {_got(schema)}")
    if depth > _DEEPEST:
        raise RecordRefused("bad_value", field, f"nested deeper than {_DEEPEST}")
    types = schema.get("type", [])
    for name in types if isinstance(types, list) else [types]:
        checks.one_of(name, f"{field}.type", TYPES)
    for word, (fits, wanted) in _SHAPES.items():
        if word in schema and not fits(schema[word]):
            raise RecordRefused("bad_type", f"{field}.{word}", f"expected {wanted}, got {_got(schema[word])}")
    for _, place, inner in within(schema):
        _check_schema(inner, f"{field}.{place}", depth + 1)


def _got(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, value))[:80] or 'no key'}"
    return "an empty array" if value == [] else checks.type_name(value)
