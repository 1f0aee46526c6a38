"""Read and write a child's pipes, so that the child can neither block the parent nor fill its memory."""

from __future__ import annotations

import os
import select
import time

CHUNK = 1 << 16


class Output:
    """The last ``limit`` bytes of a stream, and the stream's total length."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Append bytes from the stream."""
        self.total += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.limit + CHUNK:
            del self._kept[: -self.limit]

    @property
    def text(self) -> str:
        """The end of the stream as text, with bytes that are not UTF-8 replaced."""
        return self._kept[-self.limit :].decode("utf-8", "replace")


class Pipes:
    """The parent's ends of four pipes: requests to the child, and results, stdout and stderr from the child."""

    def __init__(self, request: int, result: int, stdout: int, stderr: int, limit: int) -> None:
        self.request = request
        self.result = result
        self.results = bytearray()
        self.stdout = Output(limit)
        self.stderr = Output(limit)
        self.ended = False  # True if the results have ended
        self._outputs = {stdout: self.stdout, stderr: self.stderr}
        for fd in (request, result, stdout, stderr):
            os.set_blocking(fd, False)

    @property
    def drained(self) -> bool:
        """True if stdout and stderr have both ended."""
        return not self._outputs

    @property
    def received(self) -> int:
        """The number of bytes of output so far, plus the number of bytes of unparsed results."""
        return len(self.results) + self.stdout.total + self.stderr.total

    def step(self, deadline: float, outgoing: bytes | bytearray = b"", longest_s: float = 0.1) -> int:
        """Wait for ready pipes, then read or write each once; return the number of bytes written from ``outgoing``."""
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
            # The child has closed the pipe; the end of the results will show that it has ended.
            return len(outgoing)

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if fd == self.result:
            self.results += data
            self.ended = not data
        elif data:
            self._outputs[fd].add(data)
        else:
            del self._outputs[fd]
