"""What both JSONL dialects ask of a field; every check raises RecordRefused with rule, field and detail."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from types import MappingProxyType
from typing import Any

from pytest_lmeval.errors import RecordRefused, nearest, not_one_of
from pytest_lmeval.formats.hints import foreign_record, misspelt
from pytest_lmeval.numbers import is_number

_NOTHING: Mapping[str, str] = MappingProxyType({})
_INSTEAD: Mapping[tuple[str, type], str] = {
    ("prompt", list): "; one text a record; conversations are tasks in Python: docs/python-tasks.md",
    ("targets", str): '; write ["..."], a list, even of one text',
}
_OVER_TOKENS = frozenset({"bleu", "bleu_4", "f1", "math_equal", "rouge_1", "rouge_2", "rouge_l"})
_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def type_name(value: object) -> str:
    """Return what JSON calls the type of ``value``, with its article."""
    return _TYPE_NAMES.get(type(value), "a number")


def check_fields(
    record: object,
    required: Collection[str],
    optional: Collection[str],
    elsewhere: Mapping[str, str] = _NOTHING,
) -> Mapping[str, Any]:
    """Return ``record`` if it is an object with every required and no unknown field.

    ``elsewhere`` says of fields that people look for here where they belong.
    """
    if not isinstance(record, dict):
        raise RecordRefused("bad_type", "_root", f"expected an object, got {type_name(record)}")
    known = [*required, *optional]
    for name in required:
        if name not in record:
            foreign = foreign_record(record.keys())
            hint = misspelt(name, record, known) or (foreign and f"; {foreign}")
            raise RecordRefused("missing_required", name, f"required: {', '.join(required)}{hint}")
    for name in record:
        if name not in known:
            hint = f";{elsewhere[name]}" if name in elsewhere else nearest(name, known, "expected one of")
            raise RecordRefused("unknown_field", name, f"unknown field {name!r}{hint}")
    return record


def string(value: object, field: str) -> str:
    """Return a non-empty string."""
    if not isinstance(value, str):
        instead = _INSTEAD.get((field, type(value)), "")
        raise RecordRefused("bad_type", field, f"expected a non-empty string, got {type_name(value)}{instead}")
    if not value:
        raise RecordRefused("bad_type", field, "expected a non-empty string, got an empty one")
    return value


def strings(value: object, field: str) -> tuple[str, ...]:
    """Return a non-empty array of strings as a tuple."""
    if not isinstance(value, list):
        instead = _INSTEAD.get((field, type(value)), "")
        detail = f"expected a non-empty array of strings, got {type_name(value)}{instead}"
        raise RecordRefused("bad_type", field, detail)
    if not value:
        raise RecordRefused("bad_type", field, "expected a non-empty array of strings, got an empty one")
    for index, element in enumerate(value):
        if not isinstance(element, str):
            detail = f"expected strings, got {type_name(element)} {element!r} at index {index}"
            raise RecordRefused("bad_type", field, f'{detail}; write "{element}"' if is_number(element) else detail)
    return tuple(value)


def one_of(value: object, field: str, choices: Collection[str]) -> str:
    """Return a string out of a closed vocabulary."""
    name = string(value, field)
    if name not in choices:
        raise RecordRefused("bad_value", field, not_one_of(name, sorted(choices)))
    return name


def optional_object(record: Mapping[str, Any], field: str, within: str = "") -> Mapping[str, Any]:
    """Return the object under ``field``, or an empty one; ``within`` is the path of ``record`` where it is a part."""
    value = record.get(field, {})
    if not isinstance(value, dict):
        path = f"{within}.{field}" if within else field
        raise RecordRefused("bad_type", path, f"expected an object, got {type_name(value)}")
    return value


def number_in_range(value: object, field: str, low: float, high: float) -> float:
    """Return a number between ``low`` and ``high``, both allowed."""
    if not is_number(value):
        raise RecordRefused("bad_type", field, f"expected a number in [{low:g}, {high:g}], got {type_name(value)}")
    if not low <= value <= high:
        raise RecordRefused("bad_value", field, f"expected a number in [{low:g}, {high:g}], got {value!r}")
    return float(value)


def gate_fields(holder: Mapping[str, Any], prefix: str) -> None:
    """Check what ``metadata`` or ``extras`` tell the gate: threshold, must_pass, cluster and quarantine."""
    if "threshold" in holder:
        number_in_range(holder["threshold"], f"{prefix}.threshold", 0.0, 1.0)
    if not isinstance(holder.get("must_pass", False), bool):
        detail = f"expected true or false, got {type_name(holder['must_pass'])}"
        raise RecordRefused("bad_type", f"{prefix}.must_pass", detail)
    if "cluster" in holder:
        string(holder["cluster"], f"{prefix}.cluster")
    if "quarantine" in holder:
        _quarantine(holder["quarantine"], f"{prefix}.quarantine")


def _quarantine(value: object, field: str) -> None:
    if not isinstance(value, dict):
        raise RecordRefused("bad_type", field, f"expected {{until, reason}}, got {type_name(value)}")
    for name in ("until", "reason"):
        if name not in value:
            raise RecordRefused("missing_required", f"{field}.{name}", "a quarantine needs until, a date, and reason")
        string(value[name], f"{field}.{name}")
    for name in value:
        if name not in ("until", "reason"):
            raise RecordRefused("unknown_field", f"{field}.{name}", "a quarantine has until and reason, and no more")
    if not _is_date(value["until"]):
        detail = f"expected a date as YYYY-MM-DD, got {value['until']!r:.80}"
        raise RecordRefused("bad_value", f"{field}.until", detail)


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def reachable(targets: Sequence[str], metric: str) -> None:
    """Raise RecordRefused for targets without a character, where ``metric`` gives every answer 0 for such."""
    if metric in _OVER_TOKENS and not any(target.strip() for target in targets):
        raise RecordRefused("bad_value", "targets", f"{metric} gives every answer 0 for an empty target; give a text")
