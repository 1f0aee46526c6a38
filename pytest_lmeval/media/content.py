"""Detect a file's type from its content, and whether an image is complete."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_lmeval.types import MEDIA_TYPES

OF_KIND: Mapping[str, Mapping[str, str]] = {
    kind: {name: text for name, text in MEDIA_TYPES.items() if name.startswith(f"{kind}/")}
    for kind in ("image", "audio")
}
"""The types of images and of audio, with the names of their formats."""
TEXT, SVG, UNKNOWN = "text/plain", "image/svg+xml", "application/octet-stream"
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"PK\x03\x04", "application/zip"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS = (b"M4A ", b"M4B ")
_START = 1024
_SHORTEST_CHUNK = 12


def type_of(data: bytes) -> str:
    """Return the MIME type of ``data``."""
    for beginning, found in _BEGINNINGS:
        if data.startswith(beginning):
            return found
    if data.startswith(b"RIFF") and data[8:12] in _IN_RIFF:
        return _IN_RIFF[data[8:12]]
    if data[4:8] == b"ftyp" and data[8:12] in _BRANDS:
        return "audio/mp4"
    # Layers I to III of MPEG audio; layer 0 is another format.
    if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0 and data[1] & 0x06:
        return "audio/mpeg"
    return _text_type(data)


def _text_type(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return UNKNOWN
    if "\0" in text:
        return UNKNOWN
    return SVG if "<svg" in text[:_START].lower() else TEXT


def fault_in(data: bytes, found: str) -> str:
    """Return why ``data``, an image of the type ``found``, is incomplete, or ""."""
    check = _COMPLETE.get(found)
    if check is None or check(data):
        return ""
    return f"a broken {OF_KIND['image'][found]}: it begins like one, but its end is missing"


def _png(data: bytes) -> bool:
    place = 8
    while place + _SHORTEST_CHUNK <= len(data):
        if data[place + 4 : place + 8] == b"IEND":
            return True
        place += _SHORTEST_CHUNK + int.from_bytes(data[place : place + 4], "big")
    return False


def _jpeg(data: bytes) -> bool:
    place = 2
    while place + 4 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xDA:  # the picture begins
            return data.find(b"\xff\xd9", place) >= 0
        # A byte of 0xFF is padding; the markers 0xD0 to 0xD7 and 0x01 have no length.
        if marker == 0xFF:
            place += 1
        elif 0xD0 <= marker <= 0xD7 or marker == 0x01:
            place += 2
        else:
            place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return False


def _gif(data: bytes) -> bool:
    return data.rfind(b"\0;") >= 0


def _webp(data: bytes) -> bool:
    return 8 + int.from_bytes(data[4:8], "little") <= len(data)


_COMPLETE: Mapping[str, Callable[[bytes], bool]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
