"""Collect task files as pytest modules with one item per example."""

from __future__ import annotations

import gc
import types
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import BadTaskFile, LmevalError
from pytest_lmeval.leaderboard.board import info_of
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.asking import turn
from pytest_lmeval.plugin.asking.item import ExampleItem, run_example
from pytest_lmeval.plugin.asking.state import begin_spares
from pytest_lmeval.plugin.collect.collected import collected, repeated_by_plugin
from pytest_lmeval.plugin.collect.locate import file_node, places
from pytest_lmeval.plugin.private.items import fixtures_of, import_package, is_set_up_once, note_parameter
from pytest_lmeval.plugin.settings.models import COLLECTED
from pytest_lmeval.plugin.settings.settings import selected_places
from pytest_lmeval.task import Task
from pytest_lmeval.text import item_name, node_path, unique

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import RunState

_LATE = "its format was registered after the first task file was found; register it in a conftest.py above both"


def collect_task_file(path: Path, root: Path, parent: pytest.Collector) -> TaskFile | None:
    """Return a task file's collector, or None if no format accepts the file."""
    from pytest_lmeval.formats.files import misnamed, task_name

    tasks = collected(parent.config)
    if not tasks.may_read(path, is_named=parent.session.isinitpath(path)):
        late = path.suffix not in tasks.registry.formats and path.suffix in places(parent.config).own_suffixes
        tasks.leave(path, _LATE if late else misnamed(path) or _named_in_vain(path, parent))
        return None
    begin_spares(parent.config)
    file: TaskFile = file_node(TaskFile, parent, path)
    file.task_name = task_name(path, root)
    return file


def _named_in_vain(path: Path, parent: pytest.Collector) -> str:
    """Return why a named file in a named task folder has no task, or ""; pytest itself reports other named files."""
    where = places(parent.config)
    if not (path in where.named_files and where.is_below(path) and any(map(path.is_relative_to, where.named))):
        return ""
    from pytest_lmeval.formats.files import no_task_suffix

    return no_task_suffix(path, collected(parent.config).registry).removeprefix("not a task file; ")


