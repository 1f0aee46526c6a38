"""Parse expected calls, and find how a model's calls differ from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.call import LONGEST, Call, call_text, shown_value
from pytest_lmeval.metrics.parts.tool_schema import fault, key_in, steps_of

TEXTS = ("exact", "bfcl")
_KEYS = ("name", "arguments", "accept", "optional")
_Path = tuple[str, ...]
_ABSENT = object()
_MOST_COMPARED = 50
# The Berkeley Function Calling Leaderboard removes these characters before it compares texts.
_BFCL = str.maketrans("'", '"', " ,./-_*^")


def wanted_calls(given: Any, schemas: Mapping[str, Mapping[str, Any]], where: str, *, subset: bool) -> list[WantedCall]:
    """Return the expected calls in the list at ``where``; raise RecordRefused for a malformed call."""
    if not isinstance(given, list):
        raise RecordRefused("bad_type", where, f"expected an array of calls, got {given!r:.80}")
    found = [WantedCall.of(call, f"{where}[{number}]") for number, call in enumerate(given)]
    for number, call in enumerate(found):
        if schema := schemas.get(call.name):
            call.check(schema, f"{where}[{number}]", partial=subset)
    return found


@dataclass(frozen=True, slots=True)
class WantedCall:
    """An expected call; ``accept`` lists alternative values, and a call may omit ``optional`` arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    accept: Mapping[_Path, Sequence[Any]] = field(default_factory=dict)
    optional: Sequence[_Path] = ()

    @classmethod
    def of(cls, call: Any, where: str) -> WantedCall:
        """Parse an expected call from a record; raise RecordRefused if the call is malformed."""
        if not isinstance(call, Mapping) or not isinstance(call.get("name"), str) or call.keys() - {*_KEYS}:
            detail = f"expected an object of {', '.join(_KEYS)}, with a name, got {call!r:.80}"
            raise RecordRefused("bad_type", where, detail)
        arguments, accept, optional = call.get("arguments", {}), call.get("accept", {}), call.get("optional", [])
        if not isinstance(arguments, Mapping):
            raise RecordRefused("bad_type", f"{where}.arguments", f"expected an object, got {arguments!r:.80}")
        if not isinstance(accept, Mapping) or not all(isinstance(each, list) and each for each in accept.values()):
            detail = f"accept: expected lists of values by the name or JSON pointer of an argument: {accept!r:.80}"
            raise RecordRefused("bad_value", where, detail)
        if not isinstance(optional, list) or not all(isinstance(each, str) for each in optional):
            detail = f"optional: expected a list of names or JSON pointers of arguments, got {optional!r:.80}"
            raise RecordRefused("bad_value", where, detail)
        paths = {_path_of(pointer): values for pointer, values in accept.items()}
        found = cls(call["name"], arguments, paths, tuple(dict.fromkeys(map(_path_of, optional))))
        for path in (*found.accept, *found.optional):
            if wrong := found._misplaced(path):
                raise RecordRefused("bad_value", where, wrong)
        return found

    def check(self, schema: Mapping[str, Any], where: str, *, partial: bool) -> None:
        """Raise RecordRefused if any expected call violates the tool's schema."""
        try:
            faults = (fault(each, schema, partial=partial) for each in self._right_ones())
            wrong = next(filter(None, faults), "")
        except ScoringError as error:  # a pattern that takes too long
            wrong = str(error)
        if wrong:
            raise RecordRefused("bad_value", f"{where}.arguments", f"not valid by the schema of {self.name}: {wrong}")

    def difference(self, values: Mapping[str, Any], *, subset: bool, text: str) -> str:
        """Return the first difference between the expected arguments and ``values``, or ""."""
        names = self._names(self.arguments, ())
        for name in names:
            if name not in values:
                if (name,) not in self.optional:
                    return f"no argument {name}, expected {self._wanted(name)}"
            elif not self._fits(self.arguments.get(name, _ABSENT), values[name], (name,), text):
                return f"argument {name}: expected {self._wanted(name)}, got {shown_value(values[name])}"
        more = [] if subset else [name for name in values if name not in names]
        return f"an argument too many: {more[0][:LONGEST]}" if more else ""

    def as_python(self) -> str:
        """Return the call in Python notation."""
        return call_text(self.name, {name: self._wanted(name) for name in self._names(self.arguments, ())})

    def _wanted(self, name: str) -> str:
        own = [self.arguments[name]] if name in self.arguments else []
        return " or ".join(map(shown_value, [*own, *self.accept.get((name,), ())]))[:LONGEST]

    def _names(self, wanted: Mapping[str, Any], path: _Path) -> dict[str, None]:
        """Return the names of the object at ``path``, including names that ``accept`` adds."""
        depth = len(path)
        return dict.fromkeys([*wanted, *(each[depth] for each in self.accept if each[:depth] == path != each)])

    def _fits(self, wanted: Any, given: Any, path: _Path, text: str) -> bool:
        if any(_equal(each, given, text) for each in self.accept.get(path, ())):
            return True
        if isinstance(wanted, Mapping) and isinstance(given, Mapping):
            names = self._names(wanted, path)
            return given.keys() <= names.keys() and all(
                self._fits(wanted.get(name, _ABSENT), given[name], (*path, name), text)
                if name in given
                else (*path, name) in self.optional
                for name in names
            )
        if isinstance(wanted, list) and isinstance(given, list):
            pairs = enumerate(zip(wanted, given, strict=False))
            return len(wanted) == len(given) and all(
                self._fits(one, other, (*path, str(number)), text) for number, (one, other) in pairs
            )
        return wanted is not _ABSENT and _equal(wanted, given, text)

    def _misplaced(self, path: _Path) -> str:
        shown = repr("/".join(path))
        try:
            holder, key = _holder(self.arguments, path)
        except LookupError:
            return f"accept, optional: the arguments contain no {shown}"
        if path in self.optional and isinstance(holder, list):
            return f"optional: {shown} is an element of a list, which cannot be optional"
        if path in self.optional and path not in self.accept and key not in holder:
            return f"optional: {shown} has no value, neither in arguments nor in accept"
        return ""

    def _right_ones(self) -> Iterator[Any]:
        whole: Any = deepcopy(dict(self.arguments))
        for path, values in self.accept.items():
            holder, key = _holder(whole, path)
            if isinstance(holder, dict):
                holder.setdefault(key, values[0])
        yield whole
        others = [(path, value) for path, values in self.accept.items() for value in values]
        for path, value in [*others, *((path, _ABSENT) for path in self.optional)]:
            other = deepcopy(whole)
            holder, key = _holder(other, path)
            holder[key] = value
            if value is _ABSENT:
                del holder[key]
            yield other


