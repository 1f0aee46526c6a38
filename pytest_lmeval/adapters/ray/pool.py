"""Manage a run's replicas: one thread starts them, sends requests, and handles answers and deaths."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_lmeval.adapters.identity import ReplicaFacts, difference
from pytest_lmeval.adapters.ray.options import RayOptions, fault
from pytest_lmeval.adapters.ray.sharing import SentBatch, SharedRequest, Sharing
from pytest_lmeval.errors import AdapterDown, AdapterError, AdapterTimeout, RequestRefused, UsageError

_LOOK_S = 0.25
# The time that a request waits for others, to form a batch.
_GATHER_S = 0.002
_CLOSING_S = 3.0


@dataclass(eq=False, slots=True)
class PoolMember:
    """A started replica; ``facts`` is None until the replica's model is ready."""

    replica: Any
    started: float
    facts: ReplicaFacts | None = None

    @property
    def place(self) -> str:
        """The replica's process and node, for messages."""
        return "a replica that was not ready" if self.facts is None else self.facts.place


class Pool:
    """Starts replicas with ``start``, and sends requests to them; all this work runs in a single thread.

    A call from another thread becomes an event for this thread. ``finish`` waits for replicas that are closing.
    """

    def __init__(
        self, options: RayOptions, start: Callable[[], Any], finish: Callable[[Sequence[Any]], None] = lambda _: None
    ) -> None:
        self.think_tags: tuple[str, str] | None = None
        self.time_limit_s = float("inf")
        self.deaths = 0
        self.remarks: list[str] = []
        self.facts: ReplicaFacts | None = None
        self.failure: UsageError | None = None
        self._options = options
        self._start_one = start
        self._finish = finish
        self._restarts = options.restarts
        self._sharing = Sharing(options.ahead, options.batch_size)
        self._members: list[PoolMember] = []
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._down: AdapterDown | None = None
        self._begun = threading.Event()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="lmeval-replicas", daemon=True)

    def open(self) -> ReplicaFacts:
        """Start all replicas; return the first ready replica's facts, or raise UsageError if all replicas fail."""
        self._thread.start()
        for _ in range(self._options.replicas):
            self._events.put(self._start)
        try:
            while not self._begun.wait(_LOOK_S):
                pass
            if self.facts is None:
                raise self.failure or fault("no replica was started")
            return self.facts
        except BaseException:
            self.close()
            raise

    def ask(self, request: SharedRequest) -> None:
        """Queue a request; any thread may call this method."""
        self._events.put(partial(self._take, request))

    @property
    def places(self) -> list[dict[str, Any]]:
        """The node and process of each replica that is ready."""
        members = [member.facts for member in list(self._members) if member.facts is not None]
        return [{"node": facts.node, "pid": facts.pid} for facts in members]

    def close(self) -> None:
        """End the thread, let all replicas close their adapters, and then end the replicas."""
        if self._closed:
            return
        self._closed = True
        self._events.put(lambda: None)
        if self._thread.is_alive():
            self._thread.join(_CLOSING_S)
        ready = [member for member in self._members if member.facts is not None]
        self._finish([member.replica.close() for member in ready])
        for member in self._members:
            member.replica.end()

    def _run(self) -> None:
        while not self._closed:
            try:
                for event in self._next_events():
                    event()
                if not self._closed:
                    self._look_after(time.monotonic())
                    self._send_out()
            except Exception as error:  # waiting requests need an answer
                self._give_up(f"the thread of the replicas failed: {type(error).__name__}: {error}")

    def _next_events(self) -> list[Callable[[], None]]:
        try:
            found = [self._events.get(timeout=_LOOK_S)]
        except queue.Empty:
            return []
        time.sleep(_GATHER_S)
        while not self._events.empty():
            found.append(self._events.get())
        return found

    def _start(self) -> None:
        member = PoolMember(self._start_one(), time.monotonic())
        self._members.append(member)
        member.replica.load(lambda found, error: self._events.put(partial(self._loaded, member, found, error)))

    def _loaded(self, member: PoolMember, found: Any, error: BaseException | None) -> None:
        if member not in self._members:
            return
        if error is not None and self.facts is not None and member.replica.died(error):
            self._died(member, _reason(error))
        elif isinstance(found, ReplicaFacts):
            self._compare(member, found)
        else:
            self._refuse(member, str(found) if error is None else f"a replica could not be started: {_reason(error)}")

    def _compare(self, member: PoolMember, facts: ReplicaFacts) -> None:
        from pytest_lmeval import __version__

        if self.facts is None and facts.version != __version__:
            self._refuse(member, f"{facts.place} has pytest-lmeval {facts.version}, the run {__version__}")
        elif self.facts is not None and (other := difference(self.facts, facts)):
            self._refuse(member, f"another model on {facts.place}: {other}")
        else:
            member.facts = facts
            if self.facts is None:
                self.facts = facts
                if facts.streams:
                    self._sharing = Sharing(self._options.ahead, self._options.batch_size, streams=True)
                self._begun.set()
            self._sharing.join(member, time.monotonic())

    def _refuse(self, member: PoolMember, why: str) -> None:
        """Remove a replica; if no replica has been ready yet, stop the run."""
        self._remove(member)
        if self.facts is None:
            self._give_up(why)
        else:
            self.remarks.append(f"a replica was refused: {why}")
            self._check_alive(why)

    def _take(self, request: SharedRequest) -> None:
        if self._down is not None:
            request.deliver(self._down)
        else:
            self._sharing.add(request)

    def _send_out(self) -> None:
        while (found := self._sharing.next(time.monotonic())) is not None:
            member, batch = found
            assert isinstance(member, PoolMember)
            asked = [each.request for each in batch.requests]
            try:
                member.replica.ask(asked, self.think_tags, partial(self._when_answered, member, batch))
            except Exception as error:  # such as a request that cannot be pickled
                self._answered(member, batch, None, error)

    def _when_answered(self, member: PoolMember, batch: SentBatch, found: Any, error: BaseException | None) -> None:
        self._events.put(partial(self._answered, member, batch, found, error))

    def _answered(self, member: PoolMember, batch: SentBatch, found: Any, error: BaseException | None) -> None:
        if member not in self._members:
            return  # late: other replicas have the requests
        if error is not None and member.replica.died(error):
            self._died(member, _reason(error), blames=not member.replica.is_unreachable(error))
        elif self._sharing.answered(member, batch, time.monotonic()):
            wrong = AdapterError(f"the replica on {member.place} raised {_reason(error)}" if error else "")
            for request, answer in zip(batch.requests, found or [wrong] * len(batch.requests), strict=True):
                request.deliver(answer)

    def _died(self, member: PoolMember, reason: str, *, blames: bool = True) -> None:
        """Retry a dead replica's requests one by one; start another replica, at most ``restarts`` times."""
        self._remove(member)
        self.deaths += 1
        for request in self._sharing.leave(member, blames=blames):
            request.deliver(
                RequestRefused(f"two replicas died with this request, the last on {member.place}: {reason}")
            )
        if self._restarts:
            self._restarts -= 1
            self._start()
        self._check_alive(f"the last died on {member.place}: {reason}")

    def _remove(self, member: PoolMember) -> None:
        self._members.remove(member)
        member.replica.end()

    def _check_alive(self, why: str) -> None:
        if not self._members:
            self._give_up(f"stopped: no replica is left, {self.deaths} died (restarts={self._options.restarts}); {why}")

    def _give_up(self, why: str) -> None:
        if self.facts is None:
            self.failure = fault(why)
            self._begun.set()
        self._down = self._down or AdapterDown(why)
        for request in self._sharing.take_all():
            request.deliver(self._down)

    def _look_after(self, now: float) -> None:
        wait_s = self._options.wait_s
        for member in [one for one in self._members if one.facts is None and now - one.started > wait_s]:
            self._refuse(member, f"not ready within {wait_s:g} s (wait_s): is the cluster busy with other work?")
        for batch in self._sharing.overdue(now, self.time_limit_s):
            allowed = f"{self.time_limit_s:g} s for each of {len(batch.requests)} request(s) (--lm-timeout)"
            for request in batch.requests:
                request.deliver(AdapterTimeout(f"no response within {allowed}"))
        for silent in self._sharing.silent(now, wait_s):
            assert isinstance(silent, PoolMember)
            self._died(silent, f"it did not answer for {wait_s:g} s (wait_s)")


def _reason(error: BaseException) -> str:
    # Ray's messages are long: prefer the cause.
    cause = getattr(error, "cause", None)
    shown = cause if isinstance(cause, Exception) else error
    lines = [line.strip() for line in str(shown).splitlines() if line.strip()]
    return f"{type(shown).__name__}: {' '.join(lines)}"[:400]
