"""What this process has of its own on pytest's config: its environment, what it collected, its part of the run.

Runs without a task look here, too: nothing else is imported for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_lmeval.plugin.asking.state import RunState
    from pytest_lmeval.plugin.collect.collected import Collected

COLLECTED = pytest.StashKey["Collected"]()
RUN = pytest.StashKey["RunState"]()
ENVIRONMENT = pytest.StashKey[Callable[[str], str | None]]()
"""What reads an environment variable as it was when the options were read."""


def collected_so_far(config: pytest.Config) -> Collected | None:
    """Return what this process has collected; None where it met no task file."""
    return config.stash.get(COLLECTED, None)


def run_so_far(config: pytest.Config) -> RunState | None:
    """Return this process's part of the run; None where it has none."""
    return config.stash.get(RUN, None)


def keep_environment(config: pytest.Config) -> None:
    """Keep the environment variables as they are now: what tests and their imports change is theirs alone."""
    # As what reads them: a dict with all that is secret in it would stand in tracebacks that show variables.
    read: Callable[[str], str | None] = dict(os.environ).get
    config.stash[ENVIRONMENT] = read
