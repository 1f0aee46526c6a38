"""Limit the rate of requests in an event loop, and send the first request alone."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from pytest_lmeval.adapters.facts import AdapterFacts
from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.types import Completion, Generate, Request

_BURST_S = 2.0
_CHARACTERS_PER_TOKEN = 4
_ASSUMED_COMPLETION_TOKENS = 256
ALONE_S = 5.0
"""The maximum number of seconds for which other requests wait for the first request."""


class Waits:
    """The current waits of the requests in progress, whose number is ``in_hand``; any thread may read the waits."""

    def __init__(self) -> None:
        self.in_hand = 0
        self._waits: dict[object, Wait] = {}

    @contextmanager
    def waiting(self, seconds: float, what: str) -> Iterator[None]:
        """While the ``with`` block runs, record that a request waits for ``what``."""
        key = object()
        self._waits[key] = Wait(time.monotonic() + seconds, what)
        try:
            yield
        finally:
            del self._waits[key]

    @property
    def current(self) -> Wait | None:
        """The wait that ends first; None unless all requests are waiting."""
        waits = list(self._waits.values())
        return min(waits) if waits and len(waits) >= self.in_hand else None


class Opening:
    """Lets the first request run alone, so that only one request fails if an error affects all requests.

    At most ``room()`` requests are in flight until ``room`` returns None. After ``ALONE_S`` seconds, the limit ends
    regardless, and the class calls ``on_open``. If ``is_open`` is True, there is no limit, because the model is known
    to answer. Use an instance in only one event loop.
    """

    def __init__(self, room: Callable[[], int | None], on_open: Callable[[], None], *, is_open: bool = False) -> None:
        self._room = room
        self._on_open = on_open
        self._is_open = is_open
        self._timer: asyncio.TimerHandle | None = None

    def has_room(self, in_flight: int) -> bool:
        """Return True if another request may start while ``in_flight`` requests are in progress."""
        if self._is_open:
            return True
        room = self._room()
        if room is None:
            self._is_open = True
            if self._timer is not None:
                self._timer.cancel()
            return True
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ALONE_S, self._open)
        return in_flight < room

    def _open(self) -> None:
        self._is_open = True
        self._on_open()


class RateLimit:
    """Delays requests according to the adapter's ``requests_per_minute`` and ``tokens_per_minute``.

    Each of ``share`` processes applies an equal part of the limits. The class estimates the number of tokens before
    each request, and corrects the number afterwards. ``sleep`` waits. If the adapter has neither limit, ``limits`` is
    False.
    """

    def __init__(self, facts: AdapterFacts, share: int, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._sleep = sleep
        self.limits = bool(facts.requests_per_minute or facts.tokens_per_minute)
        self._requests = _Bucket((facts.requests_per_minute or 0.0) / 60 / share)
        self._tokens = _Bucket((facts.tokens_per_minute or 0.0) / 60 / share)

    async def acquire(self, request: Request) -> None:
        """Wait until the limits allow ``request``."""
        for bucket, amount in ((self._requests, 1.0), (self._tokens, _estimate(request))):
            wait = bucket.take(amount)
            if wait > 0:
                await self._sleep(wait)

    def settle(self, request: Generate, completion: Completion) -> None:
        """Replace the estimated number of tokens with the actual number."""
        used = (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
        if used:
            self._tokens.take(used - _estimate(request))


class _Bucket:
    """A token bucket that fills at ``rate`` per second; if it holds less than a caller takes, the caller must wait."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._level = self._most = max(1.0, rate * _BURST_S) if rate else 0.0
        self._filled = time.monotonic()

    def take(self, amount: float) -> float:
        """Take ``amount`` out of the bucket; return the number of seconds to wait."""
        if not self._rate:
            return 0.0
        now = time.monotonic()
        self._level = min(self._most, self._level + (now - self._filled) * self._rate) - amount
        self._filled = now
        return max(0.0, -self._level / self._rate)


def _estimate(request: Request) -> float:
    if not isinstance(request, Generate):
        return len(request.context + request.continuation) / _CHARACTERS_PER_TOKEN
    return len(request.text) / _CHARACTERS_PER_TOKEN + (request.max_tokens or _ASSUMED_COMPLETION_TOKENS)
