"""What requests wait for on purpose, before they are sent or sent again: a run says so where it takes long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

SERVER = "for the server's rate limit"
OWN = "for the adapter's rate limit"
AGAIN = "before asking again"


class Wait(NamedTuple):
    """Until when, by the monotonic clock, and what for."""

    until: float
    what: str

    @property
    def seconds(self) -> float:
        """How long it will take from now."""
        return max(0.0, self.until - time.monotonic())


class Waits:
    """The waits of the requests in hand; may be read from another thread."""

    def __init__(self) -> None:
        self._in_hand = 0
        self._waits: dict[object, Wait] = {}

    @contextmanager
    def in_hand(self) -> Iterator[None]:
        """Count a request while it is worked on."""
        self._in_hand += 1
        try:
            yield
        finally:
            self._in_hand -= 1

    @contextmanager
    def waiting(self, seconds: float, what: str) -> Iterator[None]:
        """Note that a request in hand waits for ``what``."""
        key = object()
        self._waits[key] = Wait(time.monotonic() + seconds, what)
        try:
            yield
        finally:
            del self._waits[key]

    @property
    def current(self) -> Wait | None:
        """The wait that ends first, where all requests in hand wait; None where one of them gets on."""
        waits = list(self._waits.values())
        return min(waits) if waits and len(waits) >= self._in_hand else None
