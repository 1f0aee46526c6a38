"""Convert a message's parts into blocks for Anthropic's Messages interface."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.media import base64_of, read
from pytest_lmeval.types import Media

_PDF, _TEXT = "application/pdf", "text/plain"


def blocks_of(parts: Sequence[str | Media]) -> list[dict[str, object]]:
    """Convert text and media into blocks; raise RequestRefused for unreadable or unsupported media."""
    return [{"type": "text", "text": part} if isinstance(part, str) else _block(part) for part in parts if part != ""]


def _block(media: Media) -> dict[str, object]:
    kind = "image" if media.kind == "image" else "document"
    if media.kind == "audio":
        raise RequestRefused(f"{media}: the Messages interface takes images, PDF and text")
    if not media.sha256:
        return {"type": kind, "source": {"type": "url", "url": media.source}}
    if kind == "document" and media.type == _TEXT:
        text = read(media).decode("utf-8")
        return {"type": kind, "source": {"type": "text", "media_type": _TEXT, "data": text}}
    if kind == "document" and media.type != _PDF:
        raise RequestRefused(f"{media}: the Messages interface takes PDF and text, not {media.type}")
    return {"type": kind, "source": {"type": "base64", "media_type": media.type, "data": base64_of(media)}}
