"""Hand out whole batches to xdist workers, so that each batch is sent by only one process, and only once.

The controller has no items, so it plans from node ids, with the same function as the workers.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_lmeval.plugin.collect.locate import is_example_id, is_plain_python
from pytest_lmeval.plugin.private.workers import Worker, expected_workers, output_of, worker_failures
from pytest_lmeval.plugin.settings.models import label_in
from pytest_lmeval.run.plan import plan_batches

SCHEDULER: pytest.StashKey[BatchScheduling] = pytest.StashKey()
"""The controller's scheduler."""
_MAX_CRASHES = 2


class BatchScheduling:
    """An xdist scheduler that hands out examples in batches, and plain tests one by one."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self._batch_size: int = config.option.lm_batch_size
        self._expected = expected_workers(config)
        # A worker starts an item only once it has received the next item.
        share: int = config.option.lm_concurrency // max(1, self._expected)
        self._low_water = max(2, self._batch_size, share)
        self._collections: dict[Worker, Sequence[str]] = {}
        self._ids: Sequence[str] | None = None
        self._units: deque[list[int]] = deque()
        self._unit_of: dict[int, int] = {}
        self._crashes: dict[int, int] = {}
        self._pending: dict[Worker, dict[int, None]] = {}
        self._began: dict[Worker, float] = {}
        self._unreachable: set[Worker] = set()

    @property
    def nodes(self) -> list[Worker]:
        """The active workers."""
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        """True once enough workers have reported their collections."""
        return self._ids is not None or len(self._collections) >= self._expected

    @property
    def tests_finished(self) -> bool:
        """True if all items have been handed out, and each worker has at most one unfinished item."""
        if not self.collection_is_completed or self._units:
            return False
        return all(len(pending) < 2 for pending in self._pending.values())

    @property
    def has_pending(self) -> bool:
        """True if anything is left to run."""
        return bool(self._units) or any(self._pending.values())

    def add_node(self, node: Worker) -> None:
        """Add a worker."""
        self._pending[node] = {}

    def add_node_collection(self, node: Worker, collection: Sequence[str]) -> None:
        """Store a worker's collection; a worker that joins late must have collected the same items."""
        if self._ids is not None:
            _check_same(self._ids, collection, node)
        self._collections[node] = collection

    def mark_test_complete(self, node: Worker, item_index: int, duration: float = 0) -> None:
        """Remove a finished item, and give its worker more work."""
        self._pending[node].pop(item_index, None)
        self._began[node] = time.monotonic()
        if self._is_stopping():
            self._take_back()
        else:
            self._feed(node)

    def mark_test_pending(self, item: str) -> None:
        """Put an item back, ahead of all other items."""
        assert self._ids is not None
        self._units.appendleft([list(self._ids).index(item)])
        for node in self.nodes:
            self._feed(node)

    def remove_pending_tests_from_node(self, node: Worker, indices: Sequence[int]) -> None:
        """Remove items that a worker returned."""
        for index in indices:
            self._pending[node].pop(index, None)

    def remove_node(self, node: Worker) -> str | None:
        """Remove a worker; return the node id of the item that crashed the worker, or None.

        Queue the worker's other items again, but after two crashes in a batch, drop the rest of it. Dropped items make
        the run incomplete.
        """
        pending = list(self._pending.pop(node))
        self._collections.pop(node, None)
        self._unreachable.discard(node)
        if not pending:
            for other in self.nodes:
                self._feed(other)
            return None
        assert self._ids is not None
        if output_of(node) is not None:
            # The worker exited voluntarily, for example by pytest.exit: end the run.
            self._units.clear()
            return None
        crashed, rest = pending[0], pending[1:]
        self._crashes[self._unit_of[crashed]] = self._crashes.get(self._unit_of[crashed], 0) + 1
        for unit in reversed(self._regroup(rest)):
            if self._crashes.get(self._unit_of[unit[0]], 0) < _MAX_CRASHES:
                self._units.appendleft(unit)
        for other in self.nodes:
            self._feed(other)
        return self._ids[crashed]

    def schedule(self) -> None:
        """Hand out the first work; xdist calls this method again when another worker joins."""
        if self._ids is None:
            self._plan()
        # Alternate between workers, to spread a short run.
        while sum(self._feed_one(node) for node in self.nodes):
            pass
        for node in self.nodes:
            self._feed(node)

    def _plan(self) -> None:
        collections = list(self._collections.values())
        first = list(collections[0])
        for node, collection in self._collections.items():
            _check_same(first, collection, node)
        self._ids = first
        keyed = ((_group(nodeid, index, self.config), index) for index, nodeid in enumerate(first))
        self._units = deque(plan_batches(keyed, self._batch_size))
        self._unit_of = {index: number for number, unit in enumerate(self._units) for index in unit}

    def _is_stopping(self) -> bool:
        maxfail = self.config.option.maxfail
        return bool(maxfail and worker_failures(self.config) >= maxfail)

    def _take_back(self) -> None:
        # A worker's own shutdown is queued behind its items. Take items back one by one: a worker returns nothing from
        # a list that includes an item that it has started. It has started the first two items, or is about to start
        # them.
        self._units.clear()
        for node, pending in self._pending.items():
            for index in list(pending)[2:]:
                with contextlib.suppress(OSError):  # the worker has died
                    node.send_steal([index])

    def _regroup(self, indices: Sequence[int]) -> list[list[int]]:
        units: dict[int, list[int]] = {}
        for index in indices:
            units.setdefault(self._unit_of[index], []).append(index)
        return list(units.values())

    def _feed(self, node: Worker) -> None:
        while self._feed_one(node):
            pass
        if self._takes_work(node) and not self._units and len(self._pending[node]) < 2:
            # Let the worker run its last item.
            node.shutdown()

    def _feed_one(self, node: Worker) -> bool:
        if not self._units or not self._takes_work(node) or len(self._pending[node]) > self._low_water:
            return False
        unit = self._units.popleft()
        try:
            node.send_runtest_some(unit)
        except OSError:
            # The worker has died: xdist will notice, and replace it only then.
            self._unreachable.add(node)
            self._units.appendleft(unit)
            return False
        if not self._pending[node]:
            self._began[node] = time.monotonic()
        self._pending[node].update(dict.fromkeys(unit))
        return True

    def longest(self) -> tuple[str, float] | None:
        """Return the node id and start time of the workers' longest-running test, or None if no test is running."""
        running = {node: next(iter(pending)) for node, pending in self._pending.items() if pending}
        if self._ids is None or not running:
            return None
        node = min(running, key=self._began.__getitem__)
        return self._ids[running[node]], self._began[node]

    def _takes_work(self, node: Worker) -> bool:
        is_ready = self._ids is not None and node in self._collections
        return is_ready and not node.shutting_down and node not in self._unreachable


def _group(nodeid: str, index: int, config: pytest.Config) -> str | int:
    # A plain test, or an eval function's example, forms its own group: its index is unique.
    file = nodeid.partition("::")[0]
    if not is_example_id(nodeid, config) or is_plain_python(Path(file)):
        return index
    # Each model has separate batches.
    return f"{file}[{label_in(nodeid, config)}]"


def _check_same(expected: Sequence[str], collected: Sequence[str], node: Worker) -> None:
    if list(expected) == list(collected):
        return
    pairs = zip(expected, collected, strict=False)
    number = next(
        (number for number, (one, other) in enumerate(pairs) if one != other), min(len(expected), len(collected))
    )
    one, other = ((ids[number] if number < len(ids) else "nothing") for ids in (expected, collected))
    detail = f"item {number} is {other}; another worker has {one}"
    raise pytest.UsageError(f"worker {node.gateway.id} collected other items than the other workers: {detail}")
