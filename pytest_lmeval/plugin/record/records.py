"""Record each model's run in the controlling process (ledger, board, files, exit code), and compare models."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.compare.gate import Decision, decide, renewed
from pytest_lmeval.errors import INCOMPLETE, UsageError
from pytest_lmeval.leaderboard.board import RERUN_USAGE, SERVICE, Leaderboard, RunFacts, aggregate, build_board
from pytest_lmeval.leaderboard.details import asked_model
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.asking.state import files_of_run, make_run
from pytest_lmeval.plugin.collect.collected import collected, remarks_of
from pytest_lmeval.plugin.common.report import WorkerReport
from pytest_lmeval.plugin.private.reports import is_crash
from pytest_lmeval.plugin.private.workers import is_controller
from pytest_lmeval.plugin.record.received import Ending, Received, failed_besides
from pytest_lmeval.plugin.record.report_files import ReportFiles, report_gate
from pytest_lmeval.plugin.record.run_facts import info_of, manifest_of, shard_facts
from pytest_lmeval.plugin.settings.checks import UNHEEDED
from pytest_lmeval.plugin.settings.models import (
    RUN,
    SELECTION,
    by_label,
    configs,
    folder_of_run,
    held_ledger,
    report_dir,
    selection_of,
    whole,
)
from pytest_lmeval.plugin.settings.settings import (
    gate_settings,
    registry_of,
    resolved_of,
    scrubber_of_run,
    spec_of,
    with_usage_errors,
)
from pytest_lmeval.records.answers import remove_journal
from pytest_lmeval.records.boardfile import set_aside_reports
from pytest_lmeval.records.ledger import Ledger, ending
from pytest_lmeval.records.ledger_lines import IN_MEMORY, LONG
from pytest_lmeval.records.service import Outside
from pytest_lmeval.report.wording import cache_lines
from pytest_lmeval.run.resumption import Resumption
from pytest_lmeval.run.settings import timestamp
from pytest_lmeval.types import ExampleResult

if TYPE_CHECKING:
    from pytest_lmeval.plugin.record.progress import LongestTest, Progress
    from pytest_lmeval.records.stored import StoredLine


class RunRecord:
    """Records one model's run of ``examples`` examples, from the ledger to the board.

    ``code`` is the run's exit code, and ``remarks`` holds the board's remarks.
    """

    def __init__(self, config: pytest.Config, label: str, examples: int, *, has_workers: bool) -> None:
        self.config = config
        self.label = label
        self.examples = examples
        state = config.stash.get(RUN, None)
        # None in a controller, which runs no examples.
        self._run = state.run if state is not None else None
        self._files = state.files if state is not None else files_of_run(config, examples)
        self.report_dir = self._files.report_dir
        self.ledger = Ledger(self.report_dir)
        self.is_first = not self.ledger.path.exists()
        self.is_open = False
        self.per_example = bool(config.option.lm_include_per_example)
        self.board: Leaderboard | None = None
        # The gate's verdict and reasons, once there is a board.
        self.gate: Mapping[str, Any] = {}
        self.remarks: Sequence[str] = ()
        self.harness_ms: float | None = None  # milliseconds of CPU per example
        self.code = INCOMPLETE  # until the board is written
        self.gate_settings = gate_settings(config)
        self._scrubber = scrubber_of_run(config)
        self.baseline = self._files.baseline
        self.files = ReportFiles(config, self.report_dir, self.baseline)
        is_own = not config.option.lm_resume or held_ledger(config, examples).parent == self.report_dir
        self.resumption = Resumption(self._files.held, is_own=is_own)
        self._has_workers = has_workers
        self.received = Received(ExampleResult.from_json, knows_items=not has_workers)
        self._started = timestamp()
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._characters = 0  # in the lines of the ledger

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The manifest, created when the run begins."""
        return self._scrubber.scrub_answer(manifest_of(self.config))

    def open_ledger(self) -> None:
        """Start the ledger, once, and move older reports aside; raise pytest.UsageError for an unusable report dir."""
        if self.is_open:
            return
        resume = self.config.option.lm_resume and self.resumption.goes_on
        try:
            header = {"timestamp": self._started, "asking": self._files.asking, "manifest": self.manifest}
            self.ledger.claim()
            self.files.set_aside_old()
            self.ledger.open(header, resume=resume)
            if not resume:
                remove_journal(self.report_dir)
        except BaseException as error:
            # An open file would cause a ResourceWarning later, possibly an error.
            self.ledger.close(None)
            if isinstance(error, UsageError):
                raise pytest.UsageError(str(error)) from None
            raise
        self.is_open = True

    def take(self, report: pytest.TestReport) -> None:
        """Remove the result from an example's report, and record it."""
        if report.failed and is_crash(report):
            self.resumption.withdraw(self.received.lose(report.nodeid))
        elif taken := self.received.take(report):
            self._keep(report.nodeid, *taken)

    def _keep(self, nodeid: str, result: ExampleResult, line: str) -> None:
        if self._progress is not None:
            self._progress.clear()
        if result.status not in ("passed", "failed"):
            from pytest_lmeval.plugin.record.progress import show_words

            show_words(self.config)
        is_held = self.resumption.takes(result)
        if not is_held:
            self.ledger.append(line)
        self._characters += len(line)
        if self._characters > IN_MEMORY and len(line) > LONG:
            self._unload(nodeid, self.resumption.stored(result) if is_held else self.ledger.stored(line))

    def _unload(self, nodeid: str, line: StoredLine | None) -> None:
        """Drop a result's text from memory; later reads use its ``line`` in a ledger, if any."""
        if line is not None:
            from pytest_lmeval.records.stored import stored

            self.received.results[nodeid] = stored(self.received.results[nodeid], line)

    def show_progress(self, in_flight: int | None, wait: Wait | LongestTest | None = None) -> None:
        """Update the progress if an update is due; ``in_flight`` is None if only the workers know the number."""
        if self._progress is None:
            from pytest_lmeval.plugin.record.progress import Progress

            self._progress = Progress(self.config, self.received)
        self._progress.tick(in_flight, wait)

    def finish(self, session: pytest.Session, ending: Ending) -> None:
        """Build and write the board, and set the exit code, before the project's hooks see the board."""
        if self.board is not None:
            return
        ending = replace(ending, interrupted=ending.interrupted or self.received.interrupted)
        board, decision = self._write_board(self._why_cut_short(ending))
        self.code = ending.exit_code(
            decision,
            missing=bool(board.facts.missing),
            has_board=self.files.has_board,
            unwritten=bool(self.files.failures),
        )
        self.files.show_to_project(board)
        self.code = self.code or int(bool(self.files.failures))
        report_gate(session, board, self.files.failures, self.label)

    def give_up(self, reason: str) -> None:
        """Write the board of an incomplete run that ends now; leave ``code`` unchanged."""
        board, _ = self._write_board([reason])
        self.files.show_to_project(board)

    def board_json(self) -> dict[str, Any]:
        """Return the board as in leaderboard.json."""
        assert self.board is not None
        return self.board.to_json(per_example=self.per_example)

    def _why_cut_short(self, ending: Ending) -> list[str]:
        """Return the reasons why the run is incomplete, other than missing results."""
        uncollected = [f"{nodeid} could not be collected, and may hold evals" for nodeid in ending.uncollected]
        return [*self._why_no_result(ending), *uncollected]

    def _why_no_result(self, ending: Ending) -> list[str]:
        received = self.received
        if received.missing:
            return self._why_stopped()
        if received.expected and not received.results and self.config.option.lm_shard is None:
            return ["every example was skipped: nothing was measured"]
        if self._has_workers and not received.tasks:
            return ["all workers crashed before reporting their selection"]
        why = ending.why_cut_short(received.unfinished)
        return (self._why_stopped() or why) if why else []

    def _why_stopped(self) -> list[str]:
        stopped = self.received.stopped or (self._run.stopped if self._run is not None else "")
        return [stopped] if stopped else []

    def _write_board(self, cut_short: Sequence[str]) -> tuple[Leaderboard, Decision]:
        tasks = collected(self.config)
        known = {**self.received.tasks, **tasks.tasks}
        infos, results = self._infos(known), list(self.received.results.values())
        aggregates, failures = aggregate(infos, results, tasks.task_again)
        found = dict(
            self.received.facts or (self._run or make_run(self.config, registry_of(self.config), self._files)).facts()
        )
        if outside := Outside.of(found.get(SERVICE, {})):
            found[SERVICE] = outside.sums
        adapters = self._adapters(results)
        mixed = [f"one run has one adapter: this one had {', '.join(adapters)}"] if len(adapters) > 1 else []
        reasons = (*found.get("lacking", ()), *cut_short, *failures, *mixed, *found.get("late", ()))
        facts = self._scrubber.scrub_answer(self._facts(known, found, adapters, reasons))
        board, decision = self._decided(build_board(infos, results, facts, aggregates))
        self.board, self.gate, self.remarks = board, board.facts.gate or {}, board.remarks
        self.ledger.close(**ending(board, infos, aggregates, self.resumption.left_out(results), outside))
        if self.ledger.failure is not None:
            self.files.failures.append(f"{self.ledger.path}: {self.ledger.failure.strerror or self.ledger.failure}")
        self.files.write(board, results, per_example=self.per_example)
        if board.complete:
            remove_journal(self.report_dir)
        if board.complete and self.files.has_board and not self.config.option.lm_resume:
            self.ledger.leave_replaced(report_dir(whole(self.config)))
        return board, decision

    def _decided(self, board: Leaderboard) -> tuple[Leaderboard, Decision]:
        """Return the board with the gate's decision, and the decision itself."""
        # Shards are gated after the merge.
        baseline = None if "shard" in board.facts.selection else self.baseline
        decision = decide(board, baseline, self.gate_settings, root=self.config.rootpath)
        if self.gate_settings.update:
            decision = renewed(decision, *self.files.update_baseline(board))
        if why := getattr(self.config, "lm_without_baseline", ""):
            decision = renewed(decision, "new", why)
        return replace(board, facts=replace(board.facts, gate=decision.to_json())), decision

    def _infos(self, known: Mapping[str, TaskInfo]) -> list[TaskInfo]:
        """Return the tasks with selected examples, including tasks known only from results."""
        all_known = dict(known)
        for nodeid, result in self.received.results.items():
            if result.task not in all_known:
                all_known[result.task] = info_of(self.config.rootpath, nodeid, result.task)
        return [info for info in all_known.values() if info.selected != 0]

    def _adapters(self, results: Sequence[ExampleResult]) -> list[str]:
        # A result may know only the adapter's spec if it is an error, or if the function made no requests.
        answered = [result for result in results if not result.is_error] or results
        names = {result.adapter for result in answered if result.adapter}
        if len(names) > 1:
            names = {result.adapter for result in answered if result.adapter and asked_model(result)} or names
        return sorted(names)

    def _facts(
        self,
        known: Mapping[str, TaskInfo],
        found: Mapping[str, Any],
        adapters: Sequence[str],
        reasons: tuple[str, ...],
    ) -> RunFacts:
        """Collect the board's facts; ``reasons`` explains why the run did not finish, or is empty."""
        received, option = self.received, self.config.option
        most = option.lm_max_errors.of(len(received.expected))
        cached = cache_lines(found["cache"], self._started) if "cache" in found else ()
        remarks = (*received.remarks, *remarks_of(self.config), *self.config.stash.get(UNHEEDED, ()), *cached)
        if SERVICE in found:
            remarks = (*remarks, f"requests outside of examples, to lm_base_url: {found[SERVICE]['requests']}")
        return RunFacts(
            timestamp=self._started,
            adapter=", ".join(adapters) or spec_of(self.config),
            adapter_options=resolved_of(self.config).options,
            missing=received.missing,
            skipped=len(received.skipped),
            max_errors=most,
            selection=selection_of(option, list(known.values())),
            bad_records=[fault for info in known.values() for fault in info.bad_records],
            manifest={
                "wall_s": round(time.monotonic() - self._began, 1),
                **({} if self.harness_ms is None else {"harness_ms": self.harness_ms}),
                **self.manifest,
                **found,
                **({RERUN_USAGE: received.rerun_usage} if received.rerun_usage else {}),
                **(shard_facts(known) if option.lm_shard else {}),
            },
            finished=not reasons,
            interruptions=reasons,
            failures=failed_besides(received.failed, received.statuses, most) if received.failed else (),
            reruns=received.reruns,
            remarks=tuple(dict.fromkeys(remarks)),
            mode=self.gate_settings.mode,
            floors=self.gate_settings.floors,
            limits=self.gate_settings.limits,
        )


