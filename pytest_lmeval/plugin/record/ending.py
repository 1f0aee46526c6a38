"""How a session came to its end, and the exit code that this makes of the gate's decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_lmeval.plugin.private import is_stepwise_stop, worker_failures
from pytest_lmeval.types import FAILED, UNSCORED

if TYPE_CHECKING:
    from pytest_lmeval.compare.gate import Decision

INCOMPLETE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a session ended besides the results of its examples.

    ``status`` is pytest's own exit code. ``interrupted`` says that Ctrl-C reached this process or a worker,
    ``by_choice`` that -x, --maxfail or --sw stopped the run, ``lost`` that not all tests reported completion.
    """

    status: int
    interrupted: bool = False
    by_choice: bool = False
    lost: bool = False

    def why_cut_short(self, unheard: Iterable[str]) -> list[str]:
        """Return why a session did not finish although no result is missing; empty if it finished.

        ``unheard`` are the node ids of examples whose last phase was not heard of. That matters only where the exit
        status is 0: any other has its own reason.
        """
        if self.status == pytest.ExitCode.INTERRUPTED and not self.by_choice:
            return ["the session was interrupted"]
        if self.status == pytest.ExitCode.INTERNAL_ERROR:
            return ["the session ended with an internal error"]
        unheard = unheard if self.status == pytest.ExitCode.OK else ()
        return [f"its end was not heard of: {nodeid}" for nodeid in unheard]

    def exit_code(self, decision: Decision, *, missing: bool, has_board: bool, unwritten: bool) -> int:
        """Return the exit code of a run on which ``decision`` was made.

        ``missing`` says that examples have no result. ``has_board`` says that leaderboard.json is written,
        ``unwritten`` that a report is not.
        """
        if self.status == pytest.ExitCode.USAGE_ERROR or self.interrupted:
            return self.status
        if not has_board:
            return INCOMPLETE
        if (missing or self.status == pytest.ExitCode.INTERRUPTED) and self.by_choice:
            return int(pytest.ExitCode.TESTS_FAILED)
        if decision.exit_code in (INCOMPLETE, pytest.ExitCode.USAGE_ERROR):
            return decision.exit_code
        if self.status != pytest.ExitCode.OK:
            return self.status
        if decision.exit_code or unwritten:
            return int(pytest.ExitCode.TESTS_FAILED)
        return INCOMPLETE if self.lost else self.status


def ending_of(session: pytest.Session, status: int, *, interrupted: bool, lost: bool) -> Ending:
    """Return how ``session`` ended, in the process that hears all of it."""
    limit = session.config.option.maxfail
    failures = max(session.testsfailed, worker_failures(session.config))
    by_choice = bool(limit and failures >= limit) or is_stepwise_stop(session)
    return Ending(status=int(status), interrupted=interrupted, by_choice=by_choice, lost=lost)


def failed_besides(failed: Iterable[str], fates: Mapping[str, str], max_errors: float = 0) -> list[str]:
    """Return a sentence for every example whose test ``failed`` by a mark or a tear-down and not by its score.

    ``fates`` are the statuses of the examples by node id, ``skipped`` among them. Up to ``max_errors`` errors fail no
    test: one that failed all the same did so in its set-up or tear-down.
    """
    errors = sum(fate in UNSCORED for fate in fates.values())
    own = FAILED - UNSCORED if errors <= max_errors else FAILED
    odd = [nodeid for nodeid in failed if nodeid in fates and fates[nodeid] not in own]
    return [f"{nodeid}: the test failed, the example is {fates[nodeid]}" for nodeid in odd]


def ctrl_c_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the Ctrl-C that ``error`` is, or that it has replaced.

    pluggy warns of every exception that passes an old-style hook wrapper; where warnings are errors, that one goes on.
    """
    while isinstance(error, Warning):
        error = error.__context__
    # Its subclasses are pytest's and xdist's own ways to stop.
    return error if type(error) is KeyboardInterrupt else None
