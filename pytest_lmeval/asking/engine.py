"""Answers one example at a time, from requests that were sent long before."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pytest_lmeval.asking.ask import Answer, is_async
from pytest_lmeval.asking.batching import BatchTransport
from pytest_lmeval.asking.budget import Budget
from pytest_lmeval.asking.jobs import Inbox, Job
from pytest_lmeval.asking.policy import Policy, Wait
from pytest_lmeval.asking.rounds import Conversation, Rounds
from pytest_lmeval.errors import AdapterDown, AdapterError, BudgetSpent, LmevalError
from pytest_lmeval.hashes import numbered
from pytest_lmeval.types import Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import CachedAnswers

Recalled = Callable[[Any, Sequence[Request]], Sequence[Response] | None]
"""From a key and its requests to the answers of an earlier run, None where it has not all of them."""
RequestsOf = Callable[[Any], Sequence[Request]]
"""From a key to its requests."""
Converse = Callable[[Any, Request], Conversation | None]
"""From a key and one of its requests to the conversation that it begins, if it is one."""
Ahead = Callable[[], Hashable | None]
"""The key that will be wanted after those it gave before; None: nothing more is known at present."""
_LOOK_S = 0.25
# Below this a thread is the faster place for the client: a message to a process costs more than the lock.
_WORTH_A_PROCESS = 64


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


class Engine:
    """Stands between the examples, which are scored one by one, and the adapter, which is asked ahead of them.

    ``plan`` says once which keys belong together and in what order they will be wanted. From the first ``respond``
    on, a window of requests is kept on its way: for a batch adapter the batch after the current one, for an async
    adapter four times its concurrency. What the engine holds stays within the window.
    ``on_wait`` is called with the engine now and then while ``respond`` has nothing to return yet. ``stopped`` says why
    nothing more should be asked. ``converse`` says which requests are followed by others: the response to such a one
    comes after the last of them.
    What ``recall`` knows of a key, or the cache of a request, is not asked.
    """

    def __init__(
        self,
        adapter: Any,
        policy: Policy | None = None,
        budget: Budget | None = None,
        cache: CachedAnswers | None = None,
    ) -> None:
        self.adapter = adapter
        self._cache = cache
        self.caches = cache is not None
        self.recall: Recalled | None = None
        self.policy = policy or Policy()
        if hasattr(adapter, "think_tags"):
            adapter.think_tags = self.policy.think_tags
        self.on_wait: Callable[[Engine], None] | None = None
        self.converse: Converse | None = None
        self.stopped = ""
        self.streams = callable(getattr(adapter, "complete", None)) or is_async(adapter)
        self._largest_unit = 1 if self.streams else self.policy.batch_size
        self._window = 4 * self.policy.own_concurrency if self.streams else self.policy.batch_size + 1
        self._refill = max(1, self._window // 8) if self.streams else 1
        self._inbox = Inbox()
        self._transport = self._new_transport()
        # Eval functions ask from their own threads, and conversations go on in one.
        self._submitting = threading.Lock()
        self._planned: dict[Hashable, Sequence[Hashable]] = {}
        self._ahead: Ahead = lambda: None
        self._jobs: dict[Hashable, Job] = {}
        self._per_key = 1
        # Engines of one run, the judges' among them, spend out of one purse.
        self.budget = budget or Budget(self.policy.own_max_cost)
        self._rounds: Rounds | None = None

    def plan(self, batches: Iterable[Sequence[Hashable]], ahead: Ahead = lambda: None) -> None:
        """Say which keys to ask together, and where to learn what comes next. A key outside the plan is asked alone."""
        self._planned = {key: batch for batch in batches for key in batch}
        self._ahead = ahead

    def respond(self, key: Hashable, requests_of: RequestsOf) -> list[Response]:
        """Return the responses to the requests of ``key``; raise the AdapterError of the first that has none.

        Raise BudgetSpent where asking could pass the run's limit on cost, AdapterDown where no request will be
        answered any more: ``stopped`` says so from then on. ``requests_of`` is called in this thread for
        every key that is sent; where it raises, only that key suffers.
        """
        if key not in self._jobs:
            self._check_budget(len(self._unit(key)) * self._per_key)
            self._send([self._job(key, requests_of)])
        self._fill_window(requests_of)
        job = self._jobs.pop(key)
        self._wait_for(job)
        assert job.answers is not None
        responses: list[Response] = []
        span = job.spans[key]
        for place, answer in enumerate(job.answers[span], start=span.start):
            if place in job.known and not job.talks:
                self.budget.release()
            elif not job.talks:
                self._settle(answer)
            if isinstance(answer, LmevalError):
                raise answer
            responses.append(answer)
        return responses

    def ask(self, requests: Sequence[Request], on_answer: Callable[[Job], None]) -> None:
        """Ask ``requests`` together, outside of the plan and the window; may be called from any thread.

        ``on_answer`` is called once, in a thread of the transport's: it must not wait. Whoever asks keeps the budget,
        and calls :meth:`look_after` now and then while an answer is wanted.
        """

        def noting(job: Job) -> None:
            self._note_end(job.answers or ())
            on_answer(job)

        self._submit([Job(list(requests), on_answer=noting)])

    def look_after(self) -> None:
        """Replace the transport where it hangs: what it is stuck in is answered with AdapterTimeout."""
        if self._transport.is_stuck():
            self._replace_transport()

    def send(self, keys: Sequence[Hashable], requests_of: RequestsOf) -> None:
        """Ask ``keys`` ahead of their time, as many as the window and the budget have room for."""
        new = [key for key in keys if key not in self._jobs][: max(0, self._window - len(self._jobs))]
        jobs = []
        for start in range(0, len(new), self._largest_unit):
            unit = new[start : start + self._largest_unit]
            if not self.budget.allows(len(unit)):
                break
            self._planned.update(dict.fromkeys(unit, unit))
            jobs.append(self._job(unit[0], requests_of))
        if jobs:
            self._send(jobs)

    def arrived(self) -> Iterator[tuple[Any, Sequence[Response]]]:
        """Yield the keys that were answered whole and not yet handed out, with their responses."""
        for key, job in list(self._jobs.items()):
            answers = () if job.answers is None or job.failure is not None else job.answers[job.spans[key]]
            if answers and not any(isinstance(answer, LmevalError) for answer in answers):
                yield key, [answer for answer in answers if not isinstance(answer, LmevalError)]

    def forget(self, key: Hashable) -> None:
        """Hand ``key`` out to nobody: it is not wanted any more."""
        self._jobs.pop(key, None)

    @property
    def outstanding(self) -> int:
        """How many keys were sent and not yet handed out."""
        return len(self._jobs)

    def close(self) -> None:
        """Stop asking; what is under way is dropped."""
        if self._rounds is not None:
            self._rounds.close()
        self._transport.close()

    @property
    def wait(self) -> Wait | None:
        """What all that is being asked waits for, if it does: a rate limit, or to be asked again."""
        return self._transport.wait

    def _check_budget(self, more: int) -> None:
        try:
            self.budget.check(more)
        except BudgetSpent as error:
            self.stopped = str(error)
            raise

    def _settle(self, answer: Answer) -> None:
        if isinstance(answer, AdapterDown):
            self._note_end([answer])
        try:
            self.budget.settle(answer)
        except BudgetSpent as error:
            self.stopped = str(error)
            raise

    def _note_end(self, answers: Iterable[Answer]) -> None:
        end = next((answer for answer in answers if isinstance(answer, AdapterDown)), None)
        self.stopped = self.stopped or ("" if end is None else str(end))

    def _job(self, key: Hashable, requests_of: RequestsOf) -> Job:
        job = Job()
        failed: dict[Hashable, Job] = {}
        for member in self._unit(key):
            self._planned.pop(member, None)
            try:
                requests = requests_of(member)
                if self.caches:
                    requests = numbered(requests)
                job.add(member, requests, self.recall(member, requests) if self.recall is not None else None)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except LmevalError as error:
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(AdapterError(str(error)),))
            except Exception as error:
                wrong = AdapterError(f"rendering raised {type(error).__name__}: {error}")
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(wrong,))
            except BaseException as error:  # such as a skip: of this member, when its turn comes
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(), failure=error)
        self._jobs.update(dict.fromkeys(job.spans, job))
        self._jobs.update(failed)
        self._per_key = max(self._per_key, *(span.stop - span.start for span in job.spans.values()), 1)
        self._begin_talks(job)
        asked = len(job.requests) if not job.talks else sum(talk.request is not None for talk in job.talks)
        self.budget.commit(asked)
        return job

    def _begin_talks(self, job: Job) -> None:
        converse = self.converse
        if converse is None:
            return
        begun = {
            number: talk
            for key, span in job.spans.items()
            for number in range(span.start, span.stop)
            if (talk := converse(key, job.requests[number])) is not None
        }
        if begun:
            job.talks = [begun.get(number) or Conversation(one) for number, one in enumerate(job.requests)]
            for number, answer in job.known.items():
                job.talks[number].take(answer)

    def _unit(self, key: Hashable) -> Sequence[Hashable]:
        return (key,) if self.streams else self._planned.get(key, (key,))

    def _fill_window(self, requests_of: RequestsOf) -> None:
        # For many at a time: every message to another thread or process costs a switch.
        if len(self._jobs) > self._window - self._refill:
            return
        jobs: list[Job] = []
        while len(self._jobs) < self._window and self.budget.allows(self._largest_unit * self._per_key):
            key = self._ahead()
            if key is None:
                break
            if key in self._planned:
                jobs.append(self._job(key, requests_of))
        if jobs:
            self._send(jobs)

    def _send(self, jobs: Sequence[Job]) -> None:
        wanted = [job for job in jobs if job.requests]
        for job in jobs:
            if not job.requests:
                job.answers = ()
        plain = [job for job in wanted if not job.talks]
        if plain:
            self._submit(plain)
        for job in wanted:
            if job.talks:
                self._rounds = self._rounds or Rounds(self._submit, self._inbox, self._settle, self._admit)
                self._rounds.start(job)

    def _admit(self) -> None:
        self._check_budget(1)
        self.budget.commit(1)

    def _submit(self, jobs: Sequence[Job]) -> None:
        rest = [rest for job in jobs if (rest := self._unknown(job)) is not None]
        if rest:
            with self._submitting:
                self._transport.submit(rest)

    def _unknown(self, job: Job) -> Job | None:
        """Return the job that is left to ask: all of ``job``, a part of it, or none, and then it is answered."""
        if self._cache is not None:
            for place, request in enumerate(job.requests):
                if place not in job.known and (answer := self._cache.find(request)) is not None:
                    job.known[place] = answer
        if self._cache is None and not job.known:
            return job
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

    def _wait_for(self, job: Job) -> None:
        while not self._inbox.wait(job, _LOOK_S):
            if self.on_wait is not None:
                self.on_wait(self)
            self.look_after()
        if job.failure is not None:
            raise job.failure

    def _replace_transport(self) -> None:
        waiting = self._transport.abandon()
        with self._submitting:
            self._transport = self._new_transport()
            self._transport.submit(waiting)

    def _new_transport(self) -> Transport:
        if not self.streams:
            return BatchTransport(self.adapter, self.policy, self._inbox)
        if self.policy.own_concurrency >= _WORTH_A_PROCESS and getattr(self.adapter, "hostable", False):
            from pytest_lmeval.asking.hosting import HostedTransport

            return HostedTransport(self.adapter, self.policy, self._inbox)
        from pytest_lmeval.asking.streaming import AsyncTransport

        return AsyncTransport(self.adapter, self.policy, self._inbox)
