"""Read the images, audio and files in clients' requests, in the formats of three interfaces.

A ``data:`` address becomes bytes. An http address is passed on to the model's server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_lmeval.media.sources import MediaFault, check_detail, decoded, from_base64, of_bytes, shown
from pytest_lmeval.types import Media, Message

_HTTP = ("http://", "https://")
_WITHOUT_ID = "expected its data or an address: a file that a server stores (file_id) is not supported"
_Fields = Any


def with_media(message: Message, content: Sequence[Any], place: str, first: int = 0) -> Message:
    """Return ``message`` with the parts in ``content``; raise a ValueError that names an invalid part.

    All parts must have types that the interface allows. ``first`` is the index of the first part at ``place``.
    """
    parts: list[str | Media] = []
    for number, part in enumerate(content, first):
        kind = str(part.get("type"))
        if kind not in _READERS:
            parts.append(str(part.get("refusal" if kind == "refusal" else "text")))
            continue
        try:
            parts.append(_READERS[kind](part))
        except (MediaFault, ValueError) as fault:
            raise ValueError(f"{place}[{number}]: {fault}") from None
    found = Message.of_parts(message.role, parts)
    return replace(message, content=found.content, parts=found.parts)


def _image_url(part: _Fields) -> Media:
    given = part.get("image_url")
    return _image(given if isinstance(given, dict) else {"url": given, "detail": part.get("detail")})


def _image(given: _Fields) -> Media:
    detail = given.get("detail") or ""
    check_detail("image", detail)
    return _from_address("image", given.get("url"), "", detail)


def _input_audio(part: _Fields) -> Media:
    given = part.get("input_audio")
    given = given if isinstance(given, dict) else {}
    return _from_data("audio", given.get("data"), f"audio/{given.get('format', '')}", "audio")


def _chat_file(part: _Fields) -> Media:
    given = part.get("file")
    return _input_file(given if isinstance(given, dict) else {})


def _input_file(given: _Fields) -> Media:
    name = shown(str(given.get("filename") or "file"))
    if given.get("file_url"):
        return _from_address("file", given["file_url"], name)
    data = given.get("file_data")
    if isinstance(data, str) and data.startswith("data:"):
        return _from_address("file", data, name)
    return _from_data("file", data, "", name)


def _block_image(block: _Fields) -> Media:
    return _from_source("image", block)


def _block_document(block: _Fields) -> Media:
    source = block.get("source")
    name = shown(str(block.get("title") or "document"))
    if isinstance(source, dict) and source.get("type") == "text" and isinstance(source.get("data"), str):
        return of_bytes("file", source["data"].encode("utf-8", "backslashreplace"), name)
    return _from_source("file", block, name)


def _from_source(kind: str, block: _Fields, name: str = "") -> Media:
    source = block.get("source")
    source = source if isinstance(source, dict) else {}
    if source.get("type") == "url":
        return _from_address(kind, source.get("url"), name)
    return _from_data(kind, source.get("data"), str(source.get("media_type") or ""), name or kind)


def _from_address(kind: str, address: object, name: str = "", detail: str = "") -> Media:
    if isinstance(address, str) and address.startswith(_HTTP):
        return Media(kind, "", "", 0, address, detail=detail)
    if isinstance(address, str) and address.startswith("data:"):
        declared = address[len("data:") :].partition(",")[0].partition(";")[0]
        return of_bytes(kind, decoded(address), name or f"data:{declared}", detail, declared)
    raise ValueError(_WITHOUT_ID if address is None else f"expected a data: or http address, got {address!r:.60}")


def _from_data(kind: str, data: object, declared: str, name: str) -> Media:
    if not isinstance(data, str):
        raise ValueError(_WITHOUT_ID)
    return of_bytes(kind, from_base64(data, name), name, declared=declared)


_READERS: Mapping[str, Callable[[_Fields], Media]] = {
    "image_url": _image_url,
    "input_image": _image_url,
    "image": _block_image,
    "input_audio": _input_audio,
    "file": _chat_file,
    "input_file": _input_file,
    "document": _block_document,
}
"""The readers of parts by type, which is unique across the interfaces."""
