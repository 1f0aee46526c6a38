"""Send requests in advance, and return the responses for one example at a time."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.adapters.facts import AdapterFacts, tell
from pytest_lmeval.arguments import WORTH_A_PROCESS
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.batching import BatchTransport
from pytest_lmeval.asking.policy import Policy, Wait
from pytest_lmeval.asking.transport import Inbox, Job, Sender, Transport
from pytest_lmeval.errors import AdapterDown, AdapterError, BudgetSpent, LmevalError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.hashes import numbered
from pytest_lmeval.types import Request, Response

if TYPE_CHECKING:
    from pytest_lmeval.asking.caching import CachedAnswers
    from pytest_lmeval.asking.hosting import HelperProcess
    from pytest_lmeval.asking.limits import Budget
    from pytest_lmeval.asking.rounds import Conversation, Rounds

RequestsOf = Callable[[Any], Sequence[Request]]
"""Returns a key's requests."""
Ahead = Callable[[], Hashable | None]
"""Returns the next key that the run will need, or None if the run does not know it yet."""
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Hooks:
    """Optional callbacks for an engine; a key identifies requests that the engine answers together.

    ``recall`` returns the known answers to all requests of a key, or None if an answer is unknown. ``converse`` returns
    the conversation that a key's request begins, or None if it begins none. While :meth:`Engine.respond` waits, it
    calls ``while_waiting`` with the engine at intervals. ``start`` returns a new or unused helper process; without
    ``start``, the engine starts a helper process on demand. When a job's answers arrive, a transport thread calls
    ``keep``, which returns True if it records the answers.
    """

    recall: Callable[[Any, Sequence[Request]], Sequence[Response] | None] | None = None
    converse: Callable[[Any, Request], Conversation | None] | None = None
    while_waiting: Callable[[Engine], None] | None = None
    start: Callable[[], HelperProcess] | None = None
    keep: Callable[[Sequence[Arrived]], bool] | None = None


_NO_HOOKS = Hooks()


class Arrived(NamedTuple):
    """The undelivered answers to a key's requests; ``is_new`` is True if this run sent each request once."""

    key: Any
    requests: Sequence[Request]
    responses: Sequence[Response]
    is_new: bool


