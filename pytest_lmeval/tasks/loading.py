"""``load_dataset`` for task files: local data beside the file, or the ``datasets`` library."""

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
    """Return the rows of one split, or a mapping of the splits where none is named.

    ``path`` is looked for beside the calling file: a file, a folder with a file per split, either with or without its
    suffix. What is not there is loaded by ``datasets.load_dataset``, with all arguments. Raises RecordRefused where
    the data cannot be read, and says how to install what is missing.
    """
    from pytest_lmeval.data import hub, local

    calling_file = sys._getframe(1).f_globals.get("__file__")
    folder = Path(calling_file).parent if calling_file else Path.cwd()
    found = local.find(path, folder)
    if found is None:
        return hub.load(path, name, split=split, **options)
    splits = local.read(found, name)
    return splits if split is None else splits[split]


class LoadedSplits(dict[str, Any]):
    """The splits of local data by name, as ``self._load_hf_dataset`` returns them."""

    def filter(self, function: Callable[[dict[str, Any]], bool]) -> LoadedSplits:
        """Return the splits with the rows that ``function`` is true of."""
        return LoadedSplits({split: rows.filter(function) for split, rows in self.items()})


def splits_of(
    task: BaseTask[Any], *, path: str, name: str | None = None, split: str | None = None, **options: Any
) -> Any:
    """Return the splits of a task's data, or one of them: local, seen from the task file, else of the hub.

    Rows of local data are copies: what a task writes into them is its own. Raise RecordRefused of ``DATASET_PATH``
    where the data cannot be read.
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
            # A single file is every split: an item is known again in the other one.
            used = [name for name in (task.SAMPLE_SPLIT, task.FEWSHOT_SPLIT) if name]
            return LoadedSplits(dict.fromkeys(used, splits[task.SAMPLE_SPLIT].copied()))
        return LoadedSplits({each: rows.copied() for each, rows in splits.items()})
    except RecordRefused as refused:
        field = "DATASET_PATH" if refused.field == "dataset" else refused.field
        raise RecordRefused(refused.rule, field, refused.detail) from None


def revision_of(task: BaseTask[Any], path: str) -> str | None:
    """Return the revision of a dataset of the hub: ``HF_REVISION``, else what ``REVISION_LOCKFILE`` says, else None.

    A lock file is a JSON object of revisions by ``DATASET_PATH``, beside the task file.
    """
    if task.HF_REVISION or task.REVISION_LOCKFILE is None:
        return task.HF_REVISION
    lock = task._folder / task.REVISION_LOCKFILE
    instead = "put it there, set HF_REVISION, or set REVISION_LOCKFILE = None for the newest"
    try:
        pinned = json.loads(lock.read_text("utf-8"))
    except (OSError, ValueError) as error:
        detail = f"{lock.name} beside the task file is to say the revision of {path!r}: {error}; {instead}"
        raise RecordRefused("bad_value", "REVISION_LOCKFILE", detail) from None
    revision = pinned.get(path) if isinstance(pinned, dict) else None
    if not isinstance(revision, str) or not revision:
        detail = f"{lock.name} has no revision of {path!r}; {instead}"
        raise RecordRefused("bad_value", "REVISION_LOCKFILE", detail)
    return revision
