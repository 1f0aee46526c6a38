"""Settings for sending requests: batches, concurrency, time limits, retries and waits."""

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
    """The limits of one process's requests.

    ``timeout_s`` limits one attempt at one request; a batch call gets a multiple that depends on its number of
    requests. ``retries`` counts the attempts after the first. ``concurrency`` and ``max_cost`` are this process's parts
    of the run's limits, and ``share`` is the number of processes. ``passthrough`` are exceptions that stop the run.
    ``think_tags`` enclose the thoughts at the beginning of a text; if they are None, texts stay unchanged.
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
    """Return the delay after failed attempt number ``attempt`` (from 0), in seconds.

    The delay is ``retry_after`` if given, or else exponential backoff, half of it random to spread out clients.
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
    """The end of a wait, by the monotonic clock, and its reason."""

    until: float
    what: str

    @property
    def seconds(self) -> float:
        """The remaining time."""
        return max(0.0, self.until - time.monotonic())
