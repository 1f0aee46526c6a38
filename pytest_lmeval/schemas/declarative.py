"""Make the JSON Schemas of task and data set files from the models that validate these files."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from pytest_lmeval.formats.declarative.models.task import DatasetFile, DeclarativeFile

_PLACEHOLDER = {
    "type": "string",
    "pattern": r"^\s*<<\s*config\.[A-Za-z_][A-Za-z0-9_]*\s*>>\s*$",
    "description": "A parameter of config_spec.",
}
# These fields identify the members of a union, so a placeholder cannot replace them.
_LITERAL = frozenset({"type", "op", "key", "config_spec"})


def make_schema(name: str) -> dict[str, Any]:
    """Return the schema of a task file or a data set file; ``name`` is ``task`` or ``dataset``."""
    is_task = name == "task"
    model: type[BaseModel] = DeclarativeFile if is_task else DatasetFile
    made = model.model_json_schema()
    _tidy(made)
    if is_task:
        for part in (made, *made["$defs"].values()):
            _admit_placeholders(part)
        made["$defs"]["Placeholder"] = _PLACEHOLDER
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:pytest-lmeval:schema:{name}:1",
        "title": "Declarative task file" if is_task else "Data set file",
        "description": made.pop("description"),
    }
    del made["title"]
    return {**head, **made}


def _tidy(value: Any) -> None:
    """Remove keys that are only for other tools, and titles that repeat a field's name."""
    if isinstance(value, dict):
        value.pop("discriminator", None)
        value.pop("x-template", None)
        for name, field in value.get("properties", {}).items():
            if isinstance(field, dict) and isinstance(field.get("title"), str) and name != "title":
                del field["title"]
        for each in value.values():
            _tidy(each)
    elif isinstance(value, list):
        for each in value:
            _tidy(each)


def _admit_placeholders(part: dict[str, Any]) -> None:
    for name, field in part.get("properties", {}).items():
        if name not in _LITERAL and _is_plain(field) and not _takes_text(field):
            shown = {key: field.pop(key) for key in ("description", "default") if key in field}
            part["properties"][name] = {"anyOf": [dict(field), {"$ref": "#/$defs/Placeholder"}], **shown}


def _is_plain(field: dict[str, Any]) -> bool:
    """Return True if a parameter can replace the whole field, because the field holds plain values, not mappings."""
    if "enum" in field or field.get("type") in ("boolean", "integer", "number"):
        return True
    items = field.get("items", {})
    if field.get("type") == "array" and not items.keys() & {"$ref", "oneOf"}:
        return True
    return any(_is_plain(each) for each in field.get("anyOf", ()))


def _takes_text(field: dict[str, Any]) -> bool:
    if field.get("type") == "string" and "enum" not in field:
        return True
    return any(_takes_text(each) for each in field.get("anyOf", ()))
