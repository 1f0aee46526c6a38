"""The border for tasks that others made: behind it, every member of :class:`Task` is an attribute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from pytest_lmeval.errors import UsageError
from pytest_lmeval.formats.task import BareTask, LoadedFile, Task, TaskDefaults

REQUIRED_MEMBERS = tuple(name for name in vars(BareTask) if not name.startswith("_"))
OPTIONAL_MEMBERS = tuple(name for name in vars(TaskDefaults) if not name.startswith("_"))
_DEFAULTS = TaskDefaults()


def complete(task: BareTask) -> Task:
    """Return ``task`` with the default of every optional member that it lacks: itself where it lacks none.

    Every task that others made passes here once; behind it a member is an attribute. Raises UsageError that names the
    required members that a task lacks.
    """
    lacking = [name for name in REQUIRED_MEMBERS if not hasattr(task, name)]
    if lacking:
        raise UsageError(
            f"{_called(task)} has no {', '.join(lacking)}; a task needs {', '.join(REQUIRED_MEMBERS)}; "
            "load_tasks(FILE) returns the tasks of the classes in a file"
        )
    if isinstance(task, TaskDefaults):
        return cast(Task, task)
    missing = [name for name in OPTIONAL_MEMBERS if not hasattr(task, name)]
    if "aggregate" in missing and getattr(task, "aggregates", False):
        raise UsageError(f"{_called(task)} has no aggregate; a task that aggregates needs it")
    return cast(Task, _Completed(task, missing)) if missing else cast(Task, task)


class _Completed:
    """A task of somebody else's, with defaults for the members that it lacks."""

    def __init__(self, task: BareTask, missing: Sequence[str]) -> None:
        self._task = task
        vars(self).update({name: getattr(_DEFAULTS, name) for name in missing if name != "prepared"})

    def __getattr__(self, name: str) -> Any:
        if name == "_task":  # not there yet, as in a copy that is being made
            raise AttributeError(name)
        return getattr(self._task, name)

    def prepared(self, adapter: Any) -> Task:
        own: Any = getattr(self._task, "prepared", None)
        task = self._task if own is None else own(adapter)
        return cast(Task, self) if task is self._task else complete(task)


def _called(task: object) -> str:
    kind, name, path = type(task).__name__, getattr(task, "name", ""), getattr(task, "path", "")
    return f"{path}{': ' if path else ''}the task {f'{name!r} ' if name else ''}({kind})"


def complete_file(loaded: LoadedFile) -> LoadedFile:
    """Return ``loaded`` with every task complete; raise UsageError as :func:`complete` does."""
    return replace(loaded, tasks=[complete(task) for task in loaded.tasks])
