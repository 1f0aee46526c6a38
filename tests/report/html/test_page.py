"""The report as a reader has it before them: in a real Chromium, by mouse, keyboard and accessibility tree."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_lmeval.report.html import write_report
from tests.conftest import MadeOnce
from tests.report.html.browser import FACES, NARROW, Browser
from tests.report.html.samples import (
    HOSTILE,
    board_of,
    compared_run,
    function_run,
    hostile_run,
    large_run,
    prompt_of_messages,
    result,
)


@pytest.fixture(scope="module")
def pages(made_once: MadeOnce) -> Path:
    return made_once("pages", write_pages)


def write_pages(folder: Path) -> None:
    write_report(folder / "compared.html", *compared_run())
    write_report(folder / "hostile.html", *hostile_run())
    write_report(folder / "functions.html", *function_run())
    prompts = [prompt_of_messages(number) for number in range(2)]
    write_report(folder / "messages.html", board_of(prompts), prompts)
    large = large_run(10_000)
    write_report(folder / "large.html", board_of(large), large)


@pytest.fixture
def compared(pages: Path) -> Path:
    return pages / "compared.html"


def _ids(browser: Browser) -> list[str]:
    return browser.texts(".examples a")


def _complaints(browser: Browser) -> list[dict[str, Any]]:
    return [event for event in browser.events if event["method"] in FACES]


def _requests(browser: Browser) -> list[str]:
    return [
        event["params"]["request"]["url"] for event in browser.events if event["method"] == "Network.requestWillBeSent"
    ]


def _names(browser: Browser, role: str) -> list[str]:
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    return [node["name"]["value"] for node in nodes if not node["ignored"] and node["role"]["value"] == role]


# The overview


def test_the_overview_begins_with_verdict_and_scores(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    assert browser.text("h1").endswith("Regression")
    assert ["Scores", "Reasons", "Got worse", "Latency", "Left out", "Run"] == browser.texts("h2")
    assert [] == _complaints(browser)


def test_the_plot_shows_score_interval_floor_and_baseline_of_a_task(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    row = "document.querySelector('.scores a[href=\"#/task/sums\"]').closest('tr')"
    board, *_ = compared_run()
    sums = next(row for row in board["tasks"] if row["task"] == "sums")

    def position(selector: str, attribute: str) -> float:
        found: str = browser.js(f"{row}.querySelector('{selector}').getAttribute('{attribute}')")
        return float(found.rstrip("%"))

    assert pytest.approx(100 * sums["score"], abs=0.01) == position("circle.score", "cx")
    assert pytest.approx([100 * end for end in sums["ci95"]], abs=0.01) == [
        position("line.interval", "x1"),
        position("line.interval", "x2"),
    ]
    assert 60 == position("line.floor", "x1")
    assert 75 == position("svg svg", "x")
    row = "document.querySelector('.scores tr.overall')"
    assert 75 == position("svg svg", "x")
    assert ["Overall regression"] == browser.texts(".scores tr.overall th")


def test_what_got_worse_is_shown_from_where_the_two_texts_part(browser: Browser, tmp_path: Path) -> None:
    alike = "The order was sent on Monday, and arrives in the shop in Riga "
    results = [result("long", f"{alike}never.", score=0.0), result("short", "5", score=0.0)]
    passed = [result("long", f"{alike}on Friday.", score=1.0), result("short", "4")]
    before = {(each.task, each.id): each for each in passed}
    write_report(tmp_path / "page.html", board_of(results), results, None, before)
    browser.open(tmp_path / "page.html")
    shown = [browser.texts(f"tbody tr:nth-child({row}) td.said")[1:3] for row in (1, 2)]
    assert [["\u2026in the shop in Riga never.", "\u2026in the shop in Riga on Friday."], ["5", "4"]] == shown


def test_every_link_of_the_overview_leads_to_examples(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    links: list[str] = browser.js("[...document.querySelectorAll('main a')].map(a => a.getAttribute('href'))")
    assert {"#/all?show=worse", "#/all?show=errors", "#/task/sums"} <= set(links)
    for link in dict.fromkeys(links):
        browser.go(link)
        assert [] != _ids(browser), link


# The list


@pytest.mark.parametrize(
    ("show", "ids"),
    [
        ("failed", ["wrong"]),
        ("below", ["below"]),
        ("errors", ["error", "timeout"]),
        ("excluded", ["excluded"]),
        ("worse", ["wrong"]),
        ("flipped", ["right", "wrong"]),
        ("passed", ["right"]),
    ],
)
def test_a_filter_shows_its_examples_and_says_how_many(
    browser: Browser, compared: Path, show: str, ids: list[str]
) -> None:
    if browser.js("location.pathname") != str(compared):
        browser.open(compared)
    browser.go("#/task/sums")
    browser.js(f"document.querySelector('input[value={show}]').click()")
    browser.settle()
    assert ids == _ids(browser)
    assert browser.text("#found").startswith("1 example," if len(ids) == 1 else f"{len(ids)} examples,")
    assert f"#/task/sums?show={show}" == browser.js("location.hash")


def test_a_filter_offers_only_what_is_there(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/mcq")
    labels = [label.rsplit(" ", 1) for label in browser.texts(".choice")]
    assert [["All", "2"], ["Failed", "1"], ["Unparsed", "1"], ["Passed", "1"]] == labels


def test_the_search_looks_into_texts_while_one_types(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/all")
    browser.press("/")
    assert "search" == browser.js("document.activeElement.id")
    browser.press(*"SURELY (b")
    browser.wait_for("document.getElementById('found').textContent.startsWith('1 example,')")
    assert ["letter"] == _ids(browser)
    assert "search" == browser.js("document.activeElement.id")
    # The address follows when nothing more is typed.
    browser.wait_for("location.hash === '#/all?q=SURELY+%28b'")
    browser.press("Escape")
    assert "letter" == browser.js("document.activeElement.textContent")


@pytest.mark.parametrize(("query", "ids"), [("503", ["error"]), ("it is nowhere", []), ("question wrong", ["wrong"])])
def test_a_search_in_the_address_is_done(browser: Browser, compared: Path, query: str, ids: list[str]) -> None:
    browser.open(compared, f"#/all?q={query}")
    assert ids == _ids(browser)
    assert query == browser.js("document.getElementById('search').value")


def test_a_long_list_comes_in_pages(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many")
    assert "250 examples; 1 to 100 shown" == browser.text("#found")
    browser.js("[...document.querySelectorAll('.pager a')].at(-1).click()")
    browser.settle()
    browser.js("[...document.querySelectorAll('.pager a')].at(-1).click()")
    browser.settle()
    assert [f"many-{number}" for number in range(200, 250)] == _ids(browser)
    assert "Page 3 of 3" in browser.text(".pager")


def test_a_list_of_all_tasks_says_where_its_examples_come_from(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/all?show=passed")
    assert ["many", "250", "mcq", "1", "sums", "1"] == [
        text for text in browser.texts(".detail tbody :is(th, td)") if text
    ]
    browser.js("document.querySelector('.detail tbody a').click()")
    browser.wait_for("location.hash === '#/task/many?show=passed'")


def test_the_order_may_be_chosen(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums?sort=drop")
    assert ["wrong", "below"] == _ids(browser)[:2]
    browser.go("#/task/sums?sort=id")
    assert ["below", "error", "excluded"] == _ids(browser)[:3]


# One example


def test_a_link_opens_the_very_example(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/all?show=worse&in=sums&id=wrong")
    assert "wrong" == browser.text("#example-title")
    assert "wrong - Got worse - stub.v1" == browser.js("document.title")
    assert ["wrong"] == browser.texts(".examples tr.open a")
    assert ["I think: 5", "4", "I think: 45"] == browser.texts(".detail pre")[:3]
    assert "score 0, threshold 1" in browser.text(".result")
    assert "pytest tasks/sums.jsonl::wrong --lm-adapter=stub:Model --lm-report-dir=reports/rerun" == browser.text(
        ".command"
    )


def test_a_link_to_an_example_beyond_the_first_page_opens_its_page(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many?id=many-142")
    assert "many-142" == browser.text("#example-title")
    assert ["many-142"] == browser.texts(".examples tr.open a")


def test_a_link_to_an_example_that_is_not_there_says_so(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums?id=gone")
    assert "not on this page" in browser.text(".detail > .note")


def test_the_baselines_output_is_shown_as_a_word_diff(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums?id=wrong")
    assert (["4"], ["5"]) == (browser.texts(".diff del"), browser.texts(".diff ins"))
    assert "I think: 45" == browser.text(".diff")


def test_what_was_extracted_is_marked_in_the_output(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/mcq?id=letter")
    assert "Can't say. Surely ([extracted: B])." == browser.text(".output")
    assert "[extracted: B]" == browser.text(".output mark")


def test_an_error_is_shown_with_its_reason(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums?id=error")
    assert "503 from the server" == browser.text("pre.error")
    assert "not scored" in browser.text(".result")


def test_a_task_shows_its_confusion_matrix_classes_and_calibration(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums")
    assert ["yes", "8", "2", "no", "\u00b7", "5"] == browser.texts(".confusion tbody :is(th, td)")
    assert "0.889" in browser.texts(".detail td")
    assert {"0.125", "0.25", "15"} <= set(browser.texts(".detail dd"))


def test_a_diff_gives_both_texts_back(browser: Browser, tmp_path: Path) -> None:
    texts = [
        "a b c d",
        "a x c d",
        "one two\nthree four\n",
        "one two\nthree five\n",
        " \n",
        "\u4f60\u597d",
        "\u4f60\u4eec\u597d",
    ]
    texts += ["word " * 500, "other " * 500, "the same start " + "x y " * 30, "the same start " + "y x " * 30]
    pairs = [pair for old, new in pairwise(texts) for pair in ((old, new), (new, old))]
    results = [result(f"p{number}", new) for number, (_, new) in enumerate(pairs)]
    before = {("sums", f"p{number}"): result(f"p{number}", old) for number, (old, _) in enumerate(pairs)}
    write_report(tmp_path / "diffs.html", board_of(results), results, None, before)
    browser.open(tmp_path / "diffs.html", "#/task/sums")
    both = """(() => {
        const block = document.querySelector('.diff');
        if (!block) return null;
        block.querySelectorAll('.hidden').forEach(one => one.remove());
        block.querySelectorAll('.blank').forEach(one => one.replaceWith(
            one.textContent.replaceAll('\\u21b5\\n', '\\n').replaceAll('\\u00b7', ' ')));
        const without = kind => { const copy = block.cloneNode(true);
            copy.querySelectorAll(kind).forEach(one => one.remove()); return copy.textContent };
        return [without('ins'), without('del')];
    })()"""
    shown = 0
    for number, (old, new) in enumerate(pairs):
        browser.js(f"location.hash = '#/task/sums?id=p{number}'")
        browser.wait_for(f"document.getElementById('example-title')?.textContent === 'p{number}'")
        found = browser.js(both)
        if found is not None:
            shown += 1
            assert [old, new] == found
    assert shown > 5


# Examples of eval functions


def test_the_steps_of_an_example_are_rows_over_time(browser: Browser, pages: Path) -> None:
    browser.open(pages / "functions.html", "#/task/support?id=one")
    assert [
        "Question",
        "Scores",
        "What the model answered",
        "Steps, 5",
        "Notes",
        "Row",
        "Details",
        "Run it again",
    ] == browser.texts(".detail h3")
    assert "1 decides" == browser.texts(".detail dd")[0]
    assert ["request stub.v1", "tool search", "tool open", "note no time", "judge judge.v1"] == browser.texts(".what")
    assert ["800 ms", "351 ms", "error", "", "700 ms"] == browser.texts(".step .took")
    assert ["852 tokens", "cost 0.00123"] == browser.texts(".used span")
    placed: list[list[float]] = browser.js("""[...document.querySelectorAll('.step .track')].map(track => {
        const [all, bar] = [track, track.firstChild].map(one => one.getBoundingClientRect());
        return [(bar.left - all.left) / all.width, bar.width / all.width] })""")
    assert [[0.0, 0.4], [0.4, 0.175], [0.6, 0.045]] == [[round(x, 3) for x in pair] for pair in placed[:3]]
    assert [0.65, 0.35] == pytest.approx(placed[4], abs=0.001)
    assert "'tasks/support.jsonl::test_ticket[one]'" == browser.text(".command").split()[1]
    assert "Where is my parcel?\nIt is late." in browser.texts(".facts pre")
    assert [] == _complaints(browser)


def test_a_step_is_opened_by_keyboard(browser: Browser, pages: Path) -> None:
    browser.open(pages / "functions.html", "#/task/support?id=one")
    assert [] == browser.texts(".inside")
    browser.js("document.querySelectorAll('.step summary')[2].focus()")
    browser.press("Enter")
    browser.wait_for("document.querySelector('.inside pre') !== null")
    assert ["KeyError: 'url'", "{}"] == browser.texts(".inside pre")
    browser.js("document.querySelector('.step summary').click()")
    browser.wait_for("document.querySelectorAll('.inside').length === 2")
    assert ["2 messages before", "assistant", "user"] == browser.texts(".inside :is(.fold summary, h5)")
    assert ["f({})", 'search({"q":"tea"})'] == browser.texts(".inside .calls")
    for dark in (False, True):
        browser.dark(dark)
        browser.js("Promise.all(document.getAnimations().map(one => one.finished)).then(() => 1)")
        assert {} == {pair: least for pair, least in browser.js(_CONTRASTS).items() if least < 4.5}
    browser.size(*NARROW)
    assert browser.js("document.documentElement.scrollWidth") <= NARROW[0]


def test_each_repeat_has_its_reason_and_its_steps(browser: Browser, pages: Path) -> None:
    browser.open(pages / "functions.html", "#/task/support?id=two")
    assert ["Repeat 1 of 2, score 1", "Repeat 2 of 2, score 0"] == browser.texts(".detail h3")[2:4]
    assert ["What the model answered", "Steps, 2", "Why the score is what it is", "Steps, 3"] == browser.texts(
        ".detail h4"
    )
    browser.go("#/task/support?id=wrong")
    # A number that would be rounded is shown as it is written.
    assert '{"id": "wrong", "n": 12345678901234567890}' in browser.texts(".detail pre")
    again = shlex.quote("tasks/support.jsonl::TestX::test_x[it's $HOME]")
    assert browser.text(".command").startswith(f"pytest {again} --lm-adapter")


def test_a_thousand_steps_are_shown_and_searched(browser: Browser, pages: Path) -> None:
    browser.open(pages / "functions.html", "#/task/support?id=many")
    assert 1000 == len(browser.texts(".step"))
    browser.go("#/task/support?q=step-999")
    assert ["many"] == _ids(browser)


# Conversations


def test_a_conversation_is_shown_turn_by_turn_with_folded_thoughts_and_never_run(browser: Browser, pages: Path) -> None:
    browser.open(pages / "functions.html", "#/task/talks?id=talk")
    shown: list[str] = browser.js("""[...[...document.querySelectorAll('h3')].find(title =>
        title.textContent === 'Conversation').nextElementSibling.children].map(turn => turn.innerText)""")
    folded, evil = "Thoughts before it, not scored, {} characters", HOSTILE[0]
    called = ['weather({"city":"Riga' + evil + '"})', "sky({broken)"]
    answered = ["Tool", f"rain{evil}", "Tool", "no sky"]
    first = ["How is it in Riga?", "Model", folded.format(44), *called, *answered]
    first += ["Model", folded.format(12), "It rains <b>hard</b>.", "Targets", "rains", "pours"]
    assert [
        ["User passed, substring_contains 1", *first],
        ["User not scored", "Thank you.", "Model", f"Welcome.{evil}"],
        [
            *("User failed, tool_calls 0", "Do nothing.", "Model", "sky({broken)", "Expected call", "no call"),
            *("difference", "a call too many: sky({broken)"),
        ],
        [
            *("User failed, substring_contains 0", f"A coat?{evil}", "Model", folded.format(12)),
            *("Yes, a coat.", "Target", "no coat"),
        ],
    ] == [turn.split("\n") for turn in shown]
    browser.js("document.querySelectorAll('.detail .fold').forEach(one => { one.open = true })")
    browser.settle()
    assert [f"Look it up.{evil}", "So it rains.", "Rain is wet."] == browser.texts(".detail .fold pre")
    assert "undefined" == browser.js("typeof window.pwned")
    assert [] == browser.texts(".detail li :is(script, b)")
    assert [] == _complaints(browser)


def test_the_calls_that_were_expected_stand_where_targets_do(browser: Browser, pages: Path) -> None:
    if browser.js("location.pathname") != str(pages / "functions.html"):
        browser.open(pages / "functions.html")
    browser.go("#/task/talks?id=called")
    assert ["Output", "Expected calls"] == browser.texts(".outcome h3")
    assert ['weather(city="Riga")', "sky()"] == browser.texts(".outcome .targets pre")
    assert "expected" not in browser.texts(".facts dt")
    assert "difference" in browser.texts(".facts dt")


# By keyboard


def test_the_list_is_walked_with_j_k_and_the_arrow_keys(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many")
    for keys, title in [("jj", "many-001"), ("k", "many-000"), ("k", "many-000"), ("jjj", "many-003")]:
        browser.press(*keys)
        assert title == browser.text("#example-title")
    browser.js("document.querySelector('tr.open a').focus()")
    browser.press("ArrowDown", "ArrowDown", "ArrowUp")
    assert "many-004" == browser.text("#example-title")
    assert "many-004" == browser.js("document.activeElement.textContent")


def test_the_walk_goes_on_over_the_end_of_a_page(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many?id=many-099")
    browser.press("j")
    assert ["many-100"] == browser.texts("tr.open a")
    assert "many-100" == _ids(browser)[0]


def test_enter_goes_to_the_example_and_escape_step_by_step_back(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many?id=many-002")
    browser.js("document.querySelector('tr.open a').focus()")
    browser.press("Enter")
    assert "example-title" == browser.js("document.activeElement.id")
    browser.press("Escape")
    assert "many-002" == browser.js("document.activeElement.textContent")
    assert [] == browser.texts("#example-title")
    browser.press("Escape")
    browser.wait_for("document.querySelector('h1').textContent.endsWith('Regression')")


def test_the_tab_key_stops_at_everything_once_and_at_the_list_once(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/many")
    stops: list[str] = []
    while "many-000" not in stops:
        browser.press("Tab")
        active = "document.activeElement"
        stops.append(browser.js(f"{active}.id || {active}.name || {active}.textContent"))
    assert ["skip", "Overview", "All examples"] == stops[:3]
    assert ["picker", "copy-link", "search", "order", "CSV: download examples", "show", "many-000"] == stops[-7:]
    browser.press("Tab")
    assert not browser.js("document.activeElement.closest('.examples') !== null")


def test_what_has_the_focus_can_be_seen(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    browser.press("Tab", "Tab")
    assert "solid" == browser.js("getComputedStyle(document.activeElement).outlineStyle")


# By accessibility tree


def test_everything_that_can_be_operated_has_a_name(browser: Browser, compared: Path) -> None:
    for fragment in ("", "#/all", "#/task/sums?id=wrong"):
        browser.open(compared, fragment)
        for role in ("link", "button", "combobox", "searchbox", "radio", "table", "region", "image", "navigation"):
            assert "" not in _names(browser, role), (fragment, role)
    assert "Search in prompts, outputs and targets" in "".join(_names(browser, "searchbox"))


def test_landmarks_headings_and_live_regions_are_there(browser: Browser, compared: Path) -> None:
    browser.open(compared, "#/task/sums?id=wrong")
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    roles = {node["role"]["value"] for node in nodes if not node["ignored"]}
    assert {"banner", "main", "contentinfo", "navigation", "search", "status", "table", "columnheader"} <= roles
    assert {"rowheader", "insertion", "deletion"} <= roles
    assert ["sums", "wrong"] == _names(browser, "heading")[:2]
    assert "status" == browser.js("document.getElementById('found').getAttribute('role')")


def test_a_plot_is_no_noise_beside_its_numbers(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    (histogram,) = _names(browser, "image")
    assert histogram.startswith("Histogram: half of the examples took at most 120 ms")
    assert any(name.startswith("sums regression") for name in _names(browser, "rowheader"))


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_background(browser: Browser, compared: Path, dark: bool) -> None:
    browser.dark(dark)
    browser.open(compared, "#/task/sums?id=wrong")
    contrasts: dict[str, float] = browser.js(_CONTRASTS)
    assert {} == {pair: contrast for pair, contrast in contrasts.items() if contrast < 4.5}
    assert dark == (browser.js("getComputedStyle(document.documentElement).backgroundColor") != "rgb(255, 255, 255)")


_CONTRASTS = """(() => {
    const luminance = rgb => rgb.map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, place) => sum + v * [0.2126, 0.7152, 0.0722][place], 0);
    const parse = color => color.match(/[0-9.]+/g).map(Number);
    const behind = node => { for (; node; node = node.parentElement) {
        const color = parse(getComputedStyle(node).backgroundColor);
        if (color.length < 4 || color[3] === 1) return color.slice(0, 3) } return [255, 255, 255] };
    const found = {};
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const node = walk.currentNode.parentElement;
        if (!walk.currentNode.data.trim() || !node.checkVisibility()) continue;
        if (node.closest('[aria-hidden=true], .hidden, .skip, script, noscript, option')) continue;
        const [a, b] = [luminance(parse(getComputedStyle(node).color).slice(0, 3)), luminance(behind(node))];
        found[`${node.tagName}.${node.className}: ${walk.currentNode.data.slice(0, 30)}`] =
            (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }
    return found;
})()"""


@pytest.mark.parametrize("fragment", ["", "#/all", "#/task/sums?id=wrong", "#/task/sums"])
def test_a_narrow_screen_needs_no_scrolling_sideways(browser: Browser, compared: Path, fragment: str) -> None:
    browser.size(*NARROW)
    browser.open(compared, fragment)
    assert browser.js("document.documentElement.scrollWidth") <= NARROW[0]


def test_on_a_narrow_screen_list_and_example_take_turns(browser: Browser, compared: Path) -> None:
    browser.size(*NARROW)
    browser.open(compared, "#/task/many")
    browser.js("document.querySelector('.examples a').focus()")
    browser.press("ArrowDown")
    assert ("many-001", []) == (browser.js("document.activeElement.textContent"), browser.texts("#example-title"))
    browser.press("Enter")
    browser.wait_for("document.getElementById('example-title') !== null")
    assert not browser.js("document.querySelector('.pane').checkVisibility()")
    browser.press("Escape")
    browser.wait_for("document.querySelector('.pane').checkVisibility()")


# Hostile text


def test_hostile_text_is_shown_and_never_run(browser: Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
    browser.js("document.querySelectorAll('details').forEach(one => { one.open = true })")
    browser.go("#/all")
    links: list[str] = browser.js("[...document.querySelectorAll('.examples a')].map(a => a.getAttribute('href'))")
    assert 2 * len(HOSTILE) + 1 == len(links)
    seen = ""
    for link in [*links, *(f"#/task/{json.dumps(text)[1:-1]}?q={text[:20]}" for text in HOSTILE[:3])]:
        browser.go(link)
        browser.js("document.querySelectorAll('details').forEach(one => { one.open = true })")
        browser.settle()
        seen += browser.text("#detail")
    assert all(text in seen for text in HOSTILE[:6])
    assert "undefined" == browser.js("typeof window.pwned")
    tags: list[str] = browser.js("[...new Set([...document.querySelectorAll('body *')].map(e => e.tagName))]")
    assert set() == set(tags) & {"IMG", "B ", "IFRAME", "OBJECT"}
    assert [] == _complaints(browser)
    assert [(pages / "hostile.html").as_uri()] == [
        url.partition("#")[0] for url in _requests(browser) if "data:" not in url
    ]


def test_what_cannot_be_seen_is_spelled_out(browser: Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
    odd = set(browser.texts("main .odd"))
    assert {"U+202E", "U+0000", "U+001B", "U+D800", "U+2028", "U+2029"} == odd
    for fragment in ("#/", "#/all"):
        browser.go(fragment)
        assert not browser.js(r"/[\u202e\0\x1b\u2028]|\p{Cs}/u.test(document.title + document.body.innerText)"), (
            fragment
        )


def test_a_script_that_is_put_in_later_is_refused(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    added = """(() => { const node = document.createElement('script');
        try { node.textContent = 'window.pwned = 1'; document.body.append(node) } catch (error) {}
        try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.pwned=1>') } catch (error) {}
        return typeof window.pwned })()"""
    assert "undefined" == browser.js(added)
    browser.settle()
    assert "undefined" == browser.js("typeof window.pwned")


# Large runs


def test_ten_thousand_examples_are_listed_and_searched(browser: Browser, pages: Path) -> None:
    browser.open(pages / "large.html", "#/all?show=failed")
    assert "1,000 examples, failed; 1 to 100 shown" == browser.text("#found")
    browser.go("#/all?q=ex-09999")
    assert ["ex-09999"] == _ids(browser)
    assert [] == _complaints(browser)


def test_what_is_left_out_is_said_where_examples_are_listed(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_lmeval.report.html.data.MAX_EXAMPLES", 5)
    results = [result(f"ok-{number}") for number in range(1_200)] + [result("wrong", "5")]
    write_report(tmp_path / "part.html", board_of(results), results)
    browser.open(tmp_path / "part.html", "#/all")
    note = browser.text(".left-out")
    assert note.startswith("This page holds 5 of 1,201 examples")
    assert "1,196 passed" in note
    assert "ledger.jsonl" in note
    assert "wrong" in _ids(browser)


def test_a_printed_overview_has_no_controls(browser: Browser, compared: Path) -> None:
    browser.open(compared)
    browser.call("Emulation.setEmulatedMedia", media="print")
    visible = browser.js("[...document.querySelectorAll('nav, select, .foot')].filter(e => e.checkVisibility()).length")
    browser.call("Emulation.setEmulatedMedia", media="")
    assert 0 == visible


def test_a_prompt_of_messages_has_their_roles(browser: Browser, pages: Path) -> None:
    browser.open(pages / "messages.html", "#/task/sums?id=e1")
    assert ["User"] == browser.texts(".detail .message h4")
    browser.js("document.querySelector('.detail .fold summary').click()")
    browser.wait_for("document.querySelectorAll('.detail .message').length === 6")
    assert ["System", "User", "Model", "User", "Model", "User"] == browser.texts(".detail .message h4")
    assert [HOSTILE[0], "look({})", "Which is 1?"] == browser.texts(".detail .message pre")[-3:]
    assert "Which is 1?" == browser.texts(".examples tr.open th .gist")[0]
    assert [] == _complaints(browser)
