"""What this process has of its own on pytest's config: what it collected, and its part of the run.

Runs without a task look here, too: nothing else is imported for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_lmeval.plugin.collected import Collected
    from pytest_lmeval.plugin.state import RunState

COLLECTED = pytest.StashKey["Collected"]()
RUN = pytest.StashKey["RunState"]()


def collected_so_far(config: pytest.Config) -> Collected | None:
    """Return what this process has collected; None where it met no task file."""
    return config.stash.get(COLLECTED, None)


def run_so_far(config: pytest.Config) -> RunState | None:
    """Return this process's part of the run; None where it has none."""
    return config.stash.get(RUN, None)
