"""Record answers that wait for scoring, so that they are not lost if the process dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from pytest_lmeval.types import Completion, Exchange, Generate

if TYPE_CHECKING:
    from pytest_lmeval.asking.engine import Arrived
    from pytest_lmeval.run.answers import Note

LOOK_S = 0.5
_LOOKS = 3
"""The keeper records an answer at the third look that sees it, after about a second."""


class Keeper:
    """Looks for unrecorded answers every `LOOK_S` seconds in a thread, and records them.

    The keeper records an answer only after the answer has waited for about a second. If the model is faster than the
    scoring, every answer waits briefly, and recording every answer would take a tenth of the run. ``arrived`` returns
    the waiting answers.
    """

    def __init__(self, arrived: Callable[[], Iterable[Arrived]], note: Note) -> None:
        self._arrived = arrived
        self._note = note
        self._seen: dict[Hashable, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="lmeval-keep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread, and record the answers that are still waiting, for example because the run was stopped."""
        self._ended.set()
        self._thread.join()
        for each in self._arrived():
            if self._seen.get(each.key, 0) < _LOOKS:
                keep(self._note, each)

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        before, self._seen = self._seen, {}
        for each in self._arrived():
            looks = before.get(each.key, 0) + 1
            self._seen[each.key] = looks
            if looks == _LOOKS:
                keep(self._note, each)


def keep(note: Note, each: Arrived) -> None:
    """Record the new answers in ``each``, except log-probabilities."""
    for request, response in zip(each.requests, each.responses, strict=False) if each.is_new else ():
        if isinstance(request, Generate) and isinstance(response, Completion):
            note(each.key.task.name, each.key.example.id, Exchange(request, response))
