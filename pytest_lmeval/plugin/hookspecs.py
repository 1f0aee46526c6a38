"""Define the plugin's hooks for conftest files and other plugins; the docstrings document the hooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_lmeval.formats.task import LoadedFile
    from pytest_lmeval.leaderboard.board import Leaderboard
    from pytest_lmeval.registry import Registry


def pytest_lmeval_register(registry: Registry) -> None:
    """Add metrics, post-process rules, adapters or formats to the run's registry.

    Every process in a run calls this hook after registering all built-in parts. If another conftest file with this hook
    is loaded later, the process calls the hook again with a new registry. A hook may look like this::

        def pytest_lmeval_register(registry):
            registry.add_metric("starts_with", starts_with, threshold=1.0)

    Registering a name twice is an error, so that a project cannot replace a built-in part by accident.
    """


@pytest.hookspec(firstresult=True)
def pytest_lmeval_load_task(path: Path) -> LoadedFile | None:
    """Return the tasks and bad records of the file at ``path``, or None to leave the file to the registered formats.

    The plugin calls this hook for every task file in a run, and uses the first result that is not None. A task may omit
    members that have a default in ``pytest_lmeval.task.Task``, but a missing required member is a collection error.
    """


def pytest_lmeval_leaderboard(config: pytest.Config, leaderboard: Leaderboard) -> None:
    """Receive a finished run's leaderboard.

    The controlling process calls this hook once for each model, even if the run is incomplete, after it has written the
    model's reports. A hook that raises an exception fails a run that would otherwise have passed, but no hook can make
    a failed run pass.
    """
