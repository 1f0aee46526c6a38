"""Small images, audio and documents as bytes, and a server that knows them by their bytes."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from tests.adapters.openai.scripted_server import Exchange, Step, chat, json_reply

__all__ = ["BLUE", "CAT", "DOG", "GIF", "JPEG", "MP3", "PDF", "WAV", "WEBP", "media_in", "png", "sees"]


def png(red: int = 0, green: int = 0, blue: int = 0, size: int = 2, extra: bytes = b"") -> bytes:
    """Return a square image of one colour; ``extra`` is the content of a chunk that no reader shows."""
    rows = (b"\0" + bytes((red, green, blue)) * size) * size
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", head), *([(b"prVt", extra)] if extra else []), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


CAT, DOG, BLUE = png(200), png(0, 200), png(0, 0, 250)
# A marker with a length, the beginning of the picture, its data, its end.
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\1\1\0\0\1\0\1\0\0\xff\xda\x00\x08\1\1\0\0\x3f\0\x12\x34\xff\xd9"
GIF = b"GIF89a\1\0\1\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\1\0\1\0\0\2\2D\1\0;"
WEBP = b"RIFF" + struct.pack("<I", 12) + b"WEBPVP8L" + struct.pack("<I", 0)
WAV = (
    b"RIFF"
    + struct.pack("<I", 36)
    + b"WAVEfmt "
    + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data\0\0\0\0"
)
MP3 = b"ID3\4\0\0\0\0\0\0\xff\xfb\x90\0"
PDF = b"%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n"


def media_in(body: Mapping[str, Any]) -> Iterator[bytes | str]:
    """Yield the bytes of the media in a chat request, or their addresses."""
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            fields: Any = part.get(part["type"], {})
            text = (
                fields.get("url") or fields.get("data") or fields.get("file_data") if isinstance(fields, dict) else ""
            )
            if text:
                yield text if "://" in text else b64decode(text.rpartition(",")[2], validate=True)


def sees(answers: Mapping[bytes | str, str], otherwise: str = "nothing") -> Step:
    """Answer a chat request with the text for each of its media, by their bytes."""

    async def step(exchange: Exchange) -> None:
        found = [answers.get(one, "unknown") for one in media_in(exchange.seen.json)]
        await json_reply(chat(" ".join(found) or otherwise))(exchange)

    return step
