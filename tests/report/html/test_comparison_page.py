"""The page of several models in a browser: what people open it for is at most three clicks away."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_lmeval.leaderboard.board import RunFacts, build_board
from pytest_lmeval.report.comparison import Compared, compared
from pytest_lmeval.report.html.comparison_page import render_comparison
from pytest_lmeval.types import ExampleResult
from tests.conftest import MadeOnce, Project
from tests.report.html.browser import FACES, NARROW, Browser
from tests.report.html.samples import HOSTILE, conversation, function_run, result
from tests.yaml_tasks import single_turn
from website.questions import QUESTIONS, walk

_VARIANTS = single_turn(
    "numbers",
    '- {key: right, type: string_equals, ground_truth: "{{ sample.n }}"}\n',
    "<< config.tone >>: {{ sample.n }}",
    "config_spec:\n- {type: categorical, key: tone, allowed_values: [say, mutter]}\n",
)
LINK = "</script><img src=x onerror=window.pwned=1>"


def answers_of(place: int, examples: int, *, own_prompt: bool = False) -> list[ExampleResult]:
    """Return the results of the model at a place: the best is wrong in few examples, each later one in more."""
    asked = "Please: what" if own_prompt else "What"
    return [
        result(
            f"e{number}",
            f"I say {4 if right else 5} {LINK}",
            task=("sums", "facts")[number % 2],
            prompt=f"{asked} is 2 + 2, number {number}?",
            score=float(right),
            scoring_hash=f"s{number}",
            hash=f"h{number}{own_prompt}",
            latency_ms=100.0 * (place + 1),
            usage={"cost": 0.001 * (place + 1)},
            line=number,
            category="even" if number % 4 < 2 else "odd",
            tags=("hard",) if number % 20 == 0 else (),
        )
        for number in range(examples)
        for right in [number % 10 >= place * 3]
    ]


def write_page(path: Path, models: Mapping[str, Sequence[ExampleResult]], *, pair_by: str = "content") -> Path:
    """Write the page of models; each has a page of its own beside it that is only a heading."""
    shown: list[Compared] = []
    for label, results in models.items():
        failed = any(each.status == "failed" for each in results)
        gate = {"mode": "examples", "verdict": "examples" if failed else "pass", "reasons": [f"wrong {LINK}"][:failed]}
        facts = RunFacts("2026-11-21T08:26:08Z", label, gate=gate | {"decided_by": ["examples"]})
        folder = path.parent / "own" / str(len(shown))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.html").write_text("<h1>own page</h1>")
        shown.append(Compared(label, build_board((), results, facts), tuple(results), str(folder)))
    comparison = compared(shown, 0, path.parent, pair_by=pair_by)
    path.write_text(render_comparison(comparison, shown), encoding="ascii")
    return path


def write_pages(folder: Path) -> None:
    """Write the pages of this module's tests."""
    names = ("small", "large", "mini")
    write_page(
        folder / "three.html", {name: answers_of(place, 60) for name, place in zip(names, (1, 0, 2), strict=True)}
    )
    write_page(folder / "five.html", {f"m{place}": answers_of(place, 60) for place in range(5)})
    prompts = {"plain": answers_of(0, 60), "polite": answers_of(1, 60, own_prompt=True)}
    write_page(folder / "prompts.html", prompts, pair_by="id")
    functions = function_run()[1]
    write_page(folder / "functions.html", {"one": functions, "two": [conversation(), *functions[:4]]})
    words = ("all", "differs", "failed", "__proto__", "constructor", "any", "0", *(f"m{n}" for n in range(23)))
    write_page(folder / "thirty.html", {word: answers_of(place % 3, 30) for place, word in enumerate(words)})
    others = [replace(each, id=f"other-{each.id}", hash=f"other-{each.hash}") for each in answers_of(0, 9)]
    write_page(folder / "apart.html", {"a": answers_of(0, 9), "b": others})
    down = [replace(each, status="error", score=None, outputs=(), error="503") for each in answers_of(0, 9)]
    write_page(folder / "down.html", {"a": answers_of(0, 9), "b": down})
    long = {
        f"{'long-name-' * 6}{place}": [replace(each, task="long_" * 14) for each in answers_of(place, 9)]
        for place in (0, 1)
    }
    write_page(folder / "long.html", long)
    hostile = [replace(each, id=text, prompt=text) for each, text in zip(answers_of(1, 8), HOSTILE, strict=True)]
    write_page(folder / "hostile.html", {"a": hostile, "b": [replace(each, outputs=(each.id,)) for each in hostile]})


