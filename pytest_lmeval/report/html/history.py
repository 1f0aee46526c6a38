"""Render a history's page without scripts: for each task, a table and a plot of scores over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from string import Template

from pytest_lmeval.compare.history import History, HistoryPoint
from pytest_lmeval.report.html.embedded import link
from pytest_lmeval.report.html.report import html_table, html_text, part, policy
from pytest_lmeval.report.tables import HISTORY, drop_text, history_row, interval_text, score_text

_HEIGHT, _TOP, _BOTTOM = 240, 24, 34
_EDGES = (6.0, 97.0)
"""The positions of the first and last runs, as percentages of the width."""
_ROOM = 16.0
"""The minimum distance between two labels, as a percentage of the width; a label on a phone is that wide."""
_SHAPES = 6
"""The number of different colours and shapes; further models reuse them, but the table names every model."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CHANCE = (
    "A triangle marks a score that fell since the model's run before: the gate's test compared the examples that both "
    "runs have. Even if nothing changes, one comparison of two runs in twenty gets a mark by chance."
)
_Places = Mapping[str, float]


def render_history(found: History, folder: Path = Path()) -> str:
    """Return the page as one ASCII HTML file; its links to runs' pages are relative to ``folder``."""
    style = f"\n{part('frame.css')}\n{part('history.css')}"
    body = "".join(_section(task, points, folder) for task, points in found.series.items())
    points = [point for points in found.series.values() for point in points]
    notes = [*([_CHANCE] if any(point.drop for point in points) else []), *found.notes]
    models = _models(points)
    return Template(part("history.html")).substitute(
        policy=policy(style, ""),
        style=style,
        legend="".join(map(_named, models, range(len(models)))),
        notes="".join(f"<p class=note>{html_text(note)}</p>" for note in notes),
        body=body,
    )


def _models(points: Sequence[HistoryPoint]) -> list[str]:
    return list(dict.fromkeys(point.model for point in points))


def _named(model: str, number: int) -> str:
    mark = f'<svg width="18" height="18" aria-hidden="true"><g class="m{number % _SHAPES}" transform="translate(9,9)">'
    return f"<li>{mark}{_mark(number)}</g></svg>{html_text(model)}</li>"


def _section(task: str, points: Sequence[HistoryPoint], folder: Path) -> str:
    newest = [*reversed(points)]
    table = html_table(HISTORY, [*map(history_row, newest)], [_run(point, folder) for point in newest])
    name = f'role="region" aria-label="{html_text(task)}: table of runs" tabindex="0"'
    runs = f"{len(points)} run{'' if len(points) == 1 else 's'} as a table, the newest first"
    folded = f"<details class=fold><summary>{runs}</summary><div class=scroller {name}>{table}</div></details>"
    return f"<section><h2>{html_text(task)}</h2>{_plot(task, points)}{_drops(points, folder)}{folded}</section>"


def _run(point: HistoryPoint, folder: Path) -> str:
    """Return a run's time as HTML; link it to the run's page if there is one."""
    page = Path(point.path).with_name("report.html")
    when = html_text(_shown(point.timestamp))
    address = link(page, folder) if page.is_file() else ""
    return f'<a href="{html_text(address)}">{when}</a>' if address else when


def _drops(points: Sequence[HistoryPoint], folder: Path) -> str:
    lines = [
        f"<li>{_run(point, folder)}: {html_text(f'{point.model} {drop_text(drop, _shown(drop.since))}')}</li>"
        for point in reversed(points)
        if (drop := point.drop) is not None
    ]
    return f"<ul class=drops>{''.join(lines)}</ul>" if lines else ""


def _plot(task: str, points: Sequence[HistoryPoint]) -> str:
    scored = [point for point in points if point.score is not None]
    if not scored:
        return "<p class=note>No run has a score.</p>"
    places = _places(points)
    first, last = _shown(scored[0].timestamp), _shown(scored[-1].timestamp)
    drops = sum(point.drop is not None for point in scored)
    label = f"{task}: {len(scored)} scores from {first} to {last}, {drops} marked drops"
    shown = "".join([_axis(), _dates(points, places), *_changes(points, places), *_series(scored, places)])
    return f'<svg class=plot role=img aria-label="{html_text(label)}" width="100%" height="{_HEIGHT}">{shown}</svg>'


def _axis() -> str:
    lines = []
    for value in (0.0, 0.5, 1.0):
        y = _y(value)
        lines.append(f'<line class=grid x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>')
        lines.append(f'<text x="0" y="{y - 4:g}">{value:g}</text>')
    return "".join(lines)


