"""Query batch adapters in a thread, which sends batches while the run scores earlier answers."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import adapter_name
from pytest_lmeval.asking.ask import Answer, ask, with_attempts
from pytest_lmeval.asking.policy import AGAIN, SERVER, Policy, Wait, backoff_s, is_too_long
from pytest_lmeval.asking.transport import Inbox, Job
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, BudgetSpent, TransientError
from pytest_lmeval.types import Generate, Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.limits import Budget, Outage, Sent

_LOOK_S = 0.25
_WORTH_ANOTHER_TRY = (TransientError, AdapterTimeout)


class BatchTransport:
    """Queries a batch adapter in a separate thread, so that the run can score earlier answers at the same time."""

    def __init__(self, adapter: Any, policy: Policy, inbox: Inbox, budget: Budget | None = None) -> None:
        self._adapter = adapter
        self._policy = policy
        self._inbox = inbox
        self._budget = budget
        self._sent: Sent | None = None
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        # Created on the first error.
        self._outage: Outage | None = None
        self._works = False
        self._wait: Wait | None = None
        self._stopped = False
        self._current: Job | None = None
        self._calling_since: float | None = None
        self._calling_for = 0
        self._thread: threading.Thread | None = None

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs."""
        if self._thread is None:
            # A daemon: a call that never returns must not keep the process alive.
            self._thread = threading.Thread(target=self._run, name="lmeval-batches", daemon=True)
            self._thread.start()
        for job in jobs:
            self._queue.put(job)

    def is_stuck(self) -> bool:
        """Return True if the current call has exceeded its time limit."""
        since = self._calling_since
        return since is not None and time.monotonic() - since > self._policy.timeout_s * self._calling_for

    @property
    def wait(self) -> Wait | None:
        """The current wait before a retry, or None."""
        return self._wait

    def abandon(self) -> list[Job]:
        """Abandon the hanging call, and answer its job with timeouts; return the jobs that have not begun."""
        self._stopped = True
        # Read the job first: at any moment, the call may return and the thread take the next job.
        current = self._current
        self._drop_sent()
        waiting = self._drain()
        self._queue.put(None)
        if current is not None:
            self._inbox.deliver(current, [self._timeout()] * len(current.requests))
        return waiting

    def close(self) -> None:
        """End the thread after its current call, but do not wait for it."""
        self._stopped = True
        self._drain()
        self._queue.put(None)

    def _drop_sent(self) -> None:
        """Settle the budget for the hanging call, although the call's cost remains unknown."""
        if self._sent is not None:
            self._sent.settle()

    def _timeout(self) -> AdapterTimeout:
        allowed = f"{self._policy.timeout_s:g} s for each of {self._calling_for} request(s) (--lm-timeout)"
        return AdapterTimeout(f"adapter {adapter_name(self._adapter)} did not return within {allowed}")

    def _drain(self) -> list[Job]:
        waiting: list[Job] = []
        while not self._queue.empty():
            job = self._queue.get_nowait()
            if job is not None:
                waiting.append(job)
        return waiting

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            self._current = job
            try:
                answers = self._answers(job.requests)
            except BaseException as error:  # meant to stop the run, so it must reach the thread that runs the items
                self._inbox.fail(job, error)
            else:
                self._inbox.deliver(job, answers)
            self._current = None

    def _answers(self, requests: Sequence[Request]) -> list[Answer]:
        # Keep the log-likelihoods of a batch's examples together: an example's options share their beginning, which an
        # adapter may read only once.
        size = self._policy.batch_size if any(isinstance(one, Generate) for one in requests) else len(requests)
        answers: list[Answer] = []
        for first in range(0, len(requests), max(1, size)):
            if self._stopped:
                break
            answers += self._ask_within_limit(requests[first : first + size], len(requests) - first)
        return answers

    def _ask_within_limit(self, requests: Sequence[Request], room: int) -> list[Answer]:
        """Send ``requests`` when the budget allows ``room`` requests; return no answers if the run ends before then."""
        if self._budget is None:
            return self._ask_together(requests)
        woken = threading.Event()
        while (sent := self._budget.take(len(requests), room, woken.set)) is None:
            if self._stopped:
                return []
            woken.wait(_LOOK_S)
            woken.clear()
        if isinstance(sent, BudgetSpent):
            return [sent] * len(requests)
        self._sent = sent
        answers: list[Answer] = []
        try:
            answers = self._ask_together(requests)
        finally:
            answers = sent.settle(answers)
        return answers

    def _ask_together(self, requests: Sequence[Request], before: int = 0) -> list[Answer]:
        ended = None if self._outage is None else self._outage.ended
        return [ended] * len(requests) if ended else self._ask_with_retries(requests, before)

    def _ask_with_retries(self, requests: Sequence[Request], before: int) -> list[Answer]:
        answers = self._ask(requests)
        attempts = [before + 1] * len(answers)
        for attempt in range(before, self._policy.retries):
            again = [number for number, answer in enumerate(answers) if isinstance(answer, _WORTH_ANOTHER_TRY)]
            if not again or self._stopped or (self._budget is not None and self._budget.is_passed):
                break
            waits = [getattr(answers[number], "retry_after", None) for number in again]
            if any(map(is_too_long, waits)):
                break
            seconds = max(backoff_s(attempt, wait) for wait in waits)
            self._wait = Wait(time.monotonic() + seconds, SERVER if any(waits) else AGAIN)
            time.sleep(seconds)
            self._wait = None
            for number, answer in zip(again, self._ask([requests[number] for number in again]), strict=True):
                answers[number] = answer
                attempts[number] += 1
        if any(map(is_of_several, answers)):
            return self._one_by_one(requests, answers, attempts)
        return [with_attempts(answer, tries) for answer, tries in zip(self._noted(answers), attempts, strict=True)]

    def _one_by_one(self, requests: Sequence[Request], answers: list[Answer], attempts: list[int]) -> list[Answer]:
        """Return the final answers; if a call with several requests failed, send each of its requests again alone."""
        spoilt = [number for number, answer in enumerate(answers) if is_of_several(answer)]
        others = [number for number in range(len(answers)) if number not in spoilt]
        noted = zip(others, self._noted([answers[number] for number in others]), strict=True)
        found = {number: with_attempts(answer, attempts[number]) for number, answer in noted}
        for number in spoilt:
            if self._stopped:
                found[number] = with_attempts(answers[number], attempts[number])
            else:
                (found[number],) = self._ask_together([requests[number]], attempts[number])
        return [found[number] for number in range(len(answers))]

    def _noted(self, answers: list[Answer]) -> list[Answer]:
        if self._outage is None:
            if not any(isinstance(answer, AdapterError) for answer in answers):
                self._works = self._works or bool(answers)
                return answers
            from pytest_lmeval.asking.limits import Outage

            self._outage = Outage(self._adapter, works=self._works)
        outage = self._outage
        if len({str(answer) if isinstance(answer, AdapterError) else id(answer) for answer in answers}) != 1:
            return [outage.note(answer) for answer in answers]
        # A call with unusable answers counts as one error, regardless of the number of its requests.
        return [outage.note(answers[0])] * len(answers)

    def _ask(self, requests: Sequence[Request]) -> list[Answer]:
        self._calling_for = len(requests)
        self._calling_since = time.monotonic()
        try:
            return ask(self._adapter, requests, self._policy.passthrough, self._policy.think_tags)
        finally:
            self._calling_since = None


def is_of_several(answer: Answer) -> bool:
    """Return True for the error of a call with several requests, if the run must send these requests again one by one.

    The second attempt shows which request caused the error, so that errors do not depend on the batches. After a
    timeout, the run does not send the requests one by one, because each request could time out once more.
    """
    if not isinstance(answer, AdapterError) or answer.together < 2:
        return False
    return not (isinstance(answer, AdapterTimeout | AdapterDown) or is_too_long(getattr(answer, "retry_after", None)))
