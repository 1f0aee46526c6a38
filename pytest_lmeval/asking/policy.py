"""How a run asks: how much at once and together, how long, how often again, and what it waits for."""

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
"""What a server may ask to wait; where it asks for more, the run ends."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The limits of one process's asking.

    ``timeout_s`` holds for one attempt at one request; a batch call has as many times that as it has requests.
    ``retries`` are the attempts after the first. ``concurrency`` and ``max_cost`` are the process's own part of those
    of the run, and ``share`` is how many processes it has. ``passthrough`` are exceptions that mean to stop the run.
    ``think_tags`` are around the thoughts at the beginning of a text; None leaves every text as it is.
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
    """Return how long to wait after failed attempt number ``attempt`` (from 0), in seconds.

    What the other side asked for, or else a doubling time, half of it random so that many clients spread out.
    """
    if retry_after is not None:
        return min(LONGEST_WAIT_S, max(0.0, retry_after)) * random.uniform(1.0, 1.1)
    return min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0**attempt) * random.uniform(0.5, 1.0)


def is_too_long(retry_after: float | None) -> bool:
    """Tell whether a wait that was asked for is one that no run waits."""
    return retry_after is not None and retry_after > LONGEST_WAIT_S


SERVER = "for the server's rate limit"
OWN = "for the adapter's rate limit"
AGAIN = "before asking again"


class Wait(NamedTuple):
    """Until when, by the monotonic clock, and what for."""

    until: float
    what: str

    @property
    def seconds(self) -> float:
        """How long it will take from now."""
        return max(0.0, self.until - time.monotonic())
