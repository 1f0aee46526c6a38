"""Task files and adapters by name, with everything that is built in unless a registry is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pytest_lmeval.adapters.resolve import resolve_adapter
from pytest_lmeval.builtin import default_registry
from pytest_lmeval.errors import BadTaskFile
from pytest_lmeval.formats.compact import check_compact_record
from pytest_lmeval.formats.files import find_task_files, load_file
from pytest_lmeval.formats.jsonl import is_spec_record
from pytest_lmeval.formats.spec import check_spec_record
from pytest_lmeval.formats.task import LoadOptions, Task
from pytest_lmeval.registry import Registry
from pytest_lmeval.types import Example, RecordError

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def load_tasks(
    *paths: str | Path, registry: Registry | None = None, configs: Sequence[Mapping[str, Any]] = ()
) -> list[Task]:
    """Return the tasks of files and folders; raise BadTaskFile that names every bad record of every file.

    ``configs`` are values for the parameters of declarative tasks, as a file of ``--lm-config`` has them: a mapping for
    each variant of a task.
    """
    known = registry or default_registry()
    options = LoadOptions(configs=_configs(configs))
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
    """Return the adapter that ``--lm-adapter=spec`` names, made with ``options``; see :func:`resolve_adapter`."""
    return resolve_adapter(spec, registry or default_registry(), options, project)


def _configs(given: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    if not given:
        return ()
    from pytest_lmeval.formats.yaml.configs import as_configs

    return as_configs(list(given) if len(given) > 1 else given[0])


def load_all_tasks(task_dir: str | Path, registry: Registry | None = None) -> dict[str, list[Example]]:
    """Return the examples of every task below ``task_dir`` by the task's name."""
    return {task.name: list(task.examples) for task in load_tasks(task_dir, registry=registry)}


def validate_task(record: object, *, line_number: int = 1, registry: Registry | None = None) -> Example:
    """Return the example that one parsed record describes; raise RecordRefused for the first rule it breaks."""
    if isinstance(record, dict) and is_spec_record(record):
        return check_spec_record(record, line_number)
    return check_compact_record(record, line_number, registry or default_registry())


def validate_file(path: str | Path, registry: Registry | None = None) -> tuple[list[Example], list[RecordError]]:
    """Return ``(examples, errors)`` of a task file: every valid record, and one error per bad one."""
    file = Path(path)
    loaded = load_file(file, file.stem, registry or default_registry(), is_named=True)
    return [example for task in loaded.tasks for example in task.examples], list(loaded.errors)


def _same_names(tasks: Sequence[Task]) -> list[str]:
    first: dict[str, Any] = {}
    faults = []
    for task in tasks:
        if task.name in first:
            faults.append(f"{task.path}: the task name {task.name!r} is taken by {first[task.name]}")
        first.setdefault(task.name, task.path)
    return faults
