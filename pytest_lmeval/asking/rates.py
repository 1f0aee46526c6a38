"""Requests and tokens per minute, where a server allows only so many."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from pytest_lmeval.types import Completion, Generate, Request

_BURST_S = 2.0
_CHARACTERS_PER_TOKEN = 4
_ASSUMED_COMPLETION_TOKENS = 256


class RateLimit:
    """Lets requests through at the adapter's ``requests_per_minute`` and ``tokens_per_minute``, if it has them.

    Each of ``share`` processes takes its part. Tokens are estimated before, and settled after, each request. ``sleep``
    is how it waits.
    """

    def __init__(self, adapter: Any, share: int, sleep: Callable[[float], Awaitable[None]] | None = None) -> None:
        self._sleep = sleep or asyncio.sleep
        self._requests = _Bucket(_per_second(adapter, "requests_per_minute", share))
        self._tokens = _Bucket(_per_second(adapter, "tokens_per_minute", share))

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

    def __init__(self, rate: float | None) -> None:
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


def _per_second(adapter: Any, attribute: str, share: int) -> float | None:
    per_minute = getattr(adapter, attribute, None)
    return float(per_minute) / 60 / share if per_minute else None


def _estimate(request: Request) -> float:
    if not isinstance(request, Generate):
        return len(request.context + request.continuation) / _CHARACTERS_PER_TOKEN
    return len(request.text) / _CHARACTERS_PER_TOKEN + (request.max_tokens or _ASSUMED_COMPLETION_TOKENS)
