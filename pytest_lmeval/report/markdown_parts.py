"""Tables and lists in Markdown, with all texts escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pytest_lmeval.text import escape_markdown


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, bold: Collection[tuple[int, int]] = ()
) -> list[str]:
    """Return a Markdown table and an empty line; the first ``texts`` columns contain text, the others numbers.

    ``bold`` has the row and the column of each cell in bold type.
    """
    rules = ["---"] * texts + ["---:"] * (len(headings) - texts)
    shown = [[escape_markdown(cell) for cell in row] for row in rows]
    for row, column in bold:
        shown[row][column] = f"**{shown[row][column]}**"
    return [*(f"| {' | '.join(row)} |" for row in (headings, rules, *shown)), ""]


def folded(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> list[str]:
    """Return a folded table; ``more`` is the number of further rows, which it does not have."""
    left = [f"... and {more} more", ""] if more > 0 else []
    shown = table(headings, rows, texts=len(headings)) if rows else []
    return [f"<details><summary>{title}</summary>", "", *shown, *left, "</details>", ""]


def listed(entries: Sequence[str], most: int | None = None) -> list[str]:
    """Return a list in Markdown and an empty line: the first ``most`` entries, and the number of further entries."""
    shown = [f"- {escape_markdown(entry)}" for entry in entries[:most]]
    more = [f"- ... and {len(entries) - len(shown)} more"] if len(entries) > len(shown) else []
    return [*shown, *more, ""] if shown else []
