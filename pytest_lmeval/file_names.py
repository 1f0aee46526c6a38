"""Make unique file names from any text; they are safe on every file system."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 200
"""The maximum length of a name, in characters: 255 on most file systems, less room for a number, prefix and suffix."""
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_OTHERS_BUT_DOTS = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str, usual: str, *, dots: bool = False) -> str:
    """Return ``text`` as a file name without suffix, or ``usual`` if ``text`` has no allowed character.

    ASCII letters, digits and ``_-`` are allowed; with ``dots``, so are dots that are neither first nor last.
    """
    found = (_OTHERS_BUT_DOTS if dots else _OTHERS).sub("-", text).strip("-.")
    return found[:LONGEST].rstrip("-.") or usual


class FileNames:
    """Gives each name to one owner; like some file systems, it treats names that differ only in case as equal."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {name.casefold(): name for name in reserved}

    def take(self, name: str) -> str:
        """Take ``name`` and return ""; if an equal name is already taken, return that name."""
        if first := self._taken.get(name.casefold()):
            return first
        self._taken[name.casefold()] = name
        return ""

    def give(self, name: str, joint: str = "-") -> str:
        """Take and return ``name``, with a ``joint`` and a number appended if it is taken."""
        found, number = name, 2
        while found.casefold() in self._taken:
            found, number = f"{name}{joint}{number}", number + 1
        self.take(found)
        return found
