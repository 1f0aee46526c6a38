"""What the controlling process makes of what it hears of a run: the ledger, the board, its files, the exit code."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

from pytest_lmeval.asking.policy import Wait
from pytest_lmeval.compare.gate import Decision, decide, renewed
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.asking.state import run_state
from pytest_lmeval.plugin.collect.collected import collected
from pytest_lmeval.plugin.private import is_controller, is_crash
from pytest_lmeval.plugin.record.baseline import changed_in
from pytest_lmeval.plugin.record.ending import (
    INCOMPLETE,
    Ending,
    ending_of,
    failed_besides,
    gate_settings,
    report_gate,
)
from pytest_lmeval.plugin.record.heard import Heard
from pytest_lmeval.plugin.record.progress import Progress, show_words
from pytest_lmeval.plugin.record.report_files import ReportFiles
from pytest_lmeval.plugin.record.run_facts import info_of, manifest_of, selection_of, shard_facts
from pytest_lmeval.plugin.settings.checks import UNHEEDED
from pytest_lmeval.plugin.settings.models import label_of
from pytest_lmeval.plugin.settings.report_dir import folder_of_run, held_ledger
from pytest_lmeval.plugin.settings.settings import max_errors
from pytest_lmeval.records.answers import remove_underway
from pytest_lmeval.records.ledger import Ledger, ending
from pytest_lmeval.run.facts import aggregate, timestamp
from pytest_lmeval.run.resume import Resumption
from pytest_lmeval.types import ExampleResult


class RunRecord:
    """The record of a run of so many ``examples``, from the ledger's first line to the board.

    ``code`` is the exit code that it makes, ``remarks`` what the board says besides its rows.
    """

    def __init__(self, config: pytest.Config, examples: int) -> None:
        self.config = config
        self.examples = examples
        self.report_dir = folder_of_run(config, examples)
        self.ledger = Ledger(self.report_dir)
        self.per_example = bool(config.option.lm_include_per_example)
        self.interrupted = False
        self.board: Leaderboard | None = None
        self.remarks: Sequence[str] = ()
        # Until the board is written: whatever ends the process before has ended it too early.
        self.code = INCOMPLETE
        self.gate_settings = gate_settings(config)
        self.baseline = run_state(config).baseline
        self.files = ReportFiles(config, self.report_dir, self.baseline)
        is_own = held_ledger(config, examples).parent == self.report_dir
        self.resumption = Resumption(run_state(config).held, is_own=is_own)
        self._is_changed = changed_in(self.baseline)
        self.heard = Heard(self._parsed, knows_items=not is_controller(config))
        self._reasons: list[str] = []
        self.is_closed = False
        self._started = timestamp()
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._decision: Decision

    @property
    def gate(self) -> Mapping[str, Any]:
        """The gate's verdict and reasons, once there is a board."""
        assert self.board is not None
        return self.board.facts.gate or {}

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The circumstances of the run, looked up when it began: git is asked once."""
        return run_state(self.config).scrubber.scrub_answer(manifest_of(self.config))

    def open_ledger(self) -> None:
        """Start the ledger, remove the reports of an earlier run; an unusable report dir is a pytest.UsageError."""
        resume = self.config.option.lm_resume and self.resumption.goes_on
        try:
            self.ledger.claim()
            self.files.remove_old()
            asking = run_state(self.config).asking
            header = {"timestamp": self._started, "asking": asking, "manifest": self.manifest}
            self.ledger.open(header, resume=resume)
            if not resume:
                remove_underway(self.report_dir)
        except BaseException as error:
            # A file left open is a warning later, and maybe an error.
            self.ledger.close(None)
            if isinstance(error, UsageError):
                raise pytest.UsageError(str(error)) from None
            raise

    def take(self, report: pytest.TestReport) -> None:
        """Note what a report says of an example; its result is for this recorder, not for other report writers."""
        if self.is_closed:
            return
        if is_crash(report) and report.nodeid in self.heard.expected:
            self.resumption.withdraw(self.heard.lose(report.nodeid))
        elif taken := self.heard.take(report):
            self._keep(*taken)

    def _keep(self, result: ExampleResult, line: str) -> None:
        if self._progress is not None:
            self._progress.clear()
        if result.status not in ("passed", "failed"):
            show_words(self.config)
        if not self.resumption.takes(result):
            self.ledger.append(line)

    def show_progress(self, in_flight: int | None, wait: Wait | None = None) -> None:
        """Say how far the run is, if it is time to; ``in_flight`` is None where only the workers know."""
        if self._progress is None:
            self._progress = Progress(self.config, len(self.heard.expected))
        self._progress.tick(len(self.heard.results), in_flight, self.heard.usage, wait)

    def finish(self, session: pytest.Session, status: int, *, lost: bool, uncollected: Sequence[str] = ()) -> int:
        """Build and write the board; return the exit code of the run.

        ``lost`` says that not all tests reported completion, ``uncollected`` are the node ids of what pytest could not
        collect. The code is fixed before any hook of the project sees the
        board: a hook that fails can only make a run fail that would have passed.
        """
        if self.board is None:
            ending = ending_of(session, status, interrupted=self.interrupted or self.heard.told.interrupted, lost=lost)
            self._reasons += self._why_cut_short(ending)
            self._reasons += [f"{nodeid} could not be collected, and may hold evals" for nodeid in uncollected]
            board = self._write_board()
            has_board, unwritten = self.files.has_board, bool(self.files.failures)
            self.code = ending.exit_code(
                self._decision, missing=bool(self.heard.missing), has_board=has_board, unwritten=unwritten
            )
            self.files.show_to_project(board)
            self.code = self.code or int(bool(self.files.failures))
            report_gate(session, board, self.files.failures, label_of(self.config))
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

    def _why_cut_short(self, ending: Ending) -> list[str]:
        if self.heard.missing:
            stopped = self.heard.told.stopped or run_state(self.config).run.stopped
            return [stopped] if stopped else []
        if self.heard.expected and not self.heard.results and self.config.option.lm_shard is None:
            return ["every example was skipped: nothing was measured"]
        if is_controller(self.config) and not self.heard.tasks:
            return ["no worker lived to tell what was selected"]
        return ending.why_cut_short(self.heard.unfinished)

    def _write_board(self) -> Leaderboard:
        self.is_closed = True
        infos, results = self._infos(), list(self.heard.results.values())
        aggregates, failures = aggregate(infos, results, collected(self.config).task_again)
        self._reasons += failures
        facts = run_state(self.config).scrubber.scrub_answer(self._facts())
        self.board = self._decided(build_board(infos, results, facts, aggregates))
        self.remarks = self.board.remarks
        end = ending(self.board, infos, aggregates, self.resumption.left_out(results))
        self.ledger.close(**end)
        if self.ledger.failure is not None:
            self.files.failures.append(f"{self.ledger.path}: {self.ledger.failure.strerror or self.ledger.failure}")
        self.files.write(self.board, self.with_prompts, per_example=self.per_example)
        if self.board.complete:
            remove_underway(self.report_dir)
        if self.board.complete and self.files.has_board and not self.config.option.lm_resume:
            self.ledger.drop_replaced()
        return self.board

    def _decided(self, board: Leaderboard) -> Leaderboard:
        # A shard is judged once it is merged.
        baseline = None if "shard" in board.facts.selection else self.baseline
        decision = decide(board, baseline, self.gate_settings, root=self.config.rootpath)
        if self.gate_settings.update:
            decision = renewed(decision, *self.files.update_baseline(board))
        if why := getattr(self.config, "lm_without_baseline", ""):
            decision = renewed(decision, "new", why)
        self._decision = decision
        return replace(board, facts=replace(board.facts, gate=decision.to_json()))

    def with_prompts(self) -> Sequence[ExampleResult]:
        """Return the results with their prompts, which a controller lets go of."""
        results = list(self.heard.results.values())
        if self.per_example or self.ledger.failure is not None or not is_controller(self.config):
            return results
        from pytest_lmeval.records.runfile import examples_of, read_run

        return examples_of(read_run(self.ledger.path))

    def _parsed(self, line: str) -> ExampleResult:
        result = ExampleResult.from_json(line)
        # The prompts of a run may be large, and the ledger holds them. That of a changed example is looked at.
        if self.per_example:
            return result
        result = replace(result, thoughts=(), exchanges=())
        keeps = self.gate_settings.pair_by == "id" or self._is_changed(result)
        return result if keeps else replace(result, prompt="")

    def _wall_s(self) -> float:
        return round(time.monotonic() - self._began, 1)

    def _infos(self) -> list[TaskInfo]:
        known = {**self.heard.tasks, **collected(self.config).tasks}
        for nodeid, result in self.heard.results.items():
            if result.task not in known:
                known[result.task] = info_of(self.config.rootpath, nodeid, result.task)
        return [info for info in known.values() if info.selected != 0]

    def _facts(self) -> RunFacts:
        # What failed before there was an adapter knows only the name that was asked for.
        told = [result for result in self.heard.results.values() if not result.is_error]
        adapters = {result.adapter for result in told or self.heard.results.values() if result.adapter}
        if len(adapters) > 1:
            self._reasons.append(f"one run has one adapter: this one had {', '.join(sorted(adapters))}")
        known = {**self.heard.tasks, **collected(self.config).tasks}
        most = max_errors(self.config).of(len(self.heard.expected))
        found = self.heard.told.facts or run_state(self.config).run.facts()
        self._reasons += found.get("late", ())
        remarks = dict.fromkeys(
            (
                *self.heard.told.remarks.get("", ()),
                *run_state(self.config).remarks,
                *self.config.stash.get(UNHEEDED, ()),
                *(_cache_remarks(found["cache"], self._started) if "cache" in found else ()),
            )
        )
        return RunFacts(
            timestamp=self._started,
            adapter=", ".join(sorted(adapters)) or run_state(self.config).spec,
            adapter_options=run_state(self.config).adapter_options,
            missing=self.heard.missing,
            skipped=len(self.heard.skipped),
            max_errors=most,
            selection=selection_of(self.config.option, list(known.values())),
            bad_records=[fault for info in known.values() for fault in info.bad_records],
            manifest={
                "wall_s": self._wall_s(),
                **self.manifest,
                **found,
                **(shard_facts(known) if self.config.option.lm_shard else {}),
            },
            finished=not self._reasons,
            interruptions=tuple(self._reasons),
            failures=failed_besides(self.heard.failed, self.heard.fates, most),
            reruns=self.heard.reruns,
            remarks=tuple(remarks),
            mode=self.gate_settings.mode,
            floors=self.gate_settings.floors,
            limits=self.gate_settings.limits,
        )


def _cache_remarks(cache: Mapping[str, Any], started: str) -> Sequence[str]:
    from pytest_lmeval.report.cached import cache_lines

    return cache_lines(cache, started)
