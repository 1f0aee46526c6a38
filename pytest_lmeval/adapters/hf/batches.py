"""Which rows go through the model together: those of about one size, as many as there is memory for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_lmeval.adapters.hf.rows import AnyRow, Row, RowFamily

_LOGITS_PER_TOKEN = 16384
"""So many logits are taken to need as much memory as one token that is read."""
_HELD_PER_TOKEN = 4
"""So many tokens' keys and values are taken to need as much memory as one token that is read."""
_MOST_PADDING = 0.5
"""The share of a batch that may be padding; with more of it, two batches are faster."""


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What a batch may take.

    ``tokens`` are those that go through the model together, padding and what is still to be written included. No row
    may come out of the ``window`` of the model.
    """

    tokens: int
    vocabulary: int
    window: int | None = None


class Size(NamedTuple):
    """What a batch takes: families, rows, and the most tokens of each kind that one of them has.

    ``rest`` are the tokens of a row that its family does not share, ``real`` those of the batch that are no padding.
    """

    families: int = 0
    rows: int = 0
    shared: int = 0
    rest: int = 0
    room: int = 0
    kept: int = 0
    width: int = 0
    real: int = 0

    def with_family(self, family: RowFamily[AnyRow]) -> Size:
        """Return the size of the batch with one more family."""
        size = self.with_beginning(family.shared)
        for row in family.rows:
            size = size.with_row(row, family.shared)
        return size

    def with_beginning(self, shared: int) -> Size:
        """Return the size of the batch with one more family, which has no rows yet."""
        more = {"shared": max(self.shared, shared), "real": self.real + shared}
        return self._replace(families=self.families + 1, **more)

    def with_row(self, row: Row, shared: int) -> Size:
        """Return the size with one more row, whose first ``shared`` tokens are its family's."""
        width, room = len(row.tokens), row.room
        rest = width - shared
        return Size(
            self.families,
            self.rows + 1,
            self.shared,
            max(self.rest, rest),
            max(self.room, room),
            max(self.kept, row.kept),
            max(self.width, width),
            self.real + rest + room,
        )

    @property
    def read(self) -> int:
        """The tokens that are computed, padding included."""
        return self.families * self.shared + self.rows * (self.rest + self.room)

    @property
    def taken(self) -> float:
        """What it takes of a budget of tokens: for what is read, keys and values of every row, and the predictions."""
        held = self.rows * (self.shared + self.rest + self.room)
        return max(self.read, held / _HELD_PER_TOKEN)

    def fits(self, limits: BatchLimits) -> bool:
        """Tell whether the limits have room for it, and not too much of it is padding."""
        logits = self.rows * self.kept * limits.vocabulary
        within = max(self.taken, logits / _LOGITS_PER_TOKEN) <= limits.tokens
        # A row that is done is carried along until the last one is: none may be carried out of the window.
        sees = limits.window is None or not self.room or self.width + self.room <= limits.window
        return within and sees and self.real >= (1 - _MOST_PADDING) * self.read


def size_of(batch: Sequence[RowFamily[AnyRow]]) -> Size:
    """Return what a batch takes."""
    size = Size()
    for family in batch:
        size = size.with_family(family)
    return size


def batches(groups: Sequence[RowFamily[AnyRow]], limits: BatchLimits) -> Iterator[list[RowFamily[AnyRow]]]:
    """Yield the families in batches within the limits, the largest first, each of a single row at least.

    Those with a shared beginning and those without go through the model in different ways, and never together.
    """
    batch: list[RowFamily[AnyRow]] = []
    size = Size()
    for family in sorted(groups, key=_order, reverse=True):
        for part in _parts(family, limits):
            larger = size.with_family(part)
            if batch and ((part.shared > 0) != (batch[0].shared > 0) or not larger.fits(limits)):
                yield batch
                batch, larger = [], Size().with_family(part)
            batch.append(part)
            size = larger
    if batch:
        yield batch


def _order(family: RowFamily[AnyRow]) -> tuple[bool, int]:
    return family.shared > 0, max(map(_length, family.rows))


def _length(row: Row) -> int:
    return len(row.tokens) + row.room


def _parts(family: RowFamily[AnyRow], limits: BatchLimits) -> Iterator[RowFamily[AnyRow]]:
    """Yield the family in parts within the limits, its longest rows first."""
    rows: list[AnyRow] = []
    size = begun = Size().with_beginning(family.shared)
    for row in sorted(family.rows, key=_length, reverse=True):
        larger = size.with_row(row, family.shared)
        if rows and not larger.fits(limits):
            yield RowFamily(rows, family.shared)
            rows, larger = [], begun.with_row(row, family.shared)
        rows.append(row)
        size = larger
    yield RowFamily(rows, family.shared)