_ORDER = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED, INCOMPLETE, pytest.ExitCode.TESTS_FAILED)


def _weight(code: int) -> tuple[int, int]:
    """Return a sort key for exit codes, which puts the most serious code first."""
    return (_ORDER.index(code), 0) if code in _ORDER else (len(_ORDER), -code)


class Records:
    """Holds one :class:`RunRecord` per model, and compares several models at the end."""

    def __init__(self, config: pytest.Config, nodeids: Sequence[str]) -> None:
        self.config = config
        self.has_workers = is_controller(config)
        self.are_several = bool(config.option.lm_models)
        models = configs(config)
        if self.has_workers:
            from pytest_lmeval.plugin.common.baseline import check_recording

            for one in models:
                check_recording(one)
        own = by_label(nodeids, config)
        self.all = [
            RunRecord(one, label, len(ids), has_workers=self.has_workers)
            for one, (label, ids) in zip(models, own.items(), strict=True)
        ]
        self._began_s, self._workers_s = time.thread_time(), 0.0
        self.is_closed = False
        self.failures: list[str] = []
        self.comparison: dict[str, Any] = {}

    @cached_property
    def folder(self) -> Path:
        """The folder for the comparison, which is the folder of selections if any model's run is a selection."""
        own = folder_of_run(self.config, max(record.examples for record in self.all))
        is_selection = any(record.report_dir.name == SELECTION for record in self.all)
        return report_dir(self.config) / SELECTION if is_selection else own

    @property
    def opened(self) -> list[RunRecord]:
        """The records for models with selected examples; other models receive neither files nor a verdict."""
        return [record for record in self.all if record.is_open]

    @property
    def has_boards(self) -> bool:
        """True if every model with examples has a board."""
        opened = self.opened
        return bool(opened) and all(record.board is not None for record in opened)

    @property
    def code(self) -> int:
        """The run's exit code, which is the most serious of the models' codes."""
        return min((record.code for record in self.opened), key=_weight)

    def of(self, nodeid: str) -> RunRecord | None:
        """Return the record that expects a result for the test ``nodeid``."""
        return next((record for record in self.all if nodeid in record.received.expected), None)

    def open(self) -> None:
        """Start the ledgers and move older files aside; raise pytest.UsageError for an unusable report dir."""
        # A shard without examples for a model may be merged with shards that have examples for the model.
        due = [record for record in self.all if record.examples or self.config.option.lm_shard is not None]
        try:
            # Claim all folders before moving any file: if another run is using a folder, this run must change nothing.
            for record in due:
                with_usage_errors(record.ledger.claim)
            for record in due:
                record.open_ledger()
            if self.are_several:
                with_usage_errors(partial(set_aside_reports, self.folder, report_dir(self.config)))
        except BaseException:
            for record in due:
                record.ledger.close(None)
            raise

    def announce(self, nodeids: Sequence[str]) -> None:
        """Expect a result for each example in ``nodeids``."""
        own = by_label(nodeids, self.config)
        for record in self.all:
            if found := own[record.label]:
                record.open_ledger()
                record.received.announce(found)

    def add(self, report: WorkerReport) -> None:
        """Add a worker's report."""
        self._workers_s += report.cpu_s
        if report.media:
            from pytest_lmeval.data.spilled import take_over

            take_over(report.media)
        for record in self.all:
            record.received.add(report, record.label)

    def show_progress(self, in_flight: int | None, wait: Any = None) -> None:
        """Update the progress for the only model, or for the first unfinished one."""
        for record in self.all:
            if not self.are_several or len(record.received.results) < len(record.received.expected):
                record.show_progress(in_flight, wait)
                return

    def finish(self, session: pytest.Session, ending: Ending) -> int:
        """Build and write all boards and the comparison; return the run's exit code."""
        self.is_closed = True
        harness_ms = self._harness_ms(session)
        for record in self.opened:
            record.harness_ms = harness_ms
            record.finish(session, ending)
        if self.are_several:
            self._compare()
        return self.code or int(bool(self.failures))

    def _harness_ms(self, session: pytest.Session) -> float | None:
        """Return the CPU milliseconds per example in threads that ran items, or None if other tests ran, too."""
        ran = owed = 0
        for record in self.opened:
            ran += len(record.received.results)
            owed += len(record.received.expected)
        if not ran or session.testscollected != owed:
            return None
        return round(1000 * (time.thread_time() - self._began_s + self._workers_s) / ran, 3)

    def give_up(self, reason: str) -> None:
        """Write the boards of an incomplete run that ends now; leave ``code`` unchanged.

        Any thread may call this method; later reports are dropped.
        """
        self.is_closed = True
        for record in self.opened:
            record.give_up(reason)

    def to_json(self) -> dict[str, Any]:
        """Return the board as in leaderboard.json; for several models, return the comparison and all boards."""
        boards = {record.label: record.board_json() for record in self.opened if record.board is not None}
        return {"comparison": self.comparison, "boards": boards} if self.are_several else boards[""]

    def _compare(self) -> None:
        from pytest_lmeval.report.comparison import Compared, compared, write_comparison

        models = [
            Compared(
                record.label,
                record.board,
                tuple(record.received.results.values()),
                str(record.report_dir),
            )
            for record in self.all
            if record.board is not None
        ]
        not_asked = [record.label for record in self.all if not record.is_open]
        self.comparison = compared(models, self.code, self.folder, not_asked)
        self.failures += write_comparison(self.folder, self.comparison, models)
