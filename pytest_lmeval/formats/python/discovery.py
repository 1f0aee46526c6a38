"""Find the tasks among the names of a task file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.python.dialogue_build import METHODS, lacking, trains_only
from pytest_lmeval.formats.python.module import TaskModule
from pytest_lmeval.tasks.base import BaseTask
from pytest_lmeval.tasks.conversations import Task, TaskSequence
from pytest_lmeval.tasks.faults import called

_BASES = (BaseTask, Task)


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A class, or an instance, that is a task; ``label`` is the name of its class, ``line`` its first line."""

    label: str
    line: int
    thing: Any
    variable: str = ""


def find_tasks(file: TaskModule) -> list[FoundTask]:
    """Return the tasks of a task file; raise RecordRefused if ``TASKS`` is not a list of tasks.

    If the file defines a list ``TASKS``, only its entries are tasks. Without it, tasks are the instances that
    variables hold, and the complete classes of this file without such an instance. Helpers are not tasks: names that
    begin with an underscore, classes without a ``NAME``, abstract ones and bases of others, conversations that can
    only be trained on, and mixtures with such a part.
    """
    if "TASKS" in file.names:
        return _listed(file)
    instances = list(_instances(file))
    have_instances = {type(found.thing) for found in instances}
    classes = [kind for kind in _classes(file) if kind not in have_instances and not _is_helper(kind, file)]
    found = [FoundTask(kind.__name__, file.lines.get(kind.__name__, 1), kind) for kind in classes]
    return sorted([*instances, *found], key=lambda each: each.line)


def helpers(file: TaskModule) -> list[str]:
    """Return the names of the helper classes in a task file."""
    return [kind.__name__ for kind in _classes(file) if _is_helper(kind, file)]


def make_task(kind: type[Task]) -> Task:
    """Return an instance of a conversation class, made with ``split="test"`` if it needs a split."""
    name = kind.__name__
    parameters = inspect.signature(kind).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in variadic]
    if set(needed) <= {"split"}:
        make: Callable[..., Task] = kind
        return called(f"{name}.__init__", lambda: make(**dict.fromkeys(needed, "test")))
    given = ", ".join(f"{parameter}=..." for parameter in needed)
    detail = f"needs {', '.join(needed)}: make the task in the file, TASKS = [{name}({given})]"
    raise RecordRefused("missing_required", f"{name}.__init__", detail)


def _listed(file: TaskModule) -> list[FoundTask]:
    listed, line = file.names["TASKS"], file.lines.get("TASKS", 1)
    if not isinstance(listed, list | tuple) or not listed:
        raise RecordRefused("bad_type", "TASKS", f"expected a list of at least one task, got {listed!r:.80}")
    found = []
    for number, thing in enumerate(listed):
        if not isinstance(thing, _BASES) and not (isinstance(thing, type) and issubclass(thing, _BASES)):
            detail = f"expected a task class, or an instance of one, got {thing!r:.80}"
            raise RecordRefused("bad_type", f"TASKS[{number}]", detail)
        kind = thing if isinstance(thing, type) else type(thing)
        found.append(FoundTask(kind.__name__, file.lines.get(kind.__name__, line), thing))
    return found


def _instances(file: TaskModule) -> Iterator[FoundTask]:
    seen: set[int] = set()
    for name, value in file.names.items():
        if isinstance(value, _BASES) and not name.startswith("_") and id(value) not in seen and name in file.lines:
            seen.add(id(value))
            if _is_for_training(value):
                continue
            variable = name if isinstance(value, TaskSequence) else ""
            yield FoundTask(type(value).__name__, file.lines[name], value, variable)


def _classes(file: TaskModule) -> list[type]:
    kinds = [value for value in file.names.values() if isinstance(value, type) and issubclass(value, _BASES)]
    return list(dict.fromkeys(kind for kind in kinds if kind.__module__ == file.module.__name__))


def _is_for_training(thing: BaseTask[Any] | Task) -> bool:
    if isinstance(thing, TaskSequence):
        return any(_is_for_training(part) for part in thing.tasks)
    return isinstance(thing, Task) and trains_only(type(thing))


def _is_helper(kind: type, file: TaskModule) -> bool:
    if kind.__name__.startswith("_") or inspect.isabstract(kind):
        return True
    if issubclass(kind, BaseTask):
        return not hasattr(kind, "NAME")
    assert issubclass(kind, Task)
    incomplete = bool(lacking(kind))
    # It defines nothing, cannot evaluate, or is a base class in this file.
    return incomplete and (
        len(lacking(kind)) == len(METHODS)
        or trains_only(kind)
        or any(kind in other.__mro__[1:] for other in _classes(file))
    )
