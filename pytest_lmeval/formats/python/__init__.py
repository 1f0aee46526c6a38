"""Load the tasks of a ``task_*.py`` file. Loading runs the file: it is trusted as a conftest is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import RecordRefused
from pytest_lmeval.formats.task import LoadedFile, Subjects, TaskSource
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import Task
from pytest_lmeval.types import RecordError

if TYPE_CHECKING:
    from pytest_lmeval.formats.mixture import MixtureTask
    from pytest_lmeval.formats.python.completion_task import CompletionTask
    from pytest_lmeval.formats.python.dialogue_task import DialogueTask


def load(source: TaskSource, registry: Registry) -> LoadedFile:
    """Return the tasks of a Python file and their faults, each with class and field."""
    from pytest_lmeval.formats.python.module import ImportFailed, load_module

    path = source.path.absolute()
    if not source.options.trusts(path):
        return LoadedFile((), [RecordError(1, None, "bad_value", "_file", _NOT_TRUSTED)])
    try:
        file = load_module(path, source.data)
    except ImportFailed as failed:
        return LoadedFile((), (RecordError(failed.line, None, failed.rule, failed.field, failed.detail),))
    return _ModuleLoader(source, registry, file).load()


_NOT_TRUSTED = (
    "not run: a task file in Python is code, and the ini option lm_trusted_paths does not name its folder; read the "
    "file, then name its folder there"
)


class _ModuleLoader:
    """Loads one file; task names must be unique in it."""

    def __init__(self, source: TaskSource, registry: Registry, file: Any) -> None:
        self.source = source
        self.registry = registry
        self.file = file
        self.tasks: list[Task] = []
        self.errors: list[RecordError] = []
        self.subjects: dict[str, Subjects] = {}
        self.draws = False
        self._taken: dict[str, str] = {}

    def load(self) -> LoadedFile:
        from pytest_lmeval.formats.python.discovery import find_tasks, helpers

        try:
            found = find_tasks(self.file)
        except RecordRefused as refused:
            self._refuse(self.file.lines.get("TASKS", 1), refused)
            return LoadedFile((), self.errors)
        for each in found:
            try:
                self._add(each)
            except RecordRefused as refused:
                self._refuse(each.line, refused)
        if not found:
            nothing = _nothing(helpers(self.file))
            if not self.source.is_named:
                return LoadedFile(no_task=nothing.detail.removeprefix(_NO_TASK))
            self._refuse(1, nothing)
        return LoadedFile(self.tasks, self.errors, subjects=self.subjects, draws_few_shots=self.draws)

    def _add(self, found: Any) -> None:
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

    def _build(self, found: Any) -> CompletionTask | DialogueTask | MixtureTask:
        from pytest_lmeval.formats.python.completion_build import build_completion_task, draws_few_shots, make_base_task
        from pytest_lmeval.formats.python.dialogue_build import build_dialogue_task
        from pytest_lmeval.formats.python.discovery import make_task
        from pytest_lmeval.tasks.base import BaseTask

        thing = found.thing
        if isinstance(thing, BaseTask) or (isinstance(thing, type) and issubclass(thing, BaseTask)):
            task = make_base_task(thing, self.source.options)
            self.draws = self.draws or draws_few_shots(type(task))
            return build_completion_task(task, self.file, found.line, self.source, self.registry)
        talks = make_task(thing) if isinstance(thing, type) else thing
        name = talks.name or getattr(talks, "NAME", "") or found.variable or found.label
        return build_dialogue_task(talks, name, self.file, found.line, self.source)

    def _refuse(self, line: int, refused: RecordRefused) -> None:
        self.errors.append(RecordError(line, None, refused.rule, refused.field, refused.detail))


_NO_TASK = "no task in the file: "


def _nothing(helpers: Sequence[str]) -> RecordRefused:
    wanted = "expected a BaseTask class with a NAME, a Task class, or a list TASKS"
    seen = f"; {', '.join(helpers)} only helps others" if helpers else ""
    return RecordRefused("missing_required", "_root", f"{_NO_TASK}{wanted}{seen}")
