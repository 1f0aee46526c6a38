"""The board for people: a Markdown file and a terminal table of the same columns."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.leaderboard.board import Leaderboard
from pytest_lmeval.leaderboard.rows import TaskRow
from pytest_lmeval.text import printable

__all__ = ["markdown", "score_text", "selection_text", "terminal_table"]

_HEADINGS = ("task", "metric", "score", "95 % interval", "correct", "errors", "unparsed", "ms")


def markdown(board: Leaderboard) -> str:
    """Return the board as Markdown: verdict first, then one row a task."""
    facts = board.facts
    lines = [f"# Leaderboard: {_escape(facts.adapter)}", "", _headline(board), ""]
    lines += [_markdown_row(_HEADINGS), _markdown_row(["---", "---", *["---:"] * (len(_HEADINGS) - 2)])]
    lines += [_markdown_row([_escape(cell) for cell in _cells(row)]) for row in board.tasks]
    if board.categories:
        lines += ["", "| category | score | examples |", "| --- | ---: | ---: |"]
        for name, entry in board.categories.items():
            lines.append(f"| {_escape(name)} | {score_text(entry['score'])} | {entry['total']} |")
    if board.facts.bad_records:
        lines += ["", "Left out as bad records:", ""]
        lines += [f"- {_escape(record)}" for record in board.facts.bad_records]
    lines += _reasons(board)
    lines += ["", f"digest `{board.digest}` · {facts.timestamp}", ""]
    return "\n".join(lines)


def terminal_table(board: Leaderboard) -> list[str]:
    """Return the lines of a table with one row a task and the overall score last."""
    rows = [_HEADINGS, *[_cells(row) for row in board.tasks]]
    rows.append(("overall", "", score_text(board.overall_score), "", _correct(board.tasks), "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return [_aligned(row, widths) for row in rows]


def selection_text(board: Leaderboard) -> str:
    """Return how many of the tasks' examples were selected, where it was not all of them."""
    counts = board.facts.selection.get("tasks", {}).values()
    if not counts:
        return ""
    selected, available = (sum(count[key] or 0 for count in counts) for key in ("selected", "available"))
    return f"a selection: {selected} of {available} examples of the task files"


def score_text(score: float | int | None) -> str:
    """Return a score with four digits, or a dash where there is none."""
    return "-" if score is None else f"{score:.4f}"


def _cells(row: TaskRow) -> tuple[str, ...]:
    ci95 = "-" if row.ci95 is None else f"{row.ci95[0]:.3f} to {row.ci95[1]:.3f}"
    return (
        printable(row.task, keep=""),
        printable(row.metric, keep=""),
        score_text(row.score),
        ci95,
        f"{row.correct}/{row.total}",
        str(row.errors + row.timeouts) if row.errors + row.timeouts else "",
        str(row.unparsed) if row.unparsed else "",
        "" if row.latency_ms is None else f"{row.latency_ms:.1f}",
    )


def _headline(board: Leaderboard) -> str:
    scored = f"{board.counts['scored']} of {board.counts['collected']} examples scored"
    left_out = selection_text(board)
    scored = f"{scored}; {left_out}" if left_out else scored
    if not board.complete:
        return f"**Incomplete**: {scored}; there is no overall score."
    return f"**Overall {score_text(board.overall_score)}**: {scored}."


def _reasons(board: Leaderboard) -> list[str]:
    gate = board.facts.gate or {}
    reasons = [f"- {_escape(reason)}" for reason in gate.get("reasons", ())]
    return ["", f"Gate `{gate['mode']}`: **{gate['verdict']}**", "", *reasons] if gate else []


def _correct(rows: Sequence[TaskRow]) -> str:
    return f"{sum(row.correct for row in rows)}/{sum(row.total for row in rows)}"


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        cell.ljust(width) if column < 2 else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(parts).rstrip()


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _escape(text: str) -> str:
    # Names come from files and adapters: none may open a cell, a tag or a link of its own.
    flat = " ".join(text.split())
    for char in "\\`*_[]<>|":
        flat = flat.replace(char, f"\\{char}" if char != "<" else "&lt;")
    return flat
