"""Whether a filter holds for a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.declarative.kit import Kit
from pytest_lmeval.formats.declarative.models.actions import Action, Combined, ComparedValue, Negated
from pytest_lmeval.formats.declarative.templates import TemplateFault

_Filter = ComparedValue | Combined | Negated


def holds(filter: _Filter, variables: Mapping[str, Any], kit: Kit) -> bool:
    """Return whether the filter holds; raise ScoringError where a value is missing or cannot be compared."""
    if isinstance(filter, Negated):
        return not holds(filter.filter, variables, kit)
    if isinstance(filter, Combined):
        # All are looked at: that one cannot be decided must not depend on the order.
        results = [holds(each, variables, kit) for each in filter.filters]
        return all(results) if filter.op == "and" else any(results)
    try:
        value = kit.template(filter.expression).value(variables)
    except TemplateFault as fault:
        raise ScoringError(str(fault)) from None
    if value is None and filter.value is not None:
        raise ScoringError(f"{filter.expression.strip()} has no value")
    return _compare(filter, value)


def exclusion(key: str) -> str:
    """Return what is said of a row that the action ``key`` leaves out."""
    return f"action {key}: excluded from metrics"


def excluded_by(actions: Sequence[Action], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many of the rows, given by their details, each action left out; the first that holds counts."""
    return {action.key: sum(row.get("excluded") == exclusion(action.key) for row in rows) for action in actions}


def _compare(filter: ComparedValue, value: Any) -> bool:
    wanted = filter.value
    if filter.op in ("equals", "not_equals"):
        return _equal(value, wanted, filter) == (filter.op == "equals")
    if filter.op == "in":
        return any(_equal(value, each, filter) for each in wanted)
    if filter.op == "contains":
        if isinstance(value, str) and isinstance(wanted, str):
            return wanted in value
        if isinstance(value, list):
            # In Python 1 equals true.
            return any(_kind(each) == _kind(wanted) and each == wanted for each in value)
        raise _cannot(filter, value, "contains looks into text for text, or into a list")
    return _ordered(filter, value, wanted)


def _ordered(filter: ComparedValue, value: Any, wanted: Any) -> bool:
    if not (_kind(value) == _kind(wanted) and _kind(value) in ("a number", "text")):
        raise _cannot(filter, value, f"{filter.op} compares numbers with numbers, or text with text")
    greater: bool = value > wanted if filter.op == "greater" else value < wanted
    return greater


def _equal(value: Any, wanted: Any, filter: ComparedValue) -> bool:
    if _kind(value) != _kind(wanted) and value is not None and wanted is not None:
        raise _cannot(filter, value, f"it is compared with {_kind(wanted)}")
    return bool(value == wanted)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else type(value).__name__


def _cannot(filter: ComparedValue, value: Any, why: str) -> ScoringError:
    return ScoringError(f"{filter.op}: {filter.expression.strip()} is {_kind(value)}, {value!r:.80}; {why}")
