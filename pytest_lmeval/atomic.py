"""Write files completely or not at all."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_READER_WITHIN_S = 30.0


def encode_json(value: Any) -> bytes:
    """Return ``value`` as UTF-8 JSON with two-space indent; raise ValueError for NaN and infinities."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a model wrote a lone surrogate, which must be escaped
        return json.dumps(value, indent=2, allow_nan=False).encode("ascii") + b"\n"


def write_atomically(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Write ``data``, or its parts in order, to ``path``; if this fails, leave an existing regular file unchanged.

    Create missing folders and follow links. If ``path`` is a device or a pipe, send the data there. Raise OSError if
    ``path`` is a folder or a socket.
    """
    if is_stream(path):
        return _send(path, data)
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "is no regular file, device or pipe; name a file", str(path))
    path = link_target(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines([data] if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def is_stream(path: Path) -> bool:
    """Return True if ``path``, after following links, is a device or a pipe."""
    mode = _mode(path) or 0
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISFIFO(mode)


def link_target(path: Path) -> Path:
    """Return the target of a link, even if it is missing; return any other path unchanged."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def remove_file(path: Path) -> None:
    """Remove the regular file at ``path``, after following links; do nothing if there is no such file."""
    mode = _mode(path)
    if mode is not None and stat.S_ISREG(mode):
        link_target(path).unlink(missing_ok=True)


def move_file(path: Path, to: Path) -> None:
    """Move the regular file at ``path``, after following links; do nothing if there is no such file."""
    mode = _mode(path)
    if mode is None or not stat.S_ISREG(mode):
        return
    source = link_target(path)
    try:
        os.rename(source, to)
    except OSError as error:
        if error.errno != errno.EXDEV:  # a link may lead to another disk
            raise
        write_atomically(to, source.read_bytes())
        source.unlink()


def _mode(path: Path) -> int | None:
    """Return the mode of ``path`` after following links, or None if it does not exist."""
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _send(path: Path, data: bytes | Iterable[bytes]) -> None:
    # No O_TRUNC or O_CREAT: only the written data may change a device, and no file may be created.
    descriptor = _opened_pipe(path) if stat.S_ISFIFO(_mode(path) or 0) else os.open(path, os.O_WRONLY)
    with os.fdopen(descriptor, "wb") as stream:
        stream.writelines([data] if isinstance(data, bytes) else data)


def _opened_pipe(path: Path) -> int:
    """Open a pipe; raise OSError if no reader opens it within 30 s (a plain open would wait forever)."""
    until = time.monotonic() + _READER_WITHIN_S
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "is a pipe without a reader", str(path)) from None
            time.sleep(0.01)
            continue
        os.set_blocking(descriptor, True)
        return descriptor


def _umask() -> int:
    # Setting the mask is the only way to read it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
