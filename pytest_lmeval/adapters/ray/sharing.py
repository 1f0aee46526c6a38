"""Which replica gets which requests: pure bookkeeping, without a clock, a thread or Ray."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

MOST_DEATHS = 2
"""A request that was with so many replicas that died is asked no more."""


@dataclass(eq=False, slots=True)
class SharedRequest:
    """A request on its way: ``deliver`` takes its answer, and ``is_dropped`` says that nobody wants it any more.

    ``deaths`` is how many replicas died that had it.
    """

    request: Any
    deliver: Callable[[Any], None]
    is_dropped: Callable[[], bool] = lambda: False
    deaths: int = 0


@dataclass(eq=False, slots=True)
class SentBatch:
    """Requests that one replica has together, and since when its model may be at them.

    One that is ``alone`` is all that its replica has. One that is ``late`` is answered already, with a timeout.
    """

    requests: list[SharedRequest]
    began: float
    alone: bool = False
    late: bool = False


@dataclass(eq=False, slots=True)
class Load:
    """What one replica has, in the order in which it was sent, and when it last was idle or answered."""

    batches: list[SentBatch] = field(default_factory=list)
    since: float = 0.0

    @property
    def requests(self) -> int:
        """How many requests the replica has."""
        return sum(len(batch.requests) for batch in self.batches)

    @property
    def takes_no_more(self) -> bool:
        """Whether it has something after which nobody knows whether it lives: a suspect, or a late batch."""
        return any(batch.alone or batch.late for batch in self.batches)


class Sharing:
    """Shares requests out: the least busy replica first, ``ahead`` batches of up to ``batch_size`` each.

    Of little, each replica gets its part. What was with a replica that died goes first, one request by itself to a
    replica that has nothing else: if that dies, too, it is known what of. A model that ``streams`` begins with all that
    it has at once, so that it gets as much, request by request.
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
        """Send to a replica from now on, too."""
        self._loads[replica] = Load(since=now)

    def leave(self, replica: Hashable, *, blames: bool = True) -> list[SharedRequest]:
        """Send nothing more to a replica that died; return those of its requests that are asked no more.

        Only where this ``blames`` them does the death count: not where a node could not be reached.
        """
        load = self._loads.pop(replica, Load())
        lost = [request for batch in load.batches if not batch.late for request in batch.requests]
        for request in lost:
            request.deaths += blames
        self._suspects.extend(request for request in lost if request.deaths < MOST_DEATHS)
        return [request for request in lost if request.deaths >= MOST_DEATHS]

    def next(self, now: float) -> tuple[Hashable, SentBatch] | None:
        """Return what to send next, and to whom; None where nothing waits, or nobody has room."""
        free = [replica for replica, load in self._loads.items() if not load.takes_no_more]
        free.sort(key=lambda replica: self._loads[replica].requests)
        _drop(self._suspects)
        if self._suspects:
            # As many as there are suspects get nothing more until they are idle.
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
        """Note that a replica answered a batch; return whether it was waited for: not of one that left."""
        load = self._loads.get(replica)
        if load is None or batch not in load.batches:
            return False
        load.batches.remove(batch)
        load.since = now
        if load.batches and not self._streams:
            load.batches[0].began = now
        return not batch.late

    def overdue(self, now: float, limit_s: float) -> Iterator[SentBatch]:
        """Yield the batches whose time is over, ``limit_s`` for each request, once; from then on they are late."""
        for load in self._loads.values():
            for batch in load.batches if self._streams else load.batches[:1]:
                if not batch.late and now - batch.began > limit_s * len(batch.requests):
                    batch.late = True
                    yield batch

    def silent(self, now: float, wait_s: float) -> list[Hashable]:
        """Return the replicas that have something and have answered nothing for ``wait_s``."""
        return [replica for replica, load in self._loads.items() if load.batches and now - load.since > wait_s]

    def take_all(self) -> list[SharedRequest]:
        """Return all that is not answered: it is asked no more."""
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
