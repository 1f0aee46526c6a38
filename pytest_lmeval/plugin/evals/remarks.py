"""What the end of a run says of its eval functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

_MOST = 20


class Remarks:
    """Sentences, each said once, and how many examples ran one at a time for which reason."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._one_by_one: Counter[tuple[str, str]] = Counter()

    def add(self, text: str) -> None:
        """Note a sentence."""
        self._texts[text] = None

    def one_by_one(self, task: str, reason: str) -> None:
        """Note that an example could not begin ahead of its turn."""
        self._one_by_one[task, reason] += 1

    def shared(self, task: str, value: object) -> None:
        """Note that a value in a row is not copied."""
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        self.add(f"{task}: a {kind} in a row is passed as it is: all calls share it, so none may change it")

    def lines(self, first: Iterable[str], last: Iterable[str]) -> list[str]:
        """Return all that is to be said: ``first`` comes before the sentences, ``last`` after them."""
        found = [
            f"{task}: {count} example{'s' if count > 1 else ''} ran one at a time: {reason}"
            for (task, reason), count in self._one_by_one.items()
        ]
        others = [*self._texts, *last]
        left = [f"and {len(others) - _MOST} more"] if len(others) > _MOST else []
        return [*found, *first, *others[:_MOST], *left]
