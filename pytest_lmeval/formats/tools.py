"""The tools of a record: what a model may call, what it should call, and what the tools answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import RecordRefused, ScoringError, UnknownName
from pytest_lmeval.formats import checks
from pytest_lmeval.metrics.parts.made_call import ARGUMENTS, ORDERS, schema_of, searches
from pytest_lmeval.metrics.parts.tool_schema import NUMBERS
from pytest_lmeval.metrics.parts.wanted_call import KEYS, TEXTS, WantedCall
from pytest_lmeval.numbers import is_number

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_CHOICES = ("auto", "none", "required")
_DEEPEST = 50
_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_ONE = ("items", "not", "if", "then", "else", "contains", "additionalProperties", "propertyNames")


def tools_of(given: Any, field: str) -> tuple[Mapping[str, Any], ...]:
    """Return functions with ``name``, ``description`` and ``parameters``; raise RecordRefused for anything else.

    Each may be within ``{"type": "function", "function": ...}``, as chat interfaces have it.
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
    """Raise RecordRefused unless ``extras`` say which calls of ``tools`` are expected, and how they are compared."""
    if "calls" not in extras:
        detail = "the metric tool_calls needs the calls that are expected; [] where none may be made"
        raise RecordRefused("missing_required", f"{prefix}.calls", detail)
    calls = extras["calls"]
    if not isinstance(calls, list):
        raise RecordRefused("bad_type", f"{prefix}.calls", f"expected an array, got {checks.type_name(calls)}")
    subset = extras.get("arguments") == "subset"
    by_name = {tool["name"]: tool for tool in tools}
    for number, call in enumerate(calls):
        _check_call(call, f"{prefix}.calls[{number}]", by_name, subset)
    for name, choices in (("text", TEXTS), ("order", ORDERS), ("arguments", ARGUMENTS)):
        if name in extras:
            checks.one_of(extras[name], f"{prefix}.{name}", choices)


