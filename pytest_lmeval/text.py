"""Text that came from outside, made fit to be shown."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str, *, keep: str = "\n\t") -> str:
    """Return ``text`` with every control character and lone surrogate but those in ``keep`` spelled out."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in keep else _spelled_out(char) for char in text)


def _spelled_out(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
