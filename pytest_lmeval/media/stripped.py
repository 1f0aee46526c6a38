"""Remove metadata, such as a photo's location, from images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

_START_OF_SCAN, _END = 0xDA, 0xD9
# Only these application segments change the colours.
_JFIF, _PROFILE, _ADOBE = 0xE0, 0xE2, 0xEE
_APPLICATIONS = frozenset(range(0xE0, 0xF0)) - {_JFIF, _PROFILE, _ADOBE}
_COMMENT = 0xFE
_RESTARTS = frozenset((0x01, *range(0xD0, 0xD8)))
_IN_PNG = frozenset((b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME"))
_IN_WEBP = frozenset((b"EXIF", b"XMP "))
_FLAGS_IN_WEBP = 0x0C


def without_metadata(data: bytes, found: str) -> bytes | None:
    """Return an image of the type ``found`` without its metadata, or None if the image is malformed.

    Bytes after the image's end count as metadata, too, because cameras store further pictures there.
    """
    strip = _STRIPPED.get(found)
    return data if strip is None else strip(data)


def _jpeg(data: bytes) -> bytes | None:
    kept, place = [data[:2]], 2
    while place + 2 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == _END:
            return b"".join([*kept, data[place : place + 2]])
        end = _end_of_segment(data, place, marker)
        if end <= place:
            return None
        if marker not in _APPLICATIONS and marker != _COMMENT:
            kept.append(data[place:end])
        place = end
    return None


def _end_of_segment(data: bytes, place: int, marker: int) -> int:
    """Return the end of the segment at ``place``, or 0 if ``data`` ends first or the length is invalid."""
    if marker == 0xFF:  # a padding byte
        return place + 1
    if marker in _RESTARTS:
        return place + 2
    length = int.from_bytes(data[place + 2 : place + 4], "big")
    end = place + 2 + length
    if length < 2 or end > len(data):
        return 0
    return _end_of_scan(data, end) if marker == _START_OF_SCAN else end


def _end_of_scan(data: bytes, place: int) -> int:
    """Return the position of the first marker after the picture data at ``place``, or 0 without a marker."""
    while 0 <= (place := data.find(b"\xff", place)) < len(data) - 1:
        if data[place + 1] and data[place + 1] not in _RESTARTS:
            return place
        place += 2
    return 0


def _png(data: bytes) -> bytes | None:
    kept, place = [data[:8]], 8
    while place + 12 <= len(data):
        name, end = data[place + 4 : place + 8], place + 12 + int.from_bytes(data[place : place + 4], "big")
        if name not in _IN_PNG:
            kept.append(data[place:end])
        if name == b"IEND":
            return b"".join(kept)
        place = end
    return None


def _webp(data: bytes) -> bytes | None:
    kept, place, whole = [], 12, 8 + int.from_bytes(data[4:8], "little")
    while place + 8 <= whole <= len(data):
        name, size = data[place : place + 4], int.from_bytes(data[place + 4 : place + 8], "little")
        end = place + 8 + size + size % 2
        chunk = data[place:end]
        if name == b"VP8X" and size:
            chunk = chunk[:8] + bytes([chunk[8] & ~_FLAGS_IN_WEBP]) + chunk[9:]
        if name not in _IN_WEBP:
            kept.append(chunk)
        place = end
    if place < whole:
        return None
    body = b"".join(kept)
    return data[:4] + (4 + len(body)).to_bytes(4, "little") + data[8:12] + body


_STRIPPED: Mapping[str, Callable[[bytes], bytes | None]] = {"image/jpeg": _jpeg, "image/png": _png, "image/webp": _webp}
