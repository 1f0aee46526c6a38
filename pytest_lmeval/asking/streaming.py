"""Query async adapters in an event loop, which runs in a separate thread and keeps many requests in flight."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from pytest_lmeval.adapters.facts import adapter_name, member, method
from pytest_lmeval.asking.ask import Answer
from pytest_lmeval.asking.attempts import Asked, Attempts
from pytest_lmeval.asking.limits import Budget, Outage, Sent
from pytest_lmeval.asking.pacing import Opening, Waits
from pytest_lmeval.asking.policy import Policy, Wait
from pytest_lmeval.asking.transport import Inbox, Job, JobProgress
from pytest_lmeval.errors import AdapterDown, AdapterTimeout, BudgetSpent
from pytest_lmeval.text import printable

_HEARTBEAT_S = 0.5
_GRACE_S = 5.0
_LAST_WORDS_S = 0.5
_CANCELS = "check whether the adapter, or code that it calls, cancels all tasks of its event loop (asyncio.all_tasks())"


class AsyncTransport:
    """Queries an async adapter in an event loop, with up to ``concurrency`` requests in flight.

    Each request runs in a separate task. If a task exceeds the time limit, the loop cancels it, and another task
    continues with the request, even if the adapter ignores the cancellation.
    """

    def __init__(self, adapter: Any, policy: Policy, inbox: Inbox, budget: Budget | None = None) -> None:
        self._adapter = adapter
        self._policy = policy
        self._inbox = inbox
        self._budget = budget
        self._waits = Waits()
        self._outage = Outage(adapter)
        self._opening = Opening(self._outage.room, self._go_on, is_open=bool(member(adapter, "is_ready")))
        self._attempts = Attempts(adapter, policy, self._outage, self._waits, self._begin)
        self._heartbeat = time.monotonic()
        self._abandoned = False
        self._is_closing = False
        self._missed: AdapterDown | None = None
        self._open: dict[Job, JobProgress] = {}
        self._waiting: deque[tuple[Job, int]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue ``jobs``, and wake the event loop once."""
        self._open.update((job, JobProgress(len(job.requests))) for job in jobs)
        if self._loop is None and not self._start():
            return
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._enqueue, jobs)

    def is_silent(self) -> bool:
        """Return True if the event loop has missed its heartbeat, because the adapter blocks the loop."""
        return self._thread is not None and time.monotonic() - self._heartbeat > 2 * _HEARTBEAT_S

    def is_stuck(self) -> bool:
        """Return True if the event loop has hung for longer than the time limit of a request."""
        return self._thread is not None and time.monotonic() - self._heartbeat > self._policy.timeout_s + _GRACE_S

    @property
    def wait(self) -> Wait | None:
        """The wait that ends first; None unless all requests are waiting."""
        return self._waits.current

    def abandon(self) -> list[Job]:
        """Abandon the event loop, answer the job that blocks it with a timeout, and return all other jobs.

        If the job that blocks the loop is unknown, answer all jobs in flight with the timeout.
        """
        timeout = AdapterTimeout(f"adapter {adapter_name(self._adapter)} blocked its event loop")
        self._abandoned = True
        if self._budget is not None:
            self._budget.drop(self._wake)
        assert self._loop is not None
        blocking = self._attempts.job_of(asyncio.current_task(self._loop))
        jobs = list(self._open.items())
        blamed = [job for job, progress in jobs if progress.begun] if blocking is None else [blocking]
        for job in blamed:
            self._inbox.deliver(job, [timeout] * len(job.requests))
        return [job for job, _ in jobs if job not in blamed]

    def close(self) -> None:
        """Cancel the requests in flight, close the adapter in the event loop that it used, and end the thread."""
        if self._loop is None or self._thread is None or self.is_stuck():
            return
        self._is_closing = True
        if self._budget is not None:
            self._budget.drop(self._wake)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_GRACE_S)

    def _start(self) -> bool:
        """Start the event loop; if this fails, answer all jobs with the error and return False."""
        try:
            self._loop = asyncio.new_event_loop()
        except Exception as error:  # a loop needs a socket pair, which a plugin may forbid
            reason = printable(f"{type(error).__name__}: {error}", keep="")
            self._answer_all(
                AdapterDown(f"adapter {adapter_name(self._adapter)}: cannot create an event loop: {reason}")
            )
            return False
        self._heartbeat = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="lmeval-requests", daemon=True)
        self._thread.start()
        return True

    def _enqueue(self, jobs: Sequence[Job]) -> None:
        if self._missed is not None:
            self._answer_all(self._missed)
            return
        self._waiting.extend((job, number) for job in jobs for number in range(len(job.requests)))
        self._go_on()

    def _go_on(self) -> None:
        waits = self._waits
        while self._waiting and waits.in_hand < self._policy.concurrency and self._opening.has_room(waits.in_hand):
            if self._abandoned or self._is_closing:  # another transport has the waiting jobs
                return
            job, number = self._waiting[0]
            progress = self._open.get(job)
            sent: Sent | BudgetSpent | None = None
            if progress is not None and self._budget is not None:
                # Without this request, the rest of the job is useless.
                sent = self._budget.take(1, len(job.requests) - number, self._wake)
                if sent is None:
                    return  # continues once there is room
            self._waiting.popleft()
            if progress is None:  # already answered: the run has ended
                continue
            if isinstance(sent, BudgetSpent):
                progress.answers[number] = sent
                self._take_off(job, progress)
                continue
            progress.begun = True
            waits.in_hand += 1
            self._begin(Asked(job, number, progress, sent))

    def _begin(self, asked: Asked, before: Answer | None = None) -> None:
        assert self._loop is not None
        asked.task = self._loop.create_task(self._work_on(asked, before))

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        guard = loop.create_task(self._stand_guard())
        self._beat()
        while not self._is_closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A task that the adapter started raised this; its requests continue.
                continue
        tasks = asyncio.all_tasks(loop) | {guard}
        for task in tasks:
            task.cancel()
        try:
            loop.run_until_complete(asyncio.wait(tasks, timeout=_LAST_WORDS_S))
            if (aclose := method(self._adapter, "aclose")) is not None:
                loop.run_until_complete(asyncio.wait_for(aclose(), _GRACE_S))
        except BaseException as error:  # harmless: only the model's cleanup failed
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
        if self._budget is not None:
            self._budget.drop(self._wake)
        for job in list(self._open):
            self._open.pop(job, None)
            self._inbox.deliver(job, [end] * len(job.requests))

    async def _stand_guard(self) -> None:
        """Detect a cancellation of all tasks in the event loop, after which requests would have no answers."""
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self._miss("was cancelled")
            raise

    def _miss(self, how: str) -> None:
        if not (self._abandoned or self._is_closing):
            down = AdapterDown(
                f"stopped: the task that sends requests to {adapter_name(self._adapter)} {how}; {_CANCELS}"
            )
            self._missed = self._outage.ended = self._outage.ended or down
            self._answer_all(self._missed)

    async def _work_on(self, asked: Asked, before: Answer | None) -> None:
        task, progress = asked.task, asked.progress
        try:
            progress.answers[asked.number] = await self._attempts.answer(asked, before)
        except asyncio.CancelledError:
            if asked.task is not task:
                raise
            await _take_back_cancellation()
            if self._is_closing or self._missed is not None:
                raise
            progress.answers[asked.number] = self._attempts.cancelled(asked)
        except BaseException as error:  # meant to stop the run, so it must reach the thread that runs the items
            if self._abandoned or self._is_closing:
                raise
            self._inbox.fail(asked.job, error)
        try:
            self._end(asked)
        except BaseException as error:
            self._miss(f"ended: {error!r}")
            raise

    def _end(self, asked: Asked) -> None:
        progress, number = asked.progress, asked.number
        if asked.sent is not None:
            answer = progress.answers[number]
            # If there is no answer, the run is ending.
            settled = asked.sent.settle([] if answer is None else [answer])
            progress.answers[number] = settled[0] if settled else None
        self._take_off(asked.job, progress)
        self._waits.in_hand -= 1
        self._go_on()

    def _take_off(self, job: Job, progress: JobProgress) -> None:
        progress.left -= 1
        if not progress.left and self._open.pop(job, None) is not None:
            self._inbox.deliver(job, [answer for answer in progress.answers if answer is not None])

    def _wake(self) -> None:
        """Tell the event loop that the budget may now allow further requests; any thread may call this method."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the run is over and its loop is closed
                self._loop.call_soon_threadsafe(self._go_on)


async def _take_back_cancellation() -> None:
    """Undo the cancellation of this task, after the guard has had time to detect a cancellation of all tasks."""
    task = asyncio.current_task()
    while task is not None and task.uncancel():
        pass
    await asyncio.sleep(0)
