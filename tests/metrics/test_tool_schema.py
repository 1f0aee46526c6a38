"""Arguments of calls are judged as JSON Schema has it, but that a name which is not mentioned does not exist."""

from __future__ import annotations

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


@examples(400)
@given(SCHEMAS, VALUES)
def test_a_value_is_valid_where_jsonschema_says_so(schema: dict[str, Any], value: Any) -> None:
    assert jsonschema.Draft202012Validator(schema).is_valid(value) == (not fault(value, schema))
    assert set() == unchecked(schema)


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


@each_row(
    ("schema", "right", "wrong"),
    [
        ({"type": ["string", "null"]}, None, 1),
        ({"enum": [1, "a"]}, 1.0, "b"),
        ({"const": [1]}, [1.0], [True]),
        ({"required": ["a"]}, {"a": None}, {"b": 1}),
        ({"properties": {"a": TEXT}, "patternProperties": {}}, {"a": "x"}, {"a": 1}),
        ({"additionalProperties": TEXT}, {"a": "x"}, {"a": 1}),
        ({"properties": {"a": {}}, "additionalProperties": TEXT}, {"a": 1, "b": "x"}, {"b": 1}),
        ({"patternProperties": {"^a": TEXT}}, {"ab": "x", "b": 1}, {"ab": 1}),
        ({"patternProperties": {"^a": {}}, "additionalProperties": False}, {"ab": 1}, {"b": 1}),
        ({"items": TEXT}, ["a", "b"], ["a", 1]),
        ({"prefixItems": [TEXT], "items": WHOLE}, ["a", 1], ["a", "b"]),
        ({"prefixItems": [TEXT, WHOLE]}, ["a"], ["a", "b"]),
        ({"anyOf": [TEXT, WHOLE]}, 1, 0.5),
        ({"oneOf": [TEXT, WHOLE]}, "a", None),
        ({"oneOf": [WHOLE, {"minimum": 2}]}, 1, 3),
        ({"allOf": [WHOLE, {"minimum": 2}]}, 2, 2.5),
        ({"minimum": 1}, 1, 0.5),
        ({"maximum": 1}, 1, 1.5),
        ({"exclusiveMinimum": 1}, 1.5, 1),
        ({"exclusiveMaximum": 1}, 0.5, 1),
        ({"multipleOf": 0.5}, 1.5, 1.25),
        ({"minLength": 2}, "ab", "a"),
        ({"maxLength": 2}, "ab", "abc"),
        ({"pattern": "^a"}, "ab", "ba"),
        ({"minItems": 1}, [1], []),
        ({"maxItems": 1}, [1], [1, 2]),
        ({"uniqueItems": True}, [1, True, "1"], [1, 1.0]),
        ({"minProperties": 1}, {"a": 1}, {}),
        ({"maxProperties": 1}, {"a": 1}, {"a": 1, "b": 2}),
        ({"$ref": "#/$defs/a", "$defs": {"a": TEXT}}, "a", 1),
    ],
)
def test_each_keyword_takes_what_is_right_and_refuses_what_is_wrong(
    schema: dict[str, Any], right: Any, wrong: Any
) -> None:
    theirs = [jsonschema.Draft202012Validator(schema).is_valid(value) for value in (right, wrong)]
    assert [True, False] == theirs == [fault(value, schema) == "" for value in (right, wrong)]


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
    assert says == fault(value, schema)


@pytest.mark.parametrize("depth", [49, 60, 900])
def test_what_is_nested_too_deep_is_not_valid(depth: int) -> None:
    value: Any = "x"
    for _ in range(depth):
        value = {"friend": value}
    assert bool(fault(value, PEOPLE)) == (depth > 49)


def test_what_is_not_looked_at_is_named() -> None:
    schema = {
        "properties": {"a": {"format": "date", "title": "A"}, "b": {"$ref": "#/$defs/none"}},
        "not": {},
        "$defs": {"c": {"items": {"contains": {}, "pattern": r"\p{L}"}}},
    }
    assert {"format", "not", "contains", "$ref '#/$defs/none'", r"pattern '\\p{L}'"} == unchecked(schema)
