"""Async adapters: an event loop in a thread of its own keeps many requests in flight."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.asking.ask import Answer, ask, check_answer, is_async, unusable, with_attempts, without_thoughts
from pytest_lmeval.asking.limits import Outage, Unusable, is_too_long
from pytest_lmeval.asking.pacing import Opening, RateLimit, Waits
from pytest_lmeval.asking.policy import AGAIN, OWN, SERVER, Policy, Wait, backoff_s
from pytest_lmeval.asking.transport import Inbox, Job, JobProgress
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, TransientError
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion, Generate, LogLikelihood, Request

_HEARTBEAT_S = 0.5
_GRACE_S = 5.0
_CANCELS = "does the adapter, or code that it calls, cancel all tasks of its loop (asyncio.all_tasks())?"


class AsyncTransport:
    """Asks an async adapter: ``concurrency`` requests in flight, retries and rate limits in the same loop."""

    def __init__(self, adapter: Any, policy: Policy, inbox: Inbox) -> None:
        self._adapter = adapter
        self._policy = policy
        self._inbox = inbox
        self._awaits_logprobs = is_async(adapter)
        self._waits = Waits()
        self._rates = RateLimit(adapter, policy.share, partial(self._sleep, what=OWN))
        self._outage = Outage(adapter)
        self._opening = Opening(self._outage.room, is_open=bool(getattr(adapter, "is_ready", False)))
        self._limit_s: float | None = policy.timeout_s
        if hasattr(adapter, "time_limit_s"):  # it knows when the time of a request begins
            adapter.time_limit_s, self._limit_s = policy.timeout_s, None
        self._heartbeat = time.monotonic()
        self._abandoned = False
        self._is_closing = False
        self._missed: AdapterDown | None = None
        self._asking: dict[asyncio.Task[Any], Job] = {}
        self._open: dict[Job, JobProgress] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[tuple[Job, int]] | None = None
        self._thread: threading.Thread | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs; the loop is woken once for all of them."""
        self._open.update((job, JobProgress(len(job.requests))) for job in jobs)
        if self._loop is None and not self._start():
            return
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._enqueue, jobs)

    def is_silent(self) -> bool:
        """Tell whether the loop has stopped to turn, as it does while an adapter blocks it."""
        return self._thread is not None and time.monotonic() - self._heartbeat > 2 * _HEARTBEAT_S

    def is_stuck(self) -> bool:
        """Tell whether the loop itself hangs: a request that merely takes long is ended by the loop."""
        return self._thread is not None and time.monotonic() - self._heartbeat > self._policy.timeout_s + _GRACE_S

    @property
    def wait(self) -> Wait | None:
        """What all requests in hand wait for, if they do."""
        return self._waits.current

    def abandon(self) -> list[Job]:
        """Answer the job that blocks the loop with a timeout and leave the loop alone; return all others.

        If that job is not known, every job in flight is answered with the timeout.
        """
        timeout = AdapterTimeout(f"adapter {adapter_name(self._adapter)} blocked its event loop")
        self._abandoned = True
        assert self._loop is not None
        task = asyncio.current_task(self._loop)
        blocking = self._asking.get(task) if task is not None else None
        jobs = list(self._open.items())
        blamed = [job for job, progress in jobs if progress.begun] if blocking is None else [blocking]
        for job in blamed:
            self._inbox.deliver(job, [timeout] * len(job.requests))
        return [job for job, _ in jobs if job not in blamed]

    def close(self) -> None:
        """Cancel what is in flight, close the adapter in its own loop, and end the thread."""
        if self._loop is None or self._thread is None or self.is_stuck():
            return
        self._is_closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_GRACE_S)

    def _start(self) -> bool:
        """Start the loop; where it cannot be made, answer what is in hand with that, and return False."""
        try:
            self._loop = asyncio.new_event_loop()
        except Exception as error:  # each loop has a pair of sockets, and a plugin may have forbidden them
            reason = printable(f"{type(error).__name__}: {error}", keep="")
            self._answer_all(AdapterDown(f"adapter {adapter_name(self._adapter)}: no event loop can be made: {reason}"))
            return False
        self._queue = asyncio.Queue()
        self._heartbeat = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lmeval-requests", daemon=True)
        self._thread.start()
        return True

    def _enqueue(self, jobs: Sequence[Job]) -> None:
        assert self._queue is not None
        if self._missed is not None:
            self._answer_all(self._missed)
            return
        for job in jobs:
            for number in range(len(job.requests)):
                self._queue.put_nowait((job, number))

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        workers = [loop.create_task(self._work()) for _ in range(self._policy.concurrency)]
        self._beat()
        while not self._is_closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # Raised in a task that the adapter started; its requests go on.
                continue
        for task in asyncio.all_tasks(loop):
            task.cancel()
        try:
            loop.run_until_complete(asyncio.gather(*workers, return_exceptions=True))
            aclose = getattr(self._adapter, "aclose", None)
            if callable(aclose):
                loop.run_until_complete(asyncio.wait_for(aclose(), _GRACE_S))
        except BaseException as error:  # nothing is lost by it but the model's own tidiness
            logging.getLogger(__name__).warning(
                "closing the adapter raised %s", printable(f"{type(error).__name__}: {error}", keep="")
            )
        finally:
            loop.close()

    def _beat(self) -> None:
        assert self._loop is not None
        self._heartbeat = time.monotonic()
        self._loop.call_later(_HEARTBEAT_S, self._beat)

    def _answer_all(self, end: AdapterDown) -> None:
        for job in list(self._open):
            self._open.pop(job, None)
            self._inbox.deliver(job, [end] * len(job.requests))

    async def _work(self) -> None:
        try:
            await self._work_on_queue()
        except BaseException as error:
            # It was meant to stay: nobody would take what is queued for it.
            if not (self._abandoned or self._is_closing):
                self._missed = self._outage.ended = self._outage.ended or _down(self._adapter, error)
                self._answer_all(self._missed)
            raise

    async def _work_on_queue(self) -> None:
        assert self._queue is not None
        while True:
            # Before it takes a request: they go out in the order in which they came.
            async with self._opening:
                job, number = await self._queue.get()
                if self._abandoned:  # the loop turns again, too late: another one has what was waiting
                    return
                with self._waits.in_hand():
                    await self._work_on(job, number)

    async def _work_on(self, job: Job, number: int) -> None:
        progress = self._open.get(job)
        if progress is None:  # answered, as the run has ended
            return
        progress.begun = True
        try:
            progress.answers[number] = await self._answer(job.requests[number], job)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # meant to stop the run: it has to reach the thread that runs the items
            self._inbox.fail(job, error)
        progress.left -= 1
        if not progress.left and self._open.pop(job, None) is not None:
            self._inbox.deliver(job, [answer for answer in progress.answers if answer is not None])

    async def _answer(self, request: Request, job: Job) -> Answer:
        if self._outage.ended is not None:
            return self._outage.ended
        if isinstance(request, LogLikelihood) and not self._awaits_logprobs:
            answer, attempts = await self._ask_in_thread(request), 0
        else:
            answer, attempts = await self._ask_with_retries(request, job)
        noted: Answer = self._outage.note(answer)
        return with_attempts(noted, attempts) if attempts else noted

    async def _ask_with_retries(self, request: Request, job: Job) -> tuple[Answer, int]:
        for attempt in range(self._policy.retries + 1):
            answer = await self._attempt(request, job)
            wait = _retry_wait(answer)
            if wait is None or is_too_long(wait) or attempt == self._policy.retries:
                break
            await self._sleep(backoff_s(attempt, wait or None), SERVER if wait else AGAIN)
            if self._outage.ended:
                break
        return answer, attempt + 1

    async def _sleep(self, seconds: float, what: str) -> None:
        with self._waits.waiting(seconds, what):
            await asyncio.sleep(seconds)

    async def _ask_in_thread(self, request: Request) -> Answer:
        # A thread of its own, and a daemon: the default executor's would keep the process from ending.
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer) -> None:
            if not done.done():
                done.set_result(answer)

        def call() -> None:
            answer = ask(self._adapter, [request])[0]
            with contextlib.suppress(RuntimeError):  # the run is over, and its loop closed
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=call, daemon=True).start()
        try:
            return await asyncio.wait_for(done, self._policy.timeout_s)
        except TimeoutError:
            return AdapterTimeout(f"no response within {self._policy.timeout_s:g} s (--lm-timeout)")

    async def _attempt(self, request: Request, job: Job) -> Answer:
        await self._rates.acquire(request)
        started = time.perf_counter()
        task = asyncio.ensure_future(outcome(self._adapter, request))
        self._asking[task] = job
        task.add_done_callback(self._asking.pop)
        # Not wait_for: a request that ignores its cancellation would hold up its slot.
        done, _ = await asyncio.wait({task}, timeout=self._limit_s)
        latency_ms = (time.perf_counter() - started) * 1000
        if not done:
            task.cancel()
            return AdapterTimeout(f"no response within {self._policy.timeout_s:g} s (--lm-timeout)")
        returned, error = (None, asyncio.CancelledError()) if task.cancelled() else task.result()
        if error is not None:
            return unusable(self._adapter, error, self._policy.passthrough)
        answer = check_answer(returned, request, self._adapter, latency_ms)
        if isinstance(answer, Completion) and isinstance(request, Generate):
            self._rates.settle(request, answer)
        return without_thoughts(answer, request, self._policy.think_tags)


def _down(adapter: Any, error: BaseException) -> AdapterDown:
    how = "was cancelled" if isinstance(error, asyncio.CancelledError) else f"ended: {error!r}"
    return AdapterDown(f"stopped: what asks {adapter_name(adapter)} {how}; {_CANCELS}")


async def outcome(adapter: Any, request: Request) -> tuple[Any, BaseException | None]:
    """Return what an async adapter returned for a request, or what it raised."""
    answer: Any = None
    try:
        if isinstance(request, LogLikelihood):
            return _only(await adapter.loglikelihood([request])), None
        answer = adapter.complete(request)
        return await answer, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit in a task would end the loop, and all that is in flight with it
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
