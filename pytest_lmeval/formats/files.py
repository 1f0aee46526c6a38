"""Which files are task files, what their tasks are called, and how to read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import BadTaskFile, UsageError
from pytest_lmeval.formats.compact import check_compact_record
from pytest_lmeval.formats.jsonl import is_spec_record
from pytest_lmeval.formats.python.claims import is_data
from pytest_lmeval.formats.spec import check_spec_record
from pytest_lmeval.formats.task import LoadedFile, LoadOptions, Task, TaskSource, complete_file
from pytest_lmeval.formats.yaml.dispatch import reads_like_a_task
from pytest_lmeval.formats.yaml.row_files import is_row_file
from pytest_lmeval.registry import Registry, default_registry
from pytest_lmeval.text import node_path
from pytest_lmeval.types import Example, RecordError

__all__ = [
    "RECORDING_SUFFIX",
    "file_task_name",
    "find_task_files",
    "is_task_file",
    "load_all_tasks",
    "load_file",
    "load_tasks",
    "misnamed",
    "task_name",
    "validate_file",
    "validate_task",
]

_LEDGER_START = b'{"header":{"schema":"pytest-lmeval/ledger'
_DEFAULT = LoadOptions()
RECORDING_SUFFIX = ".replay.jsonl"
"""Recorded model outputs, for the replay adapter; never a task file."""


def is_task_file(path: Path, registry: Registry) -> bool:
    """Tell whether ``path`` may hold a task: by its suffix, and because it is no recording, ledger or task's data."""
    format = registry.formats.get(path.suffix)
    if format is None or not fnmatchcase(path.name, format.pattern) or path.name.endswith(RECORDING_SUFFIX):
        return False
    return not _is_ledger(path) and not (path.suffix == ".jsonl" and (is_data(path) or is_row_file(path)))


def misnamed(path: Path) -> str:
    """Return why a file that reads like a task is not taken for one because of its name, or an empty text."""
    try:
        found = path.suffix == ".yml" and reads_like_a_task(path.read_bytes())
    except OSError:
        found = False
    return "task files in YAML end in .yaml" if found else ""


def task_name(path: Path, root: Path) -> str:
    """Return the name of the task in ``path``: its path below ``root`` without suffix, with ``/`` between parts."""
    return path.relative_to(root).with_suffix("").as_posix()


def file_task_name(name: str, path: Path) -> str:
    """Return what :func:`task_name` called the file at ``path``, of which ``name`` is one of the tasks.

    A name may end in ``@`` and what a config is called, and so may that of the file itself.
    """
    parts = name.split("@")
    names = ["@".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return next((each for each in names if each.rpartition("/")[2] == path.stem), parts[0])


def load_file(
    path: Path, name: str, registry: Registry, *, options: LoadOptions = _DEFAULT, is_named: bool = False
) -> LoadedFile:
    """Return the tasks and the bad records of one file; that it cannot be read is a bad record, too."""
    loaded = registry.load(path)
    if loaded is not None:
        return complete_file(loaded)
    if path.name.endswith(RECORDING_SUFFIX):
        detail = f"a recording of outputs, not a task; score it with --lm-adapter=replay:{path}"
        return LoadedFile((), [RecordError(1, None, "bad_type", "_root", detail)])
    if node_path(f"{name}{path.suffix}") != f"{name}{path.suffix}":
        # It would stand in every log, and what it names could not be named on a command line.
        detail = "the file's name holds '::', a control character or a command to a CI runner; rename it, or its folder"
        return LoadedFile((), [RecordError(1, None, "bad_value", "_file", detail)])
    try:
        data = path.read_bytes()
    except OSError as error:
        return LoadedFile((), [RecordError(1, None, "bad_json", "_root", f"cannot be read: {error.strerror}")])
    return complete_file(registry.formats[path.suffix].load(TaskSource(path, data, name, options, is_named), registry))


def find_task_files(paths: Iterable[Path], registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield ``(file, task name)`` for every task file among or below ``paths``, sorted within a folder."""
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.is_file() and is_task_file(file, registry):
                    yield file, task_name(file, path)
        elif not path.exists():
            raise UsageError(f"{path}: no such file or folder")
        elif path.suffix not in registry.formats:
            raise UsageError(f"{path}: not a task file; expected one of {', '.join(sorted(registry.formats))}")
        else:
            yield path, task_name(path, path.parent)


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
        loaded = load_file(path, name, known, options=options, is_named=path in named)
        tasks += loaded.tasks
        faults += [error.at(path) for error in loaded.errors]
    faults += _same_names(tasks)
    if faults:
        raise BadTaskFile("\n".join(faults))
    return tasks


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


def _is_ledger(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(_LEDGER_START)) == _LEDGER_START
    except OSError:
        return False


def _same_names(tasks: Sequence[Task]) -> list[str]:
    first: dict[str, Any] = {}
    faults = []
    for task in tasks:
        if task.name in first:
            faults.append(f"{task.path}: the task name {task.name!r} is taken by {first[task.name]}")
        first.setdefault(task.name, task.path)
    return faults
