"""When to stop asking: the budget is spent, every request fails, the server is gone, or it asks the client to wait."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.asking.policy import LONGEST_WAIT_S, is_too_long
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, BudgetSpent, RequestRefused, TransientError
from pytest_lmeval.redaction import redact
from pytest_lmeval.types import Completion

if TYPE_CHECKING:
    from pytest_lmeval.asking.ask import Answer
    from pytest_lmeval.asking.transport import Job

REPEATS_AT_FIRST = 5
"""Equal errors in a row that end the run before any request was answered."""
REPEATS_UNUSABLE = 2
"""Calls in a row that return what can hold no answer, and so end a run before any request was answered."""
REPEATS_LATER = 20
"""Requests in a row that could not connect to the server, and so end a run in which requests were answered."""
# How the HTTP adapter says it: its errors carry no exception of the client's, whose frames would hold headers.
_HTTP_CLIENT = re.compile(r"no usable reply from \S+: ClientConnector(DNS)?Error: ")


class Budget:
    """Admits a request only if all in flight could cost the maximum seen and stay under ``limit``.

    Until the first cost is known, one request, or one batch, is on its way at a time. A run without a limit has no
    budget. Safe to use from several threads.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._spent = 0.0
        self._max_cost_seen: float | None = None
        self._in_flight = 0
        self._stopped = ""
        self._waiting: list[Callable[[], None]] = []
        self._lock = threading.RLock()

    @property
    def is_waiting(self) -> bool:
        """Whether requests are on their way, whose costs are still to come."""
        return self._in_flight > 0

    def allows(self, more: int) -> bool:
        """Tell whether ``more`` requests may go ahead of their time."""
        with self._lock:
            if self._stopped:
                return False
            if self._max_cost_seen is None:
                return self._in_flight == 0 and self._limit > 0
            return self._spent + (self._in_flight + more) * self._max_cost_seen <= self._limit

    def check(self, more: int) -> None:
        """Raise BudgetSpent where ``more`` requests that are wanted now may not go."""
        if self._stopped:
            raise BudgetSpent(self._stopped)
        if self._limit <= 0:
            raise BudgetSpent("stopped by --lm-max-cost: the run that is resumed has spent it")
        with self._lock:
            most = self._max_cost_seen or 0.0
            if self._spent + (self._in_flight + more) * most > self._limit:
                spent = f"{self._spent:.6g} of {self._limit:.6g} is spent, and a request costs up to {most:.6g}"
                raise BudgetSpent(f"stopped by --lm-max-cost: {spent}")

    def admit(self, wake: Callable[[], None]) -> bool:
        """Let a request that is wanted now go, and return True; else have ``wake`` called once when that may change.

        Raise BudgetSpent where it will not: nothing is on its way.
        """
        with self._lock:
            if self.allows(1):
                self._in_flight += 1
                return True
            if self.is_waiting:
                self._waiting.append(wake)
                return False
            self.check(1)
            raise BudgetSpent("stopped by --lm-max-cost")

    def commit(self, requests: int) -> None:
        """Note that requests are on their way."""
        with self._lock:
            self._in_flight += requests

    def release(self) -> None:
        """Note that one of them is not asked after all."""
        with self._one_less():
            return

    def settle(self, answer: Answer) -> None:
        """Note what came of one of them."""
        with self._one_less():
            self._spent += (cost := self.cost_of(answer))
            if isinstance(answer, AdapterError) or answer.cached:
                return
            if not cost and isinstance(answer, Completion) and not answer.prompt_tokens:
                return  # such as a list of models: it says nothing of what others cost
            self._max_cost_seen = max(self._max_cost_seen or 0.0, cost)

    def settle_all(self, job: Job) -> None:
        """Note what came of a job as soon as it has its answers: examples before its turn may wait for that."""
        answers = job.answers or ()
        for place in range(len(job.requests)):
            # Of a run that was ended there are fewer answers.
            if place in job.known or place >= len(answers):
                self.release()
            else:
                # Of an answer without a cost the example learns at its turn.
                with suppress(BudgetSpent):
                    self.settle(answers[place])

    def cost_of(self, answer: Answer) -> float:
        """Return what an answer cost, 0 for an error and one of another run; raise BudgetSpent if that is unknown."""
        if isinstance(answer, AdapterError) or answer.cached:
            return 0.0
        cost = answer.cost if isinstance(answer, Completion) else None
        if cost is None:
            self._stopped = "stopped by --lm-max-cost: the adapter does not tell what a request costs"
            raise BudgetSpent(self._stopped)
        return cost

    @contextmanager
    def _one_less(self) -> Iterator[None]:
        """Hold the lock while one request less is on its way, and wake who waits for that."""
        with self._lock:
            self._in_flight -= 1
            waiting, self._waiting = self._waiting, []
            try:
                yield
            finally:
                for wake in waiting:
                    wake()


