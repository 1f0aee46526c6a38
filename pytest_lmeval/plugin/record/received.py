"""Receive examples' results and workers' reports, and derive how the session ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.errors import INCOMPLETE
from pytest_lmeval.frozen import dataclass
from pytest_lmeval.leaderboard.board import SERVICE
from pytest_lmeval.leaderboard.details import FAILED_ATTEMPTS
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.collect.locate import is_plain_python
from pytest_lmeval.plugin.common.report import WorkerReport
from pytest_lmeval.plugin.private.reports import is_rerun
from pytest_lmeval.plugin.private.workers import is_stepwise_stop, worker_failures
from pytest_lmeval.records.service import Outside, joined
from pytest_lmeval.types import FAILED, UNSCORED, ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.compare.gate import Decision


class Received:
    """A run's results by node id, as they arrive; ``expected`` maps each example to whether it has finished.

    ``parse`` converts the line in a report to a result. If ``knows_items``, all announced ids belong to examples.
    ``facts``, ``remarks``, ``interrupted`` and ``stopped`` combine the reports of all finished workers.
    """

    def __init__(self, parse: Callable[[str], ExampleResult], *, knows_items: bool = True) -> None:
        self._knows_items = knows_items
        self.expected: dict[str, bool] = {}
        self.results: dict[str, ExampleResult] = {}
        self.skipped: set[str] = set()
        self.failed: dict[str, None] = {}
        self.reruns = 0
        self.rerun_usage: dict[str, float] = {}
        self.usage: dict[str, float] = {}
        self._attempts: dict[str, list[Mapping[str, object]]] = {}
        self.tasks: dict[str, TaskInfo] = {}
        self.facts: dict[str, Any] = {}
        self.remarks: list[str] = []
        self.interrupted = False
        self.stopped = ""
        self._parse = parse

    @property
    def missing(self) -> list[str]:
        """The node ids of examples without a result, in collection order."""
        return [nodeid for nodeid in self.expected if nodeid not in self.results and nodeid not in self.skipped]

    @property
    def unfinished(self) -> list[str]:
        """The node ids of examples whose reports have not all arrived."""
        return [nodeid for nodeid, is_finished in self.expected.items() if not is_finished]

    @property
    def statuses(self) -> dict[str, str]:
        """Each example's status, or ``skipped``, by node id."""
        return dict.fromkeys(self.skipped, "skipped") | {id: result.status for id, result in self.results.items()}

    def announce(self, nodeids: Iterable[str]) -> None:
        """Expect a result for each example in ``nodeids``."""
        for nodeid in nodeids:
            self.expected.setdefault(nodeid, False)

    def finish(self, nodeid: str) -> None:
        """Mark a test as finished when all its reports have arrived."""
        self.expected[nodeid] = True
        if self._knows_items or nodeid in self.results or nodeid in self.skipped:
            return
        if is_plain_python(Path(nodeid.partition("::")[0])):
            # An ordinary test: a test file's text does not tell which functions are evals.
            self.expected.pop(nodeid, None)

    def add(self, report: WorkerReport, label: str) -> None:
        """Add a worker's report, with the facts and remarks for the model ``label``."""
        for fields in report.tasks or ():
            info = TaskInfo(**{**fields, "bad_records": tuple(fields["bad_records"])})
            self.tasks[info.name] = info
        for nodeid in report.foreign:
            self.expected.pop(nodeid, None)
            self.skipped.discard(nodeid)
        self.facts = _joined(self.facts, report.facts.get(label, {}))
        self.remarks += report.remarks.get(label, ())
        self.interrupted = self.interrupted or report.interrupted
        self.stopped = self.stopped or report.stopped

    def lose(self, nodeid: str) -> ExampleResult | None:
        """Discard the result of an example whose worker died, possibly while running it."""
        self.failed[nodeid] = None
        return self.results.pop(nodeid, None)

    def take(self, report: pytest.TestReport) -> tuple[ExampleResult, str] | None:
        """Remove the result from a report, to hide it from other writers, and return it with its line.

        Return None if the report has no result, or if another attempt follows.
        """
        if report.failed:
            self.failed[report.nodeid] = None
        properties = report.user_properties
        for entry in reversed(properties):
            if entry[0] == "lmeval":
                properties.remove(entry)
                return self._taken(report, str(entry[1]))
        if report.skipped and report.nodeid in self.expected and report.nodeid not in self.results:
            self.skipped.add(report.nodeid)
        return None

    def _taken(self, report: pytest.TestReport, line: str) -> tuple[ExampleResult, str] | None:
        # In a single process, the report holds the result itself, which shares its strings with the example.
        result = report.__dict__.pop("lmeval_result", None) or self._parse(line)
        is_again = is_rerun(report)
        for name, amount in result.usage.items():
            for usage in (self.usage, self.rerun_usage) if is_again else (self.usage,):
                usage[name] = usage.get(name, 0) + amount
        if is_again:
            self.reruns += 1
            self._attempts.setdefault(report.nodeid, []).append(_attempt(result))
            return None
        if attempts := self._attempts.pop(report.nodeid, None):
            result = replace(result, details={**result.details, FAILED_ATTEMPTS: attempts})
            line = result.to_json()
        if result.status == "failed" and report.outcome != "failed" and hasattr(report, "wasxfail"):
            # Only an xfail mark turns a failed example into a pass.
            result = replace(result, status="below")
            line = replace(ExampleResult.from_json(line), status="below").to_json()
        self.results[report.nodeid] = result
        self.skipped.discard(report.nodeid)
        return result, line


