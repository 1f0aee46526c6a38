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

    Called in every process of a run, after everything built in is registered; more than once, each time with a new
    registry, where something must be known before all conftest files are loaded::

        def pytest_lmeval_register(registry):
            registry.add_metric("starts_with", starts_with, threshold=1.0)

    A name that is taken is an error: nothing built in can be replaced by accident.
    """


@pytest.hookspec(firstresult=True)
def pytest_lmeval_load_task(path: Path) -> LoadedFile | None:
    """Return the tasks and bad records of the file at ``path``, or None to leave it to the registered formats.

    Called for every task file of a run; the first answer that is not None is taken.
    A task may leave out the members that ``pytest_lmeval.task.Task`` has; one that lacks another member
    is a collection error.
    """


def pytest_lmeval_leaderboard(config: pytest.Config, leaderboard: Leaderboard) -> None:
    """Look at the board of the finished run.

    Called once, in the controlling process, also for an incomplete run, after the reports are written and the exit code
    is fixed: a hook that raises makes a run fail that would have passed, and nothing it does makes one pass.
    """
