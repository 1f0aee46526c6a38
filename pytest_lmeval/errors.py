"""The exceptions this package raises on purpose.

::

    LmevalError
    ├── UsageError            the caller asked for something that cannot be done (exit 2, or 4 under pytest)
    │   └── UnknownName       a name that no registry entry has; lists the choices
    ├── BadTaskFile           a task file that holds no usable task, or bad records
    ├── RecordRefused         one record that breaks a rule of its dialect
    ├── AdapterError          the model or its adapter gave no usable response
    │   ├── AdapterTimeout    ... in time
    │   ├── TransientError    ... this time; asking again may help
    │   ├── RequestRefused    ... to this very request; others may be answered
    │   └── AdapterDown       ... to any request: the run ends
    ├── BudgetSpent           asking on would pass the limit on what a run may cost
    ├── ScoringError          a metric gave something that is not a score
    └── SandboxError          the sandbox itself failed, whatever the program did

``AdapterError``, ``ScoringError`` and ``SandboxError`` become the status ``error`` (or ``timeout``) of one
example. None of them ever becomes a number.
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
    """Base of every exception this package raises on purpose.

    ``exchanges`` are what was asked and answered for an example before what this says ended it, if anything was.
    """

    exchanges: tuple[Any, ...] = ()


class UsageError(LmevalError):
    """The caller asked for something that cannot be done; the message says what would do."""


class UnknownName(UsageError):
    """A name that is not registered.

    >>> str(UnknownName("metric", "exact_mach", ["exact_match", "f1"]))
    "unknown metric 'exact_mach'; did you mean 'exact_match'? (choices: exact_match, f1)"
    """

    def __init__(self, kind: str, name: str, choices: Iterable[str], remedy: str = "") -> None:
        known = sorted(choices)
        # Of a name with a remedy of its own the nearest other is not what was meant.
        near = f"; {remedy}" if remedy else nearest(name, known)
        super().__init__(f"unknown {kind} {name!r}{near} (choices: {', '.join(known)})")


class BadTaskFile(LmevalError):
    """A task file that cannot be run; the message has one ``path:line: rule field: detail`` per fault."""


class RecordRefused(LmevalError):
    """A record that breaks a rule of its dialect."""

    def __init__(self, rule: str, field: str, detail: str) -> None:
        # These hold a record's own text; a megabyte of it helps nobody.
        self.rule = rule
        self.field = field[:_LONGEST_DETAIL]
        self.detail = detail[:_LONGEST_DETAIL]
        super().__init__(f"{rule} {self.field}: {self.detail}")


class AdapterError(LmevalError):
    """The adapter raised, or returned something that is not a response.

    ``cause`` is what errors of the same cause have in common, where their texts differ. ``retries`` are the attempts
    before the one that ended so. ``status`` is the HTTP status that a server answered with, 0 where none did, and
    ``said`` what its error object held: message, type, code, param. ``together`` is how many requests the call had
    that raised it, 0 where none did.
    """

    cause = ""
    retries: int = 0
    status: int = 0
    said: Mapping[str, Any] = MappingProxyType({})
    together: int = 0


class AdapterTimeout(AdapterError):
    """No response within the time limit of a request."""


class TransientError(AdapterError):
    """No usable response this time, as from a server that is busy: the engine asks again.

    ``retry_after`` is the time in seconds that the other side asked for, if it did.
    """

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RequestRefused(AdapterError):
    """No response to this very request, as from a content filter."""


class AdapterDown(AdapterError):
    """The adapter answers nothing any more; the message says why, and what to check."""


class BudgetSpent(LmevalError):
    """Another request might pass the limit on what a run may cost."""


class ScoringError(LmevalError):
    """A metric raised, or returned something that is not a finite float in [0, 1]."""


class SandboxError(LmevalError):
    """The sandbox could not run a program at all: nothing is known about the program."""


def did_you_mean(name: str, choices: Iterable[str]) -> str:
    """Return ``" did you mean 'x'?"`` for the nearest choice, or an empty string."""
    near = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f" did you mean {near[0]!r}?" if near else ""


def nearest(name: str, choices: Iterable[str], otherwise: str = "") -> str:
    """Return ``"; did you mean 'x'?"`` for the nearest choice, and without one ``otherwise`` before all of them.

    >>> nearest("hat", ["cat", "dog"]), nearest("ox", ["cat", "dog"]), nearest("ox", ["cat", "dog"], "there is")
    ("; did you mean 'cat'?", '', '; there is cat, dog')
    """
    known = list(choices)
    if hint := did_you_mean(name, known):
        return f";{hint}"
    return f"; {otherwise} {', '.join(known) or 'none'}" if otherwise else ""


def not_one_of(value: object, choices: Iterable[str]) -> str:
    """Return that ``value`` is none of the choices, all of them, and which of them is near."""
    known = list(choices)
    return f"{value!r:.80} is not one of {', '.join(known)}{nearest(str(value), known)}"
