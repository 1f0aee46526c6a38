"""The splits of a dataset, and their rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from pytest_lmeval.data.shuffle import permutation
from pytest_lmeval.errors import RecordRefused, did_you_mean

Row = dict[str, Any]


class Rows(Sequence[Row]):
    """The rows of one split, and the hash of the files that contain them."""

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
        """Return a row for a number, rows for a slice, or a column for a name."""
        return [row[index] for row in self._rows] if isinstance(index, str) else self._rows[index]

    def shuffle(self, seed: int = 42) -> Rows:
        """Return the rows in the order of ``datasets.Dataset.shuffle(seed=seed)``; raise ValueError for a bad seed."""
        return self.select(permutation(seed, len(self._rows)))

    def select(self, indices: Iterable[int]) -> Rows:
        """Return the rows at ``indices``."""
        return Rows([self._rows[index] for index in indices], self.sha256)

    def filter(self, function: Callable[[Row], bool]) -> Rows:
        """Return the rows for which ``function`` returns True."""
        return Rows([row for row in self._rows if function(row)], self.sha256)

    def by_identity(self) -> dict[int, int]:
        """Return the index of each row by the row's ``id()``, or {} if rows are decoded on access."""
        return {id(row): place for place, row in enumerate(self._rows)} if isinstance(self._rows, list) else {}

    def copied(self) -> Rows:
        """Return a copy of each row."""
        return Rows([dict(row) for row in self._rows], self.sha256)


class Splits(Mapping[str, Rows]):
    """The splits of a dataset by name; a split is read on first access, and a single file serves as every split."""

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
        """Return the rows of a split; raise RecordRefused if the split is missing or empty."""
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


def digest_of(parts: Iterable[bytes]) -> str:
    """Return the SHA-256 of the concatenated parts."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
