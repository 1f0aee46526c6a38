"""Hooks of this plugin, for conftest files and other plugins. Their docstrings are the manual."""

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

    Called in every process of a run, after everything built in is registered. Called again with a new registry when
    another conftest file has been loaded::

        def pytest_lmeval_register(registry):
            registry.add_metric("starts_with", starts_with, threshold=1.0)

    Registering a name twice is an error, so that nothing built in is replaced by accident.
    """


@pytest.hookspec(firstresult=True)
def pytest_lmeval_load_task(path: Path) -> LoadedFile | None:
    """Return the tasks and bad records of the file at ``path``, or None to leave it to the registered formats.

    Called for every task file of a run; the first result that is not None counts.
    A task may omit the members that ``pytest_lmeval.task.Task`` defines; omitting any other member is a collection
    error.
    """


def pytest_lmeval_leaderboard(config: pytest.Config, leaderboard: Leaderboard) -> None:
    """Receive the board of the finished run.

    Called once, in the controlling process, after the reports are written and the exit code is fixed, even for an
    incomplete run. A hook that raises fails a run that would have passed; no hook can make a failed run pass.
    """
