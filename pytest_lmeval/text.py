"""Text that came from outside, made fit to be shown."""

from __future__ import annotations

import os

__all__ = ["portable_path", "printable"]


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Return ``text`` with every control character and lone surrogate but those in ``keep`` spelled out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _spelled_out(char) for char in text)


def _spelled_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def portable_path(path: str) -> str:
    """Return the part of the path of a source file that is the same on every machine.

    What follows ``site-packages``, what follows the working folder, or else the file's name alone.
    """
    _, installed, inside = path.rpartition(f"{os.sep}site-packages{os.sep}")
    if installed:
        return inside
    try:
        project = os.path.join(os.getcwd(), "")
    except OSError:  # the folder is gone
        return os.path.basename(path)
    return path.removeprefix(project) if path.startswith(project) else os.path.basename(path)
