"""Secrets that the run knows, kept out of what pytest and its plugins show and write besides the reports of tests."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pytest_lmeval.plugin.private import change_suites, report_sections
from pytest_lmeval.plugin.settings.settings import scrubber_of_run
from pytest_lmeval.plugin.workers.sanitize import make_discreet, make_encodable, make_harmless, make_warning_discreet

_NAME = "lmeval-discretion"


def be_discreet(config: pytest.Config) -> None:
    """Have secrets hidden in all that is shown and written, if there are any."""
    if scrubber_of_run(config) and not config.pluginmanager.hasplugin(_NAME):
        config.pluginmanager.register(Discretion(config), _NAME)


def clean(report: pytest.TestReport, item: pytest.Item) -> None:
    """Make the report of any test fit to be sent and shown; of one of ours also what might give orders."""
    make_encodable(report)
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
        make_warning_discreet(warning_message, scrubber_of_run(self._config))

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
