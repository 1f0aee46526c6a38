"""Whether a program only waits: it neither uses CPU time nor wants any, and writes nothing; and how long in all."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable

from pytest_lmeval.sandbox.inside.tree import stat_fields

LOOK_S = 0.25
# A program that looks again and again whether something has happened uses a little.
SHARE = 0.01
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# Runnable, also where the machine has no CPU for it, or waiting for a disk.
ACTIVE = frozenset(b"RD")
ENDED = frozenset(b"ZXx")


class Idleness:
    """How long a program has only waited, at a stretch and in all; where ``/proc`` does not exist, never."""

    def __init__(self, most_s: float, most_in_all_s: float = math.inf) -> None:
        self._most_s = most_s
        self._most_in_all_s = most_in_all_s
        self._in_all_s = 0.0
        self.restart()

    def restart(self) -> None:
        """Begin anew: the program has just been asked something."""
        self._looked_at = time.monotonic()
        self._written = self._idle_s = 0.0
        self._used_s: float | None = None

    @property
    def due(self) -> bool:
        """Whether it is time for another `look`."""
        return time.monotonic() >= self._looked_at + LOOK_S

    def look(self, pids: Iterable[int], written: int) -> str:
        """Return why the processes have waited for too long, or ""; ``written`` is how much they wrote so far."""
        # No longer than two looks: while this process itself is stopped, nobody reads what a program writes.
        passed_s = min(time.monotonic() - self._looked_at, 2 * LOOK_S)
        self._looked_at = time.monotonic()
        seen = [_look(pid) for pid in pids]
        used_s = sum(used for used, _ in seen)
        states = frozenset().union(*(states for _, states in seen))
        waits = bool(states - ENDED) and not states & ACTIVE
        # A little work in between begins a new stretch; the place is held all the same.
        self._in_all_s += passed_s if waits else 0.0
        little = self._used_s is not None and abs(used_s - self._used_s) <= TICK_S + SHARE * self._idle_s
        if waits and little and written == self._written:
            self._idle_s += passed_s
        else:
            self._used_s, self._written, self._idle_s = used_s, written, 0.0
        return self._reason()

    def _reason(self) -> str:
        if self._idle_s >= self._most_s:
            return f"used no CPU time for {self._most_s:g} s: it slept or waited"
        if self._in_all_s >= self._most_in_all_s:
            return f"slept or waited for {self._most_in_all_s:g} s in all"
        return ""


def _look(pid: int) -> tuple[float, frozenset[int]]:
    """Return the CPU seconds of a process and of its children that were waited for, and the states of its threads."""
    try:
        fields = stat_fields(f"/proc/{pid}")
        threads = [stat_fields(f"/proc/{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task")]
    except (IndexError, OSError):
        # Some of it ended in between.
        return 0.0, ACTIVE
    # utime to cstime are fields 14 to 17.
    return sum(map(int, fields[11:15])) * TICK_S, frozenset(fields[0][0] for fields in threads)
