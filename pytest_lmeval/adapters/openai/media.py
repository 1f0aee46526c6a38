"""Convert a message's parts into the format of OpenAI's chat interface, which litellm also accepts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.media import base64_of
from pytest_lmeval.types import Media

_FORMATS = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}


def content_of(parts: Sequence[str | Media]) -> list[dict[str, object]]:
    """Convert text and media into a message's content; raise RequestRefused for unreadable or unsupported media."""
    return [{"type": "text", "text": part} if isinstance(part, str) else _part(part) for part in parts]


def _part(media: Media) -> dict[str, object]:
    if media.kind != "image" and not media.sha256:
        raise RequestRefused(f"{media}: chat completions take the address of an image, and the bytes of other media")
    data = base64_of(media) if media.sha256 else ""
    if media.kind == "audio":
        name = _FORMATS.get(media.type) or media.type.removeprefix("audio/")
        return {"type": "input_audio", "input_audio": {"data": data, "format": name}}
    address = f"data:{media.type};base64,{data}" if data else media.source
    if media.kind == "image":
        detail = {"detail": media.detail} if media.detail else {}
        return {"type": "image_url", "image_url": {"url": address, **detail}}
    return {"type": "file", "file": {"filename": PurePath(media.source).name, "file_data": address}}
