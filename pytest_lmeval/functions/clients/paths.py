"""Select the paths forwarded to the adapter's server: those that ask no chat model, and those of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_lmeval.errors import UsageError

_ALWAYS = ("POST /embeddings", "POST /moderations", "POST /rerank", "GET /models")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_SEGMENT = r"(?!\.{1,2}(/|$))[A-Za-z0-9_.:~-]+"
_GIVEN = re.compile(rf"(?:({'|'.join(_METHODS)}) +)?/?((?:\*|{_SEGMENT})(?:/(?:\*|{_SEGMENT}))*)")


class ForwardPaths:
    """The forwarded methods and paths; ``given`` are those of ini ``lm_forward_paths``.

    A path is ``METHOD PATH``, or PATH alone for POST; ``*`` matches one part between slashes. Raise UsageError for an
    invalid path.
    """

    def __init__(self, given: Iterable[str] = ()) -> None:
        self.known = (*_ALWAYS, *map(_path, given))
        self._patterns = [re.compile(re.escape(each).replace(r"\*", _SEGMENT)) for each in self.known]

    def has(self, method: str, path: str) -> bool:
        """Tell whether a request is forwarded; a path with an escape or ``..`` never is."""
        return any(pattern.fullmatch(f"{method} {path}") for pattern in self._patterns)


def _path(line: str) -> str:
    found = _GIVEN.fullmatch(line.strip())
    if found is None:
        expected = "a path below the server's address, such as completions, GET models/* or POST audio/speech"
        raise UsageError(f"ini lm_forward_paths: expected {expected}, got {line!r:.80}")
    return f"{found[1] or 'POST'} /{found[2]}"
