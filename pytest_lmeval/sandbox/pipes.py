"""The parent's ends of a child's pipes; the child can neither block the parent nor fill its memory."""

from __future__ import annotations

import os
import select
import time

CHUNK = 1 << 16


class Output:
    """The last bytes of a stream, at most ``limit``, and the length of the whole."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.total = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Append bytes that were read."""
        self.total += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.limit + CHUNK:
            del self._kept[: -self.limit]

    @property
    def text(self) -> str:
        """The end of the stream as text; bytes that are not UTF-8 are replaced."""
        return self._kept[-self.limit :].decode("utf-8", "replace")


class Pipes:
    """Four pipes: requests to the child; results, stdout and stderr from it."""

    def __init__(self, request: int, result: int, stdout: int, stderr: int, limit: int) -> None:
        self.request = request
        self.result = result
        self.results = bytearray()
        self.stdout = Output(limit)
        self.stderr = Output(limit)
        self.ended = False  # no more results are read
        self._outputs = {stdout: self.stdout, stderr: self.stderr}
        for fd in (request, result, stdout, stderr):
            os.set_blocking(fd, False)

    @property
    def drained(self) -> bool:
        """True if stdout and stderr have both ended."""
        return not self._outputs

    @property
    def received(self) -> int:
        """The number of bytes of output and of unread results so far."""
        return len(self.results) + self.stdout.total + self.stderr.total

    def step(self, deadline: float, outgoing: bytes | bytearray = b"", longest_s: float = 0.1) -> int:
        """Wait until a pipe is ready, and read or write once; return the number of bytes of ``outgoing`` written."""
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
            # The reader is gone; the end of the results reports that.
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
