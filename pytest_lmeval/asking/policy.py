"""Settings for requests: batch size, concurrency, time limit, retries and waits."""

from __future__ import annotations

import random
import time
from typing import NamedTuple

from pytest_lmeval.arguments import THINK_TAGS
from pytest_lmeval.frozen import dataclass

DEFAULT_BATCH_SIZE = 8
_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 60.0
LONGEST_WAIT_S = 600.0
"""The longest wait that a server may demand, in seconds; a longer wait ends the run."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings for one process's requests.

    ``timeout_s`` limits one attempt at a request; the limit for a batch call is ``timeout_s`` times the number of its
    requests. ``retries`` is the maximum number of attempts after the first attempt. ``concurrency`` and ``max_cost``
    are this process's parts of the run's limits, and ``share`` is the number of processes. ``passthrough`` are
    exceptions that stop the run. ``think_tags`` are the tags around thoughts at the beginning of an answer; if they are
    None, thoughts stay in the text.
    """

    batch_size: int = DEFAULT_BATCH_SIZE
    concurrency: int = 16
    timeout_s: float = 60.0
    retries: int = 4
    share: int = 1
    max_cost: float | None = None
    passthrough: tuple[type[BaseException], ...] = ()
    think_tags: tuple[str, str] | None = THINK_TAGS


def backoff_s(attempt: int, retry_after: float | None) -> float:
    """Return the delay, in seconds, after failed attempt number ``attempt``, which counts from 0.

    The delay is at least ``retry_after``, if the server demands one. Without ``retry_after``, the delay doubles with
    each attempt, up to 60 s. Up to half of this delay is random, so that clients do not retry at the same time.
    """
    if retry_after is not None:
        return min(LONGEST_WAIT_S, max(0.0, retry_after)) * random.uniform(1.0, 1.1)
    return min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0**attempt) * random.uniform(0.5, 1.0)


def is_too_long(retry_after: float | None) -> bool:
    """Return True if a server demands a longer wait than a run accepts."""
    return retry_after is not None and retry_after > LONGEST_WAIT_S


SERVER = "for the server's rate limit"
OWN = "for the adapter's rate limit"
AGAIN = "before asking again"


class Wait(NamedTuple):
    """The end of a wait, as a time of the monotonic clock, and the reason for the wait."""

    until: float
    what: str

    @property
    def seconds(self) -> float:
        """The remaining number of seconds."""
        return max(0.0, self.until - time.monotonic())
