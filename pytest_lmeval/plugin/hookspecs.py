"""The plugin's hooks, for conftest files and other plugins; their docstrings are the manual."""

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

    Every process of a run calls this hook after registering everything built in. The process calls the hook again with
    a new registry after loading another conftest file::

        def pytest_lmeval_register(registry):
            registry.add_metric("starts_with", starts_with, threshold=1.0)

    Registering a name twice is an error, to prevent replacing a built-in part by accident.
    """


@pytest.hookspec(firstresult=True)
def pytest_lmeval_load_task(path: Path) -> LoadedFile | None:
    """Return the tasks and bad records of the file at ``path``, or None to leave it to the registered formats.

    The plugin calls this hook for every task file of a run, and uses the first result that is not None. A task may omit
    members that ``pytest_lmeval.task.Task`` defines by default; a missing required member is a collection error.
    """


def pytest_lmeval_leaderboard(config: pytest.Config, leaderboard: Leaderboard) -> None:
    """Receive the finished run's board.

    The controlling process calls this hook once, even for an incomplete run, after it has written the reports and fixed
    the exit code. A hook that raises fails a run that would have passed; no hook can make a failed run pass.
    """
