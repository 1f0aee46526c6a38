"""The rows of tokens that the model reads, and families of rows with a common beginning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeAlias, TypeVar

from pytest_lmeval.adapters.hf.prompts import Seen, shared_length

_WORTH_SAVING = 0.4
"""The fraction of a family's tokens that sharing must save, because sharing needs a second pass through the model."""
Sampling: TypeAlias = tuple[tuple[str, float], ...]
"""Request options that override the adapter's options, sorted by name."""


@dataclass(slots=True)
class ScoredRow:
    """A row for scoring continuations; ``asked`` maps request numbers to the tokens of the continuations.

    At the row's i-th-to-last token, the model predicts the i-th-to-last token of each continuation.
    """

    tokens: list[int]
    asked: dict[int, list[int]] = field(default_factory=dict)

    room: ClassVar[int] = 0
    """The number of tokens to generate."""
    sampling: ClassVar[Sampling] = ()
    seen: ClassVar[None] = None

    @property
    def kept(self) -> int:
        """The number of predictions, at the end of the row, that the requests need."""
        return max(map(len, self.asked.values()))

    @property
    def answers(self) -> Iterable[int]:
        """The numbers of the requests that the row answers."""
        return self.asked


@dataclass(frozen=True, slots=True)
class Prompted:
    """The ``tokens`` of a prompt, and ``room``, the maximum number of tokens to generate.

    ``seed`` initializes the random numbers for this prompt. ``opened`` is True if the prompt ends within thoughts.
    ``tools`` is True if the model may call tools. ``number`` is the request's number. All rows of a batch have the same
    ``sampling``, and either all rows or no rows have images (``seen``).
    """

    tokens: list[int]
    room: int
    stop: tuple[str, ...] = ()
    seed: str = ""
    opened: bool = False
    tools: bool = False
    number: int = 0
    sampling: Sampling = ()
    seen: Seen | None = None

    kept: ClassVar[int] = 1

    @property
    def answers(self) -> Iterable[int]:
        """A tuple with the number of the request that the row answers."""
        return (self.number,)


Row: TypeAlias = ScoredRow | Prompted
AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class RowFamily(Generic[AnyRow]):
    """Rows whose first ``shared`` tokens are equal; no request needs a prediction at these tokens."""

    rows: Sequence[AnyRow]
    shared: int = 0

    @property
    def beginning(self) -> tuple[int, ...]:
        """The tokens that all rows share."""
        return tuple(self.rows[0].tokens[: self.shared])


Batch = Sequence[RowFamily[AnyRow]]
"""Families that go through the model together, either all with a shared beginning or all without."""


def rows_of(batch: Batch[AnyRow]) -> list[AnyRow]:
    """Return a batch's rows in order."""
    return [row for family in batch for row in family.rows]


def families(rows: Iterable[AnyRow]) -> list[RowFamily[AnyRow]]:
    """Group rows into families; a row that shares too few tokens with other rows becomes a separate family.

    >>> long = [1, 2, 3, 4, 5, 6]
    >>> rows = [ScoredRow([*long, 7, 8], {0: [8, 9]}), ScoredRow([5], {1: [6]}), ScoredRow([*long, 9], {2: [9]})]
    >>> [(family.shared, len(family.rows)) for family in families(rows)]
    [(6, 2), (0, 1)]
    """
    found: list[RowFamily[AnyRow]] = []
    members: list[AnyRow] = []
    shared = total = 0
    # Sorting places rows with the same beginning next to each other.
    for row in sorted(rows, key=lambda row: row.tokens):
        size, most = len(row.tokens), len(row.tokens) - row.kept
        if members:
            begun = members[0].tokens[:shared]
            # Most rows have the whole beginning, and comparing lists is much faster than comparing token by token.
            same = shared if row.tokens[:shared] == begun else shared_length(begun, row.tokens)
            if min(same, most) * len(members) >= _WORTH_SAVING * (total + size):
                members.append(row)
                shared, total = min(same, most), total + size
                found[-1] = RowFamily(members, shared)
                continue
        members, shared, total = [row], most, size
        found.append(RowFamily(members))
    return found
