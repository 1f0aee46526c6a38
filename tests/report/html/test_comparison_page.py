"""The page of several models in a browser: the answers side by side, by keyboard, on a phone and in the dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.comparison import Compared, compared, render_comparison
from pytest_lmeval.types import ExampleResult
from tests.report.html.browser import Browser

HOSTILE = "</script><img src=x onerror=alert(1)>"


def write_page(path: Path, labels: str, examples: int) -> Path:
    """Write the page of models of which the last one is wrong in every third example."""
    models = []
    for label in labels:
        results = tuple(
            _result(label, number, wrong=label == labels[-1] and number % 3 == 0) for number in range(examples)
        )
        verdict, reasons = ("examples", [f"t: wrong {HOSTILE}"]) if label == labels[-1] else ("pass", [])
        gate = {"mode": "examples", "verdict": verdict, "reasons": reasons, "decided_by": reasons}
        facts = RunFacts("t", label, gate=gate)
        models.append(Compared(label, build_board((), results, facts), results, f"reports/{label}"))
    path.write_text(render_comparison(compared(models, 0), models), encoding="ascii")
    return path


def _result(label: str, number: int, *, wrong: bool) -> ExampleResult:
    said = f"{label} says {number} {HOSTILE}"
    return ExampleResult(
        *("t", f"e{number}", "below" if wrong else "passed", float(not wrong), 1.0, "exact_match", f"h{number}"),
        prompt=f"What is {number}?",
        outputs=(said,),
        predictions=(said,),
        targets=(str(number),),
    )


def open_page(browser: Browser, path: Path) -> None:
    browser.open(path)
    browser.wait_for("document.documentElement.dataset.ready === 'true'")


def test_the_answers_to_an_example_stand_side_by_side_as_text(browser: Browser, tmp_path: Path) -> None:
    open_page(browser, write_page(tmp_path / "page.html", "ab", 30))
    assert ["a", "b"] == [text[:1] for text in browser.texts("tbody tr")]
    assert "not significantly worse than the best (95 %, Holm): a" in browser.texts("#remarks li")
    assert ["not gated", "examples"] == browser.texts("tbody td:nth-child(2)")
    assert [f"b: examples: t: wrong {HOSTILE}"] == browser.texts("#reasons li")
    # Those that tell the models apart come first.
    assert "t: e0" == browser.texts("h2")[0]
    assert [f"a says 0 {HOSTILE}", f"b says 0 {HOSTILE}"] == browser.texts(".example:first-child .answers pre")
    assert 0 == browser.js("document.querySelectorAll('img').length")


def test_keys_go_from_example_to_example_and_from_page_to_page(browser: Browser, tmp_path: Path) -> None:
    open_page(browser, write_page(tmp_path / "page.html", "ab", 60))
    browser.press("j", "j", "k", "j")
    assert "t: e3" == browser.js("document.activeElement.querySelector('h2').textContent")
    browser.press("]")
    assert "60 example(s), page 2 of 3" == browser.text("[role=status]")
    browser.js("document.querySelector('select').value = 'differs'")
    browser.js("document.querySelector('select').dispatchEvent(new Event('change'))")
    assert "20 example(s), page 1 of 1" == browser.text("[role=status]")


def test_a_phone_and_the_dark_show_all_of_it(browser: Browser, tmp_path: Path) -> None:
    open_page(browser, write_page(tmp_path / "page.html", "abcd", 5))
    browser.size(360, 800)
    assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    light = browser.js("getComputedStyle(document.documentElement).colorScheme")
    browser.dark(True)
    assert "light dark" == light
    assert "rgb(63, 185, 80)" == browser.js("getComputedStyle(document.querySelector('.passed')).color")
    browser.dark(False)
    browser.size(1200, 900)


@pytest.mark.slow
def test_four_models_by_10_000_examples_are_there_in_less_than_a_second(browser: Browser, tmp_path: Path) -> None:
    open_page(browser, write_page(tmp_path / "page.html", "abcd", 10_000))
    assert browser.js("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd") < 1000
    assert 25 == browser.js("document.querySelectorAll('.example').length")