def _attempt(result: ExampleResult) -> Mapping[str, object]:
    """Return the part of a failed attempt's result that the next attempt would otherwise replace."""
    outcome = result.outcome
    known = {"outputs": result.answer.outputs, "error": outcome.error, "details": outcome.details}
    return {"status": outcome.status, "score": outcome.score, **{name: value for name, value in known.items() if value}}


def failed_besides(failed: Iterable[str], statuses: Mapping[str, str], max_errors: float = 0) -> list[str]:
    """Return a sentence for each example whose test ``failed`` because of a mark or tear-down, not its score.

    ``statuses`` maps node ids to statuses. If there are at most ``max_errors`` errors, no error fails its test, so the
    failed test of an example with an error has another cause, such as a fixture.
    """
    errors = sum(status in UNSCORED for status in statuses.values())
    own = FAILED - UNSCORED if errors <= max_errors else FAILED
    odd = [nodeid for nodeid in failed if nodeid in statuses and statuses[nodeid] not in own]
    return [f"{nodeid}: the test failed, the example is {statuses[nodeid]}" for nodeid in odd]


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two workers' facts: sum cache counts and costs, and combine outside requests and late messages."""
    both = {**one, **other}
    if "cache" in one and "cache" in other:
        first, second = one["cache"], other["cache"]
        names = {"hits", "misses", "saved_cost", "draws"} & {*first, *second}
        added = {name: first.get(name, 0) + second.get(name, 0) for name in sorted(names)}
        asked = [each["oldest"] for each in (first, second) if "oldest" in each]
        both["cache"] = {**first, **second, **added, **({"oldest": min(asked)} if asked else {})}
    if "max_cost" in one and "max_cost" in other:
        first, second = one["max_cost"], other["max_cost"]
        both["max_cost"] = {**first, "spent": first["spent"] + second["spent"]}
    if outside := joined(Outside.of(each.get(SERVICE, {})) for each in (one, other)):
        both[SERVICE] = outside.to_json()
    if late := [*one.get("late", ()), *other.get("late", ())]:
        both["late"] = late
    return both


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Describes how a session ended, apart from its examples' results.

    ``status`` is pytest's exit code. ``interrupted`` means that Ctrl-C reached this process or a worker. ``by_choice``
    means that -x, --maxfail or --sw stopped the run, and ``lost`` means that some tests never reported completion.
    ``uncollected`` lists the node ids of failed collectors.
    """

    status: int
    interrupted: bool = False
    by_choice: bool = False
    lost: bool = False
    uncollected: Sequence[str] = ()

    def why_cut_short(self, unfinished: Iterable[str]) -> list[str]:
        """Return why a session did not finish although every result arrived, or an empty list if it finished.

        Examples in ``unfinished``, which never reported completion, matter only if the exit status is 0.
        """
        if self.status == pytest.ExitCode.INTERRUPTED and not self.by_choice:
            return ["the session was interrupted"]
        if self.status == pytest.ExitCode.INTERNAL_ERROR:
            return ["the session ended with an internal error"]
        if self.status != pytest.ExitCode.OK:
            return []
        return [f"{nodeid} did not report completion" for nodeid in unfinished]

    def exit_code(self, decision: Decision, *, missing: bool, has_board: bool, unwritten: bool) -> int:
        """Return the exit code for a run with this ``decision``.

        ``missing`` means that some examples lack a result, and ``has_board`` means that leaderboard.json was written.
        ``unwritten`` means that a file could not be written.
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
    """Describe the end of ``session``, in the process that receives all reports."""
    limit = session.config.option.maxfail
    failures = max(session.testsfailed, worker_failures(session.config))
    by_choice = bool(limit and failures >= limit) or is_stepwise_stop(session)
    return Ending(status=int(status), interrupted=interrupted, by_choice=by_choice, lost=lost, uncollected=uncollected)
