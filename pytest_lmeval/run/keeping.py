"""Record answers that wait to be scored, so that they survive the end of the process."""

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
"""The looks at an answer before it is recorded: it has waited for a second then."""
_SLOW_MS = 1000


class Keeper:
    """Looks every `LOOK_S` seconds, in a thread of its own, and records each answer once.

    An answer that took the model a second or more is recorded when it is first seen, another when it has waited for a
    second: if the model is faster than the scoring, every answer waits briefly, and recording them all would take a
    tenth of the run. ``arrived`` returns the answers that wait. Log-probabilities are not recorded.
    """

    def __init__(self, arrived: Callable[[], Iterable[Arrived]], note: Note) -> None:
        self._arrived = arrived
        self._note = note
        self._seen: dict[Hashable, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="lmeval-keep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Record the answers that still wait, as when a run is stopped."""
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
