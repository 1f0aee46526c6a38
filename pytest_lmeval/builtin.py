"""What is built in, and what installed packages add: the registry that a run starts with."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_lmeval.postprocess import RULES
from pytest_lmeval.registry import Registry

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
    from importlib.metadata import entry_points

    # Of all groups at once: to look through what is installed takes longer than to make the rest of the registry.
    installed = entry_points()
    for entry_point in installed.select(group="pytest_lmeval_register"):
        entry_point.load()(registry)
    registry.loaders += [entry_point.load() for entry_point in installed.select(group="pytest_lmeval_load_task")]
    registry.listeners += installed.select(group="pytest_lmeval_leaderboard")
