"""Whether an answer holds a table of separated values, with the right separator and number of columns.

A table is at least two lines in a row with the same number of fields, at least two. A separator inside double quotes
separates nothing; a line break always ends a line. The longest table counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_lmeval.errors import RecordRefused, not_one_of
from pytest_lmeval.metrics.parts.declare import metric
from pytest_lmeval.numbers import is_whole

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}


class _Table(NamedTuple):
    lines: int
    columns: int
    separator: str


@metric(extras=("separator",), binary=True)
def has_csv(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction contains a table, whatever its separator, else 0.0.

    A space counts as a separator only where ``extras.separator`` asks for it: two lines of prose may well have the
    same number of words. Raises RecordRefused for extras that are not understood.
    """
    return float(_find(prediction, extras) is not None)


@metric(extras=("separator",), binary=True)
def csv_separator(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the table is separated by ``extras.separator``: comma, semicolon, tab or space, or the character.

    Without that key any table will do.
    """
    table = _find(prediction, extras)
    return float(table is not None and table.separator == (_separator(extras) or table.separator))


@metric(extras=("columns", "separator"), binary=True)
def csv_columns(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the table has as many columns as ``extras.columns``, a number or a list of names, asks for."""
    wanted = _columns(extras)
    table = _find(prediction, extras)
    return float(table is not None and table.columns == wanted)


def _find(text: str, extras: Mapping[str, Any]) -> _Table | None:
    asked = _separator(extras)
    lines = text.replace("\r\n", "\n").split("\n")
    tables = [
        table
        for separator in _SEPARATORS.values()
        if separator != " " or asked == " "
        for table in _tables(lines, separator)
    ]
    # Of tables of one length, that with the separator asked for.
    return max(tables, key=lambda table: (table.lines, table.separator == asked), default=None)


def _tables(lines: Sequence[str], separator: str) -> list[_Table]:
    tables, run, columns = [], 0, 0
    for line in [*lines, ""]:
        fields = _fields(line, separator)
        if fields == columns:
            run += 1
            continue
        if run >= 2 and columns >= 2:
            tables.append(_Table(run, columns, separator))
        run, columns = 1, fields
    return tables


def _fields(line: str, separator: str) -> int:
    # Every second piece between quotes is quoted; a doubled quote adds an empty piece that changes nothing.
    return 1 + sum(piece.count(separator) for piece in line.strip(" ").split('"')[::2])


def _separator(extras: Mapping[str, Any]) -> str | None:
    given = extras.get("separator")
    if given is None:
        return None
    if isinstance(given, str) and given in _SEPARATORS.values():
        return given
    if not isinstance(given, str) or given not in _SEPARATORS:
        raise RecordRefused("bad_value", "extras.separator", not_one_of(given, _SEPARATORS))
    return _SEPARATORS[given]


def _columns(extras: Mapping[str, Any]) -> int:
    given = extras.get("columns")
    if isinstance(given, list) and given:
        return len(given)
    if is_whole(given) and given > 0:
        return given
    raise RecordRefused("bad_value", "extras.columns", f"expected a number or a list of names, got {given!r:.80}")
