"""What the controlling process hears of a run, and what it makes of it at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.arguments import MaxErrors
from pytest_lmeval.compare.gate import Decision, decide, renewed
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.ending import failed_besides, stopped_by_choice, why_cut_short
from pytest_lmeval.plugin.gating import changed_in, gate_settings, read_baseline, report_gate
from pytest_lmeval.plugin.progress import Progress
from pytest_lmeval.plugin.report_files import ReportFiles
from pytest_lmeval.plugin.resuming import Resumption
from pytest_lmeval.plugin.run_facts import info_of, manifest_of, selection_of
from pytest_lmeval.plugin.state import run_state
from pytest_lmeval.records.ledger import Ledger
from pytest_lmeval.records.recorded import aggregates_record
from pytest_lmeval.run.aggregating import aggregate
from pytest_lmeval.run.library import timestamp
from pytest_lmeval.types import ExampleResult

__all__ = ["RunRecord"]

_INCOMPLETE = 3


class RunRecord:
    """The results of a run as they arrive, by node id; at the end the board, its files and the exit code."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.report_dir: Path = config.invocation_params.dir / config.option.lm_report_dir
        self.ledger = Ledger(self.report_dir)
        self.per_example = bool(config.option.lm_include_per_example)
        self.interrupted = False
        self.process_facts: dict[str, Any] = {}
        self.board: Leaderboard | None = None
        # Until the board is written: whatever ends the process before has ended it too early.
        self.code = _INCOMPLETE
        self.gate_settings = gate_settings(config)
        self.baseline = read_baseline(config)
        self.files = ReportFiles(config, self.report_dir, self.baseline)
        self.resumption = Resumption(run_state(config).held)
        self._is_changed = changed_in(self.baseline)
        self._expected: dict[str, None] = {}
        self._results: dict[str, ExampleResult] = {}
        self._skipped: set[str] = set()
        self._failed: dict[str, None] = {}
        self._finished: set[str] = set()
        self._reruns = 0
        self._tasks: dict[str, TaskInfo] = {}
        self._reasons: list[str] = []
        self.is_closed = False
        self._started = timestamp()
        self._progress: Progress | None = None
        self._usage: dict[str, float] = {}
        self._decision: Decision

    @property
    def missing(self) -> list[str]:
        """The node ids of the examples that were collected and never heard of again, in collection order."""
        return [nodeid for nodeid in self._expected if nodeid not in self._results and nodeid not in self._skipped]

    @property
    def gate(self) -> Mapping[str, Any]:
        """The gate's verdict and reasons, once there is a board."""
        assert self.board is not None
        return self.board.facts.gate or {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The circumstances of the run, looked up when it began: git is asked once."""
        return manifest_of(self.config)

    def open_ledger(self) -> None:
        """Start the ledger, remove the reports of an earlier run; an unusable report dir is a pytest.UsageError."""
        resume = self.config.option.lm_resume and self.resumption.goes_on
        try:
            self.ledger.claim()
            self.files.remove_old()
            asking = run_state(self.config).asking
            header = {"timestamp": self._started, "asking": asking, "manifest": self.manifest}
            self.ledger.open(header, resume=resume)
        except BaseException as error:
            # A file left open is a warning later, and maybe an error.
            self.ledger.close(None)
            if isinstance(error, UsageError):
                raise pytest.UsageError(str(error)) from None
            raise

    def announce(self, nodeids: Iterable[str]) -> None:
        """Note which examples this run owes a result for."""
        self._expected.update(dict.fromkeys(nodeids))

    def forget(self, nodeids: Iterable[str]) -> None:
        """Expect no result from items that are no examples: under xdist they were announced by their place alone."""
        for nodeid in nodeids:
            self._expected.pop(nodeid, None)

    def add_tasks(self, tasks: str) -> None:
        """Note what a worker knows of the tasks it collected."""
        for fields in json.loads(tasks):
            info = TaskInfo(**{**fields, "bad_records": tuple(fields["bad_records"])})
            self._tasks[info.name] = info

    def take(self, report: pytest.TestReport) -> None:
        """Take the result off a report that carries one: it is for this recorder, not for other report writers."""
        if self.is_closed:
            return
        if report.failed:
            self._failed[report.nodeid] = None
        if str(report.when) == "???" and report.nodeid in self._expected:
            # Its worker died while it ran, for all that is known: pytest counts it as failed, whatever was heard of it.
            self.resumption.withdraw(self._results.pop(report.nodeid, None))
            return
        properties = report.user_properties
        entry = next((entry for entry in reversed(properties) if entry[0] == "lmeval"), None)
        if entry is not None:
            properties.remove(entry)
            self._take_result(report, str(entry[1]))
        elif report.skipped and report.nodeid in self._expected and report.nodeid not in self._results:
            self._skipped.add(report.nodeid)

    def _take_result(self, report: pytest.TestReport, line: str) -> None:
        # In one process the result itself is there, and shares its texts with the example.
        result = report.__dict__.pop("lmeval_result", None) or self._parsed(line)
        for name, amount in result.usage.items():
            self._usage[name] = self._usage.get(name, 0) + amount
        if self._progress is not None:
            self._progress.clear()
        if str(report.outcome) == "rerun":
            # Another attempt follows, and decides.
            self._reruns += 1
            return
        if result.status == "failed" and report.outcome != "failed" and hasattr(report, "wasxfail"):
            # Its mark says that this is no failure. Nothing else can: a report that only looks well is not believed.
            result = replace(result, status="below")
            line = replace(ExampleResult.from_json(line), status="below").to_json()
        self._results[report.nodeid] = result
        self._skipped.discard(report.nodeid)
        if not self.resumption.takes(result):
            self.ledger.append(line)

    def hear_end(self, nodeid: str) -> None:
        """Note that all reports of an item have been heard."""
        self._finished.add(nodeid)

    def show_progress(self, in_flight: int | None) -> None:
        """Say how far the run is, if it is time to; ``in_flight`` is None where only the workers know."""
        if self._progress is None:
            self._progress = Progress(self.config, len(self._expected))
        self._progress.tick(len(self._results), in_flight, self._usage)

    def finish(self, session: pytest.Session, status: int, *, lost: bool) -> int:
        """Build and write the board; return the exit code of the run.

        ``lost`` says that not all tests reported completion. The code is fixed before any hook of the project sees the
        board: a hook that fails can only make a run fail that would have passed.
        """
        if self.board is None:
            self._reasons += self._why_cut_short(session, status)
            board = self._write_board()
            self.code = self._exit_code(session, status, lost=lost)
            self.files.show_to_project(board)
            self.code = self.code or int(bool(self.files.failures))
            report_gate(session, board, self.files.failures)
        return self.code

    def give_up(self, reason: str) -> None:
        """Write the board of a run that ends here and now, incomplete: ``code`` stays as it is.

        May be called in another thread than the one that scores: what that one goes on to report is not heard.
        """
        self.is_closed = True
        self._reasons.append(reason)
        self.files.show_to_project(self._write_board())

    def board_json(self) -> dict[str, Any]:
        """Return the board as its file has it."""
        assert self.board is not None
        return self.board.to_json(per_example=self.per_example)

    def _exit_code(self, session: pytest.Session, status: int, *, lost: bool) -> int:
        assert self.board is not None
        if status == pytest.ExitCode.USAGE_ERROR or self.interrupted:
            return status
        if not self.files.has_board:
            return _INCOMPLETE
        if (self.missing or status == pytest.ExitCode.INTERRUPTED) and stopped_by_choice(session):
            return int(pytest.ExitCode.TESTS_FAILED)
        code = self._decision.exit_code
        if code in (_INCOMPLETE, pytest.ExitCode.USAGE_ERROR):
            return code
        if status == pytest.ExitCode.OK:
            return int(pytest.ExitCode.TESTS_FAILED) if code or self.files.failures else _INCOMPLETE if lost else status
        return status

    def _why_cut_short(self, session: pytest.Session, status: int) -> list[str]:
        if self.missing:
            return []
        if self._expected and not self._results and self.config.option.lm_shard is None:
            return ["every example was skipped: nothing was measured"]
        if self._is_distributed and not self._tasks:
            return ["no worker lived to tell what was selected"]
        return why_cut_short(session, status, [nodeid for nodeid in self._expected if nodeid not in self._finished])

    def _write_board(self) -> Leaderboard:
        self.is_closed = True
        infos, results = self._infos(), list(self._results.values())
        aggregates, failures = aggregate(infos, results, run_state(self.config).task_again)
        self._reasons += failures
        self.board = self._decided(build_board(infos, results, self._facts(), aggregates))
        footer = {"complete": self.board.complete, "digest": self.board.digest, "counts": dict(self.board.counts)}
        run = {
            "tasks": [asdict(info) for info in self._infos()],
            # Paths and options may hold anything that a conftest gave them.
            "facts": json.loads(json.dumps(asdict(self.board.facts), default=str)),
            **aggregates_record(aggregates),
            "left_out": self.resumption.left_out(results),
        }
        self.ledger.close(footer, run)
        if self.ledger.failure is not None:
            self.files.failures.append(f"{self.ledger.path}: {self.ledger.failure.strerror or self.ledger.failure}")
        self.files.write(self.board, self._with_prompts, per_example=self.per_example)
        if self.board.complete and self.files.has_board and not self.config.option.lm_resume:
            self.ledger.drop_replaced()
        return self.board

    def _decided(self, board: Leaderboard) -> Leaderboard:
        # A shard is judged once it is merged.
        baseline = None if "shard" in board.facts.selection else self.baseline
        decision = decide(board, baseline, self.gate_settings, root=self.config.rootpath)
        if self.gate_settings.update:
            decision = renewed(decision, *self.files.update_baseline(board))
        self._decision = decision
        return replace(board, facts=replace(board.facts, gate=decision.to_json()))

    def _with_prompts(self) -> Sequence[ExampleResult]:
        results = list(self._results.values())
        if self.per_example or self.ledger.failure is not None or not self._is_distributed:
            return results
        from pytest_lmeval.records.runfile import examples_of, read_run

        return examples_of(read_run(self.ledger.path))

    @property
    def _is_distributed(self) -> bool:
        return bool(self.config.pluginmanager.hasplugin("dsession"))

    def _parsed(self, line: str) -> ExampleResult:
        result = ExampleResult.from_json(line)
        # The prompts of a run may be large, and the ledger holds them. That of a changed example is looked at.
        return result if self.per_example or self._is_changed(result) else replace(result, prompt="")

    def _infos(self) -> list[TaskInfo]:
        state = run_state(self.config)
        known = {**self._tasks, **state.tasks}
        for nodeid, result in self._results.items():
            if result.task not in known:
                known[result.task] = info_of(self.config.rootpath, nodeid, result.task)
        return [info for info in known.values() if info.selected != 0]

    def _facts(self) -> RunFacts:
        options: MaxErrors | str = self.config.option.lm_max_errors
        limit = MaxErrors(options) if isinstance(options, str) else options
        # What failed before there was an adapter knows only the name that was asked for.
        told = [result for result in self._results.values() if result.status not in ("error", "timeout")]
        adapters = {result.adapter for result in told or self._results.values() if result.adapter}
        if len(adapters) > 1:
            self._reasons.append(f"one run has one adapter: this one had {', '.join(sorted(adapters))}")
        known = {**self._tasks, **run_state(self.config).tasks}
        fates = dict.fromkeys(self._skipped, "skipped") | {id: one.status for id, one in self._results.items()}
        return RunFacts(
            timestamp=self._started,
            adapter=", ".join(sorted(adapters)) or run_state(self.config).spec,
            adapter_options=run_state(self.config).adapter_options,
            missing=self.missing,
            skipped=len(self._skipped),
            max_errors=limit.of(len(self._expected)),
            selection=selection_of(self.config.option, list(known.values())),
            bad_records=[fault for info in known.values() for fault in info.bad_records],
            manifest={**self.manifest, **(self.process_facts or run_state(self.config).run.facts())},
            finished=not self._reasons,
            interruptions=tuple(self._reasons),
            failures=failed_besides(self._failed, fates),
            reruns=self._reruns,
            mode=self.gate_settings.mode,
            floors=self.gate_settings.floors,
        )
