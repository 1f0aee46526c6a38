"""Compute log-likelihoods with a bigram model of bytes, whose arithmetic a reader can check by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogLikelihood, LogProb

_BYTES = 256
_BEGINNING = ord("\n")


class Bigram:
    """Counts the pairs of UTF-8 bytes in ``texts``; each text is one line.

    The probability that byte ``b`` follows ``a`` is (1 + count of ``ab``) / (256 + count of ``a`` before any byte).
    Every string therefore has a probability above 0. A line feed precedes the first byte of each text.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        data = b"\n" + b"".join(_bytes(text) + b"\n" for text in texts)
        self._pairs = Counter(pairwise(data))
        self._firsts = Counter(data[:-1])
        self._likeliest = [max(range(_BYTES), key=lambda then: self._pairs[first, then]) for first in range(_BYTES)]

    def log_prob(self, request: LogLikelihood) -> LogProb | AdapterError:
        """Return the log-probability of the continuation, with one token per byte, or an error if it is empty.

        The greedy choice after each byte is its likeliest successor; ties go to the lowest byte.
        """
        then = _bytes(request.continuation)
        if not then:
            return AdapterError("the continuation is empty")
        before = _bytes(request.context)[-1:] or bytes([_BEGINNING])
        pairs = list(pairwise(before + then))
        tokens = tuple(math.log((1 + self._pairs[pair]) / (_BYTES + self._firsts[pair[0]])) for pair in pairs)
        greedy = all(self._likeliest[first] == second for first, second in pairs)
        return LogProb(math.fsum(tokens), tokens, greedy, ids=tuple(then))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