@pytest.fixture(scope="module")
def pages(made_once: MadeOnce) -> Path:
    return made_once("comparisons", write_pages)


def open_page(browser: Browser, path: Path, fragment: str = "") -> None:
    browser.open(path, fragment)
    assert [] == [event for event in browser.events if event["method"] in FACES]


def click(browser: Browser, selector: str) -> None:
    """Click the first element that a selector finds."""
    browser.js(f"document.querySelector({json.dumps(selector)}).click()")
    browser.settle()


def test_models_tasks_flips_and_answers_are_a_click_apart(browser: Browser, pages: Path) -> None:
    page = pages / "three.html"
    open_page(browser, page)
    # Which model do I ship?
    assert browser.text("h1").startswith("large is best; small and mini are worse")
    assert ["large", "small", "mini"] == [text.split()[0] for text in browser.texts(".models tbody th")]
    assert ["1.000", "1.000"] == browser.texts(".by-task td.best a")
    assert ["0.06", "0.12", "0.18"] == browser.texts(".models tbody td:last-child")
    # Which examples flipped? One click on how many got worse.
    click(browser, ".models tbody tr:nth-child(2) td:nth-last-child(4) a")
    assert "18 examples, small worse than large" == browser.text("#found")
    # Why this one, and what did the others answer? One click more.
    click(browser, ".matrix tbody a")
    assert ["large", "small", "mini"] == browser.texts(".beside header h3")
    assert [f"I say {said} {LINK}" for said in (4, 5, 5)] == browser.texts(".beside .output")
    assert ["5"] == [text.strip() for text in browser.texts(".diff ins")]
    # The page of the model itself opens at this example.
    assert browser.js("document.querySelector('.beside header a').getAttribute('href')").endswith(
        "report.html#/task/sums?id=e0"
    )
    # Send a colleague this view: the address is all of it.
    shown, fragment = browser.text("main"), browser.js("location.hash")
    open_page(browser, page, fragment)
    assert shown == browser.text("main")
    assert "copy-link" == browser.js("document.querySelector('button').id")


# What the answer to a question has in it, on the page of three models.
_ANSWERS = {
    "Which model do I ship?": "large is best",
    "On which task is it worse?": "1.000 n 30",
    "What did it cost?": "0.06",
    "Was the prompt the same?": "the same prompts",
    "Which examples flipped?": "e0",
    "What did the others answer?": "I say 4",
    "Why this one?": "score 1",
    "How do I send a colleague this view?": "copied",
}


def test_the_clicks_that_the_docs_have_a_picture_of_lead_to_each_answer(browser: Browser, pages: Path) -> None:
    assert [] == [question.text for question in QUESTIONS if len(question.clicks) > 3]
    found = {}
    clicked = True
    for question in QUESTIONS:
        if clicked:
            open_page(browser, pages / "three.html")
        walk(browser, question)
        clicked = bool(question.clicks)
        found[question.text] = browser.texts(question.shows)[0]
    browser.call("Browser.resetPermissions")
    assert set(_ANSWERS) == {text for text in found if _ANSWERS[text] in found[text]}


def test_a_score_of_the_table_leads_to_what_the_model_did_not_pass(browser: Browser, pages: Path) -> None:
    open_page(browser, pages / "three.html")
    click(browser, ".by-task tbody tr:nth-child(2) td:nth-child(3) a")
    assert "#/task/sums?show=failed&model=small" == browser.js("location.hash")
    assert "not passed by small" in browser.text("#found")


def test_the_models_stay_in_sight_above_the_matrix_and_the_examples_beside_it(browser: Browser, pages: Path) -> None:
    open_page(browser, pages / "thirty.html", "#/all")
    assert 31 == len(browser.texts(".matrix thead th"))
    tops = "[...document.querySelectorAll('.matrix thead th')].map(e => e.getBoundingClientRect().top)"
    left = "document.querySelector('.matrix tbody th').getBoundingClientRect().left"
    before = browser.js(tops), browser.js(left)
    browser.js("document.getElementById('rows').scrollTo(900, 900)")
    browser.settle()
    assert before == (browser.js(tops), browser.js(left))


