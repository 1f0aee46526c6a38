"""Give columns one type each, as ``datasets`` does: csv as pandas reads it, numbers as Arrow stores them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from pytest_lmeval.errors import RecordRefused

Row = dict[str, Any]
# Texts that pandas reads as an empty cell.
_EMPTY = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# With more digits, or an exponent, pandas and Python may differ in the last bit.
_DECIMAL = re.compile(r"[+-]?(?=(?:\.?[0-9]){1,15}\.?$)[0-9]*\.?[0-9]*")
# The number of rows whose types are inferred together.
_BLOCK = 10_000
_READ: Mapping[str, Callable[[str], Any]] = {
    "whole numbers": int,
    "decimal numbers": float,
    "truth values": lambda text: text.lower() == "true",
    "texts": str,
}


def typed(name: str, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of csv files with typed values; raise RecordRefused for a column of uncertain type."""
    found: list[Row] = []
    kinds: dict[str, str] = {}
    for block in (rows[start : start + _BLOCK] for rows in parts for start in range(0, len(rows), _BLOCK)):
        columns = {column: [row[column] for row in block] for column in block[0]}
        for column, texts in columns.items():
            kind = _kind(texts)
            if not kind or kinds.setdefault(column, kind) != kind:
                what = "numbers of an unusual form" if not kind else f"{kinds[column]}, later {kind}"
                detail = f"{name}: the column {column!r} has {what}: the harness may infer other types"
                raise RecordRefused("bad_value", "dataset", f"{detail}; convert the file to jsonl or parquet")
            columns[column] = [None if text in _EMPTY else _READ[kind](text) for text in texts]
        found += [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return found


def same_numbers(values: list[Any]) -> list[Any]:
    """Return ``values`` with whole numbers as floats if there are floats, in lists, too; else ``values`` itself."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int, float}:
        return [float(value) if type(value) is int else value for value in values]
    if kinds == {list}:
        inner = [each for value in values for each in value or ()]
        if (floats := same_numbers(inner)) is not inner:
            left = iter(floats)
            return [value if value is None else [*islice(left, len(value))] for value in values]
    return values


def _kind(texts: Sequence[str]) -> str:
    """Return the type of a column, "" if it is uncertain; whole numbers beside empty cells are decimal ones."""
    full = [text for text in texts if text not in _EMPTY]
    if len(full) == len(texts) and all(map(_WHOLE.fullmatch, full)):
        return "whole numbers"
    if all(map(_DECIMAL.fullmatch, full)):
        return "decimal numbers"
    if all(text.lower() in ("true", "false") for text in full):
        return "truth values"
    return "" if all(map(_is_number, full)) else "texts"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
