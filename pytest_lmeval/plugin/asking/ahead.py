"""Which examples will be wanted next, so that their requests can be on their way by then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pytest_lmeval.plugin.collect.locate import is_record
from pytest_lmeval.plugin.private import is_worker, worker_queue


class Ahead:
    """Gives the examples of this process in the order in which they will run, each once.

    A serial run knows them all. A worker knows what it was handed; there the answer None means: nothing at present.
    """

    def __init__(
        self, config: pytest.Config, items: Sequence[pytest.Item], wanted: Callable[[object], bool] = is_record
    ) -> None:
        self._items = items
        self._wanted = wanted
        self._next = 0
        self._upcoming = worker_queue(config) if is_worker(config) else None
        self._given: set[int] = set()

    def catch_up(self, position: int) -> None:
        """Pass over everything up to ``position`` in the list of items: its turn has come, or gone."""
        self._next = max(self._next, position + 1)

    def __call__(self) -> Any:
        """Return the next example that will be wanted, or None."""
        return self._from_items() if self._upcoming is None else self._from_queue(self._upcoming())

    def _from_items(self) -> Any:
        while self._next < len(self._items):
            item = self._items[self._next]
            self._next += 1
            if self._wanted(item):
                return item
        return None

    def _from_queue(self, upcoming: Sequence[int]) -> Any:
        for index in upcoming:
            if index not in self._given:
                self._given.add(index)
                if self._wanted(self._items[index]):
                    return self._items[index]
        return None
