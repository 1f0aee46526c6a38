"""The first request to an adapter goes alone: what is wrong with all of them is found out with one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

ALONE_S = 5.0
"""How long the others wait at most."""


class Opening:
    """Lets as many requests be in flight as ``room`` says, until it says None, and for ``ALONE_S`` seconds at most.

    To be used in one event loop.
    """

    def __init__(self, room: Callable[[], int | None]) -> None:
        self._room = room
        self._inside = 0
        self._is_open = False
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    async def __aenter__(self) -> None:
        """Wait until a request may go."""
        if self._is_open:
            return
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ALONE_S, self._open)
        while not self._is_open and (room := self._room()) is not None and self._inside >= room:
            await self._changed.wait()
        self._inside += 1

    async def __aexit__(self, *_: object) -> None:
        """Note that a request has ended."""
        if self._is_open:
            return
        self._inside -= 1
        if self._room() is None:
            self._open()
        else:
            self._wake()

    def _open(self) -> None:
        self._is_open = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
