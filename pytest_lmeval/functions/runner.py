"""Run examples concurrently in the loop, in threads, or one by one in the calling thread."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any

from pytest_lmeval.errors import AdapterError, AdapterTimeout, ScoringError
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.functions.example import CURRENT, ExampleState, stop
from pytest_lmeval.functions.lm import LmBase
from pytest_lmeval.functions.loop import Loop
from pytest_lmeval.functions.lost import look_at_tasks
from pytest_lmeval.functions.steps import Step

_CANCELLED = "cancelled before it began: another example's code cancels all tasks of the loop (asyncio.all_tasks())"
_IDLE_S = 1.0
_SETTLES_S, _LOOK_S = 0.5, 0.005
_LAST_WORDS_S = 1.0
"""The time for cleanup after a timeout, in seconds."""
_Work = Callable[[], Any]
_Queue = queue.SimpleQueue[Callable[[], _Work]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one function call: the exception, if there was one, and the duration."""

    state: ExampleState
    error: BaseException | None
    seconds: float


@dataclass(slots=True, eq=False)
class Running:
    """A started example; ``call`` calls its function once, and ``states`` has one entry for each repeat.

    ``in_thread`` is True if ``call`` runs in a thread. ``at_turn`` is True if the example runs as pytest's current
    item, so that pytest captures its prints. ``done`` is set when ``outcomes`` is complete.
    """

    call: Callable[[], Any]
    lm: LmBase
    states: Sequence[ExampleState]
    timeout: float | None = None
    in_thread: bool = False
    at_turn: bool = False
    outcomes: list[Outcome] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)
    task: asyncio.Task[None] | None = None
    is_cancelled: bool = False


