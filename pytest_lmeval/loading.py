"""Build the registry of built-in and installed components, and use it to load task files and adapters."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pytest_lmeval.adapters.resolve import resolve_adapter
from pytest_lmeval.errors import BadTaskFile
from pytest_lmeval.formats.files import find_task_files, load_file
from pytest_lmeval.formats.task import LoadedFile, LoadOptions, TaskSource
from pytest_lmeval.metrics.parts.declare import DECLARED
from pytest_lmeval.postprocess import RULES
from pytest_lmeval.registry import Format, Registry
from pytest_lmeval.task import ExamplesOfTask, Task, name_fault
from pytest_lmeval.types import Example, Metric, RecordError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_ADAPTERS = ("toy", "replay", "hf", "openai", "anthropic", "litellm", "none", "ray")
"""The modules of ``adapters/`` that have a function ``make(argument, **options)``."""


def default_registry(*, entry_points: bool = True) -> Registry:
    """Return a registry of all built-in components, and of the components that installed packages add.

    An entry point of the group ``pytest_lmeval_register`` names a function that adds components to the registry.
    """
    registry = Registry(
        metrics=_own_metrics(),
        rules=dict(RULES),
        adapters={name: partial(_make_adapter, name) for name in _ADAPTERS},
        formats={
            ".jsonl": Format(".jsonl", partial(_load, "jsonl")),
            ".yaml": Format(".yaml", partial(_load, "yaml")),
            ".py": Format(".py", partial(_load, "python.load"), "task_*.py"),
        },
    )
    if entry_points:
        _register_entry_points(registry)
    return registry


def _own_metrics() -> dict[str, Metric]:
    """Return the metrics that the modules of ``metrics/`` declare, by name."""
    from pytest_lmeval import metrics

    found: dict[str, Metric] = {}
    for file in sorted(Path(str(metrics.__file__)).parent.glob("[!_]*.py")):
        module = import_module(f"{metrics.__name__}.{file.stem}")
        for value in vars(module).values():
            # Skip imported functions: their own module declares them.
            if getattr(value, "__module__", "") == module.__name__ and hasattr(value, DECLARED):
                declared = getattr(value, DECLARED)
                found[declared.name] = declared
    return found


def _load(name: str, source: TaskSource, registry: Registry) -> LoadedFile:
    # Imported with the first file of the format.
    loaded: LoadedFile = import_module(f"pytest_lmeval.formats.{name}").load(source, registry)
    return loaded


def _make_adapter(name: str, argument: str, **options: Any) -> Any:
    # Imported on demand: some adapters need large packages.
    return import_module(f"pytest_lmeval.adapters.{name}").make(argument, **options)


def _register_entry_points(registry: Registry) -> None:
    register, load_task, leaderboard = _installed(tuple((folder, _changed_at(folder)) for folder in sys.path))
    for entry_point in register:
        entry_point.load()(registry)
    registry.loaders += [entry_point.load() for entry_point in load_task]
    registry.listeners += leaderboard


@lru_cache(maxsize=1)
def _installed(folders: tuple[tuple[str, int], ...]) -> list[Sequence[EntryPoint]]:
    """Return the entry points of each hook; repeat the search only after a folder on ``sys.path`` changes."""
    from importlib.metadata import entry_points

    # The search is slow: it takes ten times as long as the rest of the registry.
    found = entry_points()
    return [tuple(found.select(group=f"pytest_lmeval_{hook}")) for hook in ("register", "load_task", "leaderboard")]


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0


def load_tasks(
    *paths: str | Path, registry: Registry | None = None, configs: Sequence[Mapping[str, Any]] = ()
) -> list[Task]:
    """Load the tasks in files and folders; raise a BadTaskFile that lists all invalid records.

    Each mapping in ``configs`` contains values for parameters of declarative tasks, as in a ``--lm-config`` file. Each
    mapping creates one variant of each task that has at least one of its parameters.
    """
    known = registry or default_registry()
    options = LoadOptions(configs=_configs(configs) if configs else ())
    tasks: list[Task] = []
    faults: list[str] = []
    named = [Path(path) for path in paths]
    for path, name in find_task_files(named, known):
        loaded = load_file(path, name, known, options=options, is_named=path in named, is_explicit=True)
        tasks += loaded.tasks
        faults += [error.at(path) for error in loaded.errors]
    faults += _same_names(tasks)
    if options.configs and not faults:
        from pytest_lmeval.formats.yaml.configs import without_task

        faults += without_task(options.configs, tasks)
    if faults:
        raise BadTaskFile("\n".join(faults))
    return tasks


def make_adapter(
    spec: str, registry: Registry | None = None, options: Mapping[str, Any] = _NOTHING, project: Path | None = None
) -> Any:
    """Create the adapter for ``--lm-adapter=spec`` with ``options``; see :func:`resolve_adapter`."""
    return resolve_adapter(spec, registry or default_registry(), options, project)


def _configs(given: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    from pytest_lmeval.formats.yaml.configs import as_configs

    return as_configs(list(given) if len(given) > 1 else given[0])


def load_all_tasks(task_dir: str | Path, registry: Registry | None = None) -> dict[str, list[Example]]:
    """Return the examples of every task below ``task_dir``, by task name, as lists that ``run_task`` accepts."""
    return {task.name: ExamplesOfTask(task) for task in load_tasks(task_dir, registry=registry)}


def validate_task(record: object, *, line_number: int = 1, registry: Registry | None = None) -> Example:
    """Convert a parsed record into an example; raise RecordRefused for the first rule that it breaks."""
    from pytest_lmeval.formats.compact import check_compact_record
    from pytest_lmeval.formats.jsonl import is_spec_record

    if isinstance(record, dict) and is_spec_record(record):
        from pytest_lmeval.formats.spec import check_spec_record

        return check_spec_record(record, line_number)
    return check_compact_record(record, line_number, registry or default_registry())


def validate_file(path: str | Path, registry: Registry | None = None) -> tuple[list[Example], list[RecordError]]:
    """Return ``(examples, errors)`` of a task file: an example per valid record, and an error per invalid record."""
    file = Path(path)
    loaded = load_file(file, file.stem, registry or default_registry(), is_named=True)
    return [example for task in loaded.tasks for example in task.examples], list(loaded.errors)


def _same_names(tasks: Sequence[Task]) -> list[str]:
    first: dict[str, Any] = {}
    faults = []
    for task in tasks:
        if fault := name_fault(task.name, first.get(task.name)):
            faults.append(f"{task.path}: {fault}")
        first.setdefault(task.name, task.path)
    return faults
