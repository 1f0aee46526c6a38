"""Work on its way to the adapter, and the way back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.types import Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.rounds import Conversation


@dataclass(slots=True, eq=False)
class Job:
    """Requests that are asked together; ``spans`` says which belong to which key.

    ``failure`` is what stops the run. ``on_answer`` is called once with the job that has its answers, or its failure,
    in a thread of the transport's; without it somebody waits for the job. ``talks`` are, where a request of the job may
    be followed by others, one conversation for each request.
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
        """Ask ``requests`` on behalf of ``key``; those of which the answers are ``held`` are not asked."""
        first = len(self.requests)
        if held is not None and len(held) == len(requests):
            self.known.update(enumerate(held, start=first))
        self.requests.extend(requests)
        self.spans[key] = slice(first, len(self.requests))


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
                job.on_answer(job)
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
        if job.answers is None:
            self._arrived.wait(timeout_s)
        self._awaited = None
        return job.answers is not None
