"""The projects that runs inside tests are about, as files that one can open, run by hand, lint and type-check.

The benchmarks are scripts outside of the package: tests import them here.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from tests import needs

__all__ = ["PROJECTS", "imported_benchmark", "source"]

PROJECTS = Path(__file__).parent / "projects"


def source(name: str) -> str:
    """Return the text of a file of ``tests/projects``."""
    needs.of_projects(name)
    return (PROJECTS / name).read_text("utf-8")


@contextmanager
def imported_benchmark(name: str) -> Iterator[ModuleType]:
    """Import ``benchmarks/NAME.py``; it is no module any more at the end."""
    path = Path(__file__).parents[1] / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
