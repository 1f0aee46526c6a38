"""Limits on the sizes of data sets, and of images, audio and files in prompts."""

from __future__ import annotations

import errno
import gzip
import io
import zlib
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path

from pytest_lmeval.errors import LmevalError
from pytest_lmeval.numbers import Number

MAX_DATA_BYTES = 1 << 30
MAX_ROWS = 10_000_000
_GZIP = b"\x1f\x8b"
_PART = 1 << 20
MAX_MEDIA_BYTES = 20 << 20
_MAX_BYTES: ContextVar[int] = ContextVar("max_data_bytes", default=MAX_DATA_BYTES)

# This is not a context variable, because eval functions also read media in other threads.
_max_media_bytes = MAX_MEDIA_BYTES


class BadRows(LmevalError):
    """A file's rows cannot be used; ``faults`` contains messages of the form ``name:line: detail``."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def set_max_data_bytes(given: object) -> None:
    """Set the maximum size of a data set in bytes; raise UsageError unless ``given`` is a whole number above 0."""
    _MAX_BYTES.set(Number(1, whole=True).of_option("ini lm_max_data_bytes", given))


def set_max_media_bytes(given: object) -> None:
    """Set the maximum bytes of an image, audio or file; raise UsageError unless ``given`` is a whole number above 0."""
    global _max_media_bytes
    _max_media_bytes = Number(1, whole=True).of_option("ini lm_max_media_bytes", given)


def max_media_bytes() -> int:
    """Return the maximum size of an image, audio or file in a prompt, in bytes."""
    return _max_media_bytes


def check_bytes(name: str, count: int) -> None:
    """Raise BadRows if ``count``, the number of uncompressed bytes in the data set ``name``, exceeds the limit."""
    if count > _MAX_BYTES.get():
        limit = f"at most {_MAX_BYTES.get():,} are read (ini lm_max_data_bytes)"
        raise BadRows(f"{name}: {count:,} bytes of data, uncompressed; {limit}")


def check_rows(name: str, count: int) -> None:
    """Raise BadRows if ``count``, the number of rows in the data set ``name``, exceeds the limit."""
    if count > MAX_ROWS:
        raise BadRows(f"{name}: {count:,} rows; at most {MAX_ROWS:,} are read")


def read_files(files: Sequence[Path]) -> list[bytes]:
    """Return the contents of a data set's files.

    Raise BadRows, before any file is read, if the total size exceeds the limit. Raise OSError if a file cannot be read.
    """
    check_files(files)
    return [path.read_bytes() for path in files]


def check_files(files: Sequence[Path]) -> None:
    """Raise BadRows if the total size of a data set's files is too large, or OSError if a file cannot be read."""
    check_bytes(files[0].name, sum(path.stat().st_size for path in files))
    for path in files:
        if path.exists() and not path.is_file():
            # Opening a pipe would wait for a writer.
            raise OSError(errno.EINVAL, "it is not a regular file")


def unpacked(name: str, data: bytes) -> bytes:
    """Return ``data``, after decompressing gzip; raise BadRows if the data is damaged or too large."""
    if not data.startswith(_GZIP):
        return data
    parts, size = [], 0
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            while part := stream.read(_PART):
                parts.append(part)
                size += len(part)
                check_bytes(name, size)
    except (OSError, EOFError, zlib.error) as error:
        raise BadRows(f"{name}: cannot be unpacked: {error}") from None
    return b"".join(parts)
