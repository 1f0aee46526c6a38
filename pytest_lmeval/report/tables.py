"""Declare the columns of all reports' tables, with their titles, formats and places.

``FORMATS`` formats values for the terminal and Markdown. The HTML page receives columns and rows as JSON;
``html/page/tables.js`` formats their values, using the same format names. To add a column for a value in the rows, add
an entry to a table in this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from enum import Flag, auto
from functools import partial
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.text import escape_markdown, printable

if TYPE_CHECKING:
    from pytest_lmeval.compare.history import Drop, HistoryPoint
    from pytest_lmeval.leaderboard.board import Leaderboard

Row = Mapping[str, Any]
TextTable = tuple[Sequence[str], list[list[str]], int]
_UNCOMPARED = ("task", "verdict", "paired")
NOTES = attrgetter("notes")
AS_JSON = methodcaller("to_json")
_WORDS = {"threshold": "threshold", "min_score": "floor"}
_CUT = "\n\n(cut here; the rest is in the report's files)\n"


class Place(Flag):
    """The places that may show a column; ``TEXT`` covers terminal and Markdown output, ``PAGE`` the HTML page."""

    TEXT = auto()
    PAGE = auto()


TEXT, PAGE = Place.TEXT, Place.PAGE


class Column(NamedTuple):
    """A column of a table; ``name`` is the key of its value in each row, and ``format`` is a key of ``FORMATS``.

    The places in ``if_any`` omit the column if no row has a value. ``on_page`` is the column's title on the HTML page
    if it differs from ``title``, and ``hint`` explains the column on the page. A narrow terminal first drops the
    columns with the lowest ``drop``, but keeps columns whose ``drop`` is 0.
    """

    name: str
    title: str
    format: str = "text"
    where: Place = TEXT | PAGE
    if_any: Place = Place(0)
    on_page: str = ""
    hint: str = ""
    drop: int = 0


def score_text(score: float | int | None) -> str:
    """Return a score with four decimals, or a dash for None."""
    return "-" if score is None else f"{score:.4f}"


def interval_text(interval: Sequence[float] | None, *, sign: bool = False) -> str:
    """Return ``low to high`` with three decimals, or a dash for None."""
    if interval is None:
        return "-"
    low, high = (f"{end:+.3f}" if sign else f"{end:.3f}" for end in interval)
    return f"{low} to {high}"


def percent(share: float | None) -> str:
    """Return a share as a percentage with one decimal, or a dash for None."""
    return "-" if share is None else f"{100 * share:.1f} %"


def signed(change: float | None) -> str:
    """Return a change with its sign and four decimals, or a dash for None."""
    return "-" if change is None else f"{change:+.4f}"


def _cost(spent: tuple[float, bool] | None) -> str:
    """Return a cost, preceded by ``>=`` if some answers do not report their costs."""
    return "-" if spent is None else f"{'>= ' if spent[1] else ''}{spent[0]:.4g}"


def _digits(number: float | None, digits: int) -> str:
    return "-" if number is None else f"{number:.{digits}g}"


FORMATS: Mapping[str, Callable[[Any], str]] = {
    "text": str,
    "raw": str,
    "count": str,
    "some": lambda count: str(count or ""),
    "score": score_text,
    "interval": interval_text,
    "change": signed,
    "change interval": partial(interval_text, sign=True),
    "p": partial(_digits, digits=3),
    "short p": partial(_digits, digits=2),
    "share": percent,
    "ms": lambda ms: "" if ms is None else f"{ms:.1f}",
    "duration": partial(_digits, digits=4),
    "cost": _cost,
}
"""The function that formats a value, by the name of the format.

