"""``lmeval rank BOARD...``: the leaderboard of several models on the same examples."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_lmeval.arguments import level
from pytest_lmeval.cli.output import add_format, add_pair_by, show, show_json
from pytest_lmeval.compare.entrants import by_config
from pytest_lmeval.compare.rank import ALPHA, rank
from pytest_lmeval.records.runfile import read_run
from pytest_lmeval.report.markdown import table
from pytest_lmeval.report.ranking_text import STANDING_HEADINGS, ranking_remarks, standing_cells
from pytest_lmeval.report.tables import columns, score_text
from pytest_lmeval.report.wording import cost_cell
from pytest_lmeval.text import escape_markdown, printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("boards", metavar="BOARD", nargs="+", type=Path, help="ledger.jsonl or leaderboard.json files")
    add_pair_by(parser)
    parser.add_argument(
        "--alpha",
        metavar="A",
        type=level,
        default=ALPHA,
        help="how often one of several equal models may be called worse (default 0.05)",
    )
    parser.add_argument(
        "--by",
        choices=("model", "config"),
        default="model",
        help="config: rank variants of tasks, made by a list in --lm-config or by their prompts; examples pair by id",
    )
    add_format(parser, "table", "json", "markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the ranking."""
    runs = [read_run(path) for path in options.boards]
    notes = [f"{run.path}: not complete" for run in runs if not run.complete]
    is_by_config = options.by == "config"
    ranked, pair_by = (by_config(runs), "id") if is_by_config else (runs, options.pair_by or "content")
    ranking = rank(ranked, pair_by, options.alpha).to_json()
    if options.format == "json":
        show_json({**ranking, "notes": notes})
        return 0
    headings, rows = _table(ranking)
    remarks = [*ranking_remarks(ranking), *notes]
    if options.format == "markdown":
        lines = table([escape_markdown(heading) for heading in headings], rows, texts=1)
        show([*lines, *(f"- {escape_markdown(each)}" for each in remarks)])
    else:
        show([*columns(headings, rows, texts=1), "", *(printable(each, keep="") for each in remarks)])
    return 0


def _table(ranking: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows: time and cost where some model has them, tasks where there are several."""
    standings = ranking["standings"]
    spent = {"p95 ms": "p95_ms", "cost": "cost"}
    spent = {head: name for head, name in spent.items() if any(one[name] is not None for one in standings)}
    tasks = list(ranking["examples"]) if len(ranking["examples"]) > 1 else []
    rows = [
        [
            one["name"],
            score_text(one["score"]),
            *standing_cells(one, one["scored"]),
            *(cost_cell(one[name], is_least=name == "cost" and one["cost_is_least"]) for name in spent.values()),
            *(score_text(one["tasks"][task]) for task in tasks),
        ]
        for one in standings
    ]
    return ["model", "mean", *STANDING_HEADINGS, *spent, *tasks], rows
