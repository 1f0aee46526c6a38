"""A model that is a formula: what it answers follows from what it is asked, in every process alike."""

from __future__ import annotations

import zlib


def total(context: str, text: str) -> float:
    """Return the log-probability of ``text`` after ``context``."""
    return -(_hash(context, text) % 9973) / 100 - 0.01 * len(text)


def is_greedy(context: str, text: str) -> bool:
    """Tell whether ``text`` is what the model would have written."""
    return _hash(context, text) % 3 == 0


def whole(text: str) -> float:
    """Return the log-probability of a whole text."""
    return -(_hash("", text) % 9973) / 10 - 1


def answer(prompt: str, repeat: int) -> str:
    """Return the completion number ``repeat`` of ``prompt``."""
    number = _hash(prompt, str(repeat))
    words = prompt.split()[-6:] or ["x"]
    word = words[number % len(words)]
    forms = [
        f"The answer is ({'ABC'[number % 3]}) {word}",
        f"{word} Paris",
        f"It is\n#### {number % 13}",
        f"so {number % 9}.",
    ]
    return forms[number % 4]


def _hash(*texts: str) -> int:
    return zlib.crc32("\0".join(texts).encode("utf-8", "surrogatepass"))
