"""The records of a task's JSONL file, one kind of them per task type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats import checks
from pytest_lmeval.numbers import is_whole


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
