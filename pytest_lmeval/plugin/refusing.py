"""Examples that this run cannot score, known before any model is asked: each is an error that says why."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import Task

__all__ = ["refusals"]


def refusals(tasks: Iterable[Task], adapter: Any) -> dict[str, str]:
    """Return why tasks cannot be asked of ``adapter``, by their names."""
    lacking = {task.name: need for task in tasks if (need := getattr(task, "needs", "")) and not _has(adapter, need)}
    return {name: _reason(adapter, need) for name, need in lacking.items()}


def _has(adapter: Any, method: str) -> bool:
    return callable(getattr(adapter, method, None))


def _reason(adapter: Any, need: str) -> str:
    from pytest_lmeval.adapters.resolve import adapter_name

    return f"adapter {adapter_name(adapter)} has no {need}, which this task is scored by; nothing was asked"
