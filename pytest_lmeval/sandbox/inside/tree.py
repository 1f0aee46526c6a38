"""Every process below this one: what they use, and how they end."""

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
    """Return the processes below that one, by default this; none where the kernel does not list them."""
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
        # It ended between two looks at it.
        return below
    return below


def cpu_seconds(pids: list[int]) -> float:
    """Return the CPU seconds of the living ``pids`` and of every descendant that has been waited for."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(map(_cpu_of, pids))


def _cpu_of(pid: int) -> float:
    try:
        # utime, stime, cutime and cstime are fields 14 to 17.
        return sum(map(int, stat_fields(f"/proc/{pid}")[11:15])) / TICKS
    except OSError:
        return 0.0


def stat_fields(place: str) -> list[bytes]:
    """Return what the kernel says of the process or thread at ``place``: field 3, its state, and all that follow."""
    with open(f"{place}/stat", "rb") as stat:
        # The name, which is field 2 and in parentheses, may hold anything.
        return stat.read().rpartition(b")")[2].split()


def end_all(leader: int) -> bool:
    """Kill the process group of ``leader`` and everything below this process; return whether all of it is gone."""
    give_up = time.monotonic() + GIVE_UP_S
    _signal(-leader, SIGKILL)
    _signal(leader, SIGKILL)
    while _reap():
        if time.monotonic() > give_up:
            return False
        below = descendants()
        # Stopped first, a fork bomb cannot grow while its parts are killed one by one.
        for signal in (SIGSTOP, SIGKILL):
            for pid in below:
                _signal(pid, signal)
        time.sleep(0.0005)
    return True


def _signal(pid: int, signal: int) -> None:
    try:
        os.kill(pid, signal)
    except OSError:
        # It is gone, which is all that was wanted.
        return


def _reap() -> bool:
    """Wait for whatever has ended; return whether anything is left to wait for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
