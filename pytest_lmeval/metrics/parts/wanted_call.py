"""A call that is expected: its arguments, what else is right in their places, and what may be left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import field
from typing import Any

from pytest_lmeval.compact_json import json_equal
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.metrics.parts.tool_schema import Searches, fault

LONGEST = 200
KEYS = ("name", "arguments", "accept", "optional")
TEXTS = ("exact", "bfcl")
Path = tuple[str, ...]
_ABSENT = object()
# What the Berkeley Function Calling Leaderboard leaves out of texts before it compares them.
_BFCL = str.maketrans("'", '"', " ,./-_*^")


def path_of(pointer: str) -> Path:
    """Return the place that a name at the top, or a JSON pointer (``/filter/unit``), means."""
    if not pointer.startswith("/"):
        return (pointer,)
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/"))


@dataclass(frozen=True, slots=True)
class WantedCall:
    """What a call must be; values are literal, those of ``accept`` are right beside them."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    accept: Mapping[Path, Sequence[Any]] = field(default_factory=dict)
    optional: frozenset[Path] = frozenset()

    @classmethod
    def of(cls, call: Any) -> WantedCall:
        """Return the call of a record; raise ValueError that says what is no such call."""
        if not isinstance(call, Mapping) or "name" not in call or call.keys() - {*KEYS}:
            raise ValueError(f"expected an object of {', '.join(KEYS)}, with a name, got {call!r:.80}")
        name, arguments = call["name"], call.get("arguments", {})
        accept, optional = call.get("accept", {}), call.get("optional", [])
        if not isinstance(name, str) or not isinstance(arguments, Mapping):
            raise ValueError(f"expected a name, a text, and arguments, an object, got {call!r:.80}")
        if not isinstance(accept, Mapping) or not all(isinstance(each, list) and each for each in accept.values()):
            raise ValueError(
                f"accept: expected lists of values by the name or JSON pointer of an argument: {accept!r:.80}"
            )
        if not isinstance(optional, list) or not all(isinstance(each, str) for each in optional):
            raise ValueError(f"optional: expected a list of names or JSON pointers of arguments, got {optional!r:.80}")
        paths = {path_of(pointer): values for pointer, values in accept.items()}
        found = cls(name, arguments, paths, frozenset(map(path_of, optional)))
        for path in (*found.accept, *found.optional):
            found._check_place(path)
        return found

    def invalid(self, schema: Mapping[str, Any], searches: Searches, *, partial: bool) -> str:
        """Return the first way in which a call that is right here would not be valid by the schema of its tool."""
        return next(filter(None, (fault(each, schema, searches, partial=partial) for each in self._right_ones())), "")

    def difference(self, values: Mapping[str, Any], *, subset: bool, text: str) -> str:
        """Return the first thing in which the arguments ``values`` of a call are not those wanted, or ""."""
        names = dict.fromkeys([*self.arguments, *(path[0] for path in self.accept)])
        for name in names:
            wanted = self.arguments.get(name, _ABSENT)
            if name not in values:
                if (name,) not in self.optional:
                    return f"no argument {name}, expected {self._wanted(name)}"
            elif not self._fits(wanted, values[name], (name,), text):
                return f"argument {name}: expected {self._wanted(name)}, got {shown_value(values[name])}"
        more = [] if subset else [name for name in values if name not in names]
        return f"an argument too many: {more[0][:LONGEST]}" if more else ""

    def shown(self) -> str:
        """Return the call as Python writes one."""
        names = dict.fromkeys([*self.arguments, *(path[0] for path in self.accept)])
        return shown_call(self.name, {name: self._wanted(name) for name in names})

    def _wanted(self, name: str) -> str:
        own = [self.arguments[name]] if name in self.arguments else []
        return " or ".join(map(shown_value, [*own, *self.accept.get((name,), ())]))[:LONGEST]

    def _fits(self, wanted: Any, given: Any, path: Path, text: str) -> bool:
        if any(_equal(each, given, text) for each in self.accept.get(path, ())):
            return True
        deeper = any(each[: len(path)] == path and len(each) > len(path) for each in (*self.accept, *self.optional))
        if deeper and isinstance(wanted, Mapping) and isinstance(given, Mapping):
            return self._fits_within(wanted, given, path, text)
        if deeper and isinstance(wanted, list) and isinstance(given, list):
            return len(wanted) == len(given) and all(
                self._fits(one, other, (*path, str(number)), text)
                for number, (one, other) in enumerate(zip(wanted, given, strict=True))
            )
        return wanted is not _ABSENT and _equal(wanted, given, text)

    def _fits_within(self, wanted: Mapping[str, Any], given: Mapping[str, Any], path: Path, text: str) -> bool:
        below = [each[len(path)] for each in self.accept if each[: len(path)] == path and len(each) > len(path)]
        names = {*wanted, *below}
        missing = [name for name in names if name not in given]
        return (
            given.keys() <= names
            and all((*path, name) in self.optional for name in missing)
            and all(
                self._fits(wanted.get(name, _ABSENT), given[name], (*path, name), text)
                for name in names
                if name in given
            )
        )

    def _check_place(self, path: Path) -> None:
        where: Any = self.arguments
        for step in path[:-1]:
            if isinstance(where, list) and step.isdecimal() and int(step) < len(where):
                where = where[int(step)]
            elif isinstance(where, Mapping) and step in where:
                where = where[step]
            else:
                raise ValueError(f"accept, optional: the arguments have no place {'/'.join(path)!r}")
        if isinstance(where, list) and not (path[-1].isdecimal() and int(path[-1]) < len(where)):
            raise ValueError(f"accept, optional: the arguments have no place {'/'.join(path)!r}")
        if path in self.optional and isinstance(where, list):
            raise ValueError(f"optional: {'/'.join(path)!r} is an element of a list, which cannot be left out")
        if path in self.optional and path not in self.accept and path[-1] not in where:
            raise ValueError(f"optional: {'/'.join(path)!r} has no value, neither in arguments nor in accept")

    def _right_ones(self) -> Iterator[Any]:
        whole: Any = deepcopy(dict(self.arguments))
        for path, values in self.accept.items():
            if not _is_in(whole, path):
                _set(whole, path, values[0])
        yield whole
        for path, values in self.accept.items():
            for value in values:
                other = deepcopy(whole)
                _set(other, path, value)
                yield other
        for path in self.optional:
            other = deepcopy(whole)
            _set(other, path, _ABSENT)
            yield other


