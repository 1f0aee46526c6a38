"""Arguments of calls are judged as JSON Schema has it, but that a name which is not mentioned does not exist."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_lmeval.metrics.parts.tool_schema import fault, unchecked
from tests.examples import examples
from tests.needs import module
from tests.tables import each_row

jsonschema = module("jsonschema")

NAMES = st.sampled_from(["a", "b", "ab"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.5])
    | st.sampled_from(["", "a", "b", "ab"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)
SMALL = st.integers(0, 3)


def _with_free_names(schema: dict[str, Any]) -> dict[str, Any]:
    # Whoever says which other names there may be is understood as the standard has it.
    return {"patternProperties": {}, **schema} if "properties" in schema else schema


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(inner, min_size=1, max_size=3)
    kinds = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
    return st.fixed_dictionaries(
        {},
        optional={
            "type": kinds | st.lists(kinds, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=2),
            "items": inner,
            "prefixItems": some,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "minimum": SMALL,
            "maximum": SMALL,
            "exclusiveMinimum": SMALL,
            "exclusiveMaximum": SMALL,
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": SMALL,
            "maxLength": SMALL,
            "pattern": st.sampled_from(["^a", "b$", "^$"]),
            "minItems": SMALL,
            "maxItems": SMALL,
            "uniqueItems": st.booleans(),
            "minProperties": SMALL,
            "maxProperties": SMALL,
        },
    ).map(_with_free_names)


SCHEMAS = _schemas(st.recursive(st.booleans(), _schemas, max_leaves=5))


def searches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


@examples(400)
@given(SCHEMAS, VALUES)
def test_a_value_is_valid_where_jsonschema_says_so(schema: dict[str, Any], value: Any) -> None:
    assert jsonschema.Draft202012Validator(schema).is_valid(value) == (not fault(value, schema, searches))
    assert set() == unchecked(schema)


PERSON = {"properties": {"name": {"type": "string"}, "friend": {"$ref": "#/$defs/person"}}}
PEOPLE = {"$ref": "#/$defs/person", "$defs": {"person": PERSON}}
A: dict[str, Any] = {"properties": {"a": {}}}
B: dict[str, Any] = {"properties": {"b": {}}}
NO_B = "argument b: there is no parameter 'b'"


@each_row(
    ("schema", "value", "says"),
    [
        (A, {"b": 1}, f"{NO_B} (choices: a)"),
        ({"properties": {}}, {"b": 1}, NO_B),
        ({}, {"b": 1}, ""),
        ({**A, "additionalProperties": True}, {"b": 1}, ""),
        ({**A, "patternProperties": {"^x": {}}}, {"b": 1}, ""),
        ({**A, "additionalProperties": False}, {"b": 1}, f"{NO_B} (choices: a)"),
        ({**A, "anyOf": [B, True]}, {"a": 1, "b": 1}, ""),
        ({**A, "allOf": [{}]}, {"b": 1}, f"{NO_B} (choices: a)"),
        ({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": A, "b": B}}, {"a": 1, "b": 1}, ""),
        (PEOPLE, {"friend": {"friend": {"name": 1}}}, "argument friend/friend/name: expected string, got 1"),
        (PEOPLE, {"friend": {"age": 1}}, "argument friend/age: there is no parameter 'age' (choices: name, friend)"),
        ({"$ref": "#"}, {"a": 1}, ""),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "allOf": [{"$ref": "#"}] * 9}, {"a": 1}, ""),
        ({"properties": {"a": {"multipleOf": 0.1}}}, {"a": 0.3}, ""),
        ({"properties": {"a": {"pattern": r"\p{L}"}}}, {"a": "1"}, ""),
    ],
)
def test_names_that_are_not_mentioned_and_references(schema: dict[str, Any], value: Any, says: str) -> None:
    assert says == fault(value, schema, searches)


@pytest.mark.parametrize("depth", [49, 60, 900])
def test_what_is_nested_too_deep_is_not_valid(depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = {"friend": value}
    assert bool(fault(value, PEOPLE, searches)) == (depth > 49)


def test_what_is_not_looked_at_is_named() -> None:
    schema = {
        "properties": {"a": {"format": "date", "title": "A"}, "b": {"$ref": "#/$defs/none"}},
        "not": {},
        "$defs": {"c": {"items": {"contains": {}, "pattern": r"\p{L}"}}},
    }
    assert {"format", "not", "contains", "$ref '#/$defs/none'", r"pattern '\\p{L}'"} == unchecked(schema)