def _dates(points: Sequence[HistoryPoint], places: _Places) -> str:
    """Return as many run dates as fit below the plot."""
    shown, room = [], -_ROOM
    dates = {places[point.path]: _time(point.timestamp) for point in points}
    years = {date.year for date in dates.values() if date}
    for x, date in sorted(dates.items()):
        if date is None or x - room < _ROOM:
            continue
        room = x
        text = f"{date.day} {_MONTHS[date.month - 1]}" if len(years) == 1 else f"{_MONTHS[date.month - 1]} {date.year}"
        shown.append(f'<text x="{x:g}%" y="{_HEIGHT - 10}" text-anchor="{_anchor(x, 10)}">{text}</text>')
    return "".join(shown)


def _anchor(x: float, edge: float) -> str:
    return "start" if x < edge else "end" if x > 100 - edge else "middle"


def _changes(points: Sequence[HistoryPoint], places: _Places) -> Iterator[str]:
    """Yield a line for each change to the suite, and a label if there is room."""
    room = -_ROOM
    for x in dict.fromkeys(places[point.path] for point in points if point.changed):
        yield f'<line class=changed x1="{x:g}%" x2="{x:g}%" y1="{_TOP - 6}" y2="{_y(0.0):g}"/>'
        if x - room >= 2 * _ROOM:
            room = x
            yield f'<text class=changed x="{x:g}%" y="{_TOP - 10}" text-anchor="{_anchor(x, 20)}">suite changed</text>'


def _series(points: Sequence[HistoryPoint], places: _Places) -> Iterator[str]:
    for number, model in enumerate(_models(points)):
        own = [(places[point.path], _y(point.score or 0.0), point) for point in points if point.model == model]
        yield f'<g class="m{number % _SHAPES}">'
        for (x, y, _), (end, to, _) in pairwise(own):
            yield f'<line class=step x1="{x:g}%" y1="{y:g}" x2="{end:g}%" y2="{to:g}"/>'
        for x, y, point in own:
            if point.interval is not None:
                low, high = map(_y, point.interval)
                yield f'<line class=interval x1="{x:g}%" x2="{x:g}%" y1="{low:g}" y2="{high:g}"/>'
            said = (
                f"{_shown(point.timestamp)} {point.model}: {score_text(point.score)} ({interval_text(point.interval)})"
            )
            fell = '<path class=drop d="M-7 11h14l-7 10z"/>' if point.drop is not None else ""
            yield f'<svg x="{x:g}%" y="{y:g}"><title>{html_text(said)}</title>{_mark(number)}{fell}</svg>'
        yield "</g>"


def _mark(number: int) -> str:
    r = 5
    shapes = (
        f'<circle r="{r}"/>',
        f'<rect x="{-r}" y="{-r}" width="{2 * r}" height="{2 * r}"/>',
        f'<path d="M0 {-r - 1}l{r + 1} {2 * r}h-{2 * r + 2}z"/>',
        f'<path d="M0 {-r - 2}l{r + 2} {r + 2}l-{r + 2} {r + 2}l-{r + 2} -{r + 2}z"/>',
        f'<path d="M0 {r + 1}l{r + 1} -{2 * r}h-{2 * r + 2}z"/>',
        f'<path d="M{-r} 0h{2 * r}M0 {-r}v{2 * r}" class=cross />',
    )
    return shapes[number % _SHAPES]


def _places(points: Sequence[HistoryPoint]) -> dict[str, float]:
    """Return each run's position on the time axis in percent; if all runs have the same time, spread them evenly."""
    times = [0.0 if (time := _time(point.timestamp)) is None else time.timestamp() for point in points]
    (left, right), first, last = _EDGES, min(times), max(times)
    if last <= first:
        return {point.path: left + (right - left) * (n + 0.5) / len(points) for n, point in enumerate(points)}
    return {
        point.path: round(left + (right - left) * (time - first) / (last - first), 2)
        for point, time in zip(points, times, strict=True)
    }


def _time(timestamp: str) -> datetime | None:
    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _shown(timestamp: str) -> str:
    time = _time(timestamp)
    return timestamp if time is None else f"{time.day} {_MONTHS[time.month - 1]} {time.year}, {time:%H:%M} UTC"


def _y(score: float) -> float:
    # The plot shows values below 0 or above 1 at its edge; the table shows the actual values.
    return round(_TOP + (1 - min(1.0, max(0.0, score))) * (_HEIGHT - _TOP - _BOTTOM), 1)
