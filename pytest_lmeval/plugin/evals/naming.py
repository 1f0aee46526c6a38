"""What examples of test functions are called: nothing in it is secret, gives orders, or is there twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_lmeval.plugin.private import show_parameters_as
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.text import node_name


class EvalNames:
    """The ids and the names of examples that must not be mistaken for each other.

    Parameters may come from outside, and pytest prints what it makes of them as it is.
    """

    def __init__(self, scrubber: Scrubber) -> None:
        self._hide: Callable[[str], str] = scrubber.scrub_answer if scrubber else str
        self._ids: set[str] = set()
        self._names: set[str] = set()

    def id(self, raw: str) -> str:
        """Return the id of an example: that given, without secrets."""
        return _unique(self._hide(raw), self._ids)

    def rename(self, item: Any) -> None:
        """Have an item with parameters called as may be printed, wherever pytest has its name."""
        callspec = getattr(item, "callspec", None)
        raw = "" if callspec is None else self._hide(callspec.id)
        shown = raw if raw.isidentifier() or not raw else node_name(raw)
        if callspec is not None and shown != callspec.id:
            show_parameters_as(item, _unique(shown, self._names))


def _unique(text: str, taken: set[str]) -> str:
    name, number = text, 2
    while name in taken:
        name, number = f"{text}-{number}", number + 1
    taken.add(name)
    return name
