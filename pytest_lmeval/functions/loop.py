"""Run eval functions in an event loop in a separate thread, and keep each example's output separate.

If an application blocks this loop, requests continue, because they run in another loop.
"""

from __future__ import annotations

import asyncio
import io
import logging
import selectors
import sys
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future, wait
from typing import Any, Protocol, TypeVar

from pytest_lmeval.functions.example import CURRENT, ExampleState
from pytest_lmeval.functions.lost import watch_tasks
from pytest_lmeval.text import OURS, is_installed, portable_path

_BEAT_S = 0.5
_GRACE_S = 2.0
_ENDING_S = 5.0
_MOST = 1 << 20
_Result = TypeVar("_Result")


class SharedServer(Protocol):
    """A server that runs in the loop until the run ends."""

    async def end(self) -> None:
        """End the server."""


class Loop:
    """An event loop in a daemon thread, started on first use.

    ``before_steps`` runs in the loop before each round of callbacks. ``thread`` is the loop's thread once the loop
    runs. ``is_closing`` is True when the run is over. ``servers`` are the tool servers that examples share.
    """

    def __init__(self, before_steps: Callable[[], None]) -> None:
        self._before_steps = before_steps
        self._loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None
        self._beat_at = 0.0
        self._starting = threading.Lock()
        self._has_ended = threading.Event()
        self.is_closing = False
        self.servers: dict[object, SharedServer] = {}

    @property
    def events(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.SelectorEventLoop(_Selector(self._before_steps))
                watch_tasks(self._loop)
                self._beat_at = time.monotonic()
                self.thread = threading.Thread(target=self._run, name="lmeval-functions", daemon=True)
                self.thread.start()
            return self._loop

    def route_prints(self) -> None:
        """Route prints to examples if the loop has started, because it may run examples."""
        if self._loop is not None:
            self._before_steps()

    def submit(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Run ``work`` in the loop; call this from any thread except the loop's."""
        return asyncio.run_coroutine_threadsafe(work, self.events)

    def silent_s(self) -> float:
        """Return the seconds since the loop's last heartbeat; the heartbeat stops while a coroutine blocks the loop."""
        return time.monotonic() - self._beat_at if self._loop is not None else 0.0

    def busy_at(self) -> str:
        """Return the innermost project code that the loop's thread is running, as ``file:line in function``.

        Return "" if the thread is running this package, which no eval function can fix, or only installed code.
        """
        frame = sys._current_frames().get(self.thread.ident or 0) if self.thread is not None else None
        while frame is not None and frame.f_code is not Loop._run.__code__:
            name = frame.f_code.co_filename
            if name.startswith(OURS):
                return ""
            if not is_installed(name):
                return f"{portable_path(name)}:{frame.f_lineno} in {frame.f_code.co_name}"
            frame = frame.f_back
        return ""

    @property
    def busy_with(self) -> asyncio.Task[Any] | None:
        """The loop's current task."""
        return asyncio.current_task(self._loop) if self._loop is not None else None

    def close(self) -> None:
        """End the servers, cancel all tasks and end the thread; abandon a thread that does not end in time."""
        self.is_closing = True
        if self._loop is None or self.thread is None:
            return
        if self.servers:
            wait([self.submit(server.end()) for server in self.servers.values()], timeout=_ENDING_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._has_ended.wait(timeout=_GRACE_S)

    def _run(self) -> None:
        loop = self._loop
        assert loop is not None
        asyncio.set_event_loop(loop)
        self._beat()
        while not self.is_closing:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # A task that an example started raised this exception; other examples continue.
                continue
        try:
            self._end(loop)
        finally:
            self._has_ended.set()

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        deaf: Collection[asyncio.Task[Any]] = ()
        if left:
            _, deaf = loop.run_until_complete(asyncio.wait(left, timeout=_GRACE_S / 2))
        if deaf:
            # Releasing such a task raises GeneratorExit in it, in any thread, and the task may ignore that forever. The
            # frame of this daemon thread never releases the task.
            self._has_ended.set()
            threading.Event().wait()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _beat(self) -> None:
        assert self._loop is not None
        self._beat_at = time.monotonic()
        self._loop.call_later(_BEAT_S, self._beat)


class _Selector(selectors.DefaultSelector):
    """A selector that calls a function once in each turn of the loop, before the callbacks run."""

    def __init__(self, before_steps: Callable[[], None]) -> None:
        super().__init__()
        self._before_steps = before_steps

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(timeout)
        self._before_steps()
        return ready


def current_beside() -> ExampleState | None:
    """Return the example of the calling code if it runs concurrently, or None."""
    state = CURRENT.get()
    return state if state is not None and state.is_beside else None


def route_prints() -> None:
    """Route prints to examples, including prints to streams that pytest has set since the last call."""
    sys.stdout, sys.stderr = routed(sys.stdout, "stdout"), routed(sys.stderr, "stderr")


def routed(stream: Any, name: str) -> Any:
    """Return a stream that routes examples' prints; ``name`` is ``stdout`` or ``stderr``."""
    return stream if isinstance(stream, _Routed) else _Routed(stream, name)


def unroute_prints() -> None:
    """Restore the original streams."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, _Routed):
            setattr(sys, name, stream.stream)


class LogKeeper(logging.Handler):
    """Collects the log records of concurrent examples."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(levelname)-8s %(name)s:%(filename)s:%(lineno)d %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        state = current_beside()
        if state is not None:
            _keep(state, "log", f"{self.format(record)}\n")


def is_of_this_thread(record: logging.LogRecord) -> bool:
    """Return True if a record belongs to pytest's current item; all other log handlers use this as a filter."""
    return current_beside() is None


def sections(output: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Concatenate an example's output for each stream."""
    texts: dict[str, list[str]] = {}
    for name, text in output:
        texts.setdefault(name, []).append(text)
    return [(name, "".join(parts)) for name, parts in texts.items()]


def _keep(state: ExampleState, name: str, text: str) -> None:
    state.printed.append((name, text[:_MOST]))


class _Routed(io.TextIOBase):
    """A stream that collects the output of concurrent examples, and writes all other output to the original stream."""

    def __init__(self, stream: Any, name: str) -> None:
        self.stream = stream
        self._name = name

    def write(self, text: str) -> int:
        state = current_beside()
        if state is None:
            written: int = self.stream.write(text)
            return written
        _keep(state, self._name, text)
        return len(text)

    def flush(self) -> None:
        if current_beside() is None:
            self.stream.flush()

    def isatty(self) -> bool:
        return bool(self.stream.isatty())

    def fileno(self) -> int:
        number: int = self.stream.fileno()
        return number

    def writable(self) -> bool:
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # an attribute of the base class, a property here
        return str(self.stream.encoding)

    @property
    def buffer(self) -> Any:
        return self.stream.buffer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)
