"""Regular expressions of JavaScript to those of Python, where the two differ."""

from __future__ import annotations

import re

from pytest_lmeval.interop.importers.promptfoo.nodes import LeftOut

_PARTS = re.compile(r"\\k<(\w+)>|\\.|\(\?<(?![=!])(\w+)>|\[\^\]|\[\]|\$|.", re.DOTALL)
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]", re.DOTALL)


def python_pattern(pattern: str) -> str:
    """Return a pattern that finds in Python what it finds in JavaScript without flags; raise LeftOut.

    Names of groups are spelt ``(?P<name>``, ``$`` is the very end of the text, digits and word characters are ASCII.
    """
    pieces, place = [], 0
    while place < len(pattern):
        of_class = _CLASS.match(pattern, place) if not pattern.startswith(("[^]", "[]"), place) else None
        found = of_class or _PARTS.match(pattern, place)
        assert found is not None  # the last alternative takes any character
        pieces.append(found[0] if of_class else _written(found))
        place = found.end()
    text = "".join(pieces)
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise LeftOut(f"no regular expression of Python: {error}") from None
    return f"(?a){text}" if re.search(r"\\[dDwWbB]", text) and not re.search(r"\\[sS]", text) else text


def _written(part: re.Match[str]) -> str:
    if part[1]:
        return f"(?P={part[1]})"
    if part[2]:
        return f"(?P<{part[2]}>"
    if part[0] in ("[^]", "[]"):
        return r"[\s\S]" if part[0] == "[^]" else r"(?!)"
    return {"$": r"\Z", r"\/": "/"}.get(part[0], part[0])