class Engine:
    """Sends requests to the adapter before the run needs the responses; the run scores one example at a time.

    ``plan`` declares which keys belong together, and their order. From the first ``respond`` on, the engine sends
    requests in advance until a window is full. For a batch adapter, the window is the next batch. If a batch adapter
    sets ``request_window``, the window has twice that number of keys. For an async adapter, the window has four times
    as many keys as the concurrency. ``jobs`` maps keys to jobs that the engine has sent but not delivered. ``together``
    is the number of keys that the engine collects before it sends their requests. ``stopped`` is the reason to send no
    more requests, or "". If a request begins a conversation, its response arrives after the conversation's last answer.
    Engines of one run share its ``budget``; without a shared budget, an engine creates a budget from the policy's
    limit. The engine does not send requests whose answers ``hooks.recall`` or ``cache`` knows.
    """

    def __init__(
        self,
        adapter: Any,
        policy: Policy | None = None,
        budget: Budget | None = None,
        cache: CachedAnswers | None = None,
        hooks: Hooks = _NO_HOOKS,
    ) -> None:
        self.adapter = adapter
        policy = policy or Policy()
        self.caches = cache is not None
        self.stopped = ""
        facts = AdapterFacts.of(adapter)
        tell(adapter, "think_tags", policy.think_tags)
        self.streams = facts.streams
        if self.streams and facts.requests_in_flight is not None:
            policy = replace(policy, concurrency=facts.requests_in_flight)
        self.policy = policy
        if budget is None and policy.max_cost is not None:
            from pytest_lmeval.asking.limits import Budget

            budget = Budget(policy.max_cost)
        self.budget = budget
        self._hooks = hooks
        self._largest_unit = 1 if self.streams else policy.batch_size
        self._window = 4 * policy.concurrency if self.streams else policy.batch_size + 1
        self._refill = max(1, self._window // 8) if self.streams else 1
        self.together = self._window if self.streams else policy.batch_size
        if not self.streams and facts.request_window is not None:
            self.together = facts.request_window
            # While one window is in flight, prepare the next, but not for only a few requests.
            self._window, self._refill = max(self._window, 2 * self.together), max(1, self.together // 4)
        self._inbox = Inbox()
        new_transport = partial(_transport, adapter, facts, policy, self._inbox, hooks.start, budget)
        self._sender = Sender(new_transport, self._inbox, cache)
        self._planned: dict[Hashable, Sequence[Hashable]] = {}
        self._ahead: Ahead = lambda: None
        self.jobs: dict[Hashable, Job] = {}
        self._rounds: Rounds | None = None

    def plan(self, batches: Iterable[Sequence[Hashable]], ahead: Ahead = lambda: None) -> None:
        """Declare which keys to send together, and how to find the next key; the engine sends all other keys alone."""
        self._planned = {key: (key,) if self.streams else batch for batch in batches for key in batch}
        self._ahead = ahead

    def respond(self, key: Hashable, requests_of: RequestsOf) -> list[Response]:
        """Return the responses to the requests of ``key``; if a response is an error, raise the first error.

        Raise BudgetSpent if another request could exceed the run's cost limit, and AdapterDown if the run must send no
        more requests to the adapter; both errors set ``stopped``. The calling thread calls ``requests_of`` for every
        key that it sends; an exception in ``requests_of`` fails only that key.
        """
        jobs = [] if key in self.jobs else [self._job(key, requests_of)]
        self._fill_window(requests_of, jobs)
        job = self.jobs.pop(key)
        self._wait_for(job)
        assert job.answers is not None
        responses: list[Response] = []
        for answer in job.answers[job.spans[key]]:
            if isinstance(answer, LmevalError):
                self._note_end([answer], (AdapterDown, BudgetSpent))
                raise answer
            responses.append(answer)
        return responses

    def ask(self, jobs: Sequence[Job], on_answer: Callable[[Job], None]) -> None:
        """Send ``jobs`` in one message, regardless of the plan and the window; any thread may call this method.

        A transport thread calls ``on_answer`` once per job; ``on_answer`` must not block. The caller must call
        :meth:`look_after` at intervals while it waits for an answer.
        """

        def noting(job: Job) -> None:
            self._note_end(job.answers or ())
            on_answer(job)

        for job in jobs:
            job.on_answer = noting
        self._sender.send(jobs)

    def look_after(self) -> None:
        """If the transport hangs, replace it, and answer its unanswered requests with AdapterTimeout."""
        self._sender.look_after()

    def send(self, keys: Sequence[Hashable], requests_of: RequestsOf) -> None:
        """Send the requests of ``keys`` in advance, for as many keys as the window allows."""
        new = [key for key in keys if key not in self.jobs][: max(0, self._window - len(self.jobs))]
        jobs = []
        for start in range(0, len(new), self._largest_unit):
            unit = new[start : start + self._largest_unit]
            self._planned.update(dict.fromkeys(unit, unit))
            jobs.append(self._job(unit[0], requests_of))
        if jobs:
            self._send(jobs)

    def arrived(self) -> Iterator[Arrived]:
        """Yield complete but undelivered answers, one item per key; any thread may call this method."""
        for key, job in self.jobs.copy().items():
            yield from _arrived(job, key)

    def forget(self, key: Hashable) -> None:
        """Drop ``key``, because the run no longer needs its answers."""
        self.jobs.pop(key, None)

    def close(self) -> None:
        """Stop sending requests, and drop all requests in flight."""
        if self._rounds is not None:
            self._rounds.close()
        self._sender.close()

    @property
    def wait(self) -> Wait | None:
        """The wait that ends first, for a rate limit or a retry; None unless all requests in flight are waiting."""
        return self._sender.wait

    def _note_end(self, answers: Iterable[Answer], ends: tuple[type[LmevalError], ...] = (AdapterDown,)) -> None:
        # A limit that was reached early stops nothing yet: earlier examples have their answers.
        for answer in answers:
            if isinstance(answer, ends):
                self.stopped = self.stopped or str(answer)

    def _job(self, key: Hashable, requests_of: RequestsOf) -> Job:
        job = Job()
        recall = self._hooks.recall
        failed: dict[Hashable, Job] = {}
        for member in self._planned.get(key, (key,)):
            self._planned.pop(member, None)
            try:
                requests = requests_of(member)
                if self.caches:
                    requests = numbered(requests)
                job.add(member, requests, None if recall is None else recall(member, requests))
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except LmevalError as error:
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(AdapterError(str(error)),))
            except Exception as error:
                wrong = AdapterError(f"rendering raised {type(error).__name__}: {error}")
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(wrong,))
            except BaseException as error:  # such as a skip of this example, raised when it runs
                failed[member] = Job(spans={member: slice(0, 1)}, answers=(), failure=error)
        self.jobs.update(dict.fromkeys(job.spans, job))
        self.jobs.update(failed)
        if self._hooks.converse is not None and (begun := _begun(job, self._hooks.converse)):
            from pytest_lmeval.asking.rounds import begin

            begin(job, begun)
        return job

    def _fill_window(self, requests_of: RequestsOf, jobs: list[Job]) -> None:
        # Send many at a time: every message to another thread or process costs a switch.
        has_room = len(self.jobs) <= self._window - self._refill
        while has_room and len(self.jobs) < self._window:
            if len(jobs) * self._largest_unit >= self.together:
                self._send(jobs)
                jobs = []
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
        if plain := [job for job in wanted if not job.talks]:
            if self._hooks.keep is not None:
                for job in plain:
                    job.on_answer = partial(_keep, self._hooks.keep)
            self._sender.send(plain)
        for job in wanted:
            if job.talks:
                from pytest_lmeval.asking.rounds import Rounds

                self._rounds = self._rounds or Rounds(self._sender.send, self._inbox)
                self._rounds.ask(job)

    def _wait_for(self, job: Job) -> None:
        while not self._inbox.wait(job, _LOOK_S):
            if self._hooks.while_waiting is not None:
                self._hooks.while_waiting(self)
            self.look_after()
            if self._rounds is not None:
                self._rounds.look_after()
        if job.failure is not None:
            raise job.failure


