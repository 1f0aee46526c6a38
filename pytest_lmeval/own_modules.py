"""How the modules of this package are found: as they are, and not as pytest rewrites those of a plugin."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import Any


class _Own:
    """Finds the modules of this package, as Python itself would."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """Return how a module of this package is imported; None for every other."""
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_lmeval.") else None


def find_first() -> None:
    """Have the modules of this package found ahead of pytest, if it is there.

    pytest rewrites their asserts as it does those of tests. For that it reads and hashes the source of each module in
    every run, and compiles all of them where it may not write down what it made of them.
    """
    if "_pytest.assertion.rewrite" in sys.modules and sys.meta_path[0] is not _Own:
        sys.meta_path[:] = [_Own, *(finder for finder in sys.meta_path if finder is not _Own)]


# Here, as the plugin imports this module before all others.
find_first()
