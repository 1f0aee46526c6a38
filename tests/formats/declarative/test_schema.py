"""The schemas are those of the models, and editors can explain every field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_lmeval.schemas import load_schema
from tests.formats.declarative.making import EQUALS, SOLVER, document
from tests.schemas import validator
from tests.tables import each_row

NAMES = ("dataset", "task")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_sound_and_says_what_it_is_of(name: str) -> None:
    schema = load_schema(name)
    validator(name).check_schema(schema)
    assert f"urn:pytest-lmeval:schema:{name}:1" == schema["$id"]
    assert {"$schema", "title", "description"} <= schema.keys()


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described(name: str) -> None:
    schema = load_schema(name)
    parts = {"": schema, **schema.get("$defs", {})}
    silent = [
        f"{part}.{field}"
        for part, described in parts.items()
        for field, told in described.get("properties", {}).items()
        if not told.get("description")
    ]
    assert [] == silent


VALID: list[dict[str, Any]] = [
    document(),
    document([EQUALS, {"type": "f1", "ground_truth": ["a"]}, {"type": "json_schema", "json_schema": {"a": 1}}]),
    document([{"type": "python", "compute_scores_snippet": "x", "metrics": [{"type": "frequency", "field": "x"}]}]),
    document(solver={**SOLVER, "max_tokens": "<< config.n >>", "stop": "<< config.stop >>"}),
    document([{"type": "labeler_via_model", "labels": "<< config.labels >>", "user_prompt": "x"}]),
    document(root={"config_spec": [{"type": "int", "key": "n", "min": 1}, {"type": "model", "key": "m"}]}),
    document(
        actions=[
            {
                "key": "a",
                "action": "exclude_from_metrics",
                "filter": {"op": "not", "filter": {"op": "in", "expression": "x", "value": [1]}},
            }
        ]
    ),
]
INVALID: list[dict[str, Any]] = [
    document([{"type": "string_equals"}]),
    document([{**EQUALS, "ground_thruth": "x"}]),
    document([{**EQUALS, "metrics": [{"type": "meen"}]}]),
    document([]),
    document(solver={"type": "multi_turn"}),
    document(solver={**SOLVER, "max_tokens": "many"}),
    document(root={"config_spec": [{"type": "intt", "key": "n"}]}),
    document(root={"keey": "x"}),
]


@each_row("task", VALID)
def test_what_is_read_fits_the_schema(task: dict[str, Any]) -> None:
    assert [] == [error.message for error in validator("task").iter_errors(json.loads(json.dumps(task)))]


@each_row("task", INVALID)
def test_what_is_refused_does_not(task: dict[str, Any]) -> None:
    assert not validator("task").is_valid(task)
