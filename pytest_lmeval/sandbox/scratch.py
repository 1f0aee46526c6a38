"""Private working folders of programs and servers.

The process that made a folder locks it until its own end, so a later process can find the folders of killed processes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile

from pytest_lmeval.errors import SandboxError

PREFIX = "lmeval-sandbox-"
TRIES = 10


class Scratch:
    """A new empty folder of mode 700, which this process has locked."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    def remove(self) -> None:
        """Remove the folder, and its lock; raise `SandboxError` if something is left."""
        try:
            remove(self.path)
        finally:
            os.close(self._lock)


def make() -> Scratch:
    """Return a new scratch folder; raise `SandboxError` if no folder can be made."""
    try:
        for _ in range(TRIES):
            path = os.path.realpath(tempfile.mkdtemp(prefix=PREFIX))
            lock = _lock(path)
            if lock is not None:
                return Scratch(path, lock)
    except OSError as error:
        raise SandboxError(f"no scratch folder in {tempfile.gettempdir()!r}: {error}") from error
    raise SandboxError(f"no scratch folder in {tempfile.gettempdir()!r}: something removes them")


def sweep() -> None:
    """Remove the folders that this user's processes left behind when they were killed."""
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                _sweep(entry)


def _sweep(entry: os.DirEntry[str]) -> None:
    if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
        return
    lock = _lock(entry.path)
    if lock is not None:
        with contextlib.suppress(SandboxError):
            remove(entry.path)
        os.close(lock)


def _lock(path: str) -> int | None:
    """Return a descriptor that holds the folder's lock; None if another process holds it or removed the folder."""
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.lstat(path)):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def remove(path: str) -> None:
    """Remove the folder and all that a program left in it; raise `SandboxError` if something is left."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        # A folder lacks permissions, or is nested too deep for Python. These tools follow no link and have no limit.
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", path], check=False, capture_output=True)
    if os.path.lexists(path):
        raise SandboxError(f"the scratch folder {path!r} could not be removed")
