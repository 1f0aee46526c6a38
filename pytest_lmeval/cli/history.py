"""``lmeval history BOARD...``: show the scores of a suite over time."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import add_format, show, show_json, writing
from pytest_lmeval.compare.history import History, history
from pytest_lmeval.errors import UnknownName, UsageError
from pytest_lmeval.records.folders import find_runs
from pytest_lmeval.report.tables import HISTORY, columns, history_row, table, text_table
from pytest_lmeval.text import escape_markdown, printable


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths", metavar="BOARD", nargs="+", type=Path, help="leaderboard.json or ledger.jsonl files, or folders"
    )
    parser.add_argument(
        "--task", dest="tasks", metavar="NAME", action="append", default=[], help="this task; repeatable"
    )
    parser.add_argument("--html", metavar="FILE", type=Path, help="write a page with a plot of each task")
    add_format(parser, "table", "json", "markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the history; return 1 if a file in one of the folders cannot be read."""
    unread: list[str] = []
    runs = find_runs(options.paths, unread)
    if not runs:
        raise UsageError("; ".join(unread))
    found = history(runs, options.tasks)
    for task in options.tasks:
        if not found.series[task]:
            raise UnknownName("task", task, history(runs).series)
    found = History(found.series, (*unread, *found.notes))
    if options.html:
        from pytest_lmeval.report.html.history import render_history

        with writing(f"--html {options.html}"):
            write_atomically(options.html, render_history(found, options.html.parent).encode("ascii"))
    if options.format == "json":
        show_json(asdict(found))
    else:
        show(_lines(found, is_markdown=options.format == "markdown"))
    return int(bool(unread))


def _lines(found: History, *, is_markdown: bool) -> Iterator[str]:
    for task, points in found.series.items():
        shown = text_table(HISTORY, [*map(history_row, points)])
        if is_markdown:
            yield from (f"## {escape_markdown(task)}", "", *table(*shown))
        else:
            yield from (printable(task, keep=""), *columns(*shown), "")
    yield from (f"- {escape_markdown(note)}" if is_markdown else printable(note, keep="") for note in found.notes)
