"""Examples that this run cannot score, known before any model is asked: each is an error that says why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_lmeval.engine.evaluate import runs_code

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import Task
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.types import Example

__all__ = ["Refusals"]


class Refusals:
    """Why examples are not asked; empty of a run that can score everything."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._tasks: Mapping[str, str] = {}
        self.code = ""

    def look_at(self, tasks: Iterable[Task], adapter: Any) -> None:
        """Find the tasks that need what ``adapter`` cannot do."""
        lacking = {task.name: task.needs for task in tasks if task.needs and not _has(adapter, task.needs)}
        self._tasks = {name: _reason(adapter, need) for name, need in lacking.items()}

    def look_at_code(self, reason: str | None) -> None:
        """Refuse what runs code, for ``reason``, if there is one."""
        self.code = reason or ""

    def runs_code(self, task: Task, example: Example) -> bool:
        """Tell whether to score the example is to run what the model wrote."""
        return runs_code(task, example, self._registry)

    def reason(self, task: Task, example: Example) -> str:
        """Return why the example is not asked, or an empty text."""
        if self.code and self.runs_code(task, example):
            return self.code
        return self._tasks.get(task.name, "")


def _has(adapter: Any, method: str) -> bool:
    return callable(getattr(adapter, method, None))


def _reason(adapter: Any, need: str) -> str:
    from pytest_lmeval.adapters.resolve import adapter_name

    return f"adapter {adapter_name(adapter)} has no {need}, which this task is scored by; nothing was asked"
