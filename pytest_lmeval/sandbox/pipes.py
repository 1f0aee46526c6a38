"""The parent's ends of a child's pipes: nothing that the child writes can block the parent or fill it up."""

from __future__ import annotations

import contextlib
import os
import select
import time

CHUNK = 1 << 16


class Output:
    """The end of a stream, at most ``limit`` bytes of it, and how long the whole was."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Append what was read."""
        self.total += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.limit + CHUNK:
            del self._kept[: -self.limit]

    @property
    def text(self) -> str:
        """The end of the stream as text, with replacements for what is not UTF-8."""
        return self._kept[-self.limit :].decode("utf-8", "replace")


class Pipes:
    """Four pipes: requests to the child; results, stdout and stderr from it."""

    def __init__(self, request: int, result: int, stdout: int, stderr: int, limit: int) -> None:
        self.request = request
        self.result = result
        self.results = bytearray()
        self.stdout = Output(limit)
        self.stderr = Output(limit)
        self.ended = False  # whether no more results can come
        self._outputs = {stdout: self.stdout, stderr: self.stderr}
        for fd in (request, result, stdout, stderr):
            os.set_blocking(fd, False)

    @property
    def drained(self) -> bool:
        """Whether stdout and stderr have both ended."""
        return not self._outputs

    @property
    def received(self) -> int:
        """How many bytes of output and of unread results have come."""
        return len(self.results) + self.stdout.total + self.stderr.total

    def ignore_results(self) -> None:
        """Read no more results, whatever comes."""
        self.ended = True

    def step(self, deadline: float, outgoing: bytes | bytearray = b"", longest_s: float = 0.1) -> int:
        """Wait until something can be read or written, and do so once; return how much of ``outgoing`` was written."""
        poll = select.poll()
        for fd in self._outputs:
            poll.register(fd, select.POLLIN)
        if not self.ended:
            poll.register(self.result, select.POLLIN)
        if outgoing:
            poll.register(self.request, select.POLLOUT)
        wait_s = min(longest_s, max(0.0, deadline - time.monotonic()))
        written = 0
        for fd, _ in poll.poll(wait_s * 1000):
            if fd == self.request:
                written = self._write(outgoing)
            else:
                self._read(fd)
        return written

    def _write(self, outgoing: bytes | bytearray) -> int:
        try:
            return os.write(self.request, outgoing)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            # Nobody is left to read it; the end of the results says the rest.
            return len(outgoing)

    def _read(self, fd: int) -> None:
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(fd, CHUNK)
            if not data:
                self._end(fd)
        if fd == self.result:
            self.results += data
        elif data:
            self._outputs[fd].add(data)

    def _end(self, fd: int) -> None:
        if fd == self.result:
            self.ended = True
        else:
            del self._outputs[fd]
