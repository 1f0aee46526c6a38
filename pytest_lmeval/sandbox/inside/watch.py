"""Measure a confined program's CPU time, threads and disk space from the server."""

from __future__ import annotations

import os
import stat
import time

from .tree import stat_fields
from .wire import OVER_CPU, OVER_THREADS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST_THREADS = 1000
MOST_FILES = 10_000
# The kernel accepts paths of at most 4,096 bytes.
LONGEST_PATH = 3500
BLOCK = 512


def over_cpu(pid: int, limits: Mapping[str, float]) -> bool:
    """Return True if the process has used up its CPU time; it may have ended without being reaped."""
    # The expression computes the id of the process's CPU clock, as the C library does.
    used: float = time.clock_gettime(~pid << 3 | 2)
    return used >= limits["cpu_s"]


def excess(pid: int, limits: Mapping[str, float]) -> int | None:
    """Return the exit status for the limit that the running process exceeds, or None."""
    if over_cpu(pid, limits):
        return OVER_CPU
    try:
        # Field 20 is the number of threads.
        return OVER_THREADS if int(stat_fields(f"/proc/{pid}")[17]) > MOST_THREADS else None
    except OSError:
        return None


def fills_disk(pid: int, folder: str, most: float, largest: float) -> bool:
    """Return True if ``folder`` and the removed files that the process still uses take more than ``most`` bytes.

    A removed file that is mapped but not open counts as ``largest``, the size limit for one file, because the kernel
    shows its size only to root. Python's own ``mmap`` keeps its file open. A folder with too many files, a path
    that is too long, or an unreadable subfolder also counts as full.
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
    """Return the ``/proc`` folder of a thread that has not ended; all threads share files and memory.

    Once the first thread has ended, the process's folder shows neither files nor memory, even if other threads still
    run.
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
    """Return the inode numbers of removed files in ``folder`` that are still mapped."""
    # Ignore files elsewhere, such as a library that was updated in the meantime.
    below = os.path.join(os.fsencode(folder), b"").replace(b"\n", rb"\012")
    try:
        with open(f"{thread}/maps", "rb") as maps:
            lines = [line for line in maps if line.endswith(b" (deleted)\n")]
    except OSError:
        return set()
    # The fields are address, rights, offset, device, inode number and path.
    mapped = [line.split(None, 5) for line in lines]
    return {int(number) for *_, number, path in mapped if path.startswith(below)}


def _below(folder: str) -> Iterator[os.stat_result | None]:
    """Yield the ``stat`` result of each file below ``folder``, and None for an overlong path or unreadable folder."""
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
        # The file has been removed in the meantime.
        return None


def _entries(folder: str) -> list[str] | None:
    try:
        return [os.path.join(folder, name) for name in os.listdir(folder)]
    except OSError:
        return None
