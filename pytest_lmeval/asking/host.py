"""Run the helper process of :mod:`.hosting`, which reads jobs from stdin and writes answers to a pipe, all pickled."""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.asking.streaming import AsyncTransport
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterError

if TYPE_CHECKING:
    from io import BufferedReader

_FLUSH_S = 0.002
_HEARTBEAT_S = 0.5


def main() -> None:
    """Process jobs until the parent exits or closes stdin."""
    # The adapter imports them again and then reports any error.
    with contextlib.suppress(Exception):
        for module in _next():
            importlib.import_module(module)
    # The parent may have extended its path since.
    sys.path[:] = _next()
    outbox = _Outbox(int(sys.argv[1]))
    adapter, policy = _next()
    transport = AsyncTransport(adapter, policy, outbox)
    outbox.start(transport)
    while True:
        transport.submit([outbox.register(number, requests) for number, requests in _next()])


def _next() -> Any:
    """Return the parent's next message; if stdin has ended, end the process."""
    stdin = cast("BufferedReader", sys.stdin.buffer)
    if not stdin.peek(1):
        os._exit(0)
    return pickle.load(stdin)


class _Outbox(Inbox):
    """Collects answers for two milliseconds before it sends them, so that the parent wakes once for many answers.

    If there are no answers, empty messages at intervals show the parent that the event loop still runs.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._numbers: dict[Job, int] = {}
        self._ready: queue.SimpleQueue[tuple[int, Sequence[Answer]]] = queue.SimpleQueue()
        self._stream = os.fdopen(descriptor, "wb")

    def start(self, transport: AsyncTransport) -> None:
        """Start sending."""
        threading.Thread(target=self._flush_forever, args=(transport,), daemon=True).start()

    def register(self, number: int, requests: list[Any]) -> Job:
        """Create a job for ``requests``, with the number that the parent uses."""
        job = Job(requests=requests)
        self._numbers[job] = number
        return job

    def deliver(self, job: Job, answers: Sequence[Answer]) -> None:
        """Add a job's answers to the next message."""
        number = self._numbers.pop(job, None)
        if number is not None:
            self._ready.put((number, list(answers)))

    def fail(self, job: Job, failure: BaseException) -> None:
        """Answer all requests of a job with an error that quotes ``failure``."""
        self.deliver(job, [AdapterError(f"{type(failure).__name__}: {failure}")] * len(job.requests))

    def _flush_forever(self, transport: AsyncTransport) -> None:
        while True:
            ready = self._next()
            if ready or not transport.is_silent():
                self._stream.write(_pickled(ready, transport.wait))
                self._stream.flush()

    def _next(self) -> list[tuple[int, Sequence[Answer]]]:
        try:
            ready = [self._ready.get(timeout=_HEARTBEAT_S)]
        except queue.Empty:
            return []
        time.sleep(_FLUSH_S)
        while not self._ready.empty():
            ready.append(self._ready.get())
        return ready


def _pickled(ready: list[tuple[int, Sequence[Answer]]], wait: Wait | None) -> bytes:
    try:
        return pickle.dumps((ready, wait), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # an answer that cannot be pickled
        lost = AdapterError(f"an answer cannot be pickled: {type(error).__name__}: {error}")
        return pickle.dumps(([(number, [lost] * len(answers)) for number, answers in ready], wait))
