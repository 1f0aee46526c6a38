"""Provide ``load_dataset`` and similar functions that read local data or call the ``datasets`` library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused

if TYPE_CHECKING:
    from pytest_lmeval.tasks.base import BaseTask


def load_dataset(path: str, name: str | None = None, *, split: str | None = None, **options: Any) -> Any:
    """Return the rows of ``split``, or a mapping of all splits if ``split`` is None.

    ``path`` is a file in the calling file's folder, with or without its suffix, or a subfolder with one file per split.
    If there is no such path, call ``datasets.load_dataset`` with all arguments. Raises RecordRefused if the data cannot
    be read; for a missing package, the message has the command that installs it.
    """
    from pytest_lmeval.data import hub, local

    found = local.find(path, _folder_of(sys._getframe(1).f_globals.get("__file__")))
    if found is None:
        return hub.load(path, name, split=split, **options)
    splits = local.read(found, name)
    return splits if split is None else splits[split]


def load_hub_dataset(repo_id: str, subset: str = "default", split: str = "train") -> Any:
    """Return the rows of a split, like ``load_dataset(repo_id, subset, split=split)``; nanochat uses this name.

    In local data, a subset called ``default``, or named after the dataset, needs no subfolder.
    """
    from pytest_lmeval.data import hub, local

    found = local.find(repo_id, _folder_of(sys._getframe(1).f_globals.get("__file__")))
    is_whole = subset in ("default", repo_id.rpartition("/")[2])
    if found is None:
        return hub.load(repo_id, None if subset == "default" else subset, split=split)
    return local.read(found, None if is_whole and not (found / subset).is_dir() else subset)[split]


def _folder_of(calling_file: str | None) -> Path:
    return Path(calling_file).parent if calling_file else Path.cwd()


class LoadedSplits(dict[str, Any]):
    """The splits of local data by name, which ``self._load_hf_dataset`` returns."""

    def filter(self, function: Callable[[dict[str, Any]], bool]) -> LoadedSplits:
        """Return the splits with only the rows for which ``function`` returns True."""
        return LoadedSplits({split: rows.filter(function) for split, rows in self.items()})


def splits_of(
    task: BaseTask[Any], *, path: str, name: str | None = None, split: str | None = None, **options: Any
) -> Any:
    """Return a task's splits, or the rows of ``split``, from the task file's folder or, failing that, from the hub.

    Local rows are copies, so a task may change them. Raises RecordRefused for the field ``DATASET_PATH`` if the data
    cannot be read.
    """
    from pytest_lmeval.data import hub, local

    try:
        found = local.find(path, task._folder)
        if found is None:
            return hub.load(path, name, split=split, **{"revision": revision_of(task, path), **options})
        splits = local.read(found, name)
        if split is not None:
            return splits[split].copied()
        if splits.is_single:
            # A single file serves as both splits. They share rows, so that an item of one split can be found in the
            # other.
            used = [name for name in (task.SAMPLE_SPLIT, task.FEWSHOT_SPLIT) if name]
            return LoadedSplits(dict.fromkeys(used, splits[task.SAMPLE_SPLIT].copied()))
        return LoadedSplits({each: rows.copied() for each, rows in splits.items()})
    except RecordRefused as refused:
        field = "DATASET_PATH" if refused.field == "dataset" else refused.field
        raise RecordRefused(refused.rule, field, refused.detail) from None


def revision_of(task: BaseTask[Any], path: str) -> str | None:
    """Return the revision of a dataset on the hub, from ``HF_REVISION`` or ``REVISION_LOCKFILE``, or None.

    A lock file in the task file's folder holds a JSON object that maps each ``DATASET_PATH`` to a revision.
    """
    if task.HF_REVISION or task.REVISION_LOCKFILE is None:
        return task.HF_REVISION
    lock = task._folder / task.REVISION_LOCKFILE
    instead = "put it there, set HF_REVISION, or set REVISION_LOCKFILE = None for the newest"
    try:
        pinned = json.loads(lock.read_text("utf-8"))
    except (OSError, ValueError) as error:
        detail = f"{lock.name} beside the task file must have the revision of {path!r}: {error}; {instead}"
        raise RecordRefused("bad_value", "REVISION_LOCKFILE", detail) from None
    revision = pinned.get(path) if isinstance(pinned, dict) else None
    if not isinstance(revision, str) or not revision:
        raise RecordRefused("bad_value", "REVISION_LOCKFILE", f"{lock.name} has no revision of {path!r}; {instead}")
    return revision
