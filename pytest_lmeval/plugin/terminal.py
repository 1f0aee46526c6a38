"""The board at the end of pytest's own output."""

from __future__ import annotations

import pytest

from pytest_lmeval.leaderboard.tables import terminal_table
from pytest_lmeval.plugin.run_record import RunRecord
from pytest_lmeval.text import printable

__all__ = ["write_summary"]

_SHOWN = 20


def write_summary(record: RunRecord, terminal: pytest.TerminalReporter) -> None:
    """Write the table, what is missing, and where the files are."""
    board = record.board
    if board is None or terminal.config.option.verbose < -1:
        return
    terminal.section(f"leaderboard: {printable(board.facts.adapter)}")
    for line in terminal_table(board):
        terminal.write_line(printable(line))
    gate = board.facts.gate or {}
    if not board.complete:
        terminal.write_line("INCOMPLETE: no overall score, and not fit to compare with.", red=True)
        for reason in gate["reasons"][:_SHOWN]:
            terminal.write_line(f"  {printable(reason)}", red=True)
        if len(gate["reasons"]) > _SHOWN:
            terminal.write_line(f"  ... and {len(gate['reasons']) - _SHOWN} more", red=True)
    for fault in board.facts.bad_records:
        terminal.write_line(f"left out: {printable(fault)}", yellow=True)
    for failure in record.write_failures:
        terminal.write_line(f"NOT WRITTEN: {printable(failure)}", red=True, bold=True)
    if not record.write_failures:
        terminal.write_line(f"written to {record.report_dir / 'leaderboard.json'}")
