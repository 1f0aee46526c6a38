"""Store the tasks and bad files that a process collected, and check the names in options against the tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.plugin.collect.locate import places
from pytest_lmeval.plugin.settings.models import COLLECTED, RUN
from pytest_lmeval.plugin.settings.settings import configs_of, ini_floors, load_options, registry_of, scrubber_of_run
from pytest_lmeval.task import name_fault

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import LoadedFile, LoadOptions
    from pytest_lmeval.leaderboard.rows import TaskInfo
    from pytest_lmeval.plugin.asking.state import RunState
    from pytest_lmeval.registry import Registry
    from pytest_lmeval.task import Task


_WAYS_OUT = (
    "; rename one of them, or, if they belong to different packages, run each package by itself with its own "
    "--lm-baseline and --lm-report-dir"
)
_REPEATING = ("repeat", "pytest_repeat")


class Collected:
    """The tasks that one process collected, by name; the config's stash stores this object.

    ``is_untouched`` means that ``--lm-changed`` deselected all examples.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.tasks: dict[str, TaskInfo] = {}
        self.bad_files: list[str] = []
        self.not_tasks: dict[str, str] = {}
        self.skipped_evals = 0
        self.is_untouched = False
        self.wanted = Wanted(config)
        # Called with each model's items before planning; the result, if any, is called with the run.
        self.preparing: set[Callable[[Sequence[Any], pytest.Session], Callable[[RunState], None] | None]] = set()
        self._config = config
        self._are_task_files: dict[Path, bool] = {}
        self._read_again: dict[tuple[Path, str], Task] = {}

    @cached_property
    def registry(self) -> Registry:
        """The registry, including additions by conftest files loaded so far."""
        return registry_of(self._config)

    def may_read(self, path: Path, *, is_named: bool) -> bool:
        """Return True if a format or one of the project's loaders may read the file at ``path``."""
        if self._is_task_file(path) or (is_named and path.suffix in self.registry.formats):
            return True
        return bool(self.registry.loaders or self._config.hook.pytest_lmeval_load_task.get_hookimpls())

    def _is_task_file(self, path: Path) -> bool:
        # Decided once, because it opens the file.
        if path not in self._are_task_files:
            from pytest_lmeval.formats.files import is_task_file

            self._are_task_files[path] = is_task_file(path, self.registry)
        return self._are_task_files[path]

    def load(self, path: Path, name: str, *, is_named: bool) -> LoadedFile:
        """Load a file's tasks and bad records; ignore non-task files unless the command line names them."""
        from pytest_lmeval.formats.files import complete_file, load_file
        from pytest_lmeval.formats.task import LoadedFile

        loaded: LoadedFile | None = self._config.hook.pytest_lmeval_load_task(path=path)
        if loaded is not None:
            return complete_file(loaded)
        named = is_named and path.suffix in self.registry.formats
        if not self._is_task_file(path) and not named:
            return complete_file(self.registry.load(path) or LoadedFile())
        # In the other formats, a parse error is always reported.
        explicit = path.suffix == ".yaml" and places(self._config).is_explicit(path)
        loaded = load_file(path, name, self.registry, options=self._options, is_named=is_named, is_explicit=explicit)
        if loaded.no_task and (loaded.is_near_miss or places(self._config).is_below(path)):
            self.leave(path, loaded.no_task)
        return loaded

    def leave(self, path: Path, reason: str) -> None:
        """Record the ``reason``, if any, why a file in a task folder is not a task file."""
        if reason:
            root = self._config.rootpath
            self.not_tasks[(path.relative_to(root) if path.is_relative_to(root) else path).as_posix()] = reason

    def add(self, info: TaskInfo) -> None:
        """Add a collected task; raise UsageError if another task or a score already has its name."""
        taken = self.tasks[info.name].path if info.name in self.tasks else None
        if fault := name_fault(info.name, "another one of the file" if taken == info.path else taken):
            raise UsageError(f"{info.path}: {fault}{_WAYS_OUT if taken is not None else ''}")
        if info.scores or "." in info.name:
            self._check_scores(info)
        self.tasks[info.name] = info

    def _check_scores(self, info: TaskInfo) -> None:
        task, _, score = info.name.rpartition(".")
        whose = self.tasks.get(task)
        of_others = [(whose, score)] if whose is not None and score in whose.scores else []
        own = [(info, name) for name in info.scores if f"{info.name}.{name}" in self.tasks]
        for each, name in [*of_others, *own]:
            raise UsageError(
                f"{each.path}: the score {name!r} of {each.name!r} and a task would both be {each.name}.{name} on the "
                "board: rename one of them"
            )

    def task_again(self, info: TaskInfo) -> Task:
        """Load a task again after this or another of the run's processes has collected it."""
        from pytest_lmeval.formats.files import file_task_name

        path = self._config.rootpath / info.path
        if (path, info.name) not in self._read_again:
            # Keep the tasks of one file: the next lookup usually needs the same file.
            tasks = self.load(path, file_task_name(info.name, path), is_named=True).tasks
            self._read_again = {(path, task.name): task for task in tasks}
        return self._read_again[path, info.name]

    @cached_property
    def _options(self) -> LoadOptions:
        return load_options(self._config)