Cells with the format "text" are left-aligned, and all other cells are right-aligned. Only the HTML page has plots.
"""

_SURE = "Confidence interval of the {}. It excludes 0 exactly if {}."
_CHANGE_HINT = _SURE.format("change", "the test finds a regression or an improvement")
_DIFFERENCE_HINT = _SURE.format("difference", "the difference is significant")
_TASK, _MODEL = Column("task", "task"), Column("model", "model")
_SCORE, _INTERVAL = Column("score", "score", "score"), Column("ci95", "95 % interval", "interval", drop=6)
_OLD, _NEW = Column("old", "old", "score"), Column("new", "new", "score")
_CHANGE = Column("change", "change", "change")
OF_CHANGE = Column("interval", "interval", "change interval", drop=5)
_VERDICT = Column("verdict", "verdict")
_WORSE, _BETTER = Column("worse", "worse", "count"), Column("better", "better", "count")
_STANDING = (
    _INTERVAL,
    Column("scored", "scored", "count", drop=3),
    Column("difference", "plot of the difference", "plot", PAGE, PAGE),
    Column("win_rate", "win rate", "share", TEXT, drop=1),
    Column("difference", "to the best", "change", if_any=PAGE),
    Column("difference_ci95", "interval", "change interval", TEXT | PAGE, PAGE, "Its interval", _DIFFERENCE_HINT, 2),
    Column("p_adjusted", "p", "short p", if_any=PAGE, on_page="p, adjusted", drop=8),
)
_P95 = Column("p95_ms", "p95 ms", "duration", on_page="p95", drop=7)
_COST = Column("cost", "cost", "cost", drop=9)

SCORES = (
    _TASK,
    Column("metric", "metric", where=TEXT, drop=3),
    Column("score", "plot", "plot", PAGE),
    *(_SCORE, _INTERVAL),
    Column("change", "change", "change", PAGE, PAGE),
    Column("interval", "interval", "change interval", PAGE, PAGE, hint=_CHANGE_HINT),
    Column("p_adjusted", "p", "p", PAGE, PAGE, "p, adjusted"),
    Column("correct", "correct", "raw"),
    Column("errors", "errors", "raw"),
    Column("unparsed", "unparsed", "some", TEXT, drop=2),
    Column("latency_ms", "ms", "ms", TEXT, drop=1),
)
CHANGES = (
    Column("task", "against the baseline"),
    _VERDICT,
    *(Column("old", "was", "score", drop=8), Column("new", "is", "score", drop=4), _CHANGE, OF_CHANGE),
    Column("p_adjusted", "p adjusted", "p", drop=7),
    *(_WORSE, _BETTER),
)
DIFFERENCE = (
    *(_TASK, _VERDICT),
    Column("paired", "examples", "count", drop=3),
    *(_OLD._replace(drop=8), _NEW._replace(drop=4), _CHANGE, OF_CHANGE),
    Column("p_adjusted", "p", "p", drop=7),
    *(_WORSE, _BETTER),
)
SCORE_CHANGES = (_TASK, _OLD, _NEW, _CHANGE)
MODELS = (
    Column("label", "model"),
    *(_VERDICT._replace(where=TEXT), _SCORE, *_STANDING),
    *(_WORSE._replace(where=PAGE), _BETTER._replace(where=PAGE), _P95, _COST),
)
RANKING = (
    Column("name", "model"),
    Column("score", "mean", "score"),
    *(*_STANDING, _P95._replace(if_any=TEXT), _COST._replace(if_any=TEXT)),
)
METRICS = (
    Column("name", "group or task"),
    Column("metric", "metric"),
    Column("value", "value", "score"),
    Column("stderr", "standard error", "score", drop=2),
    Column("n", "documents", "count", drop=1),
)
CATEGORIES = (
    Column("category", "category"),
    Column("score", "plot", "plot", PAGE),
    *(_SCORE, Column("total", "examples", "count")),
)
HISTORY = (
    Column("timestamp", "run"),
    *(_MODEL, _SCORE, _INTERVAL),
    Column("examples", "examples", "count"),
    Column("note", "note", "raw"),
)


def text_table(columns: Sequence[Column], rows: Sequence[Row]) -> TextTable:
    """Return a table's headings, the cells of each row, and the number of text columns (which come first).

    A cell is empty if the row has no value for its column.
    """
    names, titles, formats, *_ = zip(*columns_in(TEXT, columns, rows), strict=True)
    show = [*zip(names, map(FORMATS.__getitem__, formats), strict=True)]
    cells = [[text(row[name]) if name in row else "" for name, text in show] for row in rows]
    return titles, cells, formats.count("text")


def page_columns(columns: Sequence[Column], rows: Sequence[Row]) -> list[dict[str, str]]:
    """Return the columns that the HTML page shows, as JSON values."""
    return [
        {"name": each.name, "title": each.on_page or each.title.capitalize(), "format": each.format, "hint": each.hint}
        for each in columns_in(PAGE, columns, rows)
    ]


def columns_in(place: Place, columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Return the columns that ``place`` shows for these ``rows``."""
    return [
        each
        for each in columns
        if place in each.where and (place not in each.if_any or any(row.get(each.name) is not None for row in rows))
    ]


