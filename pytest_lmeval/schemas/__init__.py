"""Provide JSON Schemas (draft 2020-12) of input and output files for editors and other programs.

The validators in ``formats`` are authoritative. ``declarative.py`` makes the schemas of declarative files from the
models that validate these files. The other schemas are files called ``NAME.json`` in this folder; tests compare them
with the validators.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UnknownName

_OF_MODELS = ("dataset", "task")
_FOLDER = Path(__file__).parent


def schema_names() -> tuple[str, ...]:
    """Return the sorted names of the schemas."""
    return tuple(sorted([*_OF_MODELS, *(path.stem for path in _FOLDER.glob("*.json"))]))


def load_schema(name: str) -> dict[str, Any]:
    """Return the schema called ``name``; for an unknown name, raise an UnknownName that lists the choices."""
    if name not in schema_names():
        raise UnknownName("schema", name, schema_names())
    if name in _OF_MODELS:
        from pytest_lmeval.schemas.declarative import make_schema

        return make_schema(name)
    schema: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return schema
