"""Tests that import scipy, scikit-learn, statsmodels, sacrebleu, rouge-score or datasets, so that one process does."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import needs
from tests.formats.python.conftest import folder

__all__ = ["folder"]

_IMPORTED = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


class Lacking(pytest.Module):
    """A module that is not imported, since a library that it imports is not installed."""

    def collect(self) -> list[pytest.Item]:
        """Skip the module, or fail where this run must not lack a package."""
        needs.lacking("packages", f"a module of tests {needs.LACKS_LIBRARIES}")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Import no module of tests that could not be imported."""
    named = {*_IMPORTED.findall(module_path.read_text("utf-8"))} & needs.OPTIONAL
    return None if all(map(find_spec, named)) else Lacking.from_parent(parent, path=module_path)
