"""A server that is not there at all: after enough failures alike it is not asked for every further example."""

from __future__ import annotations

import re
import socket

from pytest_lmeval.errors import AdapterError

ALIKE = 20
# How the HTTP adapter says it: its errors carry no exception of the client's, whose frames would hold headers.
_HTTP_CLIENT = re.compile(r"no usable reply from \S+: ClientConnector(DNS)?Error: ")


class Unreachable(AdapterError):
    """What became of a request whose adapter could not connect at all."""


class Outage:
    """Counts requests in a row that found nobody to connect to, for the same reason; not safe between threads.

    A request counts once, after its retries. Any other outcome, such as an answer that was still on its way, is a sign
    of life, and everything is asked again.
    """

    def __init__(self) -> None:
        self._reason = ""
        self._alike = 0

    def note(self, answer: object) -> None:
        """Take the outcome of a request into account."""
        if not isinstance(answer, AdapterError) or not is_unreachable(answer):
            self._reason, self._alike = "", 0
        elif str(answer) == self._reason:
            self._alike += 1
        else:
            self._reason, self._alike = str(answer), 1

    def refusal(self) -> AdapterError | None:
        """Return the answer to a request that is not worth sending, or None where it is to be sent."""
        if self._alike < ALIKE:
            return None
        return Unreachable(f"{self._reason} (not asked: the last {ALIKE} requests failed alike)")


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
