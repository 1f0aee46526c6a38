"""Represent the results of a large ledger; long text stays in the file, and is read when it is used."""

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
from typing import Any, NamedTuple

from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.recorded import parse_object, recorded_messages, recorded_result
from pytest_lmeval.types import ExampleAnswer, ExampleOutcome, ExampleQuestion, ExampleResult

_BOM = b"\xef\xbb\xbf"
# Keep short texts in memory: the digest uses all outputs, and the metrics per label use predictions and targets.
_SHORT = 64
_IN_FILE = object()
_EMPTY, _ONE = dict[str, Any](), 1.0


class StoredLines:
    """Gives random access to the lines of a ledger after one pass over them.

    The file stays open as long as a result refers to it. Other programs may move or remove the file, but not rewrite
    it.
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
        """Return the result in ``record``, the last line read; raise a ValueError that names an invalid field."""
        return stored(recorded_result(record), StoredLine(self, len(self._sums) - 1))

    def add(self, start: int, line: bytes) -> StoredLine:
        """Register a line that was written at the byte offset ``start``, after all known lines."""
        # No result refers to the bytes between the known lines and ``start``.
        self._ends += array("Q", [start, start + len(line)])
        self._sums += array("I", [0, zlib.crc32(line)])
        return StoredLine(self, len(self._sums) - 1)

    def record(self, number: int) -> dict[str, Any]:
        """Return the fields of line ``number``, counted from 0; raise UsageError if the file was rewritten."""
        if self._last[0] != number:
            start, end = self._ends[number : number + 2]
            line = os.pread(self._descriptor, end - start, start)
            found = parse_object(line.removeprefix(_BOM).strip(b" \t\r\n"))
            if found is None or zlib.crc32(line) != self._sums[number]:
                raise UsageError(f"{self.path}:{number + 1}: changed while it was read; rerun the command")
            self._last = number, found
        return self._last[1]


class StoredLine(NamedTuple):
    """The line that holds a result's text."""

    lines: StoredLines
    number: int


def stored(result: ExampleResult, line: StoredLine) -> ExampleResult:
    """Return a result that equals ``result`` but reads its long text from ``line``."""
    groups = (result.question, result.answer, result.outcome)
    question, answer, outcome = (_kept(kind, group, line) for kind, group in zip(_STORED, groups, strict=True))
    return ExampleResult(question=question, answer=answer, outcome=outcome)


def _kept(kind: Any, group: Any, line: StoredLine) -> Any:
    kept = kind(**{name: keep(getattr(group, name)) for name, keep in kind.keeping})
    kept.at = line
    return kept


def _unless_short(value: Any) -> Any:
    is_short = not value or (isinstance(value[0], str) and sum(map(len, value)) < _SHORT)
    return value if is_short else _IN_FILE


def _number(value: Any) -> Any:
    # Most thresholds and scores are 1.0, so share one object.
    return _ONE if type(value) is float and value == _ONE else value


def _same(value: Any) -> Any:
    return value


def _long(value: Any) -> Any:
    return _IN_FILE if value else value


def _object(value: Any) -> Any:
    return value or _EMPTY


_LATE: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    ExampleQuestion: {
        **dict.fromkeys(("prompt", "messages", "request", "scoring_hash"), _long),
        "targets": _unless_short,
    },
    ExampleAnswer: {"outputs": _unless_short, "thoughts": _long, "exchanges": _long},
    ExampleOutcome: {"predictions": _unless_short, "error": _long, "details": lambda value: _long(value) or _EMPTY},
}
# The values of these fields differ between examples; in most other fields, equal values share one object.
_OWN = frozenset({"id", "hash", "item"})
_SHARED: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("str", "Status"), intern),
    **dict.fromkeys(("float", "float | None"), _number),
    **dict.fromkeys(("Mapping[str, float]", "Mapping[str, int]", "Mapping[str, str]"), _object),
}


def _stored(kind: type) -> Any:
    """Return a subclass of ``kind`` that reads its text from a ledger line, but compares and pickles like ``kind``."""
    types = {each.name: str(each.type) for each in fields_of(kind)}
    late, values = _LATE[kind], attrgetter(*types)
    members: dict[str, Any] = {
        "__slots__": ("at",),
        "__eq__": lambda self, other: values(self) == values(other) if isinstance(other, kind) else NotImplemented,
        "__hash__": kind.__hash__,
        "__reduce__": lambda self: (partial(kind, **dict(zip(types, values(self), strict=True))), ()),
        "keeping": [
            (name, late.get(name) or (_same if name in _OWN else _SHARED.get(of, _same))) for name, of in types.items()
        ],
    }
    reading = {name: property(partial(_read, name, getattr(kind, name).__get__)) for name in late}
    return type(f"Stored{kind.__name__}", (kind,), {**members, **reading})


def _read(name: str, held: Callable[[Any], Any], group: Any) -> Any:
    value = held(group)
    if value is not _IN_FILE:
        return value
    found = group.at.lines.record(group.at.number)[name]
    if name == "messages":
        return recorded_messages(found)
    return tuple(found) if isinstance(found, list) else found


_STORED = [_stored(kind) for kind in _LATE]