class Unreachable(AdapterError):
    """What became of a request whose adapter could not connect at all."""


class Unusable(AdapterError):
    """What became of requests whose adapter returned what can hold no answer, whatever they ask."""


class Outage:
    """Decides from what became of requests whether further ones are worth asking; not safe between threads.

    A request counts once, after its retries. ``works`` says that one was answered before. ``ended`` is the answer to
    all further requests, once there is one. What it decides reaches the run as an answer, :class:`AdapterDown`.
    """

    def __init__(self, adapter: Any, *, works: bool = False) -> None:
        self._adapter = adapter
        self._reason = ""
        self._repeats = 0
        self._works = works
        self._has_notes = False
        self.ended: AdapterDown | None = None

    def room(self) -> int | None:
        """Return how many requests may be in flight: one at first, then no more than can end the run; None for all."""
        if self._works or self.ended or (self._has_notes and not self._repeats):
            return None
        return REPEATS_AT_FIRST - self._repeats if self._has_notes else 1

    def note(self, answer: Any) -> Any:
        """Take what became of a request into account; return it, or what ends the run in its place."""
        self._has_notes = True
        if self.ended is None:
            self.ended = self._end(answer)
            return self.ended or answer
        return answer

    def _end(self, answer: object) -> AdapterDown | None:
        if not isinstance(answer, AdapterError):
            self._works, self._reason, self._repeats = True, "", 0
            return None
        if isinstance(answer, TransientError) and is_too_long(answer.retry_after):
            asked = f"{answer.retry_after:.0f} s before the next request, longer than the {LONGEST_WAIT_S:.0f} s"
            return AdapterDown(f"stopped: {self._who} asks to wait {asked} that a run waits: {answer}")
        if isinstance(answer, RequestRefused):
            self._works = True
        if not self._counts(answer):
            self._reason, self._repeats = "", 0
            return None
        reason = answer.cause or str(answer)
        self._repeats = self._repeats + 1 if reason == self._reason else 1
        self._reason = reason
        if not self._works and isinstance(answer, Unusable) and self._repeats == REPEATS_UNUSABLE:
            return AdapterDown(f"stopped, as no answer can be used: {answer}")
        if self._repeats < (REPEATS_LATER if self._works else REPEATS_AT_FIRST):
            return None
        which = "last" if self._works else "first"
        check = "the address, the API key and the name of the model" if self._has_server(answer) else "the adapter"
        check = "that the server is running, and its address" if is_unreachable(answer) else check
        return AdapterDown(
            f"stopped: the {which} {self._repeats} requests to {self._who} failed alike; check {check}: {answer}"
        )

    def _counts(self, error: AdapterError) -> bool:
        if is_unreachable(error):
            return True
        return not self._works and not isinstance(error, TransientError | AdapterTimeout | RequestRefused)

    def _has_server(self, error: AdapterError) -> bool:
        return bool(error.status or getattr(self._adapter, "base_url", ""))

    @property
    def _who(self) -> str:
        address = getattr(self._adapter, "base_url", "")
        at = f" at {redact(address)}" if isinstance(address, str) and address else ""
        return f"{adapter_name(self._adapter)}{at}"


def is_unreachable(error: BaseException) -> bool:
    """Tell whether ``error``, or what it was raised from, is a refused connection or a host name nobody knows."""
    if isinstance(error, Unreachable) or _HTTP_CLIENT.match(str(error)):
        return True
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        if isinstance(cause, ConnectionRefusedError | socket.gaierror):
            return True
        seen.add(id(cause))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return False
