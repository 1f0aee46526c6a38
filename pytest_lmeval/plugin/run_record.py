"""What the controlling process hears of a run, and what it makes of it at the end."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.engine.ledger import Ledger
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.board import Leaderboard, RunFacts, build_board
from pytest_lmeval.leaderboard.gate import decide, let_pass
from pytest_lmeval.leaderboard.manifest import redact_options
from pytest_lmeval.leaderboard.rows import TaskInfo
from pytest_lmeval.plugin.aggregating import aggregate
from pytest_lmeval.plugin.gating import compare_with, gate_settings, read_baseline, report_gate
from pytest_lmeval.plugin.options import MaxErrors
from pytest_lmeval.plugin.progress import Progress
from pytest_lmeval.plugin.report_files import ReportFiles
from pytest_lmeval.plugin.run_facts import info_of, manifest_of, selection_of
from pytest_lmeval.plugin.state import run_state
from pytest_lmeval.runner import timestamp
from pytest_lmeval.types import ExampleResult

__all__ = ["RunRecord"]

_INCOMPLETE = 3
_DECISIVE = ("hash", "outputs", "score", "status", "threshold")
_INTERRUPTED = 2


class RunRecord:
    """The results of a run as they arrive, by node id; at the end the board, its files and the exit code."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.report_dir: Path = config.invocation_params.dir / config.option.lm_report_dir
        self.ledger = Ledger(self.report_dir)
        self.interrupted = False
        self.process_facts: dict[str, Any] = {}
        self.board: Leaderboard | None = None
        self.gate_settings = gate_settings(config)
        self.baseline = read_baseline(config)
        self.files = ReportFiles(config, self.report_dir, self.baseline)
        self.reused = 0
        self._expected: dict[str, None] = {}
        self._results: dict[str, ExampleResult] = {}
        self._skipped: set[str] = set()
        self._tasks: dict[str, TaskInfo] = {}
        self._reasons: list[str] = []
        self._closed = False
        self._started = timestamp()
        self._held = run_state(config).held
        self._progress: Progress | None = None
        self._usage: dict[str, float] = {}

    @property
    def missing(self) -> list[str]:
        """The node ids of the examples that were collected and never heard of again, in collection order."""
        return [nodeid for nodeid in self._expected if nodeid not in self._results and nodeid not in self._skipped]

    @property
    def gate(self) -> Mapping[str, Any]:
        """The gate's verdict and reasons, once there is a board."""
        assert self.board is not None
        return self.board.facts.gate or {}

    @property
    def per_example(self) -> bool:
        """Whether the board is written with its per-example records."""
        return bool(self.config.option.lm_include_per_example)

    @property
    def damaged(self) -> int:
        """How many lines of the ledger that this run goes on from could not be read."""
        return self._held.damaged

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The circumstances of the run, looked up when it began: git is asked once."""
        return manifest_of(self.config)

    def open_ledger(self) -> None:
        """Start the ledger; a report dir that cannot be had is a pytest.UsageError."""
        try:
            header = {
                "timestamp": self._started,
                "asking": run_state(self.config).asking,
                "manifest": self.manifest,
            }
            self.ledger.open(header, resume=self.config.option.lm_resume)
        except UsageError as error:
            raise pytest.UsageError(str(error)) from None

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
        if self._closed:
            return
        if str(report.when) == "???" and report.nodeid in self._expected:
            # Its worker died while it ran, for all that is known: pytest counts it as failed, whatever was heard of it.
            self._results.pop(report.nodeid, None)
            return
        properties = report.user_properties
        entry = next((entry for entry in reversed(properties) if entry[0] == "lmeval"), None)
        if entry is not None:
            properties.remove(entry)
            line = str(entry[1])
            # In one process the result itself is there, and shares its texts with the example.
            result = report.__dict__.pop("lmeval_result", None) or self._parsed(line)
            if result.status == "failed" and report.outcome != "failed":
                # An xfail mark, or another plugin, decided that this is no failure.
                result = replace(result, status="below")
                line = replace(ExampleResult.from_json(line), status="below").to_json()
            self._results[report.nodeid] = result
            self._skipped.discard(report.nodeid)
            for name, amount in result.usage.items():
                self._usage[name] = self._usage.get(name, 0) + amount
            if self._progress is not None:
                self._progress.clear()
            if self._is_held(result):
                self.reused += 1
            else:
                self.ledger.append(line)
        elif report.skipped and report.nodeid in self._expected:
            self._skipped.add(report.nodeid)

    def show_progress(self, in_flight: int | None) -> None:
        """Say how far the run is, if it is time to; ``in_flight`` is None where only the workers know."""
        if self._progress is None:
            self._progress = Progress(self.config, len(self._expected))
        self._progress.tick(len(self._results), in_flight, self._usage)

    def finish(self, session: pytest.Session, status: int) -> int:
        """Build and write the board; return the exit code of the run."""
        if self.board is None:
            self._write_board()
            report_gate(session, self.gate)
        if status == pytest.ExitCode.USAGE_ERROR or self.interrupted:
            return status
        return self._exit_code(session, status)

    def give_up(self, reason: str) -> int:
        """Write the board of a run that ends here and now; return its exit code.

        May be called in another thread than the one that scores: what that one goes on to report is not heard.
        """
        self._closed = True
        self._reasons.append(reason)
        self._write_board()
        return _INCOMPLETE

    def board_json(self) -> dict[str, Any]:
        """Return the board as its file has it."""
        assert self.board is not None
        return self.board.to_json(per_example=self.per_example)

    def _exit_code(self, session: pytest.Session, status: int) -> int:
        assert self.board is not None
        if self.missing and _stopped_by_choice(session):
            return int(pytest.ExitCode.TESTS_FAILED)
        if not self.board.complete:
            return _INCOMPLETE
        if (self.files.failures or not let_pass(self.gate)) and status == pytest.ExitCode.OK:
            return int(pytest.ExitCode.TESTS_FAILED)
        return status

    def _write_board(self) -> None:
        self._closed = True
        infos, results = self._infos(), list(self._results.values())
        aggregates, failures = aggregate(infos, results, run_state(self.config))
        self._reasons += failures
        self.board = self._gated(build_board(infos, results, self._facts(), aggregates))
        self._show_to_project()
        footer = {"complete": self.board.complete, "digest": self.board.digest, "counts": dict(self.board.counts)}
        run = {
            "tasks": [asdict(info) for info in self._infos()],
            # Paths and options may hold anything that a conftest gave them.
            "facts": json.loads(json.dumps(asdict(self.board.facts), default=str)),
        }
        self.ledger.close(footer, run)
        if self.ledger.failure is not None:
            self.files.failures.append(f"{self.ledger.path}: {self.ledger.failure.strerror or self.ledger.failure}")
        self.files.write(self.board, self._with_prompts, per_example=self.per_example)

    def _gated(self, board: Leaderboard) -> Leaderboard:
        comparison = None
        if self.baseline is not None and "shard" not in board.facts.selection:
            settings, root = self.gate_settings, self.config.rootpath
            comparison = compare_with(self.baseline, board, settings, exact=self._is_exact(), rootpath=root)
        gate = decide(board, self.gate_settings, incomplete=self._reasons, comparison=comparison)
        return replace(board, facts=replace(board.facts, gate=gate))

    def _is_exact(self) -> bool:
        return bool(self.process_facts.get("model", {}).get("exact")) or run_state(self.config).is_exact

    def _with_prompts(self) -> Sequence[ExampleResult]:
        results = list(self._results.values())
        if self.per_example or self.ledger.failure is not None or not self.config.pluginmanager.hasplugin("dsession"):
            return results
        from pytest_lmeval.leaderboard.runfile import examples_of, read_run

        return examples_of(read_run(self.ledger.path))

    def _show_to_project(self) -> None:
        from importlib.metadata import entry_points

        try:
            self.config.hook.pytest_lmeval_leaderboard(config=self.config, leaderboard=self.board)
            for entry_point in entry_points(group="pytest_lmeval_leaderboard"):
                entry_point.load()(config=self.config, leaderboard=self.board)
        except Exception as error:  # a project's own code must not cost it the board
            self.files.failures.append(f"hook pytest_lmeval_leaderboard: {type(error).__name__}: {error}")

    def _is_held(self, result: ExampleResult) -> bool:
        held = self._held.results.get((result.task, result.id))
        return held is not None and all(getattr(held, name) == getattr(result, name) for name in _DECISIVE)

    def _parsed(self, line: str) -> ExampleResult:
        result = ExampleResult.from_json(line)
        # The prompts of a run may be large, and the ledger holds them.
        return result if self.per_example else replace(result, prompt="")

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
        adapters = {result.adapter for result in self._results.values() if result.adapter}
        if len(adapters) > 1:
            self._reasons.append(f"one run has one adapter: this one had {', '.join(sorted(adapters))}")
        known = {**self._tasks, **run_state(self.config).tasks}
        return RunFacts(
            timestamp=self._started,
            adapter=", ".join(sorted(adapters)) or run_state(self.config).spec,
            adapter_options=redact_options(run_state(self.config).adapter_options),
            missing=self.missing,
            skipped=len(self._skipped),
            max_errors=limit.of(len(self._expected)),
            selection=selection_of(self.config.option, list(known.values())),
            bad_records=[fault for info in known.values() for fault in info.bad_records],
            manifest={**self.manifest, **(self.process_facts or run_state(self.config).facts())},
            finished=not self._reasons,
            floors=self.gate_settings.floors,
        )


def _stopped_by_choice(session: pytest.Session) -> bool:
    """Tell whether -x, --maxfail or --sw stopped the run, rather than that they might have."""
    option = session.config.option
    workers = session.config.pluginmanager.getplugin("dsession")
    failures = getattr(workers, "countfailures", session.testsfailed)
    if option.maxfail and failures >= option.maxfail:
        return True
    stopped = session.shouldstop or getattr(workers, "shouldstop", False)
    stepwise = getattr(option, "stepwise", False) or getattr(option, "stepwise_skip", False)
    return bool(stepwise and "continuing from this test" in str(stopped))
