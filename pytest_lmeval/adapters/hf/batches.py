"""Form batches of rows that have similar lengths; each batch is as large as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from pytest_lmeval.adapters.hf.rows import AnyRow, Batch, Row, RowFamily, rows_of
from pytest_lmeval.errors import AdapterError

_LOGITS_PER_TOKEN = 16384
"""The number of logits that need as much memory as reading one token."""
_HELD_PER_TOKEN = 4
"""The number of tokens whose keys and values need as much memory as reading one token."""
_MOST_PADDING = 0.5
"""The largest share of padding in a batch; with more padding, two batches are faster."""
_Request = TypeVar("_Request")
_Ready = TypeVar("_Ready")


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of a batch.

    ``tokens`` is the maximum number of tokens in a pass through the model, including padding and tokens to generate. No
    row may exceed the model's ``window``.
    """

    tokens: int
    vocabulary: int
    window: int | None = None


class Size(NamedTuple):
    """The size of a batch: its numbers of families and rows, and the largest token counts among its rows.

    ``rest`` counts the tokens of a row that its family does not share, and ``real`` counts the tokens of the batch
    without padding.
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
        """Return the size of the batch with ``family`` added."""
        size = self.with_beginning(family.shared)
        for row in family.rows:
            size = size.with_row(row, family.shared)
        return size

    def with_beginning(self, shared: int) -> Size:
        """Return the size of the batch with a family's shared beginning added, but not the family's rows."""
        return self._replace(families=self.families + 1, shared=max(self.shared, shared), real=self.real + shared)

    def with_row(self, row: Row, shared: int) -> Size:
        """Return the size of the batch with one row added, whose first ``shared`` tokens belong to its family."""
        width = len(row.tokens)
        rest = width - shared
        return self._replace(
            rows=self.rows + 1,
            rest=max(self.rest, rest),
            room=max(self.room, row.room),
            kept=max(self.kept, row.kept),
            width=max(self.width, width),
            real=self.real + rest + row.room,
        )

    @property
    def read(self) -> int:
        """The number of tokens that the model computes, including padding."""
        return self.families * self.shared + self.rows * (self.rest + self.room)

    @property
    def taken(self) -> float:
        """The memory that the batch takes for reading and for keys and values, as a number of tokens."""
        held = self.rows * (self.shared + self.rest + self.room)
        return max(self.read, held / _HELD_PER_TOKEN)

    def fits(self, limits: BatchLimits) -> bool:
        """Return True if the batch is within the limits, and at most half of it is padding."""
        logits = self.rows * self.kept * limits.vocabulary
        within = max(self.taken, logits / _LOGITS_PER_TOKEN) <= limits.tokens
        # The model computes a finished row until the last row ends, and that must not exceed the window.
        sees = limits.window is None or not self.room or self.width + self.room <= limits.window
        return within and sees and self.real >= (1 - _MOST_PADDING) * self.read


def size_of(batch: Batch[AnyRow]) -> Size:
    """Compute the size of a batch."""
    size = Size()
    for family in batch:
        size = size.with_family(family)
    return size


def batches(groups: Sequence[RowFamily[AnyRow]], limits: BatchLimits) -> Iterator[list[RowFamily[AnyRow]]]:
    """Yield batches of the families within the limits, longest rows first; each batch has at least one row.

    Only families with a shared beginning need two passes through the model, so a batch never mixes them with other
    families.
    """
    batch: list[RowFamily[AnyRow]] = []
    size = Size()
    for family in sorted(groups, key=lambda one: (one.shared > 0, max(map(_length, one.rows))), reverse=True):
        for part in _parts(family, limits):
            larger = size.with_family(part)
            if batch and ((part.shared > 0) != (batch[0].shared > 0) or not larger.fits(limits)):
                yield batch
                batch, larger = [], Size().with_family(part)
            batch.append(part)
            size = larger
    if batch:
        yield batch


def _length(row: Row) -> int:
    return len(row.tokens) + row.room


def _parts(family: RowFamily[AnyRow], limits: BatchLimits) -> Iterator[RowFamily[AnyRow]]:
    """Split the family into parts within the limits; the longest rows come first."""
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


@dataclass(slots=True)
class WindowPlan:
    """The batches for the requests with these ``numbers``, and an error for each request that is in no batch."""

    numbers: Sequence[int]
    batches: list[Batch[Any]] = field(default_factory=list)
    errors: dict[int, AdapterError] = field(default_factory=dict)

    def parts(self) -> Iterator[WindowPlan]:
        """Divide the plan into a plan for the errors and a plan for each batch."""
        if self.errors:
            yield WindowPlan(list(self.errors), errors=self.errors)
        for batch in self.batches:
            yield WindowPlan([number for row in rows_of(batch) for number in row.answers], [batch])


def prepare(
    requests: Sequence[_Request], ready: Callable[[int, _Request], _Ready]
) -> tuple[Mapping[int, _Ready], dict[int, AdapterError]]:
    """Call ``ready`` for each request; return its results and the errors that it raised, by request number."""
    prepared: dict[int, _Ready] = {}
    errors: dict[int, AdapterError] = {}
    for number, request in enumerate(requests):
        try:
            prepared[number] = ready(number, request)
        except AdapterError as error:
            errors[number] = error
    return prepared, errors
