"""A call that was made: the one type for what a model or an application called."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.types import ToolCall

LONGEST = 200


class Call(tuple[str, Any]):
    """A call that was made: the pair of name and arguments, and shown as one by an assert that compares it."""

    __slots__ = ()

    @classmethod
    def of(cls, call: ToolCall) -> Call:
        """Return what a model asked for."""
        values = call.values
        return cls((call.name, call.arguments if values is None else values))

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self[0]

    @property
    def arguments(self) -> dict[str, Any] | str:
        """The arguments by their names; the text that the model wrote if that is no JSON object."""
        found: dict[str, Any] | str = self[1]
        return found

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The arguments by their names, also if they are JSON text; None if they are no JSON object."""
        given = self[1]
        found = ToolCall("", self.name, given).values if isinstance(given, str) else given
        return found if isinstance(found, Mapping) else None

    def as_python(self) -> str:
        """Return the call as Python writes one, its beginning."""
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments[:LONGEST]})"
        return call_text(self.name, {name: shown_value(value) for name, value in self.arguments.items()})


def call_text(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call as Python writes one, of arguments that are written already."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})"[: 2 * LONGEST]


def shown_value(value: Any) -> str:
    """Return a value as JSON, its beginning."""
    return json.dumps(value, ensure_ascii=False)[:LONGEST]
