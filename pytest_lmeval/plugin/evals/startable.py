"""Whether an example may be begun ahead of its turn: what its fixtures allow."""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_lmeval.plugin.private import (
    arguments_of,
    cached_value,
    closure_of,
    fixture_definitions,
    is_parameter,
    set_up_by,
)

_SKIPS = ("skip", "skipif", "xfail")


@dataclass(frozen=True, slots=True)
class Needs:
    """What the items of one function need besides their parameters: fixtures by name, and why they must wait.

    ``reason`` is empty where they may be begun ahead; it is said in the summary, but for ``silent`` ones.
    """

    fixtures: tuple[tuple[str, Any], ...] = ()
    reason: str = ""
    silent: bool = False
    narrowest: str = "session"


def needs_of(item: pytest.Item) -> Needs:
    """Return what an item needs; the same for all items of a function."""
    if any(item.get_closest_marker(name) is not None for name in _SKIPS):
        return Needs(reason="marked", silent=True)
    if "request" in arguments_of(item):
        return Needs(reason="it asks for request")
    parameters = parameters_of(item)
    fixtures, narrowest = [], "session"
    for name in closure_of(item):
        if name in ("request", "lm"):
            continue
        definitions = fixture_definitions(item, name)
        if not definitions:
            return Needs(reason=f"fixture {name} is not known")
        definition = definitions[-1]
        if name in parameters and is_parameter(definition):
            continue
        if definition.scope not in ("session", "module"):
            return Needs(reason=f"fixture {name} ({_place(definition.func)}) is {definition.scope}-scoped")
        narrowest = "module" if definition.scope == "module" else narrowest
        fixtures.append((name, definition))
    return Needs(tuple(fixtures), narrowest=narrowest)


def values_for(item: Any, needs: Needs, running: Any) -> dict[str, Any] | None:
    """Return the values of an item's fixtures and parameters; None where one is not to be had ahead.

    ``running`` is the item whose turn it is: what is not there yet is set up on its behalf.
    """
    parameters = parameters_of(item)
    values = dict(parameters)
    for name, definition in needs.fixtures:
        is_there, value, key = cached_value(definition)
        if not is_there:
            if not set_up_by(running, definition, name):
                return None
            _, value, key = cached_value(definition)
        if name in parameters and key is not parameters[name] and key != parameters[name]:
            return None
        values[name] = value
    return values


def parameters_of(item: Any) -> dict[str, Any]:
    """Return the parameters of an item by name, those of its row among them."""
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec is not None else {}


def _place(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "?" if code is None else f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
