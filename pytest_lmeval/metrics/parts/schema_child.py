"""Check values against a JSON Schema in the process of worker_child.py, because matching a pattern may never end."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from importlib import import_module
from typing import Any


def check(schema: str, values: list[Any]) -> tuple[str, Any]:
    """Return ``("valid", True)`` if the schema accepts all values, else ``("valid", False)``.

    Return ``("refused", TEXT)`` for an invalid schema, or ``("unresolved", REFERENCE)`` for an unknown reference.
    """
    try:
        validator = _validator(schema)
        return "valid", all(validator.is_valid(value) for value in values)
    except RecursionError:
        return "refused", "its references form a circle, or it is nested too deep"
    except import_module("jsonschema").SchemaError as error:
        return "refused", f"{error.json_path}: {error.message:.1000}"
    except import_module("referencing.exceptions").Unresolvable as error:
        return "unresolved", f"{error.ref:.1000}"


@functools.lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    # Import the packages by name: they may not be installed.
    jsonschema, referencing = import_module("jsonschema"), import_module("referencing")
    schema = json.loads(text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    # Without this empty registry, jsonschema would fetch unknown references from the network.
    validator = kind(schema, registry=referencing.Registry())
    # These values reveal circular references at once. Other values may be nested a hundred levels deep.
    sys.setrecursionlimit(10_000)
    values: tuple[Any, ...] = (None, "", [], {})
    for value in values:
        with contextlib.suppress(import_module("referencing.exceptions").Unresolvable):
            validator.is_valid(value)
    return validator
