"""``os._exit`` in the process that keeps the record must not end a run green, nor leave an old board in its place."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

__all__ = ["ExitGuard"]


class ExitGuard:
    """Stands in for ``os._exit`` while a run is under way: the run is wound up as incomplete, then the process ends.

    A forked child ends as it would have: only the process that made the guard is held to it.
    """

    def __init__(self, wind_up: Callable[[int], int]) -> None:
        self._wind_up = wind_up
        self._owner = os.getpid()
        self._exit = os._exit

    def install(self) -> None:
        """Take the place of ``os._exit``."""
        os._exit = self

    def remove(self) -> None:
        """Give ``os._exit`` its place back."""
        os._exit = self._exit

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() == self._owner:
            self.remove()
            status = self._wind_up(status)
        self._exit(status)
