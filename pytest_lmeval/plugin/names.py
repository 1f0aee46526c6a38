"""Names for items that pytest's own syntax leaves alone."""

from __future__ import annotations

import re

__all__ = ["ItemNames"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class ItemNames:
    """Item names: the raw id with every character that pytest's own syntax might use replaced, kept unique."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def unique(self, raw: str) -> str:
        """Return a name for the example with the id ``raw`` that no other item of the file has."""
        name = base = _UNSAFE.sub("-", raw) or "-"
        number = 2
        while name in self._taken:
            name = f"{base}-{number}"
            number += 1
        self._taken.add(name)
        return name
