"""What the model reads for requests, a row each, and which rows have a beginning that is worth reading once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from pytest_lmeval.adapters.hf.prompts import shared_length

_WORTH_SAVING = 0.4
"""The share of a family's tokens that must be saved: a second pass through the model has a price of its own."""


class Row(Protocol):
    """What the model reads, and what is wanted of it.

    ``kept`` predictions at the end of the row are used, and ``room`` tokens are to be written behind it. It answers the
    requests of the numbers ``answers``.
    """

    @property
    def tokens(self) -> list[int]: ...

    @property
    def kept(self) -> int: ...

    @property
    def room(self) -> int: ...

    @property
    def answers(self) -> Iterable[int]: ...


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(slots=True)
class ScoredRow:
    """A row whose continuations are scored: by request number, the tokens whose probability is asked for.

    The i-th last of a continuation's tokens is predicted at the i-th last token that is read.
    """

    tokens: list[int]
    asked: dict[int, list[int]] = field(default_factory=dict)

    room = 0

    @property
    def kept(self) -> int:
        """How many predictions, at the end of the row, are asked for."""
        return max(map(len, self.asked.values()))

    @property
    def answers(self) -> Iterable[int]:
        """The numbers of the requests."""
        return self.asked


@dataclass(frozen=True, slots=True)
class Prompted:
    """A prompt of ``tokens`` with room for ``room`` more; ``seed`` seeds what is drawn for it, and for it alone.

    ``opened`` says that it ends within thoughts, ``tools`` that the model may call some. ``number`` is the request's,
    ``sampling`` what it has instead of the adapter's options: rows of one batch have the same.
    """

    tokens: list[int]
    room: int
    stop: tuple[str, ...] = ()
    seed: str = ""
    opened: bool = False
    tools: bool = False
    number: int = 0
    sampling: tuple[tuple[str, float], ...] = ()

    @property
    def kept(self) -> int:
        """One: what follows the prompt."""
        return 1

    @property
    def answers(self) -> Iterable[int]:
        """The number of the request."""
        return (self.number,)


class RowFamily(Generic[AnyRow]):
    """Rows whose first ``shared`` tokens are the same, and which use no prediction that is made at one of them.

    ``width`` are the tokens of the longest row.
    """

    __slots__ = ("rows", "shared", "width")

    def __init__(self, rows: Sequence[AnyRow], shared: int = 0) -> None:
        self.rows = tuple(rows)
        self.shared = shared
        self.width = max(len(row.tokens) for row in rows)

    @property
    def beginning(self) -> tuple[int, ...]:
        """The tokens that the rows share."""
        return tuple(self.rows[0].tokens[: self.shared])


Batch = Sequence[RowFamily[AnyRow]]
"""Families that go through the model together: all of them share a beginning, or none."""


def rows_of(batch: Batch[AnyRow]) -> list[AnyRow]:
    """Return the rows of a batch in their order."""
    return [row for family in batch for row in family.rows]


def families(rows: Iterable[AnyRow]) -> list[RowFamily[AnyRow]]:
    """Return the rows as families, those that share too little each as a family of its own.

    >>> long = [1, 2, 3, 4, 5, 6]
    >>> rows = [ScoredRow([*long, 7, 8], {0: [8, 9]}), ScoredRow([5], {1: [6]}), ScoredRow([*long, 9], {2: [9]})]
    >>> [(family.shared, len(family.rows)) for family in families(rows)]
    [(6, 2), (0, 1)]
    """
    found: list[_Members[AnyRow]] = []
    # In this order, rows that begin with the same tokens are next to each other.
    for row in sorted(rows, key=_tokens):
        if not (found and found[-1].take(row)):
            found.append(_Members(row))
    return [RowFamily(each.rows, each.shared if len(each.rows) > 1 else 0) for each in found]


def _tokens(row: Any) -> list[int]:
    tokens: list[int] = row.tokens
    return tokens


class _Members(Generic[AnyRow]):
    """The rows of a family so far, in the order of their tokens, and how long their common beginning is."""

    def __init__(self, row: AnyRow) -> None:
        self.rows = [row]
        self.shared = len(row.tokens) - row.kept
        self._total = len(row.tokens)

    def take(self, row: AnyRow) -> bool:
        """Add a row, unless too little would be saved then; return whether it was."""
        begun = self.rows[0].tokens[: self.shared]
        # Nearly always the whole beginning: a comparison of lists is much faster than one token after the other.
        shared = self.shared if row.tokens[: self.shared] == begun else shared_length(begun, row.tokens)
        shared, total = min(shared, len(row.tokens) - row.kept), self._total + len(row.tokens)
        if shared * len(self.rows) < _WORTH_SAVING * total:
            return False
        self.rows.append(row)
        self.shared, self._total = shared, total
        return True
