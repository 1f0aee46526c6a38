"""The exceptions this package raises on purpose.

::

    LmevalError
    ├── UsageError            the caller asked for the impossible (exit 2, or 4 under pytest)
    │   └── UnknownName       a name that is not registered; lists the choices
    ├── BadTaskFile           a task file without a usable task, or with bad records
    ├── RecordRefused         one record that breaks a rule of its dialect
    ├── AdapterError          the model or its adapter gave no usable response
    │   ├── AdapterTimeout    ... in time
    │   ├── TransientError    ... this time; a retry may help
    │   ├── RequestRefused    ... to this request; others may be answered
    │   └── AdapterDown       ... to any request: the run ends
    ├── BudgetSpent           another request might exceed the run's cost limit
    ├── ScoringError          a metric gave something that is not a score
    └── SandboxError          the sandbox itself failed

An ``AdapterError``, ``ScoringError`` or ``SandboxError`` gives one example the status ``error`` (or ``timeout``). An
error never counts as a score.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

INCOMPLETE = 3
"""The exit code of an incomplete run."""

_LONGEST_DETAIL = 1000


class LmevalError(Exception):
    """The base class of every exception this package raises on purpose.

    ``exchanges`` holds the example's requests and responses before this error.
    """

    exchanges: tuple[Any, ...] = ()


class UsageError(LmevalError):
    """The caller asked for something impossible; the message names an alternative."""


class UnknownName(UsageError):
    """A name is unknown; the message lists the choices.

    >>> str(UnknownName("metric", "exact_mach", ["exact_match", "f1"]))
    "unknown metric 'exact_mach'; did you mean 'exact_match'? (choices: exact_match, f1)"
    """

    def __init__(self, kind: str, name: str, choices: Iterable[str], remedy: str = "") -> None:
        known = sorted(choices)
        # A name with its own remedy is not a misspelling of another name.
        near = f"; {remedy}" if remedy else nearest(name, known)
        super().__init__(f"unknown {kind} {name!r}{near} (choices: {', '.join(known)})")


class BadTaskFile(LmevalError):
    """A task file is unusable; each line of the message is one error, often ``path:line: rule field: detail``."""


class RecordRefused(LmevalError):
    """A record breaks a rule of its dialect."""

    def __init__(self, rule: str, field: str, detail: str) -> None:
        # Error messages quote the record's text, which may be megabytes long.
        self.rule = rule
        self.field = field[:_LONGEST_DETAIL]
        self.detail = detail[:_LONGEST_DETAIL]
        super().__init__(f"{rule} {self.field}: {self.detail}")


class AdapterError(LmevalError):
    """The adapter raised an exception, or returned something other than a response.

    Errors with the same cause may have different messages, but share one ``cause``. ``retries`` counts the attempts
    before the last one. ``status`` is the HTTP status of the server's reply, or 0 if there was no reply. ``said`` holds
    the message, type, code and param of the server's error object. ``together`` is the number of requests in the call
    that raised the error, or 0 if no call raised it.
    """

    cause = ""
    retries: int = 0
    status: int = 0
    said: Mapping[str, Any] = MappingProxyType({})
    together: int = 0


class AdapterTimeout(AdapterError):
    """No response arrived within the request's time limit."""


class TransientError(AdapterError):
    """An attempt failed, for example because the server was busy; the engine retries the request.

    ``retry_after`` is the delay in seconds that the server demands, or None.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RequestRefused(AdapterError):
    """The server or the adapter refused only this request, for example because of a content filter."""


class AdapterDown(AdapterError):
    """The adapter no longer answers; the message says why and what to check."""


class BudgetSpent(LmevalError):
    """Another request might exceed the run's cost limit."""


class ScoringError(LmevalError):
    """A metric raised an exception, or returned something other than a number from 0 to 1."""


class SandboxError(LmevalError):
    """The sandbox could not run a program, so the program has no result."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``" did you mean 'x'?"`` for the most similar choice, or an empty string if no choice is similar."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" did you mean {near[0]!r}?" if near else ""


def nearest(name: str, choices: Iterable[str], otherwise: str = "") -> str:
    """Return ``"; did you mean 'x'?"``; if no choice is similar, return ``otherwise`` and all choices.

    >>> nearest("hat", ["cat", "dog"]), nearest("ox", ["cat", "dog"]), nearest("ox", ["cat", "dog"], "there is")
    ("; did you mean 'cat'?", '', '; there is cat, dog')
    """
    known = list(choices)
    if hint := did_you_mean(name, known):
        return f";{hint}"
    return f"; {otherwise} {', '.join(known) or 'none'}" if otherwise else ""


def not_one_of(value: object, choices: Iterable[str]) -> str:
    """Return a message that ``value`` is not one of the choices, with the most similar choice, if any."""
    known = list(choices)
    return f"{value!r:.80} is not one of {', '.join(known)}{nearest(str(value), known)}"
