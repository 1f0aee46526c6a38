"""The table of separated values in a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_lmeval.errors import RecordRefused, not_one_of
from pytest_lmeval.numbers import is_whole

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}


class Table(NamedTuple):
    """Lines in a row with the same number of columns."""

    lines: int
    columns: int
    separator: str


def find(text: str, extras: Mapping[str, Any]) -> Table | None:
    """Return the longest table of a text, None without one."""
    asked = separator_of(extras)
    lines = text.replace("\r\n", "\n").split("\n")
    tables = [
        table
        for separator in _SEPARATORS.values()
        if separator != " " or asked == " "
        for table in _tables(lines, separator)
    ]
    # Of tables of one length, that with the separator asked for.
    return max(tables, key=lambda table: (table.lines, table.separator == asked), default=None)


def _tables(lines: Sequence[str], separator: str) -> list[Table]:
    tables, run, columns = [], 0, 0
    for line in [*lines, ""]:
        fields = _fields(line, separator)
        if fields == columns:
            run += 1
            continue
        if run >= 2 and columns >= 2:
            tables.append(Table(run, columns, separator))
        run, columns = 1, fields
    return tables


def _fields(line: str, separator: str) -> int:
    # Every second piece between quotes is quoted; a doubled quote adds an empty piece that changes nothing.
    return 1 + sum(piece.count(separator) for piece in line.strip(" ").split('"')[::2])


def separator_of(extras: Mapping[str, Any]) -> str | None:
    """Return the separator that is asked for; None where any will do."""
    given = extras.get("separator")
    if given is None:
        return None
    if isinstance(given, str) and given in _SEPARATORS.values():
        return given
    if not isinstance(given, str) or given not in _SEPARATORS:
        raise RecordRefused("bad_value", "extras.separator", not_one_of(given, _SEPARATORS))
    return _SEPARATORS[given]


def columns_of(extras: Mapping[str, Any]) -> int:
    """Return how many columns are asked for."""
    given = extras.get("columns")
    if isinstance(given, list) and given:
        return len(given)
    if is_whole(given) and given > 0:
        return given
    raise RecordRefused("bad_value", "extras.columns", f"expected a number or a list of names, got {given!r:.80}")
