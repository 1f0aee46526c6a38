"""Turn any text into a unique file name that every file system accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 200
"""The maximum length of a name in characters; it leaves room for a number, a prefix and a suffix within 255."""
_OTHERS = re.compile(r"[^A-Za-z0-9_-]+")
_OTHERS_BUT_DOTS = re.compile(r"[^A-Za-z0-9._-]+")


def safe_name(text: str, usual: str, *, dots: bool = False) -> str:
    """Return ``text`` as a file name without suffix, or ``usual`` if no character remains.

    Hyphens replace all characters except ASCII letters, digits and ``_``. If ``dots`` is True, the name keeps dots,
    except at its ends.
    """
    found = (_OTHERS_BUT_DOTS if dots else _OTHERS).sub("-", text).strip("-.")
    return found[:LONGEST].rstrip("-.") or usual


class FileNames:
    """Assigns each file name only once; names that differ only in case count as equal, as on some file systems."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = {name.casefold(): name for name in reserved}

    def take(self, name: str) -> str:
        """Take ``name`` and return ""; if an equal name is already taken, return that name."""
        if first := self._taken.get(name.casefold()):
            return first
        self._taken[name.casefold()] = name
        return ""

    def give(self, name: str, joint: str = "-") -> str:
        """Take and return ``name``; if it is already taken, append ``joint`` and a number."""
        found, number = name, 2
        while found.casefold() in self._taken:
            found, number = f"{name}{joint}{number}", number + 1
        self.take(found)
        return found
