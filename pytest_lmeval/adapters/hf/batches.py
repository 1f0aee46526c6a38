"""Which requests go through the model together, and the rectangle they make."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

_Row = TypeVar("_Row")


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
