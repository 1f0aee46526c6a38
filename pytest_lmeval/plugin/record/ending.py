"""How a session came to its end: the gate's settings, the exit code, and the gate's verdict as a test of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_lmeval.compare.gate import LET_PASS, GateSettings
from pytest_lmeval.plugin.private import is_stepwise_stop, rerunning_plugins, suite_properties, worker_failures
from pytest_lmeval.plugin.record.progress import show_words
from pytest_lmeval.plugin.settings.settings import gate_mode, ini_floors
from pytest_lmeval.text import printable
from pytest_lmeval.types import FAILED, UNSCORED

if TYPE_CHECKING:
    from pytest_lmeval.compare.gate import Decision
    from pytest_lmeval.leaderboard.board import Leaderboard

GATE_ID = "leaderboard::gate"
UNWRITTEN = ", but the run fails: a file could not be written"
_REASONS = 20
INCOMPLETE = 3


def gate_settings(config: pytest.Config) -> GateSettings:
    """Return how the options and the ini file set the gate; a field ``x`` is the option ``--lm-x``, but for six."""
    option = config.option
    special = {
        "mode": gate_mode(config),
        "floors": {**ini_floors(config), **dict(option.lm_min_score)},
        "limits": dict(option.lm_max),
        "baseline": option.lm_baseline or "",
        "update": option.lm_update_baseline,
        # Of a run of several models, each has a config of its own that says how many are named.
        "models": getattr(config, "lm_models_named", 1),
    }
    names = [each.name for each in fields(GateSettings) if each.name not in special]
    return GateSettings(**special, **{name: getattr(option, f"lm_{name}") for name in names})


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


def failed_besides(failed: Iterable[str], statuses: Mapping[str, str], max_errors: float = 0) -> list[str]:
    """Return a sentence for every example whose test ``failed`` by a mark or a tear-down and not by its score.

    ``statuses`` are those of the examples by node id, ``skipped`` among them. Up to ``max_errors`` errors fail no
    test: one that failed all the same did so in its set-up or tear-down.
    """
    errors = sum(status in UNSCORED for status in statuses.values())
    own = FAILED - UNSCORED if errors <= max_errors else FAILED
    odd = [nodeid for nodeid in failed if nodeid in statuses and statuses[nodeid] not in own]
    return [f"{nodeid}: the test failed, the example is {statuses[nodeid]}" for nodeid in odd]


def ctrl_c_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the Ctrl-C that ``error`` is, or that it has replaced.

    pluggy warns of every exception that passes an old-style hook wrapper; where warnings are errors, that one goes on.
    """
    while isinstance(error, Warning):
        error = error.__context__
    # Its subclasses are pytest's and xdist's own ways to stop.
    return error if type(error) is KeyboardInterrupt else None


def report_gate(session: pytest.Session, board: Leaderboard, unwritten: Sequence[str], label: str = "") -> None:
    """Report a gate that does not let the run pass to every report writer, as a failed test called GATE_ID.

    Failed items were reported already: where they are the verdict's reason, or a run that was cut short has any,
    nothing is added. Reports that are ``unwritten`` fail a run, too. JUnit has the verdict in any case, as properties
    of the suite. With a ``label``, the gate is that of one of several models.
    """
    config = session.config
    of = f"[{label}]" if label else ""
    gate = board.facts.gate or {}
    for note in suite_properties(config):
        note(f"lm_gate{of}", gate["mode"])
        note(f"lm_verdict{of}", gate["verdict"])
        note(f"lm_reasons{of}", "; ".join(gate["reasons"][:_REASONS]))
    if _is_reported(session.testsfailed, board, gate["verdict"]) and (session.testsfailed or not unwritten):
        return
    reasons = [*gate["reasons"], *(f"not written: {failure}" for failure in unwritten)]
    fails = UNWRITTEN if unwritten and gate["verdict"] in LET_PASS else ""
    lines = [f"gate {gate['mode']}: {gate['verdict']}{fails}", *(f"  {reason}" for reason in reasons)]
    text = "\n".join(printable(line, keep="") for line in lines)
    properties = [("lm_gate", gate["mode"]), ("lm_verdict", gate["verdict"])]
    # Not an item: --lf and --sw must not go looking for it.
    logreport = config.pluginmanager.subset_hook_caller("pytest_runtest_logreport", rerunning_plugins(config))
    phases: tuple[Literal["setup", "call", "teardown"], ...] = ("setup", "call", "teardown")
    for when in phases:
        failed = when == "call"
        report = pytest.TestReport(
            nodeid=f"{GATE_ID}{of}",
            location=("leaderboard", None, f"gate{of}"),
            keywords={},
            outcome="failed" if failed else "passed",
            longrepr=text if failed else None,
            when=when,
            user_properties=list(properties),
        )
        show_words(config)
        # Counted and shown with the failures, but without a word as it comes: it is no part of the progress.
        report.__dict__["lm_gate"] = ""
        logreport(report=report)
        report.__dict__["lm_gate"] = "FAILED"


def _is_reported(failures: int, board: Leaderboard, verdict: str) -> bool:
    # Another plugin may have made a failed example look like none.
    owed = sum(result.status == "failed" for row in board.tasks for result in row.per_example)
    reported = {"examples": failures >= max(1, owed), "incomplete": failures > 0}
    return verdict in LET_PASS or reported.get(verdict, False)
