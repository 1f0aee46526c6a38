"""What a reader takes from the page: tables and lists as CSV, the address of a view, a list of one category."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_lmeval.leaderboard.asked import QUESTIONS, asked
from pytest_lmeval.report.html import write_report
from tests.conftest import MadeOnce
from tests.report.html.browser import Browser
from tests.report.html.samples import board_of, function_result, result
from tests.report.html.test_report import PAGE

# The row of an eval function, the input of its first request, and the question that is one of these.
_ASKED = (
    ('{"q": "of the row"}', None, "of the row"),
    ('{"id": "a", "prompt": " ", "input": "in"}', None, "in"),
    ('{"id": "a", "q": 3}', None, "3"),
    ('{"problem": "second", "Text": "first"}', None, "first"),
    ('{"question": ["no text"], "q": "a text"}', None, "a text"),
    ("not a row of JSON", None, "not a row of JSON"),
    ('{"q": "of the row"}', "asked", "of the row"),
    ("{}", "asked", "asked"),
    ("{}", [{"role": "user", "content": ["with", {"image": "a.png"}, "words"]}], "with\n[image a.png]\nwords"),
    ("{}", [{"role": "user", "content": "first"}, {"role": "user", "content": [{"type": "image"}]}], "first"),
    ("{}", [{"role": "user", "content": "first"}, {"role": "user", "content": "last"}], "last"),
    ("{}", [{"role": "user", "content": "said"}, {"role": "tool", "content": "3"}], "said"),
    ('{"q": "of the row"}', [{"role": "user", "content": [{"type": "image"}]}], "of the row"),
    ('{"q": "of the row"}', [{"role": "system", "content": "be kind"}, None], "of the row"),
)
_FORMULAS = ('=HYPERLINK("http://x")', "+1+2", "-2+3", "@SUM(A1)", "\t=1", "\r=1")


def _written(folder: Path) -> None:
    results = [
        result("even", line=1, category="numbers", tags=("easy", "two words")),
        result("wrong", 'said "5",\nor so', line=2, category="numbers", tags=("hard",)),
        result("down", status="error", score=None, outputs=(), predictions=(), error="503 from it", line=3),
        result("below", "-5", status="below", line=4, category="words", tags=("hard", "<b>")),
        *(result(f"=f{place}", said, line=9 + place, post_process="none") for place, said in enumerate(_FORMULAS)),
        *(result(f"many-{number:03d}", task="many", line=number) for number in range(250)),
    ]
    board = board_of(results)
    board["tasks"][1]["min_score"] = 0.6
    board["gate"]["settings"] = {"floors": {"overall": 0.9}}
    write_report(folder / "page.html", board, results)


@pytest.fixture(scope="module")
def page(made_once: MadeOnce) -> Path:
    return made_once("handed-on", _written) / "page.html"


def test_the_question_is_that_of_other_reports_else_the_row(browser: Browser, tmp_path: Path) -> None:
    results = [
        function_result(
            str(place), {"steps": [{"kind": "tool", "input": "x"}, {"kind": "request", "input": given}]}, prompt=row
        )
        for place, (row, given, _) in enumerate(_ASKED)
    ]
    write_report(tmp_path / "page.html", board_of(results), results)
    browser.open(tmp_path / "page.html", "#/all")
    questions = [question for *_, question in _ASKED]
    assert questions == [asked(result) or result.prompt for result in results]
    assert [" ".join(question.split()) for question in questions] == browser.texts(".examples th .of + .gist")
    assert f"const QUESTIONS = {json.dumps(QUESTIONS)};" in (PAGE / "answer.js").read_text("ascii")


def _saved(browser: Browser, folder: Path, name: str) -> list[list[str]]:
    """Return the rows of the file that the first CSV button saves as ``name`` in ``folder``."""
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.js("document.querySelector('button.csv').click()")
    for _ in range(500):
        if (folder / name).exists():
            break
        browser.settle()
    with (folder / name).open(encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file))


def test_a_list_is_saved_as_csv_whose_cells_are_no_formulas(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page, "#/task/sums")
    head, *rows = _saved(browser, tmp_path, "examples.csv")
    answers = {row[head.index("id")]: row[head.index("answer")] for row in rows}
    assert 'said "5",\nor so' == answers["wrong"]
    # A number is no formula.
    assert "-5" == answers["below"]
    assert [f"'{text}" for text in _FORMULAS] == [answers[f"'=f{place}"] for place in range(len(_FORMULAS))]
    assert "503 from it" == rows[2][-1]


def test_the_table_of_scores_is_saved_as_csv_without_its_drawings(browser: Browser, page: Path, tmp_path: Path) -> None:
    browser.open(page)
    rows = _saved(browser, tmp_path, "scores.csv")
    assert ["Task", "Score", "95 % interval", "Correct", "Errors"] == rows[0]
    assert [["many", "1.000"], ["sums below its floor 0.60", "0.111"]] == [row[:2] for row in rows[1:3]]
    assert "Overall below its floor 0.90" == rows[3][0]


def test_without_a_baseline_the_overview_has_what_did_not_pass(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert ["Scores", "Not passed", "Categories", "Latency", "Run"] == browser.texts("h2")
    assert ["floor"] == [text for text in browser.texts(".legend span") if text == "floor"]
    assert ["wrong", "down", "below"] == browser.texts("section:nth-of-type(2) tbody th")[:3]
    browser.js("document.querySelector('section:nth-of-type(2) tbody a').click()")
    browser.settle()
    assert "#/all?show=failed&in=sums&id=wrong" == browser.js("location.hash")


def test_a_list_is_limited_to_a_category(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/sums")
    field = "document.getElementById('pick-category')"
    assert ["", "numbers", "words"] == browser.js(f"[...{field}.options].map(each => each.value)")
    browser.js(f"{field}.value = 'numbers'; {field}.dispatchEvent(new Event('change'))")
    browser.settle()
    assert ["even", "wrong"] == browser.texts(".examples a")
    assert "#/task/sums?category=numbers" == browser.js("location.hash")


def test_a_list_is_limited_to_a_tag_which_the_example_and_the_search_have_too(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/sums")
    field = "document.getElementById('pick-tag')"
    assert ["", "<b>", "easy", "hard", "two words"] == browser.js(f"[...{field}.options].map(each => each.value)")
    browser.js(f"{field}.value = 'hard'; {field}.dispatchEvent(new Event('change'))")
    browser.settle()
    assert ["wrong", "below"] == browser.texts(".examples a")
    assert "#/task/sums?tag=hard" == browser.js("location.hash")
    browser.open(page, "#/task/sums?tag=hard&category=words&q=two+words")
    assert [] == browser.texts(".examples a")
    browser.open(page, "#/all?q=two+words&in=sums&id=even")
    assert ["even"] == browser.texts(".examples a")
    assert "easy, two words" in browser.texts(".detail dt + dd")


def test_the_keys_turn_pages(browser: Browser, page: Path) -> None:
    browser.open(page, "#/task/many")
    for number in (2, 3):
        browser.press("]")
        browser.wait_for(f"document.querySelector('.pager').textContent.includes('Page {number} of 3')")
    browser.press("]")
    browser.press("[")
    assert "many-100" == browser.texts(".examples a")[0]
    browser.press("[", "[", "[")
    assert "Page 1 of 3" in browser.text(".pager")


@pytest.mark.parametrize("allowed", [True, False])
def test_the_address_of_a_view_is_copied_or_shown_to_be_copied(browser: Browser, page: Path, allowed: bool) -> None:
    browser.open(page, "#/task/sums?show=failed")
    setting = "granted" if allowed else "denied"
    browser.call("Browser.setPermission", permission={"name": "clipboard-write"}, setting=setting)
    browser.js("document.getElementById('copy-link').focus()")
    browser.press("Enter")
    if allowed:
        browser.wait_for("document.getElementById('copy-link').textContent === 'Copied'")
    else:
        browser.wait_for("document.querySelector('input.address') !== null")
        address = browser.js("document.querySelector('input.address').value")
        assert f"{page.as_uri()}#/task/sums?show=failed" == address
    browser.call("Browser.resetPermissions")
