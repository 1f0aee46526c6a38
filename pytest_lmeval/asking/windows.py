"""Send requests to a batch adapter in windows; the adapter may divide each window into batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import adapter_name, method
from pytest_lmeval.asking.ask import Answer, unusable
from pytest_lmeval.asking.batching import BatchTransport
from pytest_lmeval.asking.policy import Policy
from pytest_lmeval.asking.transport import Inbox, Job, JobProgress
from pytest_lmeval.errors import AdapterError
from pytest_lmeval.types import LogLikelihood, Request

if TYPE_CHECKING:
    from pytest_lmeval.asking.limits import Budget

_Place = tuple[Job, int]
"""A request, by its job and its number in the job."""


class WindowTransport(BatchTransport):
    """Takes waiting jobs with about ``size`` requests, and sends the requests in batches that the adapter plans.

    A job is complete once its last request has an answer. An adapter without ``plan_window`` receives all of a window's
    requests in one call per kind of request.
    """

    def __init__(self, adapter: Any, policy: Policy, inbox: Inbox, size: int, budget: Budget | None = None) -> None:
        super().__init__(adapter, policy, inbox, budget)
        self._size = size
        self._open: dict[Job, JobProgress] = {}
        self._asking: Sequence[_Place] = ()
        self._lock = threading.Lock()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs; jobs from one call share a window if they fit into it."""
        with self._lock:
            super().submit(jobs)

    def abandon(self) -> list[Job]:
        """Complete the jobs in the hanging call with timeouts; return all other jobs."""
        self._stopped = True
        self._drop_sent()
        with self._lock:
            waiting = self._drain()
            self._queue.put(None)
            stuck = {job: self._open.pop(job) for job, _ in self._asking if job in self._open}
            waiting = [*self._open, *waiting]
            self._open.clear()
        timeout = self._timeout()
        for job, progress in stuck.items():
            self._inbox.deliver(job, [answer or timeout for answer in progress.answers])
        return waiting

    def _run(self) -> None:
        while (jobs := self._next()) is not None:
            self._open = {job: JobProgress(len(job.requests)) for job in jobs}
            try:
                self._ask_window([(job, number) for job in jobs for number in range(len(job.requests))])
            except BaseException as error:  # meant to stop the run, so it must reach the thread that runs the items
                for job in list(self._open):
                    self._inbox.fail(job, error)

    def _next(self) -> list[Job] | None:
        job = self._queue.get()
        if job is None:
            return None
        jobs, requests = [job], len(job.requests)
        with self._lock:  # jobs being queued join the window
            while requests < self._size and not self._queue.empty():
                job = self._queue.get_nowait()
                if job is None:
                    self._queue.put(None)
                    break
                jobs.append(job)
                requests += len(job.requests)
        return jobs

    def _ask_window(self, places: Sequence[_Place]) -> None:
        scored = [place for place in places if isinstance(_request(place), LogLikelihood)]
        written = [place for place in places if not isinstance(_request(place), LogLikelihood)]
        for of_kind in (written, scored):
            for batch in self._batches(of_kind):
                if self._stopped:
                    return
                self._asking = batch
                answers = self._ask_within_limit(list(map(_request, batch)), len(batch))
                self._take(batch, answers)

    def _take(self, batch: Sequence[_Place], answers: Iterable[Answer]) -> None:
        with self._lock:
            if self._stopped:  # another transport has the open jobs
                return
            self._asking = ()
            for (job, number), answer in zip(batch, answers, strict=True):
                self._open[job].answers[number] = answer
                self._open[job].left -= 1
            done = [job for job, progress in self._open.items() if not progress.left]
            answered = {job: self._open.pop(job).answers for job in done}
        for job, found in answered.items():
            self._inbox.deliver(job, [answer for answer in found if answer is not None])

    def _batches(self, places: Sequence[_Place]) -> Iterator[Sequence[_Place]]:
        """Yield batches of requests; if the adapter's plan is unusable, answer all requests with an error."""
        if method(self._adapter, "plan_window") is None or not places:
            yield from [places] if places else []
            return
        planned = self._planned(places)
        if isinstance(planned, AdapterError):
            self._take(places, self._noted([planned] * len(places)))
            return
        for batch in planned:
            yield [places[number] for number in batch]

    def _planned(self, places: Sequence[_Place]) -> list[list[int]] | AdapterError:
        self._asking, self._calling_for = places, len(places)
        self._calling_since = time.monotonic()
        try:
            return planned_calls(self._adapter, list(map(_request, places)), self._policy.passthrough)
        finally:
            self._calling_since = None


def planned_calls(
    adapter: Any, requests: list[Request], passthrough: tuple[type[BaseException], ...] = ()
) -> list[list[int]] | AdapterError:
    """Return the adapter's plan, a list of request positions for each call, or an error if the plan is unusable."""
    try:
        found = [list(batch) for batch in adapter.plan_window(requests)]
    except BaseException as error:
        return unusable(adapter, error, passthrough)
    planned = [number for batch in found for number in batch]
    if all(type(number) is int for number in planned) and sorted(planned) == list(range(len(requests))):
        return [batch for batch in found if batch]
    wrong = f"plan_window returned {len(planned)} place(s) for {len(requests)} request(s); expected each place once"
    return AdapterError(f"adapter {adapter_name(adapter)}: {wrong}")


def _request(place: _Place) -> Request:
    job, number = place
    return job.requests[number]
