"""The board at the end of pytest's own output."""

from __future__ import annotations

import pytest

from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.tables import selection_text, terminal_table
from pytest_lmeval.plugin.run_record import RunRecord
from pytest_lmeval.text import printable

__all__ = ["write_summary"]

_SHOWN = 20


def write_summary(record: RunRecord, terminal: pytest.TerminalReporter) -> None:
    """Write the table, what is missing or left out, and where the files are."""
    board = record.board
    if board is None or terminal.config.option.verbose < -1:
        return
    terminal.section(f"leaderboard: {printable(board.facts.adapter)}")
    for line in terminal_table(board):
        terminal.write_line(printable(line))
    if not board.complete:
        _write_reasons(board, terminal)
    for line in _remarks(record, board):
        terminal.write_line(printable(line), yellow=True)
    for failure in record.write_failures:
        terminal.write_line(f"NOT WRITTEN: {printable(failure)}", red=True, bold=True)
    if not record.write_failures:
        terminal.write_line(f"written to {record.report_dir / 'leaderboard.json'}")


def _write_reasons(board: Leaderboard, terminal: pytest.TerminalReporter) -> None:
    reasons = (board.facts.gate or {}).get("reasons", ())
    terminal.write_line("INCOMPLETE: no overall score, and not fit to compare with.", red=True)
    for reason in reasons[:_SHOWN]:
        terminal.write_line(f"  {printable(reason)}", red=True)
    if len(reasons) > _SHOWN:
        terminal.write_line(f"  ... and {len(reasons) - _SHOWN} more", red=True)


def _remarks(record: RunRecord, board: Leaderboard) -> list[str]:
    remarks = [selection_text(board)]
    if record.reused:
        remarks.append(f"resumed: {record.reused} answer(s) out of the ledger were used again")
    if not board.counts["scored"]:
        remarks.append("no example was scored")
    remarks += [f"left out: {fault}" for fault in board.facts.bad_records]
    return [remark for remark in remarks if remark]
