"""Two texts as one, with the words marked that only one of them has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_MOST_WORDS = 2000
_LEAST_SHARED = 0.3


def word_diff(before: str, after: str) -> str:
    """Return a text with ``[-what went-]`` and ``{+what came+}``; "" for texts that are equal or have little in common.

    >>> word_diff("It is on its way.", "It is lost.")
    'It is [-on its way-]{+lost+}.'
    """
    old, new = _WORDS.findall(before), _WORDS.findall(after)
    if before == after or not old or not new or len(old) + len(new) > _MOST_WORDS:
        return ""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return "".join(_marked(matcher, old, new)) if matcher.ratio() >= _LEAST_SHARED else ""


def _marked(matcher: SequenceMatcher[str], old: list[str], new: list[str]) -> Iterator[str]:
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind == "equal":
            yield "".join(old[start:end])
            continue
        if start < end:
            yield f"[-{''.join(old[start:end])}-]"
        if first < last:
            yield f"{{+{''.join(new[first:last])}+}}"
