"""Modules under their names of before: they are the same modules, and a warning tells the name to write."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from pytest_lmeval.moved import MOVED


@pytest.mark.parametrize("before", ["engine.evaluate", "engine.engine", "plugin.collector"])
def test_a_module_is_imported_by_its_old_name_with_a_warning(before: str) -> None:
    now = f"pytest_lmeval.{MOVED[before]}"
    sys.modules.pop(f"pytest_lmeval.{before}", None)
    with pytest.warns(DeprecationWarning, match=f"pytest_lmeval.{before} is {now} now"):
        module = importlib.import_module(f"pytest_lmeval.{before}")
    assert module is importlib.import_module(now)


def test_every_new_name_is_that_of_a_module() -> None:
    assert [] == [name for name in MOVED.values() if importlib.util.find_spec(f"pytest_lmeval.{name}") is None]


@pytest.mark.parametrize("name", ["pytest_lmeval.engine.nothing", "pytest_lmeval.nothing"])
def test_a_module_that_never_was_is_not_found(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=name):
        importlib.import_module(name)
