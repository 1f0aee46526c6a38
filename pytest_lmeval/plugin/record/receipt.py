"""Write a run's exit code to the file that ``lmeval run`` names; no other command loads this plugin."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from pytest_lmeval.records.receipt import write_receipt


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Write the exit code of a run that has its boards, even if other plugins' hooks raise exceptions."""
    try:
        return (yield)
    finally:
        # Workers have no recorder.
        recorder = session.config.pluginmanager.getplugin("lmeval-recorder")
        records = getattr(recorder, "records", None)
        if records is not None and records.has_boards:
            write_receipt(int(session.exitstatus or records.code))
