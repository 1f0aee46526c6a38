"""Read ``[tool.lmeval]`` in ``pyproject.toml`` for pytest runs and the command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.registry import Registry

_KEYS = ("adapters", "plugins", "prices")


def project_table(folder: Path) -> dict[str, Any]:
    """Return the ``[tool.lmeval]`` table of the project in ``folder``, or an empty dict if there is no such table."""
    import tomllib

    path = folder / "pyproject.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("lmeval", {})
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tool.lmeval must be a table, got {type(table).__name__}")
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"{path}: {UnknownName('key in tool.lmeval', key, _KEYS)}")
    return table


def register_project_plugins(registry: Registry, folder: Path) -> None:
    """Call ``pytest_lmeval_register`` of every module in ``[tool.lmeval] plugins``."""
    for register in project_plugins(folder):
        register(registry)


def registering_conftest(task: Path, folder: Path) -> Path | None:
    """Return the nearest conftest.py, from a task's folder up to ``folder``, that mentions pytest_lmeval_register."""
    for parent in task.absolute().parents:
        conftest = parent / "conftest.py"
        if conftest.is_file() and b"pytest_lmeval_register" in conftest.read_bytes():
            return conftest.relative_to(folder) if conftest.is_relative_to(folder) else conftest
        if parent == folder:
            break
    return None


def project_plugins(folder: Path) -> list[Callable[[Registry], Any]]:
    """Import every module in ``[tool.lmeval] plugins``, and return its function ``pytest_lmeval_register``."""
    names = project_table(folder).get("plugins", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(f"{folder / 'pyproject.toml'}: tool.lmeval.plugins must be an array of module names")
    if names and str(folder) not in sys.path:
        sys.path.append(str(folder))
    registers = []
    for name in names:
        try:
            module = importlib.import_module(name)
        except Exception as error:
            detail = f"importing {name} failed: {type(error).__name__}: {error}"
            raise UsageError(f"tool.lmeval.plugins: {detail}") from error
        if not hasattr(module, "pytest_lmeval_register"):
            raise UsageError(f"tool.lmeval.plugins: {name} has no function pytest_lmeval_register(registry)")
        registers.append(module.pytest_lmeval_register)
    return registers
