"""Rules that exclude rows from the metrics, and the filters that select these rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.formats.checks import type_name
from pytest_lmeval.formats.declarative.models.base import Block, Data, Key, Template, TemplateText, field_error
from pytest_lmeval.templates.template import TemplateFault, compile_template


class ComparedValue(Block):
    """A comparison of a value from the row with a fixed value."""

    op: Literal["equals", "not_equals", "in", "contains", "greater", "less"] = Field(description="The comparison.")
    expression: TemplateText = Template(description="A value of the row: '{{ scores.KEY.FIELD }}'.")
    value: Any = Data(description="The value to compare with; a list for 'in'.")

    @field_validator("value")
    @classmethod
    def _fits(cls, value: Any, info: ValidationInfo) -> Any:
        # Without a context, parameters are not filled in yet, and a placeholder may represent a value of any type.
        wanted = _unfit(info.data.get("op", ""), value) if info.context is not None else ""
        if wanted:
            got = f"{type_name(value)} {value!r:.60}" if value not in (None, []) else type_name(value)
            raise field_error("bad_type", f"expected {wanted} for {info.data['op']!r}, got {got}")
        return value


class Combined(Block):
    """A combination of filters."""

    op: Literal["and", "or"] = Field(description="and: all must hold; or: any.")
    filters: list[Filter] = Field(min_length=1, description="The filters.")


class Negated(Block):
    """The opposite of a filter."""

    op: Literal["not"] = Field(description="The opposite.")
    filter: Filter = Field(description="The filter that must not hold.")


Filter = Annotated[ComparedValue | Combined | Negated, Field(discriminator="op")]


class Action(Block):
    """A rule."""

    key: Key = Field(description="Its name on the board.")
    action: Literal["exclude_from_metrics"] = Field(description="Exclude the row from all metrics.")
    filter: Filter = Field(description="The rows to exclude.")


Combined.model_rebuild()
Negated.model_rebuild()


def holds(filter: Filter, variables: Mapping[str, Any]) -> bool:
    """Return True if the filter matches; raise ScoringError if a value is missing or cannot be compared."""
    if isinstance(filter, Negated):
        return not holds(filter.filter, variables)
    if isinstance(filter, Combined):
        # Evaluate all filters, so that an error does not depend on their order.
        results = [holds(each, variables) for each in filter.filters]
        return all(results) if filter.op == "and" else any(results)
    try:
        value = compile_template(filter.expression).value(variables)
    except TemplateFault as fault:
        raise ScoringError(str(fault)) from None
    if value is None and filter.value is not None:
        raise ScoringError(f"{filter.expression.strip()} has no value")
    return _compare(filter, value)


def exclusion(key: str) -> str:
    """Return the note that says, in a row's details, that the action ``key`` excluded the row."""
    return f"action {key}: excluded from metrics"


def excluded_by(actions: Sequence[Action], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many rows each action excluded, according to the rows' details."""
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
            # In Python, 1 == True.
            return any(_kind(each) == _kind(wanted) and each == wanted for each in value)
        raise _cannot(filter, value, "contains looks into text for text, or into a list")
    if not (_kind(value) == _kind(wanted) and _kind(value) in ("a number", "text")):
        raise _cannot(filter, value, f"{filter.op} compares numbers with numbers, or text with text")
    return bool(value > wanted if filter.op == "greater" else value < wanted)


def _equal(value: Any, wanted: Any, filter: ComparedValue) -> bool:
    if _kind(value) != _kind(wanted) and value is not None and wanted is not None:
        raise _cannot(filter, value, f"it is compared with {_kind(wanted)}")
    return bool(value == wanted)


def _cannot(filter: ComparedValue, value: Any, why: str) -> ScoringError:
    return ScoringError(f"{filter.op}: {filter.expression.strip()} is {_kind(value)}, {value!r:.80}; {why}")


def _unfit(op: str, value: Any) -> str:
    """Return the kind of value that ``op`` needs, or "" if ``value`` is of that kind."""
    if op == "in":
        kinds = {_kind(each) for each in value} if isinstance(value, list) else set()
        fits = len(kinds) == 1 and kinds <= {"text", "a number", "a boolean"}
        return "" if fits else "a list of at least one value, all texts, all numbers or all booleans,"
    if op == "contains":
        return "" if value != "" and _kind(value) in ("text", "a number", "a boolean") else "a text, number or boolean"
    if op in ("greater", "less"):
        return "" if _kind(value) in ("text", "a number") else "a number or a text"
    return ""


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "text" if isinstance(value, str) else type(value).__name__
