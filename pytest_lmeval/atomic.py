"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def encode_json(value: Any) -> bytes:
    """Return ``value`` as UTF-8 JSON with two-space indent; NaN and infinities are a ValueError."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:  # a model wrote a lone surrogate: only escaped can it be kept
        return json.dumps(value, indent=2, allow_nan=False).encode("ascii") + b"\n"


def write_atomically(path: Path, data: bytes) -> None:
    """Write ``data`` to a temporary file beside ``path``, then rename it there; create missing folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    # The only way to read the mask is to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
