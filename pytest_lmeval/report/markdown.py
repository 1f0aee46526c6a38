"""Format the leaderboard as Markdown for a pull request: the verdict, the changes and the scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_lmeval.leaderboard.board import Leaderboard, failures_of
from pytest_lmeval.report.tables import (
    AS_JSON,
    CATEGORIES,
    CHANGES,
    METRICS,
    NOTES,
    SCORES,
    change_row,
    cut_to,
    listed,
    may_be_line,
    measure_rows,
    score_rows,
    score_text,
    table,
    text_table,
)
from pytest_lmeval.report.wording import (
    baseline_line,
    ini_line,
    is_off,
    off_line,
    remark_lines,
    resume_line,
    selection_text,
    totals_line,
)
from pytest_lmeval.text import escape_markdown

COMMENT_BYTES = 60_000
"""The maximum size of a comment in bytes; GitHub allows 65,536 characters, and a workflow may add some."""
_REASONS = 20
_REPEATED = re.compile(r"(pass[@^]|maj@)(\d+)")
_VERDICTS = {
    "pass": "passed",
    "new": "new baseline",
    "inconclusive": "passed, but inconclusive",
    "examples": "failed: examples below their threshold",
    "floor": "failed: below the floor",
    "limit": "failed: over a limit",
    "must_pass": "failed: an example that must pass does not",
    "regression": "failed: a regression",
    "stale": "failed: the baseline is stale",
    "incomplete": "failed: the run is incomplete",
}


def markdown(board: Leaderboard) -> str:
    """Return the leaderboard as Markdown of at most COMMENT_BYTES bytes."""
    facts = board.facts
    gate = facts.gate or {}
    lines = [f"# {_title(gate)}: {escape_markdown(facts.adapter)}", "", _headline(board), ""]
    lines += listed(gate.get("reasons", ()), _REASONS)
    lines += [f"{escape_markdown(off_line(gate, facts.manifest))}", ""] if is_off(gate) else []
    lines += [escape_markdown(line), ""] if (line := ini_line(gate, facts.manifest)) else []
    lines += [escape_markdown(compared), ""] if (compared := baseline_line(gate)) else []
    lines += listed([f"Doubtful: {warning}" for warning in gate.get("warnings", ())], _REASONS)
    if failed := failures_of(board):
        from pytest_lmeval.report.example_tables import failed_table

        lines += failed_table(failed)
    lines += _comparison(gate.get("comparison"))
    lines += table(*text_table(SCORES, [*score_rows(map(AS_JSON, board.tasks))]))
    if any(map(NOTES, board.tasks)) and (measures := [*measure_rows(board)]):
        lines += table(*text_table(METRICS, measures))
    lines += listed(remark_lines(board), _REASONS)
    if categories := [{"category": name, **entry} for name, entry in board.categories.items()]:
        lines += table(*text_table(CATEGORIES, categories))
    lines += _repeats(board)
    if facts.bad_records:
        lines += ["Left out as bad records:", "", *listed(facts.bad_records, _REASONS)]
    lines += [line, ""] if (line := escape_markdown(resume_line(board))) else []
    lines += [line, ""] if (line := escape_markdown(totals_line(board))) else []
    lines += [f"digest `{board.digest}` · {escape_markdown(facts.timestamp)}", ""]
    return cut_to("\n".join(lines), COMMENT_BYTES)


def _title(gate: Mapping[str, Any]) -> str:
    if is_off(gate):
        return "Evals not gated"
    return f"Evals {_VERDICTS[gate['verdict']]}" if gate else "Leaderboard"


def _headline(board: Leaderboard) -> str:
    scored = f"{board.counts['scored']} of {board.counts['collected']} examples scored"
    left_out = escape_markdown(selection_text(board))
    scored = f"{scored}; {left_out}" if left_out else scored
    if board.complete and "shard" in board.facts.selection:
        shard = escape_markdown(str(board.facts.selection["shard"]))
        return f"**Shard {shard}**: {scored}; the merged shards have an overall score."
    if not board.complete:
        return f"**Incomplete**: {scored}; there is no overall score."
    return f"**Overall {score_text(board.overall_score)}**: {scored}."


def _comparison(comparison: Mapping[str, Any] | None) -> list[str]:
    if comparison is None:
        return []
    changes = [*comparison["tasks"], comparison["pooled"]]
    lines = table(*text_table(CHANGES, [*map(change_row, changes)]))
    lines += listed([may_be_line(comparison)], 1)
    if comparison["worse"] or comparison["better"]:
        from pytest_lmeval.report.example_tables import flip_table

        lines += flip_table("Passed before, and not now", comparison["worse"])
        lines += flip_table("Passes now, and did not before", comparison["better"])
    return lines + listed([f"not compared: {name}: {why}" for name, why in comparison["left_out"].items()], _REASONS)


def _repeats(board: Leaderboard) -> list[str]:
    repeated = [row for row in board.tasks if row.repeats]
    kinds = {name: match for row in repeated for name in row.metrics if (match := _REPEATED.fullmatch(name))}
    names = sorted(kinds, key=lambda name: (kinds[name][1], int(kinds[name][2])))
    rows = [
        [row.task, str(row.repeats["count"]), str(row.repeats.get("differ", ""))]
        + [score_text(row.metrics.get(name)) for name in names]
        for row in repeated
    ]
    return table(("task", "asked", "differ", *names), rows, texts=1) if rows else []
