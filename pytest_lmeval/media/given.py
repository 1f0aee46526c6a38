"""Read the parts of prompts in records and task files: strings, and objects such as ``{"image": "figures/1.png"}``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from pytest_lmeval.data.spilled import Cell
from pytest_lmeval.errors import RecordRefused, UsageError
from pytest_lmeval.media import of_path
from pytest_lmeval.media.sources import MediaFault, media_of
from pytest_lmeval.types import MEDIA_KINDS, Media, Message

_EXPECTED = 'expected a text, or an object such as {"image": "PATH"}; its key is image, audio or file'
_OF_CHAT = {"image_url": "image", "input_image": "image", "input_audio": "audio", "file": "file", "input_file": "file"}


def message_of(given: Sequence[Any], field: str, folder: Path | None, role: str = "user") -> Message:
    """Return the message whose content is the list ``given``; raise RecordRefused for the first error in ``field``.

    ``folder`` is the folder of the file that names the media, or None for the working folder.
    """
    return Message.of_parts(role, parts_of(given, field, folder))


def parts_of(given: Sequence[Any], field: str, folder: Path | None) -> tuple[str | Media, ...]:
    """Return the strings and media in the list ``given``; raise RecordRefused as :func:`message_of` does."""
    return tuple([_part(part, f"{field}[{number}]", folder or Path()) for number, part in enumerate(given)])


def message_from(role: str, given: Sequence[object]) -> Message:
    """Return a message of the strings, media and paths in ``given``; raise UsageError for anything else in the list."""
    parts: list[str | Media] = []
    for part in given:
        if not isinstance(part, str | Media | PathLike) or part == "":
            expected = "expected texts, Image(...), Audio(...), File(...) or paths, and no messages beside them"
            raise UsageError(f"{expected}, got {part!r:.80}")
        parts.append(part if isinstance(part, str | Media) else of_path(Path(part)))
    return Message.of_parts(role, parts)


def kind_of(given: Any, field: str) -> str:
    """Return a part's kind of media, or "" for a string; raise RecordRefused for any other value."""
    if isinstance(given, str) and given:
        return ""
    kinds: list[str] = [name for name in given if name in MEDIA_KINDS] if isinstance(given, dict) else []
    if len(kinds) != 1 or not given.keys() <= {kinds[0], "detail"}:
        raise RecordRefused("bad_value", field, f"{_EXPECTED}; got {given!r:.80}{_hint(given)}")
    (kind,) = kinds
    source = given[kind]
    if not isinstance(source, str | Cell) or not source or not isinstance(given.get("detail", ""), str):
        raise RecordRefused("bad_type", f"{field}.{kind}", f"expected a path or a data: address, got {source!r:.80}")
    return kind


def _part(given: Any, field: str, folder: Path) -> str | Media:
    kind = kind_of(given, field)
    if not kind:
        return str(given)
    try:
        return media_of(kind, given[kind], folder, given.get("detail", ""))
    except MediaFault as fault:
        raise RecordRefused("bad_value", f"{field}.{kind}", str(fault)) from None


def _hint(given: Any) -> str:
    if not isinstance(given, dict):
        return ""
    if kind := _OF_CHAT.get(str(given.get("type"))):
        return f'; write {{"{kind}": "PATH"}}'
    return ""
