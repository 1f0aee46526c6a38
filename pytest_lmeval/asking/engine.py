"""Answer one example at a time from requests that were sent in advance."""

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
"""Returns the requests of a key."""
Ahead = Callable[[], Hashable | None]
"""Returns the next key that will be needed, or None if unknown so far."""
_LOOK_S = 0.25


@dataclass(frozen=True, slots=True)
class Hooks:
    """Optional callbacks of a run, most of which take an engine key.

    ``recall`` returns the answers to the requests of a key if all are known, or else None. ``converse`` returns the
    conversation that a request of a key begins, or None. ``while_waiting`` is called with the engine at intervals while
    :meth:`Engine.respond` waits. ``start`` returns a helper process, started early or just now; without ``start``, the
    engine starts a helper process on demand. ``keep`` is called with the answers of a job as they arrive, in a thread
    of the transport, and returns True if it records them.
    """

    recall: Callable[[Any, Sequence[Request]], Sequence[Response] | None] | None = None
    converse: Callable[[Any, Request], Conversation | None] | None = None
    while_waiting: Callable[[Engine], None] | None = None
    start: Callable[[], HelperProcess] | None = None
    keep: Callable[[Sequence[Arrived]], bool] | None = None


_NO_HOOKS = Hooks()


class Arrived(NamedTuple):
    """The undelivered answers to a key's requests; ``is_new`` means that this run sent each request once."""

    key: Any
    requests: Sequence[Request]
    responses: Sequence[Response]
    is_new: bool


class Engine:
    """Queries the adapter ahead of the examples, which are scored one by one.

    ``plan`` declares which keys belong together, and their order. From the first ``respond`` on, the engine keeps a
    window of requests in flight, and never holds more requests than this window. The window is the next batch for a
    batch adapter, the next ``request_window`` requests for an adapter that sets this number, and four times its
    concurrency for an async adapter. ``jobs`` maps keys to jobs that were sent but not yet delivered. ``together`` is
    the number of requests that the engine collects before it sends them. ``stopped`` is the reason to send no more
    requests, if any. The response to a request that begins a conversation arrives after the conversation's last answer.
    Engines of one run share its ``budget``; other engines create a budget from the policy's limit. Answers known to
    ``hooks.recall`` or ``cache`` are not requested.
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
        """Declare which keys to send together, and how to find the next key; send other keys alone."""
        self._planned = {key: (key,) if self.streams else batch for batch in batches for key in batch}
        self._ahead = ahead

    def respond(self, key: Hashable, requests_of: RequestsOf) -> list[Response]:
        """Return the responses to the requests of ``key``; raise the first AdapterError among them.

        Raise BudgetSpent if sending could exceed the run's cost limit, and AdapterDown if no further request will get
        an answer; both set ``stopped``. This thread calls ``requests_of`` for every key that it sends; an exception
        fails only that key.
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
        """Send ``jobs`` in one message, outside the plan and the window; thread-safe.

        A thread of the transport calls ``on_answer`` once per job; it must not block. Call :meth:`look_after` at
        intervals while waiting for an answer.
        """

        def noting(job: Job) -> None:
            self._note_end(job.answers or ())
            on_answer(job)

        for job in jobs:
            job.on_answer = noting
        self._sender.send(jobs)

    def look_after(self) -> None:
        """Replace the transport if it hangs, and answer its stuck requests with AdapterTimeout."""
        self._sender.look_after()

    def send(self, keys: Sequence[Hashable], requests_of: RequestsOf) -> None:
        """Send ``keys`` early, as many as fit into the window."""
        new = [key for key in keys if key not in self.jobs][: max(0, self._window - len(self.jobs))]
        jobs = []
        for start in range(0, len(new), self._largest_unit):
            unit = new[start : start + self._largest_unit]
            self._planned.update(dict.fromkeys(unit, unit))
            jobs.append(self._job(unit[0], requests_of))
        if jobs:
            self._send(jobs)

    def arrived(self) -> Iterator[Arrived]:
        """Yield keys whose answers are complete but not yet delivered; thread-safe."""
        for key, job in self.jobs.copy().items():
            yield from _arrived(job, key)

    def forget(self, key: Hashable) -> None:
        """Drop ``key``, which is no longer needed."""
        self.jobs.pop(key, None)

    def close(self) -> None:
        """Stop sending, and drop the requests in flight."""
        if self._rounds is not None:
            self._rounds.close()
        self._sender.close()

    @property
    def wait(self) -> Wait | None:
        """The wait for a rate limit or a retry, if all requests in flight are waiting for one."""
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
