"""``lmeval report LEDGER``: write a run's HTML report from its ledger, or from a board with examples."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from pytest_lmeval.cli.output import add_criteria, add_pair_by, settings_of, show, writing
from pytest_lmeval.compare.merged_gate import gated
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.runfile import board_of, examples_of, read_run
from pytest_lmeval.report.html import write_report
from pytest_lmeval.report.wording import verdict_lines
from pytest_lmeval.types import ExampleResult


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "run_file", metavar="LEDGER", type=Path, help="ledger.jsonl, or a leaderboard.json with per-example records"
    )
    parser.add_argument("-o", dest="output", metavar="FILE", type=Path, help="default: report.html beside the ledger")
    parser.add_argument(
        "--baseline", metavar="PATH", type=Path, help="compare with this run instead of the recorded one"
    )
    add_criteria(parser)
    add_pair_by(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the report, and print its path."""
    output = options.output or options.run_file.with_name("report.html")
    beside = [options.run_file.with_name(name) for name in ("leaderboard.json", "ledger.jsonl")]
    kept = [path.resolve() for path in (options.run_file, options.baseline, *beside) if path is not None]
    if output.resolve() in kept:
        raise UsageError(f"-o {output}: this is an input, or a file of the run; name another file")
    run = read_run(options.run_file)
    board = board_of(run)
    shown = dict(run.board or board.to_json())
    before: dict[tuple[str, str], ExampleResult] = {}
    if options.baseline is not None:
        settings = replace(
            settings_of(options, options.baseline, run), floors=run.facts.floors, limits=run.facts.limits
        )
        run, board, _ = gated(run, settings, Path.cwd())
        shown["gate"] = board.facts.gate
        before = {(old.task, old.id): old for old in examples_of(read_run(options.baseline))}
    gate = board.facts.gate or {}
    with writing(f"-o {output}"):
        write_report(output, shown, examples_of(run), gate.get("comparison"), before)
    show([*(verdict_lines(gate) if gate else ()), f"wrote {output}"])
    return 0
