"""Keep pytest from rewriting the assertions in this package's modules."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from typing import Any


class _Own:
    """Finds this package's modules with Python's own finder."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of one of this package's modules, or None for other modules."""
        return PathFinder.find_spec(name, path, target) if name.startswith("pytest_lmeval.") else None


def find_first() -> None:
    """Put this package's finder ahead of pytest's import hook, if pytest is loaded.

    pytest rewrites the assertions in plugins as well as in tests. To do so, pytest reads and hashes each source file in
    every run, and compiles all source files if it cannot write bytecode.
    """
    if "_pytest.assertion.rewrite" in sys.modules and sys.meta_path[0] is not _Own:
        sys.meta_path[:] = [_Own, *(finder for finder in sys.meta_path if finder is not _Own)]


# Run on import: the plugin imports this module first.
find_first()
