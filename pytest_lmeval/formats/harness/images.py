"""Put a document's images into its prompt, at the marks ``<image>``, as the harness does for ``hf-multimodal``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.harness.documents import Row
from pytest_lmeval.media.sources import MediaFault, media_of, of_bytes
from pytest_lmeval.types import Media, Message

MARK = "<image>"


def check_images(chat: str, shots: int) -> None:
    """Raise RecordRefused unless the prompts of a task with images are conversations without few-shot examples."""
    if chat == "off":
        detail = "images need a conversation: set chat to multiturn or single in the file that names the task"
        raise RecordRefused("bad_value", "doc_to_image", detail)
    if shots:
        raise RecordRefused("bad_value", "num_fewshot", f"expected 0 for a task with images, got {shots}")


def without_images(row: Row) -> Row:
    """Return a document's non-image columns."""
    return {name: value for name, value in row.items() if not _is_image(value)}


def _is_image(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_image, value))
    return isinstance(value, bytes) or hasattr(value, "save") or (isinstance(value, dict) and "bytes" in value)


def with_images(messages: Sequence[Message], found: Sequence[Any], folder: Path) -> tuple[Message, ...]:
    """Return a conversation with an image at each mark; raise RecordRefused for too many or too few images.

    Without a mark, the images precede the last message's text. ``folder`` is the task file's folder.
    """
    images = [_media(each, number, folder) for number, each in enumerate(found)]
    count = sum(message.content.count(MARK) for message in messages)
    if not count:
        last = messages[-1]
        return (*messages[:-1], Message.of_parts(last.role, [*images, last.content]))
    if count != len(images):
        detail = f"the prompt has {count} marks {MARK}, and the document has {len(images)} images"
        raise RecordRefused("bad_value", "doc_to_image", detail)
    left = iter(images)
    return tuple([_marked(message, left) for message in messages])


def _marked(message: Message, images: Iterator[Media]) -> Message:
    first, *others = message.content.split(MARK)
    if not others:
        return message
    parts: list[str | Media] = [first]
    for text in others:
        parts += [next(images), text]
    return Message.of_parts(message.role, [part for part in parts if part])


def _media(value: Any, number: int, folder: Path) -> Media:
    """Return an image from bytes, a ``datasets`` struct, a Pillow image, or a path."""
    source = f"image {number + 1}"
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if hasattr(value, "save"):
        content = BytesIO()
        value.save(content, format="PNG")
        value = content.getvalue()
    try:
        if isinstance(value, bytes):
            return of_bytes("image", value, source)
        if isinstance(value, str):
            return media_of("image", value, folder)
    except MediaFault as fault:
        raise RecordRefused("bad_value", "doc_to_image", str(fault)) from None
    raise RecordRefused("bad_type", "doc_to_image", f"expected an image, got {type(value).__name__}")
