"""Store the bytes of media in temporary files of this process instead of in memory."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import threading
from functools import lru_cache, partial
from pathlib import Path

from pytest_lmeval.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A data set's cell that contains bytes; the file at ``path`` contains them, and ``source`` names the cell."""

    path: str
    source: str

    @property
    def no_text(self) -> str:
        """The reason why a template cannot write the cell as text."""
        return "the column has bytes, which are no text: write them as images, or as a part of the prompt"


def spilled(data: bytes, digest: str = "") -> str:
    """Write ``data`` to a private folder of this process; return the path, which ends in the SHA-256 of the data."""
    path = os.path.join(_folder(os.getpid()), digest or hashlib.sha256(data).hexdigest())
    if not os.path.exists(path):
        # Another thread must not see a half-written file.
        unfinished = f"{path}.{threading.get_ident()}"
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    return path


_handed_over: set[str] = set()
_taken_over: list[str] = []


def spilled_path(digest: str) -> Path:
    """Return the file with this SHA-256 that this process or a worker wrote; the file may be missing."""
    paths = [Path(folder, digest) for folder in (_folder(os.getpid()), *_taken_over)]
    return next((path for path in paths if path.exists()), paths[0])


def hand_over() -> str:
    """Return this process's folder, which the controller must now remove, or "" if the process has no folder."""
    if not _folder.cache_info().currsize:
        return ""
    folder = _folder(os.getpid())
    _handed_over.add(folder)
    return folder


def take_over(folder: str) -> None:
    """Let this process read a folder that a worker handed over, and remove the folder when this process exits."""
    _taken_over.append(folder)
    atexit.register(partial(_remove, folder, os.getpid()))


@lru_cache(maxsize=1)
def _folder(process: int) -> str:
    """Return the folder of this process, whose id is ``process``; a forked process creates another folder."""
    folder = tempfile.mkdtemp(prefix="lmeval-media-")
    atexit.register(partial(_remove, folder, process))
    return folder


def _remove(folder: str, process: int) -> None:
    if process == os.getpid() and folder not in _handed_over:
        shutil.rmtree(folder, ignore_errors=True)
