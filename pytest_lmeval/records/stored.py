"""Results of a large ledger whose texts stay in the file: each is read again when somebody asks for it."""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields as fields_of
from functools import partial
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.recorded import parse_object, recorded_result
from pytest_lmeval.types import ExampleAnswer, ExampleOutcome, ExampleQuestion, ExampleResult

_BOM = b"\xef\xbb\xbf"
# The digest is taken of all outputs, and classes are counted of predictions and targets: short ones are kept.
_SHORT = 64
_IN_FILE = object()
_EMPTY, _ONE = dict[str, Any](), 1.0


class StoredLines:
    """The lines of a ledger, each of them again after all were iterated over once.

    The file stays open while a result refers to it, and may be moved or removed; it must not be written anew.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._ends = array("Q", [0])
        self._sums = array("I")
        self._last: tuple[int, dict[str, Any]] = -1, {}

    def __iter__(self) -> Iterator[bytes]:
        with open(self._descriptor, "rb", closefd=False) as file:
            for line in file:
                self._ends.append(self._ends[-1] + len(line))
                self._sums.append(zlib.crc32(line))
                yield line

    def __del__(self) -> None:
        os.close(self._descriptor)

    def result(self, record: Mapping[str, Any]) -> ExampleResult:
        """Return the result of the line that was iterated over last; raise ValueError that names a field at fault."""
        return stored(recorded_result(record), StoredLine(self, len(self._sums) - 1))

    def add(self, start: int, line: bytes) -> StoredLine:
        """Note a line that was written from the byte ``start`` on, after all that are known."""
        # What is between is of no interest: a line that nobody asks for.
        self._ends += array("Q", [start, start + len(line)])
        self._sums += array("I", [0, zlib.crc32(line)])
        return StoredLine(self, len(self._sums) - 1)

    def record(self, number: int) -> dict[str, Any]:
        """Return the fields of a line, from 0; raise UsageError where the file was written anew."""
        if self._last[0] != number:
            start, end = self._ends[number : number + 2]
            line = os.pread(self._descriptor, end - start, start)
            found = parse_object(line.removeprefix(_BOM).strip(b" \t\r\n"))
            if found is None or zlib.crc32(line) != self._sums[number]:
                raise UsageError(f"{self.path}:{number + 1}: changed while it was read; run the command again")
            self._last = number, found
        return self._last[1]


class StoredLine:
    """Where the texts of a result are."""

    __slots__ = ("lines", "number")

    def __init__(self, lines: StoredLines, number: int) -> None:
        self.lines = lines
        self.number = number


def stored(result: ExampleResult, line: StoredLine) -> ExampleResult:
    """Return a result that equals ``result``, whose line it is, and reads its texts there."""
    groups = (result.question, result.answer, result.outcome)
    question, answer, outcome = (_kept(kind, group, line) for kind, group in zip(_STORED, groups, strict=True))
    return ExampleResult(question=question, answer=answer, outcome=outcome)


def _kept(kind: Any, group: Any, line: StoredLine) -> Any:
    kept = kind(**{name: keep(getattr(group, name)) for name, keep in kind.keeping})
    kept.at = line
    return kept


def _long(value: Any) -> Any:
    return _IN_FILE if value else value


def _unless_short(value: Any) -> Any:
    is_short = not value or (isinstance(value[0], str) and sum(map(len, value)) < _SHORT)
    return value if is_short else _IN_FILE


def _number(value: Any) -> Any:
    # Nearly every threshold, and most scores.
    return _ONE if type(value) is float and value == _ONE else value


def _as_it_is(value: Any) -> Any:
    return value


_LATE: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    ExampleQuestion: {"prompt": _long, "targets": _unless_short, "request": _long, "scoring_hash": _long},
    ExampleAnswer: {"outputs": _unless_short, "thoughts": _long, "exchanges": _long},
    ExampleOutcome: {"predictions": _unless_short, "error": _long, "details": lambda value: _long(value) or _EMPTY},
}
# Every example has its own; what others have, too, is held once.
_OWN = frozenset({"id", "hash", "item"})
_SHARED: Mapping[str, Callable[[Any], Any]] = {
    "str": intern,
    "Status": intern,
    "float": _number,
    "float | None": _number,
    "Mapping[str, float]": lambda value: value or _EMPTY,
    "Mapping[str, int]": lambda value: value or _EMPTY,
    "Mapping[str, str]": lambda value: value or _EMPTY,
}


def _stored(kind: type) -> Any:
    """Return the class of a group whose texts are read out of its line; it equals, and pickles as, what they make."""
    types = {each.name: str(each.type) for each in fields_of(kind)}
    late, values = _LATE[kind], attrgetter(*types)
    members: dict[str, Any] = {
        "__slots__": ("at",),
        "__eq__": lambda self, other: values(self) == values(other) if isinstance(other, kind) else NotImplemented,
        "__hash__": kind.__hash__,
        "__reduce__": lambda self: (partial(kind, **dict(zip(types, values(self), strict=True))), ()),
        "keeping": [
            (name, late.get(name) or (_as_it_is if name in _OWN else _SHARED.get(of, _as_it_is)))
            for name, of in types.items()
        ],
    }
    reading = {name: property(partial(_read, name, getattr(kind, name).__get__)) for name in late}
    return type(f"Stored{kind.__name__}", (kind,), {**members, **reading})


def _read(name: str, held: Callable[[Any], Any], group: Any) -> Any:
    value = held(group)
    if value is not _IN_FILE:
        return value
    found = group.at.lines.record(group.at.number)[name]
    return tuple(found) if isinstance(found, list) else found


_STORED = [_stored(kind) for kind in _LATE]
