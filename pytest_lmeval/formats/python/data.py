"""Where a task's data is, its splits, and their rows."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from pytest_lmeval.data.rows import SUFFIXES, BadRows, parse_rows
from pytest_lmeval.errors import RecordRefused, did_you_mean

__all__ = ["Row", "Rows", "Splits", "find", "is_saved", "read", "read_subjects"]

Row = dict[str, Any]
# As large datasets are stored: test-00000-of-00002.parquet
_PART = re.compile(r"-\d{5}-of-\d{5}\Z")


class Rows(Sequence[Row]):
    """The rows of one split, and the hash of the files that they were read from."""

    def __init__(self, rows: Sequence[Row], sha256: str) -> None:
        self._rows = rows
        self.sha256 = sha256

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    @overload
    def __getitem__(self, index: str) -> list[Any]: ...
    def __getitem__(self, index: int | slice | str) -> Any:
        """Return a row, several, or, for a name, a column."""
        return [row[index] for row in self._rows] if isinstance(index, str) else self._rows[index]

    def shuffle(self, seed: int = 42) -> Rows:
        """Return the rows in an order that the seed decides."""
        return Rows(random.Random(seed).sample(self._rows, len(self._rows)), self.sha256)

    def select(self, indices: Iterable[int]) -> Rows:
        """Return the rows at ``indices``."""
        return Rows([self._rows[index] for index in indices], self.sha256)

    def filter(self, function: Callable[[Row], bool]) -> Rows:
        """Return the rows that ``function`` is true of."""
        return Rows([row for row in self._rows if function(row)], self.sha256)


class Splits(Mapping[str, Rows]):
    """The splits of a dataset by name; one is read when it is first asked for. A single file is every split."""

    def __init__(self, readers: Mapping[str, Callable[[], Rows]], origin: str, *, is_single: bool = False) -> None:
        self._readers = readers
        self._read: dict[str, Rows] = {}
        self.origin = origin
        self.is_single = is_single

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def __contains__(self, name: object) -> bool:
        return self.is_single or name in self._readers

    def __getitem__(self, name: str) -> Rows:
        """Return the rows of a split; raise RecordRefused, with the choices, where it is not there or has none."""
        known = next(iter(self._readers)) if self.is_single else name
        if known not in self._readers:
            choices = ", ".join(sorted(self._readers)) or "none"
            hint = did_you_mean(name, self._readers)
            raise RecordRefused("bad_value", "dataset", f"{self.origin} has no split {name!r};{hint} it has {choices}")
        if known not in self._read:
            rows = self._readers[known]()
            if not rows:
                raise RecordRefused("bad_value", "dataset", f"{self.origin}: the split {name!r} is empty")
            self._read[known] = rows
        return self._read[known]


def find(path: str, folder: Path) -> Path | None:
    """Return the file or folder that ``path`` names, seen from ``folder``, its suffix left out or not.

    None where there is none and it may be a name on the hub; RecordRefused where it cannot be one.
    """
    base = folder / path
    for candidate in (base, *(base.with_name(base.name + suffix) for suffix in SUFFIXES)):
        if candidate.is_dir() or (candidate.is_file() and candidate.suffix in SUFFIXES):
            return candidate
    if base.is_file():
        detail = f"{path!r} is not one of {', '.join(SUFFIXES)}"
        raise RecordRefused("bad_value", "dataset", detail)
    if Path(path).is_absolute() or path.startswith(".") or path.count("/") > 1 or Path(path).suffix in SUFFIXES:
        raise RecordRefused("bad_value", "dataset", f"{path!r}: no such file or folder beside the task file")
    return None


def is_saved(path: Path) -> bool:
    """Tell whether the ``datasets`` library saved a dataset in the folder ``path``."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def read(path: Path, config: str | None = None) -> Splits:
    """Return the splits at ``path``; ``config`` is a folder in it, if there is one of that name."""
    if path.is_file():
        return Splits({path.stem: lambda: _rows([path])}, path.name, is_single=True)
    if config is not None and (path / config).is_dir():
        path /= config
    if is_saved(path):
        from pytest_lmeval.formats.python import hub

        return Splits(hub.saved(path), path.name)
    files: dict[str, list[Path]] = {}
    for file in sorted(path.iterdir()):
        if file.suffix in SUFFIXES and file.is_file():
            files.setdefault(_PART.sub("", file.stem), []).append(file)
    if not files:
        expected = f"one file per split, such as test.jsonl (of {', '.join(SUFFIXES)})"
        raise RecordRefused("bad_value", "dataset", f"no data in the folder {path.name!r}; expected {expected}")
    return Splits({split: _reader(parts) for split, parts in files.items()}, path.name)


def read_subjects(path: Path, subjects: Sequence[str]) -> Splits | None:
    """Return the splits of a folder that has a folder for each subject; rows get the key ``subject``. None without."""
    if not subjects or not all(subject and (path / subject).is_dir() for subject in subjects):
        return None
    return joined({subject: read(path / subject) for subject in subjects}, path.name)


def joined(parts: Mapping[str, Splits], origin: str) -> Splits:
    """Return the splits that every part has, one part's rows after another's, each with its part as ``subject``."""
    names = [name for name in next(iter(parts.values())) if all(name in part for part in parts.values())]

    def reader(split: str) -> Callable[[], Rows]:
        def rows() -> Rows:
            found = {subject: part[split] for subject, part in parts.items()}
            together = [{"subject": subject, **row} for subject, rows in found.items() for row in rows]
            return Rows(together, _digest(rows.sha256.encode() for rows in found.values()))

        return rows

    return Splits({name: reader(name) for name in names}, origin)


def _reader(files: Sequence[Path]) -> Callable[[], Rows]:
    return lambda: _rows(files)


def _rows(files: Sequence[Path]) -> Rows:
    try:
        contents = [(file, file.read_bytes()) for file in files]
    except OSError as error:
        detail = f"{error.filename} cannot be read: {error.strerror}"
        raise RecordRefused("bad_value", "dataset", detail) from None
    try:
        rows = [row for file, data in contents for row in parse_rows(file, data)]
    except BadRows as bad:
        raise RecordRefused("bad_value", "dataset", bad.faults[0]) from None
    return Rows(rows, _digest(data for _, data in contents))


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
