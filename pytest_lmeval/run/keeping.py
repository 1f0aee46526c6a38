"""Notes answers that wait for their turn to be scored, so that whatever ends the process does not lose them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from pytest_lmeval.types import Completion, Exchange, Generate

if TYPE_CHECKING:
    from pytest_lmeval.asking.engine import Arrived
    from pytest_lmeval.run.answers import Note

LOOK_S = 0.25


class Keeper:
    """Looks every `LOOK_S` seconds, in a thread of its own, and notes each answer once.

    ``arrived`` returns the answers that are there. What is scored at once is never seen and costs nothing. How probable
    a text is is not noted.
    """

    def __init__(self, arrived: Callable[[], Iterable[Arrived]], note: Note) -> None:
        self._arrived = arrived
        self._note = note
        self._noted: set[Hashable] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="lmeval-keep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look once more, as where a run is stopped before the turn of what has arrived."""
        self._ended.set()
        self._thread.join()
        self._look()

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_S):
            self._look()

    def _look(self) -> None:
        waiting = list(self._arrived())
        for each in waiting:
            if each.is_new and each.key not in self._noted:
                self._keep(each)
        self._noted = {each.key for each in waiting}

    def _keep(self, each: Arrived) -> None:
        for request, response in zip(each.requests, each.responses, strict=False):
            if isinstance(request, Generate) and isinstance(response, Completion):
                self._note(each.key.task.name, each.key.example.id, Exchange(request, response))
