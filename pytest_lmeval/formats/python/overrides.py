"""What a task class writes itself: decided by the classes that it is made of, not by how a name reads."""

from __future__ import annotations

from typing import Any

from pytest_lmeval.tasks.base import BaseTask

_OURS = ("pytest_lmeval.tasks.", "pytest_lmeval.compat.")
_NOBODYS = (object, *BaseTask.__mro__[1:])


def own_classes(kind: type) -> list[type]:
    """Return the classes in the order of lookup, without those of this package and of Python."""
    return [base for base in kind.__mro__ if base not in _NOBODYS and not base.__module__.startswith(_OURS)]


def own_names(kind: type) -> list[str]:
    """Return the names that the class and its bases set."""
    return [name for base in own_classes(kind) for name in vars(base)]


def overrides(kind: type[BaseTask[Any]], name: str) -> bool:
    """Tell whether the class, or a base that is not ours, sets ``name``."""
    return any(name in vars(base) for base in own_classes(kind))
