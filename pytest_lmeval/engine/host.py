"""The helper process of :mod:`.hosting`: jobs in on stdin, answers out on a pipe, pickled both ways."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections.abc import Sequence

from pytest_lmeval.engine.ask import Answer
from pytest_lmeval.engine.jobs import Inbox, Job
from pytest_lmeval.engine.streaming import AsyncTransport
from pytest_lmeval.errors import AdapterError

__all__ = ["main"]

_FLUSH_S = 0.002


def main() -> None:
    """Serve until stdin ends, as it does when the parent is gone."""
    # Ctrl-C reaches the whole process group; the parent decides what becomes of this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    outbox = _Outbox(int(sys.argv[1]))
    adapter, policy = pickle.load(sys.stdin.buffer)
    transport = AsyncTransport(adapter, policy, outbox)
    while True:
        try:
            numbered = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        transport.submit([outbox.register(number, requests) for number, requests in numbered])
    os._exit(0)


class _Outbox(Inbox):
    """Collects answers for two milliseconds at a time: the parent is woken for many at once."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._numbers: dict[Job, int] = {}
        self._ready: list[tuple[int, Sequence[Answer]]] = []
        self._wanted = threading.Event()
        self._stream = os.fdopen(descriptor, "wb")
        threading.Thread(target=self._flush_forever, daemon=True).start()

    def register(self, number: int, requests: list[object]) -> Job:
        """Return the job for what the parent calls ``number``."""
        job = Job(requests=requests)  # type: ignore[arg-type]  # what was pickled as requests is requests
        self._numbers[job] = number
        return job

    def deliver(self, job: Job, answers: Sequence[Answer]) -> None:
        """Put the answers of a job among those that go out next."""
        number = self._numbers.pop(job, None)
        if number is not None:
            self._ready.append((number, list(answers)))
            self._wanted.set()

    def fail(self, job: Job, failure: BaseException) -> None:
        """Answer a job with what ended it."""
        self.deliver(job, [AdapterError(f"{type(failure).__name__}: {failure}")] * len(job.requests))

    def _flush_forever(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            threading.Event().wait(_FLUSH_S)
            ready, self._ready = self._ready, []
            if ready:
                self._stream.write(pickle.dumps(ready, protocol=pickle.HIGHEST_PROTOCOL))
                self._stream.flush()
