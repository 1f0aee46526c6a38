"""A project with two declarative tasks over one data set, and a model that answers them: ``projects/yaml_tasks``."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.sources import PROJECTS, source

TASK = source("yaml_tasks/tasks/first.yaml")
CHOICE = source("yaml_tasks/tasks/choice.yaml")


def write_project(folder: Path) -> None:
    """Write the tasks, the data and the model."""
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECTS / "yaml_tasks", folder, dirs_exist_ok=True, ignore=unwanted)
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings =\n    error\n    ignore:.*pytest_jsonreport.*\n")
