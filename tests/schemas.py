"""What the schemas say about a file that was written."""

from __future__ import annotations

from functools import cache
from typing import Any

from pytest_lmeval.schemas import load_schema
from tests import needs

__all__ = ["faults", "validator"]


@cache
def validator(name: str) -> Any:
    """Return a validator of a schema; ``jsonschema.validate`` checks the schema, too, for every value."""
    return needs.module("jsonschema").Draft202012Validator(load_schema(name))


def faults(name: str, *values: Any) -> list[str]:
    """Return what the schema ``name`` objects to."""
    return [f"{error.json_path}: {error.message}" for value in values for error in validator(name).iter_errors(value)]