@pytest.mark.again
@pytest.mark.parametrize("label", ["all", "differs", "__proto__", "0"])
def test_a_model_may_be_called_like_a_word_of_the_page(browser: Browser, pages: Path, label: str) -> None:
    open_page(browser, pages / "thirty.html", f"#/all?model={label}&show=failed")
    assert f"not passed by {label}" in browser.text("#found")
    assert [label] == browser.texts("#pick-model option:checked")


@pytest.mark.parametrize(
    ("page", "says", "found", "cells"),
    [
        ("apart", "no model is named best: a and b share no scored example", "18 examples", ["✓passed 1", "no result"]),
        ("down", "no model is named best: fewer than two models have a score", "9 examples", ["✓passed 1", "!error"]),
    ],
)
def test_models_that_cannot_be_compared_are_beside_each_other_all_the_same(
    browser: Browser, pages: Path, page: str, says: str, found: str, cells: Sequence[str]
) -> None:
    open_page(browser, pages / f"{page}.html")
    assert browser.text("h1").startswith(says)
    assert ["a", "b"] == sorted(text.split()[0] for text in browser.texts(".models tbody th"))
    open_page(browser, pages / f"{page}.html", "#/all?sort=file")
    assert found == browser.text("#found")
    assert cells == [
        text
        for cell in ("td:nth-child(2)", "td:nth-child(3)")
        for text in browser.texts(f".matrix tbody tr:first-child {cell} :is(.verdict-line, .nothing)")[:1]
    ]
    click(browser, ".matrix tbody a")
    assert 2 == len(browser.texts(".beside header h3"))


def test_prompts_are_columns_with_their_words_compared(browser: Browser, pages: Path) -> None:
    open_page(browser, pages / "prompts.html")
    assert "60 of 60 examples were asked with different prompts." == browser.text("#prompts")
    click(browser, "#prompts a")
    click(browser, ".matrix tbody a")
    assert "Prompts" in browser.texts(".detail h3")
    assert "Please: what" in browser.texts(".diff ins")


@pytest.mark.again
def test_configs_of_one_run_are_columns_with_their_prompts_side_by_side(browser: Browser, project: Project) -> None:
    project.write("tasks/numbers.yaml", _VARIANTS)
    project.write("tasks/rows.csv", "n\n" + "".join(f"{n}\n" for n in range(30)))
    project.write("both.yaml", "- {name: loud, tone: say}\n- {name: low, tone: mutter}\n")
    assert 0 == project.run("--lm-config=both.yaml", "--lm-gate=none").ret
    assert 0 == project.lmeval("rank", "reports/ledger.jsonl", "--by=config", "--html=page.html").ret
    open_page(browser, project.path / "page.html")
    assert browser.text("h1").startswith("loud is best; low is worse")
    assert ["loud", "low"] == [text.split()[0] for text in browser.texts(".models tbody th")]
    assert ["numbers"] == browser.texts(".by-task tbody th")
    assert "30 of 30 examples were asked with different prompts." == browser.text("#prompts")
    click(browser, "#prompts a")
    click(browser, ".matrix tbody a")
    assert {"say", "mutter"} <= {text.strip(" :") for text in browser.texts(".diff del, .diff ins")}


_PROMPTS = """
data: rows.csv
metric: exact_match
prompt:
  loud: "say: {{ word }}"
  low: "Please say: {{ word }}, please"
  third: "say: {{ word }}"
target: "{{ word }}"
"""


