"""Ignore some denied calls that honest programs routinely make in their working folders.

The filter cannot see which file's mode or times a call changes, so it denies all such calls. The filter also denies
shared memory without a file, because no limit applies to such memory. A program cannot start other processes, so
private memory works equally well.
"""

from __future__ import annotations

import functools
import mmap
import os
import shutil

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

READ_AND_WRITE = mmap.PROT_READ | mmap.PROT_WRITE
ABILITIES = (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks)


def install(folder: str) -> None:
    """Ignore denied mode and time changes in ``folder``, copy files without attributes, and make memory private."""
    for name in ("chmod", "utime"):
        setattr(os, name, _tolerant(getattr(os, name), folder))
    mmap.mmap = PrivateMemory  # type: ignore[misc]  # under its usual name
    shutil._copyxattr = lambda *args, **kwargs: None  # type: ignore[attr-defined]  # private


def _tolerant(function: Callable[..., None], folder: str) -> Callable[..., None]:
    @functools.wraps(function)
    def tolerant(path: Any, *args: Any, **kwargs: Any) -> None:
        try:
            function(path, *args, **kwargs)
        except PermissionError:
            if isinstance(path, int) or not os.path.realpath(os.fsdecode(path)).startswith(f"{folder}/"):
                raise

    for ability in ABILITIES:
        if function in ability:
            ability.add(tolerant)
    return tolerant


class PrivateMemory(mmap.mmap):
    """Python's ``mmap``, except that memory without a file is private."""

    def __new__(
        cls,
        fileno: int,
        length: int,
        flags: int = mmap.MAP_SHARED,
        prot: int = READ_AND_WRITE,
        access: int = mmap.ACCESS_DEFAULT,
        *rest: Any,
        **more: Any,
    ) -> PrivateMemory:
        """Accept the arguments of ``mmap``, including invalid combinations."""
        shared = (flags, prot) == (mmap.MAP_SHARED, READ_AND_WRITE) if access else flags & mmap.MAP_SHARED
        if fileno == -1 and shared and access != mmap.ACCESS_COPY:
            prot = mmap.PROT_READ if access == mmap.ACCESS_READ else prot
            flags, access = flags & ~mmap.MAP_SHARED | mmap.MAP_PRIVATE, mmap.ACCESS_DEFAULT
        return super().__new__(cls, fileno, length, flags, prot, access, *rest, **more)


# Programs see the class under its usual name.
PrivateMemory.__name__ = PrivateMemory.__qualname__ = "mmap"
PrivateMemory.__module__ = "mmap"
