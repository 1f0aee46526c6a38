"""``lmeval diff OLD NEW``: compare two runs; show the verdict and the examples that changed."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from pytest_lmeval.arguments import whole
from pytest_lmeval.cli.output import add_criteria, add_format, add_pair_by, settings_of, show, show_json, show_tables
from pytest_lmeval.compare.difference import difference
from pytest_lmeval.records.runfile import read_run


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", type=Path, help="ledger.jsonl or leaderboard.json to compare with")
    parser.add_argument("new", metavar="NEW", type=Path, help="ledger.jsonl or leaderboard.json of the later run")
    add_criteria(parser)
    add_pair_by(parser)
    add_format(parser, "table", "json", "markdown")
    parser.add_argument(
        "--limit", metavar="N", type=whole(0), default=10, help="flipped examples to show, each way (default 10)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the difference; return 1 if the gate fails the new run with the old run as its baseline."""
    old, new = read_run(options.old), read_run(options.new)
    found = difference(old, new, settings_of(options, options.old, new), Path.cwd())
    from pytest_lmeval.report.difference_text import difference_lines, difference_markdown

    if options.format == "json":
        show_json(found.to_json())
    elif options.format == "table":
        show_tables(partial(difference_lines, found, options.limit))
    else:
        show(difference_markdown(found, options.limit).split("\n"))
    return int(found.is_finding)
