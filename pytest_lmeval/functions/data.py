"""The rows of an eval function, each with the id of its example."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

from pytest_lmeval.data.rows import SUFFIXES, BadRows, read_rows
from pytest_lmeval.errors import BadTaskFile, LmevalError
from pytest_lmeval.functions.declare import EvalFunction
from pytest_lmeval.text import portable_path

_FIXED = frozenset({str, int, float, bool, type(None), bytes, complex, frozenset, range})
_OF_FIXED_VALUES = frozenset({"datetime", "decimal", "fractions", "uuid", "pathlib", "zoneinfo", "re"})
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class DataRows(NamedTuple):
    """Rows with the ids of their examples, the file they are from, empty without one, and a SHA-256 over them."""

    rows: Sequence[Mapping[str, Any]]
    ids: Sequence[str]
    path: str
    sha256: str

    def at(self, places: Sequence[int]) -> DataRows:
        """Return the rows at ``places`` alone."""
        rows, ids = [self.rows[place] for place in places], [self.ids[place] for place in places]
        return DataRows(rows, ids, self.path, self.sha256)


def rows_of(task: EvalFunction, folder: Path) -> DataRows:
    """Return the rows that ``task`` is parametrized with; ``folder`` is that of the test file.

    A row's id is its ``id``, a text or a whole number; where no row has one, its number, from 1. Raises BadTaskFile
    that says where: for data that is missing, unreadable or empty, rows that are no mappings, and ids that do not tell
    the examples apart.
    """
    where = f"eval_task({task.name!r})"
    given = task.data
    if isinstance(given, str | Path):
        path = folder / given
        rows, sha256 = _from_file(path, where)
        return DataRows(rows, _ids(rows, f"{where}: {given}"), portable_path(str(path)), sha256)
    if callable(given):
        try:
            given = given()
        except LmevalError as error:
            raise BadTaskFile(f"{where}: data: {error}") from error
        except SystemExit as error:  # pytest would end with an internal error
            raise BadTaskFile(f"{where}: data: the function called sys.exit({error.code!r}); return rows") from error
    rows = _checked(given, where)
    return DataRows(rows, _ids(rows, where), "", hashlib.sha256(row_text(rows).encode()).hexdigest())


def _checked(given: object, where: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise BadTaskFile(f"{where}: data: expected a path, a list of rows or a function, got {given!r:.80}")
    for number, row in enumerate(given, start=1):
        if not isinstance(row, Mapping):
            raise BadTaskFile(f"{where}: data: row {number}: expected a mapping, got {row!r:.80}")
    if not given:
        raise BadTaskFile(f"{where}: data: no rows")
    return given


def row_text(row: Any) -> str:
    """Return what a row is told apart by, and shown as: JSON with sorted keys; what has no JSON as its ``repr``."""
    return json.dumps(row, ensure_ascii=False, sort_keys=True, default=_shown)


def fresh(value: Any, note_shared: Callable[[Any], None]) -> Any:
    """Return a copy of a row or a parameter for one call: of objects and lists of JSON, and of tuples.

    ``note_shared`` is called with any other value that can be changed: all calls share it.
    """
    kind = type(value)
    if kind is dict:
        # Most values are text or numbers, and a call for each would cost more than all else here.
        return {name: each if type(each) in _FIXED else fresh(each, note_shared) for name, each in value.items()}
    if kind is list or kind is tuple:
        return kind([each if type(each) in _FIXED else fresh(each, note_shared) for each in value])
    if kind not in _FIXED and not _is_fixed(value):
        note_shared(value)
    return value


def _is_fixed(value: object) -> bool:
    return isinstance(value, Enum | type | FunctionType) or type(value).__module__ in _OF_FIXED_VALUES


def _shown(value: object) -> str:
    # Where in memory an object lies says nothing of it.
    return _ADDRESS.sub("", repr(value))


def _from_file(path: Path, where: str) -> tuple[Sequence[Mapping[str, Any]], str]:
    if path.suffix not in SUFFIXES:
        raise BadTaskFile(f"{where}: data: {path.name!r} is not one of {', '.join(SUFFIXES)}")
    try:
        rows, data = read_rows(path)
    except OSError as error:
        raise BadTaskFile(f"{where}: data: {path}: {error.strerror}; paths begin at the test file's folder") from None
    except BadRows as error:
        raise BadTaskFile("\n".join(f"{where}: data: {fault}" for fault in error.faults)) from None
    if not rows:
        raise BadTaskFile(f"{where}: data: {path.name} has no rows")
    return rows, hashlib.sha256(data).hexdigest()


def _ids(rows: Sequence[Mapping[str, Any]], where: str) -> list[str]:
    given = [row.get("id") for row in rows]
    if all(each is None for each in given):
        return [str(number) for number in range(1, len(rows) + 1)]
    first: dict[str, int] = {}
    for number, each in enumerate(given, start=1):
        if not isinstance(each, str | int) or isinstance(each, bool) or each == "":
            raise BadTaskFile(f"{where}: row {number}: id: expected a text or a whole number, got {each!r:.80}")
        if (other := first.setdefault(str(each), number)) != number:
            raise BadTaskFile(f"{where}: rows {other} and {number} have the same id {each!r:.80}")
    return list(first)
