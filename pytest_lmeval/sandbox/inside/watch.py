"""What a confined program uses, seen from the server: CPU time, threads, room on the disk."""

from __future__ import annotations

import os
import stat
import time

from .exits import OVER_CPU, OVER_THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = ["excess", "fills_disk", "over_cpu"]

MOST_THREADS = 1000
MOST_FILES = 10_000
# Beyond 4096, no call of the kernel takes it.
LONGEST_PATH = 3500
BLOCK = 512


def over_cpu(pid: int, limits: Mapping[str, Any]) -> bool:
    """Whether the process, ended or not but not yet waited for, used its CPU time up."""
    # The clock of another process, as the C library computes its number.
    used: float = time.clock_gettime(~pid << 3 | 2)
    return used >= float(limits["cpu_s"])


def excess(pid: int, limits: Mapping[str, Any]) -> int | None:
    """Return the exit status that names the limit which the living process is over, if any."""
    if over_cpu(pid, limits):
        return OVER_CPU
    return OVER_THREADS if _threads(pid) > MOST_THREADS else None


def _threads(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name, in parentheses, may hold anything; the number of threads is field 20.
            return int(file.read().rpartition(b")")[2].split()[17])
    except OSError:
        return 0


def fills_disk(pid: int, folder: str, most: int) -> bool:
    """Whether the folder and what the process removed but still holds open take more than ``most`` bytes."""
    room = most
    for number, found in enumerate(_statuses(pid, folder)):
        if found is None or number >= MOST_FILES:
            return True
        room -= found.st_blocks * BLOCK
    return room < 0


def _statuses(pid: int, folder: str) -> Iterator[os.stat_result | None]:
    yield from _below(folder)
    for path in _entries(f"/proc/{pid}/fd") or ():
        found = _status(path, follow=True)
        if found and stat.S_ISREG(found.st_mode) and not found.st_nlink:
            yield found


def _below(folder: str) -> Iterator[os.stat_result | None]:
    """Yield what there is below the folder, and None for what is too deep, or closed, to look at."""
    waiting = [folder]
    while waiting:
        within = waiting.pop()
        paths = _entries(within)
        if paths is None and os.path.isdir(within):
            yield None
        for path in paths or ():
            found = _status(path, follow=False)
            if len(path) > LONGEST_PATH:
                yield None
            elif found:
                yield found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(path)


def _status(path: str, follow: bool) -> os.stat_result | None:
    try:
        return os.stat(path, follow_symlinks=follow)
    except OSError:
        # It went in the meantime.
        return None


def _entries(folder: str) -> list[str] | None:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return None
