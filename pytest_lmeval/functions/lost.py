"""Report exceptions in an example's tasks and threads that its function did not retrieve."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection
from typing import Any

from pytest_lmeval.functions.example import CURRENT, ExampleState
from pytest_lmeval.text import error_text, is_of_package, raised_in

_LONGEST_REASON = 4000


class _Begun(asyncio.Task[Any]):
    """A task that an example created."""

    example: ExampleState


def watch_tasks(loop: asyncio.AbstractEventLoop) -> None:
    """Assign each task of a loop to the example that creates it."""
    loop.set_task_factory(_new_task)
    loop.set_exception_handler(_note_late)


async def look_at_tasks(state: ExampleState) -> None:
    """Record unretrieved exceptions in an ended example's tasks."""
    # Let tasks that were just created take their first step.
    await asyncio.sleep(0)
    for task in tuple(state.tasks):
        if task.done() and _is_unseen(task) and (error := task.exception()) is not None:
            record_lost(state, _of_task(error))
    state.tasks.clear()


def example_of(task: asyncio.Task[Any] | None) -> ExampleState | None:
    """Return the example that created a task, or None."""
    return task.example if isinstance(task, _Begun) else None


def record_lost(state: ExampleState, lost: str) -> None:
    """Record an exception that an example's function did not retrieve; ignore all but the first exception."""
    state.lost = state.lost or lost


def watch_threads(running: Collection[ExampleState]) -> Callable[[], None]:
    """Record exceptions that end threads while examples run; return a function that stops the recording."""
    before = threading.excepthook

    def note(raised: threading.ExceptHookArgs) -> None:
        examples = tuple(running)
        if raised.exc_value is not None and not isinstance(raised.exc_value, SystemExit):
            name = raised.thread.name if raised.thread is not None else "?"
            lost = f"thread {name} ended with {describe(raised.exc_value)}"
            if len(examples) > 1:
                # A thread does not know which example started it, so no running example can pass.
                lost = f"{lost}, while {len(examples)} examples ran; with --lm-concurrency=1 its example is known"
            for state in examples:
                record_lost(state, f"{lost}: have the function join it and re-raise its exception")
        before(raised)

    def end() -> None:
        if threading.excepthook is note:
            threading.excepthook = before

    threading.excepthook = note
    return end


def describe(error: BaseException) -> str:
    """Describe an exception in one line, with its place in the project's code."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    shown = error_text(error)[:_LONGEST_REASON]
    place = raised_in(error, skips=is_of_package)
    return f"{shown} ({place})" if place else shown


def _new_task(loop: asyncio.AbstractEventLoop, work: Any, **given: Any) -> asyncio.Task[Any]:
    context = given.get("context")
    state = CURRENT.get() if context is None else context.get(CURRENT)
    if state is None:
        return asyncio.Task(work, loop=loop, **given)
    task = _Begun(work, loop=loop, **given)
    task.example = state
    if not state.has_ended:
        state.tasks.add(task)
        task.add_done_callback(_forget_seen)
    return task


def _forget_seen(task: asyncio.Task[Any]) -> None:
    """Drop a finished task, unless it has an unretrieved exception."""
    if isinstance(task, _Begun) and not _is_unseen(task):
        task.example.tasks.discard(task)


def _is_unseen(task: asyncio.Task[Any]) -> bool:
    """Return True if a task has an exception that nothing has retrieved.

    asyncio stores this in a private attribute, and uses it to report such tasks itself. A loop whose tasks lack the
    attribute does not report such tasks either.
    """
    return bool(getattr(task, "_log_traceback", False))


def _note_late(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Record the exception of a task that outlived its example; asyncio reports this when the task is freed."""
    task, error = context.get("future"), context.get("exception")
    if isinstance(task, _Begun) and error is not None:
        state, lost = task.example, _of_task(error)
        record_lost(state, lost)
        state.on_late(state, f"{lost} ({state.task}: {state.id})")
    loop.default_exception_handler(context)


def _of_task(error: BaseException) -> str:
    return f"a task ended with {describe(error)}, and nothing awaited it: await it in the function"
