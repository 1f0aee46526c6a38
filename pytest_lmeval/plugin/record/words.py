"""The words that a terminal has for examples that neither passed nor failed, and for the gate."""

from __future__ import annotations

from typing import Any

import pytest

_NAME = "lmeval-words"


def show_words(config: pytest.Config) -> None:
    """Have reports shown with the words they carry; a run in which none does is not asked about every report."""
    if not config.pluginmanager.hasplugin(_NAME):
        config.pluginmanager.register(_Words(), _NAME)


class _Words:
    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport | pytest.CollectReport) -> Any:
        word = getattr(report, "lm_gate", None)
        if word is not None:
            return "failed" if report.failed else "", "", word
        word = getattr(report, "lm_word", "")
        if word and report.outcome == "passed":
            return word, word[0], (word.upper(), {"yellow": True})
        return None
