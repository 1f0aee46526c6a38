"""Read a task's data from files or from the hub.

As in ``datasets``, each column has one type: a pandas type for CSV, or an Arrow type for numbers in JSON.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_lmeval.data.limits import read_files, unpacked
from pytest_lmeval.data.rows import SUFFIXES, BadRows, parse_rows
from pytest_lmeval.data.splits import digest_of
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config, listed
from pytest_lmeval.formats.harness.rowset import Row, RowSet
from pytest_lmeval.frozen import dataclass

# The file loaders of ``datasets``, each with the suffix of the format that it reads.
_LOADERS = {"json": ".json", "csv": ".csv", "parquet": ".parquet"}
_DATASET_OPTIONS = frozenset({"trust_remote_code", "data_files", "revision", "streaming"})
# As in ``datasets``, a word in a file's path names its split.
_SPLITS = {
    **dict.fromkeys(("train", "training"), "train"),
    **dict.fromkeys(("validation", "valid", "dev", "val"), "validation"),
    **dict.fromkeys(("test", "testing", "eval", "evaluation"), "test"),
}
_WORD = re.compile(rf"(?<![^-._ 0-9/])({'|'.join(_SPLITS)})(?![^-._ 0-9/])")
# Strings that pandas reads as empty cells.
_EMPTY = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"}
    | {"NULL", "NaN", "None", "n/a", "nan", "null"}
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
# With more digits, or an exponent, pandas and Python may differ in the last bit.
_DECIMAL = re.compile(r"[+-]?(?=(?:\.?[0-9]){1,15}\.?$)[0-9]*\.?[0-9]*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d(?::\d\d(?::\d\d(?:Z|[+-]\d\d(?::?\d\d)?)?)?)?)?", re.ASCII)
# The number of rows whose types are inferred together.
_BLOCK = 10_000
_READ: Mapping[str, Callable[[str], Any]] = {
    "whole numbers": int,
    "decimal numbers": float,
    "truth values": lambda text: text.lower() == "true",
    "texts": str,
}


@dataclass(frozen=True, slots=True)
class Source:
    """The origin of a data set's splits.

    ``files`` maps splits to files, or is None for the hub. ``suffix`` is the format of all files; by default, each
    file's suffix determines its format. ``data_files`` names files on the hub. If ``is_one`` is true, the files form
    one data set, whose first split determines the types of all splits.
    """

    files: Mapping[str, Sequence[Path]] | None
    path: str
    name: str | None = None
    revision: str | None = None
    data_files: Any = None
    suffix: str = ""
    is_one: bool = False

    def split(self, name: str) -> tuple[RowSet, str]:
        """Return a split's rows and their hash; for other names, raise RecordRefused, which lists the known splits."""
        if self.files is None:
            from pytest_lmeval.data import hub

            options = {"revision": self.revision, "data_files": self.data_files}
            rows = hub.load(self.path, self.name, split=name, **options)
            return RowSet(rows), str(getattr(rows, "_fingerprint", ""))
        if not self.files.get(name):
            there = ", ".join(sorted(self.files)) or "none"
            raise RecordRefused("bad_value", "dataset", f"{self.path}: no split {name!r}; there is {there}")
        first = next(iter(self.files)) if self.is_one else name
        rows, digest = self._read(self.files[name])
        return RowSet(rows, RowSet(self._read(self.files[first])[0]) if first != name else None), digest

    def _read(self, files: Sequence[Path]) -> tuple[list[Row], str]:
        kinds = [self.suffix or _suffix(file) for file in files]
        if ".csv" in kinds and len({*kinds}) > 1:
            # Only CSV columns need type inference.
            both = ", ".join(file.name for file in files)
            raise RecordRefused("bad_value", "dataset", f"expected files of one format, got {both}")
        parts = [_read(file, kind) for file, kind in zip(files, kinds, strict=True)]
        read = [rows for rows, _ in parts]
        rows = _typed(files[0].name, read) if ".csv" in kinds else [*chain.from_iterable(read)]
        if self.is_one and not {".csv", ".parquet"} & {*kinds}:
            _date_columns(rows)
        return rows, digest_of(data for _, data in parts)


