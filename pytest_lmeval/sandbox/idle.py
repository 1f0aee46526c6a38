"""Detect programs that only wait: they do not use CPU time, are not waiting for a CPU, and write nothing."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable

from pytest_lmeval.sandbox.inside.tree import TICKS, cpu_of, stat_fields

LOOK_S = 0.25
# Tolerate the little CPU time of a program that polls.
SHARE = 0.01
TICK_S = 1 / TICKS
# The states of a thread that runs, waits for a free CPU, or waits for a disk.
ACTIVE = frozenset(b"RD")
ENDED = frozenset(b"ZXx")


class Idleness:
    """Measures how long a program has waited without a break, and in total; requires ``/proc``."""

    def __init__(self, most_s: float, most_in_all_s: float = math.inf) -> None:
        self._most_s = most_s
        self._most_in_all_s = most_in_all_s
        self._in_all_s = 0.0
        self.restart()

    def restart(self) -> None:
        """Restart the measurement, because the program has just received a request."""
        self._looked_at = time.monotonic()
        self._written = self._idle_s = 0.0
        self._used_s: float | None = None

    @property
    def due(self) -> bool:
        """True if it is time for the next call to `look`."""
        return time.monotonic() >= self._looked_at + LOOK_S

    def look(self, pids: Iterable[int], written: int) -> str:
        """Return the reason to end processes that waited too long, or ""; ``written`` is the size of their output."""
        # Count at most the time of two looks, because this process may have been stopped, and then reads no output.
        passed_s = min(time.monotonic() - self._looked_at, 2 * LOOK_S)
        self._looked_at = time.monotonic()
        seen = [_look(pid) for pid in pids]
        used_s = sum(used for used, _ in seen)
        states = frozenset().union(*(states for _, states in seen))
        waits = bool(states - ENDED) and not states & ACTIVE
        # A little work interrupts the wait, but does not reset the total.
        self._in_all_s += passed_s if waits else 0.0
        little = self._used_s is not None and abs(used_s - self._used_s) <= TICK_S + SHARE * self._idle_s
        if waits and little and written == self._written:
            self._idle_s += passed_s
        else:
            self._used_s, self._written, self._idle_s = used_s, written, 0.0
        if self._idle_s >= self._most_s:
            return f"used no CPU time for {self._most_s:g} s: it slept or waited"
        if self._in_all_s >= self._most_in_all_s:
            return f"slept or waited for {self._most_in_all_s:g} s in all"
        return ""


def _look(pid: int) -> tuple[float, frozenset[int]]:
    """Return the CPU seconds of a process and its reaped children, and the states of its threads."""
    try:
        used_s = cpu_of(stat_fields(f"/proc/{pid}"))
        threads = [stat_fields(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task")]
    except (IndexError, OSError):
        # The process or one of its threads has ended.
        return 0.0, ACTIVE
    return used_s, frozenset(fields[0][0] for fields in threads)
