"""What items tell the run at their turn: what they wait for, and that no further one is to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_lmeval.text import printable

if TYPE_CHECKING:
    import pytest


def stop_session(session: pytest.Session, reason: str) -> None:
    """Have pytest run no further item; where the board is shown, that says why."""
    where = "stopped: the reason is under the leaderboard"
    session.shouldstop = where if session.config.getoption("verbose", 0) >= -1 else printable(reason, keep="")


def show_waiting(config: pytest.Config, engine: Any, in_flight: int | None = None) -> None:
    """Say, if it is time to, what the run waits for; by default for the requests of ``engine``."""
    recorder: Any = config.pluginmanager.getplugin("lmeval-recorder")
    if recorder is not None:
        requests = min(len(engine.jobs), engine.policy.concurrency)
        recorder.waiting(requests if in_flight is None else in_flight, engine.wait)