def source_of(config: Config, data: Path | None) -> Source:
    """Return the source of a task's data: a folder below ``data``, local files that the task names, or the hub."""
    path, name = str(config.get("dataset_path")), config.get("dataset_name")
    name = None if name is None else str(name)
    options = config.get("dataset_kwargs", {})
    if unknown := sorted(set(options) - _DATASET_OPTIONS):
        detail = f"{unknown[0]!r} is not supported; {', '.join(sorted(_DATASET_OPTIONS))} are"
        raise RecordRefused("not_supported", "dataset_kwargs", detail)
    if options.get("streaming"):
        raise RecordRefused("not_supported", "dataset_kwargs", "streaming: expected false, since all rows are read")
    folder = _folder(data, path, name)
    if folder is not None:
        files: dict[str, list[Path]] = {}
        for file in sorted(folder.iterdir()):
            if file.suffix in SUFFIXES:
                files.setdefault(file.stem, []).append(file)
        return Source(files, path)
    places, given = (config.file.parent, Path.cwd()), options.get("data_files")
    if path in _LOADERS:
        return Source(_named(places, given), path, suffix=_LOADERS[path], is_one=True)
    if given is None and (path.startswith((".", "/")) or Path(path).is_dir()):
        return Source(_in_folder(places, path, name), path, is_one=True)
    return Source(None, path, name, options.get("revision"), given)


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


def _named(places: Sequence[Path], given: Any) -> dict[str, list[Path]]:
    """Return the files that ``data_files`` names by path or pattern, by split; the first place with a match is used."""
    files = {}
    for split, names in (given if isinstance(given, dict) else {"train": given}).items():
        files[str(split)] = [file for each in listed(names) for file in _matching(places, str(each))]
    if not given:
        raise RecordRefused("bad_value", "dataset_kwargs", "data_files: expected local files")
    return files


def _matching(places: Sequence[Path], name: str) -> list[Path]:
    for place in places:
        own = place / name
        found = [own] if own.exists() else [*map(Path, sorted(glob.glob(str(own), recursive=True)))]
        if files := [file for file in found if file.is_file()]:
            return files
    detail = f"data_files: {name}: expected a local file beside the task or in the working folder"
    raise RecordRefused("bad_value", "dataset_kwargs", detail)


def _in_folder(places: Sequence[Path], path: str, name: str | None) -> dict[str, list[Path]]:
    """Return the data files in the folder ``path`` by split, as ``datasets`` finds them."""
    folder = next((each / path for each in places if (each / path).is_dir()), None)
    if folder is None:
        detail = f"{path}: no such folder beside the task or in the working folder"
        raise RecordRefused("bad_value", "dataset_path", detail)
    if name is not None:
        raise RecordRefused("bad_value", "dataset_name", f"the folder {path} takes no name, got {name!r}")
    found = [file.relative_to(folder) for file in sorted(folder.rglob("*")) if _suffix(file) in (".json", *SUFFIXES)]
    paths = [each for each in found if not any(part.startswith(".") for part in each.parts)]
    words = [_WORD.search(each.as_posix()) for each in paths]
    files: dict[str, list[Path]] = {split: [] for split in _SPLITS.values()}
    for each, word in zip(paths, words, strict=True):
        if word or not any(words):
            files[_SPLITS[word[1]] if word else "train"].append(folder / each)
    return {split: found for split, found in files.items() if found}


def _suffix(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).suffix


def _read(file: Path, kind: str) -> tuple[list[Row], bytes]:
    try:
        (data,) = read_files([file])
        return parse_rows(file, unpacked(file.name, data), as_written=True, suffix=kind), data
    except BadRows as bad:
        raise RecordRefused("bad_value", "dataset", bad.faults[0]) from None
    except OSError as error:
        raise RecordRefused("bad_value", "dataset", f"{file.name} cannot be read: {error.strerror}") from None


def _date_columns(rows: Sequence[Row]) -> None:
    """Format dates as the harness does, in JSON columns that contain only dates."""
    for name in dict.fromkeys(name for row in rows for name in row):
        texts = [row[name] for row in rows if row.get(name) is not None]
        if texts and all(isinstance(text, str) and _DATE.fullmatch(text) for text in texts):
            with suppress(ValueError):  # an impossible date: the column stays text
                dates = {text: datetime.fromisoformat(text) for text in texts}
                for row in rows:
                    if row.get(name) is not None:
                        date = dates[row[name]]
                        row[name] = str(date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date)


def _typed(name: str, parts: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the rows of CSV files with typed values; raise RecordRefused for a column whose type is uncertain."""
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


def _kind(texts: Sequence[str]) -> str:
    """Return a column's type, or "" if it is uncertain; empty cells turn whole numbers into decimals."""
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
