"""Work on its way to the adapter, and the way back."""

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
    """Requests that are asked together; ``spans`` says which belong to which key.

    ``failure`` is what stops the run. ``on_answer`` is called once with the job that has its answers, or its failure,
    in a thread of the transport's, and is None afterwards: whoever waits for the job waits for that, too.
    ``talks`` are, where a request of the job may be followed by others, one conversation for each request.
    ``known`` are the answers, by place, that need not be asked for.
    """

    requests: list[Request] = field(default_factory=list)
    spans: dict[Hashable, slice] = field(default_factory=dict)
    answers: Sequence[Answer] | None = None
    failure: BaseException | None = None
    on_answer: Callable[[Job], None] | None = None
    talks: Sequence[Conversation] = ()
    known: dict[int, Answer] = field(default_factory=dict)

    def add(self, key: Hashable, requests: Sequence[Request], held: Sequence[Answer] | None = None) -> None:
        """Ask ``requests`` on behalf of ``key``, but for those whose answers are in ``held``."""
        first = len(self.requests)
        if held is not None and len(held) == len(requests):
            self.known.update(enumerate(held, start=first))
        self.requests.extend(requests)
        self.spans[key] = slice(first, len(self.requests))


class JobProgress:
    """How far a job is: its answers by number, None while they are out, and how many are ``left``."""

    __slots__ = ("answers", "begun", "left")

    def __init__(self, requests: int) -> None:
        self.answers: list[Answer | None] = [None] * requests
        self.left = requests
        self.begun = False

    def put(self, number: int, answer: Answer) -> None:
        """Take one of the answers."""
        self.answers[number] = answer
        self.left -= 1


class Inbox:
    """Where one thread waits for the job it wants, and is woken for no other."""

    def __init__(self) -> None:
        self._awaited: Job | None = None
        self._arrived = threading.Event()

    def deliver(self, job: Job, answers: Sequence[Answer]) -> None:
        """Hand over the answers of a job; later ones for the same job are ignored."""
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
        """Hand over what stops the run."""
        job.failure = failure
        self.deliver(job, ())

    def wait(self, job: Job, timeout_s: float) -> bool:
        """Wait for the answers of ``job``; return whether they are there."""
        # In this order: answers that arrive after the look at them find ``_awaited`` set.
        self._arrived.clear()
        self._awaited = job
        if job.answers is None or job.on_answer is not None:
            self._arrived.wait(timeout_s)
        self._awaited = None
        return job.answers is not None and job.on_answer is None


class Transport(Protocol):
    """How jobs get to an adapter and back, in a thread that is not the caller's."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs."""

    def is_stuck(self) -> bool:
        """Tell whether it will not get on any more."""

    def abandon(self) -> list[Job]:
        """Answer the jobs that it is stuck in with AdapterTimeout; return those that were not begun."""

    @property
    def wait(self) -> Wait | None:
        """What all requests in hand wait for, if they do."""

    def close(self) -> None:
        """Stop."""


class Sender:
    """Sends jobs by a transport, and replaces it where it hangs; what ``cache`` or a job itself knows is not sent.

    Safe to use from several threads: eval functions ask from their own, and conversations go on in one.
    """

    def __init__(self, new_transport: Callable[[], Transport], inbox: Inbox, cache: CachedAnswers | None) -> None:
        self._new_transport = new_transport
        self._inbox = inbox
        self._cache = cache
        self._lock, self._replacing = threading.Lock(), threading.Lock()
        self._transport = new_transport()

    @property
    def wait(self) -> Wait | None:
        """What all requests in hand wait for, if they do."""
        return self._transport.wait

    def send(self, jobs: Sequence[Job]) -> None:
        """Send what of the jobs is not known already."""
        rest = []
        for job in jobs:
            left = job if self._cache is None and not job.known else self._unknown(job)
            if left is not None:
                rest.append(left)
        if rest:
            with self._lock:
                self._transport.submit(rest)

    def look_after(self) -> None:
        """Replace the transport where it hangs."""
        if not self._transport.is_stuck():
            return
        # Of several threads that wait for an answer, one replaces it. A thread that sends may hang in the transport.
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
        """Return the job that is left to ask: a part of ``job``, or none, and then it is answered."""
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
        """Answer ``job`` with what was known and what was asked for, which is kept."""
        if asked.failure is not None:
            self._inbox.fail(job, asked.failure)
            return
        found = dict(zip(places, asked.answers or (), strict=False))
        if self._cache is not None:
            for place, answer in found.items():
                self._cache.keep(job.requests[place], answer)
        answers = {**job.known, **found}
        # Of a run that was ended there are fewer.
        self._inbox.deliver(job, [answers[place] for place in range(len(job.requests)) if place in answers])
