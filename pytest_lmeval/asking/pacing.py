"""How fast an event loop may ask: the first request goes alone, and a server may allow only so many a minute."""

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
"""How long the others wait at most."""


class Waits:
    """The waits of the ``in_hand`` requests that are being asked; may be read from another thread."""

    def __init__(self) -> None:
        self.in_hand = 0
        self._waits: dict[object, Wait] = {}

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
        return min(waits) if waits and len(waits) >= self.in_hand else None


class Opening:
    """Sends the first request alone: what is wrong with all of them is found out with one.

    Lets as many requests be in flight as ``room`` says, until it says None, and for ``ALONE_S`` seconds at most, after
    which it calls ``on_open``. Where it ``is_open``, it is known already that there is a model that answers.

    To be used in one event loop.
    """

    def __init__(self, room: Callable[[], int | None], on_open: Callable[[], None], *, is_open: bool = False) -> None:
        self._room = room
        self._on_open = on_open
        self._is_open = is_open
        self._timer: asyncio.TimerHandle | None = None

    def has_room(self, in_flight: int) -> bool:
        """Tell whether a request may go beside so many others."""
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
    """Lets requests through at the adapter's ``requests_per_minute`` and ``tokens_per_minute``, if it has them.

    Each of ``share`` processes takes its part. Tokens are estimated before, and settled after, each request. ``sleep``
    is how it waits. Where it has neither, nothing ``limits`` requests.
    """

    def __init__(self, facts: AdapterFacts, share: int, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._sleep = sleep
        self.limits = bool(facts.requests_per_minute or facts.tokens_per_minute)
        self._requests = _Bucket((facts.requests_per_minute or 0.0) / 60 / share)
        self._tokens = _Bucket((facts.tokens_per_minute or 0.0) / 60 / share)

    async def acquire(self, request: Request) -> None:
        """Wait until ``request`` may go."""
        for bucket, amount in ((self._requests, 1.0), (self._tokens, _estimate(request))):
            wait = bucket.take(amount)
            if wait > 0:
                await self._sleep(wait)

    def settle(self, request: Generate, completion: Completion) -> None:
        """Give back, or take in addition, what the estimate was off by."""
        used = (completion.prompt_tokens or 0) + (completion.completion_tokens or 0)
        if used:
            self._tokens.take(used - _estimate(request))


class _Bucket:
    """Fills at ``rate`` a second; taking more than it holds is a debt, and the time to wait until it is paid."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._level = self._most = max(1.0, rate * _BURST_S) if rate else 0.0
        self._filled = time.monotonic()

    def take(self, amount: float) -> float:
        """Take ``amount``; return the seconds to wait before using it."""
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
