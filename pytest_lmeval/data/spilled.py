"""Keep bytes of data sets and addresses in files of this process, not in memory."""

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
    """The bytes in a cell of a data set: the file to which they were written, and a name for readers."""

    path: str
    source: str

    @property
    def no_text(self) -> str:
        """The reason why a template cannot write the cell as text."""
        return "the column has bytes, which are no text: write them as images, or as a part of the prompt"


def spilled(data: bytes, digest: str = "") -> str:
    """Write ``data``, with the SHA-256 ``digest``, to a private folder of this process; return the path."""
    path = os.path.join(_folder(os.getpid()), digest or hashlib.sha256(data).hexdigest())
    if not os.path.exists(path):
        # Another thread must not see half a file.
        unfinished = f"{path}.{threading.get_ident()}"
        with open(unfinished, "wb") as file:
            file.write(data)
        os.replace(unfinished, path)
    return path


_handed_over: set[str] = set()
_taken_over: list[str] = []


def spilled_path(digest: str) -> Path:
    """Return the file to which this process or one of its workers wrote the bytes with this SHA-256, if any did."""
    paths = [Path(folder, digest) for folder in (_folder(os.getpid()), *_taken_over)]
    return next((path for path in paths if path.exists()), paths[0])


def hand_over() -> str:
    """Return the folder of this process, which the caller's controller now removes, or "" if there is no folder."""
    if not _folder.cache_info().currsize:
        return ""
    folder = _folder(os.getpid())
    _handed_over.add(folder)
    return folder


def take_over(folder: str) -> None:
    """Read and later remove a folder that a worker handed over."""
    _taken_over.append(folder)
    atexit.register(partial(_remove, folder, os.getpid()))


@lru_cache(maxsize=1)
def _folder(process: int) -> str:
    """Return the folder of ``process``, this process: a fork makes another folder."""
    folder = tempfile.mkdtemp(prefix="lmeval-media-")
    atexit.register(partial(_remove, folder, process))
    return folder


def _remove(folder: str, process: int) -> None:
    if process == os.getpid() and folder not in _handed_over:
        shutil.rmtree(folder, ignore_errors=True)