@pytest.mark.again
def test_prompts_of_a_data_file_are_columns_whose_examples_are_on_the_page_of_their_run(
    browser: Browser, project: Project
) -> None:
    # The model says what follows "say: ": the second prompt makes it say more.
    project.write("tasks/words.yaml", _PROMPTS)
    project.write("tasks/rows.csv", "id,word\n" + "".join(f"r{n},w{n}\n" for n in range(12, 0, -1)))
    assert 0 == project.run("--lm-gate=none").ret
    assert 0 == project.lmeval("rank", "reports/ledger.jsonl", "--by=config", "--html=reports/prompts.html").ret
    open_page(browser, project.path / "reports" / "prompts.html")
    assert browser.text("h1").startswith("loud and third have the same score; third is not shown to be worse")
    assert ["loud", "third", "low"] == [text.split()[0] for text in browser.texts(".models tbody th")]
    # Each has a score of 1 or 0 alone, which is a doubt about the run.
    assert [] == [text for text in browser.texts("#remarks li") if "words@low" in text]
    assert ["words"] == browser.texts(".by-task tbody th")
    assert "12 of 12 examples were asked with different prompts." == browser.text("#prompts")
    click(browser, ".models tbody tr:last-child td:nth-last-child(4) a")
    assert [f"r{n}" for n in range(12, 0, -1)] == browser.texts(".matrix tbody a")
    click(browser, ".matrix tbody tr:nth-child(3) a")
    # The run has one page for all of its variants: TASK@NAME.
    addresses = browser.js("[...document.querySelectorAll('.beside header a')].map(a => a.getAttribute('href'))")
    assert {f"./report.html#/task/words%40{name}?id=r10" for name in ("loud", "third", "low")} == {*addresses}
    for address in addresses:
        page, _, fragment = address.partition("#")
        open_page(browser, project.path / "reports" / page, f"#{fragment}")
        assert "r10" == browser.text("#example-title")
        assert browser.text(".list-head h1") in fragment.replace("%40", "@")


def test_steps_conversations_and_thoughts_of_every_model_are_there(browser: Browser, pages: Path) -> None:
    open_page(browser, pages / "functions.html", "#/task/support?id=one")
    assert 2 == len(browser.texts(".beside .timeline"))
    click(browser, ".beside .step summary")
    assert 1 == browser.js("document.querySelectorAll('.beside .step[open]').length")
    open_page(browser, pages / "functions.html", "#/task/talks?id=talk")
    assert 2 == browser.texts(".beside h3").count("Conversation")


def test_the_page_is_used_by_keyboard_alone(browser: Browser, pages: Path) -> None:
    open_page(browser, pages / "three.html", "#/all")
    browser.press("j", "j", "k")
    assert browser.js("location.hash").endswith("id=e0")
    browser.press("Escape")
    assert "A" == browser.js("document.activeElement.tagName")
    browser.press("Enter")
    assert "example-title" == browser.js("document.activeElement.id")
    browser.press("Escape", "Escape")
    assert "Overview" == browser.text("nav [aria-current=page]")


@pytest.mark.again
@pytest.mark.parametrize("fragment", ["", "#/all", "#/task/sums?id=e0"])
@pytest.mark.parametrize("page", ["three.html", "five.html", "long.html"])
def test_a_phone_needs_no_scrolling_sideways(browser: Browser, pages: Path, page: str, fragment: str) -> None:
    browser.size(*NARROW)
    open_page(browser, pages / page, fragment.replace("sums", "long_" * 14 if page == "long.html" else "sums"))
    assert browser.js("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_texts_of_models_are_never_run(browser: Browser, pages: Path) -> None:
    for fragment in ("", "#/all", "#/task/facts", "#/all?q=script"):
        open_page(browser, pages / "hostile.html", fragment)
        assert [0, None] == [browser.js("document.images.length"), browser.js("window.pwned ?? null")]
    for link in range(8):
        open_page(browser, pages / "hostile.html", "#/all")
        click(browser, f".matrix tbody tr:nth-child({link + 1}) a")
        assert [1, None] == [len(browser.texts("#example-title")), browser.js("window.pwned ?? null")]


@pytest.mark.slow
def test_twelve_models_with_10_000_examples_are_listed_and_filtered(browser: Browser, tmp_path: Path) -> None:
    models = {f"m{place}": answers_of(place % 4, 10_000) for place in range(12)}
    open_page(browser, write_page(tmp_path / "page.html", models), "#/all?show=differs")
    assert browser.text("#found").startswith("9,000 examples, models differ")


@pytest.mark.slow
def test_four_models_with_10_000_examples_open_two_seconds_after_a_small_page_at_the_latest(
    browser: Browser, tmp_path: Path
) -> None:
    sizes = {"small.html": 20, "large.html": 10_000}
    took = {}
    for name, examples in sizes.items():
        models = {f"m{place}": answers_of(place, examples) for place in range(4)}
        open_page(browser, write_page(tmp_path / name, models), "#/all")
        took[name] = browser.js("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took["large.html"] - took["small.html"] < 2000
