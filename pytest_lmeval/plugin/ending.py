"""How a session came to its end, where the results of its examples do not tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from pytest_lmeval.plugin.private import is_stepwise_stop, worker_failures

__all__ = ["failed_besides", "stopped_by_choice", "why_cut_short"]

_NOT_FAILED = ("passed", "below", "measured", "excluded", "skipped")


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
    odd = [nodeid for nodeid in failed if fates.get(nodeid) in _NOT_FAILED]
    return [f"{nodeid}: the test failed, the example is {fates[nodeid]}" for nodeid in odd]


def stopped_by_choice(session: pytest.Session) -> bool:
    """Tell whether -x, --maxfail or --sw stopped the run, rather than that they might have."""
    limit = session.config.option.maxfail
    failures = max(session.testsfailed, worker_failures(session.config))
    return bool(limit and failures >= limit) or is_stepwise_stop(session)
