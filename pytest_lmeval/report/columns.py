"""A table of text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_lmeval.text import printable


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> list[str]:
    """Return the lines of a table; the first ``texts`` columns are text, the others numbers on the right."""
    shown = [headings, *[[printable(cell, keep="") for cell in row] for row in rows]]
    widths = [max(len(row[column]) for row in shown) for column in range(len(headings))]
    return [_line(row, widths, texts) for row in shown]


def interval_text(interval: Sequence[float] | None, *, sign: bool = False) -> str:
    """Return ``low to high`` with three digits, or a dash where there is no interval."""
    if interval is None:
        return "-"
    low, high = (f"{end:+.3f}" if sign else f"{end:.3f}" for end in interval)
    return f"{low} to {high}"


def percent(share: float | None) -> str:
    """Return a share in percent with one digit, or a dash where there is none."""
    return "-" if share is None else f"{100 * share:.1f} %"


def signed(change: float | None) -> str:
    """Return a change with its sign and four digits, or a dash where there is none."""
    return "-" if change is None else f"{change:+.4f}"


def _line(cells: Sequence[str], widths: Sequence[int], texts: int) -> str:
    padded = [
        cell.ljust(width) if column < texts else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()
