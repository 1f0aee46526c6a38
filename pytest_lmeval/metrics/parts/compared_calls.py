"""Calls that a model made beside those that are expected: what is wrong, missing or too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.call import LONGEST, Call
from pytest_lmeval.metrics.parts.tool_schema import fault
from pytest_lmeval.metrics.parts.wanted_call import WantedCall

_MOST_LOOKED_AT = 50


class CallComparison:
    """The calls that are expected and those that were made; each of its methods returns the first difference, or ""."""

    def __init__(
        self,
        expected: Sequence[WantedCall],
        made: Sequence[Call],
        schemas: Mapping[str, Mapping[str, Any]],
        *,
        subset: bool,
        text: str,
    ) -> None:
        self._expected = expected
        self._made = made
        self._subset = subset
        self._text = text
        self._invalid = [_invalid(call, schemas.get(call.name)) for call in made]

    def in_order(self) -> str:
        """Compare calls that have to come in this order."""
        expected, made = self._expected, self._made
        for number in range(min(len(expected), len(made))):
            if difference := self._difference(number, number):
                return f"call {number + 1}: {difference}"
        if len(made) < len(expected):
            return f"no call of {expected[len(made)].as_python()}"
        return f"a call too many: {made[len(expected)].as_python()}" if len(made) > len(expected) else ""

    def in_any_order(self) -> str:
        """Compare calls in any order."""
        expected, made = self._expected, self._made
        if len(made) > len(expected):
            # A model may make any number of calls; that so many are not wanted is known without looking for pairs.
            looked_at = range(min(len(expected), _MOST_LOOKED_AT))
            alone = (n for n in range(len(made)) if all(self._difference(wanted, n) for wanted in looked_at))
            return f"a call too many: {made[next(alone, len(expected))].as_python()}"
        pairs = self._pairs()
        wanted = next((number for number in range(len(expected)) if number not in pairs), None)
        if wanted is None:
            return ""
        left = [number for number in range(len(made)) if number not in pairs.values()]
        same_name = next((number for number in left if made[number].name == expected[wanted].name), None)
        if same_name is not None:
            return f"call of {expected[wanted].name}: {self._difference(wanted, same_name)}"
        got = f", got {made[left[0]].as_python()}" if left else ""
        return f"no call of {expected[wanted].as_python()}{got}"

    def _difference(self, wanted: int, made: int) -> str:
        expected, call = self._expected[wanted], self._made[made]
        if call.name != expected.name:
            return f"expected {expected.name}, got {call.name[:LONGEST] or 'no name'}"
        return self._invalid[made] or expected.difference(call.values or {}, subset=self._subset, text=self._text)

    def _pairs(self) -> dict[int, int]:
        """Return as many pairs of an expected call and a call made as there can be, by their numbers."""
        made, expected = range(len(self._made)), range(len(self._expected))
        fits = [[number for number in made if not self._difference(wanted, number)] for wanted in expected]
        taken: dict[int, int] = {}

        def place(wanted: int, tried: set[int]) -> bool:
            for number in fits[wanted]:
                if number not in tried:
                    tried.add(number)
                    if number not in taken or place(taken[number], tried):
                        taken[number] = wanted
                        return True
            return False

        for wanted in expected:
            place(wanted, set())
        return {wanted: number for number, wanted in taken.items()}


def _invalid(call: Call, schema: Mapping[str, Any] | None) -> str:
    """Return why no call like this can be right, or ""."""
    from pytest_lmeval.metrics.parts.worker import TookTooLong

    if isinstance(call.arguments, str):
        return f"arguments that are no JSON object: {call.arguments[:LONGEST]}"
    try:
        found = "" if schema is None else fault(call.arguments, schema)
    except TookTooLong as error:
        found = f"a pattern of the schema could not be looked for: {error}"
    return f"not valid by the schema of {call.name}: {found}" if found else ""
