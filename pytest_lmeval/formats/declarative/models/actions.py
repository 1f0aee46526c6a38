"""Which rows are left out of the metrics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pytest_lmeval.formats.declarative.models.base import Block, Data, Key, Template, TemplateText

__all__ = ["Action", "Combined", "Compared", "Filter", "Negated"]


class Compared(Block):
    """A value of the row beside a fixed one."""

    op: Literal["equals", "not_equals", "in", "contains", "greater", "less"] = Field(description="How they compare.")
    expression: TemplateText = Template(description="A value of the row: '{{ scores.KEY.FIELD }}'.")
    value: Any = Data(description="What it is compared with; of 'in' a list.")


class Combined(Block):
    """Several filters."""

    op: Literal["and", "or"] = Field(description="Whether all or any must hold.")
    filters: list[Filter] = Field(min_length=1, description="The filters.")


class Negated(Block):
    """The opposite of a filter."""

    op: Literal["not"] = Field(description="The opposite.")
    filter: Filter = Field(description="The filter that must not hold.")


Filter = Annotated[Compared | Combined | Negated, Field(discriminator="op")]


class Action(Block):
    """One rule."""

    key: Key = Field(description="What the board calls it.")
    action: Literal["exclude_from_metrics"] = Field(description="Leave the row out of all metrics.")
    filter: Filter = Field(description="The rows it is for.")


Combined.model_rebuild()
Negated.model_rebuild()
