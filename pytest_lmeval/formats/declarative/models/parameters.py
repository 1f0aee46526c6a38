"""The parameters that ``config_spec`` declares, and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from pytest_lmeval.errors import not_one_of
from pytest_lmeval.formats.declarative.models.base import Block, Data
from pytest_lmeval.numbers import is_number, is_whole

_ParameterKey = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=250)]


class ParameterBase(Block):
    """One parameter."""

    type: str = Field(description="The type of its values.")
    key: _ParameterKey = Field(description="Its name in << config.KEY >>.")
    display_name: str = Field(default="", description="Its display name.")
    description: str = Field(default="", description="Its purpose.")
    default: Any = Data(default=None, description="The value if no config sets one.")
    nullable: bool = Field(default=False, description="true: null is a valid value.")


class NumberParameter(ParameterBase):
    """A number."""

    type: Literal["int", "float"] = Field(description="int: a whole number; float: any number.")
    min: float | None = Field(default=None, description="The lowest value.")
    max: float | None = Field(default=None, description="The highest value.")


class PlainParameter(ParameterBase):
    """A parameter without limits."""

    type: Literal["boolean", "string", "list", "dataset", "dataset_column", "model"] = Field(
        description="boolean, string, list (of texts, numbers and booleans), dataset (a key, or the path of a file), "
        "dataset_column, or model (as --lm-adapter names it)."
    )


class CategoricalParameter(ParameterBase):
    """One of several texts."""

    type: Literal["categorical"] = Field(description="One of allowed_values.")
    allowed_values: list[str] = Field(min_length=1, description="The values it may have.")


Parameter = Annotated[NumberParameter | PlainParameter | CategoricalParameter, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class TaskConfig:
    """The values of a task's parameters for one run.

    ``name``, unless it is empty, is the suffix of the task's name.
    """

    name: str
    values: Mapping[str, Any]


def check_value(parameter: ParameterBase, value: Any) -> str:
    """Return the reason why ``value`` is not valid for ``parameter``, or ''."""
    if value is None:
        return "" if parameter.nullable else "has no value and is not nullable"
    fits, wanted = _TYPES[parameter.type]
    if not fits(value):
        hint = "; only true and false are booleans in these files" if parameter.type == "boolean" else ""
        return f"expected {wanted}, got {value!r:.80}{hint}"
    if isinstance(parameter, CategoricalParameter) and value not in parameter.allowed_values:
        return not_one_of(value, parameter.allowed_values)
    if isinstance(parameter, NumberParameter):
        return _check_range(parameter, value)
    return ""


def _check_range(parameter: NumberParameter, value: float) -> str:
    low, high = parameter.min, parameter.max
    if (low is not None and value < low) or (high is not None and value > high):
        limits = [("at least", low), ("at most", high)]
        wanted = " and ".join(f"{words} {limit:g}" for words, limit in limits if limit is not None)
        return f"expected {wanted}, got {value!r}"
    return ""


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.strip() != ""


_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "int": (is_whole, "a whole number"),
    "float": (is_number, "a number"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    **dict.fromkeys(("string", "categorical"), (lambda value: isinstance(value, str), "text")),
    "list": (
        lambda value: isinstance(value, list) and all(isinstance(each, str | int | float) for each in value),
        "a list of texts, numbers and booleans",
    ),
    "dataset": (_is_name, "the key of a data set or the path of its file"),
    "dataset_column": (_is_name, "the name of a column"),
    "model": (_is_name, "a model, as --lm-adapter names it"),
}
