"""Add the images and audio of messages to the page: embed small files, and link to other files."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pytest_lmeval.compact_json import encode
from pytest_lmeval.data.spilled import spilled_path
from pytest_lmeval.errors import RequestRefused
from pytest_lmeval.media import read
from pytest_lmeval.media.content import OF_KIND, type_of
from pytest_lmeval.media.stripped import without_metadata
from pytest_lmeval.types import Media, is_media

MOST_BYTES = 200_000
"""The maximum size of an embedded file in bytes."""
MOST_IN_ALL = 20_000_000
"""The maximum total size of all embedded files in bytes."""
_SHOWN = frozenset((*OF_KIND["image"], *OF_KIND["audio"]))
_DIGEST = re.compile(r"[0-9a-f]{64}")


def media_blocks(
    tasks: Iterable[tuple[str, str]], folders: Mapping[str, Sequence[Path]], page: Path
) -> Iterator[tuple[str, str]]:
    """Yield the id and JSON of each media block for a page in the folder ``page``.

    ``tasks`` holds the name and JSON of each task on the page; ``folders`` holds the folders that may contain the files
    in a task's prompts. The block ``media`` has an entry for each SHA-256. In an entry, ``is`` describes the file's
    format and size. ``here`` is True if another block embeds the file. For an existing file that is not embedded,
    ``link`` is its address, or ``is_large`` is True if it has no address.
    """
    found: dict[str, dict[str, Any]] = {}
    left = MOST_IN_ALL
    for media, among in _media_in(tasks, folders):
        if media.sha256 in found or not _DIGEST.fullmatch(media.sha256):
            continue
        entry: dict[str, Any] = {"is": ", ".join(media.facts)}
        found[media.sha256] = entry
        if (held := _read(media, among)) is None:
            continue
        path, data = held
        if (address := _address(media, data)) and len(data) <= left:
            left -= len(data)
            entry["here"] = True
            yield f"media-{media.sha256}", encode(address)
        elif path != spilled_path(media.sha256) and (address := link(path, page)):
            entry["link"] = address
        else:
            entry["is_large"] = True
    yield "media", encode(found)


def _media_in(
    tasks: Iterable[tuple[str, str]], folders: Mapping[str, Sequence[Path]]
) -> Iterator[tuple[Media, Sequence[Path]]]:
    """Yield the page's media with their folders; media from passed examples come last."""
    parsed = [(folders.get(name, ()), json.loads(text)) for name, text in tasks]
    held = [(among, example) for among, task in parsed for example in task["examples"]]
    held.sort(key=lambda each: each[1].get("status") == "passed")
    for among, value in [*((among, task.get("messages")) for among, task in parsed), *held]:
        for record in _records_in(value):
            yield Media.from_json(record), among


def _records_in(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        if "sha256" in value and is_media(value):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _records_in(each)


def _read(media: Media, folders: Sequence[Path]) -> tuple[Path, bytes] | None:
    """Return the path and content of the file for ``media``, or None if there is no such file."""
    for path in (*(folder / media.source for folder in folders), spilled_path(media.sha256)):
        try:
            # A ledger may name the wrong file, such as a pipe: do not wait for it.
            if path.is_file() and path.stat().st_size == media.size:
                known = Media(media.kind, media.type, media.sha256, media.size, media.source, str(path))
                return path, read(known)
        except (OSError, ValueError, RequestRefused):
            continue
    return None


def _address(media: Media, data: bytes) -> str:
    """Return the ``data:`` address of an image or audio, or "" if the page cannot embed it."""
    found = type_of(data)
    if len(data) > MOST_BYTES or found not in _SHOWN or media.kind not in OF_KIND:
        return ""
    stripped = without_metadata(data, found)
    return "" if stripped is None else f"data:{found};base64,{b64encode(stripped).decode('ascii')}"


def link(path: Path, page: Path) -> str:
    """Return a file's address relative to the page's folder, or "" if the file is on another drive."""
    try:
        return quote(Path(os.path.relpath(path, page)).as_posix())
    except ValueError:  # on another drive
        return ""