def check_choice(extras: Mapping[str, Any], prefix: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused unless ``tool_choice`` is a word for it, or the name of a tool."""
    if "tool_choice" in extras:
        checks.one_of(extras["tool_choice"], f"{prefix}.tool_choice", [*_CHOICES, *(tool["name"] for tool in tools)])


def check_responses(given: Any, field: str, tools: Sequence[Mapping[str, Any]]) -> None:
    """Raise RecordRefused unless ``given`` has, by the name of a tool, one response or a table of them by arguments."""
    if not isinstance(given, dict):
        raise RecordRefused("bad_type", field, f"expected an object, got {_got(given)}")
    if not tools:
        raise RecordRefused("missing_required", "extras.tools", f"{field} are what tools answer, but it has no tools")
    names = [tool["name"] for tool in tools]
    for name, response in given.items():
        checks.one_of(name, field, names)
        for number, entry in enumerate(response if isinstance(response, list) else ()):
            where = f"{field}.{name}[{number}]"
            if not isinstance(entry, dict) or "response" not in entry or entry.keys() - {"arguments", "response"}:
                raise RecordRefused("bad_type", where, "expected an object with response and, before it, arguments")
            arguments = checks.optional_object(entry, "arguments", where)
            check_arguments(arguments, where, next(tool for tool in tools if tool["name"] == name))


def check_arguments(arguments: Mapping[str, Any], field: str, tool: Mapping[str, Any]) -> None:
    """Raise RecordRefused for arguments, some of a call's, that no call which is valid by the tool's schema has."""
    _check_wanted(WantedCall(tool["name"], arguments), f"{field}.arguments", tool, partial=True)


def names_only(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool that takes arguments of the same names, with any values."""
    schema = schema_of(tool)
    kept = {word: schema[word] for word in ("required", "additionalProperties", "patternProperties") if word in schema}
    if "properties" in schema:
        kept["properties"] = dict.fromkeys(schema["properties"], True)
    return {"name": tool["name"], "parameters": kept}


def _check_wanted(call: WantedCall, field: str, tool: Mapping[str, Any], *, partial: bool) -> None:
    try:
        wrong = call.invalid(schema_of(tool), searches, partial=partial)
    except ScoringError as error:  # a pattern that takes time without end
        wrong = str(error)
    if wrong:
        raise RecordRefused("bad_value", field, f"not valid by the schema of {tool['name']}: {wrong}")


def _check_call(call: Any, field: str, tools: Mapping[str, Mapping[str, Any]], subset: bool) -> None:
    if not isinstance(call, dict) or "name" not in call or call.keys() - {*KEYS}:
        detail = f"expected an object with name and arguments, accept or optional, got {_got(call)}"
        raise RecordRefused("bad_type", field, detail)
    name = checks.string(call["name"], f"{field}.name")
    if name not in tools:
        raise RecordRefused("bad_value", f"{field}.name", str(UnknownName("tool", name, tools)))
    checks.optional_object(call, "arguments", field)
    try:
        wanted = WantedCall.of(call)
    except ValueError as error:
        raise RecordRefused("bad_value", field, str(error)) from None
    _check_wanted(wanted, f"{field}.arguments", tools[name], partial=subset)


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
        check_schema(schema, f"{field}.parameters")
        if not isinstance(schema, dict) or schema.get("type", "object") != "object":
            raise RecordRefused("bad_value", f"{field}.parameters", "expected the JSON Schema of an object")
    return entry


def check_schema(schema: Any, field: str, depth: int = 0) -> None:
    """Raise RecordRefused unless ``schema`` has the shape of a JSON Schema; keywords that say nothing here are free."""
    if isinstance(schema, bool) and depth:
        return
    if not isinstance(schema, dict):
        raise RecordRefused("bad_type", field, f"expected a JSON Schema, got {_got(schema)}")
    if depth > _DEEPEST:
        raise RecordRefused("bad_value", field, f"nested deeper than {_DEEPEST}")
    types = schema.get("type", [])
    for name in types if isinstance(types, list) else [types]:
        checks.one_of(name, f"{field}.type", _TYPES)
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise RecordRefused("bad_type", f"{field}.required", f"expected an array of names, got {_got(required)}")
    if not isinstance(schema.get("enum", []), list):
        raise RecordRefused("bad_type", f"{field}.enum", f"expected an array, got {_got(schema['enum'])}")
    _check_bounds(schema, field)
    for inner, where in _inner(schema, field):
        check_schema(inner, where, depth + 1)


def _check_bounds(schema: Mapping[str, Any], field: str) -> None:
    for word in NUMBERS:
        bound = schema.get(word, 1)
        if not is_number(bound) or (word == "multipleOf" and bound <= 0):
            raise RecordRefused("bad_type", f"{field}.{word}", f"expected a number, got {_got(bound)}")
    if not isinstance(schema.get("pattern", ""), str):
        raise RecordRefused("bad_type", f"{field}.pattern", f"expected a text, got {_got(schema['pattern'])}")


def _inner(schema: Mapping[str, Any], field: str) -> Iterator[tuple[Any, str]]:
    for keyword in _BY_NAME:
        if keyword in schema:
            for name, inner in checks.optional_object(schema, keyword, field).items():
                yield inner, f"{field}.{keyword}.{name}"
    for keyword in _OF_SCHEMAS:
        found = schema.get(keyword, [])
        if not isinstance(found, list):
            raise RecordRefused("bad_type", f"{field}.{keyword}", f"expected an array, got {_got(found)}")
        yield from ((inner, f"{field}.{keyword}[{number}]") for number, inner in enumerate(found))
    yield from ((schema[keyword], f"{field}.{keyword}") for keyword in _ONE if keyword in schema)


def _got(value: Any) -> str:
    if isinstance(value, dict):
        return f"an object with {', '.join(map(str, value))[:80] or 'no key'}"
    return "an empty array" if value == [] else checks.type_name(value)
