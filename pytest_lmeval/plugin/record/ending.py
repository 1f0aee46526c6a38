"""How a session ends: its exit code, Ctrl-C, and ``os._exit``, which must not end a run green or before its time."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NoReturn

import pytest

from pytest_lmeval.frozen import dataclass
from pytest_lmeval.plugin.private.workers import is_stepwise_stop, worker_failures

if TYPE_CHECKING:
    from pytest_lmeval.compare.gate import Decision

INCOMPLETE = 3
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a session ended besides the results of its examples.

    ``status`` is pytest's own exit code. ``interrupted`` says that Ctrl-C reached this process or a worker,
    ``by_choice`` that -x, --maxfail or --sw stopped the run, ``lost`` that not all tests reported completion.
    ``uncollected`` are the node ids of what pytest could not collect.
    """

    status: int
    interrupted: bool = False
    by_choice: bool = False
    lost: bool = False
    uncollected: Sequence[str] = ()

    def why_cut_short(self, unfinished: Iterable[str]) -> list[str]:
        """Return why a session did not finish although no result is missing; empty if it finished.

        ``unfinished`` are the node ids of examples that did not report completion. That matters only where the exit
        status is 0: any other has its own reason.
        """
        if self.status == pytest.ExitCode.INTERRUPTED and not self.by_choice:
            return ["the session was interrupted"]
        if self.status == pytest.ExitCode.INTERNAL_ERROR:
            return ["the session ended with an internal error"]
        if self.status != pytest.ExitCode.OK:
            return []
        return [f"{nodeid} did not report completion" for nodeid in unfinished]

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


def ending_of(
    session: pytest.Session, status: int, *, interrupted: bool, lost: bool, uncollected: Sequence[str]
) -> Ending:
    """Return how ``session`` ended, in the process that receives all of its reports."""
    limit = session.config.option.maxfail
    failures = max(session.testsfailed, worker_failures(session.config))
    by_choice = bool(limit and failures >= limit) or is_stepwise_stop(session)
    return Ending(status=int(status), interrupted=interrupted, by_choice=by_choice, lost=lost, uncollected=uncollected)


def ctrl_c_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the Ctrl-C that ``error`` is, or that it has replaced.

    pluggy warns of every exception that passes an old-style hook wrapper; where warnings are errors, that one goes on.
    """
    while isinstance(error, Warning):
        error = error.__context__
    # Its subclasses are pytest's and xdist's own ways to stop.
    return error if type(error) is KeyboardInterrupt else None


class ExitGuard:
    """Replaces ``os._exit`` during a run: the first call winds the run up, then the process ends.

    ``ending`` is the lock of whoever ends the run, by this guard or in the ordinary way. Calls from other threads wait
    for it; a call from within the ending ends the process at once. Neither ends it with status 0.

    A forked child ends as it would have: only the process that made the guard is held to it.
    """

    def __init__(self, wind_up: Callable[[int], int], ending: threading.RLock) -> None:
        self._wind_up = wind_up
        self._ending = ending
        self._is_winding_up = False
        self._owner = os.getpid()
        self._exit = os._exit

    def install(self) -> None:
        """Take the place of ``os._exit``."""
        os._exit = self

    def remove(self) -> None:
        """Give ``os._exit`` its place back, if this has it."""
        if os._exit is self:
            os._exit = self._exit

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() == self._owner:
            # Never released: the process ends here. The wait has a limit because the thread that holds the lock may
            # itself wait for this one.
            held = self._ending.acquire(timeout=_PATIENCE_S)
            status = self._wound_up(status) if held and not self._is_winding_up else status or INCOMPLETE
        self._exit(status)

    def _wound_up(self, status: int) -> int:
        self._is_winding_up = True
        try:
            return self._wind_up(status)
        except BaseException:  # whatever it is, it must not return to the caller of os._exit
            traceback.print_exc()
            return status or INCOMPLETE
