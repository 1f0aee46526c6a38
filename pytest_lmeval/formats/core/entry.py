"""One entry of ``icl_tasks``, and the records of its JSONL file, one kind of them per task type: checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.numbers import is_whole

KINDS = ("language_modeling", "multiple_choice", "schema")
_REQUIRED = ("label", "dataset_uri", "num_fewshot", "icl_task_type")
_OPTIONAL = ("continuation_delimiter", "has_categories")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@ -]{0,199}")


@dataclass(frozen=True, slots=True)
class Entry:
    """What a task is called, where its records are, and how they are put to the model."""

    label: str
    uri: str
    shots: int
    kind: str
    delimiter: str = " "
    has_categories: bool = False


def check_entry(given: object) -> Entry:
    """Return the entry that ``given`` describes; raise RecordRefused for the first rule it breaks."""
    fields = checks.check_fields(given, _REQUIRED, _OPTIONAL)
    label = checks.string(fields["label"], "label")
    if not _LABEL.fullmatch(label) or label != label.strip():
        detail = f"{label!r}; expected letters, digits and _ . : / @ - at most 200, a letter, digit or _ first"
        raise RecordRefused("bad_value", "label", detail)
    return Entry(
        label=label,
        uri=_uri(fields["dataset_uri"]),
        shots=_shots(fields["num_fewshot"]),
        kind=checks.one_of(fields["icl_task_type"], "icl_task_type", KINDS),
        delimiter=_delimiter(fields.get("continuation_delimiter", " ")),
        has_categories=_flag(fields),
    )


def _uri(value: object) -> str:
    uri = checks.string(value, "dataset_uri")
    if "://" in uri or "\0" in uri:
        raise RecordRefused("bad_value", "dataset_uri", f"{uri!r}; expected a local file, relative to this one")
    return uri


def _shots(value: object) -> int:
    # The files of both projects list the numbers to run a task with, and theirs have one each.
    if isinstance(value, list):
        if len(value) != 1:
            raise RecordRefused("bad_value", "num_fewshot", f"expected one number, got a list of {len(value)}")
        value = value[0]
    if not is_whole(value):
        raise RecordRefused("bad_type", "num_fewshot", f"expected a whole number from 0, got {checks.type_name(value)}")
    if value < 0:
        raise RecordRefused("bad_value", "num_fewshot", f"expected a whole number from 0, got {value}")
    return value


def _delimiter(value: object) -> str:
    if not isinstance(value, str):
        raise RecordRefused("bad_type", "continuation_delimiter", f"expected a string, got {checks.type_name(value)}")
    return value


def _flag(fields: Mapping[str, Any]) -> bool:
    value = fields.get("has_categories", False)
    if not isinstance(value, bool):
        raise RecordRefused("bad_type", "has_categories", f"expected true or false, got {checks.type_name(value)}")
    return value


@dataclass(frozen=True, slots=True)
class Record:
    """One record: contexts and continuations of which one side has a single text, and the number of the right pair.

    ``choices`` are the contexts of a schema, else the continuations. ``line`` is the record's, from 1.
    """

    contexts: tuple[str, ...]
    continuations: tuple[str, ...]
    gold: int = 0
    category: str = ""
    line: int = 0

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts to choose between; a single one where there is no choice."""
        return self.contexts if len(self.contexts) > 1 else self.continuations


def check_record(given: object, kind: str, has_categories: bool, line: int = 0) -> Record:
    """Return the record that ``given`` describes; raise RecordRefused for the first rule it breaks.

    Fields that no type has are left alone: published files carry some.
    """
    if not isinstance(given, dict):
        raise RecordRefused("bad_type", "_root", f"expected an object, got {checks.type_name(given)}")
    category = checks.string(_required(given, "category"), "category") if has_categories else ""
    contexts, continuations, gold = _READ[kind](given)
    return Record(contexts, continuations, gold, category, line)


def _multiple_choice(given: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    query = _text(given, "query")
    choices = _options(given, "choices")
    return (query,), choices, _gold(given, len(choices))


def _schema(given: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    contexts = _options(given, "context_options")
    return contexts, (checks.string(_required(given, "continuation"), "continuation"),), _gold(given, len(contexts))


def _language_modeling(given: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    return (_text(given, "context"),), (checks.string(_required(given, "continuation"), "continuation"),), 0


_READ: Mapping[str, Callable[[Mapping[str, Any]], tuple[tuple[str, ...], tuple[str, ...], int]]] = {
    "multiple_choice": _multiple_choice,
    "schema": _schema,
    "language_modeling": _language_modeling,
}


def _required(given: Mapping[str, Any], field: str) -> Any:
    if field not in given:
        raise RecordRefused("missing_required", field, f"required; the record has {', '.join(given) or 'nothing'}")
    return given[field]


def _text(given: Mapping[str, Any], field: str) -> str:
    value = _required(given, field)
    if not isinstance(value, str):
        raise RecordRefused("bad_type", field, f"expected a string, got {checks.type_name(value)}")
    return value


def _options(given: Mapping[str, Any], field: str) -> tuple[str, ...]:
    options = checks.strings(_required(given, field), field)
    if len(options) < 2:
        raise RecordRefused("bad_value", field, "expected two options or more, got one: there is nothing to choose")
    return options


def _gold(given: Mapping[str, Any], count: int) -> int:
    gold = _required(given, "gold")
    if not is_whole(gold):
        detail = f"expected the number of the right option, from 0 to {count - 1}, got {checks.type_name(gold)}"
        raise RecordRefused("bad_type", "gold", detail)
    if not 0 <= gold < count:
        raise RecordRefused("bad_value", "gold", f"{gold}; expected 0 to {count - 1}, there being {count} options")
    return gold
