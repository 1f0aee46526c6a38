"""Which of several texts stand in another, and whether a pattern does; runs in the process of worker_child.py."""

from __future__ import annotations

import re
from collections.abc import Sequence


def found(words: Sequence[str], text: str) -> list[int]:
    """Return the places in ``words`` of those that stand in ``text``, in any case, with no letter or digit beside them.

    Takes ``O(len(text) * len(word))`` time for each.
    """
    return [place for place, word in enumerate(words) if _stands_in(word, text)]


def matches(pattern: str, text: str) -> bool:
    """Tell whether a regular expression is found in ``text``; that can take time without end."""
    return re.search(pattern, text) is not None


def _stands_in(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None
