"""What a client asks, whatever interface it speaks, and the checks that the bodies of all of them pass."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.numbers import is_number, is_whole
from pytest_lmeval.types import Message

_DEEPEST = 50
CHOICES = ("auto", "none", "required")
"""The tool choices that name no tool."""
Checks = Mapping[str, tuple[Callable[[Any], bool], str]]
"""By the name of a field: whether a value fits, and what was expected."""
Talks = dict[str, tuple[Message, ...]]
"""The conversations of one example that a later request may go on with, by the id of the last reply."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client asks for: messages, the other ``fields`` of :class:`Generate`, and how it wants the answer.

    ``model`` is the name that it gives; ``dropped`` names what it sent and no request to an adapter has. ``given`` are
    the fields of the body, for replies that repeat them. ``talk`` is what a later request goes on with, after the
    answer; None where there will be none.
    """

    messages: tuple[Message, ...]
    fields: Mapping[str, Any]
    model: str
    streams: bool
    wants_usage: bool = False
    dropped: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    talk: tuple[Message, ...] | None = None


def parsed(body: bytes, expected: str) -> dict[str, Any]:
    """Return the JSON object of a body; raise ValueError, with what was ``expected`` of it, for anything else."""
    try:
        fields = json.loads(body, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the body is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"the body is no JSON: {error}") from None
    if not isinstance(fields, dict):
        raise ValueError(f"expected a JSON object with {expected}, got {type(fields).__name__}")
    return fields


def check(fields: Mapping[str, Any], checks: Checks) -> None:
    """Raise ValueError, with the name and what was expected, for the first field that has a value that does not fit."""
    for name, (fits, expected) in checks.items():
        if fields.get(name) is not None and not fits(fields[name]):
            raise ValueError(f"{name}: expected {expected}, got {fields[name]!r:.80}")


def check_json(value: Any, place: str, left: int = _DEEPEST) -> None:
    """Raise ValueError for what is nested too deep, and for numbers that JSON has not."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{place}: expected finite numbers, got {value}")
    if isinstance(value, list | dict):
        if not left:
            raise ValueError(f"{place}: nested deeper than {_DEEPEST}")
        for each in value.values() if isinstance(value, dict) else value:
            check_json(each, place, left - 1)


def options_of(fields: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """Return the fields that have a value and are not ``read`` otherwise; raise ValueError for what is no JSON."""
    options = {name: value for name, value in fields.items() if name not in read and value is not None}
    for name, value in {**options, "tools": fields.get("tools")}.items():
        check_json(value, name)
    return options


def text_of(content: Any, *kinds: str) -> str | None:
    """Return text, or the text of parts that are all of these ``kinds``; None for anything else."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts = [part.get("text") if isinstance(part, dict) and part.get("type") in kinds else None for part in content]
    found = [text for text in texts if isinstance(text, str)]
    return "".join(found) if len(found) == len(texts) else None


def named(given: Any, names: list[str]) -> str:
    """Return the choice of a tool: auto, none, required or one of ``names``; raise ValueError for any other."""
    if isinstance(given, str) and given in (*CHOICES, *names):
        return given
    raise ValueError(f"tool_choice: expected auto, none, required or one of the tools, got {given!r:.80}")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def of(*kinds: type) -> Callable[[object], bool]:
    """Return the check that a value is of one of these kinds."""
    return lambda value: isinstance(value, kinds)


def is_texts(value: object) -> bool:
    """Tell a list of texts."""
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


LIMIT = (lambda value: is_whole(value) and value > 0, "a whole number from 1")
NUMBER = (is_number, "a finite number")
FLAG = (of(bool), "true or false")
OBJECT = (of(dict), "an object")
TEXT = (of(str), "a text")


def refused(status: int, message: str) -> RequestRefused:
    """Return the error of a request that nobody is asked."""
    # Short: a table of failures shows the beginning.
    error = RequestRefused(f"lm.base_url: {message}")
    error.status, error.said = status, {"message": message}
    return error
