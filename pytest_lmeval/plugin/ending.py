"""How a session came to its end, where the results of its examples do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from pytest_lmeval.types import FAILED

__all__ = ["failed_besides", "stopped_by_choice", "why_cut_short"]


def why_cut_short(session: pytest.Session, status: int, unheard: Iterable[str]) -> list[str]:
    """Return why a session of which no result is missing did not come to its end; empty where it did.

    ``unheard`` are the node ids of examples whose last phase was not heard of. That matters only where the exit
    ``status`` is 0: any other has its own reason.
    """
    if status == pytest.ExitCode.INTERRUPTED and not stopped_by_choice(session):
        return ["the session was interrupted"]
    if status == pytest.ExitCode.INTERNAL_ERROR:
        return ["the session ended with an internal error"]
    return [f"its end was not heard of: {nodeid}" for nodeid in unheard] if status == pytest.ExitCode.OK else []


def failed_besides(failed: Iterable[str], fates: Mapping[str, str]) -> list[str]:
    """Return a sentence for every example whose test ``failed`` by a mark or a tear-down and not by its score.

    ``fates`` are the statuses of the examples by node id, ``skipped`` among them.
    """
    odd = [nodeid for nodeid in failed if nodeid in fates and fates[nodeid] not in FAILED]
    return [f"{nodeid}: the test failed, the example is {fates[nodeid]}" for nodeid in odd]


def stopped_by_choice(session: pytest.Session) -> bool:
    """Tell whether -x, --maxfail or --sw stopped the run, rather than that they might have."""
    option = session.config.option
    workers = session.config.pluginmanager.getplugin("dsession")
    failures = getattr(workers, "countfailures", session.testsfailed)
    if option.maxfail and failures >= option.maxfail:
        return True
    stopped = session.shouldstop or getattr(workers, "shouldstop", False)
    stepwise = getattr(option, "stepwise", False) or getattr(option, "stepwise_skip", False)
    return bool(stepwise and "continuing from this test" in str(stopped))
