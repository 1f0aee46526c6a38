"""Record answers that wait for scoring, so that they survive the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from pytest_lmeval.types import Completion, Exchange, Generate, Response

if TYPE_CHECKING:
    from pytest_lmeval.asking.engine import Arrived
    from pytest_lmeval.run.answers import Note

LOOK_S = 0.5
_LOOKS = 3
"""An answer is recorded once this many looks have seen it, which takes a second."""
_SLOW_MS = 1000


class Keeper:
    """Checks every `LOOK_S` seconds, in its own thread, and records each answer once.

    An answer that took the model a second or more is recorded at the first check, any other answer after it has waited
    for a second. If the model is faster than the scoring, every answer waits briefly, and recording all of them would
    take a tenth of the run. ``arrived`` returns the waiting answers. Log-probabilities are not recorded.
    """

    def __init__(self, arrived: Callable[[], Iterable[Arrived]], note: Note) -> None:
        self._arrived = arrived
        self._note = note
        self._seen: dict[Hashable, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="lmeval-keep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Record the answers that are still waiting, for example when a run is stopped."""
        self._ended.set()
        self._thread.join()
        for each in self._arrived():
            if each.is_new and self._seen.get(each.key, 0) < _LOOKS:
                self._keep(each)

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        before, self._seen = self._seen, {}
        for each in self._arrived():
            looks = before.get(each.key, 0) + 1
            if looks < _LOOKS and any(_is_slow(response) for response in each.responses):
                looks = _LOOKS
            self._seen[each.key] = looks
            if each.is_new and looks == _LOOKS:
                self._keep(each)

    def _keep(self, each: Arrived) -> None:
        for request, response in zip(each.requests, each.responses, strict=False):
            if isinstance(request, Generate) and isinstance(response, Completion):
                self._note(each.key.task.name, each.key.example.id, Exchange(request, response))


def _is_slow(response: Response) -> bool:
    return isinstance(response, Completion) and (response.latency_ms or 0) >= _SLOW_MS
