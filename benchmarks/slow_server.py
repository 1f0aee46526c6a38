"""A server that answers chat requests after a fixed or a long-tailed time, cheap enough not to be what is measured.

Usage: ``python benchmarks/slow_server.py fixed|tailed SECONDS``; prints its port on the first line.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable

__all__ = ["main"]

_BODY = json.dumps(
    {
        "id": "r",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }
).encode()
_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


class Answering(asyncio.Protocol):
    """Reads requests off one connection and answers each after its time."""

    def __init__(self, latency: Callable[[], float]) -> None:
        self._latency = latency
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every whole request that has arrived."""
        self._received += data
        while (size := _request_size(self._received)) is not None:
            self._received = self._received[size:]
            asyncio.get_running_loop().call_later(self._latency(), self._answer)

    def _answer(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(_RESPONSE)


def _request_size(received: bytes) -> int | None:
    head, found, _ = received.partition(b"\r\n\r\n")
    if not found:
        return None
    length = head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
    size = len(head) + 4 + int(length or 0)
    return size if len(received) >= size else None


async def main(kind: str, seconds: float) -> None:
    """Serve until killed; ``tailed`` has the mean ``seconds``, most answers faster, some ten times slower."""
    draw = random.Random(7)
    tailed = [0.7] * 9 + [3.7]
    latency = (lambda: seconds) if kind == "fixed" else (lambda: seconds * draw.choice(tailed))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Answering(latency), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
