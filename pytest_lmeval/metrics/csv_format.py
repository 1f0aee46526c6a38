"""Whether an answer holds a table of separated values, with the right separator and number of columns.

A table is at least two lines in a row with the same number of fields, at least two. A separator inside double quotes
separates nothing; a line break always ends a line. The longest table counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_lmeval.metrics.parts.declare import metric


@metric(extras=("separator",), binary=True)
def has_csv(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the prediction contains a table, whatever its separator, else 0.0.

    A space counts as a separator only where ``extras.separator`` asks for it: two lines of prose may well have the
    same number of words. Raises RecordRefused for extras that are not understood.
    """
    from pytest_lmeval.metrics.parts.csv_table import find

    return float(find(prediction, extras) is not None)


@metric(extras=("separator",), binary=True)
def csv_separator(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the table is separated by ``extras.separator``: comma, semicolon, tab or space, or the character.

    Without that key any table will do.
    """
    from pytest_lmeval.metrics.parts.csv_table import find, separator_of

    table = find(prediction, extras)
    return float(table is not None and table.separator == (separator_of(extras) or table.separator))


@metric(extras=("columns", "separator"), binary=True)
def csv_columns(prediction: str, targets: Sequence[str], extras: Mapping[str, Any]) -> float:
    """Return 1.0 if the table has as many columns as ``extras.columns``, a number or a list of names, asks for."""
    from pytest_lmeval.metrics.parts.csv_table import columns_of, find

    wanted = columns_of(extras)
    table = find(prediction, extras)
    return float(table is not None and table.columns == wanted)
