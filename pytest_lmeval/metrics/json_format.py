"""Whether an answer is JSON, nothing but JSON, of the right form, and the right value.

JSON is RFC 8259's: no comments, no NaN or Infinity. Values nested deeper than 100 levels are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.types import Score


@metric(binary=True)
def is_json(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction is a JSON value, or contains a JSON object or array, else 0.0."""
    from pytest_lmeval.metrics.parts.json_found import NOTHING, find

    return float(find(prediction) is not NOTHING)


@metric(binary=True)
def only_json(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction is one JSON value and nothing else but whitespace around it, else 0.0.

    A Markdown fence is something else: ``extract_code_block`` takes it off first.
    """
    from pytest_lmeval.metrics.parts.json_found import NOTHING, parse

    return float(parse(prediction) is not NOTHING)


@metric(extras=("json_schema",), package="jsonschema", install="pytest-lmeval[json]", binary=True)
def json_schema(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float | Score:
    """Return 1.0 if the JSON in the prediction, found as by ``is_json``, fulfils ``extras.json_schema``, else 0.0.

    The longest object or array counts. Draft 2020-12, unless ``$schema`` names another; nothing is fetched for
    ``$ref``. A JSON for which that takes longer than a worker's limit is wrong, ``details.schema_status`` then is
    ``timeout``. Needs the package jsonschema. Raises RecordRefused for extras without a sound schema, and ScoringError
    where a reference leads nowhere, jsonschema is not installed, or the check takes as long for a short JSON, too.
    """
    from pytest_lmeval.metrics.parts.json_found import NOTHING, check_is_quick, find, patterns_of, schema_text
    from pytest_lmeval.metrics.parts.worker import TookTooLong, shared_worker

    schema = extras.get("json_schema")
    value = find(prediction)
    found = [] if value is NOTHING else [value]
    text = schema_text(schema)
    try:
        # A pattern can take time without end for a short text, whoever wrote the two.
        kind, detail = shared_worker().ask("json_schema", text, found)
    except TookTooLong as error:
        check_is_quick(text, value, schema)
        # With what a model writes otherwise the schema is quick: nobody asked for this answer.
        return Score(0.0, {"schema_status": "timeout", "schema_detail": f"{error}{patterns_of(schema)}"})
    if kind == "refused":
        raise RecordRefused("bad_value", "extras.json_schema", detail)
    if kind == "unresolved":
        raise ScoringError(f"extras.json_schema: the reference {detail!r} leads nowhere")
    return float(bool(found) and detail)


@metric(binary=True)
def json_exact(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the JSON in the prediction, found as by ``is_json``, equals any target, each JSON itself.

    The order of keys does not matter; 1 equals 1.0, but not true. Raises RecordRefused for a target that is not JSON.
    """
    from pytest_lmeval.metrics.parts.json_found import NOTHING, find, parse

    wanted = [parse(target) for target in targets]
    if any(value is NOTHING for value in wanted):
        raise RecordRefused("bad_value", "targets", "json_exact expects each target to be JSON")
    value = find(prediction)
    return float(value is not NOTHING and any(json_equal(value, each) for each in wanted))
