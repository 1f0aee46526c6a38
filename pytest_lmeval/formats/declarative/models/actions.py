"""Which rows are left out of the metrics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from pytest_lmeval.formats.checks import type_name
from pytest_lmeval.formats.declarative.models.base import FAULTS, Block, Data, Key, Template, TemplateText


class ComparedValue(Block):
    """A value of the row beside a fixed one."""

    op: Literal["equals", "not_equals", "in", "contains", "greater", "less"] = Field(description="How they compare.")
    expression: TemplateText = Template(description="A value of the row: '{{ scores.KEY.FIELD }}'.")
    value: Any = Data(description="What it is compared with; of 'in' a list.")

    @field_validator("value")
    @classmethod
    def _fits(cls, value: Any, info: ValidationInfo) -> Any:
        # Where parameters are not put in yet, any may stand for a value of another type.
        wanted = _unfit(info.data.get("op", ""), value) if info.context is not None else ""
        if wanted:
            detail = f"expected {wanted} for {info.data['op']!r}, got {_shown(value)}"
            raise PydanticCustomError(FAULTS, "faults of fields", {"faults": [["", "bad_type", detail]]})
        return value


class Combined(Block):
    """Several filters."""

    op: Literal["and", "or"] = Field(description="Whether all or any must hold.")
    filters: list[Filter] = Field(min_length=1, description="The filters.")


class Negated(Block):
    """The opposite of a filter."""

    op: Literal["not"] = Field(description="The opposite.")
    filter: Filter = Field(description="The filter that must not hold.")


Filter = Annotated[ComparedValue | Combined | Negated, Field(discriminator="op")]


class Action(Block):
    """One rule."""

    key: Key = Field(description="What the board calls it.")
    action: Literal["exclude_from_metrics"] = Field(description="Leave the row out of all metrics.")
    filter: Filter = Field(description="The rows it is for.")


def _unfit(op: str, value: Any) -> str:
    """Return what the value of ``op`` has to be where it is something else, and could only be misread; else ""."""
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
    return "text" if isinstance(value, str) else ""


def _shown(value: Any) -> str:
    return f"{type_name(value)} {value!r:.60}" if value not in (None, []) else type_name(value)


Combined.model_rebuild()
Negated.model_rebuild()
