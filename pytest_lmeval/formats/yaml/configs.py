"""Read the file that ``--lm-config`` names, with values for the parameters of declarative tasks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.errors import UsageError, nearest

if TYPE_CHECKING:
    from pytest_lmeval.task import Task

RESERVED = ("name", "tasks")
"""Keys of a config that are not parameters."""


def read_configs(path: Path) -> tuple[Mapping[str, Any], ...]:
    """Return one mapping for each run of the tasks; raise UsageError for an invalid file.

    The file is a mapping of parameters to values, or a list of such mappings. In each mapping, ``name`` is a suffix for
    task names, after an ``@``. In a list, the default name is the element's number, counted from 1. ``tasks`` maps a
    task's key to values for that task, which take precedence. Each returned mapping has the keys ``name``, ``values``
    and ``tasks``.
    """
    from pytest_lmeval.formats.yaml.parse import read_yaml

    return as_configs(read_yaml(path), path)


def as_configs(document: object, path: object = "configs") -> tuple[Mapping[str, Any], ...]:
    """Return the configs in ``document``, the content of a file; errors name ``path``."""
    if not isinstance(document, list):
        return (_config(path, document, ""),)
    if not document:
        raise UsageError(f"{path}: an empty list; expected at least one mapping of parameters to values")
    configs = [_config(path, each, str(number)) for number, each in enumerate(document, 1)]
    names = [config["name"] for config in configs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"{path}: two configs are called {twice!r}")
    return tuple(configs)


def without_task(configs: Iterable[Mapping[str, Any]], tasks: Iterable[Task]) -> list[str]:
    """Return a message for each parameter or task key in ``configs`` that no task has."""
    from pytest_lmeval.formats.jsonl import JsonlTask

    # A config does not choose among the prompts of a data file.
    parameters = {task.key: task.config for task in tasks if task.key and not isinstance(task, JsonlTask)}
    names = sorted({name for known in parameters.values() for name in known})
    found = []
    for config in configs:
        where = f"config {config['name']}: " if config["name"] else ""
        for kind, given, choices in (("parameter", config["values"], names), ("key", config["tasks"], [*parameters])):
            for name in given:
                if name not in choices:
                    found.append(f"{where}no task has the {kind} {name!r}{nearest(name, choices, 'they have')}")
    return found


def _config(path: object, document: object, default_name: str) -> Mapping[str, Any]:
    where = f"{path}: config {default_name}" if default_name else str(path)
    if not isinstance(document, dict):
        raise UsageError(f"{where}: expected a mapping of parameters to values, such as 'language: en'")
    name = document.get("name", default_name)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]*", name):
        raise UsageError(f"{where}: name: expected text of letters, digits, '.', '_' and '-', got {name!r}")
    tasks = document.get("tasks", {})
    if not isinstance(tasks, dict) or not all(isinstance(values, dict) for values in tasks.values()):
        raise UsageError(f"{where}: tasks: expected a mapping from the key of a task to its values")
    values = {key: value for key, value in document.items() if key not in RESERVED}
    return {"name": name, "values": values, "tasks": tasks}
