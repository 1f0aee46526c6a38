"""A YAML file as plain values, and where in it each of them stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Keys = tuple[str | int, ...]
"""The keys and indexes that lead from the root of a document to a value."""


class Location(NamedTuple):
    """A line and a column, both from 1."""

    line: int
    column: int


class YamlFault(Exception):
    """What makes a YAML file unreadable, and where it stands."""

    def __init__(self, place: Location, detail: str) -> None:
        super().__init__(detail)
        self.place = place
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Included:
    """A file that stands in the document in place of its ``!include``."""

    path: Path
    data: bytes


class YamlDocument(dict[str, Any]):
    """The mapping at the root of a YAML file.

    ``places`` has the place of every key and list element by the path to it; ``includes`` what ``!include`` brought in.
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
        """Return where the key at the end of ``keys`` stands; of one that is not there, what it would stand in."""
        path = tuple(keys)
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Location(1, 1))


def field_name(keys: Sequence[str | int]) -> str:
    """Return the path as people write it: ``definition.scorers[0].type``; ``_root`` for the document itself."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".") or "_root"
