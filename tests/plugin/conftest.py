"""The project that tests of several folders of this one begin with."""

from __future__ import annotations

import pytest

from tests.conftest import Project


@pytest.fixture
def small(project: Project) -> Project:
    """Provide two tasks of five examples together, of which the model gets one wrong."""
    project.small_tasks()
    return project
