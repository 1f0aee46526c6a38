"""The records of all models of a run, by label; that of a single model has the empty label."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.plugin.common.report import WorkerReport
from pytest_lmeval.plugin.private.workers import is_controller
from pytest_lmeval.plugin.record.ending import INCOMPLETE, Ending
from pytest_lmeval.plugin.record.run_record import RunRecord
from pytest_lmeval.plugin.settings.models import by_label, configs
from pytest_lmeval.plugin.settings.report_dir import SELECTION, folder_of_run, report_dir
from pytest_lmeval.plugin.settings.settings import with_usage_errors
from pytest_lmeval.records.boardfile import set_aside_reports

_ORDER = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED, INCOMPLETE, pytest.ExitCode.TESTS_FAILED)


def _weight(code: int) -> tuple[int, int]:
    """Return what exit codes are sorted by: the gravest first, and of others the largest."""
    return (_ORDER.index(code), 0) if code in _ORDER else (len(_ORDER), -code)


class Records:
    """One :class:`RunRecord` for each model; at the end those of several are compared."""

    def __init__(self, config: pytest.Config, nodeids: Sequence[str]) -> None:
        self.config = config
        self.has_workers = is_controller(config)
        self.are_several = bool(config.option.lm_models)
        models = configs(config) if self.are_several else [config]
        if self.has_workers:
            from pytest_lmeval.plugin.common.baseline import check_recording

            for one in models:
                check_recording(one)
        own = by_label(nodeids, config) if self.are_several else {"": nodeids}
        self.all = [
            RunRecord(one, label, len(ids), has_workers=self.has_workers)
            for one, (label, ids) in zip(models, own.items(), strict=True)
        ]
        self._began_s, self._workers_s = time.thread_time(), 0.0
        # Whether nothing more is taken.
        self.is_closed = False
        self.failures: list[str] = []
        self.comparison: dict[str, Any] = {}

    @cached_property
    def folder(self) -> Path:
        """Where the comparison goes: where a selection does, if this is one."""
        own = folder_of_run(self.config, max(record.examples for record in self.all))
        is_selection = any(record.report_dir.name == SELECTION for record in self.all)
        return report_dir(self.config) / SELECTION if is_selection else own

    @property
    def opened(self) -> list[RunRecord]:
        """The records of the models of which an example was selected: the others have no files and no verdict."""
        return [record for record in self.all if record.is_open]

    @property
    def has_boards(self) -> bool:
        """Whether every model that was asked has its board."""
        opened = self.opened
        return bool(opened) and all(record.board is not None for record in opened)

    @property
    def code(self) -> int:
        """The exit code of the run: the first in the order of their weight that any model has."""
        codes: list[int] = [*map(attrgetter("code"), self.opened)]
        return min(codes, key=_weight)

    def of(self, nodeid: str) -> RunRecord | None:
        """Return the record that expects a result of the test ``nodeid``."""
        for record in self.all:
            if nodeid in record.received.expected:
                return record
        return None

    def open(self) -> None:
        """Start the ledgers, and move aside what an earlier run left; raise pytest.UsageError where one cannot be."""
        # A shard may have no example of a model, and is merged with others that have.
        due = [record for record in self.all if record.examples or self.config.option.lm_shard is not None]
        try:
            # All of them before the first file is moved: a run into the folder of another one changes nothing.
            for record in due:
                with_usage_errors(record.ledger.claim)
            for record in due:
                self._open(record)
            if self.are_several:
                with_usage_errors(partial(set_aside_reports, self.folder, report_dir(self.config)))
        except BaseException:
            for record in due:
                record.ledger.close(None)
            raise

    def _open(self, record: RunRecord) -> None:
        if not record.is_open:
            record.open_ledger()

    def announce(self, nodeids: Sequence[str]) -> None:
        """Note which examples owe a result, those of helpers of eval functions after all others."""
        own = by_label(nodeids, self.config) if self.are_several else {"": nodeids}
        for record in self.all:
            if found := own[record.label]:
                self._open(record)
                record.received.announce(found)

    def add(self, report: WorkerReport) -> None:
        """Note what a worker reported."""
        self._workers_s += report.cpu_s
        for record in self.all:
            record.received.add(report, record.label)

    def show_progress(self, in_flight: int | None, wait: Any = None) -> None:
        """Show how far the first model is that has not finished, or the only one."""
        for record in self.all:
            if not self.are_several or len(record.received.results) < len(record.received.expected):
                record.show_progress(in_flight, wait)
                return

    def finish(self, session: pytest.Session, ending: Ending) -> int:
        """Build and write all boards and the comparison; return the exit code of the run."""
        self.is_closed = True
        harness_ms = self._harness_ms(session)
        if self.are_several:
            self._keep_shown()
        for record in self.opened:
            record.harness_ms = harness_ms
            record.finish(session, ending)
        if self.are_several:
            self._compare()
        return self.code or int(bool(self.failures))

    def _harness_ms(self, session: pytest.Session) -> float | None:
        """Return the milliseconds of CPU per example of the threads that ran items; None where other tests ran, too."""
        ran = owed = 0
        for record in self.opened:
            ran += len(record.received.results)
            owed += len(record.received.expected)
        if not ran or session.testscollected != owed:
            return None
        return round(1000 * (time.thread_time() - self._began_s + self._workers_s) / ran, 3)

    def give_up(self, reason: str) -> None:
        """Write the boards of a run that ends here and now, incomplete: ``code`` stays as it is.

        May be called in another thread than the one that scores: what that one goes on to report is not taken.
        """
        self.is_closed = True
        for record in self.opened:
            record.give_up(reason)

    def to_json(self) -> dict[str, Any]:
        """Return the board as its file has it; of several models the comparison, and each model's board."""
        boards = {record.label: record.board_json() for record in self.opened if record.board is not None}
        return {"comparison": self.comparison, "boards": boards} if self.are_several else boards[""]

    def _keep_shown(self) -> None:
        """Have what the page of each model is given of examples kept for the page that compares them."""
        from pytest_lmeval.report.html.shown import ShownExamples

        for record in self.opened:
            record.files.shown = ShownExamples(len(self.opened))

    def _compare(self) -> None:
        from pytest_lmeval.report.comparison import Compared, compared, write_comparison

        models = [
            Compared(
                record.label,
                record.board,
                tuple(record.received.results.values()),
                str(record.report_dir),
                shown=record.files.shown,
            )
            for record in self.all
            if record.board is not None
        ]
        not_asked = [record.label for record in self.all if not record.is_open]
        self.comparison = compared(models, self.code, self.folder, not_asked)
        self.failures += write_comparison(self.folder, self.comparison, models)
