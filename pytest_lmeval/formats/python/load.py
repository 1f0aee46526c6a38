"""Load the tasks of a ``task_*.py`` file.

Loading runs the file, so a run must trust it like a conftest.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.mixture import MixtureTask
from pytest_lmeval.formats.python.completion_build import build_completion_task, draws_few_shots, make_base_task
from pytest_lmeval.formats.python.completion_task import CompletionTask
from pytest_lmeval.formats.python.dialogue_build import METHODS, build_dialogue_task, lacking, trains_only
from pytest_lmeval.formats.python.dialogue_task import DialogueTask
from pytest_lmeval.formats.python.module import ImportFailed, TaskModule, load_module
from pytest_lmeval.formats.task import LoadedFile, Subjects, TaskSource
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task
from pytest_lmeval.tasks import conversations
from pytest_lmeval.tasks.base import BaseTask
from pytest_lmeval.tasks.conversations import TaskSequence
from pytest_lmeval.tasks.faults import called
from pytest_lmeval.types import RecordError

Dialogues = conversations.Task
_BASES = (BaseTask, Dialogues)
_NOT_TRUSTED = (
    "not run: a task file in Python is code, and the ini option lm_trusted_paths does not name its folder; read the "
    "file, then name its folder there"
)


def load(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return the tasks in a Python file and the errors in it, each with its class and field."""
    path = source.path.absolute()
    if not source.options.trusts(path):
        return LoadedFile((), [RecordError(1, None, "bad_value", "_file", _NOT_TRUSTED)])
    try:
        file = load_module(path, source.data)
    except ImportFailed as failed:
        return LoadedFile((), (RecordError(failed.line, None, failed.rule, failed.field, failed.detail),))
    return _ModuleLoader(source, registry, file).load()


class _ModuleLoader:
    """Loads one file, in which task names must be unique."""

    def __init__(self, source: TaskSource, registry: Registry, file: TaskModule) -> None:
        self.source = source
        self.registry = registry
        self.file = file
        self.tasks: list[Task] = []
        self.errors: list[RecordError] = []
        self.subjects: dict[str, Subjects] = {}
        self.draws = False
        self._taken: dict[str, str] = {}

    def load(self) -> LoadedFile:
        try:
            found = _find_tasks(self.file)
        except RecordRefused as refused:
            self._refuse(self.file.lines.get("TASKS", 1), refused)
            return LoadedFile((), self.errors)
        for each in found:
            try:
                self._add(each)
            except RecordRefused as refused:
                self._refuse(each.line, refused)
        if not found:
            helpers = [kind.__name__ for kind in _classes(self.file) if _is_helper(kind, self.file)]
            wanted = "expected a BaseTask class with a NAME, a Task class, or a list TASKS"
            detail = f"{wanted}; found only helpers: {', '.join(helpers)}" if helpers else wanted
            if not self.source.is_named:
                return LoadedFile(no_task=detail)
            self._refuse(1, RecordRefused("missing_required", "_root", f"no task in the file: {detail}"))
        return LoadedFile(self.tasks, self.errors, subjects=self.subjects, draws_few_shots=self.draws)

    def _add(self, found: _Found) -> None:
        task = self._build(found)
        if task.name in self._taken:
            detail = f"{self._taken[task.name]} is already called {task.name!r}; rename one of them"
            field = "NAME" if hasattr(found.thing, "NAME") else "name"
            raise RecordRefused("bad_value", f"{found.label}.{field}", detail)
        self._taken[task.name] = f"{found.label} (line {found.line})"
        # Make only the examples that the run can use.
        self.errors += task.examples.check(partial(self.source.options.used, task.name))
        if task.subjects is not None:
            self.subjects[task.name] = task.subjects
        if task.examples:
            self.tasks.append(task)

    def _build(self, found: _Found) -> CompletionTask | DialogueTask | MixtureTask:
        thing = found.thing
        if isinstance(thing, BaseTask) or (isinstance(thing, type) and issubclass(thing, BaseTask)):
            task = make_base_task(thing, self.source.options)
            self.draws = self.draws or draws_few_shots(type(task))
            return build_completion_task(task, self.file, found.line, self.source, self.registry)
        talks = _make_dialogues(thing) if isinstance(thing, type) else thing
        name = talks.name or getattr(talks, "NAME", "") or found.variable or found.label
        return build_dialogue_task(talks, name, self.file, found.line, self.source)

    def _refuse(self, line: int, refused: RecordRefused) -> None:
        self.errors.append(RecordError(line, None, refused.rule, refused.field, refused.detail))


