"""Find task files, name their tasks, and load them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from pytest_lmeval.errors import RecordRefused, UsageError, nearest
from pytest_lmeval.formats.task import LoadedFile, LoadOptions, TaskSource
from pytest_lmeval.pages import page
from pytest_lmeval.registry import Registry
from pytest_lmeval.task import complete
from pytest_lmeval.text import node_path
from pytest_lmeval.types import RecordError

_DEFAULT = LoadOptions()
_FIELDS_OF_TASKS = (b'"prompt"', b'"targets"')
_FIRST_LINE = 1 << 16
_SHORT_LOOK = 1 << 14
_LONGEST_LOOK = 1 << 20
_MARKS: Mapping[str, tuple[bytes, ...]] = {".jsonl": _FIELDS_OF_TASKS, ".yaml": (), ".py": (b"pytest_lmeval",)}
_PLAIN_NAME = re.compile(r"[\w./@ -]*", re.ASCII)
RECORDING_SUFFIX = ".replay.jsonl"
"""The suffix of files with recorded outputs for the replay adapter; such a file is never a task file."""


def is_task_file(path: Path, registry: Registry) -> bool:
    """Return True if ``path`` may be a task file: its name fits, and it is not a recording, a ledger or a data file."""
    format = registry.formats.get(path.suffix)
    if format is None or not fnmatchcase(path.name, format.pattern) or path.name.endswith(RECORDING_SUFFIX):
        return False
    if path.suffix != ".jsonl":
        return True
    if not _holds_a_task(path):
        from pytest_lmeval.formats.python.claims import is_data
        from pytest_lmeval.records.ledger_lines import is_ledger

        if is_ledger(path) or is_data(path):
            return False
    return not is_row_file(path)


def _holds_a_task(path: Path) -> bool:
    from pytest_lmeval.data.lines import number_lines, parse_line
    from pytest_lmeval.formats.compact import is_record

    # Read only the first line: a folder may have many files.
    try:
        with path.open("rb") as file:
            start = file.read(_SHORT_LOOK)
            start += b"" if b"\n" in start.strip() else file.read(_LONGEST_LOOK)
            for _, line in number_lines(start):
                record = parse_line(line)
                if not isinstance(record, dict) or is_record(record):
                    return isinstance(record, dict)
                from pytest_lmeval.formats.spec import REQUIRED

                return record.keys() >= {*REQUIRED}
    except (OSError, RecordRefused):
        pass
    return False


def is_row_file(path: Path) -> bool:
    """Return True if a YAML file in the folder of ``path``, or one folder up, names ``path`` as a data file.

    A file that begins like a task's record is not a data file, so no YAML is read for it.
    """
    try:
        with path.open("rb") as file:
            start = file.read(_FIRST_LINE)
    except OSError:
        return False
    if all(field in start for field in _FIELDS_OF_TASKS):
        return False
    name = re.escape(path.name.encode())
    named = re.compile(
        rb"(?:^[ \t-]*|[{,][ \t\n]*)[\"']?(?:data|file_path|path)[\"']?[ \t]*:[ \t]*[\"']?(?:[^\"'\n,{}]*/)?"
        + name
        + rb"[\"']?[ \t\r]*(?:#.*$|[,}]|$)",
        re.M,
    )
    return any(
        named.search(read_start(each)) for folder in (path.parent, path.parent.parent) for each in folder.glob("*.yaml")
    )


def read_start(path: Path, size: int = -1) -> bytes:
    """Return the first ``size`` bytes of a file, by default all of them, or b"" if the file cannot be read."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(size)
    return b""


def misnamed(path: Path) -> str:
    """Return the reason why the name of a file that looks like a task is wrong, or ""."""
    from pytest_lmeval.formats.yaml.claims import reads_like_a_task

    if path.suffix == ".yml" and reads_like_a_task(read_start(path)):
        return "task files in YAML end in .yaml"
    if path.suffix == ".json" and all(field in read_start(path, _FIRST_LINE) for field in _FIELDS_OF_TASKS):
        return "task files in JSON end in .jsonl, and have one record per line"
    return ""


def find_misnamed(folder: Path) -> dict[Path, str]:
    """Return the misnamed files below ``folder``, each with the reason."""
    reasons = ((path, misnamed(path)) for path in files_below(folder) if path.suffix in (".json", ".yml"))
    return {path: reason for path, reason in reasons if reason}


def has_tasks(folder: Path) -> bool:
    """Return True if a file below ``folder`` looks like a task."""
    return any(_is_surely_a_task(path) for path in files_below(folder) if path.suffix in _MARKS)


