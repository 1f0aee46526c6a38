"""Represent tool calls by a model or an application."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.types import ToolCall

LONGEST = 200


class Call(tuple[str, Any]):
    """A tool call, which is a (name, arguments) pair so that a failed assertion shows a tuple."""

    __slots__ = ()

    @classmethod
    def of(cls, call: ToolCall) -> Call:
        """Return the call that a model requested."""
        values = call.values
        return cls((call.name, call.arguments if values is None else values))

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self[0]

    @property
    def arguments(self) -> dict[str, Any] | str:
        """The arguments by name, or the model's text if it is not a JSON object."""
        found: dict[str, Any] | str = self[1]
        return found

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The arguments by name, parsed if they are JSON text, or None if they are not a JSON object."""
        given = self[1]
        found = ToolCall("", self.name, given).values if isinstance(given, str) else given
        return found if isinstance(found, Mapping) else None

    def as_python(self) -> str:
        """Return the call in Python notation, shortened."""
        if isinstance(self.arguments, str):
            return f"{self.name}({self.arguments[:LONGEST]})"
        return call_text(self.name, {name: shown_value(value) for name, value in self.arguments.items()})


def call_text(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call in Python notation, shortened; the values of ``arguments`` are strings."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})"[: 2 * LONGEST]


def shown_value(value: Any) -> str:
    """Return a value as JSON, shortened."""
    return json.dumps(value, ensure_ascii=False)[:LONGEST]
