"""Which files hold a model's weights, and their digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

# In the order in which transformers looks for them; the first kind that is there is the one that is loaded.
_PATTERNS = ("model*.safetensors", "pytorch_model*.bin", "*.safetensors", "*.bin")
_CHUNK = 1 << 20


def weight_files(folder: Path) -> list[Path]:
    """Return the files of ``folder`` that hold the weights, by name; an empty list where there are none."""
    kinds = (sorted(folder.glob(pattern)) for pattern in _PATTERNS)
    return next((files for files in kinds if files), [])


def hash_files(paths: Iterable[Path]) -> str:
    """Return the sha256 of the files' contents, one after the other, as ``cat PATHS | sha256sum`` does."""
    digest = hashlib.sha256()
    chunk = memoryview(bytearray(_CHUNK))
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(chunk):
                digest.update(chunk[:size])
    return digest.hexdigest()
