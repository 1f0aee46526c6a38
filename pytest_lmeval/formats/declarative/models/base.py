"""What the parts of a task file have in common: closed fields, and parameters put in before anything is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationInfo, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from pytest_lmeval.errors import nearest
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.placeholders import PlaceholderError, fill_template, fill_value
from pytest_lmeval.templates.template import TemplateFault, compile_template

FAULTS = "lmeval_faults"
"""The type of the error that carries what is wrong with single fields: ``[field, rule, detail]`` each."""
_KEY_PATTERN = r"^[A-Za-z0-9_-]+$"


@dataclass(frozen=True, slots=True)
class ReadContext:
    """What a task file is read with: the values of its parameters, and the metrics that are known."""

    registry: Registry
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Says of a field how its parameters are put in."""

    name: str


_TEMPLATE, _DATA = _Mark("template"), _Mark("data")

Key = Annotated[str, StringConstraints(pattern=_KEY_PATTERN, max_length=250)]
TemplateText = Annotated[str, Field(json_schema_extra={"x-template": "jinja"})]
"""Text that is filled for every row."""


def Template(**options: Any) -> Any:  # noqa: N802  # used like a type, as pydantic's Field is
    """Return the field of a template, or of a list or mapping of them."""
    return _marked(_TEMPLATE, options)


def Data(**options: Any) -> Any:  # noqa: N802  # used like a type, as pydantic's Field is
    """Return the field of free data, in which parameters are put in however deep."""
    return _marked(_DATA, options)


def _marked(mark: _Mark, options: dict[str, Any]) -> Any:
    info = Field(**options)
    info.metadata.append(mark)
    return info


def is_template(field: FieldInfo) -> bool:
    """Tell whether a field holds templates."""
    return _TEMPLATE in field.metadata


class Block(BaseModel):
    """A mapping of a task file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, data: Any, info: ValidationInfo) -> Any:
        """Refuse unknown keys, and put the parameters in."""
        if not isinstance(data, dict):
            return data
        faults = [
            [key, "unknown_field", _unknown(key, list(cls.model_fields))] for key in data if key not in cls.model_fields
        ]
        filled: dict[str, Any] = {}
        for key, value in data.items():
            try:
                filled[key] = cls._filled(key, value, info.context)
            except (PlaceholderError, TemplateFault) as error:
                faults.append([key, "bad_value", str(error)])
        if faults:
            raise PydanticCustomError(FAULTS, "faults of fields", {"faults": faults})
        return filled

    @classmethod
    def _filled(cls, key: str, value: Any, reading: ReadContext | None) -> Any:
        if reading is None or key not in cls.model_fields:
            return value
        marks = cls.model_fields[key].metadata
        if _TEMPLATE in marks:
            return _deep(value, lambda text: _template(text, reading.values))
        if _DATA in marks:
            return _deep(value, lambda text: fill_value(text, reading.values))
        if isinstance(value, list):
            return [fill_value(each, reading.values) if isinstance(each, str) else each for each in value]
        return fill_value(value, reading.values) if isinstance(value, str) else value


def _template(text: str, values: Mapping[str, Any]) -> str:
    filled = fill_template(text, values)
    compile_template(filled)
    return filled


def _deep(value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_deep(each, change) for each in value]
    if isinstance(value, dict):
        return {key: _deep(each, change) for key, each in value.items()}
    return value


_COUNTERPARTS = {
    ("message_builders", "turns"): " write turns, what the user says in each: the model is asked after each of them; a "
    "system message is the field system"
}
"""By the field of another tool and its counterpart here, what to write."""


def _unknown(key: str, known: list[str]) -> str:
    if instead := next((text for (other, own), text in _COUNTERPARTS.items() if key == other and own in known), ""):
        return f"unknown field {key!r}:{instead}"
    return f"unknown field {key!r}{nearest(key, known, 'expected one of')}"
