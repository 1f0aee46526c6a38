"""The rows that the model reads for requests, and the families of rows with a common beginning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeAlias, TypeVar

from pytest_lmeval.adapters.hf.prompts import shared_length

_WORTH_SAVING = 0.4
"""The share of a family's tokens that sharing must save, since a second pass through the model has its own cost."""
Sampling: TypeAlias = tuple[tuple[str, float], ...]
"""Options of a request that override the adapter's, sorted by name."""


@dataclass(slots=True)
class ScoredRow:
    """A row whose continuations are scored: by request number, the tokens of the continuation.

    The i-th last of a continuation's tokens is predicted at the i-th last token that is read.
    """

    tokens: list[int]
    asked: dict[int, list[int]] = field(default_factory=dict)

    room: ClassVar[int] = 0
    """The number of tokens to write."""
    sampling: ClassVar[Sampling] = ()

    @property
    def kept(self) -> int:
        """The number of predictions needed, at the end of the row."""
        return max(map(len, self.asked.values()))

    @property
    def answers(self) -> Iterable[int]:
        """The numbers of the requests."""
        return self.asked


@dataclass(frozen=True, slots=True)
class Prompted:
    """A prompt of ``tokens`` with room for ``room`` more; ``seed`` seeds the draws for it alone.

    ``opened`` is true if it ends within thoughts, ``tools`` if the model may call tools. ``number`` is the request's.
    All rows of a batch have the same ``sampling``.
    """

    tokens: list[int]
    room: int
    stop: tuple[str, ...] = ()
    seed: str = ""
    opened: bool = False
    tools: bool = False
    number: int = 0
    sampling: Sampling = ()

    kept: ClassVar[int] = 1

    @property
    def answers(self) -> Iterable[int]:
        """The number of the request."""
        return (self.number,)


Row: TypeAlias = ScoredRow | Prompted
AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class RowFamily(Generic[AnyRow]):
    """Rows that begin with the same ``shared`` tokens, and need no prediction at any of them."""

    rows: Sequence[AnyRow]
    shared: int = 0

    @property
    def beginning(self) -> tuple[int, ...]:
        """The tokens that the rows share."""
        return tuple(self.rows[0].tokens[: self.shared])


Batch = Sequence[RowFamily[AnyRow]]
"""Families that go through the model together: either all share a beginning, or none does."""


def rows_of(batch: Batch[AnyRow]) -> list[AnyRow]:
    """Return the rows of a batch in order."""
    return [row for family in batch for row in family.rows]


def families(rows: Iterable[AnyRow]) -> list[RowFamily[AnyRow]]:
    """Group rows into families; a row that shares too little becomes its own family.

    >>> long = [1, 2, 3, 4, 5, 6]
    >>> rows = [ScoredRow([*long, 7, 8], {0: [8, 9]}), ScoredRow([5], {1: [6]}), ScoredRow([*long, 9], {2: [9]})]
    >>> [(family.shared, len(family.rows)) for family in families(rows)]
    [(6, 2), (0, 1)]
    """
    found: list[_Members[AnyRow]] = []
    # Sorting places rows with the same beginning next to each other.
    for row in sorted(rows, key=lambda row: row.tokens):
        if not (found and found[-1].take(row)):
            found.append(_Members(row))
    return [RowFamily(each.rows, each.shared if len(each.rows) > 1 else 0) for each in found]


class _Members(Generic[AnyRow]):
    """The rows of a family so far, in the order of their tokens, and the length of their common beginning."""

    def __init__(self, row: AnyRow) -> None:
        self.rows = [row]
        self.shared = len(row.tokens) - row.kept
        self._total = len(row.tokens)

    def take(self, row: AnyRow) -> bool:
        """Add a row if that saves enough; return True if so."""
        begun = self.rows[0].tokens[: self.shared]
        # Most rows have the whole beginning, and comparing lists is much faster than comparing token by token.
        shared = self.shared if row.tokens[: self.shared] == begun else shared_length(begun, row.tokens)
        shared, total = min(shared, len(row.tokens) - row.kept), self._total + len(row.tokens)
        if shared * len(self.rows) < _WORTH_SAVING * total:
            return False
        self.rows.append(row)
        self.shared, self._total = shared, total
        return True
