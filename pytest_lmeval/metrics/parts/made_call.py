"""A call that a model made, beside those that are expected: what is wrong, missing or too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.errors import ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.tool_schema import fault
from pytest_lmeval.metrics.parts.wanted_call import LONGEST, WantedCall, shown_call, shown_value
from pytest_lmeval.types import ToolCall

ORDERS = ("any", "exact")
ARGUMENTS = ("exact", "subset")
_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}


def searches(pattern: str, text: str) -> bool:
    """Tell whether a pattern is found in ``text``; raise TookTooLong where that takes longer than a worker's limit."""
    from pytest_lmeval.metrics.parts.worker import shared_worker

    # The pattern is one person's and the text another's: the two can take time without end.
    return bool(shared_worker().ask("pattern", pattern, text))


def schema_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of what a tool takes: a tool that says nothing of parameters has none."""
    found = tool.get("parameters", _NO_PARAMETERS)
    return found if isinstance(found, Mapping) else _NO_PARAMETERS


@dataclass(frozen=True, slots=True)
class Rules:
    """How calls are compared."""

    subset: bool
    text: str


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call that a model made; ``invalid`` is why no call like it can be right, or ""."""

    name: str
    call: ToolCall
    values: Mapping[str, Any]
    invalid: str

    @classmethod
    def of(cls, call: ToolCall, schemas: Mapping[str, Mapping[str, Any]]) -> MadeCall:
        """Return the call of a completion, with what its tool's schema says of it."""
        values = call.values
        if values is None:
            return cls(call.name, call, {}, f"arguments that are no JSON object: {call.arguments[:LONGEST]}")
        schema = schemas.get(call.name)
        return cls(call.name, call, values, "" if schema is None else _invalid(call.name, values, schema))

    def difference(self, wanted: WantedCall, rules: Rules) -> str:
        """Return in what the call is not the one that is wanted, or ""."""
        if self.name != wanted.name:
            return f"expected {wanted.name}, got {self.name[:LONGEST] or 'no name'}"
        return self.invalid or wanted.difference(self.values, subset=rules.subset, text=rules.text)

    def __str__(self) -> str:
        if self.call.values is None:
            return f"{self.name}({self.call.arguments[:LONGEST]})"
        return shown_call(self.name, {name: shown_value(value) for name, value in self.values.items()})


def _invalid(name: str, values: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    from pytest_lmeval.metrics.parts.worker import TookTooLong

    try:
        found = fault(values, schema, searches)
    except TookTooLong as error:
        found = f"a pattern of the schema could not be looked for: {error}"
    return f"not valid by the schema of {name}: {found}" if found else ""


def schemas_of(tools: Any) -> dict[str, Mapping[str, Any]]:
    """Return the schemas of ``extras.tools``, by the names of the tools."""
    found = [tool.get("function", tool) for tool in tools or () if isinstance(tool, Mapping)]
    return {str(tool.get("name")): schema_of(tool) for tool in found if isinstance(tool, Mapping)}


def wanted_calls(given: Any, schemas: Mapping[str, Mapping[str, Any]], rules: Rules) -> Sequence[WantedCall]:
    """Return the calls of ``extras.calls``; raise ScoringError for what no call can be."""
    if not isinstance(given, list):
        raise ScoringError(f"extras.calls: expected a list of calls, each with name and arguments, got {given!r:.80}")
    try:
        found = [WantedCall.of(call) for call in given]
    except ValueError as error:
        raise ScoringError(f"extras.calls: {error}") from None
    for number, call in enumerate(found):
        schema = schemas.get(call.name)
        if schema and (wrong := call.invalid(schema, searches, partial=rules.subset)):
            raise ScoringError(f"extras.calls[{number}]: no call of {call.name} can be right: {wrong}")
    return found


def in_order(expected: Sequence[WantedCall], made: Sequence[MadeCall], rules: Rules) -> str:
    """Return the first difference of calls that have to come in this order, or ""."""
    for number, (wanted, call) in enumerate(zip(expected, made, strict=False), start=1):
        if difference := call.difference(wanted, rules):
            return f"call {number}: {difference}"
    return _too_few_or_many(expected, made)


def in_any_order(expected: Sequence[WantedCall], made: Sequence[MadeCall], rules: Rules) -> str:
    """Return the first difference of calls in whatever order, or ""."""
    if len(made) > len(expected):
        # A model may make any number of calls; that so many are not wanted is known without looking for pairs.
        known = [call for call in made if all(call.difference(wanted, rules) for wanted in expected[:50])]
        return f"a call too many: {known[0] if known else made[len(expected)]}"
    pairs = _pairs(expected, made, rules)
    missing = [wanted for number, wanted in enumerate(expected) if number not in pairs]
    if not missing:
        return ""
    left = [call for number, call in enumerate(made) if number not in pairs.values()]
    wanted = missing[0]
    same_name = next((call for call in left if call.name == wanted.name), None)
    if same_name is not None:
        return f"call of {wanted.name}: {same_name.difference(wanted, rules)}"
    got = f", got {left[0]}" if left else ""
    return f"no call of {wanted.shown()}{got}"


def _pairs(expected: Sequence[WantedCall], made: Sequence[MadeCall], rules: Rules) -> dict[int, int]:
    """Return as many pairs of an expected call and a call made as there can be, by their numbers."""
    fits = [[number for number, call in enumerate(made) if not call.difference(each, rules)] for each in expected]
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


def _too_few_or_many(expected: Sequence[WantedCall], made: Sequence[MadeCall]) -> str:
    if len(made) > len(expected):
        return f"a call too many: {made[len(expected)]}"
    if len(made) < len(expected):
        return f"no call of {expected[len(made)].shown()}"
    return ""
