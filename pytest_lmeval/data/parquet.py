"""Read the rows of a parquet file in batches, and move bytes in cells from memory to files."""

from __future__ import annotations

import io
import math
from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_lmeval.data.limits import BadRows, check_bytes, check_rows
from pytest_lmeval.data.spilled import Cell, spilled

Cells = dict[str, Any]
"""A row, as a mapping of columns to values."""
_BATCH, _FEW = 4096, 16
_BUFFER = 1 << 16
_BYTES = ("binary", "large_binary")


def parquet_rows(path: Path, source: Path | io.BytesIO, used: Collection[str] | None = None) -> list[Cells]:
    """Return the rows in ``source``, the content of ``path``; raise BadRows if the content is too large or not parquet.

    ``used`` names the columns that a task uses. With ``used``, values become JSON values, bytes in these columns become
    :class:`Cell` objects, and other columns with bytes become None. Without ``used``, values stay as pyarrow
    returns them.
    """
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise BadRows(f"{path.name}: reading parquet needs pyarrow: pip install 'pytest-lmeval[parquet]'") from None
    try:
        # With a buffer, reading some columns does not load the whole file.
        file = parquet.ParquetFile(source, buffer_size=0 if used is None else _BUFFER, pre_buffer=used is None)
        groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        names = file.schema_arrow.names
        if len(set(names)) < len(names):
            raise BadRows(f"{path.name}: expected a different name for every column, got {', '.join(names)}")
        check_rows(path.name, file.metadata.num_rows)
        check_bytes(path.name, sum(group.total_byte_size for group in groups))
        rows = _rows(path.name, file) if used is None else _json_rows(path.name, file, used)
        pyarrow.default_memory_pool().release_unused()
    except (pyarrow.ArrowException, OSError) as error:
        raise BadRows(f"{path.name}: not parquet: {str(error)[:200]}") from None
    return rows


def _rows(name: str, file: Any) -> list[Cells]:
    rows: list[Cells] = []
    size = 0
    for batch in file.iter_batches(_BATCH):
        # A file stores a repeated value once, but each copy takes memory.
        size += batch.nbytes
        check_bytes(name, size)
        rows += batch.to_pylist()
    return rows


def _json_rows(name: str, file: Any, used: Collection[str]) -> list[Cells]:
    binary = {field.name for field in file.schema_arrow if _has_bytes(field.type)}
    columns = [each for each in file.schema_arrow.names if each not in binary or each in used]
    unread = dict.fromkeys(sorted(binary.difference(columns)))
    rows: list[Cells] = []
    size = 0
    for batch in file.iter_batches(_FEW if binary.intersection(columns) else _BATCH, columns=columns):
        size += batch.nbytes
        check_bytes(name, size)
        found: list[list[Any]] = []
        for column, values in zip(columns, batch.columns, strict=True):
            if column in binary:
                # Convert one value at a time, because the bytes of a batch are large.
                places = enumerate(values, len(rows) + 1)
                found.append([_cell(value.as_py(), f"{name}:{place} {column}") for place, value in places])
            else:
                found.append([_as_json(value) for value in values.to_pylist()])
        rows += [{**dict(zip(columns, cells, strict=True)), **unread} for cells in zip(*found, strict=True)]
    return rows


def _has_bytes(kind: Any) -> bool:
    """Return True for a type that contains bytes, such as the struct of bytes and path that ``datasets`` writes."""
    return str(kind) in _BYTES or any(_has_bytes(kind.field(number).type) for number in range(kind.num_fields))


def _cell(value: Any, source: str) -> Any:
    if isinstance(value, list):
        return [_cell(each, f"{source}[{number}]") for number, each in enumerate(value)]
    if isinstance(value, dict) and value.keys() == {"bytes", "path"}:
        return value["path"] if value["bytes"] is None else _cell(value["bytes"], source)
    return Cell(spilled(value), source) if isinstance(value, bytes) else _as_json(value)


def _as_json(value: Any) -> Any:
    """Convert a pyarrow value to a JSON value; dates and similar values become text."""
    if isinstance(value, dict):
        return {str(key): _as_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | bool | int) else str(value)
