"""Data that a class loads itself: what it leaves in ``self.dataset``, subject by subject."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from pytest_lmeval.data.splits import Row, Rows, Splits
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.python.items import subject_name
from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask
from pytest_lmeval.tasks.faults import called

# That of eval-framework: a class that shuffles while it loads has the order that it has there.
_SEED = 42


def loaded_parts(task: BaseTask[Any]) -> Mapping[str, Splits]:
    """Return the splits that ``_load_dataset`` sets for each subject, those of ``""`` where there are no subjects."""
    return {
        "" if subject == NO_SUBJECT else subject_name(subject): _loaded(task, subject)
        for subject in task.SUBJECTS or (NO_SUBJECT,)
    }


def _loaded(task: BaseTask[Any], subject: Any) -> Splits:
    field = f"{type(task).__name__}._load_dataset"
    task.rnd = random.Random(_SEED)
    task.dataset = {}
    called(field, task._load_dataset, subject)
    about = "" if subject == NO_SUBJECT else f" for the subject {subject!r}"
    dataset: Any = task.dataset
    if not isinstance(dataset, Mapping) or not dataset.get(task.SAMPLE_SPLIT):
        got = f"the splits {', '.join(dataset) or 'none'}" if isinstance(dataset, Mapping) else f"{dataset!r:.80}"
        wanted = f"self.dataset to have at least one item in the split {task.SAMPLE_SPLIT!r}{about}"
        raise RecordRefused("bad_value", field, f"expected {wanted}, got {got}")
    return Splits({str(split): _reader(field, rows) for split, rows in dataset.items()}, field)


def _reader(field: str, given: Any) -> Callable[[], Rows]:
    def read() -> Rows:
        rows: list[Row] = list(given)
        if not all(isinstance(row, dict) for row in rows):
            wrong = next(row for row in rows if not isinstance(row, dict))
            raise RecordRefused("bad_type", field, f"expected items that are dicts, got {wrong!r:.80}")
        text = json.dumps(rows, default=lambda other: type(other).__name__, skipkeys=True)
        return Rows(rows, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())

    return read
