"""What one process of a run has collected: its tasks, its bad files, and the files that are none."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.errors import UsageError
from pytest_lmeval.plugin.locate import is_below_task_paths
from pytest_lmeval.plugin.settings import load_options, registry_of
from pytest_lmeval.plugin.stash import COLLECTED
from pytest_lmeval.plugin.wanted import Wanted

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import LoadedFile, LoadOptions, Task
    from pytest_lmeval.leaderboard.rows import TaskInfo
    from pytest_lmeval.registry import Registry


class Collected:
    """The tasks of one process by name, with what they were loaded by; lives on the config's stash."""

    def __init__(self, config: pytest.Config) -> None:
        self.tasks: dict[str, TaskInfo] = {}
        self.bad_files: list[str] = []
        self.not_tasks: dict[str, str] = {}
        self.wanted = Wanted(config)
        self._config = config

    @cached_property
    def registry(self) -> Registry:
        """Everything known by name: built in, installed, from pyproject.toml and from conftest files."""
        return registry_of(self._config)

    def may_read(self, path: Path, *, is_named: bool) -> bool:
        """Tell whether any format, or a loader of the project, may read the file at ``path``."""
        from pytest_lmeval.formats.files import is_task_file

        if is_task_file(path, self.registry) or (is_named and path.suffix in self.registry.formats):
            return True
        return bool(self.registry.loaders or self._config.hook.pytest_lmeval_load_task.get_hookimpls())

    def load(self, path: Path, name: str, *, is_named: bool) -> LoadedFile:
        """Return the tasks and bad records of one file; one that is no task file has none unless it was named."""
        from pytest_lmeval.formats.complete import complete_file
        from pytest_lmeval.formats.files import is_task_file, load_file
        from pytest_lmeval.formats.task import LoadedFile

        loaded: LoadedFile | None = self._config.hook.pytest_lmeval_load_task(path=path)
        if loaded is not None:
            return complete_file(loaded)
        named = is_named and path.suffix in self.registry.formats
        if not is_task_file(path, self.registry) and not named:
            return complete_file(self.registry.load(path) or LoadedFile())
        loaded = load_file(path, name, self.registry, options=self._options, is_named=is_named)
        if loaded.is_near_miss or is_below_task_paths(path, self._config):
            self.leave(path, loaded.no_task)
        return loaded

    def leave(self, path: Path, reason: str) -> None:
        """Record a file in a task folder that is not a task, for the end of the run, if there is a ``reason``."""
        if reason:
            root = self._config.rootpath
            self.not_tasks[(path.relative_to(root) if path.is_relative_to(root) else path).as_posix()] = reason

    def add(self, info: TaskInfo) -> None:
        """Note a collected task; raise UsageError where its name is taken."""
        if info.name in self.tasks:
            taken = self.tasks[info.name].path
            raise UsageError(f"{info.path}: the task name {info.name!r} is taken by {taken}; rename one of the files")
        self.tasks[info.name] = info

    def task_again(self, info: TaskInfo) -> Task:
        """Return a task that some process of this run has collected."""
        from pytest_lmeval.formats.files import file_task_name

        path = self._config.rootpath / info.path
        tasks = self.load(path, file_task_name(info.name, path), is_named=True).tasks
        return next(task for task in tasks if task.name == info.name)

    @cached_property
    def _options(self) -> LoadOptions:
        return load_options(self._config)


def collected(config: pytest.Config) -> Collected:
    """Return what this process has collected, made when it is first asked for."""
    if COLLECTED not in config.stash:
        config.stash[COLLECTED] = Collected(config)
    return config.stash[COLLECTED]
