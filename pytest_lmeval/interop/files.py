"""Read published files record by record, and write new files without overwriting others."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.data.rows import BadRows, csv_table
from pytest_lmeval.errors import RecordRefused, UsageError
from pytest_lmeval.file_names import FileNames

_TEXT_OR_STRANGE = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b')


def without_strange_numbers(text: str) -> str:
    """Return JSON with null for NaN and infinities, which Python writes and JSON lacks."""
    return _TEXT_OR_STRANGE.sub(lambda found: found[1] or "null", text) if "NaN" in text or "Infinity" in text else text


def read_records(source: Path, *, from_python: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``(place, record)`` for every line of a JSONL file, decompressed if it ends in ``.gz``.

    The place is ``path:line``. ``from_python`` reads NaN and infinities, which JSON lacks, as null. Raises UsageError
    if the file cannot be read, a line is not an object, or the file has no record.
    """
    found = False
    for number, line in number_lines(_read(source)):
        place = f"{source}:{number}"
        if from_python:
            line = without_strange_numbers(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        try:
            record = parse_line(line, len(line))
        except RecordRefused as refused:
            raise UsageError(f"{place}: not JSON: {refused.detail}") from None
        if not isinstance(record, dict):
            raise UsageError(f"{place}: expected an object, got {record!r:.80}")
        found = True
        yield place, record
    if not found:
        raise UsageError(f"{source}: holds no record; expected one JSON object per line")


def text_of(record: Mapping[str, Any], key: str, place: str) -> str:
    """Return the text under ``key``; raise UsageError with the place if the value is missing or not text."""
    if key not in record:
        raise UsageError(f"{place}: {key!r} is missing; got {', '.join(map(repr, record)) or 'no key at all'}")
    value = record[key]
    if not isinstance(value, str):
        raise UsageError(f"{place}: {key!r} must be a string, got {value!r:.80}")
    return value


def encode_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    r"""Return the records as JSONL in UTF-8, with ``\n`` after each line."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode("utf-8")


def check_new(key: str, id: str, place: str, places: dict[str, str]) -> None:
    """Add an id with its ``place``; raise UsageError if the id was used at an earlier place."""
    if id in places:
        raise UsageError(f"{place}: {key} {id!r} is already used at {places[id]}")
    places[id] = place


def read_table(source: Path, header: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``(place, record)`` for every row of a CSV file; without ``header``, the first row is the header.

    Raises UsageError if the file cannot be read, a row has a different number of cells, or there is no row.
    """
    try:
        columns, rows, lines = csv_table(str(source), _read(source), header)
    except BadRows as error:
        raise UsageError(str(error)) from None
    if not rows:
        raise UsageError(f"{source}: holds no record; expected a row for each question")
    for line, cells in zip(lines, rows, strict=True):
        yield f"{source}:{line}", dict(zip(columns, cells, strict=True))


class NewFiles(Mapping[Path, bytes]):
    """Files for a folder, by path; names are unique, and existing files are never replaced."""

    def __init__(self, folder: Path, files: Mapping[str, bytes] | None = None) -> None:
        self._folder = folder
        self._data: dict[Path, bytes] = {}
        self._names = FileNames()
        self._stems = FileNames()
        for name, data in (files or {}).items():
            self.add(name, data)

    def __getitem__(self, path: Path) -> bytes:
        return self._data[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def stem(self, name: str) -> str:
        """Return ``name`` as an unused stem for several files, with a number if the name is already used."""
        return self._stems.give(name)

    def add(self, name: str, data: bytes) -> None:
        """Add a file; raise UsageError if another file has the same name, ignoring case."""
        if first := self._names.take(name):
            raise UsageError(f"{self._folder / name}: two files would have this name ({first} is the first)")
        self._data[self._folder / name] = data

    def write(self) -> list[Path]:
        """Write the missing files, and return all paths.

        Before writing anything, the method raises a UsageError that names every existing file with other content.
        """
        try:
            missing = [path for path in self if not path.exists()]
            differing = [path for path in self if path not in missing and path.read_bytes() != self[path]]
            if differing:
                names = ", ".join(map(str, differing))
                raise UsageError(f"{names}: exists with other content; move it away, or choose another folder")
            for path in missing:
                write_atomically(path, self[path])
        except OSError as error:
            raise UsageError(f"{error.filename or next(iter(self))}: cannot be written: {error.strerror}") from None
        return list(self)


def _read(source: Path) -> bytes:
    try:
        data = source.read_bytes()
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror}") from None
    try:
        return gzip.decompress(data) if source.suffix == ".gz" else data
    except (EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{source}: not a gzip file: {error}") from None
