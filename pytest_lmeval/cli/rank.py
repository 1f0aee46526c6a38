"""``lmeval rank BOARD...``: the leaderboard of several models on the same examples."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pytest_lmeval.arguments import level
from pytest_lmeval.cli.output import add_format, add_pair_by, show, show_json
from pytest_lmeval.compare.entrants import by_config
from pytest_lmeval.compare.rank import ALPHA, Ranking, Standing, rank
from pytest_lmeval.records.runfile import RunFile, read_run
from pytest_lmeval.report.markdown import escape, table
from pytest_lmeval.report.ranking_text import ranking_remarks
from pytest_lmeval.report.tables import columns, interval_text, percent, score_text, signed
from pytest_lmeval.report.wording import cost_cell
from pytest_lmeval.text import printable


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
        help="config: rank the variants of each task that a list in --lm-config made; their examples pair by id",
    )
    add_format(parser, "table", "json", "markdown")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the ranking."""
    runs = [read_run(path) for path in options.boards]
    notes = _notes(runs)
    is_by_config = options.by == "config"
    ranked, pair_by = (by_config(runs), "id") if is_by_config else (runs, options.pair_by or "content")
    ranking = rank(ranked, pair_by, options.alpha)
    if options.format == "json":
        show_json({**ranking.to_json(), "notes": notes})
    elif options.format == "markdown":
        show(_markdown(ranking, notes))
    else:
        show(_lines(ranking, notes))
    return 0


def _lines(ranking: Ranking, notes: Sequence[str]) -> list[str]:
    lines = columns(_headings(ranking), _rows(ranking), texts=1)
    return [*lines, "", *(printable(remark, keep="") for remark in _remarks(ranking, notes))]


def _markdown(ranking: Ranking, notes: Sequence[str]) -> list[str]:
    headings = [escape(heading) for heading in _headings(ranking)]
    return [*table(headings, _rows(ranking), texts=1), *(f"- {escape(remark)}" for remark in _remarks(ranking, notes))]


def _headings(ranking: Ranking) -> list[str]:
    tasks = list(ranking.examples) if len(ranking.examples) > 1 else []
    return [
        "model",
        "mean",
        "95 % interval",
        "scored",
        "win rate",
        "to the best",
        "interval",
        "p",
        *_spent(ranking),
        *tasks,
    ]


def _rows(ranking: Ranking) -> list[list[str]]:
    return [_row(standing, ranking) for standing in ranking.standings]


def _spent(ranking: Ranking) -> dict[str, str]:
    """Return the headings of what some model is known to have taken, with the names of the fields."""
    known = {"p95 ms": "p95_ms", "cost": "cost"}
    return {
        head: name for head, name in known.items() if any(getattr(one, name) is not None for one in ranking.standings)
    }


def _amount(standing: Standing, name: str) -> str:
    return cost_cell(getattr(standing, name), is_least=name == "cost" and standing.cost_is_least)


def _row(standing: Standing, ranking: Ranking) -> list[str]:
    has_tasks = len(ranking.examples) > 1
    return [
        standing.name,
        score_text(standing.score),
        interval_text(standing.ci95),
        str(standing.scored),
        percent(standing.win_rate),
        signed(standing.difference),
        interval_text(standing.difference_ci95, sign=True),
        "-" if standing.difference is None else f"{standing.p_adjusted:.2g}",
        *(_amount(standing, name) for name in _spent(ranking).values()),
        *([score_text(score) for score in standing.tasks.values()] if has_tasks else []),
    ]


def _remarks(ranking: Ranking, notes: Sequence[str]) -> list[str]:
    return [*ranking_remarks(ranking.to_json()), *notes]


def _notes(runs: Sequence[RunFile]) -> list[str]:
    return [f"{run.path}: not complete" for run in runs if not run.complete]
