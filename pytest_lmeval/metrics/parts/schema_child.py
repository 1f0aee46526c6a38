"""Whether a value fulfils a JSON Schema; runs in the process of worker_child.py, since a pattern can take for ever."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
from importlib import import_module
from typing import Any


def check(schema: str, values: list[Any]) -> tuple[str, Any]:
    """Return ``("valid", all of the values fulfil the schema)``.

    Or ``("refused", TEXT)`` for a schema that is not sound, ``("unresolved", REFERENCE)`` for a reference that leads
    nowhere.
    """
    try:
        validator = _validator(schema)
        return "valid", all(validator.is_valid(value) for value in values)
    except RecursionError:
        return "refused", "a reference in it leads round in a circle, or it is nested too deep"
    except import_module("jsonschema").SchemaError as error:
        return "refused", f"{error.json_path}: {error.message:.1000}"
    except import_module("referencing.exceptions").Unresolvable as error:
        return "unresolved", f"{error.ref:.1000}"


@functools.lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    # By name: it is not installed wherever this package is checked or used.
    jsonschema, referencing = import_module("jsonschema"), import_module("referencing")
    schema = json.loads(text)
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind.check_schema(schema)
    # An empty registry: jsonschema would go to the network for a reference that it does not know.
    validator = kind(schema, registry=referencing.Registry())
    # A circle of references takes no value to go round in. Values may be nested a hundred levels deep.
    sys.setrecursionlimit(10_000)
    values: tuple[Any, ...] = (None, "", [], {})
    for value in values:
        with contextlib.suppress(import_module("referencing.exceptions").Unresolvable):
            validator.is_valid(value)
    return validator