def shown_call(name: str, arguments: Mapping[str, str]) -> str:
    """Return a call as Python writes one, of arguments that are written already."""
    return f"{name}({', '.join(f'{key}={value}' for key, value in arguments.items())})"[: 2 * LONGEST]


def shown_value(value: Any) -> str:
    """Return a value as JSON, its beginning."""
    return json.dumps(value, ensure_ascii=False)[:LONGEST]


def _equal(one: Any, other: Any, text: str) -> bool:
    return json_equal(one, other) if text != "bfcl" else json_equal(_as_bfcl(one), _as_bfcl(other))


def _as_bfcl(value: Any) -> Any:
    if isinstance(value, str):
        return value.translate(_BFCL).lower()
    if isinstance(value, Mapping):
        return {name: _as_bfcl(each) for name, each in value.items()}
    return [_as_bfcl(each) for each in value] if isinstance(value, list) else value


def _is_in(whole: Any, path: Path) -> bool:
    for step in path[:-1]:
        whole = whole[int(step) if isinstance(whole, list) else step]
    return isinstance(whole, list) or path[-1] in whole


def _set(whole: Any, path: Path, value: Any) -> None:
    for step in path[:-1]:
        whole = whole[int(step) if isinstance(whole, list) else step]
    last = int(path[-1]) if isinstance(whole, list) else path[-1]
    if value is _ABSENT:
        del whole[last]
    else:
        whole[last] = value
