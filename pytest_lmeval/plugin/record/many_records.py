"""The records of a run of several models: each hears what is of its model, and at the end they are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

from pytest_lmeval.plugin.record.ending import INCOMPLETE
from pytest_lmeval.plugin.record.run_record import RunRecord
from pytest_lmeval.plugin.settings.models import config_of, label_in, labels_of
from pytest_lmeval.plugin.settings.report_dir import SELECTION, folder_of_run, report_dir
from pytest_lmeval.plugin.workers.telling import Told
from pytest_lmeval.records.write import remove_reports

_ORDER = (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED, INCOMPLETE, pytest.ExitCode.TESTS_FAILED)


class ManyRecords:
    """One :class:`RunRecord` for each model; ``code`` is the gravest of theirs."""

    def __init__(self, config: pytest.Config, nodeids: Sequence[str]) -> None:
        self.config = config
        of = {label: [nodeid for nodeid in nodeids if label_in(nodeid, config) == label] for label in labels_of(config)}
        self.records = {label: RunRecord(config_of(config, label), len(ids)) for label, ids in of.items()}
        self.heard = ManyHeard(self)
        self.failures: list[str] = []
        self._opened: list[str] = []
        self.comparison: dict[str, Any] = {}

    @cached_property
    def folder(self) -> Any:
        """Where the comparison goes: where a selection does, if this is one."""
        records = self.records.values()
        own = folder_of_run(self.config, max(record.examples for record in records))
        is_selection = any(record.report_dir.name == SELECTION for record in records)
        return report_dir(self.config) / SELECTION if is_selection else own

    @property
    def asked(self) -> dict[str, RunRecord]:
        """The records of the models of which an example was selected: the others have no files and no verdict."""
        return {label: record for label, record in self.records.items() if label in self._opened}

    @property
    def is_closed(self) -> bool:
        """Whether nothing more is heard."""
        return all(record.is_closed for record in self.asked.values())

    @property
    def code(self) -> int:
        """The first exit code in the order of their weight that any model has."""
        codes = [record.code for record in self.asked.values()]
        return next((int(code) for code in _ORDER if code in codes), max(codes))

    @property
    def board(self) -> Any:
        """The board of the last model, once all have theirs."""
        boards = [record.board for record in self.asked.values()]
        return boards[-1] if boards and all(boards) else None

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was heard of."""
        return any(record.interrupted for record in self.records.values())

    @interrupted.setter
    def interrupted(self, value: bool) -> None:
        for record in self.records.values():
            record.interrupted = value

    def of(self, nodeid: str) -> RunRecord | None:
        """Return the record of the model that a node id names."""
        return self.records.get(label_in(nodeid, self.config))

    def open_ledger(self) -> None:
        """Start the ledgers, and remove what an earlier run left; raise pytest.UsageError where one cannot be."""
        try:
            for label, record in self.records.items():
                # A shard may have no example of a model, and is merged with others that have.
                if record.examples or self.config.option.lm_shard is not None:
                    self._open(label)
        except BaseException:
            for record in self.asked.values():
                record.ledger.close(None)
            raise
        self.failures += remove_reports(self.folder)

    def _open(self, label: str) -> None:
        if label not in self._opened:
            self.records[label].open_ledger()
            self._opened.append(label)

    def announce(self, nodeids: Sequence[str]) -> None:
        """Note which examples are owed, those of helpers of eval functions after all others."""
        for label, record in self.records.items():
            if own := [nodeid for nodeid in nodeids if label_in(nodeid, self.config) == label]:
                self._open(label)
                record.heard.announce(own)

    def take(self, report: pytest.TestReport) -> None:
        """Note what a report says of an example."""
        record = self.of(report.nodeid)
        if record is not None:
            record.take(report)

    def show_progress(self, in_flight: int | None, wait: Any = None) -> None:
        """Say of the first model that is not done how far it is."""
        for record in self.records.values():
            if len(record.heard.results) < len(record.heard.expected):
                record.show_progress(in_flight, wait)
                return

    def finish(self, session: pytest.Session, status: int, *, lost: bool, uncollected: Sequence[str] = ()) -> int:
        """Build and write all boards and the comparison; return the exit code of the run."""
        for record in self.asked.values():
            record.finish(session, status, lost=lost, uncollected=uncollected)
        self._compare()
        return self.code or int(bool(self.failures))

    def give_up(self, reason: str) -> None:
        """Write the boards of a run that ends here and now, incomplete."""
        for record in self.asked.values():
            record.give_up(reason)

    @property
    def remarks(self) -> Sequence[str]:
        """What any board says besides its rows."""
        return [remark for record in self.records.values() for remark in record.remarks]

    def board_json(self) -> dict[str, Any]:
        """Return what json-report holds: the comparison, and each model's board."""
        boards = {label: record.board_json() for label, record in self.records.items() if record.board is not None}
        return {"comparison": self.comparison, "boards": boards}

    def _compare(self) -> None:
        from pytest_lmeval.report.comparison import compared, write_comparison
        from pytest_lmeval.report.html.comparison import Compared

        models = [
            Compared(label, record.board, tuple(record.with_prompts()), str(record.report_dir))
            for label, record in self.records.items()
            if record.board is not None
        ]
        not_asked = [label for label in self.records if label not in self.asked]
        self.comparison = compared(models, self.code, self.folder, not_asked)
        self.failures += write_comparison(self.folder, self.comparison, models)


class ManyHeard:
    """What is heard of all models, as :class:`~pytest_lmeval.plugin.record.heard.Heard` is of one."""

    def __init__(self, records: ManyRecords) -> None:
        self._records = records

    @property
    def expected(self) -> dict[str, None]:
        """The examples of all models that owe a result."""
        return {nodeid: None for record in self._records.records.values() for nodeid in record.heard.expected}

    @property
    def missing(self) -> list[str]:
        """The examples of all models that were never heard of again."""
        return [nodeid for record in self._records.records.values() for nodeid in record.heard.missing]

    def announce(self, nodeids: Sequence[str]) -> None:
        """Note which examples are owed."""
        self._records.announce(nodeids)

    def finish(self, nodeid: str) -> None:
        """Note that the last phase of an example was heard of."""
        record = self._records.of(nodeid)
        if record is not None:
            record.heard.finish(nodeid)

    def add(self, told: Told) -> None:
        """Note what a worker told; its facts and remarks are by label."""
        for label, record in self._records.records.items():
            remarks = {"": told.remarks.get(label, ())}
            record.heard.add(replace(told, facts=told.facts.get(label, {}), remarks=remarks))
