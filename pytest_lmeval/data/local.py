"""Find and read a task's data in files and folders."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from pytest_lmeval.data import hub
from pytest_lmeval.data.limits import read_files
from pytest_lmeval.data.rows import SUFFIXES, BadRows, parse_rows
from pytest_lmeval.data.splits import Rows, Splits, digest_of
from pytest_lmeval.errors import RecordRefused, did_you_mean

# Large datasets are stored in parts: test-00000-of-00002.parquet
_PART = re.compile(r"-\d{5}-of-\d{5}\Z")


def find(path: str, folder: Path) -> Path | None:
    """Return the file or folder at ``path``, relative to ``folder``; ``path`` may omit the suffix of a file.

    If there is no such file or folder, return None if ``path`` may be a name on the hub, or else raise RecordRefused.
    """
    base = folder / path
    for candidate in (base, *(base.with_name(base.name + suffix) for suffix in SUFFIXES)):
        if candidate.is_dir() or (candidate.is_file() and candidate.suffix in SUFFIXES):
            return candidate
    if base.is_file():
        raise RecordRefused("bad_value", "dataset", f"{path!r} is not one of {', '.join(SUFFIXES)}")
    if Path(path).is_absolute() or path.startswith(".") or path.count("/") > 1 or Path(path).suffix in SUFFIXES:
        raise RecordRefused("bad_value", "dataset", f"{path!r}: no such file or folder beside the task file")
    return None


def is_saved(path: Path) -> bool:
    """Return True if the ``datasets`` library saved a dataset in the folder ``path``."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def read(path: Path, config: str | None = None) -> Splits:
    """Return the splits of the data at ``path``, or of the configuration in its folder ``config``.

    Data without folders for configurations has only the configuration ``default``. Raise RecordRefused for an unknown
    configuration; the message lists the known configurations.
    """
    if config is not None:
        path = _configuration(path, config)
    if path.is_file():
        return Splits({path.stem: partial(_rows, [path])}, path.name, is_single=True)
    if is_saved(path):
        return Splits(hub.saved(path), path.name)
    files: dict[str, list[Path]] = {}
    for file in sorted(path.iterdir()):
        if file.suffix in SUFFIXES and file.is_file():
            files.setdefault(_PART.sub("", file.stem), []).append(file)
    if not files:
        expected = f"one file per split, such as test.jsonl (of {', '.join(SUFFIXES)})"
        raise RecordRefused("bad_value", "dataset", f"no data in the folder {path.name!r}; expected {expected}")
    return Splits({split: partial(_rows, parts) for split, parts in files.items()}, path.name)


def _configuration(path: Path, name: str) -> Path:
    folders = sorted(each.name for each in path.iterdir() if each.is_dir()) if path.is_dir() else []
    choices = [each for each in folders if not is_saved(path) and not each.startswith((".", "_"))]
    if name in choices:
        return path / name
    if name == "default" and not choices:
        return path
    hint = did_you_mean(name, choices)
    has = f"it has {', '.join(choices)}" if choices else "it has no folders for configurations; omit the name"
    raise RecordRefused("bad_value", "dataset", f"{path.name} has no configuration {name!r};{hint} {has}")


def read_subjects(path: Path, subjects: Sequence[str]) -> Mapping[str, Splits] | None:
    """Return the splits of each subject, or None unless the folder at ``path`` has a folder for every subject.

    Raise RecordRefused if only some subjects have a folder, and no file could contain the other subjects.
    """
    missing = [subject for subject in subjects if not subject or not (path / subject).is_dir()]
    if missing or not subjects:
        has_files = is_saved(path) or any(file.suffix in SUFFIXES and file.is_file() for file in path.iterdir())
        if 0 < len(missing) < len(subjects) and not has_files:
            there = ", ".join(subject for subject in subjects if subject not in missing)
            detail = f"{path.name} has no folder for {', '.join(map(repr, missing))}; it has {there}"
            raise RecordRefused("bad_value", "SUBJECTS", detail)
        return None
    return {subject: read(path / subject) for subject in subjects}


def _rows(files: Sequence[Path]) -> Rows:
    try:
        contents = read_files(files)
        rows = [row for file, data in zip(files, contents, strict=True) for row in parse_rows(file, data)]
    except BadRows as bad:
        raise RecordRefused("bad_value", "dataset", bad.faults[0]) from None
    except OSError as error:
        raise RecordRefused("bad_value", "dataset", f"{error.filename} cannot be read: {error.strerror}") from None
    return Rows(rows, digest_of(contents))
