"""Send jobs to an adapter, and receive the answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.types import Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import CachedAnswers
    from pytest_lmeval.asking.policy import Wait
    from pytest_lmeval.asking.rounds import Conversation


@dataclass(slots=True, eq=False)
class Job:
    """Requests to send together; ``spans`` maps each key to the positions of its requests.

    ``failure`` is an exception that stops the run. When the job has its answers or has failed, a transport thread calls
    ``on_answer`` once with the job, and then sets ``on_answer`` to None. A thread in :meth:`Inbox.wait` also waits for
    this call. If a request may have follow-ups, ``talks`` holds a conversation for each request. ``is_kept`` is True if
    the run has recorded the answers. ``known`` maps positions of requests to answers that the run already has.
    """

    requests: list[Request] = field(default_factory=list)
    spans: dict[Hashable, slice] = field(default_factory=dict)
    answers: Sequence[Answer] | None = None
    failure: BaseException | None = None
    on_answer: Callable[[Job], None] | None = None
    talks: Sequence[Conversation] = ()
    is_kept: bool = False
    known: dict[int, Answer] = field(default_factory=dict)

    def add(self, key: Hashable, requests: Sequence[Request], held: Sequence[Answer] | None = None) -> None:
        """Add the requests of ``key``; if ``held`` has an answer to each request, store these answers as known."""
        first = len(self.requests)
        if held is not None and len(held) == len(requests):
            self.known.update(enumerate(held, start=first))
        self.requests.extend(requests)
        self.spans[key] = slice(first, len(self.requests))


class JobProgress:
    """A job's answers by number, with None for missing answers, and ``left``, the number of missing answers."""

    __slots__ = ("answers", "begun", "left")

    def __init__(self, requests: int) -> None:
        self.answers: list[Answer | None] = [None] * requests
        self.left = requests
        self.begun = False


class Inbox:
    """Receives answers, and lets a thread wait for one job without waking up for other jobs."""

    def __init__(self) -> None:
        self._awaited: Job | None = None
        self._arrived = threading.Event()

    def deliver(self, job: Job, answers: Sequence[Answer]) -> None:
        """Store a job's answers, and wake the thread that waits for it; ignore later answers for the same job."""
        if job.answers is None:
            job.answers = answers
            if job.on_answer is not None:
                try:
                    job.on_answer(job)
                finally:
                    job.on_answer = None
        if self._awaited is job:
            self._arrived.set()

    def fail(self, job: Job, failure: BaseException) -> None:
        """Store an exception that stops the run, and wake the thread that waits for the job."""
        job.failure = failure
        self.deliver(job, ())

    def wait(self, job: Job, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` seconds for the answers of ``job``; return True if they have arrived."""
        # The order matters: answers that arrive after the check see ``_awaited`` set.
        self._arrived.clear()
        self._awaited = job
        if job.answers is None or job.on_answer is not None:
            self._arrived.wait(timeout_s)
        self._awaited = None
        return job.answers is not None and job.on_answer is None


class Transport(Protocol):
    """Sends jobs to an adapter and receives answers, in a separate thread."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs."""

    def is_stuck(self) -> bool:
        """Return True if the transport hangs."""

    def abandon(self) -> list[Job]:
        """Answer hanging jobs with AdapterTimeout; return the jobs that have not begun."""

    @property
    def wait(self) -> Wait | None:
        """The wait that ends first; None unless all requests are waiting."""

    def close(self) -> None:
        """Stop."""


class Sender:
    """Sends jobs through a transport, and replaces a transport that hangs; skips requests whose answers are known.

    This class is thread-safe, because eval functions and conversations send jobs from separate threads.
    """

    def __init__(self, new_transport: Callable[[], Transport], inbox: Inbox, cache: CachedAnswers | None) -> None:
        self._new_transport = new_transport
        self._inbox = inbox
        self._cache = cache
        self._lock, self._replacing = threading.Lock(), threading.Lock()
        self._transport = new_transport()

    @property
    def wait(self) -> Wait | None:
        """The wait that ends first; None unless all requests are waiting."""
        return self._transport.wait

    def send(self, jobs: Sequence[Job]) -> None:
        """Send the requests of the jobs, except requests whose answers are known."""
        rest = []
        for job in jobs:
            left = job if self._cache is None and not job.known else self._unknown(job)
            if left is not None:
                rest.append(left)
        if rest:
            with self._lock:
                self._transport.submit(rest)

    def look_after(self) -> None:
        """Replace the transport if it hangs."""
        if not self._transport.is_stuck():
            return
        # Only a waiting thread replaces the transport, because a sending thread may hang inside it.
        with self._replacing:
            if self._transport.is_stuck():
                waiting = self._transport.abandon()
                with self._lock:
                    self._transport = self._new_transport()
                    self._transport.submit(waiting)

    def close(self) -> None:
        """Stop the transport."""
        self._transport.close()

    def _unknown(self, job: Job) -> Job | None:
        """Return a job of the requests with unknown answers; if there are no such requests, answer ``job``."""
        if self._cache is not None:
            for place, request in enumerate(job.requests):
                if place not in job.known and (answer := self._cache.find(request)) is not None:
                    job.known[place] = answer
        places = [place for place in range(len(job.requests)) if place not in job.known]
        if not places:
            self._inbox.deliver(job, [job.known[place] for place in range(len(job.requests))])
            return None
        return Job([job.requests[place] for place in places], on_answer=partial(self._join, job, places))

    def _join(self, job: Job, places: Sequence[int], asked: Job) -> None:
        """Answer ``job`` with the known and the new answers, and store the new answers in the cache."""
        if asked.failure is not None:
            self._inbox.fail(job, asked.failure)
            return
        found = dict(zip(places, asked.answers or (), strict=False))
        if self._cache is not None:
            for place, answer in found.items():
                self._cache.keep(job.requests[place], answer)
        answers = {**job.known, **found}
        # After the run's end, answers may be missing.
        self._inbox.deliver(job, [answers[place] for place in range(len(job.requests)) if place in answers])
