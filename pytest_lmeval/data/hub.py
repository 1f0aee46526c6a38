"""Load data with the ``datasets`` library, from the hub or from saved data sets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_lmeval.data.splits import Row, Rows, Splits
from pytest_lmeval.errors import RecordRefused


def load(path: str, name: str | None = None, *, split: str | None = None, **options: Any) -> Any:
    """Return the result of ``datasets.load_dataset``; raise RecordRefused if it fails."""
    datasets = _datasets(path)
    return _called(path, lambda: datasets.load_dataset(path, name, split=split, **options))


def open_splits(path: str, subjects: Sequence[str], revision: str | None) -> Mapping[str, Splits]:
    """Return each subject's splits, or all splits under the key "" if a subject has no configuration on the hub."""
    datasets = _datasets(path)
    configs = _called(path, lambda: datasets.get_dataset_config_names(path, revision=revision))
    if subjects and set(subjects) <= set(configs):
        return {subject: _splits(load(path, subject, revision=revision), path) for subject in subjects}
    return {"": _splits(load(path, revision=revision), path)}


def saved(path: Path) -> Mapping[str, Callable[[], Rows]]:
    """Return a reader for each split of a dataset that ``datasets`` saved in the folder ``path``."""
    datasets = _datasets(path.name)
    loaded = _called(path.name, lambda: datasets.load_from_disk(str(path)))
    if hasattr(loaded, "items"):
        return {split: partial(_saved, rows, path / split) for split, rows in loaded.items()}
    return {str(loaded.split or "test"): partial(_saved, loaded, path)}


class _View(Sequence[Row]):
    """Rows that the ``datasets`` library decodes on access."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._dataset[number] for number in range(*index.indices(len(self)))]
        return self._dataset[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._dataset)


def _splits(loaded: Any, origin: str) -> Splits:
    return Splits({split: partial(_loaded, rows) for split, rows in loaded.items()}, origin)


def _loaded(rows: Any) -> Rows:
    # The library's fingerprint covers the source on the hub, its revision and all transformations.
    return Rows(_View(rows), hashlib.sha256(str(rows._fingerprint).encode()).hexdigest())


def _saved(rows: Any, folder: Path) -> Rows:
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.arrow")):
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return Rows(_View(rows), digest.hexdigest())


def _datasets(path: str) -> Any:
    try:
        return import_module("datasets")
    except ImportError:
        detail = f"no data {path!r} beside the task file; for a name on the hub: pip install 'pytest-lmeval[hub]'"
        raise RecordRefused("bad_value", "dataset", detail) from None


def _called(path: str, action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        first_line = str(error).partition("\n")[0]
        detail = f"no data {path!r} beside the task file, and loading failed: {type(error).__name__}: {first_line}"
        raise RecordRefused("bad_value", "dataset", detail) from None
