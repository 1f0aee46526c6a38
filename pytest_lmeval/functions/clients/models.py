"""Pydantic models that the request bodies of all interfaces share, with one-line errors for invalid values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    WrapValidator,
)
from pydantic.functional_validators import model_validator
from pydantic_core import PydanticCustomError

from pytest_lmeval.extra import present

_DEEPEST = 50
_OPTION = "option"
_Value = TypeVar("_Value")


def expects(what: str) -> WrapValidator:
    """Return a validator that reports, for any invalid value, that ``what`` is expected."""

    def checked(value: Any, check: Any) -> Any:
        try:
            return check(value)
        except ValidationError:
            raise PydanticCustomError("wrong", f"expected {what}") from None

    return WrapValidator(checked)


def or_text(part: Callable[[str], Any]) -> BeforeValidator:
    """Return a validator that turns text into a list with one element, which ``part`` creates."""

    def listed(given: Any) -> Any:
        if not isinstance(given, str | list):
            raise PydanticCustomError("wrong", "expected a text or a list")
        return [part(given)] if isinstance(given, str) else given

    return BeforeValidator(listed)


def text_of(*kinds: str, media: Collection[str] = ()) -> BeforeValidator:
    """Return a validator that joins the text of parts of these ``kinds``, and ignores parts of the ``media`` kinds."""

    def joined(content: Any) -> Any:
        if not isinstance(content, list):
            return content
        content = [part for part in content if not (isinstance(part, dict) and str(part.get("type")) in media)]
        parts = [part if isinstance(part, dict) and part.get("type") in kinds else {} for part in content]
        texts = [part.get("refusal" if part.get("type") == "refusal" else "text") for part in parts]
        found = [text for text in texts if isinstance(text, str)]
        return "".join(found) if len(found) == len(texts) else content

    return BeforeValidator(joined)


def has_media(content: object, media: Collection[str]) -> bool:
    """Return True if a message's content has a part whose kind is in ``media``."""
    return isinstance(content, list) and any(str(part.get("type")) in media for part in parts_in(content))


def parts_in(content: object) -> Iterator[Mapping[str, object]]:
    """Yield the parts of a message's content."""
    if isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))


def _filled(values: list[_Value]) -> list[_Value]:
    if not values:
        raise PydanticCustomError("wrong", "expected at least one")
    return values


Option = Annotated[_Value | None, _OPTION]
"""A field of the body that is checked and then forwarded unchanged."""
Loose = Annotated[_Value | None, BeforeValidator(lambda value: value or None)]
"""A field of the body that may have any empty value."""
Some = Annotated[list[_Value], AfterValidator(_filled)]
Text = Annotated[str, expects("text content")]
Flag = Annotated[bool, expects("true or false")]
Limit = Annotated[int, Field(ge=1), expects("a whole number from 1")]
Word = Literal["", "auto", "none", "required"]
"""A choice that names no tool."""
CHOICE = expects("auto, none, required or one of the tools")
OWN_TOOL = expects("a function of the application: custom tools (free text) and a server's tools are not supported")


class BodyPart(BaseModel):
    """An object in a body; null counts as missing, and undeclared fields go to ``model_extra``."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _present(cls, given: Any) -> Any:
        return present(given) if isinstance(given, dict) else given

    @property
    def extras(self) -> set[str]:
        """The names of non-empty undeclared fields."""
        return {name for name, value in (self.model_extra or {}).items() if value}


class NamedTool(BodyPart):
    """The choice of one particular tool."""

    name: str


class Body(BodyPart):
    """The fields that all interfaces share."""

    model: str = ""
    stream: Flag = False
    temperature: Option[FiniteFloat] = None
    top_p: Option[FiniteFloat] = None


_Body = TypeVar("_Body", bound=Body)


def read(kind: type[_Body], body: bytes) -> tuple[_Body, dict[str, Any], dict[str, Any]]:
    """Parse a body; return the model of the body, all fields as sent, and the fields that are options.

    Raise ValueError for an invalid body; the message names the field and the expected value.
    """
    fields = _parsed(body)
    try:
        asked = kind.model_validate(fields)
    except ValidationError as error:
        # Import these only for an error, because most runs have no invalid request.
        from pytest_lmeval.formats.declarative.faults import validation_faults
        from pytest_lmeval.formats.yaml.document import field_name

        fault = validation_faults(error, fields)[0]
        raise ValueError(f"{field_name(fault.keys)}: {fault.detail}") from None
    known = {name for name, field in kind.model_fields.items() if _OPTION not in field.metadata}
    options = {name: value for name, value in present(fields).items() if name not in known}
    for name, value in {**options, "tools": fields.get("tools")}.items():
        _check_json(value, name)
    return asked, fields, options


def chosen(choice: str | NamedTool, tools: Sequence[Mapping[str, Any]]) -> str:
    """Return a choice as a word, or as the name of one of ``tools``; raise ValueError for any other name."""
    if isinstance(choice, str):
        return choice
    if any(tool["name"] == choice.name for tool in tools):
        return choice.name
    raise ValueError(f"tool_choice: expected auto, none, required or one of the tools, got {choice.name!r:.80}")


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the body is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object, got {type(fields).__name__}")
    return fields


def _check_json(value: Any, place: str, left: int = _DEEPEST) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: expected finite numbers, got {value}")
    if isinstance(value, list | dict):
        if not left:
            raise ValueError(f"{place}: nested deeper than {_DEEPEST}")
        for each in value.values() if isinstance(value, dict) else value:
            _check_json(each, place, left - 1)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
