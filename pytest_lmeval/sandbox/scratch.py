"""Create and remove the private working folders of programs and servers.

A process keeps the folders that it makes locked until it ends, so that a later process can recognise and remove the
folders of killed processes.
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
    """A new, empty folder with mode 700, which this process has locked."""

    def __init__(self, path: str, lock: int) -> None:
        self.path = path
        self._lock = lock

    def remove(self) -> None:
        """Remove the folder and release its lock; raise `SandboxError` if something is left."""
        try:
            remove(self.path)
        finally:
            os.close(self._lock)


def make() -> Scratch:
    """Create a scratch folder; raise `SandboxError` if that fails."""
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
    """Remove the folders that killed processes of this user left behind."""
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
    """Lock a folder and return the lock's descriptor, or None if another process has locked or removed the folder."""
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
    """Remove a folder and everything that a program left in it; raise `SandboxError` if something remains."""
    try:
        shutil.rmtree(path)
    except (OSError, RecursionError):
        # A folder lacks permissions, or is nested too deeply for Python. These tools follow no links, and have no limit
        # on depth.
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, "--", path], check=False, capture_output=True)
    if os.path.lexists(path):
        raise SandboxError(f"the scratch folder {path!r} could not be removed")
