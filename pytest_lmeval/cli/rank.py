"""``lmeval rank BOARD...``: the leaderboard of several models on the same examples."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_lmeval.arguments import level
from pytest_lmeval.atomic import write_atomically
from pytest_lmeval.cli.output import add_format, add_pair_by, show, show_json
from pytest_lmeval.compare.decision import decision
from pytest_lmeval.compare.entrants import Entrant, by_config, entrants_of
from pytest_lmeval.compare.rank import ALPHA, rank
from pytest_lmeval.errors import UsageError
from pytest_lmeval.records.folders import find_runs
from pytest_lmeval.records.runfile import board_of, examples_of
from pytest_lmeval.report.markdown import table
from pytest_lmeval.report.ranking_text import STANDING_HEADINGS, ranking_remarks, standing_cells
from pytest_lmeval.report.tables import columns, score_text
from pytest_lmeval.report.wording import cost_cell
from pytest_lmeval.text import escape_markdown, printable


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "boards",
        metavar="BOARD",
        nargs="+",
        type=Path,
        help="ledger.jsonl or leaderboard.json files, or folders of them",
    )
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
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="write the page that compares them, example by example"
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
    said = decision({"ranking": ranking, "reason": "", "models": selected})
    if options.html:
        _write_page(options.html, entrants_of(ranked, pair_by), pair_by, options.alpha, is_by_config=is_by_config)
    if options.format == "json":
        show_json({"decision": said, **ranking, "notes": notes})
        return 0
    headings, rows = _table(ranking)
    remarks = [*ranking_remarks(ranking, is_selection=bool(selected)), *notes]
    if options.format == "markdown":
        lines = table([escape_markdown(heading) for heading in headings], rows, texts=1)
        show([f"**{escape_markdown(said)}**", "", *lines, *(f"- {escape_markdown(each)}" for each in remarks)])
    else:
        show([said, "", *columns(headings, rows, texts=1), "", *(printable(each, keep="") for each in remarks)])
    return 0


def _write_page(path: Path, entrants: Sequence[Entrant], pair_by: str, alpha: float, *, is_by_config: bool) -> None:
    """Write the page of a run of several models, made of finished runs."""
    from pytest_lmeval.report.comparison import Compared, compared, render_comparison

    models = [
        Compared(each.name, board_of(each.run), examples_of(each.run), str(each.run.path.parent), suffix)
        for each in entrants
        # The run of a config is named FILE@CONFIG, as its tasks were.
        for suffix in ["".join(each.run.path.name.rpartition("@")[1:]) if is_by_config else ""]
    ]
    comparison = compared(models, 0, path.parent, pair_by=pair_by, alpha=alpha)
    try:
        write_atomically(path, render_comparison(comparison, models).encode("ascii"))
    except OSError as error:
        raise UsageError(f"--html {path}: cannot be written: {error.strerror or error}") from None


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
