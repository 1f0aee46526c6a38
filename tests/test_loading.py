"""What installed packages add to what is built in, and how often it is looked for."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.loading import default_registry, validate_task
from pytest_lmeval.project import project_plugins


def test_what_is_installed_is_looked_through_again_only_where_something_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[Any] = []
    look = importlib.metadata.entry_points

    def entry_points(**selected: Any) -> Any:
        scans.append(selected)
        return look(**selected)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for _ in range(10):
        validate_task({"prompt": "1 + 1 =", "targets": ["2"], "metric": "exact_match"})
    assert 1 == len(scans)

    (tmp_path / "added_metric.py").write_text("def register(registry): registry.add_metric('added', lambda *_: 1.0)")
    (tmp_path / "added-1.dist-info").mkdir()
    (tmp_path / "added-1.dist-info/METADATA").write_text("Name: added\nVersion: 1\n")
    register = "[pytest_lmeval_register]\nadded = added_metric:register\n"
    (tmp_path / "added-1.dist-info/entry_points.txt").write_text(register)
    monkeypatch.delitem(sys.modules, "added_metric", raising=False)
    assert "added" in default_registry().metrics
    assert 2 == len(scans)


def test_the_plugins_of_a_project_are_found_in_its_folder_which_is_added_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.lmeval]\nplugins = ['added_by_project']\n")
    (tmp_path / "added_by_project.py").write_text("def pytest_lmeval_register(registry): pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for _ in range(2):
        monkeypatch.delitem(sys.modules, "added_by_project", raising=False)
        (register,) = project_plugins(tmp_path)
        assert ("added_by_project", 1) == (register.__module__, sys.path.count(str(tmp_path)))
    monkeypatch.delitem(sys.modules, "added_by_project")
