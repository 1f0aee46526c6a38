"""Send individual requests to an async adapter, with a time limit for each attempt, and retries."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

from pytest_lmeval.adapters.facts import AdapterFacts, adapter_name, tell
from pytest_lmeval.asking.ask import Answer, ask, check_answer, unusable, with_attempts, without_thoughts
from pytest_lmeval.asking.limits import Outage, Sent, Unusable
from pytest_lmeval.asking.pacing import RateLimit, Waits
from pytest_lmeval.asking.policy import AGAIN, OWN, SERVER, Policy, backoff_s, is_too_long
from pytest_lmeval.asking.transport import Job, JobProgress
from pytest_lmeval.errors import AdapterError, AdapterTimeout, TransientError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.types import Completion, Generate, LogLikelihood, Request


@dataclass(slots=True, eq=False)
class Asked:
    """A request in progress, which ``task`` answers.

    If the task exceeds the time limit, another task replaces it. ``sent`` is the request's entry in the budget, or None
    if the run has no budget.
    """

    job: Job
    number: int
    progress: JobProgress
    sent: Sent | None = None
    attempts: int = 0
    task: asyncio.Task[None] | None = None

    @property
    def request(self) -> Request:
        """The request to send."""
        return self.job.requests[self.number]


class Attempts:
    """Makes attempts at requests, each request in a separate task; a single timer watches all attempts.

    If an attempt times out, the class cancels the task, which may ignore the cancellation. The class therefore calls
    ``on_late`` with the request and the attempt's answer. Use an instance in only one event loop.
    """

    def __init__(
        self,
        adapter: Any,
        policy: Policy,
        outage: Outage,
        waits: Waits,
        on_late: Callable[[Asked, Answer], None],
    ) -> None:
        self._adapter = adapter
        self._policy = policy
        self._outage = outage
        self._waits = waits
        self._on_late = on_late
        facts = AdapterFacts.of(adapter)
        self._awaits_logprobs = facts.awaits_logprobs
        self._rates = RateLimit(facts, policy.share, partial(self._sleep, what=OWN))
        self.sends_stops = True
        self._limit_s = policy.timeout_s
        if tell(adapter, "time_limit_s", policy.timeout_s):  # the adapter can tell when a request starts
            self._limit_s = math.inf
        else:
            tell(adapter, "cancelled_after_s", policy.timeout_s)
        # All attempts have the same time limit, so the first to start is the first to be late.
        self._ends: dict[Asked, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def answer(self, asked: Asked, before: Answer | None) -> Answer:
        """Return the answer to a request; ``before`` is the answer to the previous attempt, or None."""
        if self._outage.ended is not None:
            return self._outage.ended
        if isinstance(asked.request, LogLikelihood) and not self._awaits_logprobs:
            return self._noted(asked, await _ask_in_thread(self._adapter, asked.request, self._policy.timeout_s))
        return self._noted(asked, await self._ask(asked, before))

    def cancelled(self, asked: Asked) -> Answer:
        """Return the answer to a request whose task the adapter has cancelled."""
        self._ends.pop(asked, None)
        return self._noted(asked, unusable(self._adapter, asyncio.CancelledError()))

    def job_of(self, task: asyncio.Task[Any] | None) -> Job | None:
        """Return the job with the request of ``task``, or None."""
        return next((asked.job for asked in list(self._ends) if asked.task is task), None)

    def _noted(self, asked: Asked, answer: Answer) -> Answer:
        noted: Answer = self._outage.note(answer)
        return with_attempts(noted, asked.attempts) if asked.attempts else noted

    async def _ask(self, asked: Asked, answer: Answer | None) -> Answer:
        while True:
            if answer is None:
                asked.attempts += 1
                answer = await self._attempt(asked)
            wait = _retry_wait(answer)
            if wait is None or is_too_long(wait) or asked.attempts > self._policy.retries:
                return answer
            await self._sleep(backoff_s(asked.attempts - 1, wait or None), SERVER if wait else AGAIN)
            if self._outage.ended or (asked.sent is not None and asked.sent.budget.is_passed):
                return answer
            answer = None

    async def _sleep(self, seconds: float, what: str) -> None:
        with self._waits.waiting(seconds, what):
            await asyncio.sleep(seconds)

    async def _attempt(self, asked: Asked) -> Answer:
        if isinstance(asked.request, LogLikelihood) or not asked.request.stop:
            return await self.send(asked, asked.request)
        from pytest_lmeval.asking.stops import answer_with_stops

        return await answer_with_stops(self, asked, asked.request)

    async def send(self, asked: Asked, request: Request) -> Answer:
        """Make one attempt at ``request``; return the answer, with thoughts and text separated."""
        task = asked.task
        if self._rates.limits:
            await self._rates.acquire(request)
        started = time.perf_counter()
        self._watch(asked)
        returned, error = await outcome(self._adapter, request)
        if asked.task is not task:
            raise asyncio.CancelledError  # the task ignored its cancellation
        del self._ends[asked]
        if error is not None:
            return unusable(self._adapter, error, self._policy.passthrough)
        answer = check_answer(returned, request, self._adapter, (time.perf_counter() - started) * 1000)
        if self._rates.limits and isinstance(answer, Completion) and isinstance(request, Generate):
            self._rates.settle(request, answer)
        return without_thoughts(answer, request, self._policy.think_tags)

    def _watch(self, asked: Asked) -> None:
        loop = asyncio.get_running_loop()
        self._ends[asked] = end = loop.time() + self._limit_s
        if self._timer is None and end < math.inf:
            self._timer = loop.call_at(end, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now, self._timer = loop.time(), None
        for asked, end in list(self._ends.items()):
            if end > now:
                self._timer = loop.call_at(end, self._look, loop)
                return
            del self._ends[asked]
            if asked.task is not None:
                asked.task.cancel()
            self._on_late(asked, _too_late(self._limit_s))


def _too_late(limit_s: float) -> AdapterTimeout:
    return AdapterTimeout(f"no response within {limit_s:g} s (--lm-timeout)")


async def _ask_in_thread(adapter: Any, request: Request, timeout_s: float) -> Answer:
    # A separate daemon thread: the default executor would keep the process alive.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Answer] = loop.create_future()

    def settle(answer: Answer) -> None:
        if not done.done():
            done.set_result(answer)

    def call() -> None:
        answer = ask(adapter, [request])[0]
        with contextlib.suppress(RuntimeError):  # the run is over, and its loop is closed
            loop.call_soon_threadsafe(settle, answer)

    threading.Thread(target=call, daemon=True).start()
    try:
        return await asyncio.wait_for(done, timeout_s)
    except TimeoutError:
        return _too_late(timeout_s)


async def outcome(adapter: Any, request: Request) -> tuple[Any, BaseException | None]:
    """Call an async adapter with a request; return the result and the exception, one of which is None."""
    answer: Any = None
    try:
        if isinstance(request, LogLikelihood):
            return _only(await adapter.loglikelihood([request])), None
        answer = adapter.complete(request)
        return await answer, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # in a task, SystemExit would end the loop and everything in flight
        return None, _not_async(adapter, answer, error)


def _not_async(adapter: Any, answer: object, error: BaseException) -> BaseException:
    if not isinstance(error, TypeError) or answer is None or isawaitable(answer):
        return error
    wrong = f"adapter {adapter_name(adapter)}: complete returned {type(answer).__name__}, which cannot be awaited"
    return Unusable(f"{wrong}; expected `async def complete(self, request)`, or `def generate(self, prompts)`")


def _only(returned: Any) -> Any:
    if not isinstance(returned, Sequence) or len(returned) != 1:
        size = f" of {len(returned)}" if isinstance(returned, Sequence) else ""
        raise AdapterError(f"loglikelihood returned {type(returned).__name__}{size} for 1 request; expected a list")
    return returned[0]


def _retry_wait(answer: Answer) -> float | None:
    if isinstance(answer, TransientError):
        return answer.retry_after or 0.0
    return 0.0 if isinstance(answer, AdapterTimeout) else None
