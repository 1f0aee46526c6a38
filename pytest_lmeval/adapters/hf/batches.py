"""Which requests go through the model together, the rectangle they make, and what beginnings are worth reading once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pytest_lmeval.adapters.hf.prompts import shared_length

_Row = TypeVar("_Row")
_WORTH_SAVING = 0.4
"""The share of a family's tokens that must be saved: a second pass through the model has a price of its own."""


def pack(
    rows: Mapping[int, _Row], size: Callable[[_Row], int], fits: Callable[[Sequence[_Row]], bool]
) -> Iterator[dict[int, _Row]]:
    """Yield parts of ``rows``, the largest rows first, each part as long as ``fits`` allows and at least one row long.

    Rows of about one size come together, so that little is padded; what needs the most memory comes first.

    >>> list(pack({0: "a", 1: "abcd", 2: "abc"}, len, lambda rows: len(rows) <= 2))
    [{1: 'abcd', 2: 'abc'}, {0: 'a'}]
    """
    part: dict[int, _Row] = {}
    for number, row in sorted(rows.items(), key=lambda item: size(item[1]), reverse=True):
        if part and not fits([*part.values(), row]):
            yield part
            part = {}
        part[number] = row
    if part:
        yield part


def padded(rows: Sequence[Sequence[int]], pad: int, device: str, *, left: bool) -> tuple[Any, Any]:
    """Return tokens and attention mask, both of shape (rows, length of the longest), on ``device``.

    They are filled up on the ``left``, or on the right: for rows that go on from something.
    """
    import torch

    width = max(map(len, rows))

    def filled(row: Sequence[int], rest: int) -> list[int]:
        more = [rest] * (width - len(row))
        return [*more, *row] if left else [*row, *more]

    tokens = torch.tensor([filled(row, pad) for row in rows])
    mask = torch.tensor([filled([1] * len(row), 0) for row in rows])
    return tokens.to(device), mask.to(device)


@dataclass(slots=True)
class ScoredRow:
    """One row for the model: what it reads, and by request number the tokens whose probability is asked for.

    The i-th last of a continuation's tokens is predicted at the i-th last token that is read.
    """

    tokens: list[int]
    asked: dict[int, list[int]] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """How many predictions, at the end of the row, are asked for."""
        return max(map(len, self.asked.values()))


class RowFamily:
    """Rows whose first ``shared`` tokens are the same, and which ask for no prediction that is made at one of them.

    ``width`` are the tokens of the longest row, ``rest`` those of them that it does not share, and ``kept`` is the
    most predictions that a row asks for.
    """

    __slots__ = ("kept", "rest", "rows", "shared", "width")

    def __init__(self, rows: Sequence[ScoredRow], shared: int = 0) -> None:
        self.rows = tuple(rows)
        self.shared = shared
        self.width = max(len(row.tokens) for row in rows)
        self.rest = self.width - shared
        self.kept = max(row.kept for row in rows)


def families(rows: Sequence[ScoredRow]) -> list[RowFamily]:
    """Return the rows as families, those that share too little each as a family of its own.

    >>> long = [1, 2, 3, 4, 5, 6]
    >>> rows = [ScoredRow([*long, 7, 8], {0: [8, 9]}), ScoredRow([5], {1: [6]}), ScoredRow([*long, 9], {2: [9]})]
    >>> [(family.shared, len(family.rows)) for family in families(rows)]
    [(6, 2), (0, 1)]
    """
    found: list[RowFamily] = []
    members: list[ScoredRow] = []
    # In this order, rows that begin with the same tokens are next to each other.
    for row in sorted(rows, key=lambda row: row.tokens):
        if members and not _pays([*members, row]):
            found.append(_family(members))
            members = []
        members.append(row)
    return [*found, _family(members)] if members else found


def can_share(model: Any) -> bool:
    """Tell whether ``model`` is known to go on from the keys and values of another row's beginning.

    Only models of the library itself whose layers all attend to everything: what slides, recurs or is compressed
    keeps more, or less, than a beginning.
    """
    config = model.config.get_text_config()
    layers = set(getattr(config, "layer_types", None) or ["full_attention"])
    whole = layers == {"full_attention"} and not getattr(config, "sliding_window", None)
    knows = {"past_key_values", "position_ids", "logits_to_keep"} <= inspect.signature(model.forward).parameters.keys()
    ours = type(model).__module__.startswith("transformers.models.")
    return ours and whole and knows and not getattr(model, "_is_stateful", False)


def _family(rows: Sequence[ScoredRow]) -> RowFamily:
    return RowFamily(rows, _shared(rows) if len(rows) > 1 else 0)


def _shared(rows: Sequence[ScoredRow]) -> int:
    # In sorted order the first and the last row have the least in common.
    shared = shared_length(rows[0].tokens, rows[-1].tokens)
    return min(shared, *(len(row.tokens) - row.kept for row in rows))


def _pays(rows: Sequence[ScoredRow]) -> bool:
    saved = _shared(rows) * (len(rows) - 1)
    return saved >= _WORTH_SAVING * sum(len(row.tokens) for row in rows)
