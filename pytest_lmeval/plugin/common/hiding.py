"""Hide secrets in reports, warnings and files, and escape text that a terminal or CI runner would interpret.

The module also escapes lone surrogates, because xdist cannot send a report that contains one.
"""

from __future__ import annotations

import linecache
import re
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pytest_lmeval.plugin.private.reports import change_suites, crash_of, report_sections
from pytest_lmeval.plugin.settings.settings import scrubber_of_run
from pytest_lmeval.redaction import Scrubber
from pytest_lmeval.text import printable

_NAME = "lmeval-secrets"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def hide_secrets(config: pytest.Config) -> None:
    """Hide secrets, if the run knows any, in all output and files."""
    if scrubber_of_run(config) and not config.pluginmanager.hasplugin(_NAME):
        config.pluginmanager.register(_HideSecrets(config), _NAME)


def clean(report: pytest.TestReport, item: pytest.Item) -> None:
    """Make a test's report safe to send and show; in an example's report, also escape terminal and CI commands."""
    _change(report, _escaped)
    _change_properties(report, _escaped)
    scrub_report(report, scrubber_of_run(item.config))
    if hasattr(item, "task"):
        escape_commands(report)


def clean_collected(report: pytest.CollectReport, collector: pytest.Collector) -> None:
    """Make a collector's report safe to show."""
    scrub_report(report, scrubber_of_run(collector.config))
    if hasattr(collector, "task_name"):
        escape_commands(report)


def hide_in_output(item: pytest.Item) -> None:
    """Hide secrets in a test's captured output before pytest builds the reports."""
    sections, scrubber = report_sections(item), scrubber_of_run(item.config)
    if scrubber:
        sections[:] = [(when, name, scrubber.scrub(text)) for when, name, text in sections]


class _HideSecrets:
    """Hides secrets in warnings, the reason for the session's end, and other plugins' files."""

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
        for phase in (each for test in json_report.get("tests", ()) for each in test.values()):
            if isinstance(phase, dict) and "log" in phase:
                phase["log"] = scrubber.scrub_all(phase["log"])
        json_report.update(scrubber.scrub_answer(dict(json_report)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        change_suites(self._config, scrubber_of_run(self._config).scrub_answer)


def scrub_report(report: Any, scrubber: Scrubber) -> None:
    """Hide secrets in a test's or collector's report."""
    if scrubber:
        _change(report, scrubber.scrub)
        if hasattr(report, "user_properties"):
            # The result has no short secret left, except in text from a server, which must not change.
            _change_properties(report, scrubber.scrub, of_result=scrubber.scrub_answer)


def escape_commands(report: Any) -> None:
    """Escape everything in ``report`` that a terminal or a CI runner would interpret as a command.

    ``report`` is the TestReport of an example or the CollectReport of a task file. The report may quote prompts and
    answers that metrics and adapters printed, logged or raised.
    """
    # A captured log contains pytest's colours.
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
        if crash is not None:  # the short summary shows the bare message
            crash.message = change(crash.message)
        text = str(report.longrepr)
        if (shown := change(text)) != text:
            report.longrepr = shown


def _change_properties(
    report: Any, change: Callable[[str], str], of_result: Callable[[str], str] | None = None
) -> None:
    changes = {"lmeval": of_result or change}
    report.user_properties = [
        (name, changes.get(name, change)(value) if isinstance(value, str) else value)
        for name, value in report.user_properties
    ]


def escape_warning(warning: warnings.WarningMessage) -> None:
    """Escape a warning, which may quote a prompt or an answer, for terminals and CI runners."""
    _change_warning(warning, lambda text: printable(_COLOR.sub("", text), folds=False))


def _change_warning(warning: warnings.WarningMessage, change: Callable[[str], str]) -> None:
    text = str(warning.message)
    if (shown := change(text)) != text:
        warning.message = shown
    # Below the text, pytest shows the source line that warned.
    line = linecache.getline(warning.filename, warning.lineno) if warning.line is None else warning.line
    if (shown := change(line)) != line:
        warning.line = shown


def _escaped(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
