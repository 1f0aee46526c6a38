"""When to stop asking: nothing works from the start, nobody is there any more, or the server wants to be left alone.

One decider for every kind of adapter; what it decides reaches the run as an answer, :class:`AdapterDown`.
"""

from __future__ import annotations

import re
import socket
from typing import Any

from pytest_lmeval.adapters.resolve import adapter_name
from pytest_lmeval.asking.policy import LONGEST_WAIT_S
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, RequestRefused, TransientError
from pytest_lmeval.redaction import redact

FIRST = 5
"""Errors alike before anything else came of a request that end the run."""
ALIKE = 20
"""Requests in a row that found nobody to connect to that end the run later."""
# How the HTTP adapter says it: its errors carry no exception of the client's, whose frames would hold headers.
_HTTP_CLIENT = re.compile(r"no usable reply from \S+: ClientConnector(DNS)?Error: ")


class Unreachable(AdapterError):
    """What became of a request whose adapter could not connect at all."""


class Outage:
    """Decides from what became of requests whether further ones are worth asking; not safe between threads.

    A request counts once, after its retries. ``ended`` is the answer to all further requests, once there is one.
    """

    def __init__(self, adapter: Any) -> None:
        self._adapter = adapter
        self._reason = ""
        self._alike = 0
        self._works = False
        self._heard = False
        self.ended: AdapterDown | None = None

    def room(self) -> int | None:
        """Return how many requests may be in flight: one at first, then no more than can end the run; None for all."""
        if self._works or self.ended or (self._heard and not self._alike):
            return None
        return FIRST - self._alike if self._heard else 1

    def note(self, answer: Any) -> Any:
        """Take what became of a request into account; return it, or what ends the run in its place."""
        self._heard = True
        if self.ended is None:
            self.ended = self._end(answer)
            return self.ended or answer
        return answer

    def _end(self, answer: object) -> AdapterDown | None:
        if not isinstance(answer, AdapterError):
            self._works, self._reason, self._alike = True, "", 0
            return None
        if isinstance(answer, TransientError) and is_too_long(answer.retry_after):
            asked = f"{answer.retry_after:.0f} s before the next request, longer than the {LONGEST_WAIT_S:.0f} s"
            return AdapterDown(f"stopped: {self._who} asks to wait {asked} that a run waits: {answer}")
        if isinstance(answer, RequestRefused):
            self._works = True
        if not self._counts(answer):
            self._reason, self._alike = "", 0
            return None
        reason = answer.alike or str(answer)
        self._alike = self._alike + 1 if reason == self._reason else 1
        self._reason = reason
        if self._alike < (ALIKE if self._works else FIRST):
            return None
        which = "last" if self._works else "first"
        check = "the address, the API key and the name of the model"
        check = "that the server is running, and its address" if is_unreachable(answer) else check
        return AdapterDown(
            f"stopped: the {which} {self._alike} requests to {self._who} failed alike; check {check}: {answer}"
        )

    def _counts(self, error: AdapterError) -> bool:
        if is_unreachable(error):
            return True
        return not self._works and not isinstance(error, TransientError | AdapterTimeout | RequestRefused)

    @property
    def _who(self) -> str:
        address = getattr(self._adapter, "base_url", "")
        at = f" at {redact(address)}" if isinstance(address, str) and address else ""
        return f"{adapter_name(self._adapter)}{at}"


def is_too_long(retry_after: float | None) -> bool:
    """Tell whether a wait that was asked for is one that no run waits."""
    return retry_after is not None and retry_after > LONGEST_WAIT_S


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
