"""What a confined program uses, seen from the server: CPU time, threads, room on the disk."""

from __future__ import annotations

import os
import stat
import time

from .tree import stat_fields
from .wire import OVER_CPU, OVER_THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

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
        # The number of threads is field 20.
        return int(stat_fields(f"/proc/{pid}")[17])
    except OSError:
        return 0


def fills_disk(pid: int, folder: str, most: int, largest: int) -> bool:
    """Whether the folder and the removed files that the process still holds take more than ``most`` bytes.

    A removed file that is mapped but not open counts as the ``largest`` there may be: the kernel shows its size to root
    alone. Python's own ``mmap`` keeps the file open.
    """
    room = most
    for number, found in enumerate(_below(folder)):
        if found is None or number >= MOST_FILES:
            return True
        room -= found.st_blocks * BLOCK
    thread = _living_thread(pid)
    held = _removed_but_open(thread)
    room -= sum(found.st_blocks * BLOCK for found in held)
    room -= largest * len(_removed_but_mapped(thread, folder) - {found.st_ino for found in held})
    return room < 0


def _living_thread(pid: int) -> str:
    """Return where the kernel shows what a process holds: of the first thread that has not ended.

    All threads share files and memory: no other kind may be started. The process itself shows none of them once its
    first thread has ended, though the others go on.
    """
    threads = [f"/proc/{pid}", *(_entries(f"/proc/{pid}/task") or ())]
    found: str = next(filter(_is_alive, threads), threads[0])
    return found


def _is_alive(thread: str) -> bool:
    try:
        return stat_fields(thread)[0] not in (b"Z", b"X")
    except OSError:
        return False


def _removed_but_open(thread: str) -> list[os.stat_result]:
    statuses = [_status(path, follow=True) for path in _entries(f"{thread}/fd") or ()]
    return [found for found in statuses if found and stat.S_ISREG(found.st_mode) and not found.st_nlink]


def _removed_but_mapped(thread: str, folder: str) -> set[int]:
    """Return the numbers of the files of ``folder`` that have no name any more and part of which is mapped."""
    # Not all removed files: a library that was updated in the meantime is none of the program's.
    below = os.path.join(os.fsencode(folder), b"").replace(b"\n", rb"\012")
    try:
        with open(f"{thread}/maps", "rb") as maps:
            lines = [line for line in maps if line.endswith(b" (deleted)\n")]
    except OSError:
        return set()
    # Address, rights, offset, device, number, path.
    mapped = [line.split(None, 5) for line in lines]
    return {int(number) for *_, number, path in mapped if path.startswith(below)}


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
