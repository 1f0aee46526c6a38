"""The adapter ``package.module:Object``: the object of a module."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from pytest_lmeval.errors import UsageError


def imported_object(module_name: str, object_name: str, project: Path | None) -> Any:
    """Return the object of a module on the path or in ``project``; raise UsageError for what is not there."""
    spec = f"{module_name}:{object_name}"
    # pytest itself puts no project folder on the path; last, so that it shadows nothing.
    if project is not None and str(project) not in sys.path:
        sys.path.append(str(project))
    try:
        value: Any = importlib.import_module(module_name)
    except Exception as error:
        detail = f"importing {module_name} failed: {type(error).__name__}: {error}"
        if module_name.endswith(".py"):
            detail += f"; a module has a name, not a path: {module_name.removesuffix('.py')}:{object_name}"
        raise UsageError(f"adapter {spec!r}: {detail}") from error
    for part in object_name.split("."):
        if not hasattr(value, part):
            public = sorted(name for name in vars(value) if not name.startswith("_"))
            raise UsageError(
                f"adapter {spec!r}: {module_name} has no {part!r}; it has {', '.join(public) or 'nothing'}"
            )
        value = getattr(value, part)
    return value