def collected(config: pytest.Config) -> Collected:
    """Return the tasks that this process collected; create the collection on first use."""
    if COLLECTED not in config.stash:
        config.stash[COLLECTED] = Collected(config)
    return config.stash[COLLECTED]


def remarks_of(config: pytest.Config) -> list[str]:
    """Return remarks on this process's collection and its eval functions."""
    tasks, state = config.stash.get(COLLECTED, None), config.stash.get(RUN, None)
    found = [] if tasks is None else list(tasks.wanted.notes)
    if state is not None and state.evals is not None:
        found += state.evals.notes
    return [*map(scrubber_of_run(config).scrub, found)] if found else found


def repeated_by_plugin(config: pytest.Config, count: int = 0) -> str:
    """Return why pytest-repeat must not repeat examples, or "" if it is off. A mark's ``count`` overrides --count."""
    given = count or (config.getoption("count", 1) if any(map(config.pluginmanager.hasplugin, _REPEATING)) else 1)
    if not isinstance(given, int) or given < 2:
        return ""
    return (
        f"pytest-repeat would make {given} examples of each and count them as independent: drop --count and the mark "
        f"repeat, and use --lm-repeats={given}"
    )


class Wanted:
    """Checks ``--lm-subject``, ``--lm-num-fewshot`` and ``--lm-config`` against the collected task files."""

    def __init__(self, config: pytest.Config) -> None:
        self._subjects: list[str] = config.option.lm_subject
        self._shots: int = config.option.lm_num_fewshot or 0
        self._known: set[str] = set()
        self._keyed: dict[str, Task] = {}
        self._draws = False
        self._files = 0
        self.notes: list[str] = []
        self._config = config
        # A rerun of one example keeps all options of the run, including options for other tasks.
        self.picks_items = all("::" in argument for argument in config.args)

    def look_at(self, loaded: LoadedFile) -> None:
        """Record the subjects and keys of a file's tasks, and whether the tasks draw few-shot examples."""
        if loaded.tasks or loaded.subjects:
            self._files += 1
            self._known.update(*(each.names for each in loaded.subjects.values()))
            self._keyed.update((task.key, task) for task in loaded.tasks if task.key)
            self._draws = self._draws or loaded.draws_few_shots

    def check(self) -> None:
        """Raise UsageError for a subject or parameter that no task has, or for few-shot examples that no task draws.

        If the command line names files, an unused value may be meant for another file, so it only causes a remark in
        ``notes``. If the command line names individual items (``picks_items``), check nothing else.
        """
        if not self._files:
            return
        unused = self._unused_values() if self._config.option.lm_config else []
        if self.picks_items or any(Path(argument).suffix for argument in self._config.args):
            self.notes += unused
        elif unused:
            raise UsageError(unused[0])
        if self.picks_items:
            return
        if self._subjects and not self._known:
            raise UsageError("--lm-subject: no selected task has subjects")
        for name in self._subjects:
            if name not in self._known:
                raise UnknownName("subject in --lm-subject", name, self._known)
        if self._shots and not self._draws:
            raise UsageError(f"--lm-num-fewshot={self._shots}: no selected task draws few-shots")

    def _unused_values(self) -> list[str]:
        from pytest_lmeval.formats.yaml.configs import without_task

        faults = without_task(configs_of(self._config), self._keyed.values())
        return [f"--lm-config={self._config.option.lm_config}: {fault}" for fault in faults]

    def check_names(
        self, collected: Mapping[str, TaskInfo], tasks: Mapping[str, Task], metrics: Collection[str]
    ) -> None:
        """Raise UsageError for a threshold or floor with an unknown name, and for a floor on a task without a score.

        ``collected`` holds all the run's tasks by name, and ``tasks`` holds the tasks with selected examples.
        """
        option = self._config.option
        # Skip the ini file's thresholds: a run may include only some of its tasks.
        for name, _ in () if self.picks_items else option.lm_threshold:
            if name not in collected and name not in metrics:
                raise UnknownName("task or metric in --lm-threshold", name, [*collected, *metrics])
        floors = [*dict(option.lm_min_score), *ini_floors(self._config)]
        if floors or option.lm_max:
            self._check_floors(floors, collected, tasks)

    def _check_floors(
        self, floors: Sequence[str], collected: Mapping[str, TaskInfo], tasks: Mapping[str, Task]
    ) -> None:
        from pytest_lmeval.compare.remarks import ambiguous_floor, no_score_for_floor
        from pytest_lmeval.leaderboard.scores import is_score_of
        from pytest_lmeval.types import OVERALL

        option = self._config.option
        scores = {task.key: task.has_score for task in tasks.values() if task.key}
        scores |= {name: task.has_score for name, task in tasks.items()}
        known = [*collected, *(name for name in scores if name not in collected), OVERALL]
        for name, _ in option.lm_min_score:
            if name not in known and not is_score_of(name, collected):
                raise UnknownName("task in --lm-min-score", name, known)
        limited = [(limit, limit.rpartition(".")[0]) for limit, _ in option.lm_max]
        for limit, name in limited:
            if name not in known:
                raise UnknownName(f"task in --lm-max={limit}:", name, known)
        keys = {name: task.key for name, task in tasks.items()}
        if refusal := ambiguous_floor(floors, keys) or no_score_for_floor(floors, scores):
            raise UsageError(refusal)
