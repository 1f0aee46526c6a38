"""Receive every report in the controlling process, record the results, and set the exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pytest_lmeval.errors import INCOMPLETE
from pytest_lmeval.plugin.collect.locate import is_example, is_example_id, places
from pytest_lmeval.plugin.common.report import Notes
from pytest_lmeval.plugin.private.reports import end_capture, kept_reports, show_internal_error
from pytest_lmeval.plugin.private.workers import is_controller
from pytest_lmeval.plugin.settings.models import COLLECTED

if TYPE_CHECKING:
    from pytest_lmeval.plugin.record.records import Records

_PATIENCE_S = 30.0


class Recorder:
    """Receives every report in a run's only process, or in the controller of its workers.

    In a run without examples, the recorder only counts; the first announced example creates the records.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.records: Records | None = None
        # The lock belongs to the thread that ends the run: pytest's main thread, or one that calls os._exit.
        self._ending = threading.RLock()
        self._guard = ExitGuard(self._wind_up, self._ending)
        self._finished = 0
        self._lost = 0
        self._collections = 0
        self._workers: set[str] = set()
        self._kept: dict[str, list[Any]] | None = None
        self._is_asked = False
        self._was_stopped = False
        self._was_interrupted = False
        self._notes = Notes()
        self._session: pytest.Session | None = None
        config.add_cleanup(self._keep_code)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._session = session
        self._is_asked = not self.config.option.collectonly and places(self.config).asks_for_run()
        if self._is_asked:
            self._guard.install()
        if self._is_asked and is_controller(self.config):
            from pytest_lmeval.plugin.workers.sending import WorkerNeeds

            self.config.pluginmanager.register(WorkerNeeds(self.config), "lmeval-worker-needs")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        # After a failed collection nothing runs, and an older board remains.
        stops = session.testsfailed and not self.config.option.continue_on_collection_errors
        if not self.config.option.collectonly and not stops and not self._has_bad_files:
            self._announce([item.nodeid for item in session.items if is_example(item)])
        # pytest also calls this hook after an exception during collection.
        self._collections += sys.exception() is None

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        from pytest_lmeval.plugin.workers.sending import check_contents

        self._workers.add(node.gateway.id)
        check_contents(self.config, node, ids)
        self._notes.refuse_bad_files()
        self._announce([nodeid for nodeid in ids if is_example_id(nodeid, self.config)])
        self._collections += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        from pytest_lmeval.plugin.common.report import report_of

        report = report_of(node)
        self._notes.add(report)
        if report.usage_error:
            raise pytest.UsageError(report.usage_error)
        if report.tasks is None:
            return
        if self.records is not None:
            self.records.add(report)
        elif node.gateway.id in self._workers:
            # Otherwise xdist shut down during collection, and dropped the workers' collections.
            raise pytest.UsageError("a worker collected files outside the controller's task paths")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # Under xdist, only failures arrive before a worker's collection. A failed folder hides its task files.
        if report.failed:
            is_ours = is_example_id(report.nodeid, self.config)
            found = self._notes.bad_files if is_ours else self._notes.uncollected
            found[report.nodeid] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        if self._notes.bad_files and not self.config.option.collectonly and not is_controller(self.config):
            self._notes.refuse_bad_files()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # A successful set-up or tear-down carries no result.
        decides = report.when == "call" or report.outcome != "passed"
        record = self.records.of(report.nodeid) if decides and self.records is not None else None
        if decides and record is None and any(name == "lmeval" for name, _ in report.user_properties):
            # An eval function marked by a helper: its file's text does not show the mark.
            self._announce([report.nodeid])
            record = self.records.of(report.nodeid) if self.records is not None else None
        if self.records is None:
            return
        if self.records.is_closed:
            # Another thread is ending the run: wait, or pytest would capture its output.
            with self._ending:
                pass
        elif record is not None:
            record.take(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._finished += 1
        if self.records is None:
            return
        if (record := self.records.of(nodeid)) is not None:
            record.received.finish(nodeid)
        _drop_quiet_reports(self._kept)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self._was_stopped = True
        if self.records is not None:
            self._was_interrupted |= ctrl_c_in(excinfo.value) is not None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        # Blame bad task files even if -x stopped the session.
        status = pytest.ExitCode.INTERRUPTED if self._has_bad_files else session.exitstatus
        with self._ending:
            try:
                code = self._end(session, int(status))
            except Exception:
                # pytest would exit with 1, which would mean that an example failed.
                show_internal_error(self.config)
                code = (self.records and self.records.code) or pytest.ExitCode.INTERNAL_ERROR
            _set_exit_code(session, code)
        outcome = yield
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if status == pytest.ExitCode.INTERNAL_ERROR and terminal is not None:
            # pytest writes no summary after an internal error, but the scores are still worth showing.
            self.pytest_terminal_summary(terminal)
        return outcome

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._lost > 0:
            tests = f"{self._lost} test{'s' if self._lost > 1 else ''}"
            terminalreporter.write_line(f"LOST: {tests} did not report completion", red=True, bold=True)
        tasks = self.config.stash.get(COLLECTED, None)
        not_tasks = {**self._notes.not_tasks, **(tasks.not_tasks if tasks is not None else {})}
        if not_tasks:
            from pytest_lmeval.plugin.record.terminal import write_not_tasks

            write_not_tasks(not_tasks, terminalreporter)
        if self._session is not None and self._session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            from pytest_lmeval.plugin.record.terminal import write_why_nothing

            write_why_nothing(self.config, terminalreporter)
        if self._notes.skipped_evals or self._notes.remarks or tasks is not None:
            from pytest_lmeval.plugin.record.terminal import write_remarks

            # The board already shows its remarks, except later ones.
            records = self.records.all if self.records is not None else []
            shown = {remark for record in records for remark in record.remarks}
            write_remarks(self._notes, shown, terminalreporter)
        if self.records is not None:
            from pytest_lmeval.plugin.record.terminal import write_summary

            write_summary(self.records, terminalreporter)

    @pytest.hookimpl(optionalhook=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        if self.records is not None and self.records.has_boards:
            json_report["lmeval"] = self.records.to_json()
            json_report["exitcode"] = json_report.get("exitcode") or self.records.code

    def waiting(self, in_flight: int, wait: Any) -> None:
        """If an update is due, show the progress, with the number of requests in flight and the current ``wait``."""
        if self.records is not None:
            self.records.show_progress(in_flight, wait)

    def _end(self, session: pytest.Session, status: int) -> int:
        # Stopped before the run began, or no worker has reported its collection.
        is_ours = self._is_asked or self.records is not None
        is_unknown = is_ours and not self._collections and (self._was_stopped or is_controller(self.config))
        # If a worker's report is lost, so is the failure in it, and pytest would exit 0.
        lacks_reports = is_unknown or self._finished < session.testscollected
        lost = status == pytest.ExitCode.OK and not self.config.option.collectonly and lacks_reports
        if lost and not (self.records and any(record.received.missing for record in self.records.all)):
            self._lost = session.testscollected - self._finished
        if self.records is None:
            tasks = self.config.stash.get(COLLECTED, None)
            is_untouched = self._notes.is_untouched or (tasks is not None and tasks.is_untouched)
            if is_untouched and status == pytest.ExitCode.NO_TESTS_COLLECTED:
                return int(pytest.ExitCode.OK)
            return int(pytest.ExitCode.INTERNAL_ERROR) if lost else status
        from pytest_lmeval.plugin.record.received import ending_of

        uncollected = list(self._notes.uncollected)
        ending = ending_of(session, status, interrupted=self._was_interrupted, lost=lost, uncollected=uncollected)
        return self.records.finish(session, ending)

    def _announce(self, nodeids: Sequence[str]) -> None:
        # --setup-only and --setup-plan run no tests.
        if not nodeids or self.config.getoption("setuponly", False):
            if self.records is None:
                self._guard.remove()  # a run without examples may end in any way
            return
        if self.records is None:
            from pytest_lmeval.plugin.record.records import Records

            records = Records(self.config, nodeids)
            records.open()
            self.records = records
            if records.has_workers:
                from pytest_lmeval.plugin.record.progress import watch_workers

                watch_workers(self.config, records.show_progress)
            # --durations reads all reports at the end.
            self._kept = kept_reports(self.config) if self.config.option.durations is None else None
            self._guard.install()
        self.records.announce(nodeids)

    @property
    def _has_bad_files(self) -> bool:
        tasks = self.config.stash.get(COLLECTED, None)
        return bool(self._notes.bad_files or (tasks is not None and tasks.bad_files))

    def _keep_code(self) -> None:
        # pytest calls this hook last. Another hook may have set the status or called pytest.exit or sys.exit: keep the
        # failure.
        with self._ending:
            if self.records is not None and not self.records.has_boards:
                self._give_up(self.records, "the session ended before its results were judged")
            self._guard.remove()
        if self.records is not None and self._session is not None:
            _set_exit_code(self._session, self._session.exitstatus or self.records.code)

    def _wind_up(self, status: int) -> int:
        how = f"the process was ended by os._exit({status})"
        if self.records is None:
            os.write(2, f"{how} before the examples were collected\n".encode())
            return status or int(pytest.ExitCode.INTERNAL_ERROR)
        if not self.records.has_boards:
            self._give_up(self.records, how)
            return self.records.code
        return status or self.records.code

    def _give_up(self, records: Records, reason: str) -> None:
        try:
            records.give_up(reason)
            end_capture(self.config)
            terminal = self.config.pluginmanager.getplugin("terminalreporter")
            if terminal is not None:
                self.pytest_terminal_summary(terminal)
                terminal.flush()
        except (Exception, SystemExit):  # a stray SystemExit would set the exit code
            traceback.print_exc()


def _set_exit_code(session: pytest.Session, code: int) -> None:
    """Set pytest's exit code; no other function sets it."""
    if session.exitstatus != code:
        session.exitstatus = code
    ending = sys.exception()
    if isinstance(ending, SystemExit) and not ending.code:
        ending.code = code


def _drop_quiet_reports(reports: dict[str, list[Any]] | None) -> None:
    """Drop the latest set-up and tear-down reports if they have no output.

    Otherwise, the terminal would keep two reports without output per example, and scan all of them for every failure.
    """
    kept = reports.get("") if reports is not None else None
    while kept and kept[-1].when != "call" and kept[-1].outcome == "passed" and not kept[-1].sections:
        kept.pop()


def ctrl_c_in(error: BaseException | None) -> KeyboardInterrupt | None:
    """Return the KeyboardInterrupt that is ``error`` or that caused it, or None.

    If an exception passes an old-style hook wrapper, pluggy warns. With warnings as errors, the warning replaces the
    exception.
    """
    while isinstance(error, Warning):
        error = error.__context__
    # pytest and xdist themselves stop a run with subclasses.
    return error if type(error) is KeyboardInterrupt else None


class ExitGuard:
    """Replaces ``os._exit`` during a run, so that the first call finishes the run before the process ends.

    The thread that ends the run holds the lock ``ending``, and calls from other threads wait for the lock. While the
    first call finishes the run, a further call ends the process at once, with an exit status that is not 0. A forked
    child exits as usual.
    """

    def __init__(self, wind_up: Callable[[int], int], ending: threading.RLock) -> None:
        self._wind_up = wind_up
        self._ending = ending
        self._is_winding_up = False
        self._owner = os.getpid()
        self._exit = os._exit

    def install(self) -> None:
        """Replace ``os._exit``."""
        os._exit = self

    def remove(self) -> None:
        """Restore ``os._exit``."""
        if os._exit is self:
            os._exit = self._exit

    def __call__(self, status: int) -> NoReturn:
        if os.getpid() == self._owner:
            # Never released, because the process ends here. The limit is for a lock holder that waits for this thread.
            held = self._ending.acquire(timeout=_PATIENCE_S)
            status = self._wound_up(status) if held and not self._is_winding_up else status or INCOMPLETE
        self._exit(status)

    def _wound_up(self, status: int) -> int:
        self._is_winding_up = True
        try:
            return self._wind_up(status)
        except BaseException:  # must not return to the caller of os._exit
            traceback.print_exc()
            return status or INCOMPLETE
