"""Which examples will be wanted next, so that their requests can be on their way by then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["Ahead"]


class Ahead:
    """Gives the examples of this process in the order in which they will run, each once.

    A serial run knows them all. A worker knows what it was handed; there the answer None means: nothing at present.
    """

    def __init__(self, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        self._items = items
        self._next = 0
        self._queue = _worker_queue(config)
        self._given: set[int] = set()

    def __call__(self) -> Any:
        """Return the next example that will be wanted, or None."""
        return self._from_items() if self._queue is None else self._from_queue()

    def _from_items(self) -> Any:
        while self._next < len(self._items):
            item = self._items[self._next]
            self._next += 1
            if hasattr(item, "example"):
                return item
        return None

    def _from_queue(self) -> Any:
        assert self._queue is not None
        with self._queue.lock() as queued:
            upcoming = [index for index in queued if isinstance(index, int) and index not in self._given]
        for index in upcoming:
            self._given.add(index)
            if hasattr(self._items[index], "example"):
                return self._items[index]
        return None


def _worker_queue(config: pytest.Config) -> Any:
    # Private to pytest-xdist. Without it a worker asks a batch when its first example runs, and no earlier.
    if not hasattr(config, "workerinput"):
        return None
    for plugin in config.pluginmanager.get_plugins():
        queue = getattr(plugin, "torun", None)
        if queue is not None and hasattr(queue, "lock"):
            return queue
    return _Nothing()


class _Nothing:
    """Stands in for a queue that could not be found."""

    def lock(self) -> _Nothing:
        return self

    def __enter__(self) -> tuple[()]:
        return ()

    def __exit__(self, *_: object) -> None:
        return None
