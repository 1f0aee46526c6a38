"""The page of a history, in a real browser."""

from __future__ import annotations

from pathlib import Path

from pytest_lmeval.compare.history import History, HistoryPoint
from pytest_lmeval.report.html.history import render_history
from tests.report.html.browser import Browser

HOSTILE = "</svg><script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'>\u202e"


def _point(day: int, model: str, score: float | None, *, changed: bool = False) -> HistoryPoint:
    interval = None if score is None else (score - 0.1, score + 0.1)
    return HistoryPoint(f"2026-11-{day:02}T10:00:00Z", model, score, interval, 40, changed, (), f"{day}/{model}")


def _written(folder: Path, found: History) -> Path:
    page = folder / "history.html"
    page.write_bytes(render_history(found).encode("ascii"))
    return page


def test_each_task_has_a_plot_with_a_line_per_model_and_a_table(browser: Browser, tmp_path: Path) -> None:
    points = tuple(_point(day, model, 0.1 * day) for day in (1, 2, 5) for model in ("mini", "large"))
    changed = (*points, _point(8, "mini", None), _point(9, "mini", 7.5, changed=True))
    browser.open(_written(tmp_path, History({"overall": points, "sums": changed, "none": (_point(1, "mini", None),)})))

    assert [2, 2, 0] == browser.js(
        "[...document.querySelectorAll('section')].map(s => s.querySelectorAll('polyline').length)"
    )
    assert ["6", "8", "1"] == browser.js("[...document.querySelectorAll('tbody')].map(body => `${body.rows.length}`)")
    assert ["suite changed"] == browser.js("[...document.querySelectorAll('text.changed')].map(e => e.textContent)")
    assert ["mini", "large"] == browser.js("[...document.querySelectorAll('.legend li')].map(e => e.textContent)")
    assert "No run has a score." in browser.js("document.body.innerText")
    # What has no place between 0 and 1 is drawn at the edge, within the plot.
    assert browser.js(
        "[...document.querySelectorAll('svg.plot')].every(plot => [...plot.querySelectorAll('circle, rect')].every("
        "mark => mark.getBoundingClientRect().top >= plot.getBoundingClientRect().top))"
    )


def test_names_inject_nothing_and_nothing_is_loaded(browser: Browser, tmp_path: Path) -> None:
    points = (_point(1, HOSTILE, 0.5), _point(1, "other", 0.5))
    browser.open(_written(tmp_path, History({HOSTILE: points}, (HOSTILE,))))

    assert browser.js("window.pwned === undefined && document.scripts.length === 0 && document.images.length === 0")
    assert 3 < browser.js("document.body.innerText.split('<script>').length")
    assert "\u202e" not in browser.js("document.body.innerText")


def test_a_phone_scrolls_the_plot_and_not_the_page(browser: Browser, tmp_path: Path) -> None:
    browser.size(390, 800)
    browser.open(_written(tmp_path, History({"overall": (_point(1, "m" * 60, 0.5), _point(2, "n", 0.5))})))

    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
