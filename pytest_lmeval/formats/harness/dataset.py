"""The data of a task: a folder of files first, then the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.data.rows import SUFFIXES, BadRows, parse_rows, read_rows
from pytest_lmeval.data.splits import digest_of
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.config import Config
from pytest_lmeval.formats.harness.rows import RowSet
from pytest_lmeval.frozen import dataclass

_LOADERS = ("json", "csv", "parquet")
_IGNORED = frozenset({"trust_remote_code", "data_files", "revision"})


@dataclass(frozen=True, slots=True)
class Source:
    """Where the splits of a data set are; ``facts`` say so in the board: path, sha256 or revision."""

    folder: Path | None
    files: Mapping[str, Sequence[Path]]
    path: str
    name: str | None
    revision: str | None

    def split(self, name: str) -> tuple[RowSet, str]:
        """Return the rows of a split, and a hash of them; raise RecordRefused, with the choices, without such a one."""
        files = self.files.get(name)
        if files:
            return _read(files)
        if self.folder is not None or self.files:
            there = ", ".join(sorted(self.files)) or "none"
            raise RecordRefused("bad_value", "dataset", f"{self.path}: no split {name!r}; there is {there}")
        from pytest_lmeval.data import hub

        rows = hub.load(self.path, self.name, split=name, revision=self.revision)
        return RowSet(rows), str(getattr(rows, "_fingerprint", ""))


def source_of(config: Config, data: Path | None) -> Source:
    """Return where the data of a task are: below the folder ``data``, in files that the task names, or on the hub."""
    path, name = str(config.get("dataset_path")), config.get("dataset_name")
    options = config.get("dataset_kwargs", {})
    unknown = sorted(set(options) - _IGNORED)
    if unknown:
        known = ", ".join(sorted(_IGNORED))
        detail = f"{config.name}: {unknown[0]!r} is not supported; {known} are"
        raise RecordRefused("not_supported", "dataset_kwargs", detail)
    folder = _folder(data, path, None if name is None else str(name))
    if folder is not None:
        files: dict[str, list[Path]] = {}
        for file in sorted(folder.iterdir()):
            if file.suffix in SUFFIXES:
                files.setdefault(file.stem, []).append(file)
        return Source(folder, files, path, name, None)
    if path in _LOADERS:
        return Source(config.file.parent, _named(config, options.get("data_files")), path, name, None)
    return Source(None, {}, path, None if name is None else str(name), options.get("revision"))


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


def _named(config: Config, given: Any) -> dict[str, list[Path]]:
    named = given if isinstance(given, dict) else {"train": given}
    files = {}
    for split, names in named.items():
        paths = [config.file.parent / str(each) for each in (names if isinstance(names, list) else [names])]
        missing = next((each for each in paths if not each.is_file() or each.suffix not in (*SUFFIXES, ".json")), None)
        if given is None or missing is not None:
            kinds = ", ".join(SUFFIXES)
            detail = f"{config.name}: {missing or 'data_files'}: expected local files ({kinds}) beside the task"
            raise RecordRefused("bad_value", "dataset_kwargs", detail)
        files[str(split)] = paths
    return files


def _read(files: Sequence[Path]) -> tuple[RowSet, str]:
    rows: list[dict[str, Any]] = []
    contents = []
    for file in files:
        try:
            found, data = _rows(file)
        except BadRows as bad:
            raise RecordRefused("bad_value", "dataset", bad.faults[0]) from None
        except OSError as error:
            raise RecordRefused("bad_value", "dataset", f"{file.name} cannot be read: {error.strerror}") from None
        rows += found
        contents.append(data)
    return RowSet(rows), digest_of(contents)


def _rows(file: Path) -> tuple[list[dict[str, Any]], bytes]:
    if file.suffix != ".json":
        return read_rows(file)
    # What the loader json reads has a record a line, whatever its suffix.
    data = file.read_bytes()
    return parse_rows(file.with_suffix(".jsonl"), data), data