def score_rows(tasks: Iterable[Row], indent: str = "") -> Iterator[Row]:
    """Yield a row for each task, followed by a row for each of the task's named scores."""
    for row in tasks:
        held = row["total"] - row.get("quarantined", 0)
        late = f"{row['timeouts']} timed out" if row["timeouts"] else ""
        yield {
            **row,
            "correct": f"-/{row['total']}" if row.get("measured") else f"{row['correct']}/{held}",
            "errors": " + ".join(filter(None, (str(row["errors"] or ""), late))),
        }
        for name, score in row.get("scores", {}).items():
            shown = {"task": f"{indent}{row['task']}.{name}", "metric": _score_facts(score)}
            floor = None if score.get("decides") else score.get("min_score")
            yield {**shown, "score": score["score"], "ci95": score["ci95"], "min_score": floor}


def _score_facts(score: Mapping[str, Any]) -> str:
    """Describe a named score: whether it decides, its number of examples, its threshold and its floor."""
    own = () if score.get("decides") else ("threshold", "min_score")
    named = [f"{_WORDS[name]} {score[name]:.4g}" for name in own if score.get(name) is not None]
    missing = [f"{score['missing']} missing"] if score["missing"] else []
    decides = ["decides"] if score.get("decides") else []
    return ", ".join([*decides, f"n {score['n']}", *missing, *named])


def measure_rows(board: Leaderboard) -> Iterator[Row]:
    """Yield rows for group metrics, and for task metrics that are None, not in [0, 1], or better when lower."""
    from pytest_lmeval.leaderboard.groups import MEASURES, shown

    for name, group in board.groups().items():
        for metric, score in group["metrics"].items():
            yield _measure_row(name, shown(metric), score["value"], score)
    for row in board.tasks:
        for metric, note in row.notes.get(MEASURES, {}).items():
            value = row.metrics.get(shown(metric))
            if not note["higher_is_better"] or value is None or not 0.0 <= value <= 1.0:
                yield _measure_row(row.task, shown(metric), value, note)


def _measure_row(name: str, metric: str, value: float | None, note: Mapping[str, Any]) -> Row:
    arrow = "" if note["higher_is_better"] else " ↓"
    return {"name": name, "metric": f"{metric}{arrow}", "value": value, "stderr": note["stderr"], "n": note["n"]}


def overall_row(tasks: Sequence[Row], score: float | None, interval: Sequence[float] | None) -> Row:
    """Return the last row of the table of scores, for the overall score."""
    judged = [row for row in tasks if not row.get("measured")]
    sums = sum(row["correct"] for row in judged), sum(row["total"] - row.get("quarantined", 0) for row in judged)
    correct = "-" if tasks and not judged else "{}/{}".format(*sums)
    return {"task": "overall", "score": score, "correct": correct, **({"ci95": interval} if interval else {})}


