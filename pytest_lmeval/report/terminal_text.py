"""Format the leaderboard and its changes since the baseline to fit a terminal's width."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_lmeval.report.tables import (
    AS_JSON,
    CHANGES,
    METRICS,
    NOTES,
    OF_CHANGE,
    SCORES,
    TEXT,
    Column,
    Row,
    change_row,
    columns,
    columns_in,
    may_be_line,
    measure_rows,
    overall_row,
    score_rows,
    text_table,
)
from pytest_lmeval.text import printable

if TYPE_CHECKING:
    from pytest_lmeval.leaderboard.board import Leaderboard

_GAP = 2
_NAME = 24
_SHORTEST = 8
_FLIPS = 10
_FLIPS_QUIET = 3
_EXPLAINED = 5


class _Shown(NamedTuple):
    """A column of a table; its heading is the first of its ``texts``."""

    drop: int
    is_text: bool
    texts: list[str]

    @property
    def size(self) -> int:
        return max(map(len, self.texts))

    @property
    def order(self) -> tuple[bool, int]:
        """The sort key for dropping columns: columns without values are dropped first."""
        return any(self.texts[1:]), self.drop


@dataclass(slots=True)
class Screen:
    """A terminal that is ``width`` characters wide; None means that lines may have any length.

    ``cut`` becomes True when the screen drops or shortens something. A ``quiet`` screen shows fewer lines.
    """

    width: int | None = None
    quiet: bool = False
    cut: bool = False

    def table(self, declared: Sequence[Column], rows: Sequence[Row]) -> list[str]:
        """Return a table's lines; if it is too wide, drop columns in the order of ``drop``, then shorten text."""
        titles, cells, texts = text_table(declared, rows)
        lines = columns(titles, cells, texts)
        if self.width is None or max(map(len, lines)) <= self.width:
            return lines
        shown = [
            _Shown(column.drop, place < texts, [title, *(printable(row[place], keep="") for row in cells)])
            for place, (column, title) in enumerate(zip(columns_in(TEXT, declared, rows), titles, strict=True))
        ]
        headings, *fitted = zip(*self._fitted(shown, self.width), strict=True)
        return columns(headings, fitted, sum(each.is_text for each in shown))

    def cells(
        self, headings: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1, drop: Sequence[str] = ()
    ) -> list[str]:
        """Return the lines of a table; the first ``texts`` columns contain text, and the other columns contain numbers.

        If the table is too wide, drop the columns named in ``drop``, in the given order.
        """
        orders = {name: place for place, name in enumerate(drop, start=1)}
        formats = ["text"] * texts + ["raw"] * (len(headings) - texts)
        pairs = zip(headings, formats, strict=True)
        declared = [Column(name, name, format, drop=orders.get(name, 0)) for name, format in pairs]
        return self.table(declared, [dict(zip(headings, row, strict=True)) for row in rows])

    @property
    def most(self) -> int | None:
        """The maximum number of lines for a reason; None means no limit."""
        return None if self.width is None else 1 if self.quiet else 2

    def _fitted(self, shown: list[_Shown], width: int) -> list[list[str]]:
        """Remove columns from ``shown`` until the remaining columns fit, and return those columns' ``texts``."""
        while _width([min(each.size, _NAME) if each.is_text else each.size for each in shown]) > width:
            droppable = [each for each in shown if each.drop or not any(each.texts[1:])]
            if not droppable:
                break
            gone = min(droppable, key=lambda each: each.order)
            self.cut |= any(gone.texts[1:])
            shown.remove(gone)
        sizes = [each.size for each in shown]
        names = [place for place, each in enumerate(shown) if each.is_text]
        while _width(sizes) > width and max(sizes[place] for place in names) > _SHORTEST:
            sizes[max(names, key=sizes.__getitem__)] -= 1
        return [self.names(each.texts, size) for each, size in zip(shown, sizes, strict=True)]

    def names(self, texts: Sequence[str], most: int) -> list[str]:
        """Shorten names to at most ``most`` characters; if possible, different names stay different."""
        if max(map(len, texts)) <= most:
            return [*texts]
        half, all_of_them = most // 2 - 1, len({*texts})
        heads = sorted(range(1, most - 3), key=lambda head: abs(head - half))
        found = ([_without_middle(text, most, head) for text in texts] for head in heads)
        self.cut = True
        return next(
            (names for names in found if len({*names}) == all_of_them), [*map(partial(self.name, most=most), texts)]
        )

    def name(self, text: str, most: int | None) -> str:
        """Cut the middle of a name that is longer than ``most`` characters."""
        if most is None or len(text) <= most:
            return text
        self.cut = True
        return _without_middle(text, most, most // 2 - 1)

    def lines(self, text: str, most: int | None = None) -> list[str]:
        """Wrap a sentence into at most ``most`` lines that fit; indent all lines after the first."""
        if self.width is None or (len(text) <= self.width and text.isprintable()):
            return [text]
        text = printable(text, keep="")
        lead = " " * (len(text) - len(text.lstrip(" ")))
        # Without ``most``, keep a path that is longer than a line whole, so that users can copy it.
        found = wrap(
            text.lstrip(" "),
            self.width,
            initial_indent=lead,
            subsequent_indent=f"{lead}  ",
            break_long_words=most is not None,
            break_on_hyphens=False,
        )
        if most is not None and len(found) > most:
            self.cut = True
            rest = f"{found[most - 1]} {' '.join(map(str.strip, found[most:]))}"
            found = [*found[: most - 1], f"{rest[: self.width - 4].rstrip()} ..."]
        return found


def _without_middle(text: str, most: int, head: int) -> str:
    """Shorten ``text`` to ``most`` characters; keep its first ``head`` characters and its end."""
    return text if len(text) <= most else f"{text[:head]}...{text[len(text) - (most - 3 - head) :]}"


def _width(sizes: Sequence[int]) -> int:
    return sum(sizes) + _GAP * (len(sizes) - 1)


WHOLE = Screen()


def has_interval(lines: Sequence[str]) -> bool:
    """Return True if the table in ``lines`` has a column for the interval of a change or a difference."""
    return f"  {OF_CHANGE.title}" in lines[0]


def terminal_table(board: Leaderboard, screen: Screen = WHOLE) -> list[str]:
    """Return the lines of the table of scores: a row for each task, and a last row for the overall score."""
    tasks = [*map(AS_JSON, board.tasks)]
    overall = overall_row(tasks, board.overall_score, board.overall_ci95)
    return screen.table(SCORES, [*score_rows(tasks, indent="  "), overall])


def measure_lines(board: Leaderboard, screen: Screen) -> list[str]:
    """Return the lines of a table of further group and task metrics, or no lines if there are no such metrics."""
    rows = [*measure_rows(board)] if any(map(NOTES, board.tasks)) else []
    return screen.table(METRICS, rows) if rows else []


def comparison_lines(comparison: Mapping[str, Any] | None, screen: Screen = WHOLE) -> list[str]:
    """Return a table of changes since the baseline and the first worse examples, or no lines without a comparison."""
    if comparison is None:
        return []
    changes = [*comparison["tasks"], comparison["pooled"]]
    lines = screen.table(CHANGES, [*map(change_row, changes)])
    if has_interval(lines) and not screen.quiet:
        lines += screen.lines(may_be_line(comparison))
    lines += _worse_lines(comparison["worse"], screen) if comparison["worse"] else []
    return lines + [
        line
        for task, why in comparison["left_out"].items()
        for line in screen.lines(f"  not compared: {task}: {why}", screen.most)
    ]


def _worse_lines(worse: Sequence[Row], screen: Screen) -> list[str]:
    from pytest_lmeval.report.cells import NO_PROMPTS, changed_cells, changed_prompts, lacks_prompt

    lines, most = [], _FLIPS_QUIET if screen.quiet else _FLIPS
    for place, flip in enumerate(worse[:most]):
        lines += [screen.name(f"  worse: {flip['task']}: {flip['id']}", screen.width)]
        if screen.quiet or place >= _EXPLAINED:
            continue
        texts = changed_cells(flip).lines()
        if "old_prompt" in flip:
            before, now = changed_prompts(flip)
            texts += [*([] if lacks_prompt(flip) else [f"prompt before: {before}"]), f"prompt now: {now}"]
        lines += [line for text in texts for line in screen.lines(f"    {text}", 2)]
    lines += [f"  ... and {len(worse) - most} more"] if len(worse) > most else []
    return lines + (screen.lines(f"  {NO_PROMPTS}") if any(map(lacks_prompt, worse[:most])) else [])
