"""The event loop of eval functions, in a thread of its own: an application that blocks it stalls no request."""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from pytest_lmeval.text import portable_path

_BEAT_S = 0.5
_GRACE_S = 2.0
_Result = TypeVar("_Result")


class Loop:
    """An event loop in a daemon thread, begun when it is first used.

    ``before_steps`` is called in it each time before callbacks run.
    """

    def __init__(self, before_steps: Callable[[], None]) -> None:
        self._before_steps = before_steps
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._beat_at = 0.0
        self._starting = threading.Lock()
        self._is_closing = False

    @property
    def events(self) -> asyncio.AbstractEventLoop:
        """The loop itself, running."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.SelectorEventLoop(_Selector(self._before_steps))
                self._beat_at = time.monotonic()
                self._thread = threading.Thread(target=self._run, name="lmeval-functions", daemon=True)
                self._thread.start()
            return self._loop

    @property
    def is_running(self) -> bool:
        """Whether anything was begun in it."""
        return self._loop is not None

    def is_here(self) -> bool:
        """Tell whether the caller runs in it."""
        return self._thread is threading.current_thread()

    def submit(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run ``work`` in the loop; may be called from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self.events)

    def silent_s(self) -> float:
        """Return for how many seconds the loop has not turned, as it does not while a coroutine blocks it."""
        return time.monotonic() - self._beat_at if self._loop is not None else 0.0

    def busy_at(self) -> str:
        """Return where the loop's thread is: ``file:line in function``, of the innermost code that is not installed."""
        frame = sys._current_frames().get(self._thread.ident or 0) if self._thread is not None else None
        while frame is not None:
            name = frame.f_code.co_filename
            if "site-packages" not in name and not name.startswith((sys.base_prefix, "<")):
                return f"{portable_path(name)}:{frame.f_lineno} in {frame.f_code.co_name}"
            frame = frame.f_back
        return "code that cannot be told"

    def close(self) -> None:
        """Cancel what is left and end the thread; one that hangs is left alone."""
        if self._loop is None or self._thread is None:
            return
        self._is_closing = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=_GRACE_S)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        self._beat()
        while not self._is_closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # Raised in a task that an example started; the other examples go on.
                continue
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_S / 2))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _beat(self) -> None:
        assert self._loop is not None
        self._beat_at = time.monotonic()
        self._loop.call_later(_BEAT_S, self._beat)


class _Selector(selectors.DefaultSelector):
    """Calls a function between the wait for events and the callbacks: once per turn of the loop, in its thread."""

    def __init__(self, before_steps: Callable[[], None]) -> None:
        super().__init__()
        self._before_steps = before_steps

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(timeout)
        self._before_steps()
        return ready