def may_be_line(comparison: Mapping[str, Any]) -> str:
    """Return a line that explains the "interval" column of a comparison."""
    criteria = {"alpha": 0.05, **comparison.get("criteria", {})}
    models = criteria.get("models", 1)
    shared = f" of the run, shared by {models} models" if models > 1 else ""
    return (
        "interval: confidence interval of the change; it excludes 0 exactly if the test finds a regression or an "
        f"improvement (alpha {100 * criteria['alpha']:g} %{shared})"
    )


def head(text: str | None, most: int) -> str:
    """Return ``text`` on one line; if it is longer than ``most`` characters, keep its beginning and add ``...``."""
    flat = " ".join((text or "").split())
    return flat if len(flat) <= most else f"{flat[:most]}..."


def tail(text: str, most: int) -> str:
    """Return ``text`` on one line; if it is longer than ``most`` characters, keep its end and put ``...`` in front."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"...{flat[-most:]}"


def change_row(change: Row) -> Row:
    """Return the table row for a task's change since the baseline."""
    if change["verdict"] == "uncompared":
        return {name: change[name] for name in _UNCOMPARED if name in change}
    return {"interval": None, **change}


def history_row(point: HistoryPoint) -> Row:
    """Return the table row for one run in a history."""
    notes = [*(["the suite changed"] if point.changed else []), *point.notes]
    if point.drop is not None:
        notes.append(drop_text(point.drop, "the run before"))
    interval = {"ci95": point.interval} if point.interval else {}
    return {**asdict(point), **interval, "note": ", ".join(notes)}


def drop_text(drop: Drop, since: str) -> str:
    """Describe the size of a drop in a history and its p-value."""
    p = "p < 0.001" if drop.p < 0.001 else f"p {drop.p:.2g}"
    return f"fell by {-100 * drop.change:.1f} points since {since} ({p})"


def cut_to(text: str, size: int) -> str:
    """Return the lines of ``text`` that fit into ``size`` bytes of UTF-8; add a note if some lines do not fit."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= size:
        return text
    if size < len(_CUT):
        return ""
    kept = data[: size - len(_CUT)].rpartition(b"\n")[0]
    return kept.decode("utf-8", "ignore") + _CUT


def columns(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int) -> list[str]:
    """Return the lines of a table; all columns after the first ``texts`` are right-aligned."""
    shown = [headings, *[[printable(cell, keep="", folds=False) for cell in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    pads = [str.ljust] * texts + [str.rjust] * (len(headings) - texts)
    return [
        "  ".join(pad(cell, width) for pad, cell, width in zip(pads, row, widths, strict=True)).rstrip()
        for row in shown
    ]


def table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], texts: int, *, bold: Collection[tuple[int, int]] = ()
) -> list[str]:
    """Return a Markdown table and an empty line; all columns after the first ``texts`` are right-aligned.

    ``bold`` holds the row and column numbers of the cells to print in bold.
    """
    rules = ["---"] * texts + ["---:"] * (len(headings) - texts)
    shown = [[escape_markdown(cell) for cell in row] for row in rows]
    for row, column in bold:
        shown[row][column] = f"**{shown[row][column]}**"
    return [*(f"| {' | '.join(row)} |" for row in (headings, rules, *shown)), ""]


def folded(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], more: int) -> list[str]:
    """Return a folded table; ``more`` is the number of rows that the table omits."""
    left = [f"... and {more} more", ""] if more > 0 else []
    shown = table(headings, rows, texts=len(headings)) if rows else []
    return [f"<details><summary>{title}</summary>", "", *shown, *left, "</details>", ""]


def listed(entries: Sequence[str], most: int | None = None) -> list[str]:
    """Return the first ``most`` entries as a Markdown list that ends with the number of omitted entries."""
    shown = [f"- {escape_markdown(entry)}" for entry in entries[:most]]
    more = [f"- ... and {len(entries) - len(shown)} more"] if len(entries) > len(shown) else []
    return [*shown, *more, ""] if shown else []
