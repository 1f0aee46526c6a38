"""``os._exit`` in the process that keeps the record must not end a run green, nor before the run is wound up."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

_INCOMPLETE = 3
_PATIENCE_S = 30.0


class ExitGuard:
    """Replaces ``os._exit`` during a run: the first call winds the run up, then the process ends.

    ``ending`` is the lock of whoever ends the run, by this guard or in the ordinary way. Calls from other threads wait
    for it; a call from within the ending ends the process at once. Neither ends it with status 0.

    A forked child ends as it would have: only the process that made the guard is held to it.
    """

    def __init__(self, wind_up: Callable[[int], int], ending: threading.RLock) -> None:
        self._wind_up = wind_up
        self._ending = ending
        self._is_winding_up = False
        self._owner = os.getpid()
        self._exit = os._exit

    def install(self) -> None:
        """Take the place of ``os._exit``."""
        os._exit = self

    def remove(self) -> None:
        """Give ``os._exit`` its place back, if this has it."""
        if os._exit is self:
            os._exit = self._exit

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() == self._owner:
            # Never released: the process ends here. The wait has a limit because the thread that holds the lock may
            # itself wait for this one.
            held = self._ending.acquire(timeout=_PATIENCE_S)
            status = self._wound_up(status) if held and not self._is_winding_up else status or _INCOMPLETE
        self._exit(status)

    def _wound_up(self, status: int) -> int:
        self._is_winding_up = True
        try:
            return self._wind_up(status)
        except BaseException:  # whatever it is, it must not return to the caller of os._exit
            traceback.print_exc()
            return status or _INCOMPLETE
