"""``lmeval rank BOARD...``: rank several models on the same examples."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.arguments import level
from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import add_format, add_pair_by, show, show_json, show_tables, writing
from pytest_lmeval.compare.decision import decision
from pytest_lmeval.compare.entrants import Entrant, by_config, entrants_of
from pytest_lmeval.compare.rank import ALPHA, rank
from pytest_lmeval.records.folders import find_runs
from pytest_lmeval.records.runfile import board_of, examples_of
from pytest_lmeval.report.ranking_text import INTERVAL, ranking_remarks, standing_row
from pytest_lmeval.report.tables import RANKING, Column, Row, table, text_table
from pytest_lmeval.report.terminal_text import Screen, has_interval
from pytest_lmeval.text import escape_markdown


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "boards", metavar="BOARD", nargs="+", type=Path, help="ledger.jsonl or leaderboard.json files, or folders"
    )
    add_pair_by(parser)
    parser.add_argument(
        "--alpha",
        metavar="A",
        type=level,
        default=ALPHA,
        help="chance that one of several equal models is called worse (default 0.05)",
    )
    parser.add_argument(
        "--by",
        choices=("model", "config"),
        default="model",
        help="config: rank variants of tasks, made by a list in --lm-config or by their prompts; examples pair by id",
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write a page that compares the models example by example"
    )
    add_format(parser, "table", "json", "markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the ranking."""
    runs = find_runs(options.boards)
    notes = [f"{run.path}: not complete" for run in runs if not run.complete]
    is_by_config = options.by == "config"
    ranked, pair_by = (by_config(runs), "id") if is_by_config else (runs, options.pair_by or "content")
    found = rank(ranked, pair_by, options.alpha)
    ranking = found.to_json()
    selected = [{"selection": run.selection} for run in ranked if run.selection]
    verdict = decision({"ranking": ranking, "reason": "", "models": selected})
    if options.html:
        _write_page(options.html, entrants_of(ranked, pair_by), pair_by, options.alpha, is_by_config=is_by_config)
    if options.format == "json":
        show_json({"decision": verdict, **ranking, "notes": notes})
        return 0
    remarks = [*ranking_remarks(ranking, is_selection=bool(selected)), *notes]
    if options.format == "markdown":
        headings, rows, texts = text_table(*_declared(ranking))
        lines = table([escape_markdown(heading) for heading in headings], rows, texts)
        show([f"**{escape_markdown(verdict)}**", "", *lines, *(f"- {escape_markdown(each)}" for each in remarks)])
    else:
        show_tables(lambda screen: [*screen.lines(verdict), "", *_fitted(ranking, remarks, screen)])
    return 0


def _write_page(path: Path, entrants: Sequence[Entrant], pair_by: str, alpha: float, *, is_by_config: bool) -> None:
    from pytest_lmeval.report.comparison import Compared, compared
    from pytest_lmeval.report.html.comparison_page import render_comparison

    models = [
        Compared(each.name, board_of(each.run), examples_of(each.run), str(each.run.path.parent), suffix)
        for each in entrants
        # ``by_config`` gives the run of a config the path FILE@CONFIG.
        for suffix in ["".join(each.run.path.name.rpartition("@")[1:]) if is_by_config else ""]
    ]
    comparison = compared(models, 0, path.parent, pair_by=pair_by, alpha=alpha)
    with writing(f"--html {path}"):
        write_atomically(path, render_comparison(comparison, models, path.parent).encode("ascii"))


def _fitted(ranking: Row, remarks: Sequence[str], screen: Screen) -> list[str]:
    lines = screen.table(*_declared(ranking))
    shown = (remark for remark in remarks if remark != INTERVAL or has_interval(lines))
    return [*lines, "", *(line for remark in shown for line in screen.lines(remark))]


def _declared(ranking: Row) -> tuple[Sequence[Column], Sequence[Row]]:
    """Return the ranking's columns and rows; if the ranking covers several tasks, each task has a column."""
    tasks = list(ranking["examples"]) if len(ranking["examples"]) > 1 else []
    of_tasks = [Column(f"task {task}", task, "score", drop=-place) for place, task in enumerate(tasks, start=1)]
    return [*RANKING, *of_tasks], [_row(one) for one in ranking["standings"]]


def _row(standing: Mapping[str, Any]) -> Row:
    cost = standing["cost"]
    return {
        **standing_row(standing),
        "cost": None if cost is None else (cost, standing["cost_is_least"]),
        **{f"task {task}": score for task, score in standing["tasks"].items()},
    }
