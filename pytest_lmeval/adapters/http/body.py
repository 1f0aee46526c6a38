"""The body of a reply, inflated as it arrives and never beyond a limit."""

from __future__ import annotations

import zlib
from collections.abc import Callable

_EITHER_HEADER = 32 + zlib.MAX_WBITS
_ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_PLAIN = frozenset({"", "identity"})


class CappedBody:
    """Collects chunks up to ``limit`` bytes, counted before and after inflation: a bomb ends at the limit.

    ``watch`` is given every chunk at once, inflated. Raise ValueError for a content encoding that was not asked for.
    """

    def __init__(self, encoding: str, limit: int, watch: Callable[[bytes], None] | None = None) -> None:
        encoding = encoding.strip().lower()
        if encoding not in _PLAIN and encoding not in _ENCODINGS:
            raise ValueError(f"content encoding {encoding[:40]!r}; expected gzip or none")
        self._inflate = zlib.decompressobj(_EITHER_HEADER) if encoding in _ENCODINGS else None
        self._limit = limit
        self._watch = watch
        self._arrived = 0
        self._size = 0
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> bool:
        """Add what arrived; return False once the limit is passed. Raise ValueError where it cannot be inflated."""
        self._arrived += len(chunk)
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk, self._limit - self._size + 1)
            except zlib.error as error:
                raise ValueError(f"a body that cannot be inflated ({error})") from None
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._watch is not None:
            self._watch(chunk)
        return self._size <= self._limit and self._arrived <= self._limit

    @property
    def whole(self) -> bool:
        """False where compressed data ended too early."""
        return self._inflate is None or self._inflate.eof or not self._arrived

    def content(self) -> bytes:
        """Return what was collected, at most ``limit`` bytes."""
        return b"".join(self._chunks)[: self._limit]
