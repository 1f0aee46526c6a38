"""Decide which replica receives which requests; this module uses no clock, threads or Ray."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_DEATHS = 2
"""If this many replicas have died while they had a request, the run drops the request."""


@dataclass(eq=False, slots=True)
class SharedRequest:
    """A request, with ``deliver`` for its answer, and ``is_dropped``, which returns True once the run needs no answer.

    ``deaths`` is the number of replicas that died while they had the request.
    """

    request: Any
    deliver: Callable[[Any], None]
    is_dropped: Callable[[], bool] = lambda: False
    deaths: int = 0


@dataclass(eq=False, slots=True)
class SentBatch:
    """Requests that a replica receives together, and ``began``, the earliest time at which its model works on them.

    ``alone`` is True if the batch must be the only batch of its replica. ``late`` is True if the batch's requests have
    already received a timeout as their answer.
    """

    requests: list[SharedRequest]
    began: float
    alone: bool = False
    late: bool = False


@dataclass(eq=False, slots=True)
class Load:
    """The batches of a replica, in order, and ``since``, the last time at which the replica was idle or answered."""

    batches: list[SentBatch] = field(default_factory=list)
    since: float = 0.0

    @property
    def requests(self) -> int:
        """The number of unanswered requests that the replica has."""
        return sum(len(batch.requests) for batch in self.batches)

    @property
    def takes_no_more(self) -> bool:
        """True if the replica has a batch that is ``alone`` or ``late``, and may therefore die or be dead."""
        return any(batch.alone or batch.late for batch in self.batches)


class Sharing:
    """Gives requests to the least busy replica first; a replica has up to ``ahead`` batches of ``batch_size`` requests.

    If few requests wait, all replicas share them. A dead replica's requests come first, each alone on an idle replica.
    If the second replica also dies, the request counts as the cause of both deaths. If the model ``streams``, it works
    on all its requests concurrently, so each request is a separate batch.
    """

    def __init__(self, ahead: int, batch_size: int, *, streams: bool = False) -> None:
        self._streams = streams
        self._ahead, self._batch_size = (ahead * batch_size, 1) if streams else (ahead, batch_size)
        self._waiting: deque[SharedRequest] = deque()
        self._suspects: deque[SharedRequest] = deque()
        self._loads: dict[Hashable, Load] = {}

    def add(self, request: SharedRequest) -> None:
        """Queue a request."""
        self._waiting.append(request)

    def join(self, replica: Hashable, now: float) -> None:
        """Add a replica."""
        self._loads[replica] = Load(since=now)

    def leave(self, replica: Hashable, *, blames: bool = True) -> list[SharedRequest]:
        """Remove a dead replica; return the requests that the run must drop.

        ``blames`` is True if the death counts against the replica's requests, and False if the node was unreachable.
        """
        load = self._loads.pop(replica, Load())
        lost = [request for batch in load.batches if not batch.late for request in batch.requests]
        for request in lost:
            request.deaths += blames
        self._suspects.extend(request for request in lost if request.deaths < MOST_DEATHS)
        return [request for request in lost if request.deaths >= MOST_DEATHS]

    def next(self, now: float) -> tuple[Hashable, SentBatch] | None:
        """Return the next batch and its replica, or None if no request waits or no replica can take a batch."""
        free = [replica for replica, load in self._loads.items() if not load.takes_no_more]
        free.sort(key=lambda replica: self._loads[replica].requests)
        _drop(self._suspects)
        if self._suspects:
            # Reserve a replica for each suspect until it is idle.
            kept, free = free[: len(self._suspects)], free[len(self._suspects) :]
            if kept and not self._loads[kept[0]].batches:
                return kept[0], self._sent(kept[0], [self._suspects.popleft()], now, alone=True)
        chosen = next((replica for replica in free if len(self._loads[replica].batches) < self._ahead), None)
        _drop(self._waiting)
        if chosen is None or not self._waiting:
            return None
        size = min(self._batch_size, -(-len(self._waiting) // len(self._loads)))
        return chosen, self._sent(chosen, [self._waiting.popleft() for _ in range(size)], now)

    def answered(self, replica: Hashable, batch: SentBatch, now: float) -> bool:
        """Remove an answered batch; return True unless the batch is late or its replica was removed."""
        load = self._loads.get(replica)
        if load is None or batch not in load.batches:
            return False
        load.batches.remove(batch)
        load.since = now
        if load.batches and not self._streams:
            load.batches[0].began = now
        return not batch.late

    def overdue(self, now: float, limit_s: float) -> Iterator[SentBatch]:
        """Mark each batch that takes longer than ``limit_s`` per request as late, and yield the batch once."""
        for load in self._loads.values():
            for batch in load.batches if self._streams else load.batches[:1]:
                if not batch.late and now - batch.began > limit_s * len(batch.requests):
                    batch.late = True
                    yield batch

    def silent(self, now: float, wait_s: float) -> list[Hashable]:
        """Return the busy replicas that have not answered for ``wait_s`` seconds."""
        return [replica for replica, load in self._loads.items() if load.batches and now - load.since > wait_s]

    def take_all(self) -> list[SharedRequest]:
        """Remove and return all unanswered requests."""
        sent = [request for load in self._loads.values() for batch in load.batches for request in batch.requests]
        rest = [*sent, *self._suspects, *self._waiting]
        self._suspects.clear()
        self._waiting.clear()
        self._loads.clear()
        return rest

    def _sent(self, replica: Hashable, requests: list[SharedRequest], now: float, *, alone: bool = False) -> SentBatch:
        load, batch = self._loads[replica], SentBatch(requests, now, alone)
        if not load.batches:
            load.since = now
        load.batches.append(batch)
        return batch


def _drop(requests: deque[SharedRequest]) -> None:
    while requests and requests[0].is_dropped():
        requests.popleft()
