"""One data file to its rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.lines import number_lines, parse_line

__all__ = ["READERS", "read_rows"]

# A row may hold a long document: what limits a line of a task file does not limit data.
_LONGEST_ROW = 64 << 20
_CSV_FIELD = 16 << 20


class _Reader(Protocol):
    def __call__(self, path: Path, data: bytes) -> list[dict[str, Any]]: ...


def read_rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    """Return the rows of the file at ``path``, whose bytes are ``data``; raise RecordRefused for the first bad one."""
    return READERS[path.suffix](path, data)


def _jsonl(path: Path, data: bytes) -> list[dict[str, Any]]:
    rows = []
    for number, line in number_lines(data):
        try:
            row = parse_line(line, _LONGEST_ROW)
        except RecordRefused as refused:
            raise _bad(path, number, refused.detail) from None
        if not isinstance(row, dict):
            raise _bad(path, number, f"expected an object, got {row!r:.80}")
        rows.append(row)
    return rows


def _csv(path: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _bad(path, data[: error.start].count(b"\n") + 1, "not UTF-8") from None
    csv.field_size_limit(max(csv.field_size_limit(), _CSV_FIELD))
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, fields) for fields in reader if fields]
    except csv.Error as error:
        raise _bad(path, reader.line_num, str(error)) from None
    if not lines:
        return []
    (_, header), *rest = lines
    if len(set(header)) < len(header):
        raise _bad(path, 1, f"two columns of one name in {', '.join(header)}")
    for number, fields in rest:
        if len(fields) != len(header):
            raise _bad(path, number, f"{len(fields)} fields, the header has {len(header)} ({', '.join(header)})")
    return [dict(zip(header, fields, strict=True)) for _, fields in rest]


def _parquet(path: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        detail = f"{path.name}: reading parquet needs pyarrow: pip install 'pytest-lmeval[parquet]'"
        raise RecordRefused("bad_value", "dataset", detail) from None
    try:
        rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(data)).to_pylist()
    except pyarrow.ArrowException as error:
        raise RecordRefused("bad_value", "dataset", f"{path.name}: {error}") from None
    return rows


def _bad(path: Path, number: int, detail: str) -> RecordRefused:
    return RecordRefused("bad_value", "dataset", f"{path.name}:{number}: {detail}")


READERS: Mapping[str, _Reader] = MappingProxyType({".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet})
"""By suffix."""
