"""Describe the errors in a task file, each with its field, line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from pytest_lmeval.errors import not_one_of
from pytest_lmeval.formats.checks import type_name
from pytest_lmeval.formats.declarative.models.base import FAULTS
from pytest_lmeval.formats.yaml.document import Keys, YamlDocument, field_name
from pytest_lmeval.numbers import is_number
from pytest_lmeval.types import RecordError

_QUOTED = re.compile(r"'([^']*)'")
_YAML_1_1_BOOLEANS = frozenset(["y", "n", "yes", "no", "on", "off"])
_WANTED = {
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """An error, and the keys that lead to its field."""

    keys: Keys
    rule: str
    detail: str


def as_records(faults: Iterable[Fault], document: YamlDocument) -> list[RecordError]:
    """Return a RecordError for each error, ordered by line, without duplicates."""
    placed = [(document.place(fault.keys), fault) for fault in dict.fromkeys(faults)]
    return [
        RecordError(place.line, None, fault.rule, field_name(fault.keys), f"column {place.column}: {fault.detail}")
        for place, fault in sorted(placed, key=lambda each: each[0])
    ]


def validation_faults(error: ValidationError, document: Any, root: Keys = ()) -> list[Fault]:
    """Return the individual errors in a pydantic error about ``document``, the part of a file at ``root``."""
    return [fault for each in error.errors(include_url=False) for fault in _faults(each, document, root)]


def _faults(error: Any, document: Any, root: Keys) -> Iterator[Fault]:
    keys = (*root, *_keys(error["loc"], document, missing=error["type"] == "missing"))
    if error["type"] == FAULTS:
        for key, rule, detail in error["ctx"]["faults"]:
            yield Fault(keys if key == "" else (*keys, key), rule, detail)
        return
    yield _fault(error, keys)


def _fault(error: Any, keys: Keys) -> Fault:
    kind, given, context = error["type"], error["input"], error.get("ctx", {})
    if kind == "missing":
        return Fault(keys, "missing_required", f"the field {keys[-1]!r} is required here")
    if kind == "union_tag_not_found":
        return Fault((*keys, _tag_field(context)), "missing_required", f"the field {_tag_field(context)!r} is required")
    if kind == "union_tag_invalid":
        choices = _QUOTED.findall(context["expected_tags"])
        return Fault((*keys, _tag_field(context)), "bad_value", not_one_of(context["tag"], choices))
    if kind == "literal_error":
        return Fault(keys, "bad_value", not_one_of(given, _QUOTED.findall(context["expected"])))
    if kind in _WANTED:
        return Fault(keys, "bad_type", _wrong_type(_WANTED[kind], given))
    return Fault(keys, "bad_value", f"{error['msg'].replace('Input should', 'it should')}, got {given!r:.80}")


def _keys(place: Sequence[str | int], document: Any, *, missing: bool) -> Iterator[str | int]:
    """Yield the elements of ``place`` that are keys of the document; skip the names of union members."""
    value = document
    for number, key in enumerate(place):
        if key in (range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()):
            value = value[key]
        elif not (missing and number == len(place) - 1):
            continue
        yield key


def _tag_field(context: Any) -> str:
    found = _QUOTED.findall(context["discriminator"])
    return found[0] if found else "type"


def _wrong_type(wanted: str, given: Any) -> str:
    if wanted == "true or false" and isinstance(given, str) and given.lower() in _YAML_1_1_BOOLEANS:
        return f"expected true or false; {given} is text in these files"
    shown = f" {given!r:.60}" if isinstance(given, str) or is_number(given) else ""
    name = str(given).lower() if isinstance(given, bool) else type_name(given)
    hint = "; put it in quotes" if wanted == "text" and isinstance(given, int | float) else ""
    return f"expected {wanted}, got {name}{shown}{hint}"