@dataclass(frozen=True, slots=True)
class _Found:
    """A class or an instance that is a task.

    ``label`` is the class's name, and ``line`` is the line of its definition.
    """

    label: str
    line: int
    thing: Any
    variable: str = ""


def _find_tasks(file: TaskModule) -> list[_Found]:
    """Return a task file's tasks; raise RecordRefused if ``TASKS`` is not a list of tasks.

    If the file defines a list ``TASKS``, only its entries are tasks. Otherwise, the tasks are the instances in
    variables, and the classes in the file that have no instance and are not helpers. Helpers are abstract classes,
    completion tasks without a ``NAME``, and conversation base classes that lack a method. Names that begin with an
    underscore, conversations for training only, and mixtures that contain them, are not tasks either.
    """
    if "TASKS" in file.names:
        return _listed(file)
    instances = list(_instances(file))
    have_instances = {type(found.thing) for found in instances}
    classes = [kind for kind in _classes(file) if kind not in have_instances and not _is_helper(kind, file)]
    found = [_Found(kind.__name__, file.lines.get(kind.__name__, 1), kind) for kind in classes]
    return sorted([*instances, *found], key=lambda each: each.line)


def _make_dialogues(kind: type[Dialogues]) -> Dialogues:
    """Return an instance of a conversation class, made with ``split="test"`` if the class requires a split."""
    name = kind.__name__
    parameters = inspect.signature(kind).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in variadic]
    if set(needed) <= {"split"}:
        make: Callable[..., Dialogues] = kind
        return called(f"{name}.__init__", lambda: make(**dict.fromkeys(needed, "test")))
    given = ", ".join(f"{parameter}=..." for parameter in needed)
    detail = f"needs {', '.join(needed)}: make the task in the file, TASKS = [{name}({given})]"
    raise RecordRefused("missing_required", f"{name}.__init__", detail)


def _listed(file: TaskModule) -> list[_Found]:
    listed, line = file.names["TASKS"], file.lines.get("TASKS", 1)
    if not isinstance(listed, list | tuple):
        raise RecordRefused("bad_type", "TASKS", f"expected a list of tasks, got {listed!r:.80}")
    found = []
    for number, thing in enumerate(listed):
        if not isinstance(thing, _BASES) and not (isinstance(thing, type) and issubclass(thing, _BASES)):
            detail = f"expected a task class, or an instance of one, got {thing!r:.80}"
            raise RecordRefused("bad_type", f"TASKS[{number}]", detail)
        kind = thing if isinstance(thing, type) else type(thing)
        found.append(_Found(kind.__name__, file.lines.get(kind.__name__, line), thing))
    return found


def _instances(file: TaskModule) -> Iterator[_Found]:
    seen: set[int] = set()
    for name, value in file.names.items():
        if isinstance(value, _BASES) and not name.startswith("_") and id(value) not in seen and name in file.lines:
            seen.add(id(value))
            if not _is_for_training(value):
                variable = name if isinstance(value, TaskSequence) else ""
                yield _Found(type(value).__name__, file.lines[name], value, variable)


def _classes(file: TaskModule) -> list[type]:
    kinds = [value for value in file.names.values() if isinstance(value, type) and issubclass(value, _BASES)]
    return list(dict.fromkeys(kind for kind in kinds if kind.__module__ == file.module.__name__))


def _is_for_training(thing: BaseTask[Any] | Dialogues) -> bool:
    if isinstance(thing, TaskSequence):
        return any(_is_for_training(part) for part in thing.tasks)
    return isinstance(thing, Dialogues) and trains_only(type(thing))


def _is_helper(kind: type, file: TaskModule) -> bool:
    if kind.__name__.startswith("_") or inspect.isabstract(kind):
        return True
    if issubclass(kind, BaseTask):
        return not hasattr(kind, "NAME")
    assert issubclass(kind, Dialogues)
    missing = lacking(kind)
    # A helper defines nothing, cannot evaluate, or is a base class in this file.
    return bool(missing) and (
        len(missing) == len(METHODS) or trains_only(kind) or any(kind in other.__mro__[1:] for other in _classes(file))
    )
