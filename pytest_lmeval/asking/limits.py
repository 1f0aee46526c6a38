"""Stop sending requests if the budget is spent, all requests fail, or the server is gone or demands a long wait."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.facts import adapter_name, member
from pytest_lmeval.asking.policy import LONGEST_WAIT_S, is_too_long
from pytest_lmeval.errors import (
    AdapterDown,
    AdapterError,
    AdapterTimeout,
    BudgetSpent,
    LmevalError,
    RequestRefused,
    TransientError,
)
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.redaction import redact
from pytest_lmeval.stats.intervals import is_at_least
from pytest_lmeval.text import printable
from pytest_lmeval.types import Completion, Generate, LogLikelihood

if TYPE_CHECKING:
    from pytest_lmeval.asking.ask import Answer

REPEATS_AT_FIRST = 5
"""The number of consecutive equal errors that end a run before its first answer."""
REPEATS_UNUSABLE = 2
"""The number of consecutive calls without a usable answer that end a run before its first answer."""
REPEATS_LATER = 20
"""The number of consecutive requests without a connection that end a run after its first answer."""
_BAD_REQUEST = 400
_LONGEST_NAME = 60
# The HTTP adapter's message: its errors drop the client's exception, whose frames would hold headers.
_HTTP_CLIENT = re.compile(r"no usable reply from \S+: ClientConnector(DNS)?Error: ")


class Budget:
    """Releases requests only if ``limit`` suffices when each request in flight costs as much as the costliest so far.

    Queued requests do not count, because the budget releases them only later. As a result, ``spent`` exceeds the limit
    only if requests in flight cost more than any earlier request. Until the first cost is known, only one request or
    batch is in flight. A run without a limit has no budget. The class is thread-safe.
    """

    def __init__(self, limit: float) -> None:
        self.spent = 0.0
        self._limit = limit
        self._max_cost_seen: float | None = None
        self._in_flight = 0
        self._stopped = ""
        # A dict preserves the order and drops duplicates.
        self._waiting: dict[Callable[[], None], None] = {}
        self._open: dict[Sent, None] = {}
        self._lock = threading.RLock()

    @property
    def is_passed(self) -> bool:
        """True if the run has spent more than the limit."""
        return not is_at_least(self._limit, self.spent)

    def take(self, requests: int, room: int, wake: Callable[[], None]) -> Sent | BudgetSpent | None:
        """Count ``requests`` as sent if ``room`` requests fit; otherwise, return None, and later call ``wake`` once.

        ``room`` is the number of requests that are useless without one another. The budget calls ``wake`` when another
        attempt may succeed. If the requests do not fit and no request is in flight, return BudgetSpent, which is final
        for all callers.
        """
        with self._lock:
            if not self._stopped and self._has(room):
                self._in_flight += requests
                self._open[sent := Sent(self, requests, wake)] = None
                return sent
            if not self._stopped and self._in_flight:
                self._waiting[wake] = None
                return None
            self._stopped = self._stopped or self._why()
            return BudgetSpent(self._stopped)

    def settle(self, sent: Sent, answers: Sequence[Answer] = ()) -> list[Answer]:
        """Add the costs of ``answers`` to ``spent``; replace a new answer without a cost with BudgetSpent.

        Only the first call for ``sent`` has an effect. ``answers`` may be incomplete after the end of the run.
        """
        with self._lock:
            if sent not in self._open:
                return list(answers)
            del self._open[sent]
            self._in_flight -= sent.requests
            found = [*map(self._paid, answers)]
            waiting, self._waiting = self._waiting, {}
        for wake in waiting:
            wake()
        return found

    def drop(self, wake: Callable[[], None]) -> None:
        """Settle, without answers, all requests in flight whose callback is ``wake``."""
        for sent in self._open.copy():
            if sent.wake == wake:
                self.settle(sent)

    def _has(self, room: int) -> bool:
        if self._max_cost_seen is None:
            return self._in_flight == 0 and self._limit > 0
        return is_at_least(self._limit, self.spent + (self._in_flight + room) * self._max_cost_seen)

    def _why(self) -> str:
        if self._limit <= 0:
            return "stopped by --lm-max-cost: the resumed run has already spent the limit"
        spent = (
            f"{self.spent:.6g} of {self._limit:.6g} is spent, and the next request may cost {self._max_cost_seen:.6g}"
        )
        return f"stopped by --lm-max-cost: {spent}"

    def _paid(self, answer: Answer) -> Answer:
        if isinstance(answer, LmevalError) or answer.cached:
            return answer
        cost = answer.cost if isinstance(answer, Completion) else None
        if cost is None:
            self._stopped = "stopped by --lm-max-cost: the adapter does not report what a request costs"
            return BudgetSpent(self._stopped)
        self.spent += cost
        # A request without tokens, such as a list of models, reveals nothing about the cost of other requests.
        if cost or not isinstance(answer, Completion) or answer.prompt_tokens:
            self._max_cost_seen = max(self._max_cost_seen or 0.0, cost)
        return answer


@dataclass(slots=True, eq=False)
class Sent:
    """Requests in flight that the budget has not settled."""

    budget: Budget
    requests: int
    wake: Callable[[], None]

    def settle(self, answers: Sequence[Answer] = ()) -> list[Answer]:
        """Call :meth:`Budget.settle` for these requests; ``answers`` may be empty."""
        return self.budget.settle(self, answers)


class Unreachable(AdapterError):
    """The adapter could not connect to its server."""


class Unusable(AdapterError):
    """The adapter returned an object that cannot contain answers, such as a coroutine."""


class Outage:
    """Decides, from the answers to earlier requests, whether the run sends more requests; not thread-safe.

    A request counts once, after its retries. ``works`` is True if the adapter has already answered a request. If the
    run must end, ``ended`` is an :class:`AdapterDown`, which is the answer to all further requests.
    """

    def __init__(self, adapter: Any, *, works: bool = False) -> None:
        self._adapter = adapter
        self._reason = ""
        self._repeats = 0
        self._works = works
        self._has_notes = False
        self.ended: AdapterDown | None = None

    def room(self) -> int | None:
        """Return how many requests may be in flight: one, then as many as can end a run, then None for any number."""
        if self._works or self.ended or (self._has_notes and not self._repeats):
            return None
        return REPEATS_AT_FIRST - self._repeats if self._has_notes else 1

    def note(self, answer: Any) -> Any:
        """Record an answer; return the answer, or the error that ends the run."""
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
            asked = f"a wait of {answer.retry_after:.0f} s, and a run waits at most {LONGEST_WAIT_S:.0f} s"
            return AdapterDown(f"stopped: {self._who} demands {asked}: {answer}")
        if isinstance(answer, RequestRefused):
            self._works = True
        if not self._counts(answer):
            self._reason, self._repeats = "", 0
            return None
        reason = answer.cause or str(answer)
        self._repeats = self._repeats + 1 if reason == self._reason else 1
        self._reason = reason
        if not self._works and isinstance(answer, Unusable) and self._repeats == REPEATS_UNUSABLE:
            return AdapterDown(f"stopped because no answer can be used: {answer}")
        if self._repeats < (REPEATS_LATER if self._works else REPEATS_AT_FIRST):
            return None
        requests = f"the {'last' if self._works else 'first'} {self._repeats} requests to {self._who}"
        return AdapterDown(f"stopped: {requests} failed with the same error; {self._advice(answer)}: {answer}")

    def _advice(self, error: AdapterError) -> str:
        param = error.said.get("param")
        if error.status == _BAD_REQUEST and param not in (None, "", "model"):
            return f"the server rejects the option {printable(str(param), keep='')[:_LONGEST_NAME]}"
        if is_unreachable(error):
            return "check the address, and that the server is running"
        has_server = error.status or member(self._adapter, "base_url")
        return f"check {'the address, the API key and the name of the model' if has_server else 'the adapter'}"

    def _counts(self, error: AdapterError) -> bool:
        if is_unreachable(error):
            return True
        return not self._works and not isinstance(error, TransientError | AdapterTimeout | RequestRefused)

    @property
    def _who(self) -> str:
        address = member(self._adapter, "base_url")
        at = f" at {redact(address)}" if address else ""
        return f"{adapter_name(self._adapter)}{at}"


def is_unreachable(error: BaseException) -> bool:
    """Return True if ``error``, or an error that caused it, is a refused connection or an unknown host name."""
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


def hint_of(error: BaseException) -> str:
    """Return a hint about the mistake in the adapter that probably caused ``error``, or ""."""
    taken = error.obj if isinstance(error, AttributeError) else None
    # A TypeError names the type only in its text.
    named = isinstance(error, TypeError) and _REQUEST_TYPES.search(str(error))
    if named or isinstance(taken, Generate | LogLikelihood):
        return "; it receives a request, whose text is request.text"
    is_batch = isinstance(error, AttributeError) and isinstance(taken, list) and hasattr(str, str(error.name))
    return "; generate receives a list of prompts and returns a list of answers" if is_batch else ""


_REQUEST_TYPES = re.compile(r"\b(Generate|LogLikelihood)\b")
