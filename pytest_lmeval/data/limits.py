"""How large a data set may be: what is larger is refused before it is read."""

from __future__ import annotations

import errno
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.numbers import Number

MAX_DATA_BYTES = 1 << 30
MAX_ROWS = 10_000_000
_MAX_BYTES: ContextVar[int] = ContextVar("max_data_bytes", default=MAX_DATA_BYTES)


class TooLarge(LmevalError):
    """A data set that is larger than is read; the message says what it has and what may be."""


def set_max_data_bytes(given: object) -> None:
    """Set how many bytes a data set may have from now on; raise UsageError for what is no whole number above 0."""
    _MAX_BYTES.set(Number(1, whole=True).of_option("ini lm_max_data_bytes", given))


def check_bytes(name: str, count: int) -> None:
    """Raise TooLarge if the data set ``name`` has more than so many bytes as may be, uncompressed."""
    if count > _MAX_BYTES.get():
        raise TooLarge(
            f"{name}: {count:,} bytes of data, uncompressed; at most {_MAX_BYTES.get():,} are read "
            "(ini lm_max_data_bytes)"
        )


def check_rows(name: str, count: int) -> None:
    """Raise TooLarge if the data set ``name`` has more rows than are read."""
    if count > MAX_ROWS:
        raise TooLarge(f"{name}: {count:,} rows; at most {MAX_ROWS:,} are read")


def read_files(files: Iterable[Path]) -> list[bytes]:
    """Return what the files of a data set hold; raise TooLarge before any is read, OSError where one cannot be."""
    paths = list(files)
    if paths:
        check_bytes(paths[0].name, sum(path.stat().st_size for path in paths))
    for path in paths:
        if path.exists() and not path.is_file():
            # To open a pipe waits for whoever writes to it.
            raise OSError(errno.EINVAL, "it is no regular file")
    return [path.read_bytes() for path in paths]
