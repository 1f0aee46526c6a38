"""An answer that is there sent as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from aiohttp import web

_PIECES = 8


async def stream(request: web.Request, events: Iterable[dict[str, Any]], last: bytes) -> web.StreamResponse:
    """Reply with events, under their names if the interface gives them types, and ``last`` behind them."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
    await response.prepare(request)
    for event in events:
        head = f"event: {event['type']}\n" if "type" in event else ""
        await response.write(f"{head}data: {json.dumps(event)}\n\n".encode())
    if last:
        await response.write(last)
    await response.write_eof()
    return response


def pieces(text: str) -> Iterator[str]:
    """Yield a text in a few pieces."""
    size = max(1, -(-len(text) // _PIECES))
    for start in range(0, len(text), size):
        yield text[start : start + size]
