"""Base class for the models of task files; it rejects unknown fields and fills in parameters before other checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from pytest_lmeval.errors import RecordRefused, nearest
from pytest_lmeval.formats.checks import has_media
from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.placeholders import PlaceholderError, fill_template, fill_value
from pytest_lmeval.templates.rows import walked
from pytest_lmeval.templates.template import TemplateFault, compile_template
from pytest_lmeval.types import MEDIA_KINDS

FAULTS = "lmeval_faults"
"""The error type for errors in individual fields, each ``[field, rule, detail]``."""
# Marks in a field's metadata that say how to fill in parameters.
_TEMPLATE, _DATA = "parameters in templates", "parameters in data"

Key = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$", max_length=250)]
TemplateText = Annotated[str, Field(json_schema_extra={"x-template": "jinja"})]
"""A template that is filled in from each row."""
_KINDS = [{"required": [kind]} for kind in MEDIA_KINDS]
_OF_MEDIA: Any = {"oneOf": _KINDS, "dependentSchemas": {"detail": {"required": ["image"]}}}
_PART = Annotated[dict[Literal["image", "audio", "file", "detail"], TemplateText], Field(json_schema_extra=_OF_MEDIA)]
_WITH_MEDIA: Any = {"contains": {"type": "object"}}


def _checked(value: list[Any]) -> list[Any]:
    """Return ``value`` if it is a list of text and media; refuse any other list."""
    if not has_media(value):
        raise field_error("bad_type", 'expected a text, or a list of texts and media such as {image: "PATH"}')
    from pytest_lmeval.media.given import kind_of

    for number, part in enumerate(value):
        try:
            kind_of(part, "")
        except RecordRefused as refused:
            raise field_error(refused.rule, refused.detail, number) from None
    return value


_TEXT = Annotated[TemplateText, Field(min_length=1)]
_PARTS = Annotated[list[_TEXT | _PART], Field(json_schema_extra=_WITH_MEDIA), BeforeValidator(_checked), Tag("parts")]
_BY_TYPE = Discriminator(lambda value: "parts" if isinstance(value, list) else "text")
Content = Annotated[Annotated[TemplateText, Tag("text")] | _PARTS, _BY_TYPE]
"""A message's content: text, or a list of text and media, filled in from each row."""
FilledContent = Annotated[Annotated[_TEXT, Tag("text")] | _PARTS, _BY_TYPE]
"""Like ``Content``, but the text must not be empty."""


@dataclass(frozen=True, slots=True)
class ReadContext:
    """The values of a task's parameters, and the registry with the known metrics."""

    registry: Registry
    values: Mapping[str, Any] = field(default_factory=dict)


def field_error(rule: str, detail: str, field: str | int = "") -> PydanticCustomError:
    """Return an error for the value that a validator checks, or for its field or element ``field``."""
    return PydanticCustomError(FAULTS, "faults of fields", {"faults": [[field, rule, detail]]})


def Template(**options: Any) -> Any:  # noqa: N802  # used like a type, as pydantic's Field is
    """Return a pydantic field for a template, or for a list or mapping of templates."""
    return _marked(_TEMPLATE, options)


def Data(**options: Any) -> Any:  # noqa: N802  # used like a type, as pydantic's Field is
    """Return a pydantic field for data in which parameters are filled in at any depth."""
    return _marked(_DATA, options)


def _marked(mark: str, options: dict[str, Any]) -> Any:
    info = Field(**options)
    info.metadata.append(mark)
    return info


def is_template(field: FieldInfo) -> bool:
    """Return True if a field contains templates."""
    return _TEMPLATE in field.metadata


class Block(BaseModel):
    """A mapping in a task file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _prepare(cls, data: Any, info: ValidationInfo) -> Any:
        """Refuse unknown keys, and fill in the parameters."""
        if not isinstance(data, dict):
            return data
        faults = [
            [key, "unknown_field", f"unknown field {key!r}{_hint(key, [*cls.model_fields])}"]
            for key in data
            if key not in cls.model_fields
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
            return walked(value, lambda each: _template(each, reading.values))
        if _DATA in marks:
            return walked(value, lambda each: _value(each, reading.values))
        if isinstance(value, list):
            return [_value(each, reading.values) for each in value]
        return _value(value, reading.values)


def _value(given: Any, values: Mapping[str, Any]) -> Any:
    return fill_value(given, values) if isinstance(given, str) else given


def _template(given: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(given, str):
        return given
    filled = fill_template(given, values)
    compile_template(filled)
    return filled


def _hint(key: str, known: list[str]) -> str:
    if key == "message_builders" and "turns" in known:
        return ": write turns, one message of the user each; a system message is the field system"
    return nearest(key, known, "expected one of")
