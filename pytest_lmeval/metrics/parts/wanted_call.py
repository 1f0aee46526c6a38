"""A call that is expected: its arguments, what else is right in their places, and what may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.errors import RecordRefused, ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.call import LONGEST, call_text, shown_value
from pytest_lmeval.metrics.parts.tool_schema import fault, key_in, steps_of

TEXTS = ("exact", "bfcl")
_KEYS = ("name", "arguments", "accept", "optional")
_Path = tuple[str, ...]
_ABSENT = object()
# What the Berkeley Function Calling Leaderboard leaves out of texts before it compares them.
_BFCL = str.maketrans("'", '"', " ,./-_*^")


def wanted_calls(given: Any, schemas: Mapping[str, Mapping[str, Any]], where: str, *, subset: bool) -> list[WantedCall]:
    """Return the calls of the list at ``where``; raise RecordRefused for what no call can be."""
    if not isinstance(given, list):
        raise RecordRefused("bad_type", where, f"expected an array of calls, got {given!r:.80}")
    found = [WantedCall.of(call, f"{where}[{number}]") for number, call in enumerate(given)]
    for number, call in enumerate(found):
        if schema := schemas.get(call.name):
            call.check(schema, f"{where}[{number}]", partial=subset)
    return found


@dataclass(frozen=True, slots=True)
class WantedCall:
    """What a call must be; values are literal, those of ``accept`` are right beside them."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    accept: Mapping[_Path, Sequence[Any]] = field(default_factory=dict)
    optional: Sequence[_Path] = ()

    @classmethod
    def of(cls, call: Any, where: str) -> WantedCall:
        """Return the call of a record; raise RecordRefused that says what is no such call."""
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
        """Raise RecordRefused if a call that is right here would not be valid by the schema of its tool."""
        try:
            faults = (fault(each, schema, partial=partial) for each in self._right_ones())
            wrong = next(filter(None, faults), "")
        except ScoringError as error:  # a pattern that takes time without end
            wrong = str(error)
        if wrong:
            raise RecordRefused("bad_value", f"{where}.arguments", f"not valid by the schema of {self.name}: {wrong}")

    def difference(self, values: Mapping[str, Any], *, subset: bool, text: str) -> str:
        """Return the first thing in which the arguments ``values`` of a call are not those wanted, or ""."""
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
        """Return the call as Python writes one."""
        return call_text(self.name, {name: self._wanted(name) for name in self._names(self.arguments, ())})

    def _wanted(self, name: str) -> str:
        own = [self.arguments[name]] if name in self.arguments else []
        return " or ".join(map(shown_value, [*own, *self.accept.get((name,), ())]))[:LONGEST]

    def _names(self, wanted: Mapping[str, Any], path: _Path) -> dict[str, None]:
        """Return the names of the object at ``path``, of which some may only be accepted."""
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
            return f"accept, optional: the arguments have no place {shown}"
        if path in self.optional and isinstance(holder, list):
            return f"optional: {shown} is an element of a list, which cannot be left out"
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
    """Return the place that a name at the top, or a JSON pointer (``/filter/unit``), means."""
    return steps_of(pointer) if pointer.startswith("/") else (pointer,)


def _holder(whole: Any, path: _Path) -> tuple[Any, Any]:
    """Return the object or list that the end of ``path`` is in, and its key there; raise LookupError without one."""
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
