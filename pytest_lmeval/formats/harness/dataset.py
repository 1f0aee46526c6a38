"""Read the data of a task from files or from the hub, as rows with the methods of ``datasets.Dataset``.

As with ``datasets``, each column has one type: pandas's types for csv, Arrow's numbers for JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NoReturn

from pytest_lmeval.data.rows import SUFFIXES, BadRows, parse_rows, read_rows
from pytest_lmeval.data.splits import digest_of
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.frozen import dataclass

Row = dict[str, Any]
_WITHOUT_EFFECT = frozenset(
    {"num_proc", "desc", "load_from_cache_file", "keep_in_memory", "batch_size", "features", "cache_file_name"}
)
_LOADERS = ("json", "csv", "parquet")
_DATASET_OPTIONS = frozenset({"trust_remote_code", "data_files", "revision"})
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
_METHODS = "filter, map, select, shuffle, sort, remove_columns, rename_column, rename_columns, add_column, to_list"


class RowSet(Sequence[Row]):
    """Rows in order, with methods of ``datasets.Dataset``, which return new rows and never change existing ones.

    Reading a row returns a copy.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = [dict(row) for row in rows]
        # As in a table, a missing value is None, and a column has one type of numbers.
        names = dict.fromkeys(name for row in self._rows for name in row)
        if any(len(row) != len(names) for row in self._rows):
            self._rows = [{name: row.get(name) for name in names} for row in self._rows]
        for name in names:
            column = [row[name] for row in self._rows]
            if (floats := _same_numbers(column)) is not column:
                for row, value in zip(self._rows, floats, strict=True):
                    row[name] = value
        self.column_names = [*names]

    @classmethod
    def from_list(cls, rows: Sequence[Mapping[str, Any]], **_: Any) -> RowSet:
        return cls(rows)

    @classmethod
    def from_dict(cls, columns: Mapping[str, Sequence[Any]], **_: Any) -> RowSet:
        return cls(dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))

    @property
    def features(self) -> dict[str, Any]:
        """The names of the columns, each with None: their types are unknown."""
        return dict.fromkeys(self.column_names)

    @property
    def num_rows(self) -> int:
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return map(dict, self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return a row for an index, a column for a name, or columns of several rows for a slice or list of indexes."""
        if isinstance(index, str):
            return [row[index] for row in self._rows]
        if isinstance(index, slice | list | range):
            chosen = self._rows[index] if isinstance(index, slice) else [self._rows[place] for place in index]
            return {name: [row[name] for row in chosen] for name in self.column_names}
        return dict(self._rows[index])

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"rows of a task file have no {name!r}; they have {_METHODS}")

    def map(
        self,
        function: Callable[..., Any],
        *,
        with_indices: bool = False,
        batched: bool = False,
        remove_columns: Sequence[str] | str = (),
        fn_kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> RowSet:
        """Return rows updated with the results of ``function``, which takes a row or, if ``batched``, all columns."""
        _check("map", options)
        more = dict(fn_kwargs or {})
        if batched:
            columns = self[:]
            made = function(columns, **more)
            size = len(next(iter(made.values()), ()))
            dropped = {*made, *([remove_columns] if isinstance(remove_columns, str) else remove_columns or ())}
            kept = {name: of for name, of in columns.items() if name not in dropped and len(of) == size}
            return RowSet.from_dict({**kept, **made})
        of_rows = [function(*given, **more) for given in _called_with(self, with_indices)]
        own = self.remove_columns(remove_columns or ())
        stored = ({key: [*v] if isinstance(v, tuple) else v for key, v in (made or {}).items()} for made in of_rows)
        return RowSet({**row, **made} for row, made in zip(own, stored, strict=True))

    def filter(self, function: Callable[..., Any], *, with_indices: bool = False, **options: Any) -> RowSet:
        """Return the rows for which ``function`` is true."""
        _check("filter", options)
        given = _called_with(self, with_indices)
        return self._of(row for row, each in zip(self._rows, given, strict=True) if function(*each))

    def select(self, indices: Iterable[int], **_: Any) -> RowSet:
        return self._of(self._rows[place] for place in indices)

    def shuffle(self, seed: int | None = None, **options: Any) -> RowSet:
        """Return the rows in the order that ``datasets`` draws for ``seed``; raise ValueError for None."""
        _check("shuffle", options)
        if seed is None:
            raise ValueError("shuffle without a seed gives a different order in every run: pass a seed")
        from pytest_lmeval.data.shuffle import permutation

        return self.select(permutation(seed, len(self._rows)))

    def sort(self, column: str, reverse: bool = False, **_: Any) -> RowSet:
        return self._of(sorted(self._rows, key=lambda row: row[column], reverse=reverse))

    def remove_columns(self, names: Sequence[str] | str) -> RowSet:
        dropped = {names} if isinstance(names, str) else set(names)
        return RowSet({key: value for key, value in row.items() if key not in dropped} for row in self._rows)

    def rename_column(self, old: str, new: str) -> RowSet:
        return self.rename_columns({old: new})

    def rename_columns(self, names: Mapping[str, str]) -> RowSet:
        return RowSet({names.get(key, key): value for key, value in row.items()} for row in self._rows)

    def add_column(self, name: str, column: Sequence[Any]) -> RowSet:
        return RowSet({**row, name: value} for row, value in zip(self._rows, column, strict=True))

    def to_list(self) -> list[Row]:
        return [*self]

    def _of(self, rows: Iterable[Row]) -> RowSet:
        made = RowSet(rows)
        made.column_names = made.column_names or list(self.column_names)
        return made


def _called_with(rows: RowSet, with_indices: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments of a function for each row: the row and, if ``with_indices``, its place."""
    return ((row, place) if with_indices else (row,) for place, row in enumerate(rows))


def _check(method: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for an option that could change the result; options for speed and progress cannot."""
    if unknown := sorted(options.keys() - _WITHOUT_EFFECT):
        raise TypeError(f"{method} of the rows of a task file takes no {unknown[0]!r}")


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a data set's splits: ``files``, or the hub if ``files`` is None."""

    files: Mapping[str, Sequence[Path]] | None
    path: str
    name: str | None = None
    revision: str | None = None

    def split(self, name: str) -> tuple[RowSet, str]:
        """Return the rows of a split and their hash; raise RecordRefused with the known splits for any other name."""
        if self.files is None:
            from pytest_lmeval.data import hub

            rows = hub.load(self.path, self.name, split=name, revision=self.revision)
            return RowSet(rows), str(getattr(rows, "_fingerprint", ""))
        if not self.files.get(name):
            there = ", ".join(sorted(self.files)) or "none"
            raise RecordRefused("bad_value", "dataset", f"{self.path}: no split {name!r}; there is {there}")
        files = self.files[name]
        parts = [*map(_read, files)]
        are_csv = {file.suffix == ".csv" for file in files}
        if len(are_csv) > 1:
            # Only csv columns need their types inferred.
            both = ", ".join(file.name for file in files)
            raise RecordRefused("bad_value", "dataset", f"split {name!r}: expected files of one format, got {both}")
        read = [rows for rows, _ in parts]
        rows = _typed(files[0].name, read) if True in are_csv else [*chain.from_iterable(read)]
        return RowSet(rows), digest_of(data for _, data in parts)


def source_of(config: Config, data: Path | None) -> Source:
    """Return the source of a task's data: a folder below ``data``, files that the task names, or the hub."""
    path, name = str(config.get("dataset_path")), config.get("dataset_name")
    name = None if name is None else str(name)
    options = config.get("dataset_kwargs", {})
    if unknown := sorted(set(options) - _DATASET_OPTIONS):
        detail = f"{unknown[0]!r} is not supported; {', '.join(sorted(_DATASET_OPTIONS))} are"
        raise RecordRefused("not_supported", "dataset_kwargs", detail)
    folder = _folder(data, path, name)
    if folder is not None:
        files: dict[str, list[Path]] = {}
        for file in sorted(folder.iterdir()):
            if file.suffix in SUFFIXES:
                files.setdefault(file.stem, []).append(file)
        return Source(files, path)
    if path in _LOADERS:
        return Source(_named(config.file.parent, options.get("data_files")), path)
    return Source(None, path, name, options.get("revision"))


def _folder(data: Path | None, path: str, name: str | None) -> Path | None:
    base = None if data is None else data / path.replace("/", "__")
    if base is None or not base.is_dir():
        return None
    places = [base / "default", base] if name is None else [base / name.replace("/", "__")]
    found = next((place for place in places if place.is_dir()), None)
    if found is None:
        there = ", ".join(sorted(each.name for each in base.iterdir() if each.is_dir())) or "none"
        raise RecordRefused("bad_value", "dataset_name", f"{base.name} has no folder {name!r}; there is {there}")
    return found


def _named(folder: Path, given: Any) -> dict[str, list[Path]]:
    files = {}
    for split, names in (given if isinstance(given, dict) else {"train": given}).items():
        paths = [folder / str(each) for each in (names if isinstance(names, list) else [names])]
        missing = next((each for each in paths if not each.is_file() or each.suffix not in (*SUFFIXES, ".json")), None)
        if given is None or missing is not None:
            detail = f"{missing or 'data_files'}: expected local files ({', '.join(SUFFIXES)}) beside the task"
            raise RecordRefused("bad_value", "dataset_kwargs", detail)
        files[str(split)] = paths
    return files


def _read(file: Path) -> tuple[list[Row], bytes]:
    try:
        if file.suffix != ".json":
            return read_rows(file, as_written=True)
        # The json loader reads one record per line.
        data = file.read_bytes()
        return parse_rows(file.with_suffix(".jsonl"), data), data
    except BadRows as bad:
        raise RecordRefused("bad_value", "dataset", bad.faults[0]) from None
    except OSError as error:
        raise RecordRefused("bad_value", "dataset", f"{file.name} cannot be read: {error.strerror}") from None


def _typed(name: str, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of csv files with typed values; raise RecordRefused for a column whose type is uncertain."""
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


def _same_numbers(values: list[Any]) -> list[Any]:
    """Return ``values`` unchanged, or with all numbers as floats if any number, also within lists, is a float."""
    kinds = set(map(type, values)) - {type(None)}
    if kinds == {int, float}:
        return [float(value) if type(value) is int else value for value in values]
    if kinds == {list}:
        inner = [each for value in values for each in value or ()]
        if (floats := _same_numbers(inner)) is not inner:
            left = iter(floats)
            return [value if value is None else [*islice(left, len(value))] for value in values]
    return values


def _kind(texts: Sequence[str]) -> str:
    """Return the type of a column, "" if it is uncertain; with empty cells, whole numbers are decimal numbers."""
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
