"""Whether a model calls the tools that it should, with the arguments that it should."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.types import Completion, Score, ToolCall

ORDERS = ("any", "exact")
ARGUMENTS = ("exact", "subset")
_LONGEST = 200


@metric(extras=("tools", "calls", "order", "arguments", "tool_choice"), needs_targets=False, takes_calls=True)
def tool_calls(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> Score:
    """Return 1.0 if the calls are those of ``extras.calls``, none too many, else 0.0; the text beside them is free.

    ``prediction`` is the output as the ledger has it. With ``extras.order`` ``exact`` they must come in that order,
    with ``any`` (the default) in any. With ``extras.arguments`` ``subset`` a call may have more arguments than those
    expected. The details have what was expected and, of wrong calls, the first difference.
    """
    made = Completion.of_output(prediction).tool_calls
    expected = _expected(extras.get("calls"))
    subset = extras.get("arguments") == "subset"
    compare = _in_order if extras.get("order") == "exact" else _in_any_order
    difference = compare(expected, made, subset)
    details: dict[str, Any] = {"expected": [_shown(call["name"], call.get("arguments", {})) for call in expected]}
    if difference:
        details["difference"] = difference[: 4 * _LONGEST]
    return Score(float(not difference), details)


def expected_in(metric: str, details: Mapping[str, Any]) -> Sequence[str]:
    """Return the calls that this metric's details say were expected, as text; () of another metric, or without any."""
    found = details.get("expected") if metric == tool_calls.__name__ else None
    if not isinstance(found, list) or not all(isinstance(call, str) for call in found):
        return ()
    return found or ("no call",)


def _expected(given: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(given, list) and all(
        isinstance(call, Mapping)
        and isinstance(call.get("name"), str)
        and isinstance(call.get("arguments", {}), Mapping)
        for call in given
    ):
        return given
    raise ScoringError(f"extras.calls: expected a list of calls, each with name and arguments, got {given!r:.80}")


def _in_order(expected: Sequence[Mapping[str, Any]], made: Sequence[ToolCall], subset: bool) -> str:
    for number, (wanted, call) in enumerate(zip(expected, made, strict=False), start=1):
        if difference := _difference(wanted, call, subset):
            return f"call {number}: {difference}"
    return _too_few_or_many(expected, made)


def _in_any_order(expected: Sequence[Mapping[str, Any]], made: Sequence[ToolCall], subset: bool) -> str:
    if len(made) > len(expected):
        # A model may make any number of calls; that so many are not wanted is known without looking for pairs.
        known = [call for call in made if all(_difference(wanted, call, subset) for wanted in expected[:50])]
        return f"a call too many: {_of(known[0] if known else made[len(expected)])}"
    pairs = _pairs(expected, made, subset)
    missing = [wanted for number, wanted in enumerate(expected) if number not in pairs]
    if not missing:
        return ""
    left = [call for number, call in enumerate(made) if number not in pairs.values()]
    wanted = missing[0]
    alike = next((call for call in left if call.name == wanted["name"]), None)
    if alike is not None:
        return f"call of {wanted['name']}: {_difference(wanted, alike, subset)}"
    got = f", got {_of(left[0])}" if left else ""
    return f"no call of {_shown(wanted['name'], wanted.get('arguments', {}))}{got}"


def _pairs(expected: Sequence[Mapping[str, Any]], made: Sequence[ToolCall], subset: bool) -> dict[int, int]:
    """Return as many pairs of an expected call and a call made as there can be, by their numbers."""
    fits = [[number for number, call in enumerate(made) if not _difference(each, call, subset)] for each in expected]
    taken: dict[int, int] = {}

    def place(wanted: int, tried: set[int]) -> bool:
        for number in fits[wanted]:
            if number not in tried:
                tried.add(number)
                if number not in taken or place(taken[number], tried):
                    taken[number] = wanted
                    return True
        return False

    for wanted in range(len(expected)):
        place(wanted, set())
    return {wanted: number for number, wanted in taken.items()}


def _too_few_or_many(expected: Sequence[Mapping[str, Any]], made: Sequence[ToolCall]) -> str:
    if len(made) > len(expected):
        return f"a call too many: {_of(made[len(expected)])}"
    if len(made) < len(expected):
        wanted = expected[len(made)]
        return f"no call of {_shown(wanted['name'], wanted.get('arguments', {}))}"
    return ""


def _difference(wanted: Mapping[str, Any], call: ToolCall, subset: bool) -> str:
    """Return the first thing in which a call is not the one wanted, or ""."""
    if call.name != wanted["name"]:
        return f"expected {wanted['name']}, got {call.name[:_LONGEST] or 'no name'}"
    values = call.values
    if values is None:
        return f"arguments that are no JSON object: {call.arguments[:_LONGEST]}"
    arguments: Mapping[str, Any] = wanted.get("arguments", {})
    for name, value in arguments.items():
        if name not in values:
            return f"no argument {name}, expected {_json(value)}"
        if not same(value, values[name]):
            return f"argument {name}: expected {_json(value)}, got {_json(values[name])}"
    more = [] if subset else [name for name in values if name not in arguments]
    return f"an argument too many: {more[0][:_LONGEST]}" if more else ""


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _of(call: ToolCall) -> str:
    values = call.values
    return f"{call.name}({call.arguments[:_LONGEST]})" if values is None else _shown(call.name, values)


def _shown(name: str, arguments: Mapping[str, Any]) -> str:
    """Return a call as Python writes one."""
    return f"{name}({', '.join(f'{key}={_json(value)}' for key, value in arguments.items())})"[: 2 * _LONGEST]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:_LONGEST]
