"""Find, measure and end the descendants of this process."""

from __future__ import annotations

import os
import resource
import sys
import time

SIGKILL = 9
SIGSTOP = 19 if sys.platform == "linux" else 17
GIVE_UP_S = 5.0
TICKS = os.sysconf("SC_CLK_TCK")


def descendants(pid: int = 0) -> list[int]:
    """Return the descendants of ``pid``, by default of this process, as far as the kernel lists them."""
    found: list[int] = []
    waiting = [pid or os.getpid()]
    while waiting:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def _children(pid: int) -> list[int]:
    below: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as listing:
                below += map(int, listing.read().split())
    except OSError:
        # The process has ended in the meantime.
        return below
    return below


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU seconds of the running ``pids`` and of all reaped descendants."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime
    for pid in pids:
        try:
            used += cpu_of(stat_fields(f"/proc/{pid}"))
        except OSError:
            continue
    return used


def stat_fields(place: str) -> list[bytes]:
    """Return the fields of ``stat`` for the process or thread at ``place``, starting with field 3, the state."""
    with open(f"{place}/stat", "rb") as stat:
        # Field 2 is the name in parentheses, which may contain any character.
        return stat.read().rpartition(b")")[2].split()


def cpu_of(fields: list[bytes]) -> float:
    """Return the CPU seconds of a process and its reaped children, the sum of the fields utime to cstime (14 to 17)."""
    return sum(map(int, fields[11:15])) / TICKS


def end_all(leader: int) -> bool:
    """Kill the process group of ``leader`` and all descendants of this process; return True if all of them are gone."""
    give_up = time.monotonic() + GIVE_UP_S
    _signal(-leader, SIGKILL)
    _signal(leader, SIGKILL)
    while _reap():
        if time.monotonic() > give_up:
            return False
        below = descendants()
        # First stop all processes, so that a fork bomb cannot grow while its processes are killed one by one.
        for signal in (SIGSTOP, SIGKILL):
            for pid in below:
                _signal(pid, signal)
        time.sleep(0.0005)
    return True


def _signal(pid: int, signal: int) -> None:
    try:
        os.kill(pid, signal)
    except OSError:
        # The process has already ended.
        return


def _reap() -> bool:
    """Reap the children that have ended; return True if a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
