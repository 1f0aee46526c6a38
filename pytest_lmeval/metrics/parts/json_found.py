"""The JSON in a text, and what is said of a schema that it takes too long to check."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NoReturn

from pytest_lmeval.errors import RecordRefused, ScoringError

_MAX_DEPTH = 100
_MOST_SHOWN = 3
_SHORT = 4
_OPENING = re.compile(r"[\[{]")
NOTHING = object()
"""What is found where there is no JSON; null is a value."""


def find(text: str) -> Any:
    """Return the value of a JSON text, else of the longest object or array in it, else NOTHING."""
    whole = parse(text)
    return _longest(text) if whole is NOTHING else whole


def parse(text: str) -> Any:
    """Return the value of a JSON text; NOTHING for any other text, or one nested too deeply."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return NOTHING
    return value if _is_shallow(value) else NOTHING


def _longest(text: str) -> Any:
    """Return the longest object or array in ``text``; of those inside each other only the outermost counts."""
    decode = json.JSONDecoder(parse_constant=_no_constant).raw_decode
    best, length, position = NOTHING, 0, 0
    # A long run of brackets that never close must not cost the square of its length.
    budget = 5 * len(text) + 10_000
    while budget > 0 and (opening := _OPENING.search(text, position)):
        start = opening.start()
        try:
            value, position = decode(text, start)
        except (ValueError, RecursionError) as error:
            # The error counts the lines up to its place: a fast step, of all the text before it.
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


def schema_text(schema: Any) -> str:
    """Return a schema as JSON; raise RecordRefused for anything else."""
    if not isinstance(schema, dict | bool):
        raise RecordRefused("bad_value", "extras.json_schema", f"expected a JSON Schema, got {schema!r:.80}")
    try:
        return json.dumps(schema)
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordRefused("bad_value", "extras.json_schema", f"the schema is not JSON: {error}") from None


def check_is_quick(text: str, value: Any, schema: Any) -> None:
    """Raise ScoringError where the schema takes too long for a value of the same shape with short texts, too."""
    from pytest_lmeval.metrics.parts.worker import TookTooLong, shared_worker

    try:
        shared_worker().ask("json_schema", text, [_shortened(value)])
    except TookTooLong as error:
        raise ScoringError(f"{error}, for a short value, too{patterns_of(schema)}") from None


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_SHORT]
    if isinstance(value, list):
        return [_shortened(each) for each in value[:_SHORT]]
    if isinstance(value, dict):
        return {name: _shortened(each) for name, each in islice(value.items(), _SHORT)}
    return value


def patterns_of(schema: Any) -> str:
    """Return the first patterns of a schema, for a message."""
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
