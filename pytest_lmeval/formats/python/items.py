"""A task class's items, subject by subject, each with its splits.

A class with its own loader puts the data into ``self.dataset``.
"""

from __future__ import annotations

import hashlib
import json
import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pytest_lmeval.data.splits import Row, Rows, Splits
from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.tasks.base import NO_SUBJECT, BaseTask
from pytest_lmeval.tasks.faults import called
from pytest_lmeval.tasks.prompts import ItemSplits, Others

# The seed of eval-framework, so that a class that shuffles while it loads produces the same order.
_SEED = 42


@dataclass(frozen=True, slots=True)
class ItemIndex:
    """An item's position: its subject (``""`` if unknown) and its ``index`` in the subject's split.

    ``own_splits`` is the subject's name if the data have separate splits for each subject, else ``""``.
    """

    subject: str
    splits: Splits
    index: int
    own_splits: str = ""


class Items(Sequence[ItemIndex]):
    """The items of the sample split, in the order of ``parts``, which maps subjects to their splits.

    If the data are not divided by subject, the only key of ``parts`` is ``""``. ``declared`` contains the class's
    ``SUBJECTS``.
    """

    def __init__(self, parts: Mapping[str, Splits], sample_split: str, declared: Sequence[Any]) -> None:
        self.parts = parts
        self.sample_split = sample_split
        self.has_none = tuple(declared) == (NO_SUBJECT,)
        self.declared = declared_subjects(declared)
        self._given = dict(zip(self.declared, declared, strict=False))
        self._places = [(part, index) for part, splits in parts.items() for index in range(len(splits[sample_split]))]
        self._of: dict[tuple[int, str], list[int]] = {}
        self._rows: dict[int, dict[int, int]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        part, index = self._places[number]
        splits = self.parts[part]
        return ItemIndex(part or self._subject(splits[self.sample_split][index]), splits, index, part)

    def item(self, place: ItemIndex) -> Row:
        """Return a copy of the item at ``place``, with its subject, if known, under the key ``subject``."""
        return self.named(place.splits[self.sample_split][place.index], place)

    def named(self, row: Row, place: ItemIndex) -> Row:
        """Return a copy of ``row`` with the subject of the item at ``place``."""
        if self.has_none:
            return {**row, "subject": NO_SUBJECT}
        if place.own_splits or (place.subject and "subject" not in row):
            return {**row, "subject": self._given.get(place.subject, place.subject)}
        return dict(row)

    def rows(self, splits: Splits, split: str, subject: str) -> Sequence[Row]:
        """Return the rows of a split whose subject is ``subject`` or missing."""
        rows = splits[split]
        if not subject or subject not in self.declared:
            return rows
        key = (id(rows), subject)
        if key not in self._of:
            about = [row.get("subject") for row in rows]
            self._of[key] = [number for number, each in enumerate(about) if each is None or str(each) == subject]
        return rows if len(self._of[key]) == len(rows) else _Chosen(rows, self._of[key])

    def twin(self, splits: Splits, split: str, index: int) -> int | None:
        """Return the position of item ``index`` in another split, or None; a class may use one file for two splits."""
        rows = splits[split]
        if id(rows) not in self._rows:
            self._rows[id(rows)] = rows.by_identity()
        return self._rows[id(rows)].get(id(splits[self.sample_split][index]))

    def _subject(self, row: Row) -> str:
        if self.has_none:
            return ""
        given = row.get("subject")
        if given is None:
            return self.declared[0] if len(self.declared) == 1 else ""
        return str(given)


class Drawn(ItemSplits):
    """The splits of an item's subject, without the item itself while its few-shot examples are drawn."""

    def __init__(self, items: Items, place: ItemIndex) -> None:
        self._items = items
        self._place = place

    def named(self, row: Row) -> Row:
        """Return a copy of ``row`` with the item's subject."""
        return self._items.named(row, self._place)

    def __getitem__(self, name: str) -> Sequence[Row]:
        splits, place = self._place.splits, self._place
        rows = self._items.rows(splits, name, "" if place.own_splits else place.subject)
        number = self._own(name, rows) if self.leaves_out else None
        return rows if number is None else Others(rows, number)

    def _own(self, name: str, rows: Sequence[Row]) -> int | None:
        splits, place = self._place.splits, self._place
        if splits.is_single or name == self._items.sample_split:
            return rows.place(place.index) if isinstance(rows, _Chosen) else place.index
        return self._items.twin(splits, name, place.index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._place.splits)

    def __len__(self) -> int:
        return len(self._place.splits)


class _Chosen(Sequence[Row]):
    """A selection of rows that does not copy them."""

    def __init__(self, rows: Rows, indices: Sequence[int]) -> None:
        self._rows = rows
        self._indices = indices

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._rows[number] for number in self._indices[index]]
        return self._rows[self._indices[index]]

    def place(self, index: int) -> int:
        """Return the position in this selection of the row whose index among all rows is ``index``."""
        return bisect_left(self._indices, index)


def declared_subjects(declared: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of the subjects in ``SUBJECTS``, or () for ``[NO_SUBJECT]``."""
    return () if tuple(declared) == (NO_SUBJECT,) else tuple(subject_name(each) for each in declared)


def subject_name(given: Any) -> str:
    """Return an entry of ``SUBJECTS`` as text; a member of an enumeration becomes its value."""
    return str(given.value if isinstance(given, Enum) else given)


def loaded_parts(task: BaseTask[Any]) -> Mapping[str, Splits]:
    """Return the splits that ``_load_dataset`` sets for each subject; without subjects, the only key is ``""``."""
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
