"""The controller's half of a run: hears every report, keeps the ledger, and ends with the board and the exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_lmeval.plugin.collect.locate import asks_for_run, is_example, is_example_id
from pytest_lmeval.plugin.private import end_capture, is_controller, kept_reports, show_internal_error
from pytest_lmeval.plugin.record.exit_guard import ExitGuard
from pytest_lmeval.plugin.settings.models import collected_so_far, run_so_far

if TYPE_CHECKING:
    from pytest_lmeval.plugin.record.many_records import ManyRecords
    from pytest_lmeval.plugin.record.run_record import RunRecord


class Recorder:
    """Registered in the one process that sees every report: the serial one, or the controller of the workers.

    It costs a run without examples two counters; everything else is made when the first example is announced.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.record: RunRecord | ManyRecords | None = None
        # Held by whoever ends the run: pytest's main thread, or any that calls os._exit.
        self._ending = threading.RLock()
        self._guard = ExitGuard(self._wind_up, self._ending)
        self._finished = 0
        self._lost = 0
        self._collections = 0
        self._heard: set[str] = set()
        self._has_examples = False
        self._hears_workers = False
        self._kept: dict[str, list[Any]] | None = None
        self._is_asked = False
        self._was_stopped = False
        self._bad_files: dict[str, None] = {}
        self._uncollected: dict[str, None] = {}
        self._not_tasks: dict[str, str] = {}
        self._skipped_evals = 0
        self._remarks: dict[str, None] = {}
        self._session: pytest.Session | None = None
        config.add_cleanup(self._keep_code)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._is_asked = asks_for_run(self.config)
        if self._is_asked:
            self._guard.install()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # After a failed collection nothing runs: there is nothing to record, and an older board stays as it is.
        stops = session.testsfailed and not self.config.option.continue_on_collection_errors
        if not self.config.option.collectonly and not stops and not self._has_bad_files:
            self._announce([item.nodeid for item in session.items if is_example(item)])
        # pytest calls this too where an exception ended the collection.
        self._collections += sys.exception() is None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        self._heard.add(node.gateway.id)
        self._refuse_bad_files()
        self._announce([nodeid for nodeid in ids if is_example_id(nodeid, self.config)])
        self._collections += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        from pytest_lmeval.plugin.workers.telling import told_by

        told = told_by(node)
        self._not_tasks.update(told.not_tasks)
        self._skipped_evals = max(self._skipped_evals, told.skipped_evals)
        self._remarks.update(dict.fromkeys(remark for remarks in told.remarks.values() for remark in remarks))
        if told.usage_error:
            raise pytest.UsageError(told.usage_error)
        if told.tasks is None:
            return
        if self.record is not None:
            self.record.heard.add(told)
        elif node.gateway.id in self._heard:
            # When xdist shuts down while workers collect, it passes on no more of their collections.
            raise pytest.UsageError("a worker collected examples that the controller does not know by their place")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # Under xdist only the workers' failures arrive here, and all of a worker's before its collection does. A folder
        # that cannot be collected hides the task files in it.
        if report.failed:
            found = self._bad_files if is_example_id(report.nodeid, self.config) else self._uncollected
            found[report.nodeid] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        if not self.config.option.collectonly and not is_controller(self.config):
            self._refuse_bad_files()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A set-up or tear-down that went well has no result of an example.
        decides = report.when == "call" or report.outcome != "passed"
        has_more = decides and report.user_properties
        if has_more and (self.record is None or report.nodeid not in self.record.heard.expected):
            # An eval function that its file's text does not show: a helper marks it.
            self._announce([report.nodeid] if any(name == "lmeval" for name, _ in report.user_properties) else ())
        if self.record is not None:
            if self.record.is_closed:
                # Another thread winds the run up: pytest must not go on, and capture what that writes to the terminal.
                with self._ending:
                    pass
            if decides:
                self.record.take(report)
            if self._hears_workers:
                self.record.show_progress(None)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._finished += 1
        if self.record is not None:
            self.record.heard.finish(nodeid)
            self._drop_quiet_reports()

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._was_stopped = True
        if self.record is not None:
            from pytest_lmeval.plugin.record.ending import ctrl_c_in

            self.record.interrupted |= ctrl_c_in(excinfo.value) is not None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        # Whatever else stopped the session, -x included, bad task files did.
        status = pytest.ExitCode.INTERRUPTED if self._has_bad_files else session.exitstatus
        with self._ending:
            try:
                code = self._end(session, int(status))
            except Exception:
                # pytest would end with a traceback and 1, which says that an example failed.
                show_internal_error(self.config)
                code = (self.record and self.record.code) or pytest.ExitCode.INTERNAL_ERROR
            self._set_exit_code(session, code)
        outcome = yield
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if status == pytest.ExitCode.INTERNAL_ERROR and terminal is not None:
            # pytest writes no summary after an internal error; the scores are still wanted.
            self.pytest_terminal_summary(terminal)
        return outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lost > 0:
            terminalreporter.write_line(f"LOST: {self._lost} test(s) of which no end was heard", red=True, bold=True)
        tasks = collected_so_far(self.config)
        not_tasks = {**self._not_tasks, **(tasks.not_tasks if tasks is not None else {})}
        if not_tasks:
            from pytest_lmeval.plugin.record.terminal import write_not_tasks

            write_not_tasks(not_tasks, terminalreporter)
        if self._session is not None and self._session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            from pytest_lmeval.plugin.record.terminal import write_why_nothing

            write_why_nothing(self.config, terminalreporter)
        self._write_evals(terminalreporter)
        if self.record is not None:
            from pytest_lmeval.plugin.record.terminal import write_summary

            write_summary(self.record, terminalreporter)

    def _write_evals(self, terminal: pytest.TerminalReporter) -> None:
        state = run_so_far(self.config)
        skipped = self._skipped_evals or (state.skipped_evals if state is not None else 0)
        if skipped:
            terminal.write_line(f"{skipped} eval{'s' if skipped > 1 else ''} skipped: no --lm-adapter")
        # Where there is a board it says them, with all other reports; not what came after it was written.
        said = set(self.record.remarks) if self.record is not None else set()
        for remark in (*self._remarks, *(state.remarks if state is not None else ())):
            from pytest_lmeval.text import printable

            if remark not in said:
                terminal.write_line(printable(remark, keep=""))

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        if self.record is not None and self.record.board is not None:
            json_report["lmeval"] = self.record.board_json()
            json_report["exitcode"] = json_report.get("exitcode") or self.record.code

    def _end(self, session: pytest.Session, status: int) -> int:
        lost = status == pytest.ExitCode.OK and self._lost_reports(session)
        if lost and (self.record is None or not self.record.heard.missing):
            self._lost = session.testscollected - self._finished
        if self.record is not None:
            return self.record.finish(session, status, lost=lost, uncollected=[*self._uncollected])
        return int(pytest.ExitCode.INTERNAL_ERROR) if lost else status

    def _set_exit_code(self, session: pytest.Session, code: int) -> None:
        """Set the exit code of pytest, which nothing else in the plugin does."""
        if session.exitstatus != code:
            session.exitstatus = code
        ending = sys.exception()
        if isinstance(ending, SystemExit) and not ending.code:
            ending.code = code

    def waiting(self, in_flight: int, wait: Any) -> None:
        """Say, if it is time to, what the run waits for: requests that are in flight, and what ``wait`` tells."""
        if self.record is not None:
            self.record.show_progress(in_flight, wait)

    def _announce(self, nodeids: Sequence[str]) -> None:
        if not nodeids:
            if self.record is None:
                # Nothing of ours is in this run: how it ends is not our business.
                self._guard.remove()
            return
        if self.record is None:
            self._has_examples = True
            from pytest_lmeval.plugin.record.baseline import check_recording
            from pytest_lmeval.plugin.settings.models import configs, labels_of

            self._hears_workers = is_controller(self.config)
            if self._hears_workers:
                for one in configs(self.config):
                    check_recording(one)
            record: RunRecord | ManyRecords
            if labels_of(self.config):
                from pytest_lmeval.plugin.record.many_records import ManyRecords

                record = ManyRecords(self.config, nodeids)
            else:
                from pytest_lmeval.plugin.record.run_record import RunRecord

                record = RunRecord(self.config, len(nodeids))
            record.open_ledger()
            self.record = record
            # --durations reads them all once more at the end.
            self._kept = kept_reports(self.config) if self.config.option.durations is None else None
            self._guard.install()
        self.record.heard.announce(nodeids)

    def _drop_quiet_reports(self) -> None:
        # Of set-up and tear-down with nothing to show. The terminal would keep two for every example, and look through
        # all of them for every failure that it shows.
        kept = self._kept.get("") if self._kept is not None else None
        while kept and kept[-1].when != "call" and kept[-1].outcome == "passed" and not kept[-1].sections:
            kept.pop()

    @property
    def _has_bad_files(self) -> bool:
        tasks = collected_so_far(self.config)
        return bool(self._bad_files or (tasks is not None and tasks.bad_files))

    def _refuse_bad_files(self) -> None:
        if self._bad_files:
            raise pytest.Session.Interrupted(f"{len(self._bad_files)} bad task file(s)")

    def _keep_code(self) -> None:
        # The last thing that pytest calls. By now a hook may have set the status, or ended the session by pytest.exit
        # or sys.exit; a run that failed stays failed.
        with self._ending:
            if self.record is not None and self.record.board is None:
                self._give_up("the session ended before its results were judged")
            self._guard.remove()
        if self.record is not None and self._session is not None:
            self._set_exit_code(self._session, self._session.exitstatus or self.record.code)

    def _wind_up(self, status: int) -> int:
        how = f"the process was ended by os._exit({status})"
        if self.record is None:
            os.write(2, f"{how} before the examples were collected\n".encode())
            return status or int(pytest.ExitCode.INTERNAL_ERROR)
        if self.record.board is None:
            self._give_up(how)
            return self.record.code
        return status or self.record.code

    def _give_up(self, reason: str) -> None:
        try:
            self._write_what_there_is(reason)
        except (Exception, SystemExit):  # a SystemExit that pytest has not asked for would set the exit code
            traceback.print_exc()

    def _write_what_there_is(self, reason: str) -> None:
        assert self.record is not None
        self.record.give_up(reason)
        end_capture(self.config)
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            self.pytest_terminal_summary(terminal)
            terminal.flush()

    def _lost_reports(self, session: pytest.Session) -> bool:
        # A report that breaks on its way from a worker takes its failure with it, and pytest would exit 0.
        if self.config.option.collectonly:
            return False
        # A run that was stopped before it began, or of workers of which none has said what it collected.
        is_ours = self._is_asked or self._has_examples
        unheard = (self._was_stopped or is_controller(self.config)) and is_ours and not self._collections
        return unheard or self._finished < session.testscollected