def _arrived(job: Job, key: Hashable) -> Iterator[Arrived]:
    span = job.spans[key]
    answers = () if job.answers is None or job.failure is not None else job.answers[span]
    if answers and not any(isinstance(answer, LmevalError) for answer in answers):
        is_new = not (job.talks or job.is_kept) and job.known.keys().isdisjoint(range(span.start, span.stop))
        responses = [answer for answer in answers if not isinstance(answer, LmevalError)]
        yield Arrived(key, job.requests[span], responses, is_new)


def _keep(keep: Callable[[Sequence[Arrived]], bool], job: Job) -> None:
    job.is_kept = keep([each for key in job.spans for each in _arrived(job, key)])


def _begun(job: Job, converse: Callable[[Any, Request], Conversation | None]) -> dict[int, Conversation]:
    return {
        number: talk
        for key, span in job.spans.items()
        for number in range(span.start, span.stop)
        if (talk := converse(key, job.requests[number])) is not None
    }


def _transport(
    adapter: Any,
    facts: AdapterFacts,
    policy: Policy,
    inbox: Inbox,
    start: Callable[[], HelperProcess] | None,
    budget: Budget | None,
) -> Transport:
    if not facts.streams:
        if facts.request_window is None:
            return BatchTransport(adapter, policy, inbox, budget)
        from pytest_lmeval.asking.windows import WindowTransport

        return WindowTransport(adapter, policy, inbox, facts.request_window, budget)
    # The cost of other requests determines what to send next, and only this process knows it.
    if budget is None and policy.concurrency >= WORTH_A_PROCESS and facts.hostable:
        from pytest_lmeval.asking.hosting import HelperProcess, HostedTransport

        return HostedTransport(adapter, policy, inbox, start or HelperProcess)
    from pytest_lmeval.asking.streaming import AsyncTransport

    return AsyncTransport(adapter, policy, inbox, budget)
