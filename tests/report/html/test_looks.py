"""What a reader notices at a look: the largest word, colours, headings, rows of cards, tables that scroll."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.report.html import write_report
from pytest_lmeval.report.verdict_text import verdict_sentence
from pytest_lmeval.types import ExampleResult
from tests.conftest import MadeOnce
from tests.report.html.browser import NARROW, Browser
from tests.report.html.samples import board_of, compared_run, function_result, result
from tests.report.html.test_comparison_page import answers_of, write_page
from tests.tables import each_row

LONG = "a-label-of-eighty-characters.which-a-team-really-uses-for-a-model-2026-09-"
NOTHING_SIDEWAYS = "document.documentElement.scrollWidth <= innerWidth"
LARGEST = """(() => { const size = (node) => parseFloat(getComputedStyle(node).fontSize);
    const found = [...document.querySelectorAll('main *')].filter(one => one.firstChild instanceof Text);
    return found.sort((a, b) => size(b) - size(a))[0].firstChild.data })()"""
ROWS_OF_CARDS = """(() => { const tops = {}; for (const card of document.querySelectorAll('.figures > div')) {
    const { top, width } = card.getBoundingClientRect(); (tops[Math.round(top)] ||= []).push(width) }
    return Object.values(tops).map(row => row.length) })()"""


def _gated(mode: str, verdict: str, *reasons: str) -> dict[str, object]:
    return {"mode": mode, "verdict": verdict, "reasons": [*reasons], "decided_by": [] if mode == "none" else [mode]}


def _change(task: str, verdict: str, change: float) -> dict[str, object]:
    return {"task": task, "verdict": verdict, "change": change}


def _odd_results() -> list[ExampleResult]:
    """Return 30 tasks of 20 examples, one of 1, texts from right to left, 1 MB, a task ``all``, and one that failed."""
    results = [result(f"e{n}", task=f"task-{n % 30:02}") for n in range(600)]
    results += [result("big", "word " * 200_000, task="all"), result("only", "5", task="one")]
    return [
        *results,
        result("\u05e9\u05dc\u05d5\u05dd", "\u05e8\u05d5\u05de\u05d0", "\u05e8\u05d5\u05de\u05d0", task="rtl"),
    ]


def write_pages(folder: Path) -> None:
    right = [result(f"e{n}") for n in range(10)]
    write_report(folder / "ungated.html", board_of(right, gate=_gated("none", "pass")), right)
    seven = [result("must", "5"), result("below", "5", status="below"), result("right")]
    write_report(
        folder / "seven.html",
        board_of(seven, gate=_gated("baseline", "regression")),
        seven,
        None,
        {("sums", "must"): replace(seven[0], score=1.0, status="passed")},
    )
    odd = _odd_results()
    write_report(folder / "odd.html", board_of(odd, adapter=f"{LONG}xxxxxx", gate=_gated("examples", "examples")), odd)
    named = {
        label: _of(word) for label, word in ((f"{LONG}xxxxxx", 4), (f"{LONG}yyyyyy", 4), ("c", 5), ("d", 4), ("e", 4))
    }
    write_page(folder / "five.html", named)
    steps = {"steps": [{"kind": "tool", "name": "quick", "output": "1", "start_ms": 5.0, "ms": 0.0}]}
    short = [function_result("t1", steps, metrics={"right": 1.0, "short": short}) for short in (1.0, 0.0)]
    write_page(folder / "named.html", {"one": short[:1], "two": short[1:]})


def _of(said: int) -> list[ExampleResult]:
    return [*answers_of(0, 40), result("differ", f"It is {said}", task="one", score=1.0), result("same", task="one")]


@pytest.fixture(scope="module")
def pages(made_once: MadeOnce) -> Path:
    return made_once("looks", write_pages)


@each_row(
    ("verdict", "changes", "pooled", "sentence"),
    [
        ("regression", {"sums": -0.18, "words": None}, "regression", "sums fell by 18 points, overall by 12."),
        ("regression", {"sums": -0.125}, "regression", "sums fell by 12.5 points."),
        ("regression", {"a": None, "b": None}, "regression", "overall fell by 12 points."),
        (
            *("regression", dict.fromkeys("abcde", -0.1), "pass"),
            "a fell by 10 points, b by 10, c by 10, and 2 more tasks fell.",
        ),
        (
            *("regression", dict.fromkeys("abcd", -0.01), "pass"),
            "a fell by 1 point, b by 1, c by 1, and 1 more task fell.",
        ),
        ("inconclusive", {"a": -0.05, "b": None}, "pass", "a fell by 5 points; chance may explain it."),
        ("improvement", {"a": 0.05, "b": None}, "pass", "a rose by 5 points."),
        ("pass", {"a": None}, "pass", "No score fell by more than chance explains."),
        ("floor", {"a": None}, "pass", "a: 0.5 is below (and 1 more reason, below the scores)"),
    ],
)
def test_the_sentence_below_the_verdict_names_the_scores_that_decided(
    verdict: str, changes: dict[str, float | None], pooled: str, sentence: str
) -> None:
    tasks = [_change(name, "pass" if by is None else verdict, by or 0.0) for name, by in changes.items()]
    gate = _gated("baseline", "pass" if verdict == "improvement" else verdict, "a: 0.5 is below", "b")
    comparison = {"tasks": tasks, "pooled": _change("overall", pooled, -0.12)}
    assert sentence == verdict_sentence(gate, comparison)


def test_the_reasons_are_below_the_scores(browser: Browser, tmp_path: Path) -> None:
    write_report(tmp_path / "page.html", *compared_run())
    browser.open(tmp_path / "page.html")
    assert ["sums fell by 25 points."] == browser.texts(".verdict .lead")
    assert ["Scores", "Reasons"] == browser.texts("h2")[:2]
    assert "sums: 0.7500 to 0.5000" in browser.texts("section:nth-of-type(2) li")


def test_the_score_is_the_largest_word_of_a_run_without_a_gate(browser: Browser, pages: Path) -> None:
    browser.open(pages / "ungated.html")
    assert "1.000" == browser.js(LARGEST)
    assert "1.000 overall score" == browser.text("h1")
    assert "not gated" in browser.text(".lead")
    assert "Overall score" not in browser.texts(".figures dt")


def test_cards_stand_in_rows_of_one_length_and_say_different_things(browser: Browser, pages: Path) -> None:
    browser.open(pages / "seven.html")
    assert [3, 4] == browser.js(ROWS_OF_CARDS)
    notes = dict(zip(browser.texts(".figures dt"), browser.texts(".figures .note"), strict=True))
    assert ("each one fails the run", "below their threshold, tolerated") == (notes["Failed"], notes["Below"])
    browser.size(*NARROW)
    assert [1, 2, 2, 2] == browser.js(ROWS_OF_CARDS)


def test_labels_in_the_histogram_do_not_overlap(browser: Browser, tmp_path: Path) -> None:
    results = [result(f"e{n}", latency_ms=100.0 + n % 2) for n in range(40)]
    write_report(tmp_path / "page.html", board_of(results), results)
    browser.open(tmp_path / "page.html")
    boxes = browser.js("""[...document.querySelectorAll('.histogram text')].slice(0, 2).map(one => {
        const { top, bottom } = one.getBoundingClientRect();
        return [one.textContent, Math.round(top), Math.round(bottom)] })""")
    assert ["median", "p95"] == [name for name, *_ in boxes]
    assert boxes[0][2] <= boxes[1][1] + 2
    assert "p95: 101 ms" in browser.text(".figures")


def test_pass_and_fail_have_colour_and_shape_and_the_grid_says_what_was_wanted(browser: Browser, pages: Path) -> None:
    browser.open(pages / "five.html", "#/task/one")
    assert ["wanted 4", "wanted 4"] == browser.texts(".matrix .wanted")
    browser.open(pages / "odd.html", "#/task/one")
    mark = """(() => { const one = document.querySelector('.status');
        return [one.textContent, getComputedStyle(one).backgroundColor] })()"""
    failed, red = browser.js(mark)
    browser.go("#/task/rtl")
    passed, green = browser.js(mark)
    assert ("\u2715failed", "\u2713passed") == (failed, passed)
    assert len({red, green, "rgba(0, 0, 0, 0)"}) == 3


def test_an_output_that_is_what_was_scored_is_shown_once(browser: Browser, pages: Path) -> None:
    browser.open(pages / "odd.html", "#/task/one?id=only")
    assert ["Output by strip_whitespace", "Target"] == browser.texts(".outcome h3")
    assert 1 == browser.texts(".detail pre").count("5")


def test_the_heading_says_what_the_list_shows(browser: Browser, pages: Path) -> None:
    browser.open(pages / "odd.html", "#/all")
    assert "All examples" == browser.text("h1")
    browser.js("document.querySelector('input[value=failed]').click()")
    browser.settle()
    assert "Failed" == browser.text("h1")
    browser.go("#/task/one?show=failed")
    assert "one: failed" == browser.text("h1")
    assert "Search texts" == browser.js("document.getElementById('search').placeholder")
    assert browser.js("(one => one.scrollWidth <= one.clientWidth)(document.getElementById('search'))")


def test_models_with_different_named_scores_differ(browser: Browser, pages: Path) -> None:
    browser.open(pages / "named.html", "#/all?show=differs")
    assert ["t1"] == browser.texts(".examples tbody a")
    browser.go("#/task/support?id=t1")
    assert "1 of 1" == browser.text(".steps .place")
    assert ["<\u00a00.1 ms"] * 2 == browser.texts(".step .took")


def test_changed_words_begin_with_two_models_that_differ(browser: Browser, pages: Path) -> None:
    browser.open(pages / "five.html", "#/task/one?id=differ")
    chosen = "[...document.querySelectorAll('.choose select')].map(one => one.selectedOptions[0].text)"
    assert "c" in browser.js(chosen)
    assert {"4", "5"} == {*browser.texts(".diff del"), *browser.texts(".diff ins")}
    browser.go("#/task/one?id=same")
    assert "All 5 answers are the same, character for character." in browser.texts(".detail .note")


def test_long_labels_are_short_and_different_and_whole_in_their_title(browser: Browser, pages: Path) -> None:
    browser.open(pages / "five.html", "#/all")
    heads: list[list[str]] = browser.js(
        "[...document.querySelectorAll('.matrix thead [title]')].map(one => [one.textContent, one.title])"
    )
    assert {f"{LONG}xxxxxx", f"{LONG}yyyyyy"} == {title for _, title in heads}
    assert 2 == len({text for text, _ in heads})
    assert all(len(text) <= 26 for text, _ in heads)
    # Five columns of answers have room at the usual width.
    assert browser.js("(one => one.scrollWidth <= one.clientWidth)(document.getElementById('rows'))")


def test_a_table_that_is_too_wide_shows_it_and_keeps_its_first_column(browser: Browser, pages: Path) -> None:
    browser.size(*NARROW)
    browser.open(pages / "five.html")
    shown = """(() => { const one = document.querySelector('.scroller'); one.scrollLeft = 200;
        const first = one.querySelector('tbody th').getBoundingClientRect();
        const shades = getComputedStyle(one).backgroundImage.split('linear-gradient').length - 1;
        const left = first.left - one.getBoundingClientRect().left;
        return [one.scrollWidth > one.clientWidth, shades, Math.round(left)] })()"""
    assert [True, 4, 0] == browser.js(shown)


@pytest.mark.parametrize("fragment", ["", "#/all", "#/task/one", "#/task/all?id=big", "#/task/rtl"])
@pytest.mark.parametrize("name", ["odd.html", "five.html", "named.html"])
def test_odd_runs_fit_a_phone(browser: Browser, pages: Path, name: str, fragment: str) -> None:
    browser.size(*NARROW)
    browser.open(pages / name, fragment)
    assert browser.js(NOTHING_SIDEWAYS)


def test_a_wide_interval_names_the_small_tasks(browser: Browser, pages: Path) -> None:
    browser.open(pages / "odd.html")
    said = "Small tasks make the overall interval wide, because each task has the same weight: all (1 example), one"
    assert any(text.startswith(said) for text in browser.texts("section .note"))
