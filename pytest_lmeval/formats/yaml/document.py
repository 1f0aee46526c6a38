"""A YAML file as plain values, with each value's position and the included files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pytest_lmeval.frozen import dataclass

MAX_BYTES = 1 << 18
_YAML = frozenset({".yaml", ".yml"})
Keys = tuple[str | int, ...]
"""The keys and indexes that lead from the root of a document to a value."""


class Location(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class YamlFault(Exception):
    """An error that makes a YAML file unreadable, with its position."""

    def __init__(self, place: Location, detail: str) -> None:
        super().__init__(detail)
        self.place = place
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Included:
    """A file whose text replaces its ``!include`` in the document."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class Includer:
    """Reads the files that the file at ``path`` includes: text files in or below its folder."""

    path: Path

    def read(self, name: str) -> Included:
        """Return the file called ``name``; raise ValueError with the reason if the file may not be included."""
        folder = self.path.parent.resolve()
        file = (folder / name).resolve()
        if not name.strip():
            raise ValueError("!include expects the name of a file")
        if not file.is_relative_to(folder):
            raise ValueError(f"!include {name}: outside of the folder of {self.path.name}; only files in it are read")
        if file == self.path.resolve():
            raise ValueError(f"!include {name}: the file includes itself")
        if file.suffix in _YAML:
            raise ValueError(f"!include {name}: only text is included, such as a Python snippet; not YAML")
        return Included(file, _read(file, name))


def _read(file: Path, name: str) -> bytes:
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ValueError(f"!include {name}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise ValueError(f"!include {name}: more than {MAX_BYTES:,} bytes")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"!include {name}: not UTF-8 (byte {error.start + 1})") from None
    return data


class YamlDocument(dict[str, Any]):
    """The mapping at the root of a YAML file.

    ``places`` maps the path of every key and list element to its position. ``includes`` maps the path of each
    ``!include`` to the included file.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        places: Mapping[Keys, Location] | None = None,
        includes: Mapping[Keys, Included] | None = None,
    ) -> None:
        super().__init__(values)
        self.places = dict(places or {})
        self.includes = dict(includes or {})

    def place(self, keys: Sequence[str | int]) -> Location:
        """Return the position of the key at the end of ``keys``, or of its nearest existing parent."""
        path = tuple(keys)
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Location(1, 1))


def line_in(document: Mapping[str, Any], keys: Sequence[str | int]) -> int:
    """Return the line of the key at the end of ``keys``, or 1 if ``document`` is a plain mapping."""
    return document.place(keys).line if isinstance(document, YamlDocument) else 1


def line_of(document: Mapping[str, Any], field: str) -> int:
    """Return the line of a field in the notation used in messages, such as ``mixture.tasks[0]``."""
    return line_in(document, keys_of(field))


def keys_of(field: str) -> Keys:
    """Return the keys and indexes of a field in the notation of :func:`field_name`."""
    return tuple(int(part) if part.isdecimal() else part for part in re.findall(r"[^.\[\]]+", field))


def field_name(keys: Sequence[str | int]) -> str:
    """Return the path as text, such as ``definition.scorers[0].type``, or ``_root`` for an empty path."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".") or "_root"
