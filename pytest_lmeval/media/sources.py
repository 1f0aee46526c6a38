"""Create media from files, ``data:`` addresses and bytes, without keeping the bytes in memory."""

from __future__ import annotations

import binascii
import hashlib
from pathlib import Path
from urllib.parse import unquote_to_bytes

from pytest_lmeval.data.limits import max_media_bytes
from pytest_lmeval.data.rows import nearest_file, outside_project
from pytest_lmeval.data.spilled import Cell, spilled
from pytest_lmeval.errors import LmevalError
from pytest_lmeval.media.content import OF_KIND, SVG, TEXT, fault_in, type_of
from pytest_lmeval.text import printable
from pytest_lmeval.types import Media

_LONGEST_SOURCE = 200
_DETAILS = ("low", "high", "auto")


class MediaFault(LmevalError):
    """An image, audio file or other file is unfit for requests; the message gives the reason."""


def media_of(kind: str, source: str | Path | bytes | Cell, folder: Path, detail: str = "") -> Media:
    """Return the media from ``source``; raise MediaFault if it is unfit for requests.

    If ``kind`` is "", the content decides the kind. A string is a ``data:`` address, or a path relative to ``folder``
    that stays inside the project. A :class:`Path` may lead outside the project.
    """
    check_detail(kind, detail)
    if isinstance(source, bytes):
        return of_bytes(kind, source, "bytes", detail)
    if isinstance(source, Cell):
        return _of_file(kind, Path(source.path), source.source, detail)
    if isinstance(source, Path):
        return _of_file(kind, folder / source, shown(source.as_posix()), detail)
    if source.startswith("data:"):
        data = decoded(source)
        return of_bytes(kind, data, f"data:{type_of(data)}", detail)
    if "://" in source:
        raise MediaFault(f"{shown(source)}: an address, and a run fetches nothing: save the file in the project")
    return _of_file(kind, _within(source, folder), shown(source), detail)


def check_detail(kind: str, detail: object) -> None:
    """Raise MediaFault if media of this ``kind`` must not have this ``detail``."""
    if detail and (kind != "image" or detail not in _DETAILS):
        raise MediaFault(f"detail {detail!r:.40}: expected one of {', '.join(_DETAILS)}, for an image")


def of_bytes(kind: str, data: bytes, source: str, detail: str = "", declared: str = "") -> Media:
    """Return media whose bytes are ``data``; write the bytes to a file, so that they do not stay in memory.

    If the content does not reveal a type of this ``kind``, use the type that an application ``declared``.
    """
    _check_size(source, len(data))
    found = type_of(data)
    if kind in OF_KIND and found not in OF_KIND[kind] and declared:
        found = declared
    else:
        kind = _checked(kind, data, found, source)
    digest = hashlib.sha256(data).hexdigest()
    return Media(kind, found, digest, len(data), source, spilled(data, digest), detail)


def decoded(address: str) -> bytes:
    """Return the bytes in a ``data:`` address; raise MediaFault if the address is invalid."""
    head, comma, text = address.partition(",")
    if not comma:
        raise MediaFault(f"{shown(address)}: expected data:TYPE;base64,BYTES")
    if not head.endswith(";base64"):
        return unquote_to_bytes(text)
    return from_base64(text, shown(head))


def from_base64(text: str, source: str) -> bytes:
    """Return the bytes in base64 text; raise MediaFault if the text is invalid."""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise MediaFault(f"{source}: not base64: {error}") from None


def shown(source: str) -> str:
    """Return a source's name as one short, printable line."""
    line = printable(source, keep="")
    return line if len(line) <= _LONGEST_SOURCE else f"{line[:_LONGEST_SOURCE]}..."


def _within(name: str, folder: Path) -> Path:
    path = (folder / name).resolve()
    if fault := outside_project(path, folder):
        raise MediaFault(f"{shown(name)}: {fault}")
    return path


def _of_file(kind: str, path: Path, source: str, detail: str) -> Media:
    data = _content(path, source)
    found = type_of(data)
    kind = _checked(kind, data, found, source)
    return Media(kind, found, hashlib.sha256(data).hexdigest(), len(data), source, str(path.absolute()), detail)


def _content(path: Path, source: str) -> bytes:
    if path.is_dir():
        raise MediaFault(f"{source}: a folder; expected a file")
    if path.exists() and not path.is_file():
        raise MediaFault(f"{source}: not a regular file")  # opening a pipe would wait for a writer
    try:
        _check_size(source, path.stat().st_size)
        return path.read_bytes()
    except OSError as error:
        raise MediaFault(f"{source}: cannot be read: {error.strerror}{nearest_file(path)}") from None


def _check_size(source: str, size: int) -> None:
    if not size:
        raise MediaFault(f"{source}: empty")
    if size > max_media_bytes():
        raise MediaFault(f"{source}: {size:,} bytes; at most {max_media_bytes():,} are read (ini lm_max_media_bytes)")


def _checked(kind: str, data: bytes, found: str, source: str) -> str:
    """Return the kind of media in ``data``; raise MediaFault if it cannot be of ``kind``."""
    kind = kind or next((each for each, types in OF_KIND.items() if found in types), "file")
    if kind in OF_KIND and found not in OF_KIND[kind]:
        *others, last = OF_KIND[kind].values()
        got = "text" if found == TEXT else "SVG, which is text: convert it to PNG" if found == SVG else found
        raise MediaFault(f"{source}: expected {', '.join(others)} or {last} by its content, got {got}")
    if kind == "image" and (fault := fault_in(data, found)):
        raise MediaFault(f"{source}: {fault}")
    return kind