class TaskFile(pytest.Module):
    """A task file, which is a pytest module so that module-scoped fixtures and conftest overrides work."""

    task_name: str

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.obj = types.ModuleType(self.path.stem)
        self._collected = self.config.stash[COLLECTED]
        # Fixture values that all items of the file share, once the first item has set them up.
        self.shared: Mapping[str, object] | None = None
        # --setup-only and --setup-plan also set this. -p no:setuponly removes the option.
        self._shareable = not self.config.getoption("setupshow", False)
        self.hooks: Any = None
        # The run's state by model label, after the first lookup.
        self.states: dict[str, RunState] = {}
        self.place = ""

    def collect(self) -> Iterable[pytest.Item | pytest.Collector]:
        """Return one item per selected example; report all bad records as one collection error."""
        with _paused_gc():
            return list(self._collect())

    def _collect(self) -> Iterator[ExampleItem]:
        try:
            self._import_packages()
            tasks = self._load()
        except LmevalError as error:
            self._collected.bad_files.append(self.nodeid)
            raise self.CollectError(str(error)) from None
        except SystemExit as error:  # otherwise pytest reports an internal error
            self._collected.bad_files.append(self.nodeid)
            raise self.CollectError(f"{self.nodeid}: loading the file called sys.exit({error.code!r})") from error
        except Exception:  # raised by a project's own loader: show the traceback
            self._collected.bad_files.append(self.nodeid)
            raise
        self.add_marker("lmeval")
        names = set[str]()
        if len(tasks) == 1:
            self.extra_keyword_matches.update(_words_of(tasks[0]))
        for task in tasks:
            # Tasks of one file may use the same ids.
            yield from self._items(task, names, f"{task.name}." if len(tasks) > 1 else "")

    def share(self, item: ExampleItem) -> None:
        """Share the first item's fixture values with the other items until the file is torn down.

        If any fixture has a narrower scope than the file, pytest sets up each item separately.
        """
        self._shareable = self._shareable and is_set_up_once(item)
        if self._shareable:
            self.shared = dict(item.funcargs)
            self.addfinalizer(self._forget)
            if not (plugins := self.config.pluginmanager).is_registered(turn):
                plugins.register(turn, turn.NAME)

    def _forget(self) -> None:
        self.shared = None

    def _load(self) -> Sequence[Task]:
        loaded = self._collected.load(self.path, self.task_name, is_named=self.session.isinitpath(self.path))
        shown = self.nodeid
        faults = [error.at(shown) for error in loaded.errors]
        are_allowed = self.config.option.lm_allow_bad_tasks
        if faults and not (are_allowed and loaded.tasks):
            nothing_left = [f"{shown}: no valid record"] if are_allowed else []
            raise BadTaskFile("\n".join([*faults, *nothing_left]))
        if faults:
            listing = "\n".join(faults)
            warnings.warn(pytest.PytestWarning(f"{len(faults)} bad record(s) skipped:\n{listing}"), stacklevel=1)
        self._collected.wanted.look_at(loaded)
        # An option from pytest-repeat or another plugin.
        has_count = self.config.getoption("count", 1) != 1
        if has_count and loaded.tasks and (refusal := repeated_by_plugin(self.config)):
            raise BadTaskFile(f"{shown}: {refusal}")
        self._collected.wanted.notes += [f"{shown}:{line}: {remark}" for line, remark in loaded.remarks]
        for task in loaded.tasks:
            # Only for a file's first task, because the board lists the bad records of all tasks.
            bad_records = tuple(faults) if task is loaded.tasks[0] else ()
            subjects = loaded.subjects.get(task.name)
            info = replace(
                info_of(task, shown, selected=0),
                available=subjects.available if subjects is not None else len(task.examples),
                bad_records=bad_records,
                whole=bool(self.config.option.lm_subject) and subjects is None,
            )
            self._collected.add(info)
        for name in loaded.subjects.keys() - {task.name for task in loaded.tasks}:
            self._collected.add(TaskInfo(name, shown, available=loaded.subjects[name].available, selected=0))
        return loaded.tasks

    def _import_packages(self) -> None:
        """Raise BadTaskFile if pytest cannot import the ``__init__.py`` in a folder above the file."""
        for package in self.listchain():
            if isinstance(package, pytest.Package):
                try:
                    import_package(package)
                except (self.CollectError, Exception) as error:
                    init = node_path(f"{package.nodeid}/__init__.py")
                    raise BadTaskFile(f"{init}:1: import_error _module: {_last_line(error)}") from None

    def _items(self, task: Task, names: set[str], prefix: str) -> Iterator[ExampleItem]:
        fixtureinfo, labels = None, [label for label, _ in self.config.option.lm_models] or [""]
        for place in selected_places(self.config, task.name, len(task.examples)):
            example = task.examples[place]
            name = unique(item_name(prefix + example.id), names)
            for label in labels:
                item = self._item(name, label, fixtureinfo)
                item.assign(task, example)
                if prefix:
                    item.extra_keyword_matches.update(_words_of(task))
                # All items of a file have the same fixtures.
                fixtureinfo = fixtureinfo or fixtures_of(item)
                yield item

    def _item(self, name: str, label: str, fixtureinfo: Any) -> ExampleItem:
        """Return an example's item; if there are several models, the item is for the model ``label``."""
        if not label:
            plain: ExampleItem = ExampleItem.from_parent(self, name=name, callobj=run_example, fixtureinfo=fixtureinfo)
            return plain
        item: ExampleItem = ExampleItem.from_parent(
            self, name=f"{name}[{label}]", originalname=name, callobj=run_example, fixtureinfo=fixtureinfo
        )
        item.label = label
        note_parameter(item, label)
        return item


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].removeprefix("E").strip() if lines else type(error).__name__


def _words_of(task: Task) -> set[str]:
    return {word for word in (task.name, task.key, task.metric, *getattr(task, "keywords", ())) if word}


@contextmanager
def _paused_gc() -> Iterator[None]:
    # All new objects stay alive: repeated scans would find no garbage.
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
