"""The open files of this process, for tests of what leaves none open."""

from __future__ import annotations

import contextlib
import os


def descriptors_by_target() -> set[tuple[str, str]]:
    """Return the number and the target of each open file of this process, where the kernel lists them."""
    found: set[tuple[str, str]] = set()
    for number in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd") else ():
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found
