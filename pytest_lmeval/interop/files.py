"""What every kind needs: a published file record by record, and new files that replace nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.data.lines import number_lines, parse_line
from pytest_lmeval.data.rows import BadRows, csv_table
from pytest_lmeval.errors import RecordRefused, UsageError
from pytest_lmeval.file_names import FileNames

_BACKTICKS = re.compile("`+")
_TEXT_OR_STRANGE = re.compile(r'("(?:[^"\\]|\\.)*")|-?\b(?:NaN|Infinity)\b')


def without_strange_numbers(text: str) -> str:
    """Return JSON with null for the numbers that Python writes and JSON does not have: NaN and infinities."""
    return _TEXT_OR_STRANGE.sub(lambda found: found[1] or "null", text) if "NaN" in text or "Infinity" in text else text


def read_records(source: Path, *, is_of_python: bool = False) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``(place, record)`` for every line of a JSONL file, gzip-compressed if it ends in ``.gz``.

    ``is_of_python``: a number that JSON does not have is null.

    The place is ``path:line``. Raises UsageError where the file cannot be read, a line is not an object, or there is
    no record at all.
    """
    found = False
    for number, line in number_lines(_read(source)):
        place = f"{source}:{number}"
        if is_of_python:
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
        raise UsageError(f"{source}: holds no record; expected one JSON object a line")


def text_of(record: Mapping[str, Any], key: str, place: str) -> str:
    """Return the text under ``key``; raise UsageError with the place where it is missing or something else."""
    if key not in record:
        raise UsageError(f"{place}: {key!r} is missing; got {', '.join(map(repr, record)) or 'no key at all'}")
    value = record[key]
    if not isinstance(value, str):
        raise UsageError(f"{place}: {key!r} must be a string, got {value!r:.80}")
    return value


def encode_lines(records: Iterable[Mapping[str, Any]]) -> bytes:
    r"""Return the records as JSONL: UTF-8, each line ended by ``\n``."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode("utf-8")


def fenced(program: str) -> str:
    """Return a program as a code block, whose fence is longer than any that is in it."""
    longest = max(map(len, _BACKTICKS.findall(program)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{program.rstrip()}\n{fence}\n"


def write_programs(
    source: Path, destination: Path, name: str, made: Callable[[dict[str, Any], str], tuple[dict[str, Any], str]]
) -> list[Path]:
    """Write ``NAME.jsonl`` and the programs of its data set as ``canonical.replay.jsonl``; return the two paths.

    ``made(record, place)`` returns a task's record and its program. Raises UsageError where a ``task_id`` occurs twice.
    """
    tasks: list[dict[str, Any]] = []
    canonical: list[dict[str, Any]] = []
    places: dict[str, str] = {}
    for place, record in read_records(source):
        task, program = made(record, place)
        check_new("task_id", task["id"], place, places)
        tasks.append(task)
        canonical.append({"id": task["id"], "output": fenced(program)})
    files = {f"{name}.jsonl": encode_lines(tasks), "canonical.replay.jsonl": encode_lines(canonical)}
    return NewFiles(destination, files).write()


def check_new(key: str, id: str, place: str, places: dict[str, str]) -> None:
    """Add the ``place`` of an id to those before it; raise UsageError where it is among them."""
    if id in places:
        raise UsageError(f"{place}: {key} {id!r} was used at {places[id]} already")
    places[id] = place


def program_task(id: str, prompt: str, tests: str, entry_point: str) -> dict[str, Any]:
    """Return the record of a task whose answer is a program: a record needs a target, what decides are the tests."""
    extras = {"tests": tests, "entry_point": entry_point}
    return {"id": id, "prompt": prompt, "targets": ["check"], "metric": "code_exec", "extras": extras}


def read_table(source: Path, header: Sequence[str] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ``(place, record)`` for every row of a CSV file, whose first row is the header if none is given.

    Raises UsageError where the file cannot be read, a row has another number of cells, or there is no row at all.
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
    """Files for a folder, by path: each name is that of one file, and what is there already is not replaced."""

    def __init__(self, folder: Path, files: Mapping[str, bytes] = MappingProxyType({})) -> None:
        self._folder = folder
        self._data: dict[Path, bytes] = {}
        self._names = FileNames()
        self._stems = FileNames()
        for name, data in files.items():
            self.add(name, data)

    def __getitem__(self, path: Path) -> bytes:
        return self._data[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def stem(self, name: str) -> str:
        """Return ``name``, or with a number if it was given out before: a name without suffix for several files."""
        return self._stems.give(name)

    def add(self, name: str, data: bytes) -> None:
        """Add a file; raise UsageError if another one has the name, upper and lower case being the same."""
        if first := self._names.take(name):
            raise UsageError(f"{self._folder / name}: two files would have this name ({first} is the first)")
        self._data[self._folder / name] = data

    def write(self) -> list[Path]:
        """Write what is not there yet, and return all the paths.

        Raises UsageError that names every existing file of other content, before anything is written.
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
    return _decompress(data, source) if source.suffix == ".gz" else data


def _decompress(data: bytes, source: Path) -> bytes:
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise UsageError(f"{source}: not a gzip file: {error}") from None
