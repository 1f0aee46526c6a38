"""What is built in, and what installed packages add: the registry that a run starts with."""

from __future__ import annotations

import os
import sys
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_lmeval.postprocess import RULES
from pytest_lmeval.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.metadata import EntryPoint

_ADAPTERS = ("toy", "replay", "hf", "openai", "none")
"""The modules of ``adapters/`` that have a function ``make(argument, **options)``."""


def default_registry(*, entry_points: bool = True) -> Registry:
    """Return a registry of everything built in, and of what installed packages add.

    A package adds by an entry point of the group ``pytest_lmeval_register`` that names a function of the registry.
    """
    from pytest_lmeval.formats import jsonl, python, yaml

    registry = Registry(rules=dict(RULES))
    _register_metrics(registry)
    for name in _ADAPTERS:
        registry.add_adapter(name, partial(_make_adapter, name))
    registry.add_format(".jsonl", jsonl.load)
    registry.add_format(".yaml", yaml.load)
    registry.add_format(".py", python.load, pattern="task_*.py")
    if entry_points:
        _register_entry_points(registry)
    return registry


def _register_metrics(registry: Registry) -> None:
    from pytest_lmeval import metrics
    from pytest_lmeval.metrics.parts.declare import declared

    for file in sorted(Path(str(metrics.__file__)).parent.glob("[!_]*.py")):
        for metric in declared(import_module(f"{metrics.__name__}.{file.stem}")):
            registry.add_declared(metric)


def _make_adapter(name: str, argument: str, **options: Any) -> Any:
    # Imported when it is asked for: a run needs one, and some need large packages.
    return import_module(f"pytest_lmeval.adapters.{name}").make(argument, **options)


def _register_entry_points(registry: Registry) -> None:
    register, load_task, leaderboard = _installed(tuple((folder, _changed_at(folder)) for folder in sys.path))
    for entry_point in register:
        entry_point.load()(registry)
    registry.loaders += [entry_point.load() for entry_point in load_task]
    registry.listeners += leaderboard


@lru_cache(maxsize=1)
def _installed(folders: tuple[tuple[str, int], ...]) -> list[Sequence[EntryPoint]]:
    """Return what installed packages add, hook by hook, as long as the folders they lie in are as they were."""
    from importlib.metadata import entry_points

    # Of all groups at once, and seldom: it takes ten times as long as to make the rest of the registry.
    found = entry_points()
    return [tuple(found.select(group=f"pytest_lmeval_{hook}")) for hook in ("register", "load_task", "leaderboard")]


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder or os.curdir).st_mtime_ns
    except OSError:
        return 0
