"""What reports, warnings and files show: fit to be sent and printed, and without the secrets that the run knows.

A report whose text holds a lone surrogate cannot be encoded: under xdist the failure would be lost, and the run green.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from pytest_lmeval.plugin.private.reports import change_suites, crash_of, report_sections
from pytest_lmeval.plugin.settings.settings import scrubber_of_run
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.text import printable

_NAME = "lmeval-discretion"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def be_discreet(config: pytest.Config) -> None:
    """Have secrets hidden in all that is shown and written, if there are any."""
    if scrubber_of_run(config) and not config.pluginmanager.hasplugin(_NAME):
        config.pluginmanager.register(Discretion(config), _NAME)


def clean(report: pytest.TestReport, item: pytest.Item) -> None:
    """Make the report of any test fit to be sent and shown; of one of ours also what might give orders."""
    _change(report, _escaped)
    _change_properties(report, _escaped)
    make_discreet(report, scrubber_of_run(item.config))
    if hasattr(item, "task"):
        make_harmless(report)


def clean_collected(report: pytest.CollectReport, collector: pytest.Collector) -> None:
    """Make the report of what was collected fit to be shown."""
    make_discreet(report, scrubber_of_run(collector.config))
    if hasattr(collector, "task_name"):
        make_harmless(report)


def hide_in_output(item: pytest.Item) -> None:
    """Hide in the captured output of a test, of which its reports are made, the secrets that the run knows."""
    # Without it the reports are scrubbed all the same.
    sections, scrubber = report_sections(item), scrubber_of_run(item.config)
    if scrubber:
        sections[:] = [(when, name, scrubber.scrub(text)) for when, name, text in sections]


class Discretion:
    """Hides the secrets of a run in warnings, in the reason of its end, and in files of other plugins."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        _change_warning(warning_message, scrubber_of_run(self._config).scrub)

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        scrubber, error = scrubber_of_run(self._config), excinfo.value
        if isinstance(error, pytest.exit.Exception):
            error.msg = scrubber.scrub(str(error.msg))
        error.args = scrubber.scrub_all(error.args)

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_json_modifyreport(self, json_report: dict[str, Any]) -> None:
        scrubber = scrubber_of_run(self._config)
        for phase in _phases(json_report):
            phase.update({"log": scrubber.scrub_all(phase["log"])} if "log" in phase else {})
        json_report.update(scrubber.scrub_answer(dict(json_report)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        change_suites(self._config, scrubber_of_run(self._config).scrub_answer)


def _phases(json_report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a JSON report has of set-up, call and tear-down of each test."""
    for test in json_report.get("tests", ()):
        yield from (phase for phase in test.values() if isinstance(phase, dict))


def make_discreet(report: Any, scrubber: Scrubber) -> None:
    """Hide in ``report``, of any test or of what was collected, the secrets that the run knows."""
    if scrubber:
        _change(report, scrubber.scrub)
        if hasattr(report, "user_properties"):
            _change_properties(report, scrubber.scrub)


def make_harmless(report: Any) -> None:
    """Spell out in ``report`` what a terminal or a CI runner would obey, or fold the log at.

    ``report`` is the TestReport of an example or the CollectReport of a task file. Prompts and answers get into it
    through what metrics and adapters print, log and raise.
    """
    # A log that is captured has the colours of pytest.
    report.sections = [(name, _COLOR.sub("", text)) for name, text in report.sections]
    _change(report, partial(printable, folds=False))


def _change(report: Any, change: Callable[[str], str]) -> None:
    report.sections = [(name, change(text)) for name, text in report.sections]
    if hasattr(report, "wasxfail"):
        report.wasxfail = change(report.wasxfail)
    if isinstance(report.longrepr, tuple):  # a skip
        path, line, reason = report.longrepr
        report.longrepr = (path, line, change(reason))
    elif report.longrepr is not None:
        crash = crash_of(report)
        if crash is not None:  # the short summary has the bare message, without the mark before each line
            crash.message = change(crash.message)
        text = str(report.longrepr)
        if (shown := change(text)) != text:
            report.longrepr = shown


def _change_properties(report: Any, change: Callable[[str], str]) -> None:
    properties = report.user_properties
    report.user_properties = [(name, change(value) if isinstance(value, str) else value) for name, value in properties]


def make_warning_harmless(warning: warnings.WarningMessage) -> None:
    """Spell out in a warning, which may quote a prompt or an answer, what would be obeyed or fold the log."""
    _change_warning(warning, lambda text: printable(_COLOR.sub("", text), folds=False))


def _change_warning(warning: warnings.WarningMessage, change: Callable[[str], str]) -> None:
    text = str(warning.message)
    if (shown := change(text)) != text:
        warning.message = shown
    # Below the text is the line that warned.
    line = linecache.getline(warning.filename, warning.lineno) if warning.line is None else warning.line
    if (shown := change(line)) != line:
        warning.line = shown


def _escaped(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