def _is_surely_a_task(path: Path) -> bool:
    if path.suffix == ".py" and not path.name.startswith("task_"):
        return False
    from pytest_lmeval.formats.yaml.claims import reads_like_a_task

    start, marks = read_start(path, _FIRST_LINE), _MARKS[path.suffix]
    return all(mark in start for mark in marks) if marks else reads_like_a_task(start)


def task_name(path: Path, root: Path) -> str:
    """Return the task name of ``path``: its path below ``root``, with ``/`` as separator and without the suffix."""
    return path.relative_to(root).with_suffix("").as_posix()


def file_task_name(name: str, path: Path) -> str:
    """Return the :func:`task_name` of the file at ``path``, given the ``name`` of one of its tasks.

    The names of tasks and files may end in ``@`` and a config's name. If ``name`` does not match ``path``, return the
    file's name without folder and suffix.
    """
    parts = name.split("@")
    names = ["@".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return next((each for each in names if each.rpartition("/")[2] == path.stem), path.stem)


def load_file(
    path: Path,
    name: str,
    registry: Registry,
    *,
    options: LoadOptions = _DEFAULT,
    is_named: bool = False,
    is_explicit: bool = False,
) -> LoadedFile:
    """Return one file's tasks and bad records; an unreadable file counts as a bad record.

    For ``is_named`` and ``is_explicit``, see :class:`TaskSource`.
    """
    loaded = registry.load(path)
    if loaded is not None:
        return complete_file(loaded)
    if path.name.endswith(RECORDING_SUFFIX):
        detail = f"a recording of outputs, not a task; score it with --lm-adapter=replay:{path}"
        return LoadedFile((), [RecordError(1, None, "bad_type", "_root", detail)])
    node = f"{name}{path.suffix}"
    if not _PLAIN_NAME.fullmatch(node) and node_path(node) != node:
        # Such a name would appear in logs, and no command line could select the file's examples.
        detail = (
            "the file's name contains '::', a control character or a command to a CI runner; rename it, or its folder"
        )
        return LoadedFile((), [RecordError(1, None, "bad_value", "_file", detail)])
    try:
        data = path.read_bytes()
    except OSError as error:
        return LoadedFile((), [RecordError(1, None, "bad_json", "_root", f"cannot be read: {error.strerror}")])
    source = TaskSource(path, data, name, options, is_named, is_explicit)
    return complete_file(registry.formats[path.suffix].load(source, registry))


def complete_file(loaded: LoadedFile) -> LoadedFile:
    """Return ``loaded`` with all tasks completed by :func:`complete`, which may raise UsageError."""
    return replace(loaded, tasks=[complete(task) for task in loaded.tasks])


def find_task_files(paths: Iterable[Path], registry: Registry) -> Iterator[tuple[Path, str]]:
    """Yield ``(file, task name)`` for every task file among or below ``paths``, sorted within each folder."""
    for path in paths:
        if path.is_dir():
            for file in files_below(path):
                if is_task_file(file, registry):
                    yield file, task_name(file, path)
        elif not path.exists():
            beside = [each.name for each in path.parent.iterdir()] if path.parent.is_dir() else []
            raise UsageError(f"{path}: no such file or folder{nearest(path.name, beside)}")
        elif path.suffix not in registry.formats:
            raise UsageError(f"{path}: {no_task_suffix(path, registry)}")
        else:
            yield path, task_name(path, path.parent)


def no_task_suffix(path: Path, registry: Registry) -> str:
    """Return the message for a path that the user gives as a task file, although no format reads its suffix."""
    from pytest_lmeval.data.rows import SUFFIXES

    wanted = f"not a task file; expected one of {', '.join(sorted(registry.formats))}"
    if path.suffix in SUFFIXES:
        return f"{wanted}; a task in YAML names such a file as its data: {page('questions.md')}"
    return f"{wanted}; {found}" if (found := misnamed(path)) else wanted


def leads_back(folder: Path) -> bool:
    """Return True if ``folder`` is a link to one of its parents; following the link would list files endlessly."""
    return folder.is_symlink() and folder.resolve() in [parent.resolve() for parent in folder.absolute().parents]


def files_below(folder: Path) -> list[Path]:
    """Return the sorted files in and below ``folder``, following links."""
    found: list[Path] = []
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not leads_back(Path(parent, name))]
        found += [Path(parent, name) for name in files]
    return sorted(path for path in found if path.is_file())
