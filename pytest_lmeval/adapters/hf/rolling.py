"""How probable a whole text is: read in windows of the model's length, each of its tokens predicted once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pytest_lmeval.types import LogProb

Split = tuple[list[int], int]
"""The tokens of a window, and how many of them, at the end, are predicted."""


def windows(start: Sequence[int], tokens: Sequence[int], size: int | None) -> Iterator[Split]:
    """Yield the windows of a text of ``tokens`` for a model that reads ``size`` of them at once; None for any number.

    The first is conditioned on ``start`` alone. Each other one predicts the next ``size`` tokens from the one before
    them, the last one those that are left from as many before them as the model reads.
    """
    length = len(tokens) if size is None else size
    whole = [*start, *tokens]
    done = 0
    while done < len(tokens):
        count = min(length, len(tokens) - done)
        end = len(start) + done + count
        # The text's first window has nothing before it; a window is what is read, and one token more.
        begin = end - count - len(start) if done == 0 else end - length - 1
        yield whole[max(0, begin) : end], count
        done += count


def joined(parts: Sequence[LogProb]) -> LogProb:
    """Return the windows' log-probabilities as that of the whole text."""
    tokens = tuple(each for part in parts for each in part.tokens)
    ids = tuple(each for part in parts for each in part.ids)
    times = [part.latency_ms for part in parts if part.latency_ms is not None]
    latency = math.fsum(times) if times else None
    return LogProb(math.fsum(part.total for part in parts), tokens, all(part.greedy for part in parts), latency, ids)
