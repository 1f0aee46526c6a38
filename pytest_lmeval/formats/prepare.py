"""A task, once it is known which adapter it is put to."""

from __future__ import annotations

from typing import Any, TypeVar

from pytest_lmeval.formatters import Formatter, opening

__all__ = ["context_writer", "prepared"]

_Task = TypeVar("_Task")


def context_writer(adapter: Any) -> Formatter:
    """Return what writes a conversation as the text that a continuation's log-probability is asked after.

    The adapter's own ``chat_text(messages)``, up to where the assistant's next word stands, or else the contents alone.
    """
    own = getattr(adapter, "chat_text", None)
    return own if callable(own) else opening


def prepared(task: _Task, adapter: Any) -> _Task:
    """Return ``task.prepared(adapter)`` where a task has that method, else ``task``.

    The method returns the task that asks as this adapter is best asked, and raises UsageError where the adapter
    cannot answer at all. It is called before the task's first request.
    """
    method = getattr(task, "prepared", None)
    return method(adapter) if callable(method) else task