def _path_of(pointer: str) -> _Path:
    """Return the path for a top-level name, or for a JSON pointer such as ``/filter/unit``."""
    return steps_of(pointer) if pointer.startswith("/") else (pointer,)


def _holder(whole: Any, path: _Path) -> tuple[Any, Any]:
    """Return the object or list that contains the end of ``path``, and the last key, or raise LookupError."""
    for step in path[:-1]:
        whole = whole[key_in(whole, step)]
    return whole, key_in(whole, path[-1])


def _equal(one: Any, other: Any, text: str) -> bool:
    return json_equal(one, other) if text != "bfcl" else json_equal(_as_bfcl(one), _as_bfcl(other))


def _as_bfcl(value: Any) -> Any:
    if isinstance(value, str):
        return value.translate(_BFCL).lower()
    if isinstance(value, Mapping):
        return {name: _as_bfcl(each) for name, each in value.items()}
    return [_as_bfcl(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class CallComparison:
    """Compares expected with actual calls; each public method returns the first difference, or "".

    ``invalid`` lists each actual call's error, or "" for a valid call.
    """

    expected: Sequence[WantedCall]
    made: Sequence[Call]
    invalid: Sequence[str]
    subset: bool
    text: str

    def in_order(self) -> str:
        """Compare the calls in order."""
        expected, made = self.expected, self.made
        for number in range(min(len(expected), len(made))):
            if difference := self._difference(number, number):
                return f"call {number + 1}: {difference}"
        if len(made) < len(expected):
            return f"no call of {expected[len(made)].as_python()}"
        return f"a call too many: {made[len(expected)].as_python()}" if len(made) > len(expected) else ""

    def in_any_order(self) -> str:
        """Compare calls in any order."""
        expected, made = self.expected, self.made
        if len(made) > len(expected):
            # A model may make any number of calls; no pairing is needed to know that there are too many.
            compared = range(min(len(expected), _MOST_COMPARED))
            alone = (n for n in range(len(made)) if all(self._difference(wanted, n) for wanted in compared))
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
        expected, call = self.expected[wanted], self.made[made]
        if call.name != expected.name:
            return f"expected {expected.name}, got {call.name[:LONGEST] or 'no name'}"
        return self.invalid[made] or expected.difference(call.values or {}, subset=self.subset, text=self.text)

    def _pairs(self) -> dict[int, int]:
        """Return the largest possible pairing of expected with actual calls, as a dict of their indexes."""
        made, expected = range(len(self.made)), range(len(self.expected))
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


def fault_of(call: Call, schema: Mapping[str, Any] | None) -> str:
    """Return why an actual call cannot be right, or ""."""
    from pytest_lmeval.metrics.parts.worker import TookTooLong

    if isinstance(call.arguments, str):
        return f"arguments that are no JSON object: {call.arguments[:LONGEST]}"
    try:
        found = "" if schema is None else fault(call.arguments, schema)
    except TookTooLong as error:
        found = f"cannot search for a pattern of the schema: {error}"
    return f"not valid by the schema of {call.name}: {found}" if found else ""
