"""``lmeval report LEDGER``: the HTML report of a run, from its ledger or from a board with its examples."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.cli.output import add_criteria, criteria_of, show
from pytest_lmeval.errors import UsageError
from pytest_lmeval.leaderboard.against import compare_with
from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.html import write_report
from pytest_lmeval.leaderboard.runfile import board_of, examples_of, read_run
from pytest_lmeval.text import printable
from pytest_lmeval.types import ExampleResult

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "run_file", metavar="LEDGER", type=Path, help="ledger.jsonl, or a leaderboard.json with per-example records"
    )
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="default: report.html beside the ledger")
    parser.add_argument(
        "--baseline", metavar="PATH", type=Path, help="compare with this run instead of the recorded one"
    )
    add_criteria(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the report and say where."""
    output = options.output or options.run_file.with_name("report.html")
    if output.resolve() in [path.resolve() for path in (options.run_file, options.baseline) if path is not None]:
        raise UsageError(f"-o {output}: is the file to read; name another")
    held = read_run(options.run_file)
    board = board_of(held)
    shown = dict(held.board or board.to_json())
    comparison, before = _against(board, options)
    try:
        write_report(output, shown, examples_of(held), comparison, before)
    except OSError as error:
        raise UsageError(f"-o {output}: cannot be written: {error.strerror}") from None
    coverage = (printable(str(line), keep="") for line in (comparison or {}).get("coverage", ()))
    show([*coverage, f"wrote {output}"])
    return 0


def _against(
    board: Leaderboard, options: argparse.Namespace
) -> tuple[Mapping[str, Any] | None, Mapping[tuple[str, str], ExampleResult]]:
    if options.baseline is None:
        return (board.facts.gate or {}).get("comparison"), {}
    baseline = read_run(options.baseline)
    comparison = compare_with(baseline, board, criteria_of(options), Path.cwd())
    return comparison.to_json(), {(old.task, old.id): old for old in examples_of(baseline)}
