"""Check that an answer contains a table of separated values, with the right separator and number of columns.

A table consists of two or more consecutive lines that all have the same number of fields, at least two. A separator
inside double quotes does not count, but a line break always ends a line. Only the longest table counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_lmeval.errors import RecordRefused, not_one_of
from pytest_lmeval.metrics.parts.declare import Extras, metric
from pytest_lmeval.numbers import is_whole

_SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " "}


@metric(extras=("separator",), binary=True)
def has_csv(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the prediction contains a table, with any separator, else 0.0.

    A space counts as a separator only if ``extras.separator`` names it, because two lines of prose may have the same
    number of words. Raises RecordRefused for invalid extras.
    """
    return float(_longest_table(prediction, extras) is not None)


@metric(extras=("separator",), binary=True)
def csv_separator(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if ``extras.separator``, a character or its name, separates the table's fields, else 0.0.

    The names are ``comma``, ``semicolon``, ``tab`` and ``space``. Without ``extras.separator``, any table passes.
    """
    table = _longest_table(prediction, extras)
    return float(table is not None and table.separator == (_separator_of(extras) or table.separator))


@metric(extras=("columns", "separator"), binary=True)
def csv_columns(prediction: str, targets: Sequence[str], extras: Extras) -> float:
    """Return 1.0 if the table has as many columns as ``extras.columns`` (a number, or a list of names), or else 0.0."""
    given = extras.get("columns")
    wanted = len(given) if isinstance(given, list) else given
    if not is_whole(wanted) or wanted <= 0:
        raise RecordRefused("bad_value", "extras.columns", f"expected a number or a list of names, got {given!r:.80}")
    table = _longest_table(prediction, extras)
    return float(table is not None and table.columns == wanted)


class _Table(NamedTuple):
    lines: int
    columns: int
    separator: str


def _longest_table(text: str, extras: Extras) -> _Table | None:
    asked = _separator_of(extras)
    lines = text.replace("\r\n", "\n").split("\n")
    separators = [each for each in _SEPARATORS.values() if each != " " or asked == " "]
    tables = [table for separator in separators for table in _tables(lines, separator)]
    # If two tables have the same length, the requested separator decides.
    return max(tables, key=lambda table: (table.lines, table.separator == asked), default=None)


def _tables(lines: Sequence[str], separator: str) -> list[_Table]:
    tables, run, columns = [], 0, 0
    for line in [*lines, ""]:
        # Every second piece between quotes is quoted; a doubled quote adds an empty piece that changes nothing.
        fields = 1 + sum(piece.count(separator) for piece in line.strip(" ").split('"')[::2])
        if fields == columns:
            run += 1
            continue
        if run >= 2 and columns >= 2:
            tables.append(_Table(run, columns, separator))
        run, columns = 1, fields
    return tables


def _separator_of(extras: Extras) -> str | None:
    given = extras.get("separator")
    if given is None or (isinstance(given, str) and given in _SEPARATORS.values()):
        return given
    if not isinstance(given, str) or given not in _SEPARATORS:
        raise RecordRefused("bad_value", "extras.separator", not_one_of(given, _SEPARATORS))
    return _SEPARATORS[given]
