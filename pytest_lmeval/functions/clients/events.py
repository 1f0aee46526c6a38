"""An answer that is there sent as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from aiohttp import web

_PIECES = 8


async def begun(request: web.Request) -> Events:
    """Return a stream of events that has begun."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    return Events(response)


class Events:
    """A reply to which events are added."""

    def __init__(self, response: web.StreamResponse) -> None:
        self._response = response

    async def send(self, value: Any, name: str = "") -> None:
        """Send an event, under a name where the interface gives events names."""
        head = f"event: {name}\n" if name else ""
        await self._response.write(f"{head}data: {json.dumps(value)}\n\n".encode())

    async def end(self, last: bytes = b"") -> web.StreamResponse:
        """End the reply; ``last`` is what the interface has behind all events."""
        if last:
            await self._response.write(last)
        await self._response.write_eof()
        return self._response


def pieces(text: str) -> Iterator[str]:
    """Yield a text in a few pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
