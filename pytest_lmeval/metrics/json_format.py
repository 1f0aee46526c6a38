"""Check that an answer contains JSON, is only JSON, conforms to a JSON Schema, or equals a JSON value.

JSON follows RFC 8259, so comments, NaN and Infinity are invalid. Values nested more than 100 levels deep do not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.types import Score

_MAX_DEPTH = 100
_MOST_SHOWN = 3
_SHORT = 4
_OPENING = re.compile(r"[\[{]")
_NOTHING = object()  # null is a value


@metric(binary=True)
def is_json(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction is a JSON value, or contains a JSON object or array, else 0.0."""
    return float(_find(prediction) is not _NOTHING)


@metric(binary=True)
def only_json(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction is one JSON value, apart from surrounding whitespace, else 0.0.

    A Markdown code fence is not JSON; the post-process rule ``extract_code_block`` removes it.
    """
    return float(_parse(prediction) is not _NOTHING)


@metric(extras=("json_schema",), package="jsonschema", install="pytest-lmeval[json]", binary=True)
def json_schema(prediction: str, targets: Sequence[str], extras: Extras) -> float | Score:
    """Return 1.0 if the prediction's JSON, found as in ``is_json``, conforms to ``extras.json_schema``, else 0.0.

    If the text contains several objects or arrays, the longest counts. The schema is draft 2020-12 unless ``$schema``
    names another draft, and ``$ref`` never uses the network. If the check exceeds a worker's time limit, the score is
    0.0, and ``details.schema_status`` is ``timeout``. The metric needs the package jsonschema. Raise RecordRefused for
    extras without a valid schema. Raise ScoringError if a reference cannot be resolved, if jsonschema is not installed,
    or if the check is too slow even for a short value.
    """
    from pytest_lmeval.metrics.parts.worker import TookTooLong, shared_worker

    schema = extras.get("json_schema")
    value = _find(prediction)
    found = [] if value is _NOTHING else [value]
    text = _schema_text(schema)
    try:
        # A pattern can take exponential time for a short text.
        kind, detail = shared_worker().ask("json_schema", text, found)
    except TookTooLong as error:
        _check_is_quick(text, value, schema)
        # The schema is quick for other values, so the answer is at fault.
        return Score(0.0, {"schema_status": "timeout", "schema_detail": f"{error}{_patterns_of(schema)}"})
    if kind == "refused":
        raise RecordRefused("bad_value", "extras.json_schema", detail)
    if kind == "unresolved":
        raise ScoringError(f"extras.json_schema: cannot resolve the reference {detail!r}")
    return float(bool(found) and detail)


@metric(binary=True)
def json_exact(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction's JSON, found as in ``is_json``, equals the JSON of any target, else 0.0.

    The order of keys does not matter, and 1 equals 1.0 but not ``true``. Raises RecordRefused for a target that is not
    JSON.
    """
    wanted = [_parse(target) for target in targets]
    if any(value is _NOTHING for value in wanted):
        raise RecordRefused("bad_value", "targets", "json_exact expects each target to be JSON")
    value = _find(prediction)
    return float(value is not _NOTHING and any(json_equal(value, each) for each in wanted))


def _find(text: str) -> Any:
    """Return the value of ``text`` if it is JSON, or else the longest object or array in it, or `_NOTHING`."""
    whole = _parse(text)
    return _longest(text) if whole is _NOTHING else whole


def _parse(text: str) -> Any:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _NOTHING
    return value if _is_shallow(value) else _NOTHING


def _longest(text: str) -> Any:
    decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode
    best, length, position = _NOTHING, 0, 0
    # Without this budget, a long run of brackets that never close would take quadratic time.
    budget = 5 * len(text) + 10_000
    while budget > 0 and (opening := _OPENING.search(text, position)):
        start = opening.start()
        try:
            value, position = decode(text, start)
        except (ValueError, RecursionError) as error:
            # The JSON error counts the lines before its position: one fast step for each earlier character.
            budget -= getattr(error, "pos", start + 1000) - start + 1 + start // 64
            position = start + 1
            continue
        if position - start > length and _is_shallow(value):
            best, length = value, position - start
    return best


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH + 1):
        containers = [each for each in level if isinstance(each, dict | list)]
        if not containers:
            return True
        level = [child for each in containers for child in (each.values() if isinstance(each, dict) else each)]
    return False


def _schema_text(schema: Any) -> str:
    if not isinstance(schema, dict | bool):
        raise RecordRefused("bad_value", "extras.json_schema", f"expected a JSON Schema, got {schema!r:.80}")
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordRefused("bad_value", "extras.json_schema", f"the schema is not JSON: {error}") from None


def _check_is_quick(text: str, value: Any, schema: Any) -> None:
    """Raise ScoringError if the schema also takes too long for a shortened copy of ``value``."""
    from pytest_lmeval.metrics.parts.worker import TookTooLong, shared_worker

    try:
        shared_worker().ask("json_schema", text, [_shortened(value)])
    except TookTooLong as error:
        raise ScoringError(f"{error}, for a short value, too{_patterns_of(schema)}") from None


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_SHORT]
    if isinstance(value, list):
        return [_shortened(each) for each in value[:_SHORT]]
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in islice(value.items(), _SHORT)}
    return value


def _patterns_of(schema: Any) -> str:
    shown = [f"{pattern!r:.80}" for pattern in islice(_patterns(schema), _MOST_SHOWN)]
    return f"; patterns of the schema: {', '.join(shown)}" if shown else ""


def _patterns(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            pattern, named = each.get("pattern"), each.get("patternProperties")
            yield from [pattern] if isinstance(pattern, str) else []
            yield from named if isinstance(named, dict) else []
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
