"""A loopback HTTP server that does what a script says, down to the bytes and resets that no framework would send.

::

    async with ScriptedServer([status(500), says("4")]) as server:      # in the caller's event loop
        ...
    with serving([says("4")]) as server:                                # in a thread, for other processes and loops
        ...

Each request gets the next step of the script, and the last one for ever after; ``server.requests`` are the
requests as they came.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Exchange",
    "ScriptedServer",
    "Seen",
    "Step",
    "chat",
    "compressed",
    "cut_off",
    "drips",
    "hangs",
    "json_reply",
    "never_ends",
    "raw",
    "redirects",
    "replies",
    "resets",
    "says",
    "serving",
    "slow",
    "status",
]

Headers = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads(self.body)
        return fields


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the connection to answer it on, however badly."""

    seen: Seen
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def reply(self, code: int, body: bytes = b"", headers: Headers | None = None) -> None:
        await self.send(head(code, {"Content-Length": str(len(body)), **(headers or {})}) + body)

    def reset(self) -> None:
        """Close with a TCP reset instead of an orderly end."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def close(self) -> None:
        self.writer.close()


Step = Callable[[Exchange], Awaitable[None]]


@dataclass(slots=True, repr=False)
class ScriptedServer:
    """Serves one script on 127.0.0.1; ``port`` 0 takes a free one.

    Its repr shows no request: a key that a test finds in a traceback was not put there by the server.
    """

    script: Sequence[Step]
    port: int = 0
    requests: list[Seen] = field(default_factory=list)
    connections: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> ScriptedServer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening and drop every connection, answered or not; ``start`` takes the same port again."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, or the server is stopping: both are part of some script
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async for seen in read_requests(reader):
            step = self.script[min(len(self.requests), len(self.script) - 1)]
            self.requests.append(seen)
            await step(Exchange(seen, writer))
            if writer.is_closing():
                return


async def read_requests(reader: asyncio.StreamReader) -> AsyncIterator[Seen]:
    while True:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:-2])}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        yield Seen(method, target, headers, body)


@contextlib.contextmanager
def serving(script: Sequence[Step]) -> Iterator[ScriptedServer]:
    """Serve ``script`` from an event loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scripted-server")
    thread.start()
    server = ScriptedServer(script)
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(5)
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(5)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def head(code: int, headers: Headers) -> bytes:
    lines = [f"HTTP/1.1 {code} Scripted", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chat(text: Any, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    """Return a chat completion; ``more`` are fields of its message."""
    message = {"role": "assistant", "content": text, **more}
    return {
        "object": "chat.completion",
        "model": "scripted-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def replies(code: int, body: bytes, headers: Headers | None = None) -> Step:
    async def step(exchange: Exchange) -> None:
        await exchange.reply(code, body, headers)

    return step


def json_reply(document: Any, code: int = 200) -> Step:
    return replies(code, json.dumps(document).encode(), {"Content-Type": "application/json"})


def says(text: str, **more: Any) -> Step:
    """Answer properly."""
    return json_reply(chat(text, **more))


def status(code: int, body: str = '{"error": {"message": "scripted"}}', **headers: str) -> Step:
    """Answer with a status; underscores in header names are dashes."""
    return replies(code, body.encode(), {name.replace("_", "-"): value for name, value in headers.items()})


def redirects(code: int, location: str) -> Step:
    return replies(code, b"", {"Location": location})


def slow(seconds: float, then: Step) -> Step:
    async def step(exchange: Exchange) -> None:
        await asyncio.sleep(seconds)
        await then(exchange)

    return step


def raw(data: bytes) -> Step:
    """Send bytes as they are and close."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(data)
        exchange.close()

    return step


def resets(after: bytes = b"") -> Step:
    """Reset the connection, after some bytes or none."""

    async def step(exchange: Exchange) -> None:
        if after:
            await exchange.send(after)
            await asyncio.sleep(0.05)  # a reset overtakes bytes that have not been read yet
        exchange.reset()

    return step


def cut_off(code: int = 200, body: bytes = b'{"choices": [', chunked: bool = False) -> Step:
    """Promise more than is sent, and close."""
    promise = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(len(body) + 1000)}
    sent = b"%x\r\n%s\r\n" % (len(body), body) if chunked else body
    return raw(head(code, promise) + sent)


def hangs(after: bytes = b"") -> Step:
    """Take the request and say nothing, or no more than some bytes."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(after)
        await asyncio.sleep(60)

    return step


def never_ends(code: int = 200, chunk: bytes = b" " * 4096, pause: float = 0.001) -> Step:
    """Send chunk after chunk until the client goes away."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(head(code, {"Transfer-Encoding": "chunked"}))
        while True:
            await exchange.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await asyncio.sleep(pause)

    return step


def drips(pause: float = 0.02) -> Step:
    """Send a good head at once and then the body byte by byte, never done in time."""

    async def step(exchange: Exchange) -> None:
        await exchange.send(head(200, {"Content-Length": "100000"}))
        while True:
            await exchange.send(b" ")
            await asyncio.sleep(pause)

    return step


def compressed(data: bytes, encoding: str = "gzip", code: int = 200) -> Step:
    return replies(code, gzip.compress(data, 9), {"Content-Encoding": encoding})


def bomb(code: int = 200) -> Step:
    """Send 50 MB of spaces in 50 kB; they are made when they are asked for."""

    async def step(exchange: Exchange) -> None:
        await compressed(b" " * 50_000_000, code=code)(exchange)

    return step
