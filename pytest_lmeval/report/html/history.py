"""Render the page of a history, without scripts: for each task, a plot of its scores over time and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from string import Template

from pytest_lmeval.compare.history import History, HistoryPoint
from pytest_lmeval.report.html.report import html_table, html_text, part, policy
from pytest_lmeval.report.tables import HISTORY, history_row, interval_text, score_text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 220, 44, 16, 12, 28
_SHAPES = 6
"""The number of different colours and shapes; further models reuse them, and the table names all models."""


def render_history(found: History) -> str:
    """Return the page as the text of one HTML file in ASCII."""
    style = f"\n{part('frame.css')}\n{part('history.css')}"
    body = "".join(_section(task, points) for task, points in found.series.items())
    notes = "".join(f"<li>{html_text(note)}</li>" for note in found.notes)
    models = _models([point for points in found.series.values() for point in points])
    return Template(part("history.html")).substitute(
        policy=policy(style, ""),
        style=style,
        legend="".join(map(_named, models, range(len(models)))),
        notes=f"<ul>{notes}</ul>" if notes else "",
        body=body,
    )


def _models(points: Sequence[HistoryPoint]) -> list[str]:
    return list(dict.fromkeys(point.model for point in points))


def _named(model: str, number: int) -> str:
    mark = (
        f'<svg width="18" height="18" aria-hidden="true"><g class="m{number % _SHAPES}">{_mark(number, 9, 9)}</g></svg>'
    )
    return f"<li>{mark}{html_text(model)}</li>"


def _section(task: str, points: Sequence[HistoryPoint]) -> str:
    table = html_table(HISTORY, [*map(history_row, reversed(points))])
    return f"<section><h2>{html_text(task)}</h2>{_plot(task, points)}<div class=scroller>{table}</div></section>"


def _plot(task: str, points: Sequence[HistoryPoint]) -> str:
    scored = [point for point in points if point.score is not None]
    if not scored:
        return "<p class=note>No run has a score.</p>"
    places = _places(points)
    marks = "".join(_series(scored, places))
    label = f"{task}: {len(scored)} scores from {scored[0].timestamp} to {scored[-1].timestamp}"
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    changes = "".join(_change(places[point.path]) for point in points if point.changed)
    shown = f'<svg class=plot role=img aria-label="{html_text(label)}" {size}>{_axis()}{changes}{marks}</svg>'
    return f"<div class=scroller>{shown}</div>"


def _axis() -> str:
    lines = []
    for value in (0.0, 0.5, 1.0):
        y = _y(value)
        lines.append(f'<line class=grid x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:g}" y2="{y:g}"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:g}" text-anchor="end">{value:g}</text>')
    return "".join(lines)


def _change(x: float) -> str:
    line = f'<line class=changed x1="{x:g}" x2="{x:g}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
    return f'{line}<text class=changed x="{x:g}" y="{_HEIGHT - 8}" text-anchor="middle">suite changed</text>'


def _series(points: Sequence[HistoryPoint], places: dict[str, float]) -> Iterator[str]:
    for number, model in enumerate(_models(points)):
        own = [point for point in points if point.model == model]
        line = " ".join(f"{places[point.path]:g},{_y(point.score or 0.0):g}" for point in own)
        yield f'<g class="m{number % _SHAPES}"><polyline points="{line}"/>'
        for point in own:
            x = places[point.path]
            if point.interval is not None:
                low, high = map(_y, point.interval)
                yield f'<line class=interval x1="{x:g}" x2="{x:g}" y1="{low:g}" y2="{high:g}"/>'
            said = f"{point.timestamp} {point.model}: {score_text(point.score)} ({interval_text(point.interval)})"
            yield f"<g><title>{html_text(said)}</title>{_mark(number, x, _y(point.score or 0.0))}</g>"
        yield "</g>"


def _mark(number: int, x: float, y: float) -> str:
    r = 5
    shapes = (
        f'<circle cx="{x:g}" cy="{y:g}" r="{r}"/>',
        f'<rect x="{x - r:g}" y="{y - r:g}" width="{2 * r}" height="{2 * r}"/>',
        f'<path d="M{x:g} {y - r - 1:g}l{r + 1} {2 * r}h-{2 * r + 2}z"/>',
        f'<path d="M{x:g} {y - r - 2:g}l{r + 2} {r + 2}l-{r + 2} {r + 2}l-{r + 2} -{r + 2}z"/>',
        f'<path d="M{x:g} {y + r + 1:g}l{r + 1} -{2 * r}h-{2 * r + 2}z"/>',
        f'<path d="M{x - r:g} {y:g}h{2 * r}M{x:g} {y - r:g}v{2 * r}" class=cross />',
    )
    return shapes[number % _SHAPES]


def _places(points: Sequence[HistoryPoint]) -> dict[str, float]:
    """Return the place of each run on the time axis; runs with equal times are placed side by side."""
    times = [_seconds(point.timestamp) for point in points]
    inner = _WIDTH - _LEFT - _RIGHT - 40
    first, last = min(times), max(times)
    if last <= first:
        return {point.path: _LEFT + 20 + inner * (number + 0.5) / len(points) for number, point in enumerate(points)}
    return {
        point.path: round(_LEFT + 20 + inner * (time - first) / (last - first), 1)
        for point, time in zip(points, times, strict=True)
    }


def _seconds(timestamp: str) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return 0.0


def _y(score: float) -> float:
    # The plot shows a value below 0 or above 1 at its edge; the table has the value.
    return round(_TOP + (1 - min(1.0, max(0.0, score))) * (_HEIGHT - _TOP - _BOTTOM), 1)