class Runner:
    """Runs one process's examples, ``concurrency`` at a time: in the loop, or in threads if their functions block.

    Threads are reused, so there are never more threads than concurrent functions.
    """

    def __init__(self, loop: Loop, concurrency: int) -> None:
        self._loop = loop
        self._free = concurrency
        self._queued: deque[Running] = deque()
        self._idle: list[_Queue] = []

    def begin(self, examples: Sequence[Running]) -> None:
        """Start examples in the loop in the given order; wake the loop only once."""
        if examples:
            self._loop.events.call_soon_threadsafe(self._start, examples)

    def cancel(self, examples: Sequence[Running], patience_s: float) -> list[Running]:
        """Cancel examples and wait for them; return the examples that did not end in time."""
        for example in examples:
            example.is_cancelled = True
        self._loop.events.call_soon_threadsafe(self._cancel, examples)
        until = time.monotonic() + patience_s
        return [example for example in examples if not example.done.wait(max(0.0, until - time.monotonic()))]

    def run_here(self, example: Running) -> None:
        """Run a ``def`` function in the calling thread."""
        for state in example.states:
            example.lm.enter(state)
            token = CURRENT.set(state)
            state.begin()
            started = time.perf_counter()
            error: BaseException | None = None
            try:
                if (returned := example.call()) is not None:
                    state.record_returned(returned)
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as caught:
                error = caught
            finally:
                settle(state)
                example.lm.leave()
                CURRENT.reset(token)
            example.outcomes.append(Outcome(state, error, time.perf_counter() - started))
        example.done.set()

    def _start(self, examples: Sequence[Running] = ()) -> None:
        """Queue examples, and start as many as the concurrency allows."""
        self._queued.extend(examples)
        loop = asyncio.get_running_loop()
        while self._queued and self._free:
            example = self._queued.popleft()
            if not example.is_cancelled:
                self._free -= 1
                example.task = loop.create_task(self._run(example))
                # A task that is cancelled before its first step runs no code that could report the cancellation.
                example.task.add_done_callback(partial(self._end, example))

    def _cancel(self, examples: Sequence[Running]) -> None:
        for example in examples:
            if example.task is None:
                example.done.set()
            elif not example.task.done():
                example.task.cancel()

    def _end(self, example: Running, task: asyncio.Task[None]) -> None:
        """Mark an example as ended, and as an error if the project's code cancelled it before it began."""
        if not example.outcomes and not example.is_cancelled:
            example.outcomes.append(Outcome(example.states[0], AdapterError(_CANCELLED), 0.0))
        example.done.set()
        self._free += 1
        self._start()

    async def _run(self, example: Running) -> None:
        for state in example.states:
            example.lm.enter(state)
            # This is set in the context of the example's own task, so it need not be reset.
            CURRENT.set(state)
            state.begin(beside=not example.at_turn)
            started = time.perf_counter()
            run = self._error_of if example.timeout is None else self._error_in_time
            error = await run(example, state)
            seconds = time.perf_counter() - started
            if unfinished := stop(state):
                await _settled(unfinished)
            if state.tools is not None:
                await state.tools.aclose()
            if state.tasks:
                await look_at_tasks(state)
            example.lm.leave()
            # A function may ignore its cancellation, or block the loop.
            if example.timeout is not None and seconds >= example.timeout and not example.is_cancelled:
                error = AdapterTimeout(f"the function took longer than {example.timeout:g} s (timeout= of eval_task)")
            example.outcomes.append(Outcome(state, error, seconds))
            if example.is_cancelled:
                break

    async def _error_in_time(self, example: Running, state: ExampleState) -> BaseException | None:
        """Run the function once; return its exception, or None if it is still running after timeout and cleanup."""
        work = asyncio.get_running_loop().create_task(self._error_of(example, state))
        try:
            if not (await asyncio.wait([work], timeout=example.timeout))[0]:
                work.cancel()
                await asyncio.wait([work], timeout=_LAST_WORDS_S)
        except asyncio.CancelledError as error:
            work.cancel()
            await asyncio.wait([work], timeout=_LAST_WORDS_S)
            return error
        return work.result() if work.done() and not work.cancelled() else None

    async def _error_of(self, example: Running, state: ExampleState) -> BaseException | None:
        try:
            returned = await self._in_thread(example.call, state) if example.in_thread else example.call()
            if inspect.isawaitable(returned) and not example.in_thread:
                returned = await returned
            elif not example.in_thread:
                _check_that_it_ran(state)
            if returned is not None:
                state.record_returned(returned)
        except BaseException as error:  # in a task, SystemExit would end the loop and all examples with it
            return error
        return None

    async def _in_thread(self, call: Callable[[], Any], state: ExampleState) -> Any:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def settle(returned: Any, error: BaseException | None) -> None:
            if not done.done():
                done.set_result((returned, error))

        def work() -> _Work:
            returned, error = None, None
            state.thread = threading.get_ident()
            try:
                returned = context.run(call)
            except BaseException as caught:
                error = caught
            return partial(loop.call_soon_threadsafe, settle, returned, error)

        try:
            thread = self._idle.pop()
        except IndexError:
            thread = queue.SimpleQueue()
            # The thread is a daemon, because a hanging function must not keep the process alive or delay other
            # functions.
            threading.Thread(target=self._serve, args=(thread,), name="lmeval-function", daemon=True).start()
        thread.put(work)
        returned, error = await done
        if error is not None:
            raise error
        return returned

    def _serve(self, queued: _Queue) -> None:
        """Run functions one after another; end the thread after an idle second."""
        while True:
            try:
                tell = queued.get(timeout=_IDLE_S)()
            except queue.Empty:
                with suppress(ValueError):  # another thread just took it
                    self._idle.remove(queued)
                    return
            else:
                self._idle.append(queued)
                with suppress(RuntimeError):  # the run is over, and its loop is closed
                    tell()
                del tell  # and all objects that the function left behind


async def _settled(unfinished: Sequence[Step]) -> None:
    """Wait briefly while cancelled requests are still open."""
    until = time.perf_counter() + _SETTLES_S
    while any(step.is_open for step in unfinished) and time.perf_counter() < until:
        await asyncio.sleep(_LOOK_S)


def settle(state: ExampleState) -> None:
    """Wait briefly while cancelled requests are open, and end the servers; call this in a thread without a loop."""
    until = time.perf_counter() + _SETTLES_S
    unfinished = stop(state)
    while any(step.is_open for step in unfinished) and time.perf_counter() < until:
        time.sleep(_LOOK_S)
    if state.tools is not None:
        state.tools.close()


def _check_that_it_ran(state: ExampleState) -> None:
    """Raise ScoringError if an async function returned no awaitable and there is no sign that it ran."""
    if not state.scores and not state.steps and state.output is None:
        raise ScoringError(
            "the function is async def, but its call returned no awaitable, so nothing in it ran: its decorator must "
            "return what the function returns"
        )
