"""The page of a history, in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.compare.history import Drop, History, HistoryPoint
from pytest_lmeval.report.html.history import render_history
from tests.report.html.browser import Browser
from tests.report.html.test_accessibility import FOUND, axe

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

    assert [4, 5, 0] == browser.js(
        "[...document.querySelectorAll('section')].map(s => s.querySelectorAll('line.step').length)"
    )
    assert "lmeval history" == browser.text(".brand")
    assert ["1 Nov", "2 Nov", "5 Nov"] == browser.texts("section:first-of-type .plot > text:not(.changed)")[3:]
    assert "6 runs as a table, the newest first" == browser.texts("summary")[0]
    assert ["5 Nov 2026, 10:00 UTC", "5 Nov 2026, 10:00 UTC"] == browser.texts("section:first-of-type tbody th")[:2]
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


def test_a_phone_shows_the_plot_whole_and_no_rule_of_accessibility_is_broken(browser: Browser, tmp_path: Path) -> None:
    browser.size(390, 800)
    drop = Drop(-0.2, 0.0001, "2026-11-01T10:00:00Z")
    points = [replace(_point(day, "m" * 60, 0.5, changed=day in (4, 5)), drop=drop) for day in range(1, 10)]
    page = _written(tmp_path, History({"overall": tuple(points), "t" * 80: (_point(1, "n", 0.5),)}))
    browser.open(page)

    assert browser.js("document.documentElement.scrollWidth <= innerWidth")
    plot = "document.querySelector('.plot').getBoundingClientRect().width"
    assert 300 < browser.js(plot) <= 390
    # Two changes a day apart have two lines, and room for one label.
    assert 2 == browser.js("document.querySelectorAll('line.changed').length")
    assert ["suite changed"] == browser.texts("text.changed")
    browser.js("document.querySelectorAll('details').forEach(one => { one.open = true })")
    browser.js(f"{axe()};0")
    assert [] == browser.js(FOUND)


def test_a_run_on_another_drive_has_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_another_drive(path: Path, start: Path) -> str:
        raise ValueError(f"path is on mount {path.drive!r}, start on mount {start.drive!r}")

    (tmp_path / "report.html").touch()
    found = History({"sums": (replace(_point(1, "mini", 0.5), path=str(tmp_path / "ledger.jsonl")),)})
    assert '<a href="report.html">' in render_history(found, tmp_path)
    monkeypatch.setattr("os.path.relpath", on_another_drive)
    assert "<a" not in render_history(found, tmp_path)
